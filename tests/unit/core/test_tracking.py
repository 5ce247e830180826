"""Which row accounts for which machine (rules 6 and 7), each on its boundary."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from providers.model import InstanceState, OwnedInstance
from reaperd.core.model import ReapPolicy, TerminateReason
from reaperd.core.tracking import (
    Ambiguous,
    Tracked,
    Tracking,
    Untracked,
    bad_times,
    classify,
    has_bad_time,
    index,
    interest_in,
)
from registry.model import Worker, WorkerState
from registry.rows import is_wanted
from tests.support.worlds import EAST, GCP, HOUR, MINUTE, NOW, SECOND, WEST, machine, policy, row

TTL = 10 * MINUTE


def tracking_of(
    instance: OwnedInstance,
    rows: Iterable[Worker],
    *,
    also_listed: Iterable[OwnedInstance] = (),
    wishes: ReapPolicy | None = None,
) -> Tracking:
    wishes = wishes or policy()
    listing = {each.ref: each for each in (instance, *also_listed)}
    return classify(instance, index(rows, wishes, NOW), listing, wishes, NOW)


def reason_of(*args: object, **kwargs: object) -> TerminateReason | None:
    tracking = tracking_of(*args, **kwargs)  # type: ignore[arg-type]
    return tracking.reason if isinstance(tracking, Untracked) else None


# ---------------------------------------------------------------- rule 6: what protects


@pytest.mark.parametrize("state", ["launching", "running", "draining"])
def test_a_row_in_a_live_state_that_names_the_machine_protects_it(state):
    tracking = tracking_of(machine(worker=None), [row(state=WorkerState(state))])

    assert isinstance(tracking, Tracked)


@pytest.mark.parametrize("state", ["completed", "failed", "terminated"])
def test_a_row_in_a_terminal_state_protects_nothing(state):
    tracking = tracking_of(machine(), [row(state=WorkerState(state))])

    assert tracking == Untracked(TerminateReason.RETIRED, has_row=True)


@pytest.mark.parametrize("state", ["launching", "running", "draining"])
def test_a_live_row_without_an_instance_id_protects_the_machine_with_its_worker_tag(state):
    tracking = tracking_of(machine(), [row(instance_id=None, state=WorkerState(state), created_at=NOW)])

    assert isinstance(tracking, Tracked)


def test_a_live_row_without_an_instance_id_protects_its_worker_wherever_the_row_says_it_is():
    tracking = tracking_of(machine(at=EAST), [row(instance_id=None, at=GCP)])

    assert isinstance(tracking, Tracked)


def test_a_terminal_row_without_an_instance_id_retires_the_machine_with_its_worker_tag():
    assert reason_of(machine(), [row(instance_id=None, state=WorkerState.FAILED)]) is TerminateReason.RETIRED


def test_a_row_of_another_worker_without_an_instance_id_says_nothing():
    assert reason_of(machine(worker="w-1"), [row("w-2", None)]) is TerminateReason.UNREGISTERED


def test_a_machine_without_a_worker_tag_is_not_matched_to_a_row_without_an_instance_id():
    assert reason_of(machine(worker=None), [row(instance_id=None)]) is TerminateReason.ANONYMOUS


def test_a_machine_that_no_row_knows_is_unregistered():
    assert tracking_of(machine(), []) == Untracked(TerminateReason.UNREGISTERED, has_row=False)


def test_a_machine_without_worker_tag_and_row_is_anonymous():
    assert tracking_of(machine(worker=None), []) == Untracked(TerminateReason.ANONYMOUS, has_row=False)


def test_a_live_row_protects_although_a_terminal_one_names_the_same_machine():
    rows = [row("w-2", state=WorkerState.COMPLETED), row("w-1")]

    assert isinstance(tracking_of(machine(), rows), Tracked)


def test_a_row_that_names_the_machine_protects_whatever_its_worker_tag_says():
    assert isinstance(tracking_of(machine(worker="w-9"), [row("w-1")]), Tracked)


# ---------------------------------------------------------------- rule 6: launches in flight


def launching(**times: datetime | None) -> Worker:
    return row(instance_id=None, state=WorkerState.LAUNCHING, **({"created_at": None} | times))


def test_a_launch_one_second_younger_than_its_ttl_protects():
    assert isinstance(tracking_of(machine(), [launching(created_at=NOW - HOUR + SECOND)]), Tracked)


def test_a_launch_exactly_as_old_as_its_ttl_is_abandoned():
    assert reason_of(machine(), [launching(created_at=NOW - HOUR)]) is TerminateReason.LAUNCH_ABANDONED


@pytest.mark.parametrize("column", ["created_at", "launched_at", "heartbeat_at", "updated_at"])
def test_the_newest_time_of_a_launch_counts(column):
    old = dict.fromkeys(["created_at", "launched_at", "heartbeat_at", "updated_at"], NOW - 3 * HOUR)

    tracking = tracking_of(machine(), [launching(**(old | {column: NOW - MINUTE}))])

    assert isinstance(tracking, Tracked)


def test_a_launch_without_any_time_protects():
    assert isinstance(tracking_of(machine(), [launching()]), Tracked)


def test_a_launch_with_an_instance_id_is_never_abandoned():
    old = row(state=WorkerState.LAUNCHING, created_at=NOW - 30 * HOUR)

    assert isinstance(tracking_of(machine(), [old]), Tracked)


def test_a_running_row_without_an_instance_id_is_never_abandoned():
    assert isinstance(tracking_of(machine(), [row(instance_id=None, created_at=NOW - 30 * HOUR)]), Tracked)


def test_a_launch_in_flight_is_judged_by_its_own_limit_and_not_by_heartbeats():
    rows = [launching(created_at=NOW - 30 * MINUTE), row("w-2", "i-2", heartbeat_at=NOW)]

    tracking = tracking_of(machine(), rows, wishes=policy(heartbeat_ttl=TTL))

    assert isinstance(tracking, Tracked)


# ---------------------------------------------------------------- rule 6: heartbeats


BEATING = row("w-2", "i-2", heartbeat_at=NOW - TTL)
"""Within the ttl by nothing at all, which proves that heartbeats work."""


def beaten(ago: timedelta | None, **other: object) -> Worker:
    return row(heartbeat_at=NOW - ago if ago is not None else None, **other)


def test_a_heartbeat_exactly_as_old_as_its_ttl_protects():
    tracking = tracking_of(machine(), [beaten(TTL), BEATING], wishes=policy(heartbeat_ttl=TTL))

    assert isinstance(tracking, Tracked)


def test_a_heartbeat_older_than_its_ttl_expires():
    wishes = policy(heartbeat_ttl=TTL)

    assert reason_of(machine(), [beaten(TTL + SECOND), BEATING], wishes=wishes) is TerminateReason.HEARTBEAT_EXPIRED


def test_a_row_that_never_beat_counts_from_its_creation():
    wishes = policy(heartbeat_ttl=TTL)
    young, old = beaten(None, created_at=NOW - TTL), beaten(None, created_at=NOW - TTL - SECOND)

    assert isinstance(tracking_of(machine(), [young, BEATING], wishes=wishes), Tracked)
    assert reason_of(machine(), [old, BEATING], wishes=wishes) is TerminateReason.HEARTBEAT_EXPIRED


def test_a_row_that_never_beat_and_has_no_creation_time_protects():
    wishes = policy(heartbeat_ttl=TTL)

    assert isinstance(tracking_of(machine(), [beaten(None, created_at=None), BEATING], wishes=wishes), Tracked)


def test_heartbeats_say_nothing_unless_a_ttl_is_set():
    assert isinstance(tracking_of(machine(), [beaten(300 * HOUR), BEATING]), Tracked)


@pytest.mark.parametrize(
    "other",
    [
        row("w-2", "i-2", heartbeat_at=NOW - TTL - SECOND),
        row("w-2", "i-2", heartbeat_at=None, created_at=NOW),
        row("w-2", "i-2", heartbeat_at=NOW, state=WorkerState.COMPLETED),
        row("w-2", "i-2", heartbeat_at=NOW + MINUTE + SECOND),
    ],
    ids=["one too old", "a creation only", "a retired one", "one in the future"],
)
def test_no_row_expires_when_no_live_row_has_a_recent_heartbeat(other):
    tracking = tracking_of(machine(), [beaten(HOUR), other], wishes=policy(heartbeat_ttl=TTL))

    assert isinstance(tracking, Tracked)


def test_a_heartbeat_written_while_the_clouds_were_listed_proves_that_heartbeats_work():
    rows = [beaten(HOUR), row("w-2", "i-2", heartbeat_at=NOW + MINUTE)]

    assert reason_of(machine(), rows, wishes=policy(heartbeat_ttl=TTL)) is TerminateReason.HEARTBEAT_EXPIRED


def test_one_row_with_a_heartbeat_protects_a_machine_that_two_rows_name():
    rows = [beaten(HOUR), row("w-2", "i-1", heartbeat_at=NOW)]

    assert isinstance(tracking_of(machine(), rows, wishes=policy(heartbeat_ttl=TTL)), Tracked)


# ---------------------------------------------------------------- rule 6: bad times


@pytest.mark.parametrize("column", ["created_at", "launched_at", "heartbeat_at", "updated_at"])
def test_a_time_in_the_future_protects_and_is_reported(column):
    odd = row(**({"heartbeat_at": NOW - HOUR} | {column: NOW + MINUTE + SECOND}))

    assert isinstance(tracking_of(machine(), [odd, BEATING], wishes=policy(heartbeat_ttl=TTL)), Tracked)
    assert bad_times([odd, BEATING], NOW) == (odd,)


def test_a_time_that_cannot_be_read_protects_and_is_reported():
    odd = row(heartbeat_at=NOW - HOUR, created_at=None, unreadable=("created_at",))

    assert isinstance(tracking_of(machine(), [odd, BEATING], wishes=policy(heartbeat_ttl=TTL)), Tracked)
    assert has_bad_time(odd, NOW)


def test_a_time_that_cannot_be_read_keeps_a_launch_from_being_abandoned():
    assert isinstance(tracking_of(machine(), [launching(unreadable=("created_at",))]), Tracked)


def test_a_time_a_minute_ahead_is_not_reported_because_the_row_may_be_newer_than_the_look():
    assert bad_times([row(updated_at=NOW + MINUTE)], NOW) == ()


def test_a_time_a_moment_ahead_protects_all_the_same():
    touched = row(heartbeat_at=NOW - HOUR, updated_at=NOW + SECOND)

    assert isinstance(tracking_of(machine(), [touched, BEATING], wishes=policy(heartbeat_ttl=TTL)), Tracked)


# ---------------------------------------------------------------- rule 7: rows that point elsewhere


ELSEWHERE = row("w-1", "i-2")


def test_a_machine_is_superseded_when_its_workers_row_names_another_that_exists_and_carries_the_tag():
    tracking = tracking_of(machine("i-1"), [ELSEWHERE], also_listed=[machine("i-2")])

    assert tracking == Untracked(TerminateReason.SUPERSEDED, has_row=True)


@pytest.mark.parametrize(
    "other",
    [
        [],
        [machine("i-2", state=InstanceState.TERMINATED)],
        [machine("i-2", state=InstanceState.SHUTTING_DOWN)],
        [machine("i-2", worker="w-2")],
        [machine("i-2", worker=None)],
        [machine("i-2", at=WEST)],
    ],
    ids=["is not listed", "is gone", "is going", "has another tag", "has no tag", "is in another region"],
)
def test_a_machine_is_ambiguous_when_the_one_that_its_workers_row_names(other):
    tracking = tracking_of(machine("i-1"), [ELSEWHERE], also_listed=other)

    assert tracking == Ambiguous(ELSEWHERE)


@pytest.mark.parametrize("state", [InstanceState.STOPPED, InstanceState.PENDING, InstanceState.UNKNOWN])
def test_a_superseding_machine_exists_in_every_state_but_the_last_two(state):
    assert reason_of(machine(), [ELSEWHERE], also_listed=[machine("i-2", state=state)]) is TerminateReason.SUPERSEDED


@pytest.mark.parametrize("at", [WEST, GCP], ids=str)
def test_the_same_id_under_another_place_is_ambiguous_even_if_something_is_listed_there(at):
    tracking = tracking_of(machine(at=EAST), [row(at=at)], also_listed=[machine(at=at)])

    assert isinstance(tracking, Ambiguous)


@pytest.mark.parametrize("at", [WEST, GCP], ids=str)
def test_a_machine_without_tag_is_ambiguous_when_its_id_stands_in_a_live_row_of_another_place(at):
    assert isinstance(tracking_of(machine(worker=None, at=EAST), [row(at=at)]), Ambiguous)


@pytest.mark.parametrize("at", [WEST, GCP], ids=str)
def test_a_machine_without_tag_is_anonymous_when_its_id_stands_in_a_terminal_row_of_another_place(at):
    rows = [row(at=at, state=WorkerState.COMPLETED)]

    assert reason_of(machine(worker=None, at=EAST), rows) is TerminateReason.ANONYMOUS


def test_a_row_of_another_cloud_with_the_same_id_is_ambiguous_although_the_tag_names_another_worker():
    assert isinstance(tracking_of(machine(worker="w-9", at=EAST), [row(at=GCP)]), Ambiguous)


def test_a_row_of_another_region_with_the_same_id_is_ambiguous_although_the_tag_names_another_worker():
    assert isinstance(tracking_of(machine(worker="w-9", at=EAST), [row(at=WEST)]), Ambiguous)


def test_a_terminal_row_that_points_elsewhere_says_nothing_of_this_machine():
    tracking = tracking_of(machine("i-1"), [row("w-1", "i-2", state=WorkerState.TERMINATED)])

    assert tracking == Untracked(TerminateReason.UNREGISTERED, has_row=False)


def test_a_row_that_names_the_machine_beats_one_that_points_elsewhere():
    assert isinstance(tracking_of(machine("i-1"), [ELSEWHERE, row("w-2", "i-1")]), Tracked)


@pytest.mark.parametrize("at", [EAST, WEST], ids=str)
def test_a_machine_whose_id_a_live_row_spells_in_another_case_is_ambiguous(at):
    misspelt = row("w-2", "I-1", at=at)

    assert tracking_of(machine("i-1", worker=None, at=EAST), [misspelt]) == Ambiguous(misspelt)


_NOBODY_SEES = "\u00ad\u034f\u115f\u1160\u17b4\u180b\u180f\u200b\u202e\u2060\u2800\u3164\ufe0f\uffa0\ufffd\U000e0100"


@pytest.mark.parametrize(
    "tag",
    [
        *("w-1 ", " w-1", "W-1", "w-1\t", "w -1", "w-\uff11", "w\u0301-1"),
        *(f"w{dash}1" for dash in "\u2010\u2011\u2012\u2013\u2014\u2212\ufe63\uff0d"),
        *(f"w-1{sign}" for sign in _NOBODY_SEES),
    ],
    ids=ascii,
)
def test_a_machine_whose_tag_is_that_of_a_launch_in_flight_but_for_case_or_blanks_is_ambiguous(tag):
    launch = row("w-1", None, state=WorkerState.LAUNCHING, created_at=NOW - MINUTE)

    assert tracking_of(machine("i-1", worker=tag), [launch]) == Ambiguous(launch)


@pytest.mark.parametrize(
    "misspelt",
    [
        row("w-2", "I-1", state=WorkerState.COMPLETED),
        row("W-1", None, state=WorkerState.LAUNCHING, created_at=NOW - 3 * HOUR),
        row("W-1", "i-2"),
        row("i-1", None, state=WorkerState.LAUNCHING, created_at=NOW - MINUTE),
        row("W-2", "w-1"),
    ],
    ids=["has ended", "was abandoned", "has a machine of its own", "has its id for a name", "has its tag for an id"],
)
def test_a_misspelt_row_holds_nothing_that_it_would_not_protect_if_it_were_spelt_well(misspelt):
    assert reason_of(machine("i-1"), [misspelt]) is TerminateReason.UNREGISTERED


def test_a_row_whose_id_was_pasted_from_where_dashes_are_made_beautiful_is_ambiguous():
    pasted = row("w-2", "i\u20130123456789abcdef0")

    assert tracking_of(machine("i-0123456789abcdef0", worker=None), [pasted]) == Ambiguous(pasted)


def test_one_row_in_doubt_outweighs_one_that_supersedes():
    rows = [ELSEWHERE, row("w-3", "i-1", at=WEST)]

    tracking = tracking_of(machine("i-1"), rows, also_listed=[machine("i-2")])

    assert isinstance(tracking, Ambiguous)


def test_an_expired_row_is_told_before_one_that_points_elsewhere():
    rows = [row("w-5", "i-1", heartbeat_at=NOW - HOUR), row("w-1", "i-2", heartbeat_at=NOW)]
    listed = [machine("i-2")]

    reason = reason_of(machine("i-1"), rows, also_listed=listed, wishes=policy(heartbeat_ttl=TTL))

    assert reason is TerminateReason.HEARTBEAT_EXPIRED


@pytest.mark.parametrize(
    ("asked_for", "about"),
    [
        (True, row("w-9", "i-1")),
        (True, row("w-1", "i-9")),
        (True, row("w-9", "i-9", state=WorkerState.LAUNCHING)),
        (True, row("w-9", "i-9", state=WorkerState.COMPLETED, updated_at=NOW + MINUTE + SECOND)),
        (True, row("w-9", "i-9", state=WorkerState.COMPLETED, unreadable=("updated_at",))),
        (False, row("w-9", "i-9", state=WorkerState.COMPLETED, updated_at=NOW + MINUTE)),
    ],
    ids=["its id", "its tag", "live", "a time to come", "a time that cannot be read", "a time that may be"],
)
def test_a_look_asks_for_the_rows_that_can_make_a_difference(about, *, asked_for):
    dead = about if about.state is not WorkerState.RUNNING else replace(about, state=WorkerState.TERMINATED)

    assert is_wanted(dead, interest_in([machine("i-1", worker="w-1")], NOW)) is asked_for
