"""A recorded plan for who is to approve it: each machine with its cost, the evidence, and what has become of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from providers.model import InstanceState
from reaperd.core.history import ToldVerdict
from reaperd.core.plans import Became, Fate, RecordedPlan
from reaperd.core.prices import Prices, price_of
from reaperd.report.paper import Paper
from reaperd.report.parts import counts, dollars, hourly, span, told_time

PRICES_KEY = "[prices]"
"""Where the configuration says what machines cost."""


def draw_plan(plan: RecordedPlan, prices: Prices, paper: Paper, now: datetime) -> None:
    """Draw a plan. `prices` are today's: they count for machines that were recorded without one."""
    _head(plan, paper, now)
    paper.line()
    fates = {machine.ref: plan.became(machine.ref) for machine in plan.machines}
    costs = {machine.ref: cost_of(machine, prices) for machine in plan.machines}
    paper.rows(
        ("INSTANCE", "PLACE", "TYPE", "AGE THEN", "$/H", "NOW"),
        [
            (
                machine.ref.instance_id,
                str(machine.ref.scope),
                machine.instance_type or "-",
                span(_age(machine)),
                _price(costs[machine.ref]),
                str(fates[machine.ref].fate),
            )
            for machine in plan.machines
        ],
        right=(3, 4),
        below=[tuple(_below(machine, fates[machine.ref])) for machine in plan.machines],
    )
    paper.line()
    going = [machine for machine in plan.machines if fates[machine.ref].fate is Fate.TO_GO]
    paper.line(_sum(going, [costs[machine.ref] for machine in going], len(plan.machines)), "bold")
    paper.line()


def fates_told(plan: RecordedPlan) -> str:
    """Return how many of its machines became what."""
    return counts(str(plan.became(machine.ref).fate) for machine in plan.machines)


def cost_of(machine: ToldVerdict, prices: Prices) -> float | None:
    """Return what an hour of it costs; None when that is not known. What is stopped does not cost its price."""
    if machine.state == InstanceState.STOPPED:
        return None
    if machine.cost_per_hour_usd is not None:
        return machine.cost_per_hour_usd
    return price_of(machine.ref, machine.instance_type, prices)


# ---------------------------------------------------------------- the head


def _head(plan: RecordedPlan, paper: Paper, now: datetime) -> None:
    told = plan.told
    reason = f": {told.reason}" if told.reason else ""
    paper.command(f"plan {plan.digest}", indent=0)
    paper.labelled("recorded", f"{told_time(told.at)}, {span(now - told.at)} ago")
    paper.labelled("its pass", f"{told.mode}, {told.outcome}{reason}")
    if plan.looked_at is not None and plan.looked_since:
        paper.labelled("last look", f"{told_time(plan.looked_at)}, {span(now - plan.looked_at)} ago")


# ---------------------------------------------------------------- one machine


def _below(machine: ToldVerdict, became: Became) -> Iterator[str]:
    reason = machine.name.partition("/")[2]
    says = f"{reason}: {machine.detail}" if machine.detail else reason
    worker = f", worker {machine.worker_id}" if machine.worker_id else ""
    yield f"{says}; {machine.state}{worker}"
    yield ", ".join(_looks(machine))
    if became.fate is not Fate.TO_GO:
        why = f": {became.why}" if became.why else ""
        by = "at" if became.fate is Fate.REQUESTED else "as of"
        yield f"NOW {became.fate}{why}" + ("" if became.at is None else f", {by} {told_time(became.at)}")


def _looks(machine: ToldVerdict) -> Iterator[str]:
    yield f"untracked in {machine.confirmations}/{machine.confirmations_needed} looks"
    if machine.first_seen_at is not None:
        tracked = machine.last_tracked_at
        yield f"first seen {_minute(machine.first_seen_at)}"
        yield "never tracked" if tracked is None else f"last tracked {_minute(tracked)}"


def _minute(when: datetime) -> str:
    return f"{told_time(when)[:16]} UTC"


def _price(cost: float | None) -> str:
    return "-" if cost is None else dollars(cost)


def _age(machine: ToldVerdict) -> timedelta | None:
    return None if machine.age_seconds is None else timedelta(seconds=machine.age_seconds)


# ---------------------------------------------------------------- the foot


def _sum(going: Iterable[ToldVerdict], costs: Iterable[float | None], planned: int) -> str:
    """Return how many are to go and what they cost together, with what is not known of that."""
    priced = [cost for cost in costs if cost is not None]
    states = Counter(machine.state == InstanceState.STOPPED for machine in going)
    stopped, unknown = states[True], states[False] - len(priced)
    told = [_how_many(states.total(), planned)]
    if priced:
        told.append(hourly(priced))
    if stopped:
        told.append(f"{stopped:,} stopped")
    if unknown:
        told.append(f"{unknown:,} of unknown price: {PRICES_KEY} in the configuration gives one to a type")
    return ", ".join(told)


def _how_many(going: int, planned: int) -> str:
    of = f" of {planned:,}" if going != planned else ""
    return f"{going:,}{of} {'machine' if planned == 1 else 'machines'} to go"
