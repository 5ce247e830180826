"""The thread of one channel: what is told directly first, then what waits in the ledger."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from datetime import datetime, timedelta

from alerts.backoff import LONGEST_QUIET
from alerts.errors import DeliveryError
from alerts.model import Level, Notification
from reaperd.delivery.line import AnyLine, LevelLine, Line
from reaperd.delivery.postman import Pace, Post, Postman, about_of, held, sent
from reaperd.errors import LedgerUnusableError
from reaperd.report.logs import log_context

GLANCE = timedelta(seconds=5)
"""How often the outbox is looked into unasked: another process may have put something in, or made it due."""

DIRECT = 20
"""So many messages wait at most that go through no ledger; the oldest are dropped."""


class _Thread:
    """A thread that works a round whenever it is woken, and now and then."""

    def __init__(self, name: str, post: Post) -> None:
        self._post = post
        self._waking = threading.Event()
        self._ending = threading.Event()
        # A channel that hangs must not keep the process.
        self._thread = threading.Thread(target=self._run, name=f"alerts-{name}", daemon=True)
        self._name = name

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def wake(self) -> None:
        """Look for something to do now."""
        self._waking.set()

    def stop(self) -> None:
        """Begin no further delivery."""
        self._ending.set()
        self._waking.set()

    def join(self, seconds: float) -> None:
        """Wait for the end of the one that is under way, but not for longer than this."""
        if self._thread.is_alive():
            self._thread.join(seconds)

    def _run(self) -> None:
        with log_context(channel=self._name):
            while not self._ending.is_set():
                wait = self._safe_round()
                self._waking.wait(wait.total_seconds())
                self._waking.clear()

    def _safe_round(self) -> timedelta:
        try:
            return self._round()
        except Exception:
            # One bad round must not silence a channel for ever: it is told, and tried again.
            self._post.log.exception("delivery_failed")
            return GLANCE

    def _round(self) -> timedelta:
        """Do what is to be done; return how long to wait for the next time."""
        raise NotImplementedError


class OutboxWorker(_Thread):
    """Serves a channel that takes notifications."""

    def __init__(self, line: Line, post: Post) -> None:
        """Nothing starts before `start`."""
        super().__init__(line.name, post)
        self._pace = Pace()
        self._postman = Postman(line, post, self._pace)
        self._direct: deque[Notification] = deque(maxlen=DIRECT)
        self._failures = 0
        self._again: datetime | None = None

    @property
    def trouble(self) -> str:
        """Return why the channel did not take the last message; empty when it did."""
        return self._pace.trouble

    def takes(self, line: AnyLine) -> bool:
        """Go on with changed settings of this channel; False when it is a channel of another kind."""
        if not isinstance(line, Line):
            return False
        self._postman.line = line
        return True

    def directly(self, notifications: Iterable[Notification]) -> None:
        """Bring these without the ledger and without the lease: they say that there is no ledger (rule 18)."""
        self._direct.extend(notifications)
        self.wake()

    def _round(self) -> timedelta:
        self._say_directly()
        try:
            with self._post.open_ledger() as ledger:
                again = self._postman.deliver(ledger, self._ending.is_set)
        except LedgerUnusableError:
            # The pass that finds it so says so, directly. What waits in it waits on.
            again = None
        return self._wait(again)

    def _wait(self, *moments: datetime | None) -> timedelta:
        now = self._post.clock.now()
        known = [moment - now for moment in (*moments, self._again if self._direct else None) if moment is not None]
        # Never longer than a glance: another process may have something for this channel, or the clock be set.
        return min([GLANCE, *(max(wait, timedelta(0)) for wait in known)])

    def _say_directly(self) -> None:
        while self._direct and not self._ending.is_set():
            now = self._post.clock.now()
            # A wait that is longer than any was set by a clock that ran ahead.
            if self._again is not None and now < self._again <= now + LONGEST_QUIET:
                return
            notification = self._direct[0]
            error = sent(self._postman.line, notification)
            if error is not None and not (isinstance(error, DeliveryError) and error.permanent):
                self._failures += 1
                self._again = self._post.again_at(self._failures, error)
                about = about_of(notification)
                self._pace.trouble = self._post.refused(self._name, error, attempts=self._failures, **about)
                return
            self._direct.popleft()
            self._failures, self._again = 0, None
            if error is None:
                self._pace.trouble = ""
                self._post.taken(self._name, **about_of(notification))
            else:
                self._post.refused(self._name, error, **about_of(notification))


class LevelWorker(_Thread):
    """Serves a channel that is told all that holds after each look. Only the newest counts."""

    def __init__(self, line: LevelLine, post: Post) -> None:
        """Nothing starts before `start`."""
        super().__init__(line.name, post)
        self._line = line
        self.trouble = ""
        """Why the channel did not take the last level; empty when it did."""
        self._level: Level | None = None
        self._direct: Level | None = None

    @property
    def line(self) -> LevelLine:
        """Return the channel."""
        return self._line

    def takes(self, line: AnyLine) -> bool:
        """Go on with changed settings of this channel; False when it is a channel of another kind."""
        if not isinstance(line, LevelLine):
            return False
        self._line = line
        return True

    def hold(self, level: Level) -> None:
        """Bring this, if the lease is ours; one that was not brought yet is made good by it."""
        self._level = level
        self.wake()

    def directly(self, level: Level) -> None:
        """Bring this without the ledger and without the lease: it says that there is no ledger (rule 18)."""
        self._direct = level
        self.wake()

    def _round(self) -> timedelta:
        direct, self._direct = self._direct, None
        if direct is not None:
            self._tell(direct)
        level, self._level = self._level, None
        if level is not None and self._may():
            self._tell(level)
        return GLANCE

    def _may(self) -> bool:
        try:
            with self._post.open_ledger() as ledger:
                return self._post.may(ledger)
        except LedgerUnusableError:
            return False

    def _tell(self, level: Level) -> None:
        about = {"standing": len(level.standing), "ended": len(level.ended)}
        error = held(self._line, level)
        if error is None:
            self.trouble = ""
            self._post.taken(self._name, **about)
        else:
            # The next look's level makes it good: this one would be out of date.
            self.trouble = self._post.refused(self._name, error, **about)
