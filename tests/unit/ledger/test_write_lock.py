from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from reaperd.clock import SystemClock
from reaperd.ledger.write_lock import holder_of_the_write_lock
from tests.support.site import tree
from tests.unit.ledger.conftest import open_at

SHORT = timedelta(milliseconds=200)

HOLDS = """
import sqlite3, sys
ledger = sqlite3.connect(sys.argv[1], isolation_level=None)
ledger.execute("SELECT * FROM meta").fetchone()
if sys.argv[2] == "write":
    ledger.execute("BEGIN IMMEDIATE")
print("there", flush=True)
sys.stdin.read()
"""


@contextmanager
def another(path: Path, how: str) -> Iterator[subprocess.Popen[bytes]]:
    """Let another process have the ledger open, with or without its write lock."""
    command = [sys.executable, "-c", HOLDS, str(path), how]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process


def test_who_holds_the_write_lock_is_named_and_nothing_is_changed(path: Path):
    open_at(path).close()
    with another(path, "write") as process:
        before = tree(path.parent)

        assert holder_of_the_write_lock(path, SystemClock(), SHORT) == process.pid
        assert tree(path.parent) == before


def test_who_only_has_it_open_holds_nothing(path: Path):
    open_at(path).close()
    with another(path, "read"):
        assert holder_of_the_write_lock(path, SystemClock(), SHORT) is None


@pytest.mark.parametrize("made", [True, False])
def test_a_ledger_that_nobody_has_open_is_held_by_nobody_and_stays_as_it_is(path: Path, *, made: bool):
    if made:
        open_at(path).close()
    before = tree(path.parent.parent)

    assert holder_of_the_write_lock(path, SystemClock(), SHORT) is None
    assert tree(path.parent.parent) == before


def test_who_lets_go_while_it_is_looked_at_blocks_nobody(path: Path):
    open_at(path).close()
    with another(path, "write") as process:

        class LetsGo(SystemClock):
            def sleep(self, seconds: float) -> None:
                process.communicate()

        assert holder_of_the_write_lock(path, LetsGo(), timedelta(seconds=20)) is None
