"""Brings one channel what waits for it in the ledger: in order, at least once, never faster than it takes it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from random import SystemRandom
from typing import Protocol

from alerts.backoff import Backoff, may_send_at, next_try_at
from alerts.errors import ChannelSetupError, DeliveryError
from alerts.model import Level, Notification
from alerts.text import visible
from providers.base import Clock
from reaperd.core.telling import Waiting
from reaperd.delivery.line import LevelLine, Line
from reaperd.ledger.alarms import SET_ASIDE_AFTER
from reaperd.ledger.lease import Lease
from reaperd.ledger.ledger import Ledger
from reaperd.report.logs import Logger
from reaperd.report.series import Delivery

LONGEST_ERROR = 500
_DICE = SystemRandom()


class Counting(Protocol):
    """Counts what became of messages, as the metrics do."""

    def alerted(self, channel: str, outcome: Delivery) -> None:
        """Take in what became of one message."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """What every delivery needs of the process."""

    open_ledger: Callable[[], Ledger]
    lease: Callable[[], Lease | None]
    """The lease, if it is ours. What it says may be late: the ledger is asked too, before each message."""
    clock: Clock
    log: Logger
    counted: Counting
    backoff: Backoff = field(default_factory=Backoff)

    def may(self, ledger: Ledger) -> bool:
        """Say whether the lease is ours at this moment (rule 18)."""
        lease = self.lease()
        return lease is not None and ledger.holds_lease(lease, self.clock.now())

    def taken(self, channel: str, **about: object) -> None:
        """Tell that a channel took a message."""
        self.counted.alerted(channel, Delivery.SENT)
        self.log.info("alert_delivered", channel=channel, **about)

    def refused(self, channel: str, error: Exception, **about: object) -> str:
        """Tell that a channel did not take a message, and return why."""
        self.counted.alerted(channel, Delivery.FAILED)
        if isinstance(error, DeliveryError | ChannelSetupError):
            why = visible(str(error), LONGEST_ERROR)
            self.log.warning("alert_not_delivered", channel=channel, detail=why, **about)
            return why
        # Its text may hold anything, the address of the channel too; the log takes secrets out.
        why = f"an error that nobody expected: {type(error).__name__}"
        self.log.error("alert_not_delivered", channel=channel, detail=why, exc_info=error, **about)
        return why

    def again_at(self, failures: int, error: Exception | None = None) -> datetime:
        """Return when to try again after so many failures in a row."""
        asked = error.retry_after if isinstance(error, DeliveryError) else None
        return next_try_at(failures, self.clock.now(), self.backoff, jitter=_DICE.random(), retry_after=asked)


@dataclass(slots=True)
class Pace:
    """How often one channel was tried, and how often in a row in vain."""

    failures: int = 0
    trouble: str = ""
    """Why it did not take the last one; empty when it did."""
    _sent: deque[datetime] = field(default_factory=deque)

    def free_at(self, now: datetime, backoff: Backoff) -> datetime:
        """Return from when on the channel may be given one more."""
        return may_send_at(self._sent, now, backoff)

    def tried(self, now: datetime, backoff: Backoff) -> None:
        """Note an attempt."""
        self._sent.append(now)
        while len(self._sent) > backoff.per_minute:
            self._sent.popleft()


class Postman:
    """Empties the outbox of one channel. Belongs to one thread."""

    def __init__(self, line: Line, post: Post, pace: Pace | None = None) -> None:
        """Nothing is opened or made before `deliver`."""
        self.line = line
        self._post = post
        self._pace = pace or Pace()

    def deliver(self, ledger: Ledger, stopping: Callable[[], bool]) -> datetime | None:
        """Bring what is due, one by one; return when to come again, None when nothing waits.

        Raises:
            LedgerUnusableError: if the ledger cannot be used. What was sent meanwhile is sent once more.
        """
        clock, backoff = self._post.clock, self._post.backoff
        while not stopping():
            waiting = ledger.alarms.due(self.line.name, clock.now())
            if waiting is None:
                break
            free_at = self._pace.free_at(clock.now(), backoff)
            if free_at > clock.now():
                return free_at
            # Before each: a process that was frozen since the last one may have lost the lease (rule 18).
            if not self._post.may(ledger):
                return None
            self._bring(ledger, waiting)
        return ledger.alarms.next_due_at(self.line.name)

    def _bring(self, ledger: Ledger, waiting: Waiting) -> None:
        if waiting.notification is None:
            self._post.log.error("alert_given_up", channel=self.line.name, detail="its record cannot be read")
            ledger.alarms.delivered(waiting)
            return
        about = about_of(waiting.notification)
        self._pace.tried(self._post.clock.now(), self._post.backoff)
        error = sent(self.line, waiting.notification)
        if error is None:
            # Whatever kills the process before this is written has it sent once more, under the same id.
            ledger.alarms.delivered(waiting)
            self._pace.failures, self._pace.trouble = 0, ""
            self._post.taken(self.line.name, **about)
            return
        why = self._pace.trouble = self._post.refused(self.line.name, error, attempts=waiting.attempts + 1, **about)
        if isinstance(error, DeliveryError) and error.permanent:
            self._post.log.error("alert_given_up", channel=self.line.name, detail=why, **about)
            ledger.alarms.delivered(waiting)
            return
        self._put_off(ledger, waiting, error, why)

    def _put_off(self, ledger: Ledger, waiting: Waiting, error: Exception, why: str) -> None:
        # After a restart the receiver is no better than it was before.
        failures = max(self._pace.failures, waiting.attempts) + 1
        if waiting.attempts < SET_ASIDE_AFTER:
            # One that was set aside says more about itself than about the receiver.
            self._pace.failures = failures
        ledger.alarms.failed(waiting, why, next_try_at=self._post.again_at(failures, error))


def sent(line: Line, notification: Notification) -> Exception | None:
    """Send one message; return what went wrong, None when it was taken."""
    try:
        line.make().send((notification,))
    except DeliveryError as error:
        return None if notification.id in error.delivered else error
    except Exception as error:  # noqa: BLE001 - a channel's bug must not end its thread: counted, told, tried again
        return error
    return None


def held(line: LevelLine, level: Level) -> Exception | None:
    """Tell a channel all that holds; return what went wrong, None when it was taken."""
    try:
        line.make().hold(level)
    except Exception as error:  # noqa: BLE001 - as above: counted, told, and made good by the next look
        return error
    return None


def about_of(notification: Notification) -> dict[str, object]:
    """Return what a log says of a message."""
    key = getattr(getattr(notification, "condition", None), "key", "")
    told: dict[str, object] = {"alert_id": notification.id, "kind": str(notification.kind)}
    return told | ({"key": key} if key else {})
