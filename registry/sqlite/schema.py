"""The schema of a registry file, and the proof that a file has it.

`TABLES` and `TRIGGERS` are plain SQL: a control plane in any language may create its registry from them.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from functools import cache

from registry.model import OLDEST_SCHEMA, SCHEMA_VERSION, RegistryFault
from registry.sqlite_readonly import ReadOnlyOpenError

_STRICT_TABLE = "STRICT table"

EPOCHS_KEPT = 10_000
"""How many marks `epochs` keeps, and so how old a backup may be that is still told by its mark."""

TABLES = {
    "meta": """CREATE TABLE meta (
    id INTEGER PRIMARY KEY CHECK (id = 1), registry_id TEXT NOT NULL, deployment TEXT NOT NULL,
    schema_version INTEGER NOT NULL, epoch INTEGER NOT NULL, updated_at TEXT NOT NULL
) STRICT""",
    "epochs": "CREATE TABLE epochs (epoch INTEGER PRIMARY KEY, nonce TEXT NOT NULL) STRICT",
    "workers": """CREATE TABLE workers (
    worker_id TEXT PRIMARY KEY NOT NULL, provider TEXT NOT NULL, region TEXT NOT NULL, instance_id TEXT,
    state TEXT NOT NULL CHECK (state IN ('launching','running','draining','completed','failed','terminated')),
    model TEXT, created_at TEXT NOT NULL, launched_at TEXT, heartbeat_at TEXT, updated_at TEXT NOT NULL, zone TEXT
) STRICT""",
}
_SINCE = {("workers", "zone"): 2}
"""Columns that the first schema did not have, with the version that brought them."""

NOW = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')"
NONCE = "lower(hex(randomblob(16)))"

# An `OR REPLACE` or `OR IGNORE` of the statement outside becomes that of the statements in here. So the place of the
# new mark is cleared first, and no conflict can arise. Marks beyond the current epoch are those of a time that a
# restored backup, or a hand in `meta`, undid.
NEXT_EPOCH = (
    f"UPDATE meta SET epoch = epoch + 1, updated_at = {NOW} WHERE id = 1",  # noqa: S608  # constants only
    "DELETE FROM epochs WHERE epoch >= (SELECT epoch FROM meta WHERE id = 1)",
    f"DELETE FROM epochs WHERE epoch <= (SELECT epoch FROM meta WHERE id = 1) - {EPOCHS_KEPT}",  # noqa: S608
    f"INSERT INTO epochs (epoch, nonce) SELECT epoch, {NONCE} FROM meta WHERE id = 1",  # noqa: S608
)
"""Raises the epoch by one and gives it its mark. For one transaction."""

_RAISE_EPOCH = "\n    " + ";\n    ".join(NEXT_EPOCH) + ";\n"

_WRITTEN = f"""
    UPDATE meta SET updated_at = {NOW} WHERE id = 1;
"""  # noqa: S608  # constants only

# `IS NOT` and not `UPDATE OF`: a writer that sets every column with each heartbeat has changed nothing by that.
# A worker id counts too: renaming a row changes what it protects.
_CHANGED = " OR ".join(
    f"old.{column} IS NOT new.{column}" for column in ("worker_id", "provider", "region", "instance_id", "state")
)

TRIGGERS = {
    "workers_inserted": f"CREATE TRIGGER workers_inserted AFTER INSERT ON workers BEGIN{_RAISE_EPOCH}END",
    "workers_deleted": f"CREATE TRIGGER workers_deleted AFTER DELETE ON workers BEGIN{_RAISE_EPOCH}END",
    "workers_changed": f"CREATE TRIGGER workers_changed AFTER UPDATE ON workers WHEN {_CHANGED} BEGIN{_RAISE_EPOCH}END",
    "workers_written": f"CREATE TRIGGER workers_written AFTER UPDATE ON workers BEGIN{_WRITTEN}END",
}


@dataclass(frozen=True, slots=True)
class _Column:
    name: str
    type: str
    not_null: bool
    key: bool


def prove_registry(connection: sqlite3.Connection) -> int:
    """Return the version of the schema only if the file is a registry of one that we know, whole or not.

    Raises:
        ReadOnlyOpenError: saying what is missing. A newer schema comes first: its other tables are not ours to judge.
    """
    kinds = _kinds(connection)
    if "meta" not in kinds:
        detail = "it has no meta table" if "workers" in kinds else "it has neither a meta nor a workers table"
        raise ReadOnlyOpenError(RegistryFault.NO_META_TABLE, detail)
    version = _prove_version(connection)
    if "workers" not in kinds:
        raise ReadOnlyOpenError(RegistryFault.NO_WORKERS_TABLE, "it has no workers table")
    return version


def prove_schema(connection: sqlite3.Connection) -> int:
    """Return the version of the schema only if the file has exactly that, its triggers included.

    Raises:
        ReadOnlyOpenError: as prove_registry, or saying what is not as it should be.
    """
    version = prove_registry(connection)
    kinds = _kinds(connection)
    for table in TABLES:
        _prove_table(connection, table, kinds.get(table, "missing"), version)
    damaged = damaged_triggers(connection)
    if damaged:
        detail = f"triggers are missing or changed, so its epoch proves nothing: {', '.join(damaged)}"
        raise ReadOnlyOpenError(RegistryFault.OTHER_SCHEMA, detail)
    return version


def has_zones(version: int) -> bool:
    """Say whether the workers of a schema have zones."""
    return version >= _SINCE["workers", "zone"]


def damaged_triggers(connection: sqlite3.Connection) -> tuple[str, ...]:
    """Return the names of the triggers that are missing or are not those of the schema."""
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    found = {str(name).lower(): _words(str(sql)) for name, sql in rows}
    return tuple(name for name, sql in TRIGGERS.items() if found.get(name) != _words(sql))


def _kinds(connection: sqlite3.Connection) -> dict[str, str]:
    """Return what each name is: `STRICT table`, `table`, `view`, `virtual`."""
    rows = connection.execute("SELECT name, type, strict FROM pragma_table_list WHERE schema = 'main'").fetchall()
    return {str(name).lower(): f"STRICT {kind}" if strict else str(kind) for name, kind, strict in rows}


def _prove_version(connection: sqlite3.Connection) -> int:
    if "schema_version" not in {column.name for column in _columns(connection, "meta")}:
        raise ReadOnlyOpenError(RegistryFault.OTHER_SCHEMA, "its meta table has no schema_version")
    versions = connection.execute("SELECT schema_version FROM meta").fetchall()
    if not versions:
        raise ReadOnlyOpenError(RegistryFault.NO_META_ROW, "its meta table has no row")
    if len(versions) > 1:
        raise ReadOnlyOpenError(RegistryFault.OTHER_SCHEMA, f"its meta table has {len(versions)} rows")
    version = versions[0][0]
    if not isinstance(version, int) or version < OLDEST_SCHEMA:
        raise ReadOnlyOpenError(RegistryFault.OTHER_SCHEMA, f"its schema is {version!r}, ours is {SCHEMA_VERSION}")
    if version > SCHEMA_VERSION:
        raise ReadOnlyOpenError(RegistryFault.NEWER_SCHEMA, f"its schema is {version}, ours is {SCHEMA_VERSION}")
    return version


def _prove_table(connection: sqlite3.Connection, table: str, kind: str, version: int) -> None:
    if kind != _STRICT_TABLE:
        raise ReadOnlyOpenError(RegistryFault.OTHER_SCHEMA, f"its {table} should be a STRICT table; it is {kind}")
    found, wanted = set(_columns(connection, table)), set(_wanted(table, version))
    if found != wanted:
        odd = ", ".join(sorted({column.name for column in found ^ wanted}))
        detail = f"columns of its {table} table are missing, unknown or declared otherwise: {odd}"
        raise ReadOnlyOpenError(RegistryFault.OTHER_SCHEMA, detail)


def _columns(connection: sqlite3.Connection, table: str) -> tuple[_Column, ...]:
    rows = connection.execute('SELECT name, type, "notnull", pk FROM pragma_table_xinfo(?)', (table,)).fetchall()
    return tuple(_Column(str(name), str(kind), bool(not_null), bool(key)) for name, kind, not_null, key in rows)


def _words(sql: str) -> str:
    return " ".join(sql.split())


@cache
def _wanted(table: str, version: int) -> tuple[_Column, ...]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(TABLES[table])
        columns = _columns(connection, table)
    return tuple(column for column in columns if _SINCE.get((table, column.name), OLDEST_SCHEMA) <= version)
