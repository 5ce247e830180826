"""Opening the ledger, and its transactions. Whatever SQLite says leaves as LedgerUnusableError."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from sqlite_utils import Database

from reaperd.errors import LedgerUnusableError
from reaperd.ledger.place import place_of
from reaperd.ledger.schema import SCHEMA_VERSION, migrations
from reaperd.ledger.trouble import Seeing, explained, is_busy, require_local

BUSY_TIMEOUT_SECONDS = 5.0
"""How long a writer waits for another one. sqlite-utils' own default."""
_TRIES = 50
_BETWEEN_SECONDS = BUSY_TIMEOUT_SECONDS / _TRIES / 2
"""Half of the time between two tries; for the other half, SQLite waits itself where it does."""
_NEVER = threading.Event()


class NotATimeError(ValueError):
    """The ledger holds something that nobody of ours wrote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which ledger is meant."""

    deployment: str
    owner_tag: str
    ledger_id: str | None = None
    """The one that this process began with; None: whichever is there, and if none is, a new one."""


def open_database(
    path: Path, wanted: Wanted, now: datetime, *, seeing: Seeing = place_of, patience: float = BUSY_TIMEOUT_SECONDS
) -> Database:
    """Open the ledger; create and migrate it if need be. `seeing` says where a path lies.

    Whoever writes waits so many seconds for another writer.

    Raises:
        LedgerUnusableError: if it cannot be opened and written, lies on a network file system, is of a newer schema,
            belongs to another deployment or ownership tag, or is not the one that is meant.
    """
    with translated(path, seeing):
        require_local(path, seeing)
        if wanted.ledger_id is None:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        elif not path.is_file():
            # A new one would know of no brake, no request and no machine that was seen.
            raise _not_the_same(path, "it is gone")
        connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_SECONDS, isolation_level=None)
        db = Database(connection, execute_plugins=False)
        try:
            _write_ahead(connection, patience)
            db.execute("PRAGMA synchronous = FULL")
            db.execute("PRAGMA foreign_keys = ON")
            _prepare(db, path, wanted, now)
        except BaseException:
            connection.close()
            raise
    return db


def _write_ahead(connection: sqlite3.Connection, patience: float) -> None:
    """Switch to a write-ahead log, for which nobody else may have the file open in another mode.

    Of two processes that make a new file at the same moment, SQLite tells one at once that it is locked: each would
    wait for the other. Whatever the busy timeout says, its handler is not asked then.
    """
    connection.execute(f"PRAGMA busy_timeout = {1000 * _BETWEEN_SECONDS:.0f}")
    for left in reversed(range(_TRIES)):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError as error:
            if not is_busy(error) or not left:
                raise
            _NEVER.wait(_BETWEEN_SECONDS)
    connection.execute(f"PRAGMA busy_timeout = {1000 * patience:.0f}")


def connect_to_read(path: Path) -> sqlite3.Connection:
    """Return a connection to an existing ledger that cannot write. To be used inside `translated`."""
    uri = f"file:{quote(str(path))}?mode=ro"
    return sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT_SECONDS, isolation_level=None)


def identity_of(connection: sqlite3.Connection) -> str:
    """Return what tells this ledger from every other one."""
    row = connection.execute("SELECT ledger_id FROM meta").fetchone()
    return "" if row is None else str(row[0])


def _not_the_same(path: Path, what: str) -> LedgerUnusableError:
    remedy = "Put it back. Restart reaperd to begin with what is there, which knows of no brake that was put on here"
    return LedgerUnusableError(str(path), f"{what}: it is not the ledger that this process began with", remedy)


def _prepare(db: Database, path: Path, wanted: Wanted, now: datetime) -> None:
    deployment, owner_tag = wanted.deployment, wanted.owner_tag
    tables = db.table_names()
    if wanted.ledger_id is not None and "meta" not in tables:
        raise _not_the_same(path, "it is empty")
    if "meta" in tables:
        check_owner(db.conn, path, deployment, owner_tag)
    elif tables:
        what = f"it is another program's database (tables {', '.join(sorted(tables)[:3])})"
        raise LedgerUnusableError(str(path), what, "Use another state_dir")
    # Two processes may start at the same moment: the second one finds the work done.
    with immediate(db.conn, path):
        migrations.apply(db)
        db.execute(
            "INSERT INTO meta (id, deployment, owner_tag, schema_version, created_at, ledger_id)"
            " VALUES (1, ?, ?, ?, ?, lower(hex(randomblob(16)))) ON CONFLICT (id) DO NOTHING",
            (deployment, owner_tag, SCHEMA_VERSION, text_of(now)),
        )
    check_owner(db.conn, path, deployment, owner_tag)
    if wanted.ledger_id is not None and identity_of(db.conn) != wanted.ledger_id:
        raise _not_the_same(path, "it was replaced")


def check_owner(connection: sqlite3.Connection, path: Path, deployment: str, owner_tag: str) -> None:
    """Raise LedgerUnusableError unless the ledger is of this deployment, tag and schema."""
    row = connection.execute("SELECT deployment, owner_tag, schema_version FROM meta").fetchone()
    if row is None:
        raise LedgerUnusableError(str(path), "it has no meta row: it is not a ledger of reaperd")
    if row[2] > SCHEMA_VERSION:
        raise LedgerUnusableError(
            str(path), f"its schema {row[2]} is newer than this reaperd's {SCHEMA_VERSION}: upgrade"
        )
    if (row[0], row[1]) != (deployment, owner_tag):
        theirs = f"deployment {row[0]!r} and tag {row[1]!r}"
        raise LedgerUnusableError(
            str(path), f"it belongs to {theirs}, not to {deployment!r} and {owner_tag!r}: use another state_dir"
        )


@contextmanager
def immediate(connection: sqlite3.Connection, path: Path) -> Iterator[None]:
    """Run a block as one durable write transaction.

    `BEGIN IMMEDIATE`: a deferred transaction that reads first and writes later fails at once when another
    writer committed in between, whatever the busy timeout says.
    """
    with translated(path):
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")


@contextmanager
def reading(connection: sqlite3.Connection, path: Path) -> Iterator[None]:
    """Let a block see one state of the ledger. It waits for no writer, and none for it."""
    with translated(path):
        connection.execute("BEGIN")
        try:
            yield
        finally:
            connection.execute("ROLLBACK")


@contextmanager
def translated(path: Path, seeing: Seeing = place_of) -> Iterator[None]:
    """Turn SQLite's and the file system's errors into ours."""
    try:
        yield
    except (sqlite3.Error, OSError, NotATimeError) as error:
        raise explained(path, error, seeing) from error


def text_of(moment: datetime) -> str:
    """Return a time as fixed-width UTC text, so that text order is time order."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def time_of(text: str) -> datetime:
    """Return the time that `text_of` wrote.

    Raises:
        NotATimeError: if it did not. `translated` makes a LedgerUnusableError of it: such a ledger is damaged.
    """
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        message = f"it holds {text!r} where a time belongs"
        raise NotATimeError(message) from error


def maybe_text(moment: datetime | None) -> str | None:
    """Return `text_of`, or None."""
    return None if moment is None else text_of(moment)


def maybe_time(text: str | None) -> datetime | None:
    """Return `time_of`, or None."""
    return None if text is None else time_of(text)
