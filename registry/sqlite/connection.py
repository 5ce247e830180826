"""One durable write to a registry file."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

from sqlite_utils import Database

from registry.errors import RegistryWriteError
from registry.sqlite.remedies import unusable
from registry.sqlite_readonly import ReadOnlyOpenError


@contextmanager
def writing(path: Path, busy_timeout: timedelta) -> Iterator[Database]:
    """Give the database inside one transaction that holds the write lock from its beginning.

    Raises:
        RegistryWriteError: when it cannot be opened, locked or written. Nothing was changed then.
    """
    with opened(path, busy_timeout) as db, immediate(db):
        yield db


@contextmanager
def opened(path: Path, busy_timeout: timedelta) -> Iterator[Database]:
    """Give the database of an existing file. No error of sqlite3 leaves the block.

    Raises:
        RegistryWriteError: when it cannot be opened, or what the block did failed.
    """
    if not path.is_file():
        msg = f"{path}: there is no such file; `reaperd registry init --path {path}` makes a new registry"
        raise RegistryWriteError(msg)
    try:
        with closing(_connect(path, busy_timeout)) as connection:
            db = Database(connection, execute_plugins=False)
            db.execute("PRAGMA synchronous = FULL")
            db.execute("PRAGMA foreign_keys = ON")
            yield db
    except sqlite3.Error as error:
        msg = f"{path}: {error}"
        raise RegistryWriteError(msg) from error
    except ReadOnlyOpenError as error:
        raise RegistryWriteError(str(unusable(path, error))) from error


@contextmanager
def immediate(db: Database) -> Iterator[None]:
    """Hold the write lock for the block; commit at its end, roll back if it raises.

    `Database.atomic()` takes the lock at the first write only: if another writer committed since the first read, that
    write fails at once, whatever the timeout (321 of 400 did).
    """
    db.conn.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.conn.execute("COMMIT")
    except BaseException:
        db.rollback()
        raise


def _connect(path: Path, busy_timeout: timedelta) -> sqlite3.Connection:
    return sqlite3.connect(
        f"file://{quote(os.fsencode(path.absolute()))}?mode=rw",
        uri=True,
        timeout=busy_timeout.total_seconds(),
        isolation_level=None,
    )
