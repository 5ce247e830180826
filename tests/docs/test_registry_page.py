"""What docs/registry.md shows can be typed as it stands."""

import os
import shlex
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from registry.model import WorkerState
from registry.sqlite import SqliteRegistry
from registry.sqlite.admin import create
from registry.sqlite.schema import TABLES
from tests.docs.markdown import blocks, read
from tests.docs.pages import ROOT

PAGE = read("docs/registry.md")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    create(tmp_path / "registry.db", "prod-eu")
    return tmp_path / "registry.db"


def run(*command: str, cwd: Path) -> None:
    own = {name: value for name, value in os.environ.items() if not name.startswith("REAPERD_")}
    done = subprocess.run(
        [sys.executable, *command], cwd=cwd, env={**own, "PYTHONPATH": str(ROOT)}, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()


def test_the_python_leads_a_worker_through_its_life(path):
    (example,) = blocks(PAGE, "python")

    run("-c", example.text, cwd=path.parent)

    (row,) = SqliteRegistry(path).snapshot().workers
    assert (row.worker_id, row.instance_id, row.state) == ("w-1", "i-0a1b2c3d4e5f60718", WorkerState.COMPLETED)
    assert row.launched_at is not None
    assert row.heartbeat_at is not None


def test_the_commands_lead_a_worker_through_its_life(tmp_path):
    (example,) = blocks(PAGE, "console")

    for line in example.text.splitlines():
        program, *words = shlex.split(line.removeprefix("$ "))
        assert program == "reaperd"
        run("-m", "reaperd", *words, cwd=tmp_path)

    (row,) = SqliteRegistry(tmp_path / "registry.db").snapshot().workers
    assert (row.worker_id, row.instance_id, row.state) == ("w-2", "i-08172635445362718", WorkerState.COMPLETED)


def test_the_sql_leads_a_worker_through_its_life(path):
    example = next(block.text for block in blocks(PAGE, "sql") if "INSERT INTO workers" in block.text)

    rows = []
    with sqlite3.connect(path, isolation_level=None) as connection:
        for statement in statements(example):
            connection.execute(statement)
            rows += SqliteRegistry(path).snapshot().workers
    connection.close()

    assert [row.state for row in rows] == [
        WorkerState.LAUNCHING,
        WorkerState.RUNNING,
        WorkerState.RUNNING,
        WorkerState.COMPLETED,
    ]
    assert rows[-1].heartbeat_at is not None
    assert not any(row.unreadable for row in rows)


def test_a_row_that_was_given_up_does_not_come_back_by_a_late_answer(path):
    example = next(block.text for block in blocks(PAGE, "sql") if "INSERT INTO workers" in block.text)
    _, _, insert, update, *_ = statements(example)

    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(insert)
    connection.execute("UPDATE workers SET state = 'failed'")
    connection.execute(update)
    connection.close()

    (row,) = SqliteRegistry(path).snapshot().workers
    assert (row.state, row.instance_id) == (WorkerState.FAILED, None)


def test_the_schema_makes_a_registry(tmp_path):
    path = tmp_path / "registry.db"
    connection = sqlite3.connect(path, isolation_level=None)
    for block in blocks(PAGE, "sql"):
        if block.text.startswith("CREATE"):
            connection.executescript(block.text)
    connection.execute("INSERT INTO meta VALUES (1, 'r-1', 'prod-eu', 2, 0, '2026-01-10T11:00:00Z')")
    connection.execute(
        "INSERT INTO workers (worker_id, provider, region, state, created_at, updated_at)"
        " VALUES ('w-1', 'aws', 'eu-west-1', 'launching', '2026-01-10T11:00:00Z', '2026-01-10T11:00:00Z')"
    )
    connection.close()

    snapshot = SqliteRegistry(path).snapshot()
    assert snapshot.identity.epoch == 1
    assert len(snapshot.workers) == 1


@pytest.mark.parametrize("state", WorkerState)
def test_the_life_of_a_row_knows_every_state_and_whether_it_protects(state):
    (line,) = (line for line in PAGE.splitlines() if line.startswith("| `") and f"`{state}`" in line.split("|")[1])

    assert line.split("|")[2].strip().startswith("yes" if state.is_live else "**no**")


@pytest.mark.parametrize("table", TABLES)
def test_every_table_is_shown(table):
    assert f"CREATE TABLE {table} (" in PAGE


def statements(text: str) -> list[str]:
    return [statement for statement in text.split(";") if statement.strip()]
