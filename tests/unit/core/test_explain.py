"""What has to be true for one machine to be terminated: examples with figures. The laws stand in tests/property."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from providers.locations import Gone, NotKnown, OnlyListed, There
from providers.model import InstanceState, ScopeFailure
from reaperd.core.explain import RESOLUTION, Account, Dossier, Explanation, Presence, explain
from reaperd.core.history import Event, EventKind, Trace
from reaperd.core.model import (
    Brake,
    BreakerLimits,
    Intent,
    KeepReason,
    Memory,
    OutcomeKind,
    RefusalReason,
    RegistryTrouble,
    Sighting,
    TerminateReason,
)
from registry.model import WorkerState
from tests.support.worlds import (
    DEPLOYMENT,
    EAST,
    HOUR,
    MINUTE,
    NOW,
    WEST,
    broken,
    look,
    machine,
    policy,
    ref,
    row,
    whole,
)

REF = ref("i-1")


def in_the_way(told: Explanation) -> list[str]:
    return [requirement.about for requirement in told.in_the_way]


def detail(told: Explanation, about: str) -> str:
    return next(requirement.detail for requirement in told.requirements if requirement.about == about)


def asked(outcome: OutcomeKind, ago: timedelta = 10 * MINUTE) -> Memory:
    intent = Intent(intent_id=1, ref=REF, requested_at=NOW - ago, outcome=outcome, first_requested_at=NOW - ago)
    return Memory(intents={REF: intent})


def test_an_orphan_that_nothing_holds_is_terminated():
    told = explain(look([machine()]), policy(), REF)

    assert told.terminates
    assert told.in_the_way == ()
    assert told.settles_at is None
    assert told.judgement is not None
    assert told.judgement.verdict.call.reason is TerminateReason.UNREGISTERED


def test_every_hold_is_told_and_not_only_the_first():
    held = machine(protect=True, managed_by="autoscaling:workers", age=4 * MINUTE)

    told = explain(look([held], [row()]), policy(), REF)

    assert in_the_way(told) == ["tracked", "protect_tag", "managed", "launch_grace", "unconfirmed"]


def test_launch_grace_ends_when_the_machine_is_older_than_it():
    told = explain(look([machine(age=4 * MINUTE)]), policy(), REF)

    assert in_the_way(told) == ["launch_grace"]
    assert told.settles_at == NOW + 11 * MINUTE + RESOLUTION


@pytest.mark.parametrize(
    ("launched", "first_seen", "from_then"),
    [
        (None, None, timedelta(0)),
        (None, -3 * MINUTE, -3 * MINUTE),
        (-5 * MINUTE, -3 * MINUTE, -5 * MINUTE),
        (HOUR, None, timedelta(0)),
        (HOUR, -3 * MINUTE, -3 * MINUTE),
        (timedelta(days=-10_000), -3 * MINUTE, -3 * MINUTE),
    ],
)
def test_age_counts_from_the_earliest_believable_time(
    launched: timedelta | None, first_seen: timedelta | None, from_then: timedelta
):
    young = machine(age=None, launched_at=None if launched is None else NOW + launched)
    sighting = Sighting(first_seen_at=NOW + (first_seen or timedelta(0)), last_seen_at=NOW)
    memory = Memory() if first_seen is None else Memory(sightings={REF: sighting})

    told = explain(look([young], memory=memory), policy(), REF)

    assert told.settles_at == NOW + from_then + 15 * MINUTE + RESOLUTION


def test_a_vanished_row_holds_until_its_grace_is_over():
    tracked = Sighting(first_seen_at=NOW - HOUR, last_seen_at=NOW - MINUTE, tracked_at=NOW - MINUTE)
    since = replace(tracked, vanished_at=NOW - 20 * MINUTE)

    fresh = explain(look([machine()], memory=Memory(sightings={REF: tracked})), policy(), REF)
    older = explain(look([machine()], memory=Memory(sightings={REF: since})), policy(), REF)

    assert (in_the_way(fresh), fresh.settles_at) == (["row_vanished"], NOW + HOUR)
    assert older.settles_at == NOW + 40 * MINUTE


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (OutcomeKind.REQUESTED, KeepReason.ALREADY_REQUESTED),
        (OutcomeKind.PROTECTED, KeepReason.PROTECTED),
        (OutcomeKind.DENIED, KeepReason.DENIED),
        (OutcomeKind.INVALID_ID, KeepReason.INVALID_ID),
        (OutcomeKind.FAILED, KeepReason.FAILED),
    ],
)
def test_what_the_cloud_answered_holds_until_it_is_time_to_ask_again(outcome: OutcomeKind, reason: KeepReason):
    told = explain(look([machine()], memory=asked(outcome)), policy(), REF)
    later = explain(look([machine()], memory=asked(outcome, 30 * MINUTE)), policy(), REF)

    assert (in_the_way(told), told.settles_at) == ([reason], NOW + 20 * MINUTE)
    assert later.terminates


def test_looks_that_are_missing_are_no_matter_of_time_alone():
    told = explain(look([machine()]), policy(confirm_passes=3), REF)

    assert in_the_way(told) == ["unconfirmed"]
    assert told.settles_at is None


def test_further_looks_and_time_settle_it_at_the_earliest_when_the_time_is_over():
    sure = explain(look([machine()]), policy(confirm_passes=3), REF)
    young = explain(look([machine(age=4 * MINUTE)]), policy(confirm_passes=3), REF)
    held = explain(look([machine(protect=True)]), policy(confirm_passes=3), REF)

    assert sure.not_before == NOW
    assert young.not_before == NOW + 11 * MINUTE + RESOLUTION
    assert held.not_before is None
    assert explain(look([machine()]), policy(), REF).not_before is None


def test_time_alone_settles_nothing_while_a_person_has_to_act():
    told = explain(look([machine(age=4 * MINUTE, protect=True)]), policy(), REF)

    assert in_the_way(told) == ["protect_tag", "launch_grace"]
    assert told.settles_at is None


def test_of_several_times_the_last_one_counts():
    memory = replace(
        asked(OutcomeKind.DENIED, 29 * MINUTE),
        sightings={REF: Sighting(first_seen_at=NOW, last_seen_at=NOW)},
    )

    told = explain(look([machine(age=4 * MINUTE)], memory=memory), policy(), REF)

    assert in_the_way(told) == ["denied", "launch_grace"]
    assert told.settles_at == NOW + 11 * MINUTE + RESOLUTION


def test_the_brake_is_in_the_way_with_who_and_why():
    memory = Memory(brake=Brake(since=NOW, by="ann@x", reason="deploy"))

    told = explain(look([machine()], memory=memory), policy(), REF)

    assert in_the_way(told) == ["reap_hold"]
    assert "ann@x" in detail(told, "reap_hold")


def test_the_breaker_judges_the_plan_with_this_machine_in_it():
    machines = [machine("i-1", age=4 * MINUTE, worker="w-1"), machine("i-2", worker="w-2")]
    wishes = policy(breaker=BreakerLimits(max_per_pass=1, max_fraction=1.0))

    told = explain(look(machines), wishes, REF)

    assert in_the_way(told) == ["launch_grace", "breaker_open"]
    assert detail(told, "breaker_open") == "2 to terminate in one pass (max_per_pass 1)"
    assert explain(look(machines), wishes, ref("i-2")).terminates


def test_a_machine_that_is_asked_for_again_is_no_candidate_of_the_breaker():
    wishes = policy(breaker=BreakerLimits(max_per_pass=1))

    told = explain(look([machine()], memory=asked(OutcomeKind.REQUESTED)), wishes, REF)

    assert in_the_way(told) == ["already_requested"]
    assert told.breaker is not None
    assert told.breaker.candidates == 0


def test_a_tracked_machine_is_a_candidate_if_it_were_to_go():
    told = explain(look([machine()], [row()]), policy(breaker=BreakerLimits(max_per_pass=0)), REF)

    assert in_the_way(told) == ["tracked", "unconfirmed", "breaker_open"]


def test_a_retired_machine_does_not_count_for_the_fraction():
    limits = BreakerLimits(max_fraction=0.01, fraction_from=1)
    done = row(state=WorkerState.COMPLETED)

    assert explain(look([machine()], [done]), policy(breaker=limits), REF).terminates
    assert in_the_way(explain(look([machine()]), policy(breaker=limits), REF)) == ["breaker_open"]


@pytest.mark.parametrize(
    ("seen", "presence"),
    [
        (look([machine()]), Presence.LISTED),
        (look([machine(state=InstanceState.TERMINATED)]), Presence.GONE),
        (look([machine(owner="prod-b")]), Presence.NOT_OURS),
        (look([machine("i-2")]), Presence.ABSENT),
        (look(coverage=(whole(EAST), broken(WEST))), Presence.UNKNOWN),
        (look(coverage=(broken(EAST, ScopeFailure.WRONG_ACCOUNT), whole(WEST))), Presence.UNKNOWN),
        (look(late=True), Presence.UNKNOWN),
    ],
)
def test_where_a_machine_is_in_the_listing(seen, presence: Presence):
    told = explain(seen, policy(), REF)

    listed = told.requirements[0]
    assert told.presence is presence
    assert listed.met is (None if presence is Presence.UNKNOWN else presence is Presence.LISTED)
    assert (told.judgement is not None) == (presence is Presence.LISTED)


ASKED = asked(OutcomeKind.REQUESTED)


@pytest.mark.parametrize(
    ("found", "presence"),
    [
        (Gone(), Presence.ABSENT),
        (OnlyListed(), Presence.ABSENT),
        (There(InstanceState.RUNNING), Presence.UNLISTED),
        (There(InstanceState.SHUTTING_DOWN, "prod-b"), Presence.UNLISTED),
        (NotKnown("no answer in time"), Presence.UNPROVED),
    ],
    ids=repr,
)
def test_where_a_machine_is_that_was_asked_to_end_and_is_not_listed(found, presence: Presence):
    told = explain(look(memory=ASKED, located={REF: found}), policy(), REF)

    assert (told.presence, told.location) == (presence, found)
    assert told.requirements[0].met is False
    assert told.judgement is None


def test_a_machine_that_was_asked_to_end_and_that_nobody_looked_for_is_not_proved_gone():
    assert explain(look(memory=ASKED), policy(), REF).presence is Presence.UNPROVED


def test_the_listing_says_more_than_what_was_asked_about_it():
    told = explain(look([machine()], memory=ASKED, located={REF: Gone()}), policy(), REF)

    assert (told.presence, told.location) == (Presence.LISTED, There(InstanceState.RUNNING, DEPLOYMENT))


def test_after_an_incomplete_listing_nothing_is_known_of_it():
    told = explain(look(coverage=(whole(EAST), broken(WEST)), memory=ASKED, located={REF: Gone()}), policy(), REF)

    assert told.presence is Presence.UNKNOWN


def test_a_place_that_is_not_configured_any_more_proves_nothing():
    elsewhere = look(coverage=(whole(WEST),))

    assert explain(elsewhere, policy(scopes=frozenset({WEST})), REF).presence is Presence.UNKNOWN


def test_without_a_registry_nothing_of_the_machine_is_judged_and_nothing_goes():
    told = explain(look([machine()], registry=RegistryTrouble(detail="it is locked")), policy(), REF)

    not_judged = [requirement.about for requirement in told.requirements if requirement.met is None]
    assert not_judged == [*map(str, KeepReason), "breaker_open"]
    assert detail(told, "registry_unusable") == "it is locked"
    assert told.breaker is None
    assert not told.terminates


def test_an_objection_of_the_moment_goes_before_one_of_a_later_look():
    seen = look([machine()], coverage=(whole(EAST), broken(WEST)))

    told = explain(seen, policy(), REF, ((RefusalReason.LISTING_INCOMPLETE, "later"),))

    assert "AuthFailure" in detail(told, "listing_incomplete")


# ---------------------------------------------------------------- accounts


def account(**trace: object) -> Account:
    return Account(explanation=explain(look(), policy(), REF), trace=Trace(ref=REF, **trace))  # type: ignore[arg-type]


def test_a_machine_was_seen_when_it_is_listed_or_remembered_or_recorded():
    event = Event(at=NOW, kind=EventKind.OUTCOME, name="confirmed_gone")
    listed = Account(explanation=explain(look([machine()]), policy(), REF), trace=Trace(ref=REF))

    assert not account().seen
    assert account(sighting=Sighting(first_seen_at=NOW, last_seen_at=NOW)).seen
    assert account(events=(event,)).seen
    assert listed.seen


def test_a_name_was_seen_when_one_of_its_machines_was():
    nothing = Dossier(
        asked="i-1",
        now=NOW,
        policy=policy(),
        owner_tag="reaperd:owner",
        enforcing=False,
        live=False,
        looked_at=None,
        newest=None,
        accounts=(account(),),
    )
    listed = Account(explanation=explain(look([machine()]), policy(), REF), trace=Trace(ref=REF))

    assert not nothing.seen
    assert replace(nothing, accounts=(account(), listed)).seen
