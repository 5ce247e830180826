"""The breaker (rule 15): all or none, exact on every limit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from providers.model import InstanceRef, InstanceState, OwnedInstance, Scope
from reaperd.core.model import (
    Approval,
    BreakerLimits,
    BreakerReading,
    Intent,
    Memory,
    OutcomeKind,
    Plan,
    Refusal,
    RefusalReason,
)
from reaperd.core.reap import decide
from registry.model import Worker, WorkerState
from tests.support.worlds import EAST, GCP, HOUR, NOW, SECOND, intent, look, machine, policy, ref, row, sighting

NONE_TRIPS = BreakerLimits(max_per_pass=99, max_fraction=1.0, fraction_from=1, max_per_hour=99)


def orphans(number: int, at: Scope = EAST) -> list[OwnedInstance]:
    return [machine(f"i-{n}", at=at, worker=f"w-{n}") for n in range(number)]


def fleet(tracked: int, at: Scope = EAST) -> tuple[list[OwnedInstance], list[Worker]]:
    names = range(100, 100 + tracked)
    machines = [machine(f"i-{n}", at=at, worker=f"{at.provider}-{n}") for n in names]
    return machines, [row(f"{at.provider}-{n}", f"i-{n}", at=at) for n in names]


def reading(
    lost: int | Iterable[OwnedInstance],
    tracked: int = 0,
    *,
    rows: Iterable[Worker] = (),
    remembered: Memory | None = None,
    **limits: Any,
) -> BreakerReading | None:
    """Return what the breaker read when it opened; None when it stayed closed and all orphans go."""
    gone = orphans(lost) if isinstance(lost, int) else list(lost)
    kept, their_rows = fleet(tracked)
    kinds = {name: getattr(NONE_TRIPS, name) for name in BreakerLimits.__dataclass_fields__}
    wishes = policy(breaker=BreakerLimits(**(kinds | limits)))
    decision = decide(look([*gone, *kept], [*their_rows, *rows], memory=remembered or Memory()), wishes)
    if isinstance(decision, Refusal):
        assert decision.reason is RefusalReason.BREAKER_OPEN
        return decision.breaker
    assert {v.ref for v in decision.terminations} == {each.ref for each in gone}
    return None


# ---------------------------------------------------------------- max_per_pass


def test_exactly_as_many_as_may_go_in_a_pass_go():
    assert reading(5, max_per_pass=5) is None


def test_one_more_than_may_go_in_a_pass_and_none_goes():
    found = reading(6, tracked=1, max_per_pass=5)

    assert found == BreakerReading(
        candidates=6, owned=7, in_window=0, tripped="6 to terminate in one pass (max_per_pass 5)", limit=5
    )


@pytest.mark.parametrize("limit", ["max_per_pass", "max_per_hour", "max_fraction"])
@pytest.mark.parametrize("fraction_from", [1, 4])
def test_a_limit_of_zero_means_never_however_small_the_fleet_is(limit, fraction_from):
    found = reading(1, fraction_from=fraction_from, **{limit: 0})

    assert found is not None
    assert (found.limit, f"{limit} 0: never" in found.tripped) == (0, True)


@pytest.mark.parametrize("limit", ["max_per_pass", "max_per_hour", "max_fraction"])
def test_a_limit_of_zero_is_no_trouble_when_there_is_nothing_to_do(limit):
    assert reading(0, tracked=3, **{limit: 0}) is None


# ---------------------------------------------------------------- max_per_hour


def hours(*ago: timedelta) -> Memory:
    return Memory(requests=tuple(NOW - each for each in ago))


def test_exactly_as_many_as_may_go_in_an_hour_go():
    assert reading(2, remembered=hours(*[SECOND] * 8), max_per_hour=10) is None


def test_one_more_than_may_go_in_an_hour_and_none_goes():
    found = reading(3, remembered=hours(*[SECOND] * 8), max_per_hour=10)

    assert found is not None
    assert (found.candidates, found.in_window, found.limit) == (3, 8, 10)
    assert found.tripped == "8 in the last hour and 3 now (max_per_hour 10)"


def test_a_request_of_exactly_an_hour_ago_has_left_the_window():
    assert reading(1, remembered=hours(HOUR), max_per_hour=1) is None
    assert reading(1, remembered=hours(HOUR - SECOND), max_per_hour=1) is not None


def test_a_request_in_the_future_is_in_the_window():
    assert reading(1, remembered=hours(-HOUR), max_per_hour=1) is not None


# ---------------------------------------------------------------- max_fraction


def test_exactly_the_largest_share_goes():
    assert reading(2, tracked=2, max_fraction=0.5, fraction_from=4) is None


def test_a_larger_share_and_none_goes():
    found = reading(3, tracked=2, max_fraction=0.5, fraction_from=4)

    assert found is not None
    assert found.limit == 0.5
    assert found.tripped == "3 of 5 machines (max_fraction 0.5)"


@pytest.mark.parametrize(("lost", "tracked", "share"), [(29, 71, 0.29), (57, 43, 0.57), (58, 42, 0.58), (1, 2, 1 / 3)])
def test_a_share_that_no_float_can_hold_is_exact_all_the_same(lost, tracked, share):
    assert reading(lost, tracked=tracked, max_fraction=share) is None
    assert reading(lost + 1, tracked=tracked - 1, max_fraction=share) is not None


def test_the_share_is_judged_from_so_many_machines_on():
    assert reading(3, tracked=0, max_fraction=0.5, fraction_from=4) is None
    assert reading(3, tracked=1, max_fraction=0.5, fraction_from=4) is not None


def test_a_machine_that_is_neither_candidate_nor_tracked_does_not_thin_the_share():
    held = [machine(f"i-{n}", worker=f"w-{n}", protect=True) for n in range(50, 60)]
    wishes = policy(breaker=BreakerLimits(max_per_pass=99, max_fraction=0.5, fraction_from=4, max_per_hour=99))

    decision = decide(look([*orphans(4), *held]), wishes)

    assert isinstance(decision, Refusal)
    assert decision.breaker is not None
    assert decision.breaker.tripped == "4 of 4 machines (max_fraction 0.5)"


def test_the_share_is_judged_per_provider_too():
    big, their_rows = fleet(20, GCP)
    wishes = policy(breaker=BreakerLimits(max_per_pass=99, max_fraction=0.5, fraction_from=4, max_per_hour=99))

    decision = decide(look([*orphans(4), *big], their_rows), wishes)

    assert isinstance(decision, Refusal)
    assert decision.breaker is not None
    assert decision.breaker.tripped == "4 of 4 machines of aws (max_fraction 0.5)"


def test_the_share_of_everything_is_judged_although_each_provider_is_small():
    wishes = policy(breaker=BreakerLimits(max_per_pass=99, max_fraction=0.5, fraction_from=4, max_per_hour=99))

    decision = decide(look([*orphans(3), *orphans(3, GCP)]), wishes)

    assert isinstance(decision, Refusal)
    assert decision.breaker is not None
    assert decision.breaker.tripped == "6 of 6 machines (max_fraction 0.5)"


RETIRED = [row(f"w-{n}", f"i-{n}", state=WorkerState.COMPLETED) for n in range(9)]


def test_retired_machines_do_not_count_for_the_share():
    assert reading(9, rows=RETIRED, max_fraction=0.5, fraction_from=1) is None


def test_retired_machines_count_for_the_numbers():
    assert reading(9, rows=RETIRED, max_per_pass=8) is not None
    assert reading(9, rows=RETIRED, max_per_hour=8) is not None


def test_a_retired_machine_whose_own_row_vanished_counts_for_the_share():
    known = {ref(f"i-{n}"): sighting(tracked_at=NOW - 2 * HOUR, tracked_by=f"lost-{n}") for n in range(9)}
    gone_for_long = {each: replace(told, vanished_at=NOW - HOUR) for each, told in known.items()}

    found = reading(9, rows=RETIRED, remembered=Memory(sightings=gone_for_long), max_fraction=0.5, fraction_from=1)

    assert found is not None
    assert found.tripped == "9 of 9 machines (max_fraction 0.5)"


def test_retired_machines_do_not_thin_the_share_either():
    found = reading([*orphans(9), machine("i-50", worker="w-50")], tracked=0, rows=RETIRED, max_fraction=0.5)

    assert found is not None
    assert found.tripped == "1 of 1 machines (max_fraction 0.5)"


# ---------------------------------------------------------------- repetitions


def asked(*refs: InstanceRef) -> dict[InstanceRef, Intent]:
    return {each: intent(OutcomeKind.REQUESTED, HOUR, each) for each in refs}


def test_repetitions_are_no_candidates():
    again = Memory(intents=asked(*(each.ref for each in orphans(3))))

    assert reading(3, remembered=again, max_per_pass=1, max_per_hour=1, max_fraction=0.01) is None


def test_a_limit_of_zero_means_never_and_neither_a_repetition_nor_an_approval_passes_it():
    again = Memory(intents=asked(ref("i-0")))

    for limit in ("max_per_pass", "max_per_hour", "max_fraction"):
        assert reading(1, remembered=again, **{limit: 0}) is not None
        assert reading(1, remembered=approved("i-0"), **{limit: 0}) is not None


def test_a_machine_that_was_tracked_since_it_was_asked_for_is_a_candidate_again():
    seen_tracked = {ref("i-0"): sighting(tracked_at=NOW - timedelta(minutes=5), vanished_at=NOW - HOUR)}
    again = Memory(intents=asked(ref("i-0")), sightings=seen_tracked)

    found = reading(2, remembered=again, max_per_pass=1)

    assert found is not None
    assert found.candidates == 2


def test_repetitions_go_down_with_new_candidates_all_the_same():
    again = Memory(intents=asked(ref("i-0")))

    found = reading(3, remembered=again, max_per_pass=1)

    assert found is not None
    assert found.candidates == 2


# ---------------------------------------------------------------- approval


def approved(*ids: str, until: datetime = NOW + SECOND) -> Memory:
    return Memory(approvals=(Approval(digest="sha256:a", refs=frozenset(map(ref, ids)), expires_at=until),))


def test_an_approved_plan_goes_past_every_limit():
    remembered = approved("i-0", "i-1", "i-2")

    assert reading(3, remembered=remembered, max_per_pass=1, max_per_hour=1, max_fraction=0.01) is None


def test_an_approval_ends_at_its_last_moment():
    everything = ("i-0", "i-1", "i-2")

    assert reading(3, remembered=approved(*everything, until=NOW + SECOND), max_per_pass=1) is None
    assert reading(3, remembered=approved(*everything, until=NOW), max_per_pass=1) is not None


def test_the_machines_that_were_not_approved_are_judged_without_the_others():
    assert reading(3, remembered=approved("i-0", "i-1"), max_per_pass=1) is None


def test_the_machines_that_were_not_approved_keep_all_of_them():
    found = reading(4, remembered=approved("i-0", "i-1"), max_per_pass=1)

    assert found is not None
    assert found.candidates == 2


def test_approved_machines_do_not_thin_the_share():
    found = reading(4, tracked=1, remembered=approved("i-0", "i-1"), max_fraction=0.5, fraction_from=3)

    assert found is not None
    assert found.tripped == "2 of 3 machines (max_fraction 0.5)"


def test_an_approval_does_not_take_past_requests_out_of_the_hour():
    remembered = Memory(requests=(NOW - SECOND,) * 9, approvals=approved("i-0").approvals)

    assert reading(3, remembered=remembered, max_per_hour=10) is not None
    assert reading(2, remembered=remembered, max_per_hour=10) is None


def test_an_approval_for_another_place_approves_nothing_here():
    everywhere_else = frozenset({ref("i-0", GCP), ref("i-1", GCP)})
    elsewhere = Approval(digest="sha256:a", refs=everywhere_else, expires_at=NOW + HOUR)

    assert reading(2, remembered=Memory(approvals=(elsewhere,)), max_per_pass=1) is not None


# ---------------------------------------------------------------- what is told


def test_an_open_breaker_tells_the_verdicts_the_digest_and_how_to_approve_it():
    wishes = policy(breaker=BreakerLimits(max_per_pass=1, max_fraction=1.0, max_per_hour=99))

    decision = decide(look(orphans(2)), wishes)

    assert isinstance(decision, Refusal)
    assert decision.digest is not None
    assert [v.terminates for v in decision.verdicts] == [True, True]
    assert decision.detail == ("2 to terminate in one pass (max_per_pass 1)")


def test_machines_that_exist_are_the_ones_that_are_owned():
    going = machine("i-50", worker="w-50", state=InstanceState.SHUTTING_DOWN)
    gone = machine("i-51", worker="w-51", state=InstanceState.TERMINATED)
    wishes = policy(breaker=BreakerLimits(max_per_pass=0))

    decision = decide(look([*orphans(2), going, gone]), wishes)

    assert isinstance(decision, Refusal)
    assert decision.breaker is not None
    assert decision.breaker.owned == 2


def test_the_defaults_are_those_of_the_rules():
    assert BreakerLimits() == BreakerLimits(max_per_pass=5, max_fraction=0.5, fraction_from=4, max_per_hour=10)


def test_a_closed_breaker_lets_the_whole_plan_go():
    decision = decide(look(orphans(5)), policy())

    assert isinstance(decision, Plan)
    assert len(decision.terminations) == 5
