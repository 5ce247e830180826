"""What an operator does to a registry file: make it, bring it up to date, copy it. The daemon does none of it."""

from __future__ import annotations

import os
import re
import sqlite3
import threading
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

from sqlite_utils import Database

from registry.errors import RegistryWriteError
from registry.model import SCHEMA_VERSION, RegistryIdentity
from registry.rows import problem_of_name
from registry.sqlite.connection import immediate, opened, writing
from registry.sqlite.migrations import migrations, restore
from registry.sqlite.reader import BUSY_TIMEOUT, read_identity, verify
from registry.sqlite.remedies import unusable
from registry.sqlite.schema import NOW, prove_registry, prove_schema
from registry.sqlite_readonly import ReadOnlyOpenError, read_whole

_TRIES = 20
_BETWEEN_SECONDS = 0.05
_NEVER = threading.Event()
_PRIMARY = 0xFF
"""SQLite's extended codes have the primary one in their lowest byte."""
_DEPLOYMENT = re.compile(r"[a-z][a-z0-9-]{0,30}")


def create(path: Path, deployment: str, *, registry_id: str | None = None) -> RegistryIdentity:
    """Make a new registry in WAL mode, with no workers, and return its identity. It has a mark from the beginning.

    Raises:
        RegistryWriteError: when something stands at the path, or a name is not valid. Nothing was overwritten.
    """
    if not _DEPLOYMENT.fullmatch(deployment):
        msg = f"{deployment!r} is no deployment: a letter, then up to 30 of a-z, 0-9 and -"
        raise RegistryWriteError(msg)
    if registry_id is not None and problem_of_name(registry_id):
        msg = f"the registry id {registry_id!r} {problem_of_name(registry_id)}"
        raise RegistryWriteError(msg)
    _reserve(path)
    try:
        with opened(path, BUSY_TIMEOUT) as db:
            _write_ahead(db)
            with immediate(db):
                migrations.apply(db)
                db.execute(
                    f"INSERT INTO meta VALUES (1, ?, ?, ?, 0, {NOW})",  # noqa: S608  # constants only
                    [registry_id or str(uuid4()), deployment, SCHEMA_VERSION],
                )
                restore(db)
            return read_identity(db.conn)
    except BaseException:
        _remove(path)
        raise


def _write_ahead(db: Database) -> None:
    """Switch to WAL mode.

    Where a writer has begun with the new file, SQLite says at once that it is locked, whatever the busy timeout.
    """
    for left in reversed(range(_TRIES)):
        try:
            db.enable_wal()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & _PRIMARY != sqlite3.SQLITE_BUSY or not left:
                raise
            _NEVER.wait(_BETWEEN_SECONDS)
        else:
            return


def migrate(path: Path, *, busy_timeout: timedelta = BUSY_TIMEOUT) -> tuple[str, ...]:
    """Bring a registry to the current schema, missing triggers and marks included; return the names of what it needed.

    Raises:
        RegistryWriteError: when it is no registry, has lost its workers or meta, is newer, or cannot become whole by
            this. Nothing was changed then.
    """
    with writing(path, busy_timeout) as db:
        prove_registry(db.conn)
        pending = [migration.name for migration in migrations.pending(db)]
        migrations.apply(db)
        restored = restore(db)
        prove_schema(db.conn)
    return (*pending, *restored)


def backup(path: Path, target: Path, *, busy_timeout: timedelta = BUSY_TIMEOUT) -> None:
    """Copy a whole, proved registry to a new file, while writers go on.

    Raises:
        RegistryUnusableError: when the registry, or its copy, is not one that the daemon would accept.
        RegistryWriteError: when something stands at the target, or it cannot be written.
    """
    verify(path, busy_timeout)
    _reserve(target)

    def copy(source: sqlite3.Connection) -> None:
        try:
            with closing(sqlite3.connect(target)) as copied:
                source.backup(copied)
        except sqlite3.Error as error:
            msg = f"{target}: {error}"
            raise RegistryWriteError(msg) from error

    try:
        read_whole(path, busy_timeout, copy)
        verify(target, busy_timeout)
    except ReadOnlyOpenError as error:
        _remove(target)
        raise unusable(path, error) from error
    except BaseException:
        _remove(target)
        raise


def _reserve(path: Path) -> None:
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o644))
    except FileExistsError as error:
        msg = f"{path}: something stands there already, and is never overwritten"
        raise RegistryWriteError(msg) from error
    except (OSError, ValueError) as error:
        msg = f"{path}: {error}"
        raise RegistryWriteError(msg) from error


def _remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
