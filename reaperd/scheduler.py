"""A rhythm: jobs at intervals, one run of each at a time. The only home of apscheduler."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, timedelta
from typing import cast

from apscheduler.events import EVENT_JOB_MAX_INSTANCES, EVENT_JOB_MISSED, JobEvent
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.interval import IntervalTrigger

from providers.base import Clock

JITTER = 0.05
"""Of the interval: so that many daemons that were started together do not stay together."""


class Rhythm:
    """Runs each job at its interval, in a thread of its own; the first time at once.

    A run that falls due while the one before still runs is not started, and told to `missed`. Runs that fell due
    while the process could not run (a suspend, a SIGSTOP) become one. An error in a job ends neither.
    """

    def __init__(self, clock: Clock, *, missed: Callable[[str], None]) -> None:
        """Nothing starts before `start`."""
        self._clock = clock
        self._missed = missed
        self._scheduler = BackgroundScheduler(
            timezone=UTC,
            executors={"default": ThreadPoolExecutor(1)},
            # Without the last one a run that is a second late is dropped: the library's default grace is one second.
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
        )
        self._scheduler.add_listener(self._told, EVENT_JOB_MAX_INSTANCES | EVENT_JOB_MISSED)

    def every(self, interval: timedelta, name: str, job: Callable[[], None]) -> None:
        """Run a job at an interval from now on; one of the same name is replaced."""
        # A pool for each: a job that hangs must not keep another from starting.
        self._scheduler.add_executor(ThreadPoolExecutor(1), alias=name)
        self._scheduler.add_job(
            job, self._trigger(interval), id=name, name=name, executor=name, next_run_time=self._clock.now()
        )

    def change(self, interval: timedelta, name: str) -> None:
        """Give a job another interval, counted from now."""
        self._scheduler.reschedule_job(name, trigger=self._trigger(interval))

    def now(self, name: str) -> None:
        """Let a job run now, whatever the wall clock says of its next time."""
        self._scheduler.modify_job(name, next_run_time=self._clock.now())

    def start(self) -> None:
        """Begin."""
        self._scheduler.start()

    def stop(self) -> None:
        """Start nothing more. What runs goes on: whoever stops the rhythm asks it to come to its end."""
        self._scheduler.shutdown(wait=False)

    def _trigger(self, interval: timedelta) -> IntervalTrigger:
        seconds = interval.total_seconds()
        # It takes any number; its unwritten types are guessed from its defaults.
        return IntervalTrigger(seconds=cast("int", seconds), timezone=UTC, jitter=seconds * JITTER)

    def _told(self, event: JobEvent) -> None:
        self._missed(str(event.job_id))
