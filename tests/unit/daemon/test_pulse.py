from __future__ import annotations

from datetime import timedelta

import pytest

from reaperd.daemon.pulse import Pulse, Tempo

END = 1000.5
"""When a run that began at 1000 came to its end."""
SURE = timedelta(seconds=1)


@pytest.fixture
def pulse() -> Pulse:
    return Pulse(Tempo(interval=timedelta(seconds=60), deadline=timedelta(seconds=240)), born=1000.0)


def test_a_run_may_take_twice_its_deadline(pulse: Pulse):
    pulse.begin(1000.0)

    assert pulse.stalled(1480.0) == ""
    assert pulse.stalled(1480.1) == "has been running for 480 s, over twice its deadline"


def test_a_run_may_start_two_intervals_and_a_deadline_after_the_one_before(pulse: Pulse):
    pulse.begin(1000.0)
    pulse.end(END)

    assert pulse.stalled(1360.0) == ""
    assert pulse.stalled(1360.1) == "has not started for 360 s"


def test_a_process_whose_first_run_never_starts_is_stalled_too(pulse: Pulse):
    assert pulse.stalled(1361.0) == "has not started for 361 s"


def test_a_run_that_is_late_is_overdue_once_that_is_sure(pulse: Pulse):
    pulse.begin(1000.0)
    pulse.end(END)

    assert not pulse.overdue(1075.0, SURE)
    assert not pulse.overdue(1075.1, SURE)
    assert not pulse.overdue(1076.0, SURE)
    assert pulse.overdue(1076.2, SURE)


def test_a_run_that_starts_while_it_is_suspected_is_not_overdue(pulse: Pulse):
    assert not pulse.overdue(1100.0, SURE)
    pulse.begin(1100.5)

    assert not pulse.overdue(1102.0, SURE)


def test_a_suspicion_does_not_outlive_the_run_that_cleared_it(pulse: Pulse):
    assert not pulse.overdue(1100.0, SURE)
    pulse.begin(1100.5)
    pulse.end(END)
    assert not pulse.overdue(1101.0, SURE)

    assert not pulse.overdue(1176.0, SURE)


def test_what_runs_is_never_overdue(pulse: Pulse):
    pulse.begin(1000.0)

    assert not pulse.overdue(9000.0, SURE)
    assert not pulse.overdue(9002.0, SURE)


def test_a_nudge_gives_it_time_to_start_and_hides_no_stall(pulse: Pulse):
    pulse.nudged(1300.0)

    assert not pulse.overdue(1374.0, SURE)
    assert not pulse.overdue(1375.9, SURE)
    assert pulse.stalled(1361.0)
