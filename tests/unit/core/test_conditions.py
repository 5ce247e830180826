"""What deserves a person's attention: each cause with its key, its severity and its evidence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

import pytest

from alerts.model import Cause, Condition, Severity
from providers.locations import Gone, Location, NotKnown, OnlyListed, There
from providers.model import InstanceState, Scope, ScopeFailure
from reaperd.core.conditions import conditions, missing, with_stop
from reaperd.core.model import (
    Brake,
    BreakerLimits,
    DeferReason,
    Memory,
    Observation,
    Outcome,
    OutcomeKind,
    ReapPolicy,
    RegistryTrouble,
)
from reaperd.core.reap import decide
from registry.model import WorkerState
from tests.support.worlds import (
    DEPLOYMENT,
    EAST,
    GCP,
    HOUR,
    MINUTE,
    NOW,
    SECOND,
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
KEY = "aws/us-east-1/i-1"


def told(
    seen: Observation, wishes: ReapPolicy | None = None, outcomes: Iterable[Outcome] = ()
) -> tuple[Condition, ...]:
    wishes = wishes or policy()
    return conditions(seen, wishes, decide(seen, wishes), outcomes)


def keys(*args: object, **kwargs: object) -> list[str]:
    return [condition.key for condition in told(*args, **kwargs)]  # type: ignore[arg-type]


def only(*args: object, **kwargs: object) -> Condition:
    found = told(*args, **kwargs)  # type: ignore[arg-type]
    assert len(found) == 1
    return found[0]


def facts(condition: Condition) -> tuple[str, str, dict[str, object]]:
    return condition.key, str(condition.severity), dict(condition.data)


def test_a_quiet_world_deserves_no_attention():
    assert told(look([machine()], [row()])) == ()


def test_an_orphan_that_goes_deserves_none_either():
    assert told(look([machine()])) == ()


# ---------------------------------------------------------------- holds that a person must end


NOTHING_MORE = {"worker_id": "w-1", "detail": ""}


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (look([machine(foreign_account=True)]), (f"foreign_account/{KEY}", "critical", NOTHING_MORE)),
        (look([machine(registry_id="r-2")]), (f"foreign_registry/{KEY}", "critical", NOTHING_MORE)),
        (
            look([machine()], [row("w-1", "i-2", at=WEST)]),
            (
                f"ambiguous_worker/{KEY}",
                "warning",
                {"worker_id": "w-1", "detail": "row w-1 names aws/eu-west-1/i-2"},
            ),
        ),
        (look([machine(protect=True)]), (f"protected_orphan/{KEY}", "warning", NOTHING_MORE)),
        (
            look([machine(managed_by="autoscaling:workers-asg")]),
            (
                f"managed_orphan/{KEY}",
                "warning",
                {**NOTHING_MORE, "manager": "autoscaling", "group": "workers-asg"},
            ),
        ),
        (
            look([machine()], memory=memory(intent(OutcomeKind.PROTECTED))),
            (f"termination_protected/{KEY}", "warning", NOTHING_MORE),
        ),
        (
            look([machine()], memory=memory(intent(OutcomeKind.DENIED))),
            (f"termination_denied/{KEY}", "warning", NOTHING_MORE),
        ),
        (
            look([machine()], memory=memory(intent(OutcomeKind.INVALID_ID))),
            (f"invalid_id/{KEY}", "warning", NOTHING_MORE),
        ),
        (
            look([machine()], memory=memory(intent(OutcomeKind.FAILED))),
            (f"termination_failed/{KEY}", "warning", NOTHING_MORE),
        ),
    ],
    ids=lambda each: each[0].partition("/")[0] if isinstance(each, tuple) else "seen",
)
def test_a_hold_that_a_person_must_end_is_told_with_its_evidence(seen, expected):
    assert facts(only(seen)) == expected


@pytest.mark.parametrize("fact", [{"protect": True}, {"managed_by": "autoscaling:workers"}], ids=["protect", "managed"])
def test_a_tag_on_a_machine_that_would_not_go_anyway_is_told_to_nobody(fact):
    assert told(look([machine(**fact)], [row()])) == ()
    assert told(look([machine(age=MINUTE, **fact)])) == ()
    assert told(look([machine(**fact)]), policy(confirm_passes=2)) == ()


@pytest.mark.parametrize(
    ("seen", "wishes"),
    [
        (look([machine(state=InstanceState.SHUTTING_DOWN)]), policy()),
        (look([machine()]), policy(never=frozenset({"i-1"}))),
        (look([machine(age=MINUTE)]), policy()),
        (look([machine()]), policy(confirm_passes=2)),
        (look([machine()], memory=memory(intent(OutcomeKind.REQUESTED))), policy()),
    ],
    ids=["in_transition", "never_list", "launch_grace", "unconfirmed", "already_requested"],
)
def test_a_hold_that_ends_by_itself_or_was_wished_is_told_to_nobody(seen, wishes):
    assert told(seen, wishes) == ()


# ---------------------------------------------------------------- the row that vanished


def vanished(confirmations: int) -> Observation:
    counted = NOW - MINUTE if confirmations else None
    known = sighting(tracked_at=NOW - HOUR, confirmations=confirmations, counted_at=counted)
    return look([machine()], memory=Memory(sightings={ref(): known}))


def test_a_vanished_row_is_told_once_it_is_confirmed():
    assert facts(only(vanished(2), policy(confirm_passes=3))) == (f"row_vanished/{KEY}", "warning", NOTHING_MORE)
    assert told(vanished(1), policy(confirm_passes=3)) == ()


def test_a_vanished_row_that_is_taken_as_confirmed_is_not_told():
    assert told(vanished(0), policy(confirm_passes=3, confirmation_given=True)) == ()


# ---------------------------------------------------------------- stuck terminations


ASKED = [None, OutcomeKind.REQUESTED, OutcomeKind.UNKNOWN, OutcomeKind.ALREADY_GONE]


def stuck(outcome: OutcomeKind | None, first: timedelta, **fact: object) -> Observation:
    asked = intent(outcome, SECOND, first_requested_at=NOW - first)
    return look([machine(**fact)], memory=memory(asked))


@pytest.mark.parametrize("outcome", ASKED, ids=str)
def test_a_termination_is_stuck_after_the_time_for_it(outcome):
    assert told(stuck(outcome, 30 * MINUTE - SECOND)) == ()

    since = (NOW - 30 * MINUTE).isoformat()
    found = only(stuck(outcome, 30 * MINUTE))
    assert facts(found) == (f"termination_stuck/{KEY}", "warning", {"requested_at": since})


@pytest.mark.parametrize("outcome", [each for each in OutcomeKind if each not in ASKED], ids=str)
def test_a_termination_that_was_not_accepted_is_not_stuck(outcome):
    assert f"termination_stuck/{KEY}" not in keys(stuck(outcome, 5 * HOUR))


def test_a_machine_that_takes_long_to_go_is_stuck_too():
    going = stuck(OutcomeKind.REQUESTED, HOUR, state=InstanceState.SHUTTING_DOWN)

    assert keys(going) == [f"termination_stuck/{KEY}"]


def unseen(found: Location, first: timedelta, outcome: OutcomeKind | None = OutcomeKind.REQUESTED) -> Observation:
    """Return a look that does not list what was asked to end."""
    asked = intent(outcome, SECOND, first_requested_at=NOW - first)
    return look([], memory=memory(asked), located={ref(): found})


@pytest.mark.parametrize("owner", [None, "prod-b"])
@pytest.mark.parametrize("outcome", ASKED, ids=str)
def test_a_machine_that_lost_our_tag_and_runs_on_is_told_at_once(outcome, owner):
    found = only(unseen(There(InstanceState.RUNNING, owner), MINUTE, outcome))

    assert facts(found) == (
        f"termination_stuck/{KEY}",
        "warning",
        {
            "requested_at": (NOW - MINUTE).isoformat(),
            "state": "running",
            "owner": owner,
            "detail": "it does not carry our tag, so it is not asked again",
        },
    )


def test_so_is_one_that_is_listed_under_another_name():
    asked = memory(intent(OutcomeKind.REQUESTED))

    (condition,) = told(look([machine(owner="prod-b")], memory=asked))

    assert (condition.key, condition.data["owner"]) == (f"termination_stuck/{KEY}", "prod-b")


SLOW = {
    There(InstanceState.SHUTTING_DOWN): "it does not carry our tag, so it is not asked again",
    There(InstanceState.RUNNING, DEPLOYMENT): "it is there and not listed",
    NotKnown("no answer in time"): "not listed, and not proved to be gone: no answer in time",
}


@pytest.mark.parametrize(("found", "detail"), SLOW.items(), ids=map(repr, SLOW))
def test_what_may_be_gone_soon_is_told_once_it_is_stuck(found, detail):
    assert told(unseen(found, 30 * MINUTE - SECOND)) == ()
    assert only(unseen(found, 30 * MINUTE)).data["detail"] == detail


@pytest.mark.parametrize("found", [Gone(), OnlyListed()], ids=repr)
def test_what_is_gone_is_not_told(found):
    assert told(unseen(found, 5 * HOUR)) == ()


@pytest.mark.parametrize("outcome", [each for each in OutcomeKind if each not in ASKED], ids=str)
def test_a_machine_that_was_given_away_after_a_refusal_is_not_ours_to_tell_of(outcome):
    assert told(unseen(There(InstanceState.RUNNING), 5 * HOUR, outcome)) == ()


def test_it_is_told_under_the_brake_and_with_an_open_breaker_too():
    braked = unseen(There(InstanceState.RUNNING), MINUTE)
    braked = replace(braked, memory=replace(braked.memory, brake=BRAKE))
    open_breaker = replace(unseen(There(InstanceState.RUNNING), MINUTE), instances=(machine("i-2", worker="w-2"),))

    assert f"termination_stuck/{KEY}" in keys(braked)
    assert f"termination_stuck/{KEY}" in keys(open_breaker, policy(breaker=BreakerLimits(max_per_pass=0)))


def test_on_a_picture_that_is_not_good_it_is_not_told():
    nowhere = replace(unseen(There(InstanceState.RUNNING), 5 * HOUR), registry=RegistryTrouble(detail="locked"))

    assert keys(nowhere) == ["registry_unusable"]


# ---------------------------------------------------------------- what the cloud answers


ANSWERS = {
    OutcomeKind.PROTECTED: "termination_protected",
    OutcomeKind.DENIED: "termination_denied",
    OutcomeKind.INVALID_ID: "invalid_id",
    OutcomeKind.FAILED: "termination_failed",
}


@pytest.mark.parametrize(("kind", "cause"), ANSWERS.items(), ids=str)
def test_a_bad_answer_is_told_at_once_with_its_code(kind, cause):
    outcome = Outcome(ref=ref(), kind=kind, error_code="SomeCode", detail="some words")

    found = only(look([machine()]), outcomes=[outcome])

    assert facts(found) == (f"{cause}/{KEY}", "warning", {"error_code": "SomeCode", "detail": "some words"})


@pytest.mark.parametrize("kind", [each for each in OutcomeKind if each not in ANSWERS], ids=str)
def test_a_good_answer_is_told_to_nobody(kind):
    assert told(look([machine()]), outcomes=[Outcome(ref=ref(), kind=kind)]) == ()


NO_ANSWERS = [
    (),
    (Outcome(ref=ref(), kind=OutcomeKind.WOULD_TERMINATE),),
    (Outcome(ref=ref(), kind=OutcomeKind.SPARED),),
    (Outcome(ref=ref(), kind=OutcomeKind.DEFERRED),),
    (Outcome(ref=ref("i-2"), kind=OutcomeKind.REQUESTED),),
]


@pytest.mark.parametrize("outcomes", NO_ANSWERS, ids=["none", "rehearsed", "spared", "deferred", "of another"])
@pytest.mark.parametrize(("kind", "cause"), ANSWERS.items(), ids=str)
def test_a_bad_answer_stands_until_the_cloud_gives_another(kind, cause, outcomes):
    due = look([machine()], memory=memory(intent(kind, HOUR)))

    assert facts(only(due, outcomes=outcomes)) == (f"{cause}/{KEY}", "warning", NOTHING_MORE)


def test_a_bad_answer_stands_under_the_brake():
    due = look([machine()], memory=memory(intent(OutcomeKind.PROTECTED, HOUR), brake=BRAKE))

    assert keys(due) == [f"termination_protected/{KEY}"]


def test_a_bad_answer_stands_while_the_machine_is_confirmed_once_more():
    due = look([machine()], memory=memory(intent(OutcomeKind.PROTECTED, HOUR)))

    assert keys(due, policy(confirm_passes=2)) == [f"termination_protected/{KEY}"]


@pytest.mark.parametrize("answer", [OutcomeKind.REQUESTED, OutcomeKind.UNKNOWN, OutcomeKind.ALREADY_GONE], ids=str)
def test_a_better_answer_ends_a_bad_one(answer):
    due = look([machine()], memory=memory(intent(OutcomeKind.PROTECTED, HOUR)))

    assert told(due, outcomes=[Outcome(ref=ref(), kind=answer)]) == ()


def test_another_bad_answer_replaces_a_bad_one():
    due = look([machine()], memory=memory(intent(OutcomeKind.PROTECTED, HOUR)))

    assert keys(due, outcomes=[Outcome(ref=ref(), kind=OutcomeKind.DENIED)]) == [f"termination_denied/{KEY}"]


def test_a_bad_answer_about_a_machine_that_is_tracked_by_now_is_told_to_nobody():
    assert told(look([machine()], [row()], memory=memory(intent(OutcomeKind.PROTECTED, HOUR)))) == ()


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("seen", "key", "severity"),
    [
        (look(ledger_trouble="disk full"), "ledger_unusable", Severity.CRITICAL),
        (look(clock_step=HOUR), "clock", Severity.WARNING),
        (look(late=True), "deadline", Severity.WARNING),
        (
            look(coverage=(whole(EAST), whole(GCP), broken(WEST, ScopeFailure.WRONG_ACCOUNT))),
            "wrong_account",
            Severity.CRITICAL,
        ),
        (look(coverage=(whole(EAST), whole(GCP), broken(WEST))), "listing_incomplete", Severity.WARNING),
        (look(registry=RegistryTrouble(detail="gone")), "registry_unusable", Severity.CRITICAL),
        (look(registry=registry(identity=identity(deployment="b"))), "registry_identity", Severity.CRITICAL),
        (
            look([machine()], [row(f"w-{n}", f"i-{n}") for n in (7, 8, 9)]),
            "registry_mismatch",
            Severity.CRITICAL,
        ),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_refusal_is_told_with_its_detail(seen, key, severity):
    found = only(seen)

    assert (found.key, found.severity) == (key, severity)
    assert found.data["detail"] == decide(seen, policy()).detail  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "seen", [look(leader=False), look(memory=Memory(brake=BRAKE))], ids=["not_leader", "reap_hold"]
)
def test_a_refusal_that_is_nobodys_fault_is_told_to_nobody(seen):
    assert told(seen) == ()


def test_every_reason_of_a_refusal_is_told_and_only_the_first_with_its_detail():
    found = told(look(late=True, registry=None))

    assert [facts(each) for each in found] == [
        ("deadline", "warning", {"detail": "no answer in time"}),
        ("registry_unusable", "critical", {}),
    ]


CLOSED = policy(breaker=BreakerLimits(max_per_pass=1, max_fraction=1.0, max_per_hour=99))
TWO = [machine("i-1"), machine("i-2", worker="w-2"), machine("i-3", worker="w-3", protect=True, age=MINUTE)]


def test_an_open_breaker_is_told_with_its_numbers():
    seen = look(TWO)

    found = only(seen, CLOSED)

    assert (found.key, found.severity) == ("breaker_open", Severity.CRITICAL)
    assert dict(found.data) == {
        "detail": decide(seen, CLOSED).detail,  # type: ignore[union-attr]
        "candidates": 2,
        "owned": 3,
        "limit": 1,
    }


def test_an_open_breaker_under_the_brake_is_told_with_its_numbers_too():
    found = only(look(TWO, memory=Memory(brake=BRAKE)), CLOSED)

    assert facts(found) == ("breaker_open", "critical", {"candidates": 2, "owned": 3, "limit": 1})


def test_an_open_breaker_of_a_process_without_the_lease_has_no_numbers():
    assert facts(only(look(TWO, leader=False), CLOSED)) == ("breaker_open", "critical", {})


# ---------------------------------------------------------------- heartbeats


def test_heartbeats_that_stopped_are_told_with_the_number_of_live_rows():
    rows = [row(heartbeat_at=NOW - HOUR), row("w-2", "i-2"), row("w-3", "i-3", state=WorkerState.FAILED)]

    found = only(look([machine()], rows), policy(heartbeat_ttl=10 * MINUTE))

    assert facts(found) == ("heartbeats_stopped", "warning", {"live_rows": 2})


@pytest.mark.parametrize(
    ("rows", "ttl"),
    [
        ([row(heartbeat_at=NOW - HOUR)], None),
        ([row(heartbeat_at=NOW - 10 * MINUTE)], 10 * MINUTE),
        ([row(state=WorkerState.FAILED)], 10 * MINUTE),
        ([], 10 * MINUTE),
    ],
    ids=["nobody asked", "one beats", "no live row", "no row"],
)
def test_heartbeats_have_not_stopped_when(rows, ttl):
    assert "heartbeats_stopped" not in keys(look([machine()], rows), policy(heartbeat_ttl=ttl))


# ---------------------------------------------------------------- missing machines, blindness


def test_a_live_row_whose_machine_is_not_listed_is_missing():
    gone, here = row("w-9", "i-9"), row("w-1", "i-1")

    assert missing(look([machine()], [here, gone]), policy()) == (gone,)


@pytest.mark.parametrize(
    "other",
    [
        row("w-9", "i-9", state=WorkerState.COMPLETED),
        row("w-9", None),
        row("w-9", "i-9", at=Scope("aws", "sa-east-1")),
    ],
    ids=["in a terminal state", "without a machine", "of a place that is not listed"],
)
def test_a_row_has_no_missing_machine_when_it_is(other):
    assert missing(look([machine()], [other]), policy()) == ()


@pytest.mark.parametrize(
    "there",
    [machine(state=InstanceState.TERMINATED), machine(owner="prod-b"), machine(at=WEST)],
    ids=["terminated", "another owner's", "elsewhere"],
)
def test_a_machine_that_is_not_the_rows_does_not_hide_that_it_is_missing(there):
    assert missing(look([there], [row()]), policy()) == (row(),)


def test_nothing_is_missing_from_a_listing_that_is_not_complete():
    assert missing(look([], [row()], coverage=(whole(EAST), whole(GCP), broken(WEST))), policy()) == ()
    assert missing(look([], registry=None), policy()) == ()


def lost(number: int) -> list[object]:
    return [row(f"w-{n}", f"i-{n}") for n in range(number)]


def test_a_reaper_that_sees_nothing_of_three_workers_is_blind():
    found = only(look([], lost(3)))

    assert facts(found) == ("blind", "critical", {"missing_workers": 3})


@pytest.mark.parametrize(
    ("machines", "rows"),
    [([], lost(2)), ([machine("i-7", worker="w-7")], lost(2)), ([], [])],
    ids=["two missing", "one machine seen", "no workers"],
)
def test_a_reaper_is_not_blind_with(machines, rows):
    assert "blind" not in keys(look(machines, rows))


def test_a_machine_that_is_gone_or_anothers_is_not_seen():
    machines = [machine("i-8", state=InstanceState.TERMINATED), machine("i-9", owner="prod-b")]
    seen = look(machines, lost(3), memory=Memory(listed=frozenset({ref("i-0")})))

    assert keys(seen) == ["blind"]


@pytest.mark.parametrize(
    ("rows", "seen", "blind"),
    [(10, 7, True), (10, 8, False), (15, 12, False), (14, 11, True), (3, 1, False), (4, 1, True), (100, 81, False)],
)
def test_a_reaper_is_blind_when_more_than_a_fifth_and_three_have_vanished_from_one_listing(rows, seen, *, blind):
    machines = [machine(f"i-{n}", worker=f"w-{n}") for n in range(seen)]
    listed = Memory(listed=frozenset(ref(f"i-{n}") for n in range(rows)))

    found = [each for each in told(look(machines, lost(rows), memory=listed)) if each.cause == "blind"]

    assert [each.data for each in found] == ([{"missing_workers": rows - seen}] if blind else [])


@pytest.mark.parametrize("place", [WEST, GCP], ids=str)
@pytest.mark.parametrize(("gone", "left", "blind"), [(3, 0, True), (3, 1, False), (2, 0, False), (25, 0, True)])
def test_a_reaper_that_sees_nothing_of_a_scope_where_machines_were_is_blind_there(place, gone, left, *, blind):
    here = [machine(f"i-{n}", worker=f"w-{n}") for n in range(200)]
    elsewhere = [machine(f"i-9{n}", worker=f"w-9{n}", at=place) for n in range(gone + left)]
    rows = [row(each.worker_id, each.ref.instance_id, at=each.ref.scope) for each in (*here, *elsewhere)]
    listed = Memory(listed=frozenset(each.ref for each in (*here, *elsewhere)))

    found = [each for each in told(look([*here, *elsewhere[gone:]], rows, memory=listed)) if each.cause == "blind"]

    assert [each.data for each in found] == ([{"missing_workers": gone, "scopes": str(place)}] if blind else [])


def test_a_few_that_vanish_here_and_there_blind_nobody():
    here = [machine(f"i-{n}", worker=f"w-{n}") for n in range(200)]
    gone = [machine(f"i-9{n}", worker=f"w-9{n}", at=place) for n, place in enumerate((WEST, WEST, GCP, GCP))]
    rows = [row(each.worker_id, each.ref.instance_id, at=each.ref.scope) for each in (*here, *gone)]
    listed = Memory(listed=frozenset(each.ref for each in (*here, *gone)))

    assert "blind" not in keys(look(here, rows, memory=listed))


def test_a_row_whose_machine_was_never_listed_has_not_vanished():
    machines = [machine(f"i-{n}", worker=f"w-{n}") for n in range(5)]
    listed = Memory(listed=frozenset(ref(f"i-{n}") for n in range(5)))

    assert "blind" not in keys(look(machines, lost(10), memory=listed))


def test_nobody_is_blind_without_a_complete_listing():
    assert "blind" not in keys(look([], lost(3), coverage=(whole(EAST), whole(GCP), broken(WEST))))
    assert "blind" not in keys(look([], lost(3), coverage=()))


# ---------------------------------------------------------------- all together


def test_conditions_come_in_the_order_of_their_keys_one_a_key():
    machines = [machine("i-2", worker="w-2", registry_id="r-2"), machine("i-1", foreign_account=True)]
    outcomes = [Outcome(ref=ref("i-9"), kind=OutcomeKind.DENIED), Outcome(ref=ref("i-9"), kind=OutcomeKind.DENIED)]

    assert keys(look(machines), outcomes=outcomes) == [
        "foreign_account/aws/us-east-1/i-1",
        "foreign_registry/aws/us-east-1/i-2",
        "termination_denied/aws/us-east-1/i-9",
    ]


def test_a_cause_about_the_whole_has_no_subject():
    assert Condition(cause=Cause.CLOCK, severity=Severity.WARNING).key == "clock"


# ---------------------------------------------------------------- what stopped a pass at the door


@pytest.mark.parametrize(
    ("stop", "cause", "severity"),
    [
        (DeferReason.LEDGER_UNUSABLE, Cause.LEDGER_UNUSABLE, Severity.CRITICAL),
        (DeferReason.REGISTRY_UNUSABLE, Cause.REGISTRY_UNUSABLE, Severity.CRITICAL),
        (DeferReason.REGISTRY_IDENTITY, Cause.REGISTRY_IDENTITY, Severity.CRITICAL),
        (DeferReason.DEADLINE, Cause.DEADLINE, Severity.WARNING),
    ],
)
def test_what_stops_a_pass_at_the_door_is_told_like_what_refuses_one(
    stop: DeferReason, cause: Cause, severity: Severity
) -> None:
    told = with_stop((), stop, "why")

    assert told == (Condition(cause=cause, severity=severity, data={"detail": "why"}),)


@pytest.mark.parametrize(
    "stop",
    [
        DeferReason.THROTTLED,
        DeferReason.CREDENTIALS_EXPIRED,
        DeferReason.STOPPING,
        DeferReason.NOT_LEADER,
        DeferReason.REAP_HOLD,
    ],
)
def test_a_stop_that_nobody_has_to_end_is_not_told(stop: DeferReason) -> None:
    assert with_stop((), stop, "why") == ()


def test_the_stop_stands_among_the_other_conditions_in_the_order_of_their_keys() -> None:
    others = (
        Condition(cause=Cause.INVALID_ID, severity=Severity.WARNING),
        Condition(cause=Cause.PROTECTED_ORPHAN, severity=Severity.WARNING),
    )

    told = with_stop(others, DeferReason.LEDGER_UNUSABLE, "full")

    assert [condition.key for condition in told] == ["invalid_id", "ledger_unusable", "protected_orphan"]
