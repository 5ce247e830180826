"""What a look counted, whatever was decided on it (rule 29)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from providers.locations import Gone, NotKnown, There
from providers.model import AuditedInstance, InstanceState, Scope, TagKeys
from reaperd.core.census import Census, LeakCensus, ScopeCensus, census, count_leaks
from reaperd.core.leaks import AuditPolicy, AuditReport, find_leaks
from reaperd.core.model import (
    Brake,
    BreakerLimits,
    KeepReason,
    Memory,
    Observation,
    Outcome,
    OutcomeKind,
    PassOutcome,
    ReapPolicy,
)
from registry.model import WorkerState
from tests.support.worlds import (
    DEPLOYMENT,
    EAST,
    EPOCH,
    GCP,
    HOUR,
    MINUTE,
    NOW,
    SCOPES,
    WEST,
    broken,
    identity,
    intent,
    look,
    machine,
    memory,
    policy,
    ref,
    registry,
    row,
    sighting,
    whole,
)

BRAKE = Brake(since=NOW, by="ann", reason="a deploy")
SHUT = policy(breaker=BreakerLimits(max_per_pass=0))


def counted(seen: Observation, wishes: ReapPolicy | None = None, *outcomes: Outcome) -> Census:
    found = census(seen, wishes or policy(), outcomes)
    assert found is not None
    return found


def east(seen: Observation, *outcomes: Outcome) -> ScopeCensus:
    return counted(seen, None, *outcomes).scopes[EAST]


# ---------------------------------------------------------------- what is a look


@pytest.mark.parametrize(
    ("seen", "wishes"),
    [
        (look([machine()]), policy()),
        (look([machine()], leader=False), policy()),
        (look([machine()], memory=Memory(brake=BRAKE)), policy()),
        (look([machine()]), SHUT),
        (look([machine()], leader=False, memory=Memory(brake=BRAKE)), SHUT),
    ],
    ids=["acting", "without the lease", "under the brake", "with an open breaker", "all three"],
)
def test_a_complete_look_is_counted_whatever_was_decided_on_it(seen, wishes):
    assert counted(seen, wishes).scopes[EAST] == ScopeCensus(
        owned=1, orphans=1, would_terminate=1, oldest_orphan_seen_at=NOW
    )


@pytest.mark.parametrize(
    "trouble",
    [
        {"clock_step": timedelta(seconds=61)},
        {"late": True},
        {"coverage": (whole(EAST), whole(GCP), broken(WEST))},
        {"coverage": (whole(EAST), whole(GCP))},
        {"registry": None},
        {"registry": registry(identity=identity(deployment="prod-b"))},
        {"registry": registry(*(row(f"w-{n}", f"i-{n}") for n in (7, 8, 9)))},
        {"ledger_trouble": "disk full"},
    ],
    ids=["clock", "deadline", "listing", "a scope left out", "no registry", "another registry", "mismatch", "ledger"],
)
def test_a_look_with_a_bad_picture_counts_nothing(trouble):
    assert census(look([machine()], **trouble), policy()) is None


# ---------------------------------------------------------------- machines


def test_every_scope_that_was_listed_is_counted_on_its_own():
    fleet = [machine("i-1"), machine("i-2", worker="w-2"), machine("i-3", at=WEST, worker="w-3")]

    found = counted(look(fleet, [row("w-3", "i-3", at=WEST)]))

    assert {scope: (one.owned, one.orphans) for scope, one in found.scopes.items()} == {
        EAST: (2, 2),
        WEST: (1, 0),
        GCP: (0, 0),
    }
    assert (found.at, found.epoch) == (NOW, EPOCH)


def test_the_total_is_the_sum_and_the_oldest_of_all():
    known = {ref("i-1"): sighting(), ref("i-2", WEST): sighting(first_seen_at=NOW - 3 * HOUR)}
    seen = look(
        [machine("i-1"), machine("i-2", at=WEST)], [row("w-8", "i-8")], memory=memory(intent(None), sightings=known)
    )

    assert counted(seen).total == ScopeCensus(
        owned=2, orphans=2, would_terminate=1, terminating=1, missing=1, oldest_orphan_seen_at=NOW - 3 * HOUR
    )


def test_the_total_of_nothing_is_nothing():
    assert counted(look()).total == ScopeCensus()


@pytest.mark.parametrize("state", [state for state in InstanceState if state.exists])
def test_a_machine_that_exists_is_owned_in_whatever_state(state):
    assert (east(look([machine(state=state)])).owned, east(look([machine(state=state)])).orphans) == (1, 1)


@pytest.mark.parametrize("state", [InstanceState.TERMINATED, InstanceState.SHUTTING_DOWN])
def test_a_machine_that_is_gone_or_going_is_neither_owned_nor_an_orphan(state):
    assert east(look([machine(state=state)])) == ScopeCensus()


def test_a_machine_of_another_owner_is_not_counted():
    assert east(look([machine(owner="prod-b")])) == ScopeCensus()


def test_an_orphan_counts_whatever_holds_it():
    held = look([machine("i-1", protect=True), machine("i-2", managed_by="fleet:f"), machine("i-3", age=MINUTE)])

    assert (east(held).orphans, east(held).would_terminate) == (3, 0)


def test_a_tracked_or_doubtful_machine_is_no_orphan():
    seen = look([machine("i-1"), machine("i-2", worker="w-2")], [row("w-1", "i-1"), row("w-2", "i-9")])

    assert (east(seen).owned, east(seen).orphans, east(seen).oldest_orphan_seen_at) == (2, 0, None)


def test_every_reason_is_counted_the_unused_ones_with_0():
    held = counted(look([machine("i-1"), machine("i-2", protect=True)], [row("w-1", "i-1")])).held

    assert {reason: number for reason, number in held.items() if number} == {
        KeepReason.TRACKED: 1,
        KeepReason.PROTECT_TAG: 1,
    }
    assert list(held) == list(KeepReason)


def test_the_oldest_orphan_is_the_one_that_was_seen_first():
    known = {ref("i-1"): sighting(first_seen_at=NOW - 2 * HOUR), ref("i-2"): sighting(first_seen_at=NOW - 5 * HOUR)}
    fleet = [machine("i-1"), machine("i-2", worker="w-2"), machine("i-3", worker="w-3")]

    assert east(look(fleet, memory=Memory(sightings=known))).oldest_orphan_seen_at == NOW - 5 * HOUR


def test_the_age_of_a_tracked_machine_makes_no_orphan_older():
    known = {ref("i-1"): sighting(first_seen_at=NOW - 5 * HOUR)}
    seen = look([machine("i-1"), machine("i-2", worker="w-2")], [row("w-1", "i-1")], memory=Memory(sightings=known))

    assert east(seen).oldest_orphan_seen_at == NOW


# ---------------------------------------------------------------- requests


@pytest.mark.parametrize("outcome", [None, *OutcomeKind])
def test_a_machine_is_going_while_its_request_may_have_been_taken(outcome):
    maybe = {None, OutcomeKind.REQUESTED, OutcomeKind.UNKNOWN, OutcomeKind.ALREADY_GONE}

    assert east(look([machine()], memory=memory(intent(outcome)))).terminating == int(outcome in maybe)


def test_a_machine_that_this_look_proves_gone_is_not_going_any_more():
    asked = memory(intent(OutcomeKind.REQUESTED))

    assert east(look(memory=asked, located={ref(): Gone()})).terminating == 0


@pytest.mark.parametrize("found", [There(InstanceState.RUNNING), NotKnown("throttled")], ids=repr)
def test_a_machine_that_is_only_not_listed_is_going_still(found):
    asked = memory(intent(OutcomeKind.REQUESTED))

    assert east(look(memory=asked, located={ref(): found})).terminating == 1


@pytest.mark.parametrize("state", [InstanceState.SHUTTING_DOWN, InstanceState.RUNNING])
def test_a_machine_that_was_asked_to_go_and_is_still_listed_is_going(state):
    assert east(look([machine(state=state)], memory=memory(intent(OutcomeKind.REQUESTED)))).terminating == 1


def test_what_this_pass_asked_for_is_going():
    asked = [Outcome(ref=ref(f"i-{kind}"), kind=kind) for kind in OutcomeKind]

    assert east(look([machine()]), *asked).terminating == 3


@pytest.mark.parametrize("kind", OutcomeKind)
def test_an_answer_of_this_pass_comes_after_an_earlier_one(kind):
    retry = look([machine()], memory=memory(intent(OutcomeKind.REQUESTED, HOUR)))
    answered = {OutcomeKind.PROTECTED, OutcomeKind.DENIED, OutcomeKind.INVALID_ID, OutcomeKind.FAILED}

    still = kind not in {*answered, OutcomeKind.CONFIRMED_GONE}
    assert east(retry, Outcome(ref=ref(), kind=kind)).terminating == int(still)


def test_a_request_in_a_place_that_is_not_looked_at_any_more_is_not_counted():
    elsewhere = intent(OutcomeKind.REQUESTED, of=ref("i-1", Scope("aws", "dropped-1")))

    found = counted(look([machine("i-2")], memory=memory(elsewhere)))

    assert set(found.scopes) == set(SCOPES)
    assert found.total.terminating == 0


# ---------------------------------------------------------------- rows


def test_rows_are_counted_by_their_state_the_unused_states_with_0():
    rows = [row("w-1", "i-1"), row("w-2", "i-2"), row("w-3", None, state=WorkerState.FAILED)]

    workers = counted(look([machine("i-1"), machine("i-2", worker="w-2")], rows)).workers

    assert {state: number for state, number in workers.items() if number} == {
        WorkerState.RUNNING: 2,
        WorkerState.FAILED: 1,
    }
    assert list(workers) == list(WorkerState)


def test_a_missing_worker_counts_where_its_row_says_that_it_is():
    found = counted(look([machine("i-1")], [row("w-1", "i-1"), row("w-2", "i-2"), row("w-3", "i-3", at=WEST)]))

    assert {scope: one.missing for scope, one in found.scopes.items()} == {EAST: 1, WEST: 1, GCP: 0}


# ---------------------------------------------------------------- the audit


AUDIT = AuditPolicy(deployment=DEPLOYMENT, tags=TagKeys(), max_age=24 * HOUR)


def stranger(
    instance_id: str = "i-9", *, at: Scope = EAST, age: timedelta | None = 25 * HOUR, **other
) -> AuditedInstance:
    launched = None if age is None else NOW - age
    facts = {"state": InstanceState.RUNNING, "launched_at": launched}
    return AuditedInstance(ref=ref(instance_id, at), **(facts | other))


def swept(*machines: AuditedInstance, **other) -> AuditReport:
    facts = {
        "pass_id": "p",
        "started_at": NOW,
        "finished_at": NOW + MINUTE,
        "outcome": PassOutcome.COMPLETE,
        "reason": None,
        "coverage": tuple(whole(scope) for scope in SCOPES),
        "findings": find_leaks(machines, AUDIT, NOW),
    }
    return AuditReport(**(facts | other))


def test_leaks_are_counted_where_they_are_with_their_earliest_start():
    sweep = swept(stranger("i-1"), stranger("i-2", age=30 * HOUR), stranger("i-3", at=WEST))

    found = count_leaks(sweep)

    assert {scope: (one.running, one.oldest_start) for scope, one in found.items()} == {
        EAST: (2, NOW - 30 * HOUR),
        WEST: (1, NOW - 25 * HOUR),
        GCP: (0, None),
    }


def test_a_machine_of_unknown_age_is_no_leak():
    assert count_leaks(swept(stranger(age=None)))[EAST] == LeakCensus()


def test_a_stopped_leak_is_counted_for_itself_and_costs_no_hours():
    stopped = stranger(age=99 * HOUR, state=InstanceState.STOPPED, cost_per_hour_usd=9.0)

    assert count_leaks(swept(stopped))[EAST] == LeakCensus(stopped=1)


def test_our_own_machines_where_the_reaper_does_not_look_are_counted():
    findings = find_leaks([stranger(owner=DEPLOYMENT)], replace(AUDIT, scopes=frozenset({WEST})), NOW)

    assert count_leaks(swept(findings=findings))[EAST] == LeakCensus(out_of_scope=1)


def test_under_a_clock_that_cannot_be_believed_nothing_is_counted():
    assert count_leaks(swept(stranger(), outcome=PassOutcome.REFUSED, reason="clock")) == {}


def test_of_a_scope_that_failed_nothing_is_said():
    sweep = swept(stranger(), coverage=(whole(EAST), broken(WEST)))

    assert set(count_leaks(sweep)) == {EAST}


@pytest.mark.parametrize(
    ("prices", "total"),
    [((), 0.0), ((1.5, 2.0), 3.5), ((1.5, None), 1.5), ((None, None), None), ((0.0,), 0.0)],
    ids=["no leak", "known", "one unknown", "all unknown", "free"],
)
def test_the_cost_is_that_of_the_leaks_whose_price_is_known(prices, total):
    machines = [stranger(f"i-{n}", cost_per_hour_usd=price) for n, price in enumerate(prices)]

    assert count_leaks(swept(*machines))[EAST].cost_per_hour_usd == total


def test_a_near_miss_counts_old_or_young():
    almost = {"reaperd:Owner": DEPLOYMENT}

    found = count_leaks(swept(stranger("i-1", tags=almost), stranger("i-2", at=WEST, age=MINUTE, tags=almost)))

    assert {scope: one.near_misses for scope, one in found.items()} == {EAST: 1, WEST: 1, GCP: 0}
