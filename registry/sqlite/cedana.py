"""The instances of a Cedana database. Read only."""

from __future__ import annotations

import sqlite3
from datetime import timedelta
from pathlib import Path

from registry.errors import RegistryImportError
from registry.sqlite.reader import BUSY_TIMEOUT
from registry.sqlite_readonly import ReadOnlyOpenError, read_whole


def read_instances(path: Path, busy_timeout: timedelta = BUSY_TIMEOUT) -> list[dict[str, object]]:
    """Return every row of its table `instances`, deleted ones too: gorm only marks them.

    Raises:
        RegistryImportError: when it is no such database.
    """
    try:
        return read_whole(path, busy_timeout, _instances)
    except ReadOnlyOpenError as error:
        raise RegistryImportError((error.detail,)) from error


def _instances(connection: sqlite3.Connection) -> list[dict[str, object]]:
    tables = {str(name) for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if "instances" not in tables:
        told = f"it has no table `instances`, only {', '.join(sorted(tables)) or 'nothing'}"
        raise RegistryImportError((told,))
    cursor = connection.execute("SELECT * FROM instances ORDER BY rowid")
    columns = [str(column[0]) for column in cursor.description]
    return [dict(zip(columns, row, strict=True)) for row in cursor]
