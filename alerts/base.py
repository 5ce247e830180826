"""The ports of the channels."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol, runtime_checkable

from alerts.model import Level, Notification


class Clock(Protocol):
    """Where a channel gets its time from; given to it, never asked of the machine."""

    def now(self) -> datetime:
        """Return the wall time, timezone-aware, UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never step."""
        ...


@runtime_checkable
class Channel(Protocol):
    """Tells people, once for each notification. Delivered at least once: a receiver deduplicates by the id."""

    @property
    def name(self) -> str:
        """Return the name that metrics and logs use."""
        ...

    def send(self, notifications: Sequence[Notification]) -> None:
        """Deliver each notification, in this order, each within the channel's timeout. None: do nothing.

        Raises:
            DeliveryError: if the channel did not take all of them. Those that it took are in `delivered`; the one after
                them failed, and the rest was not tried.
        """
        ...


@runtime_checkable
class LevelChannel(Protocol):
    """Is told of everything that holds after each look, and keeps track itself: of repeats, silences and ends.

    It gets no notifications, so it needs no memory of ours. What is lost is made good by the next look.
    """

    @property
    def name(self) -> str:
        """Return the name that metrics and logs use."""
        ...

    def hold(self, level: Level) -> None:
        """Deliver all that stands, and what ended.

        Raises:
            DeliveryError: if the channel did not take all of it. Send the next look's level, not this one again.
        """
        ...
