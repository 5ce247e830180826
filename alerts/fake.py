"""Channels in memory, for tests of whoever sends. They keep the same promises as the real ones."""

from __future__ import annotations

from collections.abc import Sequence

from alerts.errors import DeliveryError
from alerts.model import Level, Notification


class FakeChannel:
    """Keeps what it is sent; fails when it is told to."""

    def __init__(self, name: str = "fake") -> None:
        """Start with nothing, taking everything."""
        self.name = name
        self.sent: list[Notification] = []
        """What it took, in order."""
        self.failure: DeliveryError | None = None
        """Raised for the next one, and for each after it, as long as it is set."""
        self.takes: int | None = None
        """So many are taken before it fails; None: as many as are sent, unless `failure` is set."""

    def send(self, notifications: Sequence[Notification]) -> None:
        """Keep each of them.

        Raises:
            DeliveryError: the failure that was set, once nothing more is taken.
        """
        delivered: list[str] = []
        for notification in notifications:
            if self.failure is not None and not self.takes:
                raise _again(self.failure, tuple(delivered))
            if self.takes:
                self.takes -= 1
            self.sent.append(notification)
            delivered.append(notification.id)


class FakeLevelChannel:
    """Keeps every level that it is told; fails when it is told to."""

    def __init__(self, name: str = "fake-level") -> None:
        """Start with nothing, taking everything."""
        self.name = name
        self.levels: list[Level] = []
        self.failure: DeliveryError | None = None
        """Raised as long as it is set."""

    def hold(self, level: Level) -> None:
        """Keep the level.

        Raises:
            DeliveryError: the failure that was set.
        """
        if self.failure is not None:
            raise _again(self.failure, ())
        self.levels.append(level)


def _again(failure: DeliveryError, delivered: tuple[str, ...]) -> DeliveryError:
    """Return the failure anew, so that no two raised ones share a traceback or what was delivered."""
    return DeliveryError(
        str(failure), permanent=failure.permanent, retry_after=failure.retry_after, delivered=delivered
    )
