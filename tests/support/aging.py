"""Letting time pass for processes, which take theirs from the machine: what was written down becomes older instead."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from reaperd.ledger.connection import text_of, time_of

_MOMENTS = ("_at", "since")
"""How the names of the columns end that hold a time."""

_IN_RECORDS = frozenset({"at", "since"})
"""The names of times within the records of alerts."""

_CHAINED = frozenset({"operator_acts", "passes"})
"""History: a hash stands over its times, and nothing is decided on them."""


def age_ledger(path: Path, by: timedelta) -> None:
    """Make everything that the ledger remembers so much older, as if the next process started so much later."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.create_function("older", 1, lambda text: text and text_of(time_of(text) - by))
        for table, column in _times(connection):
            connection.execute(f'UPDATE "{table}" SET "{column}" = older("{column}")')
        connection.create_function("older_record", 1, lambda text: json.dumps(_older(json.loads(text), by)))
        for table in ("alerts", "outbox"):
            connection.execute(f"UPDATE {table} SET record = older_record(record)")


def _older(value: Any, by: timedelta) -> Any:
    """Return a record with its times so much older."""
    if isinstance(value, dict):
        return {
            key: (datetime.fromisoformat(inner) - by).isoformat() if key in _IN_RECORDS else _older(inner, by)
            for key, inner in value.items()
        }
    return [_older(inner, by) for inner in value] if isinstance(value, list) else value


def _times(connection: sqlite3.Connection) -> Iterator[tuple[str, str]]:
    named = "SELECT t.name, c.name FROM pragma_table_list t, pragma_table_info(t.name) c WHERE t.schema = 'main'"
    for table, column in connection.execute(named).fetchall():
        if table not in _CHAINED and not table.startswith(("sqlite_", "_")) and _is_a_moment(column):
            yield table, column


def _is_a_moment(column: str) -> bool:
    return column == "at" or column.endswith(_MOMENTS)
