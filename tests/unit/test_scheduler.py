from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta

import pytest

from reaperd.clock import SystemClock
from reaperd.scheduler import Rhythm

SOON = timedelta(seconds=0.2)
PATIENCE = 20.0


class Counter:
    """A job that counts its runs, and how many of them ran at once."""

    def __init__(self, body: Callable[[int], None] = lambda _: None) -> None:
        self._body = body
        self._changed = threading.Condition()
        self.runs = 0
        self.at_once = 0
        self.most_at_once = 0

    def __call__(self) -> None:
        with self._changed:
            self.runs += 1
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            self._changed.notify_all()
        try:
            self._body(self.runs)
        finally:
            with self._changed:
                self.at_once -= 1
                self._changed.notify_all()

    def reaches(self, runs: int) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self.runs >= runs, PATIENCE)


@pytest.fixture
def missed() -> list[str]:
    return []


@pytest.fixture
def rhythm(missed: list[str]):
    made = Rhythm(SystemClock(), missed=missed.append)
    yield made
    made.stop()


def test_a_job_runs_at_once_and_then_again_and_again(rhythm: Rhythm):
    job = Counter()
    rhythm.every(SOON, "reconcile", job)
    rhythm.start()

    assert job.reaches(4)


def test_a_run_that_falls_due_while_the_one_before_runs_is_told_and_not_started(rhythm: Rhythm, missed: list[str]):
    let_go = threading.Event()
    job = Counter(lambda run: let_go.wait(PATIENCE) and None if run == 1 else None)
    rhythm.every(SOON, "reconcile", job)
    rhythm.start()
    assert job.reaches(1)
    ticks = Counter()
    rhythm.every(SOON, "audit", ticks)
    # Another job goes on beside the one that hangs.
    assert ticks.reaches(5)

    assert job.runs == 1
    assert missed.count("reconcile") >= 2
    let_go.set()
    assert job.reaches(2)
    assert job.most_at_once == 1


def test_an_error_ends_neither_the_job_nor_the_rhythm(rhythm: Rhythm):
    def fails(_run: int) -> None:
        msg = "nobody expected this"
        raise RuntimeError(msg)

    job = Counter(fails)
    rhythm.every(SOON, "reconcile", job)
    rhythm.start()

    assert job.reaches(3)


def test_a_job_can_be_started_by_hand(rhythm: Rhythm):
    job = Counter()
    rhythm.every(timedelta(hours=1), "reconcile", job)
    rhythm.start()
    assert job.reaches(1)

    rhythm.now("reconcile")

    assert job.reaches(2)


def test_a_changed_interval_counts_from_now(rhythm: Rhythm):
    job = Counter()
    rhythm.every(timedelta(hours=1), "reconcile", job)
    rhythm.start()
    assert job.reaches(1)

    rhythm.change(SOON, "reconcile")

    assert job.reaches(3)


def test_nothing_is_started_after_the_end(missed: list[str]):
    rhythm = Rhythm(SystemClock(), missed=missed.append)
    job = Counter()
    rhythm.every(SOON, "reconcile", job)
    rhythm.start()
    assert job.reaches(2)

    rhythm.stop()

    runs = job.runs
    assert not threading.Event().wait(0.6)
    assert job.runs <= runs + 1
