"""The cloud's clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class CloudClock:
    """Stands where it was set until it is moved; runs with the machine's when it was not set."""

    def __init__(self, start: datetime | None = None) -> None:
        self._start = _aware(start)
        self._moved = timedelta()

    def now(self) -> datetime:
        """Return the cloud's time."""
        return (self._start or datetime.now(UTC)) + self._moved

    def date(self) -> datetime:
        """Return the time for the Date header: a running clock's moves do not show in it."""
        return self.now() if self._start else datetime.now(UTC)

    def advance(self, seconds: float) -> None:
        """Move it."""
        self._moved += timedelta(seconds=seconds)

    def set(self, moment: datetime) -> None:
        """Stop it at this time."""
        self._start, self._moved = _aware(moment), timedelta()


def _aware(moment: datetime | None) -> datetime | None:
    if moment is not None and moment.tzinfo is None:
        message = f"the cloud's time needs a zone: {moment}"
        raise ValueError(message)
    return moment
