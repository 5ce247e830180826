"""Alerts to people's chats, mails and pagers, by Apprise: an optional library that knows some 130 services.

Its URLs hold tokens and passwords, and its results and log entries may repeat them: an error tells the service's name
and the kind of failure, nothing that came from Apprise itself.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Protocol

from alerts.errors import ChannelSetupError, DeliveryError
from alerts.model import Digest, Kind, Notification, Severity
from alerts.text import visible
from alerts.web import TIMEOUT
from alerts.wording import body, title

LIBRARY = "apprise"
_TYPES: Mapping[Severity, str] = {
    Severity.INFO: "info",
    Severity.WARNING: "warning",
    Severity.CRITICAL: "failure",
}


class Result(Protocol):
    """What a notifier says of a delivery; true only if every service took it."""

    @property
    def status(self) -> object:
        """Return how it ended: success, partial, failure, no match, timeout."""
        ...


class Notifier(Protocol):
    """The part of `apprise.Apprise` that is used."""

    def add(self, servers: str) -> bool:
        """Take one URL; false if no service knows it."""
        ...

    def notify(
        self,
        body: str,
        title: str = "",
        *,
        notify_type: str,
        body_format: str,
        interpret_escapes: bool,
        timeout: float,
    ) -> Result | bool:
        """Deliver to every service."""
        ...


class AppriseChannel:
    """Sends each notification as one plain text to one service."""

    def __init__(
        self, notifier: Notifier, *, deployment: str, timeout: timedelta = TIMEOUT, name: str = LIBRARY
    ) -> None:
        """Keep a notifier that knows its services. `apprise_channel` makes one."""
        self._notifier = notifier
        self._deployment = deployment
        self._timeout = timeout
        self._name = name

    @property
    def name(self) -> str:
        """Return the name that metrics and logs use."""
        return self._name

    def send(self, notifications: Sequence[Notification]) -> None:
        """Deliver each of them, in this order.

        Raises:
            DeliveryError: as soon as one is not taken. Apprise does not say whether trying again will help, so it is
                never permanent.
        """
        delivered: list[str] = []
        for notification in notifications:
            self._deliver(notification, tuple(delivered))
            delivered.append(notification.id)

    def _deliver(self, notification: Notification, delivered: tuple[str, ...]) -> None:
        try:
            result = self._notifier.notify(
                body(notification),
                title(notification, self._deployment),
                notify_type=_type(notification),
                body_format="text",
                interpret_escapes=False,
                timeout=self._timeout.total_seconds(),
            )
        except (OSError, TypeError, ValueError, RuntimeError) as error:
            message = f"{self._name}: Apprise failed with {type(error).__name__}"
            raise DeliveryError(message, delivered=delivered) from None
        # PARTIAL, TIMEOUT and NOMATCH are false: whoever did not get it must get it.
        if not result:
            how = str(getattr(getattr(result, "status", None), "name", "failure")).lower()
            message = f"{self._name}: Apprise says {visible(how)}: the service did not take it"
            raise DeliveryError(message, delivered=delivered)


def apprise_channel(url: str, *, deployment: str, timeout: timedelta = TIMEOUT, name: str = LIBRARY) -> AppriseChannel:
    """Return a channel to the service of one Apprise URL.

    Raises:
        ChannelSetupError: if Apprise is not installed, or knows no such service.
    """
    try:
        library = importlib.import_module(LIBRARY)
    except ImportError as error:
        message = f"channel {name}: Apprise is not installed: pip install 'reaperd[notify]'"
        raise ChannelSetupError(message) from error
    notifier: Notifier = library.Apprise()
    if not notifier.add(url):
        scheme = visible(url.partition("://")[0]) if "://" in url else "(none)"
        message = f"channel {name}: Apprise does not understand the URL of scheme {scheme}; see `apprise --details`"
        raise ChannelSetupError(message)
    return AppriseChannel(notifier, deployment=deployment, timeout=timeout, name=name)


def _type(notification: Notification) -> str:
    if isinstance(notification, Digest):
        return "success" if notification.of is Kind.RESOLVED else _TYPES[notification.severity]
    return "success" if notification.kind is Kind.RESOLVED else _TYPES[notification.condition.severity]
