"""The daemon's side of a registry file: read whole and proved, or refused with the reason and the next step."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from registry.model import Interest, RegistryFault, RegistryIdentity, RegistryRows, RegistrySnapshot
from registry.rows import Reading, alike_to, matching, names_of
from registry.sqlite.proof import has_one_index, prove_index, prove_pages, require_none
from registry.sqlite.reading import read_rows
from registry.sqlite.remedies import unusable
from registry.sqlite.schema import prove_schema
from registry.sqlite_readonly import ReadOnlyOpenError, read_apart
from registry.times import parse_time

BUSY_TIMEOUT = timedelta(seconds=5)
"""How long a locked file is waited for unless the configuration says otherwise."""


class SqliteRegistry:
    """Reads a registry file. Every call opens it anew, so that a file which was replaced is never read again.

    A reading is of one moment and without a limit, and proves the whole file: schema, triggers, every row, every page.
    Whoever writes the file is not kept from it meanwhile, or for as long as it takes to copy its pages.
    """

    def __init__(self, path: Path, busy_timeout: timedelta = BUSY_TIMEOUT) -> None:
        """Keep where it is. Nothing is opened yet."""
        self._path = path
        self._busy_timeout = busy_timeout

    def snapshot(self, *, remembered_epoch: int | None = None, interest: Interest | None = None) -> RegistrySnapshot:
        """Return the whole registry as of one moment, or the rows of it that are asked for."""
        return _read(self._path, self._busy_timeout, _Question(interest, remembered_epoch))

    def lookup(self, instance_id: str, worker_id: str | None, read: Reading | None = None) -> RegistryRows:
        """Return every row, of any place and state, that names this instance id or has this worker id."""
        return self.lookup_many([(instance_id, worker_id)], read)

    def lookup_many(self, machines: Iterable[tuple[str, str | None]], read: Reading | None = None) -> RegistryRows:
        """Return every row, of any place and state, that names one of these machines or has one of these worker ids."""
        wanted = tuple(machines)
        # Not by a WHERE: this is the last look before a termination, and must pass every proof that a snapshot passes.
        names = names_of(wanted)
        found = self.snapshot(interest=Interest(names=names, live=False, alike=alike_to(names, read)))
        return RegistryRows(identity=found.identity, workers=matching(found.workers, wanted, read))


def verify(path: Path, busy_timeout: timedelta = BUSY_TIMEOUT) -> RegistrySnapshot:
    """Return the registry if the daemon would accept it. Names up to a hundred damages, not only the first.

    Raises:
        RegistryUnusableError: as SqliteRegistry.snapshot does.
    """
    return _read(path, busy_timeout, _Question(), damages_named=100)


def read_identity(connection: sqlite3.Connection) -> RegistryIdentity:
    """Return the meta row of a file whose schema was proved."""
    row = connection.execute("SELECT registry_id, deployment, schema_version, epoch, updated_at FROM meta").fetchone()
    registry_id, deployment, version, epoch, updated_at = row
    if not registry_id.strip() or not deployment.strip():
        raise ReadOnlyOpenError(RegistryFault.BAD_ROW, "its meta row names no registry or no deployment")
    return RegistryIdentity(
        registry_id=registry_id,
        deployment=deployment,
        schema_version=version,
        epoch=epoch,
        updated_at=parse_time(updated_at),
    )


@dataclass(frozen=True, slots=True)
class _Question:
    """What is asked of a registry beside that it proves itself."""

    interest: Interest | None = None
    remembered_epoch: int | None = None


def _read(path: Path, busy_timeout: timedelta, question: _Question, damages_named: int = 1) -> RegistrySnapshot:
    def whole(connection: sqlite3.Connection) -> RegistrySnapshot:
        prove_schema(connection)
        by_index = damages_named == 1 and has_one_index(connection)
        broken_rules = prove_pages(connection, damages_named, but_the_index=by_index)
        head = _head(connection, question.remembered_epoch)
        reading = read_rows(connection, question.interest, sealed=by_index)
        if by_index:
            prove_index(connection, reading)
        require_none(broken_rules)
        return replace(head, workers=reading.workers, passed_over=reading.passed_over)

    try:
        return read_apart(path, busy_timeout, whole)
    except ReadOnlyOpenError as error:
        raise unusable(path, error) from error


def _head(connection: sqlite3.Connection, remembered_epoch: int | None) -> RegistrySnapshot:
    """Return a snapshot without its workers."""
    identity = read_identity(connection)
    nonce = _nonce(connection, identity.epoch)
    if not nonce:
        detail = f"the mark of its epoch {identity.epoch} is missing, so a restored backup could not be told from it"
        raise ReadOnlyOpenError(RegistryFault.OTHER_SCHEMA, detail)
    (oldest_epoch,) = connection.execute("SELECT min(epoch) FROM epochs").fetchone()
    return RegistrySnapshot(
        identity=identity,
        workers=(),
        nonce=nonce,
        oldest_epoch=oldest_epoch,
        remembered_nonce=None if remembered_epoch is None else _nonce(connection, remembered_epoch),
    )


def _nonce(connection: sqlite3.Connection, epoch: int) -> str | None:
    row = connection.execute("SELECT nonce FROM epochs WHERE epoch = ?", (epoch,)).fetchone()
    return None if row is None else str(row[0])
