"""Every writer, in any language and by any statement, leaves its trace in the epoch and its mark."""

import sqlite3
from pathlib import Path

import pytest

from registry.model import RegistrySnapshot
from registry.sqlite.schema import EPOCHS_KEPT
from tests.unit.registry.files import INSERT, connected, new_registry, reader, run

COLUMNS = "(worker_id, provider, region, instance_id, state, created_at, updated_at)"
VALUES = "('w-0001', 'aws', 'us-east-1', 'i-0001', 'running', '2026-01-10 11:00:00', '2026-01-10 11:00:00')"
OLD = "2001-01-01T00:00:00.000Z"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    new_registry(tmp_path / "registry.db", 3)
    run(tmp_path / "registry.db", f"UPDATE meta SET updated_at = '{OLD}'")
    return tmp_path / "registry.db"


def written(path: Path, *statements: str) -> tuple[RegistrySnapshot, RegistrySnapshot]:
    """Return the registry before and after."""
    before = reader(path).snapshot()
    run(path, *statements)
    return before, reader(path).snapshot(remembered_epoch=before.identity.epoch)


def touched(snapshot: RegistrySnapshot) -> bool:
    return snapshot.identity.updated_at is not None and snapshot.identity.updated_at.year > 2001


@pytest.mark.parametrize("recursive", ["ON", "OFF"])
@pytest.mark.parametrize(
    ("statement", "at_least"),
    [
        (f"INSERT INTO workers {COLUMNS} VALUES {VALUES.replace('0001', '9')}", 1),
        (f"INSERT INTO workers {COLUMNS} SELECT worker_id || 'x', 'aws', 'r', NULL, 'running', '', '' FROM workers", 3),
        (f"INSERT OR REPLACE INTO workers {COLUMNS} VALUES {VALUES}", 1),
        (f"REPLACE INTO workers {COLUMNS} VALUES {VALUES}", 1),
        (f"INSERT OR IGNORE INTO workers {COLUMNS} VALUES {VALUES.replace('0001', '9')}", 1),
        (f"INSERT INTO workers {COLUMNS} VALUES {VALUES} ON CONFLICT DO UPDATE SET state = 'failed'", 1),
        ("DELETE FROM workers", 3),
        ("DELETE FROM workers WHERE worker_id = 'w-0001'", 1),
        ("UPDATE workers SET state = 'failed'", 3),
        ("UPDATE workers SET instance_id = NULL WHERE worker_id = 'w-0001'", 1),
        ("UPDATE workers SET instance_id = 'i-9', heartbeat_at = 'now' WHERE worker_id = 'w-0001'", 1),
        ("UPDATE workers SET region = 'eu-west-1' WHERE worker_id = 'w-0001'", 1),
        ("UPDATE workers SET provider = 'gcp' WHERE worker_id = 'w-0001'", 1),
        ("UPDATE workers SET worker_id = 'renamed' WHERE worker_id = 'w-0001'", 1),
        ("UPDATE OR REPLACE workers SET worker_id = 'w-0002' WHERE worker_id = 'w-0001'", 1),
        ("UPDATE OR IGNORE workers SET state = 'failed' WHERE worker_id = 'w-0001'", 1),
        ("UPDATE OR REPLACE workers SET state = 'failed' WHERE worker_id = 'w-0001'", 1),
    ],
)
def test_what_changes_protection_raises_the_epoch_for_each_row(path, recursive, statement, at_least):
    before, after = written(path, f"PRAGMA recursive_triggers = {recursive}", statement)

    assert after.identity.epoch >= before.identity.epoch + at_least
    assert after.nonce not in (None, before.nonce)
    assert after.remembered_nonce == before.nonce
    assert touched(after)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE workers SET heartbeat_at = '2026-01-10 12:00:00' WHERE worker_id = 'w-0001'",
        "UPDATE workers SET model = 'other', updated_at = '2026-01-10 12:00:00' WHERE worker_id = 'w-0001'",
        # What an object mapper writes at each heartbeat.
        "UPDATE workers SET provider = provider, instance_id = instance_id, state = state, heartbeat_at = 'x'",
        f"INSERT INTO workers {COLUMNS} VALUES {VALUES} ON CONFLICT DO UPDATE SET heartbeat_at = 'x'",
    ],
)
def test_any_other_write_only_says_that_somebody_wrote(path, statement):
    before, after = written(path, statement)

    assert (after.identity.epoch, after.nonce) == (before.identity.epoch, before.nonce)
    assert touched(after)


@pytest.mark.parametrize(
    "statement",
    [
        f"INSERT OR IGNORE INTO workers {COLUMNS} VALUES {VALUES}",
        "DELETE FROM workers WHERE worker_id = 'nobody'",
        "UPDATE workers SET state = 'failed' WHERE worker_id = 'nobody'",
    ],
)
def test_a_statement_that_changes_nothing_leaves_no_trace(path, statement):
    before, after = written(path, statement)

    assert after.identity == before.identity
    assert after.nonce == before.nonce


def test_a_write_that_is_rolled_back_leaves_no_trace(path):
    before, after = written(path, "BEGIN", "DELETE FROM workers", "ROLLBACK")

    assert after.identity == before.identity
    assert after.workers == before.workers


def test_a_refused_write_leaves_no_trace(path):
    before = reader(path).snapshot()

    with connected(path) as writer, pytest.raises(sqlite3.IntegrityError):
        writer.execute("UPDATE workers SET state = CASE worker_id WHEN 'w-0002' THEN 'zombie' ELSE 'failed' END")

    assert reader(path).snapshot() == before


def test_the_last_ten_thousand_marks_are_kept(path):
    with connected(path) as writer:
        writer.execute("BEGIN")
        for _ in range(2):
            writer.executemany(INSERT, [(f"x-{number}", None) for number in range(EPOCHS_KEPT // 2)])
            writer.execute("DELETE FROM workers WHERE worker_id LIKE 'x-%'")
        writer.execute("COMMIT")

    snapshot = reader(path).snapshot()

    with connected(path) as connection:
        (kept, marks) = connection.execute("SELECT count(*), count(DISTINCT nonce) FROM epochs").fetchone()
    assert kept == marks == EPOCHS_KEPT == 10_000
    assert snapshot.oldest_epoch == snapshot.identity.epoch - EPOCHS_KEPT + 1
    assert reader(path).snapshot(remembered_epoch=snapshot.oldest_epoch - 1).remembered_nonce is None
    assert reader(path).snapshot(remembered_epoch=snapshot.oldest_epoch).remembered_nonce


def test_a_restored_backup_that_moved_on_to_the_same_epoch_is_told_by_its_mark(path, tmp_path):
    backup = path.read_bytes()
    run(path, "UPDATE workers SET state = 'draining' WHERE worker_id = 'w-0001'")
    remembered = reader(path).snapshot()
    path.write_bytes(backup)

    assert reader(path).snapshot(remembered_epoch=remembered.identity.epoch).remembered_nonce is None

    run(path, "DELETE FROM workers WHERE worker_id = 'w-0002'", "DELETE FROM workers WHERE worker_id = 'w-0000'")
    moved_on = reader(path).snapshot(remembered_epoch=remembered.identity.epoch)
    assert moved_on.identity.epoch > remembered.identity.epoch
    assert moved_on.remembered_nonce not in (None, remembered.nonce)


def test_an_epoch_that_was_lowered_by_hand_gets_new_marks(path):
    before = reader(path).snapshot()
    run(path, "UPDATE meta SET epoch = epoch - 1", "DELETE FROM workers WHERE worker_id = 'w-0001'")

    after = reader(path).snapshot()

    assert after.identity.epoch == before.identity.epoch
    assert after.nonce != before.nonce
