"""Does the process get anywhere? Judged by monotonic time alone, never by what a cloud answers (rule 30)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

OVERDUE = 1.25
"""Times the interval, after which a run that did not start is started by hand: the wall clock was set back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tempo:
    """How often a job is to run, and how long one run may take."""

    interval: timedelta
    deadline: timedelta

    @property
    def stalled_after(self) -> timedelta:
        """Return how long after a start the next one may be, at most."""
        return 2 * self.interval + self.deadline


class Pulse:
    """The progress of one job. Written by the job's thread, read by others; every field is replaced whole."""

    def __init__(self, tempo: Tempo, born: float) -> None:
        """`born` is on the monotonic clock, like every time here."""
        self.tempo = tempo
        self._began = born
        self._nudged = born
        self._ended = born
        self._suspected: float | None = None
        self._running = False

    @property
    def running(self) -> bool:
        """True while a run is under way."""
        return self._running

    @property
    def ended(self) -> float:
        """Return when the last run came to its end; the birth of the process when none has."""
        return self._ended

    def begin(self, now: float) -> None:
        """Note that a run starts."""
        self._began = now
        self._running = True

    def end(self, now: float) -> None:
        """Note that it came to its end, whatever that was."""
        self._ended = now
        self._running = False

    def nudged(self, now: float) -> None:
        """Note that a run was asked for by hand: it gets as long again. What is stalled stays stalled."""
        self._nudged = now

    def overdue(self, now: float, sure: timedelta) -> bool:
        """Say whether a run should have started by now and did not, and has been found so for as long as `sure`."""
        since = now - max(self._began, self._nudged)
        if self._running or since <= self.tempo.interval.total_seconds() * OVERDUE:
            self._suspected = None
            return False
        if self._suspected is None:
            self._suspected = now
        return now - self._suspected >= sure.total_seconds()

    def stalled(self, now: float) -> str:
        """Return what is wrong, in words; empty while the job progresses."""
        since = now - self._began
        if self._running:
            over = since > 2 * self.tempo.deadline.total_seconds()
            return f"has been running for {since:.0f} s, over twice its deadline" if over else ""
        over = since > self.tempo.stalled_after.total_seconds()
        return f"has not started for {since:.0f} s" if over else ""
