"""The ledger as a pass uses it: with the lease, to act; or read only, to leave no trace."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from sqlite3 import Connection
from typing import TypeVar

from providers.model import InstanceRef
from reaperd.core.memory import Learned
from reaperd.core.model import DecisionRecord, Intent, Memory, Outcome, Verdict
from reaperd.core.starts import NO_STARTS, Starts
from reaperd.core.telling import Telling
from reaperd.errors import LedgerUnusableError
from reaperd.ledger import audited
from reaperd.ledger.alarms import Announced, Bell
from reaperd.ledger.connection import check_owner
from reaperd.ledger.lease import Lease
from reaperd.ledger.ledger import LeaseLostError, Ledger
from reaperd.ledger.recall import recall
from registry.model import RegistryFault
from registry.sqlite_readonly import ReadOnlyOpenError, read_whole

T = TypeVar("T")


class LeasedNotebook:
    """A ledger and the right to act on it, if there is one. Serves the pass and the door."""

    keeps = True

    def __init__(self, ledger: Ledger, lease: Lease | None, bell: Bell | None = None) -> None:
        """`lease` None: look only. `bell` None: nobody is told anything."""
        self._ledger = ledger
        self._lease = lease
        self._bell = bell

    def transaction(self) -> AbstractContextManager[None]:
        """See Ledger.transaction."""
        return self._ledger.transaction()

    def recall(self, now: datetime) -> Memory:
        """See Ledger.recall."""
        return self._ledger.recall(now)

    def known_epoch(self) -> int | None:
        """See Ledger.known_epoch."""
        return self._ledger.known_epoch()

    def pending(self) -> Mapping[InstanceRef, Intent]:
        """See Ledger.pending."""
        return self._ledger.pending()

    def leads(self, now: datetime) -> bool:
        """Say whether the lease is ours at this moment."""
        return self._lease is not None and self._ledger.holds_lease(self._lease, now)

    def learn(self, learned: Learned, now: datetime) -> None:
        """See Ledger.learn."""
        self._ledger.learn(learned, now)

    def record(self, decision: DecisionRecord, telling: Telling | None = None) -> None:
        """See Ledger.record. What the pass has to tell is written with it, if we lead (rule 18)."""
        announced: Announced | None = None
        with self._ledger.transaction():
            self._ledger.record(decision)
            if telling is not None and self._bell is not None and self._lease is not None:
                now = self._bell.clock.now()
                announced = self._ledger.alarms.tell(telling, self._bell.watch, lease=self._lease, now=now)
        if announced is not None and self._bell is not None:
            self._bell.announced(announced)

    def open_intent(self, verdict: Verdict, *, pass_id: str, approved: bool, now: datetime) -> int:
        """See Ledger.open_intent. Without a lease nothing may be sent."""
        if self._lease is None:
            raise LeaseLostError
        return self._ledger.open_intent(verdict, pass_id=pass_id, approved=approved, lease=self._lease, now=now)

    def open_intents(self, planned: Sequence[tuple[Verdict, bool]], *, pass_id: str, now: datetime) -> tuple[int, ...]:
        """See Ledger.open_intents. Without a lease nothing may be sent."""
        if self._lease is None:
            raise LeaseLostError
        return self._ledger.open_intents(planned, pass_id=pass_id, lease=self._lease, now=now)

    def check_leave(self, now: datetime) -> None:
        """See Ledger.check_leave. Without a lease nothing may be sent."""
        if self._lease is None:
            raise LeaseLostError
        self._ledger.check_leave(self._lease, now)

    def answer_intent(self, intent_id: int, outcome: Outcome, now: datetime) -> None:
        """See Ledger.answer_intent."""
        self._ledger.answer_intent(intent_id, outcome, now)

    def answer_intents(self, answered: Iterable[tuple[int, Outcome]], now: datetime) -> None:
        """See Ledger.answer_intents."""
        self._ledger.answer_intents(answered, now)


class TracelessNotebook:
    """What an existing ledger remembers, and no way to write into it."""

    keeps = False

    def __init__(self, memory: Memory) -> None:
        """Keep what was read."""
        self._memory = memory

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Do nothing: nothing will be written."""
        yield

    def recall(self, now: datetime) -> Memory:
        """Return what was read."""
        return self._memory

    def known_epoch(self) -> int | None:
        """Return the registry epoch whose mark was read."""
        return self._memory.pin.epoch if self._memory.pin else None

    def pending(self) -> Mapping[InstanceRef, Intent]:
        """Return the open intents that were read."""
        return self._memory.intents

    def leads(self, now: datetime) -> bool:
        """Return True: whoever only looks needs no lease."""
        return True

    def learn(self, learned: Learned, now: datetime) -> None:
        """Forget it."""

    def record(self, decision: DecisionRecord, telling: Telling | None = None) -> None:
        """Forget it: who looks only tells nobody."""


class BrokenNotebook:
    """A ledger that could not be opened: every use says why, and so the pass refuses."""

    keeps = True

    def __init__(self, error: LedgerUnusableError) -> None:
        """Keep what opening it said."""
        self._error = error

    def transaction(self) -> AbstractContextManager[None]:
        """Raise."""
        raise self._error

    def recall(self, now: datetime) -> Memory:
        """Raise."""
        raise self._error

    def known_epoch(self) -> int | None:
        """Raise."""
        raise self._error

    def pending(self) -> Mapping[InstanceRef, Intent]:
        """Raise."""
        raise self._error

    def leads(self, now: datetime) -> bool:
        """Raise."""
        raise self._error

    def learn(self, learned: Learned, now: datetime) -> None:
        """Raise."""
        raise self._error

    def record(self, decision: DecisionRecord, telling: Telling | None = None) -> None:
        """Raise."""
        raise self._error


def peek(path: Path, *, deployment: str, owner_tag: str, busy_timeout: timedelta, now: datetime) -> Memory:
    """Return what a ledger remembers, leaving no trace; without a ledger, nothing.

    Raises:
        LedgerUnusableError: if it cannot be read, or is another deployment's.
    """

    def work(connection: Connection) -> Memory:
        check_owner(connection, path, deployment, owner_tag)
        return recall(connection, now)

    return _peeked(path, busy_timeout, work, Memory())


def peek_starts(path: Path, *, deployment: str, owner_tag: str, busy_timeout: timedelta) -> Starts:
    """Return since when machines run by earlier sweeps, leaving no trace; without a ledger, nothing.

    Raises:
        LedgerUnusableError: if it cannot be read, or is another deployment's.
    """

    def work(connection: Connection) -> Starts:
        check_owner(connection, path, deployment, owner_tag)
        return audited.starts(connection)

    return _peeked(path, busy_timeout, work, NO_STARTS)


def _peeked(path: Path, busy_timeout: timedelta, work: Callable[[Connection], T], without: T) -> T:
    try:
        return read_whole(path, busy_timeout, work)
    except ReadOnlyOpenError as error:
        if error.fault is RegistryFault.MISSING:
            return without
        raise LedgerUnusableError(str(path), error.detail) from error
