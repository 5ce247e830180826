"""What may go wrong with an alert.

`AlertError`
├── `ChannelSetupError`: the channel cannot be used as it is configured
├── `DeliveryError`: a channel did not take a notification
└── `RecordError`: what was stored cannot be read
"""

from __future__ import annotations

from datetime import timedelta


class AlertError(Exception):
    """Something about an alert went wrong."""


class ChannelSetupError(AlertError):
    """A channel cannot be built from its settings: an address that is none, a library that is not installed."""


class RecordError(AlertError):
    """A stored alert or notification cannot be read. It was not written by this program, or by a later one."""


class DeliveryError(AlertError):
    """A channel did not take all that it was given. Its text holds no secret: it may be logged as it stands."""

    def __init__(
        self,
        message: str,
        *,
        permanent: bool = False,
        retry_after: timedelta | None = None,
        delivered: tuple[str, ...] = (),
    ) -> None:
        """Keep whether, when and for what a retry makes sense.

        Args:
            message: What happened, for a person.
            permanent: The receiver refuses this for good: the same request will not pass until somebody has changed
                the channel's settings. What is unclear (a timeout, a broken answer) is not permanent.
            retry_after: The receiver asked for this much quiet; None if it asked for nothing.
            delivered: The ids of the notifications that were taken before it failed. They need not be sent again.
        """
        self.permanent = permanent
        self.retry_after = retry_after
        self.delivered = delivered
        super().__init__(message)
