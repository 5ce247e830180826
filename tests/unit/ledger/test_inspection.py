from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from reaperd.core.examined_host import LedgerFacts
from reaperd.core.model import Brake, Memory, RegistryPin
from reaperd.ledger.history import LedgerFile
from reaperd.ledger.inspection import inspect
from reaperd.ledger.lease import Lease
from reaperd.ledger.place import user_name
from reaperd.ledger.schema import SCHEMA_VERSION
from reaperd.process import ProcessIdentity, current
from tests.support.site import tree
from tests.unit.ledger.conftest import NOW, open_at

ME = user_name(os.geteuid())


def looked(path: Path, **more: Any) -> tuple[LedgerFacts, Memory]:
    return inspect(LedgerFile(path=path, deployment="prod-a", owner_tag="reaperd:owner"), NOW, **more)


def test_a_ledger_that_is_not_there_is_not_made(path: Path, tmp_path: Path):
    facts, memory = looked(path)

    assert (facts.exists, facts.schema, facts.trouble, facts.unwritable) == (False, None, "", ())
    assert memory == Memory()
    assert facts.ground is not None
    assert (facts.ground.folder, facts.ground.is_made) == (str(tmp_path), False)
    assert list(tmp_path.iterdir()) == []


def test_a_ledger_is_told_with_its_place_its_owner_and_its_size(path: Path):
    open_at(path).close()

    facts, _ = looked(path)

    assert (facts.exists, facts.schema, facts.size_bytes) == (True, SCHEMA_VERSION, path.stat().st_size)
    assert (facts.user, facts.holder, facts.brake) == (ME, None, None)
    assert facts.ground is not None
    assert (facts.ground.folder, facts.ground.is_made) == (str(path.parent), True)
    assert (facts.ground.owner, facts.ground.mode) == (ME, 0o700)
    assert facts.ground.free_bytes > 0


def test_looking_leaves_no_trace(path: Path):
    open_at(path).close()
    before = tree(path.parent)

    looked(path)

    assert tree(path.parent) == before


def test_what_the_ledger_remembers_is_told(path: Path):
    brake = Brake(since=NOW, by="ann", reason="drill")
    pin = RegistryPin(registry_id="r-1", epoch=7, nonce="n")
    with open_at(path) as ledger:
        ledger.hold(brake)
        ledger.pin(pin)

    facts, memory = looked(path)

    assert (facts.brake, memory.pin) == (brake, pin)


def test_the_holder_of_the_lease_is_told_alive(path: Path):
    with open_at(path) as ledger:
        assert isinstance(ledger.take_lease(current(), timedelta(minutes=1), NOW), Lease)

        facts, _ = looked(path)

    assert facts.holder is not None
    assert (facts.holder.pid, facts.holder.dead) == (os.getpid(), False)


def test_a_holder_that_died_is_told_dead(path: Path):
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    here = current()
    dead = ProcessIdentity(
        host=here.host,
        boot_id=here.boot_id,
        pid_namespace=here.pid_namespace,
        pid=int(gone.stdout),
        started="1",
    )
    with open_at(path) as ledger:
        ledger.take_lease(dead, timedelta(minutes=1), NOW)

    facts, _ = looked(path)

    assert facts.holder is not None
    assert facts.holder.dead


def test_a_lease_that_ran_out_is_held_by_nobody(path: Path):
    with open_at(path) as ledger:
        ledger.take_lease(current(), timedelta(minutes=1), NOW - timedelta(minutes=1))

    facts, _ = looked(path)

    assert facts.holder is None


@pytest.mark.parametrize("end", ["", "-wal"])
def test_a_file_that_may_not_be_written_is_named(path: Path, end: str):
    with open_at(path):
        closed = path.with_name(f"{path.name}{end}")

        facts, _ = looked(path, allowed=lambda asked, _mode: asked != closed)

    assert facts.unwritable == (str(closed),)


def test_a_folder_that_may_not_be_written_is_named_before_anything_is_in_it(path: Path, tmp_path: Path):
    facts, _ = looked(path, allowed=lambda asked, mode: not (asked == tmp_path and mode & os.W_OK))

    assert facts.unwritable == (str(tmp_path),)


def test_another_deployments_ledger_is_trouble_with_a_remedy(path: Path):
    open_at(path, deployment="prod-b").close()

    facts, memory = looked(path)

    assert "prod-b" in facts.trouble
    assert facts.ground is not None
    assert (facts.schema, memory) == (None, Memory())


@pytest.mark.parametrize("content", [b"", b"no database\n" * 400], ids=["empty", "garbage"])
def test_what_is_no_ledger_is_trouble_and_stays_as_it_is(path: Path, content: bytes):
    path.parent.mkdir()
    path.write_bytes(content)

    facts, _ = looked(path)

    assert facts.trouble
    assert path.read_bytes() == content


def test_a_time_that_no_reaperd_wrote_is_trouble(path: Path):
    open_at(path).close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO brake VALUES (1, 'yesterday', 'ann', '')")

    facts, _ = looked(path)

    assert "cannot be read" in facts.trouble
    assert "reaperd history --verify" in facts.remedy


def test_a_place_that_cannot_be_looked_at_is_trouble(tmp_path: Path):
    loop = tmp_path / "loop"
    loop.symlink_to(loop)

    facts, memory = looked(loop / "state" / "ledger.db")

    assert facts.trouble.startswith("it cannot be looked at: ")
    assert (facts.ground, memory) == (None, Memory())
