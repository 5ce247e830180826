"""A channel as deliveries see it: its name, what it hears, and how it is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from alerts.base import Channel, LevelChannel
from alerts.lifecycle import Audience


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One channel. It is made anew for each delivery: what it reads from files may have changed."""

    audience: Audience
    make: Callable[[], Channel]
    """Raises ChannelSetupError when an address is none, DeliveryError when a file cannot be read."""

    @property
    def name(self) -> str:
        """Return what metrics, logs and the outbox call it."""
        return self.audience.name


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelLine:
    """One channel that is told all that holds after each look."""

    audience: Audience
    make: Callable[[], LevelChannel]
    """As of a Line."""

    @property
    def name(self) -> str:
        """Return what metrics and logs call it."""
        return self.audience.name


AnyLine = Line | LevelLine
