"""The control plane's side of a case: it makes the registry file, writes it, breaks it and locks it."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from registry.sqlite.admin import create

LIVE = frozenset({"launching", "running", "draining"})
"""The states of a row that protect a machine; in the case's own words, not in those of the program."""

_ZERO, _GARBAGE = b"", b"this is no database\n" * 100
_HOLD = """
import sqlite3, sys, time
path, seconds = sys.argv[1:]
with sqlite3.connect(path, isolation_level=None) as db:
    db.execute("BEGIN EXCLUSIVE")
    print("held", flush=True)
    time.sleep(float(seconds)) if seconds else sys.stdin.readline()
    db.execute("ROLLBACK")
db.close()
"""


class RegistryFile:
    """A registry that is written with plain SQL, as a control plane in any language does it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.path = folder / "registry.db"
        self.written = 0
        """How often the world wrote or locked it since it was laid out."""
        self._holders: list[subprocess.Popen[str]] = []

    def lay_out(self, deployment: str, registry_id: str, rows: list[dict[str, str | None]], journal: str) -> None:
        """Make it whole."""
        create(self.path, deployment, registry_id=registry_id)
        with closing(self._connect()) as db:
            db.execute(f"PRAGMA journal_mode = {journal}")
            for row in rows:
                _insert(db, row)

    def break_as(self, how: str) -> None:
        """Make it one of the files that are no registry."""
        broken_as(self.path, how)

    def insert(self, row: dict[str, str | None]) -> None:
        """Register a worker."""
        self.written += 1
        with closing(self._connect()) as db:
            _insert(db, row)

    def commit(self) -> None:
        """Commit something that protects nobody and unprotects nobody."""
        self.written += 1
        _run(self.path, "UPDATE workers SET heartbeat_at = updated_at")

    def lock(self, seconds: float | None) -> None:
        """Let another process hold the file locked, for so long or until it is unlocked."""
        self.written += 1
        command = [sys.executable, "-I", "-S", "-c", _HOLD, str(self.path), "" if seconds is None else str(seconds)]
        holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._holders.append(holder)
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"

    @property
    def locked(self) -> bool:
        """Say whether a lock is held that nobody has ended yet."""
        return bool(self._holders)

    def unlock(self) -> None:
        """End every lock."""
        while self._holders:
            self._holders.pop().communicate("\n")

    def rows(self) -> tuple[dict[str, str | None], ...]:
        """Return all rows, read past every lock and without leaving a trace; none of a file that has none."""
        try:
            with closing(sqlite3.connect(f"file:{self.path}?mode=ro&immutable=1", uri=True)) as db:
                db.row_factory = sqlite3.Row
                return tuple(dict(row) for row in db.execute("SELECT * FROM workers"))
        except sqlite3.Error:
            return ()

    def files(self) -> Mapping[str, str]:
        """Return what stands in its folder, byte for byte."""
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(self.path.parent.iterdir())}

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, isolation_level=None)


def broken_as(path: Path, how: str) -> None:
    """Make a registry one of the files that are none."""
    match how:
        case "absent":
            shutil.rmtree(path.parent)
            path.parent.mkdir()
        case "zero bytes":
            path.write_bytes(_ZERO)
        case "garbage":
            path.write_bytes(_GARBAGE)
        case "no workers table":
            _run(path, "DROP TABLE workers")
        case "no meta row":
            _run(path, "DELETE FROM meta")
        case _:
            raise ValueError(how)


def _run(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(statement)


def _insert(db: sqlite3.Connection, row: dict[str, str | None]) -> None:
    marks = ", ".join("?" * len(row))
    db.execute(f"INSERT INTO workers ({', '.join(row)}) VALUES ({marks})", tuple(row.values()))
