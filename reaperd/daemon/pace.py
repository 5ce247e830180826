"""Do passes end? Watched from a thread of its own, so that it is told although the scheduler is dead."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta

from alerts.looks import late
from alerts.model import Condition
from providers.base import Clock
from reaperd.daemon.pulse import Pulse
from reaperd.report.logs import Logger

GLANCE = timedelta(milliseconds=500)
SLEPT = timedelta(seconds=10)
"""Whoever did not glance for so long was stopped itself, with the passes: they get their time again."""

Tell = Callable[[tuple[Condition, ...]], bool]
"""Tells what holds, or that it does not; False when it could not be told."""


class PaceWatch:
    """Tells when no pass has ended for five intervals, and when one ends again. By monotonic time."""

    def __init__(self, pulse: Pulse, clock: Clock, tell: Tell, log: Logger) -> None:
        """Nothing starts before `start`."""
        self._log = log
        self._pulse = pulse
        self._clock = clock
        self._tell = tell
        self._born = self._glanced = self._since = clock.monotonic()
        self._known: bool | None = None
        """What was told last; None: an earlier process may have told that they are late."""
        self._told_at = 0.0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pace", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Tell nothing more."""
        self._done.set()

    def begin_anew(self) -> None:
        """Give the passes their time again: what was in time by the old interval is not late by the new one."""
        self._since = self._clock.monotonic()

    def glance(self) -> None:
        """Look once, and tell what is news, or is still so after another interval."""
        now = self._clock.monotonic()
        if now - self._glanced > SLEPT.total_seconds():
            self._since = now
        self._glanced = now
        ended = max(self._pulse.ended, self._since)
        interval = self._pulse.tempo.interval
        wall = self._clock.now().replace(microsecond=0)
        found = late(wall - timedelta(seconds=int(now - ended)), wall, interval)
        if self._is_news(bool(found), now - self._told_at >= interval.total_seconds()) and self._tell(found):
            self._known, self._told_at = bool(found), now

    def _is_news(self, is_late: bool, again: bool) -> bool:  # noqa: FBT001 - the two things that it depends on
        if is_late:
            return not self._known or again
        # Only the end of a pass proves that they are in time: the start of a process does not.
        return self._known is not False and self._pulse.ended > self._born

    def _run(self) -> None:
        while not self._done.wait(GLANCE.total_seconds()):
            try:
                self.glance()
            except Exception:  # noqa: BLE001 - as of each loop that must outlive its work
                # Whoever watches over the others must outlive its own mistakes: it is told, and looks again.
                self._log.exception("pace_watch_failed")
