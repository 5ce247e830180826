"""The ledger for those who must not create one: `approve`, `resume`, `mute`, `alerts`, `registry trust`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from sqlite3 import Connection
from typing import TypeVar

from reaperd.core.telling import Alarmed
from reaperd.errors import LedgerUnusableError
from reaperd.ledger.alarms import alarmed
from reaperd.ledger.connection import check_owner
from reaperd.ledger.ledger import Ledger, open_ledger
from registry.model import RegistryFault
from registry.sqlite_readonly import ReadOnlyOpenError, read_whole

_BUSY_TIMEOUT = timedelta(seconds=5)

T = TypeVar("T")


def open_existing(path: Path, *, deployment: str, owner_tag: str, now: datetime) -> Ledger:
    """Open a ledger that is there.

    Raises:
        LedgerUnusableError: if there is none, or as open_ledger.
    """
    read(path, lambda connection: check_owner(connection, path, deployment, owner_tag))
    return open_ledger(path, deployment=deployment, owner_tag=owner_tag, now=now)


def kept_alarms(path: Path, *, deployment: str, owner_tag: str) -> Alarmed:
    """Return all that is kept about alerts, and leave no trace.

    Raises:
        LedgerUnusableError: if there is no ledger, it cannot be read, or is another deployment's.
    """

    def work(connection: Connection) -> Alarmed:
        check_owner(connection, path, deployment, owner_tag)
        return alarmed(connection)

    return read(path, work)


def read(path: Path, work: Callable[[Connection], T]) -> T:
    """Return what `work` read in one transaction, leaving no trace.

    Raises:
        LedgerUnusableError: if there is no ledger, or it cannot be read.
    """
    try:
        return read_whole(path, _BUSY_TIMEOUT, work)
    except ReadOnlyOpenError as error:
        if error.fault is RegistryFault.MISSING:
            remedy = "`reaperd once` and `reaperd hold` make one, in state_dir"
            raise LedgerUnusableError(str(path), "there is no ledger", remedy) from error
        raise LedgerUnusableError(str(path), error.detail) from error
