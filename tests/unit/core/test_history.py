"""Values of the past: what was asked for, and runs of passes that said the same."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from providers.model import InstanceRef
from reaperd.core.history import (
    EntryKind,
    Event,
    EventKind,
    Finding,
    Told,
    ToldAct,
    ToldAnnouncement,
    ToldFinding,
    ToldOutcome,
    ToldPass,
    ToldVerdict,
    Wanted,
    events,
    in_runs,
    newest_announcement,
)
from tests.support.worlds import EAST, MINUTE, NOW, WEST, ref

REF = ref("i-1")
OTHER = ref("i-2", WEST)


def verdict(name: str = "keep/launch_grace", *, of: InstanceRef = REF, age: int | None = 90) -> ToldVerdict:
    return ToldVerdict(
        ref=of,
        worker_id="w-1",
        state="running",
        name=name,
        age_seconds=age,
        confirmations=1,
        confirmations_needed=3,
    )


def outcome(
    kind: str = "requested", *, of: InstanceRef = REF, reason: str | None = None, code: str | None = None
) -> ToldOutcome:
    return ToldOutcome(ref=of, kind=kind, reason=reason, error_code=code, detail="")


def told(minutes: int = 0, *, verdicts: tuple[ToldVerdict, ...] = (), **other: object) -> ToldPass:
    at = NOW + minutes * MINUTE
    made = ToldPass(
        at=at,
        finished_at=at + timedelta(seconds=2),
        pass_id=f"p-{minutes}",
        kind="reconcile",
        mode="enforce",
        outcome="complete",
        reason=None,
        scopes=frozenset({str(EAST), str(WEST)}),
        verdicts=verdicts,
    )
    return replace(made, **other)


def act(minutes: int = 0, name: str = "hold") -> ToldAct:
    return ToldAct(at=NOW + minutes * MINUTE, act=name, by="ann@x", reason="deploy", data={})


# ---------------------------------------------------------------- runs


def test_passes_in_a_row_that_said_the_same_are_told_once_with_the_newest_in_front():
    newest_first = [told(3), told(2), told(1)]

    assert list(in_runs(newest_first)) == [replace(told(3), passes=3, since=NOW + MINUTE)]


def found(of: InstanceRef = REF, finding: Finding = Finding.LEAK, age: int = 90_000) -> ToldFinding:
    return ToldFinding(ref=of, finding=finding, name="w", instance_type=None, age_seconds=age)


def test_sweeps_between_passes_end_no_row_of_passes_and_have_their_own():
    newest_first = [
        told(6),
        told(5, kind="audit", leaks=1, findings=(found(age=2),)),
        told(4),
        told(3, kind="audit", leaks=1, findings=(found(age=1),)),
        told(2, kind="audit"),
        told(1),
    ]

    runs = [(run.pass_id, run.passes) for run in in_runs(newest_first) if isinstance(run, ToldPass)]

    assert runs == [("p-6", 3), ("p-5", 2), ("p-2", 1)]


def test_what_ended_is_told_in_the_order_of_its_newest():
    newest_first = [
        told(9),
        told(8, kind="audit", leaks=2),
        told(7, kind="audit", leaks=1),
        told(6, outcome="refused"),
        act(5),
        told(4, kind="audit", leaks=1),
        told(3, outcome="refused"),
    ]

    assert [(run.at - NOW) // MINUTE for run in in_runs(newest_first)] == [9, 8, 7, 6, 5, 4, 3]


def test_a_sweep_that_found_something_else_begins_a_row():
    other = (found(OTHER), found(finding=Finding.NEAR_MISS))

    for findings in ((each,) for each in other):
        sweeps = [
            told(2, kind="audit", leaks=1, findings=findings),
            told(1, kind="audit", leaks=1, findings=(found(),)),
        ]
        assert len(list(in_runs(sweeps))) == 2
    assert len(list(in_runs([told(2, kind="audit", leaks=60), told(1, kind="audit", leaks=61)]))) == 2


def test_a_sweep_is_found_by_its_machines_and_narrowed_to_them():
    sweep = told(kind="audit", leaks=2, findings=(found(), found(OTHER)))

    assert Wanted(machines=frozenset({"i-2"})).wants(sweep)
    assert not Wanted(machines=frozenset({"i-3"})).wants(sweep)
    assert Wanted(machines=frozenset({"i-2"})).narrowed(sweep).findings == (found(OTHER),)
    assert Wanted(scopes=frozenset({str(EAST)})).narrowed(sweep).findings == (found(),)


def test_ages_and_other_figures_make_no_difference():
    newest_first = [
        told(2, verdicts=(verdict("terminate/unregistered", age=900),), detail="2 s"),
        told(1, verdicts=(verdict("terminate/unregistered", age=840),), detail="1 s"),
    ]

    assert [run.passes for run in in_runs(newest_first) if isinstance(run, ToldPass)] == [2]


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "audit"},
        {"mode": "dry-run"},
        {"outcome": "refused"},
        {"reason": "clock"},
        {"also": ("clock",)},
        {"verdicts": (verdict(),)},
        {"verdicts": (verdict("keep/tracked"),)},
        {"verdicts": (verdict(of=OTHER),)},
        {"outcomes": (outcome(),)},
        {"outcomes": (outcome("failed"),)},
        {"outcomes": (outcome("failed", code="Throttling"),)},
        {"outcomes": (outcome(of=OTHER),)},
    ],
)
def test_whatever_else_differs_begins_another_run(change: dict[str, object]):
    assert len(list(in_runs([told(2, **change), told(1)]))) == 2


def test_an_act_stands_in_its_place_and_ends_a_run():
    newest_first: list[Told] = [told(4), told(3), act(2), told(1), told(0)]

    found = list(in_runs(newest_first))

    assert found == [
        replace(told(4), passes=2, since=NOW + 3 * MINUTE),
        act(2),
        replace(told(1), passes=2, since=NOW),
    ]


def test_the_runs_of_nothing_are_nothing():
    assert list(in_runs([])) == []
    assert list(in_runs([act()])) == [act()]


# ---------------------------------------------------------------- what was asked for

A_PASS = told(
    verdicts=(verdict("terminate/unregistered"), verdict("keep/tracked", of=OTHER)),
    outcomes=(outcome("failed", reason="spot_request_not_cancelled"),),
    outcome="refused",
    reason="breaker_open",
    also=("clock",),
)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (Wanted(), True),
        (Wanted(outcomes=frozenset({"refused"})), True),
        (Wanted(outcomes=frozenset({"complete", "failed"})), True),
        (Wanted(outcomes=frozenset({"complete"})), False),
        (Wanted(reasons=frozenset({"breaker_open"})), True),
        (Wanted(reasons=frozenset({"clock"})), True),
        (Wanted(reasons=frozenset({"tracked"})), True),
        (Wanted(reasons=frozenset({"spot_request_not_cancelled"})), True),
        (Wanted(reasons=frozenset({"retired"})), False),
        (Wanted(machines=frozenset({"i-1"})), True),
        (Wanted(machines=frozenset({"w-1"})), True),
        (Wanted(machines=frozenset({"aws/eu-west-1/i-2"})), True),
        (Wanted(machines=frozenset({"aws/us-east-1/i-2"})), False),
        (Wanted(scopes=frozenset({"aws"})), True),
        (Wanted(scopes=frozenset({"aws/eu-west-1"})), True),
        (Wanted(scopes=frozenset({"aws/eu-west"})), False),
        (Wanted(outcomes=frozenset({"refused"}), machines=frozenset({"i-9"})), False),
    ],
)
def test_a_pass_is_found_by_what_it_says(wanted: Wanted, found: bool):
    assert wanted.wants(A_PASS) is found


def test_a_pass_is_narrowed_to_the_machines_that_were_asked_for():
    narrowed = Wanted(machines=frozenset({"i-2"})).narrowed(A_PASS)

    assert narrowed == replace(A_PASS, verdicts=A_PASS.verdicts[1:], outcomes=())


def test_the_outcome_of_a_machine_is_found_by_its_worker():
    told_of = told(verdicts=(verdict("terminate/unregistered"),), outcomes=(outcome(), outcome(of=OTHER)))

    narrowed = Wanted(machines=frozenset({"w-1"})).narrowed(told_of)

    assert narrowed.outcomes == (outcome(),)


def test_a_pass_is_narrowed_to_the_scopes_that_were_asked_for():
    narrowed = Wanted(scopes=frozenset({"aws/eu-west-1"})).narrowed(A_PASS)

    assert narrowed == replace(A_PASS, verdicts=A_PASS.verdicts[1:], outcomes=())


def test_without_machines_and_scopes_a_pass_stays_whole():
    assert Wanted(outcomes=frozenset({"refused"})).narrowed(A_PASS) == A_PASS


@pytest.mark.parametrize(
    ("wanted", "acts", "passes"),
    [
        (Wanted(), True, True),
        (Wanted(since=NOW, until=NOW), True, True),
        (Wanted(machines=frozenset({"i-1"})), True, True),
        (Wanted(kinds=frozenset({EntryKind.ACT})), True, False),
        (Wanted(kinds=frozenset({EntryKind.RECONCILE})), False, True),
        (Wanted(kinds=frozenset({EntryKind.RECONCILE, EntryKind.ACT})), True, True),
        (Wanted(outcomes=frozenset({"refused"})), False, True),
        (Wanted(reasons=frozenset({"clock"})), False, True),
        (Wanted(scopes=frozenset({"aws"})), False, True),
        (Wanted(pass_id="0f3c"), False, True),
    ],
)
def test_acts_are_left_out_where_something_was_asked_that_only_a_pass_has(wanted: Wanted, acts: bool, passes: bool):
    assert (wanted.acts, wanted.passes) == (acts, passes)


# ---------------------------------------------------------------- one machine


def test_each_change_of_verdict_is_an_event_with_the_pass_that_made_it():
    passes = [
        told(0, verdicts=(verdict("keep/launch_grace"), verdict("keep/tracked", of=OTHER))),
        told(1, verdicts=(verdict("terminate/unregistered"),)),
        told(2, verdicts=(verdict("terminate/unregistered"),)),
        told(3, verdicts=(verdict("keep/tracked"),)),
    ]

    happened = list(events(REF, passes))

    assert [(event.name, event.pass_id) for event in happened] == [
        ("keep/launch_grace", "p-0"),
        ("terminate/unregistered", "p-1"),
        ("keep/tracked", "p-3"),
    ]
    assert happened[0] == Event(
        at=NOW, kind=EventKind.VERDICT, name="keep/launch_grace", mode="enforce", pass_id="p-0", verdict=verdict()
    )


def test_what_became_of_a_termination_is_an_event_and_a_rehearsal_is_none():
    passes = [
        told(0, outcomes=(outcome("would_terminate"),)),
        told(1, outcomes=(outcome("denied", code="UnauthorizedOperation"), outcome(of=OTHER))),
        told(2, outcomes=(outcome("confirmed_gone"),)),
    ]

    happened = list(events(REF, passes))

    assert [(event.kind, event.name, event.detail) for event in happened] == [
        (EventKind.OUTCOME, "denied", "UnauthorizedOperation"),
        (EventKind.OUTCOME, "confirmed_gone", ""),
    ]


def heard(code: str = "marked-for-termination", *, of: InstanceRef = REF, ends: bool = True) -> ToldAnnouncement:
    return ToldAnnouncement(ref=of, code=code, ends=ends, at=NOW + 2 * MINUTE if ends else None)


def sweep(minutes: int, *announcements: ToldAnnouncement) -> ToldPass:
    return told(minutes, kind="audit", mode="", announcements=announcements)


def test_what_a_cloud_announces_is_an_event_once_until_it_is_something_else():
    sweeps = [
        sweep(0, heard(), heard(of=OTHER)),
        sweep(1, heard()),
        sweep(2, heard("instance-terminated-no-capacity")),
        sweep(3, heard("marked-for-stop", of=OTHER, ends=False)),
    ]

    happened = list(events(REF, sweeps))

    assert [(event.kind, event.name, event.mode, event.pass_id) for event in happened] == [
        (EventKind.ANNOUNCED, "marked-for-termination", None, "p-0"),
        (EventKind.ANNOUNCED, "instance-terminated-no-capacity", None, "p-2"),
    ]
    assert happened[0].detail == "the cloud ends it at about 2026-01-10 12:02 UTC"
    assert [event.detail for event in events(OTHER, sweeps)][-1] == "the cloud stops it"


def test_the_newest_announcement_says_when_it_was_heard_last():
    sweeps = [sweep(0, heard()), act(1), sweep(2, heard()), sweep(3, heard(of=OTHER))]

    assert newest_announcement(REF, sweeps) == (heard(), NOW + 2 * MINUTE)
    assert newest_announcement(ref("i-9"), sweeps) == (None, None)


def test_a_sweep_is_found_by_what_it_heard_and_narrowed_to_it():
    told_of = sweep(0, heard(), heard(of=OTHER))

    assert Wanted(machines=frozenset({"i-2"})).wants(told_of)
    assert Wanted(machines=frozenset({"i-2"})).narrowed(told_of) == sweep(0, heard(of=OTHER))
    assert Wanted(scopes=frozenset({str(EAST)})).narrowed(told_of) == sweep(0, heard())


def test_sweeps_that_heard_something_else_are_told_apart():
    assert len(list(in_runs([sweep(2, heard()), sweep(1, heard())]))) == 1
    assert len(list(in_runs([sweep(2, heard()), sweep(1, heard("marked-for-stop"))]))) == 2


def test_an_approval_is_an_event_with_who_and_why():
    silent = replace(act(1, "approve"), reason="")

    happened = list(events(REF, [act(0, "approve"), silent]))

    assert [(event.kind, event.name, event.detail) for event in happened] == [
        (EventKind.ACT, "approve", "by ann@x: deploy"),
        (EventKind.ACT, "approve", "by ann@x"),
    ]
