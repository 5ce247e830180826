"""What one look teaches (rules 10 to 12), each on its boundary."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from reaperd.core.model import TerminateReason
from reaperd.core.sightings import absent, advance, age, believable
from reaperd.core.tracking import Ambiguous, Tracked, Untracked
from tests.support.worlds import HOUR, MINUTE, NOW, SECOND, machine, row, sighting

SPACING = timedelta(seconds=30)
TRACKED = Tracked(row())
AMBIGUOUS = Ambiguous(row())
NO_ROW = Untracked(TerminateReason.UNREGISTERED, has_row=False)
DEAD_ROW = Untracked(TerminateReason.RETIRED, has_row=True)


# ---------------------------------------------------------------- rule 11: the count


def test_the_first_untracked_look_counts_one():
    after = advance(None, NO_ROW, NOW, SPACING)

    assert (after.confirmations, after.counted_at) == (1, NOW)
    assert (after.first_seen_at, after.last_seen_at) == (NOW, NOW)


def test_a_further_untracked_look_counts_one_more():
    prior = sighting(confirmations=1, counted_at=NOW - MINUTE)

    after = advance(prior, NO_ROW, NOW, SPACING)

    assert (after.confirmations, after.counted_at) == (2, NOW)


def test_two_looks_exactly_half_an_interval_apart_count_as_two():
    prior = sighting(confirmations=1, counted_at=NOW - SPACING)

    assert advance(prior, NO_ROW, NOW, SPACING).confirmations == 2


def test_two_looks_closer_than_half_an_interval_count_as_one():
    prior = sighting(confirmations=1, counted_at=NOW - SPACING + SECOND)

    after = advance(prior, NO_ROW, NOW, SPACING)

    assert (after.confirmations, after.counted_at) == (1, NOW - SPACING + SECOND)
    assert after.last_seen_at == NOW


def test_many_close_looks_count_as_soon_as_the_first_of_them_is_far_enough_away():
    state = advance(None, NO_ROW, NOW, SPACING)

    for seconds in (10, 20, 30):
        state = advance(state, NO_ROW, NOW + timedelta(seconds=seconds), SPACING)

    assert state.confirmations == 2


@pytest.mark.parametrize("found", [TRACKED, AMBIGUOUS], ids=["tracked", "in doubt"])
def test_a_look_starts_the_count_anew_when_the_machine_is(found):
    prior = sighting(confirmations=2, counted_at=NOW - MINUTE)

    after = advance(prior, found, NOW, SPACING)

    assert (after.confirmations, after.counted_at) == (0, None)
    assert after.first_seen_at == prior.first_seen_at


def test_an_absent_machine_loses_its_count_and_keeps_its_first_sight():
    prior = sighting(confirmations=2, counted_at=NOW - MINUTE, last_seen_at=NOW - MINUTE)

    after = absent(prior, NOW)

    assert after is not None
    assert (after.confirmations, after.counted_at) == (0, None)
    assert (after.first_seen_at, after.last_seen_at) == (prior.first_seen_at, prior.last_seen_at)


def test_an_absent_machine_is_remembered_for_a_day():
    day = timedelta(hours=24)

    assert absent(sighting(last_seen_at=NOW - day), NOW) is not None
    assert absent(sighting(last_seen_at=NOW - day - SECOND), NOW) is None


def test_a_row_in_doubt_that_goes_has_vanished_if_no_other_was_known():
    doubted = advance(None, AMBIGUOUS, NOW, SPACING)

    after = advance(doubted, NO_ROW, NOW + MINUTE, SPACING)

    assert (doubted.tracked_at, doubted.tracked_by, doubted.vanished_at) == (NOW, "w-1", None)
    assert after.vanished_at == NOW + MINUTE


def test_a_doubt_by_another_row_makes_nobody_forget_the_one_that_tracked_it():
    tracked = advance(None, Tracked(row("w-7")), NOW, SPACING)

    doubted = advance(tracked, AMBIGUOUS, NOW + MINUTE, SPACING)
    after = advance(
        doubted,
        Untracked(TerminateReason.SUPERSEDED, has_row=True, workers=frozenset({"w-1"})),
        NOW + 2 * MINUTE,
        SPACING,
    )

    assert (doubted.tracked_at, doubted.tracked_by) == (NOW, "w-7")
    assert after.vanished_at == NOW + 2 * MINUTE


# ---------------------------------------------------------------- rule 12: the row that vanished


def test_a_tracked_look_is_remembered():
    assert advance(None, TRACKED, NOW, SPACING).tracked_at == NOW


def test_the_first_look_without_the_row_of_a_tracked_machine_is_remembered():
    assert advance(sighting(tracked_at=NOW - MINUTE), NO_ROW, NOW, SPACING).vanished_at == NOW


def test_later_looks_do_not_move_the_moment_at_which_a_row_vanished():
    prior = sighting(tracked_at=NOW - HOUR, vanished_at=NOW - MINUTE, confirmations=1, counted_at=NOW - MINUTE)

    assert advance(prior, NO_ROW, NOW, SPACING).vanished_at == NOW - MINUTE


def test_a_look_too_close_to_be_counted_notices_that_the_row_vanished():
    prior = sighting(tracked_at=NOW - MINUTE, confirmations=1, counted_at=NOW - SECOND)

    assert advance(prior, NO_ROW, NOW, SPACING).vanished_at == NOW


def test_a_row_in_a_terminal_state_has_not_vanished():
    assert advance(sighting(tracked_at=NOW - MINUTE), DEAD_ROW, NOW, SPACING).vanished_at is None


def test_a_machine_that_was_never_tracked_has_no_row_to_lose():
    assert advance(sighting(), NO_ROW, NOW, SPACING).vanished_at is None


@pytest.mark.parametrize("found", [TRACKED, AMBIGUOUS, DEAD_ROW], ids=["tracked", "in doubt", "retired"])
def test_a_row_that_comes_back_ends_the_wait(found):
    prior = sighting(tracked_at=NOW - HOUR, vanished_at=NOW - MINUTE)

    assert advance(prior, found, NOW, SPACING).vanished_at is None


# ---------------------------------------------------------------- rule 10: age


def test_age_counts_from_the_launch():
    assert age(machine(age=HOUR), None, NOW) == HOUR


def test_age_counts_from_the_first_sight_when_that_is_older():
    assert age(machine(age=MINUTE), sighting(first_seen_at=NOW - HOUR), NOW) == HOUR


def test_age_counts_from_the_launch_when_that_is_older():
    assert age(machine(age=2 * HOUR), sighting(first_seen_at=NOW - HOUR), NOW) == 2 * HOUR


def test_a_machine_without_launch_time_and_memory_has_no_age():
    assert age(machine(age=None), None, NOW) is None


ZERO = datetime(1, 1, 1, tzinfo=UTC)
UNIX_ZERO = datetime(1970, 1, 1, tzinfo=UTC)
LAST_BEFORE = datetime(2005, 12, 31, 23, 59, 59, tzinfo=UTC)
FUTURE = NOW + SECOND


@pytest.mark.parametrize("launched_at", [None, ZERO, UNIX_ZERO, LAST_BEFORE, FUTURE], ids=str)
def test_an_unbelievable_launch_time_leaves_the_first_sight_alone(launched_at):
    odd = machine(launched_at=launched_at)

    assert age(odd, None, NOW) is None
    assert age(odd, sighting(first_seen_at=NOW - MINUTE), NOW) == MINUTE


@pytest.mark.parametrize("launched_at", [datetime(2006, 1, 1, tzinfo=UTC), NOW], ids=str)
def test_the_first_moment_of_2006_and_this_very_moment_are_believable(launched_at):
    assert believable(launched_at, NOW) == launched_at


def test_a_first_sight_in_the_future_gives_no_negative_age():
    assert age(machine(age=None), sighting(first_seen_at=NOW + HOUR), NOW) == timedelta(0)


def test_an_older_workers_row_is_not_the_row_that_vanished():
    prior = sighting(tracked_at=NOW, tracked_by="w-new")
    of_the_old_one = Untracked(TerminateReason.RETIRED, has_row=True, workers=frozenset({"w-old"}))
    of_itself = Untracked(TerminateReason.RETIRED, has_row=True, workers=frozenset({"w-new"}))

    assert advance(prior, of_the_old_one, NOW, SPACING).vanished_at == NOW
    assert advance(prior, of_itself, NOW, SPACING).vanished_at is None
