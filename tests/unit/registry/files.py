"""Registry files for tests: whole ones, and the ways to break them."""

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

from registry.model import Worker, WorkerState
from registry.sqlite.admin import create
from registry.sqlite.reader import SqliteRegistry

SHORT = timedelta(milliseconds=50)

INSERT = (
    "INSERT INTO workers (worker_id, provider, region, instance_id, state, created_at, updated_at)"
    " VALUES (?, 'aws', 'us-east-1', ?, 'running', '2026-01-10 11:00:00', '2026-01-10 11:00:00')"
)


def new_registry(path: Path, rows: int = 0, *, journal: str = "wal") -> Path:
    create(path, "prod", registry_id="r-1")
    with connected(path) as connection:
        connection.execute(f"PRAGMA journal_mode = {journal}")
        insert(connection, rows)
    return path


def connected(path: Path) -> closing[sqlite3.Connection]:
    """Return the connection of a writer that knows nothing of this project."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")
    return closing(connection)


def insert(connection: sqlite3.Connection, rows: int) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany(INSERT, [(f"w-{number:04}", f"i-{number:04}") for number in range(rows)])
    connection.execute("COMMIT")


def run(path: Path, *statements: str) -> None:
    with connected(path) as connection:
        for sql in statements:
            connection.execute(sql)


def rewrite(path: Path, table: str, old: str, new: str) -> None:
    """Change the declaration of a table without its content, as no honest writer can."""
    with connected(path) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        changed = connection.execute(
            "UPDATE sqlite_master SET sql = replace(sql, ?, ?) WHERE name = ? AND instr(sql, ?) > 0",
            (old, new, table, old),
        )
        assert changed.rowcount == 1
        connection.execute("PRAGMA writable_schema = RESET")


def files(path: Path) -> dict[str, bytes]:
    """Return what stands in its folder. Of a `-shm` only its presence counts: it is memory that all readers share."""
    return {
        each.name: b"" if each.name.endswith("-shm") else each.read_bytes()
        for each in path.parent.iterdir()
        if each.is_file()
    }


def reader(path: Path) -> SqliteRegistry:
    return SqliteRegistry(path, SHORT)


def running(number: int) -> Worker:
    return Worker(
        worker_id=f"w-{number:04}",
        provider="aws",
        region="us-east-1",
        instance_id=f"i-{number:04}",
        state=WorkerState.RUNNING,
    )
