"""The one place that asks the machine what time it is."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta


class SystemClock:
    """The machine's clocks: the wall, one that never steps, and one that also counts a suspend."""

    def now(self) -> datetime:
        """Return the wall time in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds that never step (and stand still while the machine is suspended)."""
        return time.monotonic()

    def since_boot(self) -> timedelta:
        """Return the time since boot, a suspend included."""
        return timedelta(seconds=time.clock_gettime(time.CLOCK_BOOTTIME))

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


class ManualClock:
    """A clock that moves only when told. For tests and rehearsed stories."""

    def __init__(self, now: datetime) -> None:
        """Start at the given wall time."""
        self._now = now
        self._elapsed = 0.0

    def now(self) -> datetime:
        """Return the wall time that was set."""
        return self._now

    def monotonic(self) -> float:
        """Return the seconds that were advanced."""
        return self._elapsed

    def since_boot(self) -> timedelta:
        """Return the time that was advanced."""
        return timedelta(seconds=self._elapsed)

    def sleep(self, seconds: float) -> None:
        """Advance."""
        self.advance(timedelta(seconds=seconds))

    def advance(self, by: timedelta) -> None:
        """Let time pass on every clock."""
        self._now += by
        self._elapsed += by.total_seconds()

    def step_wall(self, by: timedelta) -> None:
        """Move the wall clock alone, as a wrong NTP server does."""
        self._now += by
