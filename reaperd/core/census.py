"""What a look counted, whatever was decided on it (rule 29). Pure.

The gauges of a scope come from the last complete look, so that neither the brake nor the breaker nor a lease that is
held elsewhere hides an orphan.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

from providers.model import InstanceRef, Scope
from reaperd.core.leaks import AuditReport, Leak
from reaperd.core.memory import confirmed_gone
from reaperd.core.model import (
    Census,
    Keep,
    KeepReason,
    Observation,
    Outcome,
    OutcomeKind,
    ReapPolicy,
    ScopeCensus,
)
from reaperd.core.reap import Judgement, Picture
from reaperd.core.starts import started
from registry.model import WorkerState

__all__ = ["Census", "LeakCensus", "ScopeCensus", "census", "count_leaks"]

_UNDER_WAY = frozenset({None, OutcomeKind.REQUESTED, OutcomeKind.UNKNOWN, OutcomeKind.ALREADY_GONE})
"""Answers after which a machine may be going. None: the process died before the answer."""

_NO_ANSWER = frozenset({OutcomeKind.WOULD_TERMINATE, OutcomeKind.SPARED, OutcomeKind.DEFERRED})
"""Outcomes that change nothing about an earlier request."""

_Place = tuple[str, str]
"""Provider and region: it compares faster than a Scope."""


def census(seen: Observation, policy: ReapPolicy, outcomes: Iterable[Outcome] = ()) -> Census | None:
    """Return what this look counted; None when it is no look (the picture is not good).

    `outcomes` is what came of its plan: a machine that was just asked to go counts as going.
    """
    return count(Picture(seen, policy), outcomes)


def count(picture: Picture, outcomes: Iterable[Outcome] = ()) -> Census | None:
    """Return what a picture shows; see `census`."""
    seen, registry = picture.seen, picture.sound_registry
    if registry is None:
        return None
    judged: dict[_Place, list[Judgement]] = defaultdict(list)
    held: Counter[KeepReason] = Counter()
    for each in picture.judgements:
        ref, call = each.verdict.ref, each.verdict.call
        judged[ref.provider, ref.region].append(each)
        if isinstance(call, Keep):
            held[call.reason] += 1
    going = Counter((ref.provider, ref.region) for ref in _terminating(seen, outcomes))
    unseen = Counter((worker.provider, worker.region) for worker in picture.missing)
    states = Counter(worker.state for worker in registry.workers) + Counter(registry.passed_over)
    scopes = {scope: (scope.provider, scope.region) for scope in sorted({entry.scope for entry in seen.coverage})}
    return Census(
        at=seen.now,
        scopes=MappingProxyType({s: _counted(judged[at], going[at], unseen[at]) for s, at in scopes.items()}),
        held=MappingProxyType({reason: held[reason] for reason in KeepReason}),
        workers=MappingProxyType({state: states[state] for state in WorkerState}),
        epoch=registry.identity.epoch,
    )


def _counted(judged: Sequence[Judgement], going: int, unseen: int) -> ScopeCensus:
    standing = [each for each in judged if each.verdict.instance.state.exists]
    orphans = [each.sighting for each in standing if each.verdict.orphan is not None]
    return ScopeCensus(
        owned=len(standing),
        orphans=len(orphans),
        would_terminate=sum(1 for each in judged if each.verdict.terminates),
        terminating=going,
        missing=unseen,
        oldest_orphan_seen_at=min((sighting.first_seen_at for sighting in orphans), default=None),
    )


def _terminating(seen: Observation, outcomes: Iterable[Outcome]) -> frozenset[InstanceRef]:
    """Return the machines whose end was asked for, as far as this pass knows at its end."""
    gone = {intent.ref for intent in confirmed_gone(seen)}
    going = {ref for ref, intent in seen.memory.intents.items() if intent.outcome in _UNDER_WAY and ref not in gone}
    for outcome in outcomes:
        if outcome.kind in _UNDER_WAY:
            going.add(outcome.ref)
        elif outcome.kind not in _NO_ANSWER:
            going.discard(outcome.ref)
    return frozenset(going)


# ---------------------------------------------------------------- the audit


@dataclass(frozen=True, slots=True, kw_only=True)
class LeakCensus:
    """What a sweep counted in one scope."""

    running: int = 0
    """Leaks that are not stopped."""
    stopped: int = 0
    """Leaks that bill their disks, not their hours."""
    oldest_start: datetime | None = None
    """The earliest known start of a leak that runs; None without one."""
    cost_per_hour_usd: float | None = 0.0
    """Of the leaks that run and whose price is known; None when there are some and no price is."""
    near_misses: int = 0
    out_of_scope: int = 0
    """Our own machines, where the reaper does not look."""


def count_leaks(report: AuditReport) -> Mapping[Scope, LeakCensus]:
    """Return what a sweep counted in each scope that it saw whole. Of the others it says nothing (rule 26)."""
    found = report.findings
    leaks: dict[Scope, list[Leak]] = defaultdict(list)
    for leak in found.leaks:
        leaks[leak.instance.ref.scope].append(leak)
    near = Counter(leak.instance.ref.scope for leak in found.near_misses)
    astray = Counter(ref.scope for ref in found.out_of_scope)
    return MappingProxyType(
        {
            scope: _counted_leaks(leaks[scope], near[scope], astray[scope], report.started_at)
            for scope in sorted(report.seen_whole)
        }
    )


def _counted_leaks(leaks: Sequence[Leak], near_misses: int, out_of_scope: int, now: datetime) -> LeakCensus:
    running = [leak for leak in leaks if not leak.stopped]
    starts = [started(leak.instance, now, leak.first_seen_at) for leak in running]
    costs = [leak.instance.cost_per_hour_usd for leak in running if leak.instance.cost_per_hour_usd is not None]
    return LeakCensus(
        running=len(running),
        stopped=len(leaks) - len(running),
        oldest_start=min((start for start in starts if start is not None), default=None),
        cost_per_hour_usd=sum(costs) if costs or not running else None,
        near_misses=near_misses,
        out_of_scope=out_of_scope,
    )
