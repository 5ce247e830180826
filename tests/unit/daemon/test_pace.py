"""Passes that do not end are told of, from a thread that none of them can hold up."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta

import pytest

from reaperd.clock import ManualClock
from reaperd.daemon.pace import PaceWatch
from reaperd.daemon.pulse import Pulse, Tempo
from reaperd.report.logs import build_logger

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


class Watched:
    """A watch over passes once a minute, with a glance each second."""

    def __init__(self) -> None:
        self.clock = ManualClock(datetime(2026, 1, 10, 12, tzinfo=UTC))
        self.pulse = Pulse(Tempo(interval=MINUTE, deadline=MINUTE), self.clock.monotonic())
        self.told: list[list[str]] = []
        self.leads = True
        log = build_logger(as_json=True, now=self.clock.now, stream=io.StringIO())
        self.pace = PaceWatch(self.pulse, self.clock, self._tell, log)

    def _tell(self, found) -> bool:
        if self.leads:
            self.told.append([condition.key for condition in found])
        return self.leads

    def run(self, seconds: int, *, ends_every: int = 0) -> None:
        for second in range(1, seconds + 1):
            self.clock.advance(SECOND)
            if ends_every and second % ends_every == 0:
                self.pulse.end(self.clock.monotonic())
            self.pace.glance()


@pytest.fixture
def watched() -> Watched:
    return Watched()


def test_passes_that_end_in_time_are_told_of_once_since_an_earlier_process_may_have_told_otherwise(watched: Watched):
    watched.run(59)
    assert watched.told == []

    watched.run(600, ends_every=60)

    assert watched.told == [[]]


def test_five_intervals_without_an_end_are_told_and_the_next_end_too(watched: Watched):
    watched.run(60, ends_every=60)
    watched.run(299)
    assert watched.told == [[]]

    watched.run(1)
    assert watched.told == [[], ["late"]]
    watched.run(60, ends_every=60)

    assert watched.told[-1] == []


def test_it_is_told_once_in_an_interval_while_it_lasts(watched: Watched):
    watched.run(300 + 180)

    assert watched.told == [["late"]] * 4


def test_what_could_not_be_told_is_told_as_soon_as_it_can(watched: Watched):
    watched.leads = False
    watched.run(400)
    watched.leads = True
    watched.run(1)

    assert watched.told == [["late"]]


def test_a_process_that_was_stopped_itself_gives_the_passes_their_time_again(watched: Watched):
    watched.run(60, ends_every=60)
    watched.clock.advance(60 * MINUTE)
    watched.run(299)

    assert watched.told == [[]]


def test_a_wall_clock_that_is_set_makes_nothing_late(watched: Watched):
    watched.run(60, ends_every=60)
    watched.clock.step_wall(timedelta(days=1))
    watched.run(120)

    assert watched.told == [[]]


def test_another_interval_gives_the_passes_their_time_again(watched: Watched):
    watched.run(60, ends_every=60)
    watched.run(30)

    watched.pulse.tempo = Tempo(interval=2 * SECOND, deadline=MINUTE)
    watched.pace.begin_anew()
    watched.run(9)
    assert watched.told == [[]]

    watched.run(1)
    assert watched.told[-1] == ["late"]
