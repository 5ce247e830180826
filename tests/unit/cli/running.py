"""Commands in the process, on files in a folder of their own."""

from __future__ import annotations

import io
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from click.testing import CliRunner, Result

from reaperd.cli import main
from reaperd.core.model import PassReport
from reaperd.ledger.ledger import Ledger, open_ledger
from reaperd.report.trail import record_of
from registry.sqlite.admin import create
from registry.sqlite.writer import SqliteRegistryWriter
from tests.support.worlds import DEPLOYMENT

FILE = """\
deployment = "{deployment}"
mode = "{mode}"
state_dir = "{folder}/state"
[registry]
path = "{folder}/registry.db"
[[providers]]
name = "aws"
type = "aws"
account = "111111111111"
regions = ["us-east-1"]
{more}
"""
_CREATED = "2026-01-10T10:00:00Z"


def run(*words: object, stdin: io.BytesIO | None = None) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words], input=stdin, prog_name="reaperd")


def person(answer: str) -> io.BytesIO:
    """Return the stdin of somebody at a terminal."""
    return _Terminal(f"{answer}\n".encode())


class _Terminal(io.BytesIO):
    def isatty(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Place:
    """A folder with a configuration."""

    folder: Path

    @property
    def config(self) -> Path:
        return self.folder / "reaperd.toml"

    @property
    def registry(self) -> Path:
        return self.folder / "registry.db"

    @property
    def ledger(self) -> Path:
        return self.folder / "state" / "ledger.db"

    def configure(self, *, mode: str = "dry-run", deployment: str = DEPLOYMENT, more: str = "") -> None:
        text = FILE.format(folder=self.folder, mode=mode, deployment=deployment, more=more)
        self.config.write_text(text, encoding="utf-8")

    def make_registry(self, deployment: str = DEPLOYMENT, *, rows: int = 0) -> SqliteRegistryWriter:
        create(self.registry, deployment, registry_id="r-1")
        writer = SqliteRegistryWriter(self.registry, deployment)
        with closing(sqlite3.connect(self.registry)) as connection, connection:
            # In one transaction: the writer makes each row durable, which takes milliseconds.
            connection.executemany(
                "INSERT INTO workers VALUES (?, 'aws', 'us-east-1', ?, 'running', NULL, ?, NULL, NULL, ?, NULL)",
                [(f"w-{number}", f"i-{number}", _CREATED, _CREATED) for number in range(rows)],
            )
        return writer

    def open(self) -> Ledger:
        now = datetime.now(UTC)
        return open_ledger(self.ledger, deployment=DEPLOYMENT, owner_tag="reaperd:owner", now=now)

    def make_ledger(self, *passes: PassReport) -> None:
        with self.open() as ledger:
            for report in passes:
                ledger.record(record_of(report, {}))

    def acts(self) -> list[tuple[str, str, str]]:
        """Return what operators did: act, by whom, why."""
        with self.open() as ledger:
            return ledger._connection.execute("SELECT act, by_whom, reason FROM operator_acts").fetchall()
