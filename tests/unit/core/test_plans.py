"""What has become of the machines of a recorded plan, by the newest that is known of each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from providers.model import InstanceState
from reaperd.core.history import ToldOutcome, ToldPass, ToldVerdict
from reaperd.core.model import OutcomeKind, SparedReason
from reaperd.core.plans import Became, Fate, RecordedPlan, Request
from tests.support.worlds import EAST, MINUTE, NOW, WEST, ref

REF, OTHER = ref("i-1"), ref("i-2")
LATER = NOW + MINUTE
RUNNING = InstanceState.RUNNING


def verdict(at: Any = REF, name: str = "terminate/unregistered") -> ToldVerdict:
    return ToldVerdict(
        ref=at,
        worker_id="w-1",
        state="running",
        name=name,
        age_seconds=7200,
        confirmations=3,
        confirmations_needed=3,
    )


PASS = ToldPass(
    at=NOW,
    finished_at=NOW,
    pass_id="p-1",
    kind="reconcile",
    mode="enforce",
    outcome="refused",
    reason="breaker_open",
    verdicts=(verdict(), verdict(OTHER), verdict(ref("i-3"), "keep/tracked")),
)
PLAN = RecordedPlan(
    digest="sha256:d",
    told=PASS,
    looked_at=NOW,
    scopes=frozenset({EAST}),
    listed={REF: RUNNING, OTHER: RUNNING},
    verdicts={REF: "terminate/unregistered", OTHER: "terminate/unregistered"},
)


def seen_later(**facts: Any) -> RecordedPlan:
    return replace(PLAN, looked_at=LATER, **facts)


def request(outcome: OutcomeKind | None, closed_as: OutcomeKind | None = None) -> Request:
    closed_at = None if closed_as is None else LATER
    return Request(requested_at=NOW, outcome=outcome, closed_as=closed_as, closed_at=closed_at)


def spared(reason: str, kind: OutcomeKind = OutcomeKind.SPARED) -> ToldOutcome:
    return ToldOutcome(ref=REF, kind=str(kind), reason=reason, error_code=None, detail="")


def test_only_what_the_plan_would_end_is_a_machine_of_it():
    assert [machine.ref for machine in PLAN.machines] == [REF, OTHER]


def test_a_plan_after_which_nothing_was_seen_is_to_go_whole():
    assert PLAN.to_go == (REF, OTHER)
    assert not PLAN.looked_since
    assert replace(PLAN, looked_at=None, scopes=frozenset(), listed={}, verdicts={}).to_go == (REF, OTHER)


def test_what_a_later_look_would_end_for_another_reason_is_to_go_too():
    plan = seen_later(verdicts={REF: "terminate/retired", OTHER: "terminate/unregistered"})

    assert plan.looked_since
    assert plan.to_go == (REF, OTHER)


@pytest.mark.parametrize(
    ("facts", "became"),
    [
        ({"verdicts": {REF: "keep/tracked"}}, Became(fate=Fate.TRACKED, at=LATER)),
        ({"verdicts": {REF: "keep/protect_tag"}}, Became(fate=Fate.KEPT, at=LATER, why="protect_tag")),
        ({"verdicts": {REF: "keep/unconfirmed"}}, Became(fate=Fate.KEPT, at=LATER, why="unconfirmed")),
        ({"listed": {REF: InstanceState.TERMINATED}}, Became(fate=Fate.GONE, at=LATER)),
        ({"listed": {}}, Became(fate=Fate.NOT_LISTED, at=LATER, why="it is gone, or it lost our tag")),
        (
            {"listed": {}, "scopes": frozenset({WEST})},
            Became(fate=Fate.KEPT, at=LATER, why="its scope is not looked at any more"),
        ),
    ],
    ids=["tracked", "held", "counted anew", "listed as gone", "not listed", "not looked at"],
)
def test_a_later_look_says_what_became_of_a_machine(facts: dict[str, Any], became: Became):
    assert seen_later(**facts).became(REF) == became
    # The plan's own look is what it was made of, and no news.
    assert replace(PLAN, **facts).became(REF) == Became(fate=Fate.TO_GO)


@pytest.mark.parametrize(
    ("outcome", "became"),
    [
        (OutcomeKind.REQUESTED, Became(fate=Fate.REQUESTED, at=NOW)),
        (OutcomeKind.UNKNOWN, Became(fate=Fate.REQUESTED, at=NOW, why="unknown")),
        (None, Became(fate=Fate.REQUESTED, at=NOW, why="unknown")),
        (OutcomeKind.ALREADY_GONE, Became(fate=Fate.REQUESTED, at=NOW, why="already_gone")),
        (OutcomeKind.DENIED, Became(fate=Fate.KEPT, at=NOW, why="denied")),
        (OutcomeKind.PROTECTED, Became(fate=Fate.KEPT, at=NOW, why="protected")),
        (OutcomeKind.INVALID_ID, Became(fate=Fate.KEPT, at=NOW, why="invalid_id")),
        (OutcomeKind.FAILED, Became(fate=Fate.KEPT, at=NOW, why="failed")),
    ],
)
def test_an_open_request_says_what_became_of_a_machine(outcome: OutcomeKind | None, became: Became):
    asked = {REF: request(outcome)}

    assert replace(PLAN, requests=asked).became(REF) == became
    assert seen_later(requests=asked, verdicts={REF: "keep/already_requested"}).became(REF) == became
    # Not listed alone is no proof of its end once that was asked for.
    assert seen_later(requests=asked, listed={}).became(REF) == became


@pytest.mark.parametrize(
    ("facts", "fate"),
    [({"verdicts": {REF: "keep/tracked"}}, Fate.TRACKED), ({"listed": {REF: InstanceState.TERMINATED}}, Fate.GONE)],
)
def test_a_later_look_at_the_machine_itself_counts_more_than_an_answer(facts: dict[str, Any], fate: Fate):
    plan = seen_later(requests={REF: request(OutcomeKind.REQUESTED)}, **facts)

    assert plan.became(REF).fate is fate


def test_a_confirmed_end_counts_more_than_everything():
    plan = seen_later(requests={REF: request(OutcomeKind.REQUESTED, OutcomeKind.CONFIRMED_GONE)}, listed={})

    assert plan.became(REF) == Became(fate=Fate.GONE, at=LATER)


@pytest.mark.parametrize("closed_as", [OutcomeKind.SPARED, OutcomeKind.DEFERRED])
def test_a_request_that_was_not_accepted_says_nothing(closed_as: OutcomeKind):
    asked = {REF: request(closed_as, closed_as)}

    assert replace(PLAN, requests=asked).became(REF).fate is Fate.TO_GO
    assert seen_later(requests=asked, listed={}).became(REF).fate is Fate.NOT_LISTED


@pytest.mark.parametrize(
    ("outcome", "fate"),
    [
        (spared(SparedReason.TRACKED_NOW), Fate.TRACKED),
        (spared(SparedReason.CHANGED), Fate.KEPT),
        (spared(SparedReason.REAP_HOLD), Fate.TO_GO),
        (spared(SparedReason.STOPPING), Fate.TO_GO),
        (spared("throttled", OutcomeKind.DEFERRED), Fate.TO_GO),
        (spared("", OutcomeKind.WOULD_TERMINATE), Fate.TO_GO),
    ],
)
def test_what_the_door_found_at_the_last_moment_counts(outcome: ToldOutcome, fate: Fate):
    assert replace(PLAN, outcomes={REF: outcome}).became(REF).fate is fate
    assert seen_later(outcomes={REF: outcome}).became(REF).fate is fate


def test_each_machine_has_a_fate_of_its_own():
    plan = seen_later(verdicts={REF: "keep/tracked", OTHER: "terminate/unregistered"})

    assert plan.to_go == (OTHER,)
