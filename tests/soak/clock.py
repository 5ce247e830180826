"""A clock that is moved from outside and runs faster than the machine's."""

from __future__ import annotations

import threading
import time
from datetime import datetime, timedelta

from reaperd.clock import SystemClock


class SoakClock(SystemClock):
    """The clocks of the daemon under test: `rate` of their seconds go into one real second, and `set` moves them on."""

    def __init__(self, now: datetime) -> None:
        self._lock = threading.Lock()
        self._origin = now
        self._passed = 0.0
        self._since = time.monotonic()
        self._rate = 1.0
        self._wrong_by = timedelta()

    def monotonic(self) -> float:
        with self._lock:
            return self._passed + (time.monotonic() - self._since) * self._rate

    def now(self) -> datetime:
        return self.right() + self._wrong_by

    def right(self) -> datetime:
        """Return what the wall clock would show, had nobody set it wrong."""
        return self._origin + timedelta(seconds=self.monotonic())

    def since_boot(self) -> timedelta:
        return timedelta(seconds=self.monotonic())

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds / self._rate)

    def set(self, moment: datetime, *, rate: float, wrong_by: timedelta) -> None:
        """Go on to this moment, never back; run at this rate from there; show the wall time so much wrong."""
        ahead = max((moment - self.right()).total_seconds(), 0.0)
        passed = self.monotonic() + ahead
        with self._lock:
            self._passed, self._since, self._rate = passed, time.monotonic(), rate
        self._wrong_by = wrong_by
