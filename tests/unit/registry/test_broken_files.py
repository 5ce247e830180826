"""A registry that is not whole is refused, and told apart; it is never read as a shorter or an empty one."""

import os
import random
import sqlite3
import struct
from pathlib import Path

import pytest

from registry.errors import RegistryUnusableError
from registry.model import SCHEMA_VERSION, RegistryFault
from registry.sqlite.reader import verify
from registry.sqlite.remedies import unusable
from registry.sqlite_readonly import ReadOnlyOpenError
from tests.unit.registry.files import connected, files, new_registry, reader, rewrite, run

INTACT = 300


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "registry.db"


def refusal(path: Path) -> RegistryUnusableError:
    """Return why both ways of reading refuse, having checked that they left no trace."""
    before = files(path)
    with pytest.raises(RegistryUnusableError) as refused:
        reader(path).snapshot()
    with pytest.raises(RegistryUnusableError) as at_the_door:
        reader(path).lookup("i-0001", "w-0001")
    assert at_the_door.value.fault is refused.value.fault
    assert files(path) == before
    assert str(path) in str(refused.value)
    assert refused.value.remedy
    return refused.value


class TestNoRegistry:
    def test_missing(self, path):
        error = refusal(path)

        assert error.fault is RegistryFault.MISSING
        assert f"reaperd registry init --path {path}" in error.remedy
        assert "registry.path" in error.remedy

    def test_a_folder(self, path):
        path.mkdir()

        assert refusal(path).fault is RegistryFault.NOT_A_FILE

    def test_zero_bytes(self, path):
        path.touch()

        assert refusal(path).fault is RegistryFault.EMPTY_FILE

    def test_garbage(self, path):
        path.write_bytes(b"worker_id,instance_id\nw-1,i-1\n" * 200)

        assert refusal(path).fault is RegistryFault.NOT_A_DATABASE

    def test_the_database_of_another_program(self, path):
        run(path, "CREATE TABLE t (x)")

        error = refusal(path)

        assert error.fault is RegistryFault.NO_META_TABLE
        assert "neither" in error.detail

    def test_no_meta_table(self, path):
        new_registry(path, 3)
        run(path, "DROP TABLE meta")

        assert refusal(path).fault is RegistryFault.NO_META_TABLE

    def test_no_meta_row(self, path):
        new_registry(path)
        run(path, "DELETE FROM meta")

        assert refusal(path).fault is RegistryFault.NO_META_ROW

    def test_no_workers_table(self, path):
        new_registry(path, 3)
        run(path, "DROP TABLE workers")

        assert refusal(path).fault is RegistryFault.NO_WORKERS_TABLE


class TestAnotherSchema:
    def other(self, path: Path) -> str:
        error = refusal(path)
        assert error.fault is RegistryFault.OTHER_SCHEMA
        assert f"reaperd registry migrate --path {path}" in error.remedy
        return error.detail

    def test_a_newer_one_is_told_first_whatever_its_tables(self, path):
        new_registry(path)
        newer = f"UPDATE meta SET schema_version = {SCHEMA_VERSION + 1}"
        run(path, newer, "ALTER TABLE meta ADD COLUMN more TEXT", "DROP TABLE workers")

        error = refusal(path)

        assert error.fault is RegistryFault.NEWER_SCHEMA
        assert "Upgrade" in error.remedy

    def test_an_older_one(self, path):
        new_registry(path)
        run(path, "UPDATE meta SET schema_version = 0")

        assert "0" in self.other(path)

    def test_no_version(self, path):
        new_registry(path)
        run(path, "ALTER TABLE meta RENAME COLUMN schema_version TO version")

        assert "schema_version" in self.other(path)

    def test_two_meta_rows(self, path):
        new_registry(path)
        rewrite(path, "meta", "CHECK (id = 1)", "CHECK (id > 0)")
        run(path, "INSERT INTO meta SELECT 2, 'other', deployment, schema_version, epoch, updated_at FROM meta")

        assert "2 rows" in self.other(path)

    def test_workers_that_are_a_view(self, path):
        new_registry(path, 3)
        run(
            path,
            "ALTER TABLE workers RENAME TO all_workers",
            "CREATE VIEW workers AS SELECT * FROM all_workers LIMIT 1",
        )

        assert "view" in self.other(path)

    def test_workers_that_are_not_strict(self, path):
        new_registry(path, 3)
        run(
            path,
            "CREATE TABLE loose AS SELECT * FROM workers",
            "DROP TABLE workers",
            "ALTER TABLE loose RENAME TO workers",
        )

        assert "STRICT" in self.other(path)

    @pytest.mark.parametrize(
        ("old", "new", "odd"),
        [
            ("instance_id TEXT", "instance TEXT", "instance_id"),
            ("model TEXT", "model TEXT, deleted_at TEXT", "deleted_at"),
            ("instance_id TEXT", "instance_id INTEGER", "instance_id"),
            ("region TEXT NOT NULL", "region TEXT", "region"),
            ("worker_id TEXT PRIMARY KEY NOT NULL", "worker_id TEXT NOT NULL", "worker_id"),
        ],
    )
    def test_columns_that_are_not_ours(self, path, old, new, odd):
        new_registry(path)
        with connected(path) as connection:
            (sql,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'workers'").fetchone()
            connection.execute("DROP TABLE workers")
            assert old in sql
            connection.execute(sql.replace(old, new, 1))

        assert odd in self.other(path)

    def test_no_epochs(self, path):
        new_registry(path)
        run(path, "DROP TABLE epochs")

        assert "epochs" in self.other(path)

    @pytest.mark.parametrize("trigger", ["workers_inserted", "workers_deleted", "workers_changed", "workers_written"])
    def test_a_trigger_that_was_dropped(self, path, trigger):
        new_registry(path, 3)
        run(path, f"DROP TRIGGER {trigger}")

        assert trigger in self.other(path)

    def test_a_trigger_that_does_something_else(self, path):
        new_registry(path, 3)
        run(
            path,
            "DROP TRIGGER workers_deleted",
            "CREATE TRIGGER workers_deleted AFTER DELETE ON workers BEGIN SELECT 1; END",
        )

        assert "workers_deleted" in self.other(path)

    @pytest.mark.parametrize(
        "loss", ["DELETE FROM epochs", "UPDATE epochs SET nonce = ''", "UPDATE meta SET epoch = 99"]
    )
    def test_a_current_epoch_without_its_mark(self, path, loss):
        new_registry(path, 3)
        run(path, loss)

        assert "mark" in self.other(path)


class TestBadRows:
    @pytest.mark.parametrize(
        "change",
        [
            "state = 'zombie'",
            "state = ''",
            "worker_id = ''",
            "worker_id = ' w-1'",
            "provider = ' '",
            "region = 'us-east-1 '",
            "instance_id = char(9) || 'i-1'",
            "instance_id = 'i-1' || char(0)",
            "instance_id = 'i-1' || char(8203)",
            "instance_id = CAST(x'692dff' AS TEXT)",
        ],
    )
    def test_a_row_that_would_only_look_like_protection(self, path, change):
        new_registry(path, 3)
        run(path, "PRAGMA ignore_check_constraints = ON", f"UPDATE workers SET {change} WHERE worker_id = 'w-0001'")

        error = refusal(path)

        assert error.fault is RegistryFault.BAD_ROW
        assert "reaperd registry remove" in error.remedy

    def test_a_value_that_must_not_be_null(self, path):
        new_registry(path, 3)
        rewrite(path, "workers", "region TEXT NOT NULL", "region TEXT")
        run(path, "UPDATE workers SET region = NULL WHERE worker_id = 'w-0001'")
        rewrite(path, "workers", "region TEXT", "region TEXT NOT NULL")

        assert refusal(path).fault is RegistryFault.BAD_ROW

    @pytest.mark.parametrize("column", ["created_at", "model", "instance_id", "heartbeat_at"])
    def test_a_value_that_is_no_text(self, path, column):
        new_registry(path, 3)
        run(path, "UPDATE workers SET created_at = '2026-01-10T11:00:00Z', updated_at = '2026-01-10T11:00:00Z'")
        rewrite(path, "workers", "\n) STRICT", "\n)")
        run(path, f"UPDATE workers SET {column} = x'2026' WHERE worker_id = 'w-0001'")
        rewrite(path, "workers", "\n)", "\n) STRICT")

        error = refusal(path)

        assert error.fault is RegistryFault.BAD_ROW
        assert "w-0001" in error.detail

    def test_a_rule_that_a_row_breaks_although_it_names_its_machine(self, path):
        new_registry(path, 3)
        rewrite(path, "workers", "created_at TEXT NOT NULL", "created_at TEXT")
        run(path, "UPDATE workers SET created_at = NULL WHERE worker_id = 'w-0001'")
        rewrite(path, "workers", "created_at TEXT", "created_at TEXT NOT NULL")

        assert refusal(path).fault is RegistryFault.DAMAGED

    @pytest.mark.parametrize("column", ["registry_id", "deployment"])
    def test_a_meta_row_that_names_nobody(self, path, column):
        new_registry(path, 3)
        run(path, f"UPDATE meta SET {column} = ' '")

        assert refusal(path).fault is RegistryFault.BAD_ROW


class TestDamage:
    def test_a_page_that_lost_a_row_reads_as_a_shorter_registry_and_is_refused(self, path):
        new_registry(path, INTACT)
        drop_last_row_of_a_page(path)

        assert rows_that_sqlite_reads(path) == INTACT - 1
        assert refusal(path).fault is RegistryFault.DAMAGED

    def test_a_table_that_lost_nearly_all_reads_without_an_error_and_is_refused(self, path):
        new_registry(path, INTACT)
        drop_nearly_all_rows(path)

        assert rows_that_sqlite_reads(path) < 20
        assert refusal(path).fault is RegistryFault.DAMAGED

    def test_verify_names_more_than_the_first_damage(self, path):
        new_registry(path, INTACT)
        drop_nearly_all_rows(path)

        with pytest.raises(RegistryUnusableError) as refused:
            verify(path)

        assert refused.value.fault is RegistryFault.DAMAGED
        assert "wrong # of entries" in refused.value.detail
        assert "wrong # of entries" not in refusal(path).detail

    def test_a_file_cut_off_anywhere_is_refused(self, path):
        content = new_registry(path, INTACT).read_bytes()

        for size in range(0, len(content), 1777):
            path.write_bytes(content[:size])
            assert refusal(path).fault in {
                RegistryFault.EMPTY_FILE,
                RegistryFault.NOT_A_DATABASE,
                RegistryFault.DAMAGED,
            }

    @pytest.mark.parametrize("journal", ["wal", "delete"])
    def test_no_lost_or_exchanged_page_is_read_as_another_registry(self, path, journal):
        content = new_registry(path, INTACT, journal=journal).read_bytes()
        intact = reader(path).snapshot()
        pages = len(content) // 4096

        for page in range(pages):
            for other in (bytes(4096), b"\xff" * 4096, content[4096 * ((page + 1) % pages) :][:4096]):
                path.write_bytes(content[: 4096 * page] + other + content[4096 * (page + 1) :])
                try:
                    read = reader(path).snapshot()
                except RegistryUnusableError:
                    continue
                assert read == intact, page

    def test_no_flipped_bit_makes_a_row_disappear(self, path):
        content = new_registry(path, INTACT).read_bytes()
        intact = {worker.worker_id for worker in reader(path).snapshot().workers}
        dice = random.Random(20260110)

        for _ in range(80):
            broken = bytearray(content)
            broken[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
            path.write_bytes(broken)
            try:
                read = reader(path).snapshot()
            except RegistryUnusableError:
                continue
            assert {worker.worker_id for worker in read.workers} == intact

    def test_a_backup_that_was_copied_over_the_file_of_a_killed_writer(self, path):
        new_registry(path, 3 * INTACT)
        with connected(path) as writer:
            writer.execute("DELETE FROM workers WHERE worker_id > 'w-0800'")
            left = {each: each.read_bytes() for each in path.parent.iterdir() if each != path}
        path.unlink()
        new_registry(path, INTACT)
        for each, content in left.items():
            each.write_bytes(content)

        assert len(left) == 2
        assert refusal(path).fault is RegistryFault.DAMAGED


def rows_that_sqlite_reads(path: Path) -> int:
    with connected(path) as connection:
        return len(connection.execute("SELECT * FROM workers NOT INDEXED").fetchall())


def leaves_of_workers(path: Path) -> list[int]:
    """Return the numbers of the leaf pages that hold the rows, from the root page's own cells."""
    with connected(path) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'workers'").fetchone()
    page = path.read_bytes()[4096 * (root - 1) :][:4096]
    assert page[0] == 5, "an inner page of a table"
    (cells,) = struct.unpack(">H", page[3:5])
    starts = struct.unpack(f">{cells}H", page[12 : 12 + 2 * cells])
    return [*(struct.unpack(">I", page[start : start + 4])[0] for start in starts), struct.unpack(">I", page[8:12])[0]]


def set_cells(path: Path, page: int, cells: int) -> None:
    """Make a leaf page say that it holds so many rows."""
    with path.open("r+b") as file:
        file.seek(4096 * (page - 1) + 3)
        file.write(struct.pack(">H", cells))


def drop_last_row_of_a_page(path: Path) -> None:
    leaf = leaves_of_workers(path)[1]
    (cells,) = struct.unpack(">H", path.read_bytes()[4096 * (leaf - 1) + 3 :][:2])
    set_cells(path, leaf, cells - 1)


def drop_nearly_all_rows(path: Path) -> None:
    for leaf in leaves_of_workers(path):
        set_cells(path, leaf, 1)


class TestOtherHands:
    @pytest.mark.parametrize("journal", ["delete", "truncate", "persist"])
    def test_a_writer_that_holds_a_rollback_journal_for_too_long(self, path, journal):
        new_registry(path, 3, journal=journal)
        with connected(path) as writer:
            writer.execute("BEGIN EXCLUSIVE")
            writer.execute("DELETE FROM workers")

            error = refusal(path)

        assert error.fault is RegistryFault.LOCKED
        assert "busy_timeout" in error.remedy

    def test_a_writer_that_keeps_wal_for_itself(self, path):
        new_registry(path, 3)
        with connected(path) as writer:
            writer.execute("PRAGMA locking_mode = EXCLUSIVE")
            writer.execute("BEGIN IMMEDIATE")

            assert refusal(path).fault is RegistryFault.LOCKED

    def test_a_file_that_is_written_at_every_reading(self, path, monkeypatch):
        new_registry(path, 3)
        intruder = os.stat

        def stat_and_write(target, *args, **options):
            run(path, "UPDATE workers SET model = hex(randomblob(4))")
            return intruder(target, *args, **options)

        monkeypatch.setattr(Path, "stat", stat_and_write)
        with pytest.raises(RegistryUnusableError) as refused:
            reader(path).snapshot()

        assert refused.value.fault is RegistryFault.CHANGED_WHILE_READ


def test_every_fault_has_its_remedy(path):
    for fault in RegistryFault:
        assert unusable(path, ReadOnlyOpenError(fault, "it is so")).remedy


def test_the_trap_that_all_this_is_about(path):
    """Plain sqlite3 makes an empty registry of a missing file."""
    sqlite3.connect(path).close()

    assert refusal(path).fault in {RegistryFault.MISSING, RegistryFault.EMPTY_FILE}
