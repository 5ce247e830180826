"""Alerts as events in the log, for people whose logs are collected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from alerts.errors import DeliveryError
from alerts.model import Condition, Digest, Notification, Severity
from alerts.text import identity, visible
from alerts.wording import MEANINGS, moment, shown_data

_LEVELS: Mapping[Severity, int] = {Severity.INFO: 20, Severity.WARNING: 30, Severity.CRITICAL: 40}
"""As `logging` counts them."""


class Logger(Protocol):
    """Takes an event with fields, as structlog does."""

    def log(self, level: int, event: str, **fields: object) -> object:
        """Write one event."""
        ...


class LogChannel:
    """Writes each notification as one event: `alert_firing`, `alert_reminder`, … `alert_digest`."""

    def __init__(self, logger: Logger, *, name: str = "log") -> None:
        """Keep where to write to."""
        self._logger = logger
        self._name = name

    @property
    def name(self) -> str:
        """Return the name that metrics and logs use."""
        return self._name

    def send(self, notifications: Sequence[Notification]) -> None:
        """Write each of them.

        Raises:
            DeliveryError: if the log cannot be written to, such as on a full disk.
        """
        delivered: list[str] = []
        for notification in notifications:
            level, event, fields = _event(notification)
            try:
                self._logger.log(level, event, alert_id=notification.id, **fields)
            except (OSError, ValueError) as error:  # ValueError: the stream is closed.
                message = f"the log cannot be written: {visible(str(error))}"
                raise DeliveryError(message, delivered=tuple(delivered)) from error
            delivered.append(notification.id)


def _event(notification: Notification) -> tuple[int, str, Mapping[str, object]]:
    event = f"alert_{notification.kind}"
    if isinstance(notification, Digest):
        counts = {f"{t.cause} {visible(t.scope)}".rstrip(): t.count for t in notification.tallies}
        first = [identity(notice.condition.key) for notice in notification.first]
        about = {"of": str(notification.of), "total": notification.total, "counts": counts, "first": first}
        return _LEVELS[notification.severity], event, about
    condition = notification.condition
    return _LEVELS[condition.severity], event, {**_about(condition), "since": moment(notification.since)}


def _about(condition: Condition) -> Mapping[str, object]:
    return {
        "key": identity(condition.key),
        "cause": str(condition.cause),
        "severity": str(condition.severity),
        "summary": MEANINGS[condition.cause].summary,
        "data": dict(shown_data(condition, visible)),
    }
