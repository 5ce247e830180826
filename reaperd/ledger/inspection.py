"""The ledger looked over for a person: where it lies, who may write it, what is in it. Leaves no trace."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from sqlite3 import Connection

from reaperd.core.examined_host import Ground, Holder, LedgerFacts
from reaperd.core.model import Memory
from reaperd.errors import LedgerUnusableError
from reaperd.ledger.existing import read
from reaperd.ledger.history import LedgerFile
from reaperd.ledger.lease import holder
from reaperd.ledger.place import place_of, user_name
from reaperd.ledger.recall import recall

Allowed = Callable[[Path, int], bool]
"""Says whether this user may use a path in this way: `os.access`."""

_VERIFY = "See what was changed: reaperd history --verify"
_BESIDE = ("", "-wal", "-shm")


def inspect(ledger: LedgerFile, now: datetime, *, allowed: Allowed = os.access) -> tuple[LedgerFacts, Memory]:
    """Return what is known of a ledger, which need not be there, and what it remembers."""
    path = ledger.path
    facts = LedgerFacts(path=str(path), user=user_name(os.geteuid()), ground=None)
    try:
        exists = path.exists()
        facts = replace(facts, exists=exists, ground=_ground(path), unwritable=tuple(_unwritable(path, allowed)))
        return _with_content(facts, ledger, now) if exists else (facts, Memory())
    except OSError as error:
        return replace(facts, trouble=f"it cannot be looked at: {error.strerror}"), Memory()
    except LedgerUnusableError as error:
        return replace(facts, trouble=error.detail, remedy=error.remedy), Memory()
    except ValueError as error:
        # A time, a word or a piece of JSON that no reaperd wrote.
        return replace(facts, trouble=f"it holds what cannot be read: {error}", remedy=_VERIFY), Memory()


def _ground(path: Path) -> Ground:
    place = place_of(path.parent)
    return Ground(
        folder=str(place.path),
        is_made=place.path == path.parent.resolve(),
        owner=place.owner,
        mode=place.mode,
        free_bytes=place.free_bytes,
        filesystem=place.filesystem,
        is_network=place.is_network,
        is_volatile=place.is_volatile,
    )


def _unwritable(path: Path, allowed: Allowed) -> Iterator[str]:
    """Yield what a pass has to write and this user may not: SQLite makes files beside the ledger, too."""
    folder = place_of(path.parent).path
    if not allowed(folder, os.W_OK | os.X_OK):
        yield str(folder)
    for end in _BESIDE:
        file = path.with_name(f"{path.name}{end}")
        if file.exists() and not allowed(file, os.R_OK | os.W_OK):
            yield str(file)


def _with_content(facts: LedgerFacts, ledger: LedgerFile, now: datetime) -> tuple[LedgerFacts, Memory]:
    def work(connection: Connection) -> tuple[LedgerFacts, Memory]:
        ledger.require(connection)
        (schema,) = connection.execute("SELECT schema_version FROM meta").fetchone()
        memory, who = recall(connection, now), holder(connection, now)
        held = None if who is None else Holder(pid=who.pid, host=who.host, dead=who.is_dead())
        return replace(facts, schema=schema, brake=memory.brake, holder=held), memory

    found, memory = read(ledger.path, work)
    return replace(found, size_bytes=ledger.path.stat().st_size), memory
