"""What holds one machine (rules 8, 10 to 14, 21, 22), in which order and until when."""

from __future__ import annotations

from datetime import timedelta

import pytest

from providers.model import InstanceState
from reaperd.core.model import (
    Keep,
    KeepReason,
    Memory,
    Observation,
    OutcomeKind,
    ReapPolicy,
    Terminate,
    TerminateReason,
    Verdict,
)
from reaperd.core.reap import judge
from registry.model import WorkerState
from tests.support.worlds import (
    DEPLOYMENT,
    HOUR,
    MINUTE,
    NOW,
    REGISTRY,
    SECOND,
    WEST,
    intent,
    look,
    machine,
    memory,
    policy,
    ref,
    row,
    sighting,
)

GOES = Terminate(TerminateReason.UNREGISTERED)


def verdict_of(seen: Observation, wishes: ReapPolicy | None = None) -> Verdict:
    return next(verdict for verdict, _ in judge(seen, wishes or policy()) if verdict.ref == ref())


def call_of(seen: Observation, wishes: ReapPolicy | None = None) -> Keep | Terminate:
    return verdict_of(seen, wishes).call


def kept(reason: KeepReason) -> Keep:
    return Keep(reason)


# ---------------------------------------------------------------- the holds of rule 14


def test_an_orphan_that_nothing_holds_goes():
    assert call_of(look([machine()])) == GOES


def test_a_tracked_machine_is_kept():
    verdict = verdict_of(look([machine()], [row()]))

    assert verdict.call == kept(KeepReason.TRACKED)
    assert verdict.orphan is None
    assert verdict.detail == "row w-1 (running)"


def test_a_machine_in_doubt_is_kept_and_says_which_row_points_where():
    verdict = verdict_of(look([machine()], [row("w-1", "i-2", at=WEST)]))

    assert verdict.call == kept(KeepReason.AMBIGUOUS_WORKER)
    assert verdict.detail == "row w-1 names aws/eu-west-1/i-2"


@pytest.mark.parametrize(
    ("fact", "reason"),
    [
        ({"foreign_account": True}, KeepReason.FOREIGN_ACCOUNT),
        ({"state": InstanceState.SHUTTING_DOWN}, KeepReason.IN_TRANSITION),
        ({"registry_id": "r-2"}, KeepReason.FOREIGN_REGISTRY),
        ({"registry_id": ""}, KeepReason.FOREIGN_REGISTRY),
        ({"protect": True}, KeepReason.PROTECT_TAG),
        ({"managed_by": "autoscaling:workers"}, KeepReason.MANAGED),
        ({"managed_by": ""}, KeepReason.MANAGED),
    ],
)
def test_what_stands_on_the_machine_holds_it(fact, reason):
    assert call_of(look([machine(**fact)])) == kept(reason)


def test_the_tag_of_our_own_registry_holds_nothing():
    assert call_of(look([machine(registry_id=REGISTRY)])) == GOES


def test_an_id_on_the_never_list_is_kept():
    assert call_of(look([machine()]), policy(never=frozenset({"i-1"}))) == kept(KeepReason.NEVER_LIST)


@pytest.mark.parametrize("state", [s for s in InstanceState if s.exists], ids=str)
def test_a_machine_that_exists_goes_whatever_its_state(state):
    assert call_of(look([machine(state=state)])) == GOES


def test_a_terminated_machine_gets_no_verdict():
    assert judge(look([machine(state=InstanceState.TERMINATED)]), policy()) == ()


@pytest.mark.parametrize("owner", ["", "prod", "prod-a-canary", "eu-prod-a", "Prod-A", " prod-a", "prod-a ", "prod-*"])
def test_a_machine_of_any_other_owner_gets_no_verdict(owner):
    assert judge(look([machine(owner=owner)]), policy()) == ()


def test_the_owner_is_the_deployment_letter_by_letter():
    assert call_of(look([machine(owner=DEPLOYMENT)])) == GOES


# ---------------------------------------------------------------- what the cloud answered


ANSWERS = {
    None: KeepReason.ALREADY_REQUESTED,
    OutcomeKind.REQUESTED: KeepReason.ALREADY_REQUESTED,
    OutcomeKind.UNKNOWN: KeepReason.ALREADY_REQUESTED,
    OutcomeKind.ALREADY_GONE: KeepReason.ALREADY_REQUESTED,
    OutcomeKind.PROTECTED: KeepReason.PROTECTED,
    OutcomeKind.DENIED: KeepReason.DENIED,
    OutcomeKind.INVALID_ID: KeepReason.INVALID_ID,
    OutcomeKind.FAILED: KeepReason.FAILED,
}
NO_ANSWERS = [OutcomeKind.DEFERRED, OutcomeKind.SPARED, OutcomeKind.WOULD_TERMINATE, OutcomeKind.CONFIRMED_GONE]


def test_every_outcome_either_holds_or_does_not():
    assert {*ANSWERS, *NO_ANSWERS} == {None, *OutcomeKind}


@pytest.mark.parametrize(("outcome", "reason"), ANSWERS.items(), ids=str)
def test_an_answer_holds_until_stuck_after_and_is_then_asked_again(outcome, reason):
    def at(ago: timedelta) -> Keep | Terminate:
        return call_of(look([machine()], memory=memory(intent(outcome, ago))))

    assert at(30 * MINUTE - SECOND) == kept(reason)
    assert at(30 * MINUTE) == Terminate(TerminateReason.UNREGISTERED, again=True)


@pytest.mark.parametrize("outcome", NO_ANSWERS, ids=str)
def test_what_never_reached_the_cloud_holds_nothing_and_is_no_repetition(outcome):
    assert call_of(look([machine()], memory=memory(intent(outcome)))) == GOES


def test_a_request_sent_in_the_future_is_not_sent_again():
    seen = look([machine()], memory=memory(intent(OutcomeKind.REQUESTED, -300 * HOUR)))

    assert call_of(seen, policy(stuck_after=SECOND)) == kept(KeepReason.ALREADY_REQUESTED)


def test_the_latest_request_counts_and_not_the_first_of_its_chain():
    asked = intent(OutcomeKind.REQUESTED, MINUTE, first_requested_at=NOW - 5 * HOUR)

    assert call_of(look([machine()], memory=memory(asked))) == kept(KeepReason.ALREADY_REQUESTED)


def test_a_machine_in_transition_is_never_sent_to_again():
    asked = intent(OutcomeKind.REQUESTED, 5 * HOUR)
    seen = look([machine(state=InstanceState.SHUTTING_DOWN)], memory=memory(asked))

    assert call_of(seen) == kept(KeepReason.IN_TRANSITION)


def test_a_retry_still_has_to_be_confirmed():
    seen = look([machine()], memory=memory(intent(OutcomeKind.PROTECTED, HOUR)))

    assert call_of(seen, policy(confirm_passes=2)) == kept(KeepReason.UNCONFIRMED)


# ---------------------------------------------------------------- old enough, sure enough


def test_a_machine_exactly_as_old_as_the_grace_is_kept():
    assert call_of(look([machine(age=15 * MINUTE)])) == kept(KeepReason.LAUNCH_GRACE)


def test_a_machine_older_than_the_grace_goes():
    assert call_of(look([machine(age=15 * MINUTE + SECOND)])) == GOES


def test_a_machine_of_unknown_age_is_kept():
    verdict = verdict_of(look([machine(age=None)]), policy(launch_grace=timedelta(0)))

    assert verdict.call == kept(KeepReason.LAUNCH_GRACE)
    assert verdict.age is None


def test_a_machine_of_this_moment_is_kept_even_without_a_grace():
    assert call_of(look([machine(age=timedelta(0))]), policy(launch_grace=timedelta(0))) == kept(
        KeepReason.LAUNCH_GRACE
    )


def test_a_machine_is_kept_one_look_before_it_is_confirmed():
    remembered = Memory(sightings={ref(): sighting(confirmations=1, counted_at=NOW - MINUTE)})

    assert call_of(look([machine()], memory=remembered), policy(confirm_passes=3)) == kept(KeepReason.UNCONFIRMED)
    assert call_of(look([machine()], memory=remembered), policy(confirm_passes=2)) == GOES


def test_confirmation_can_be_taken_as_given_and_is_shown_all_the_same():
    verdict = verdict_of(look([machine()]), policy(confirm_passes=3, confirmation_given=True))

    assert verdict.call == GOES
    assert verdict.confirmations == 1


def test_a_machine_whose_row_vanished_is_kept_until_the_grace_is_over():
    def at(ago: timedelta) -> Keep | Terminate:
        known = sighting(tracked_at=NOW - 2 * HOUR, vanished_at=NOW - ago)
        return call_of(look([machine()], memory=Memory(sightings={ref(): known})))

    assert at(HOUR - SECOND) == kept(KeepReason.ROW_VANISHED)
    assert at(HOUR) == GOES


def test_the_look_that_finds_a_row_gone_holds_the_machine():
    known = Memory(sightings={ref(): sighting(tracked_at=NOW - MINUTE)})

    verdict = verdict_of(look([machine()], memory=known))

    assert verdict.call == kept(KeepReason.ROW_VANISHED)
    assert verdict.row_vanished
    assert not verdict.ripe


def test_the_wait_for_a_vanished_row_is_not_given_with_the_confirmation():
    known = Memory(sightings={ref(): sighting(tracked_at=NOW - MINUTE)})

    call = call_of(look([machine()], memory=known), policy(confirmation_given=True))

    assert call == kept(KeepReason.ROW_VANISHED)


# ---------------------------------------------------------------- the order


ANSWERED = {
    "already_requested": OutcomeKind.UNKNOWN,
    "protected": OutcomeKind.PROTECTED,
    "denied": OutcomeKind.DENIED,
    "invalid_id": OutcomeKind.INVALID_ID,
    "failed": OutcomeKind.FAILED,
}


def order_with(answer: str) -> list[str]:
    """Return rule 14's list; a machine has one answer of the cloud at a time."""
    return [
        *("foreign_account", "in_transition", "tracked", "ambiguous_worker", "foreign_registry", "never_list"),
        *("protect_tag", "managed", answer, "launch_grace", "unconfirmed", "row_vanished"),
    ]


def held_by(holds: list[str]) -> tuple[Observation, ReapPolicy]:
    """Return a machine that exactly these holds apply to."""
    on_it = {
        "foreign_account": {"foreign_account": True},
        "in_transition": {"state": InstanceState.SHUTTING_DOWN},
        "foreign_registry": {"registry_id": "r-2"},
        "protect_tag": {"protect": True},
        "managed": {"managed_by": "autoscaling:workers"},
        "launch_grace": {"age": MINUTE},
    }
    facts = {name: value for hold in holds for name, value in on_it.get(hold, {}).items()}
    rows_of = {"tracked": row("w-5", "i-1"), "ambiguous_worker": row("w-1", "i-2")}
    asked = [intent(ANSWERED[hold]) for hold in holds if hold in ANSWERED]
    known = sighting(
        first_seen_at=NOW - MINUTE, tracked_at=NOW - 2 * HOUR if "row_vanished" in holds else None, last_seen_at=NOW
    )
    seen = look(
        [machine(**facts)],
        [rows_of[hold] for hold in holds if hold in rows_of],
        memory=memory(*asked, sightings={ref(): known}),
    )
    never = frozenset({"i-1"}) if "never_list" in holds else frozenset()
    return seen, policy(never=never, confirm_passes=2 if "unconfirmed" in holds else 1)


@pytest.mark.parametrize("answer", ANSWERED)
@pytest.mark.parametrize("place", range(12))
def test_the_first_hold_of_the_list_is_the_one_that_is_told(answer, place):
    order = order_with(answer)

    call = call_of(*held_by(order[place:]))

    assert call == Keep(KeepReason(order[place]))


@pytest.mark.parametrize("hold", sorted({*order_with("failed"), *ANSWERED}))
def test_each_hold_is_enough_alone(hold):
    assert call_of(*held_by([hold])) == Keep(KeepReason(hold))


def test_a_machine_that_no_hold_applies_to_goes():
    assert call_of(*held_by([])) == GOES


# ---------------------------------------------------------------- ripe


@pytest.mark.parametrize("fact", [{"protect": True}, {"managed_by": "fleet:f-1"}, {"foreign_account": True}])
def test_an_orphan_is_ripe_when_only_a_hold_that_time_does_not_end_keeps_it(fact):
    assert verdict_of(look([machine(**fact)])).ripe
    assert not verdict_of(look([machine(age=MINUTE, **fact)])).ripe


def test_a_tracked_machine_is_never_ripe():
    assert not verdict_of(look([machine()], [row()])).ripe


def test_a_retired_machine_says_so():
    verdict = verdict_of(look([machine()], [row(state=WorkerState.COMPLETED)]))

    assert verdict.call == Terminate(TerminateReason.RETIRED)
    assert verdict.orphan is TerminateReason.RETIRED
    assert verdict.name == "terminate/retired"


def test_a_kept_machine_has_a_name_for_its_verdict_too():
    assert verdict_of(look([machine()], [row()])).name == "keep/tracked"
