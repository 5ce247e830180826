"""What is particular to writing a file: its locks, its owner, its failures, and what an operator does to it."""

import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from registry.conformance import FULL, LAUNCHING
from registry.errors import RegistryError, RegistryUnusableError, RegistryWriteError
from registry.model import RegistryFault, Worker, WorkerState
from registry.sqlite.admin import backup, create, migrate
from registry.sqlite.connection import writing
from registry.sqlite.schema import TABLES, TRIGGERS
from registry.sqlite.writer import SqliteRegistryWriter
from tests.unit.registry.files import SHORT, connected, files, insert, new_registry, reader, run

ROOT = Path(__file__).parents[3]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "registry.db"


class TestCreate:
    def test_a_new_registry_is_one_that_the_daemon_accepts(self, path):
        identity = create(path, "prod", registry_id="r-1")

        assert reader(path).snapshot().identity == identity
        assert (identity.registry_id, identity.deployment, identity.epoch) == ("r-1", "prod", 1)

    def test_two_new_registries_are_told_apart(self, path):
        one, other = create(path, "prod"), create(path.with_name("other.db"), "prod")

        assert one.registry_id != other.registry_id

    def test_it_is_in_wal_mode_and_leaves_one_file(self, path):
        create(path, "prod")

        assert list(files(path)) == ["registry.db"]
        with connected(path) as connection:
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)

    def test_a_control_plane_that_was_started_too_early_keeps_it_from_nothing(self, tmp_path):
        # SQLite itself fails in one of fifteen rounds or so.
        made, over = threading.Event(), threading.Event()
        paths = [tmp_path / f"{number}.db" for number in range(100)]
        current = [paths[0]]

        def beat() -> None:
            while not over.is_set():
                made.set()
                with suppress(RegistryError):
                    SqliteRegistryWriter(current[0], "prod").heartbeat("w-1")

        early = threading.Thread(target=beat)
        early.start()
        made.wait()
        try:
            for each in paths:
                current[0] = each
                create(each, "prod")
        finally:
            over.set()
            early.join()

    @pytest.mark.parametrize("content", [b"", b"precious"])
    def test_nothing_is_overwritten(self, path, content):
        path.write_bytes(content)

        with pytest.raises(RegistryWriteError, match="never overwritten"):
            create(path, "prod")

        assert path.read_bytes() == content

    def test_a_link_that_leads_nowhere_is_not_followed(self, path):
        path.symlink_to(path.with_name("elsewhere.db"))

        with pytest.raises(RegistryWriteError):
            create(path, "prod")

        assert not path.with_name("elsewhere.db").exists()

    def test_a_folder_that_is_not_there_is_not_made(self, path):
        with pytest.raises(RegistryWriteError, match="No such file"):
            create(path / "registry.db", "prod")

    @pytest.mark.parametrize("deployment", ["", "Prod", "1prod", "prod eu", "p" * 32, "prod\n"])
    def test_a_name_that_is_no_tag_value_everywhere_is_refused(self, path, deployment):
        with pytest.raises(RegistryWriteError, match="deployment"):
            create(path, deployment)

        assert not path.exists()

    def test_a_registry_id_that_nobody_can_see_is_refused(self, path):
        with pytest.raises(RegistryWriteError, match="registry id"):
            create(path, "prod", registry_id=" ")

        assert not path.exists()

    def test_the_wal_of_a_file_that_was_deleted_does_not_come_back(self, path):
        new_registry(path, 3)
        with connected(path) as writer:
            insert_more(writer)
            wal = path.with_name("registry.db-wal").read_bytes()
        path.unlink()
        path.with_name("registry.db-wal").write_bytes(wal)

        create(path, "prod")

        assert reader(path).snapshot().workers == ()


def insert_more(writer: sqlite3.Connection) -> None:
    writer.execute("UPDATE workers SET worker_id = 'x-' || worker_id")
    insert(writer, 3)


class TestWriter:
    def test_a_missing_file_is_not_made(self, path):
        with pytest.raises(RegistryWriteError, match="reaperd registry init"):
            SqliteRegistryWriter(path, "prod").add(FULL)

        assert files(path) == {}

    def test_the_registry_of_another_deployment_is_not_written(self, path):
        new_registry(path)

        with pytest.raises(RegistryWriteError, match="'prod'"):
            SqliteRegistryWriter(path, "test").add(FULL)

        assert reader(path).snapshot().workers == ()

    @pytest.mark.parametrize(
        "loss", ["DROP TRIGGER workers_inserted", "UPDATE meta SET schema_version = 99", "DELETE FROM meta"]
    )
    def test_a_registry_that_the_daemon_would_refuse_is_not_written(self, path, loss):
        new_registry(path)
        run(path, loss)
        before = files(path)

        with pytest.raises(RegistryWriteError):
            SqliteRegistryWriter(path, "prod").add(FULL)

        assert files(path) == before

    def test_a_file_that_is_locked_for_too_long_is_said_to_be_so(self, path):
        new_registry(path)
        with connected(path) as other:
            other.execute("BEGIN IMMEDIATE")

            with pytest.raises(RegistryWriteError, match="locked"):
                SqliteRegistryWriter(path, "prod", busy_timeout=SHORT).add(FULL)

    @pytest.mark.parametrize("content", [b"garbage" * 1000, b""])
    def test_a_file_that_is_no_registry_stays_as_it_is(self, path, content):
        path.write_bytes(content)

        with pytest.raises(RegistryWriteError):
            SqliteRegistryWriter(path, "prod").add(FULL)

        assert path.read_bytes() == content

    def test_a_full_disk_changes_nothing(self, path):
        new_registry(path, 3)
        before = reader(path).snapshot()

        with pytest.raises(RegistryWriteError, match="full"):
            fill(path)

        assert reader(path).snapshot() == before

    def test_many_writers_at_once_lose_nothing(self, path):
        new_registry(path)

        def work(name: str) -> None:
            writer = SqliteRegistryWriter(path, "prod")
            for number in range(10):
                worker = f"{name}-{number}"
                writer.add(replace_id(worker))
                writer.set_instance(worker, f"i-{worker}")

        threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        snapshot = reader(path).snapshot()
        assert len(snapshot.workers) == 40
        assert {worker.state for worker in snapshot.workers} == {WorkerState.RUNNING}
        assert snapshot.identity.epoch == 1 + 80

    def test_several_rows_are_added_together_or_not_at_all(self, path):
        new_registry(path)
        writer = SqliteRegistryWriter(path, "prod")

        for bad in (
            replace_id("w-2"),
            replace_id(" "),
            replace(LAUNCHING, worker_id="w-9", unreadable=("created_at",)),
        ):
            with pytest.raises(RegistryWriteError):
                writer.add_all([FULL, LAUNCHING, bad])
            assert reader(path).snapshot().workers == ()

        writer.add_all([FULL, LAUNCHING])
        assert len(reader(path).snapshot().workers) == 2

    def test_a_registry_that_was_put_in_its_place_is_the_one_that_is_written(self, path):
        new_registry(path)
        writer = SqliteRegistryWriter(path, "prod")
        writer.add(FULL)
        new_registry(path.with_name("other.db")).replace(path)

        writer.add(LAUNCHING)

        assert [worker.worker_id for worker in reader(path).snapshot().workers] == ["w-2"]

    def test_a_change_is_durable_once_it_returned(self, path):
        """A process that is killed right after the call has written it."""
        new_registry(path)
        code = (
            "import os, sys; from pathlib import Path; from registry.conformance import FULL\n"
            "from registry.sqlite.writer import SqliteRegistryWriter\n"
            "SqliteRegistryWriter(Path(sys.argv[1]), 'prod').add(FULL); os._exit(9)\n"
        )
        assert subprocess.run([sys.executable, "-c", code, str(path)], check=False, cwd=ROOT).returncode == 9

        assert reader(path).snapshot().workers == (FULL,)

    def test_every_write_waits_for_the_disk(self, path):
        new_registry(path)
        with writing(path, SHORT) as db:
            assert db.execute("PRAGMA synchronous").fetchone() == (2,)
            assert db.execute("PRAGMA foreign_keys").fetchone() == (1,)
            assert db.conn.in_transaction

    def test_the_write_lock_is_held_before_the_first_reading(self, path):
        """Two changes that both read first cannot fail one another."""
        new_registry(path)
        with (
            writing(path, SHORT),
            connected(path) as other,
            pytest.raises(sqlite3.OperationalError, match="locked"),
        ):
            other.execute("PRAGMA busy_timeout = 10")
            other.execute("BEGIN IMMEDIATE")


def replace_id(worker_id: str) -> Worker:
    return replace(LAUNCHING, worker_id=worker_id)


def fill(path: Path) -> None:
    with writing(path, SHORT) as db:
        db.execute("PRAGMA max_page_count = 1")
        insert_ten_thousand = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9999)"
        db.execute(
            f"{insert_ten_thousand} INSERT INTO workers SELECT 'x-' || i, 'aws', 'r', NULL, 'running', NULL, '', NULL,"
            " NULL, '', NULL FROM n"
        )


class TestMigrate:
    def test_a_current_registry_needs_nothing(self, path):
        new_registry(path, 3)
        before = reader(path).snapshot()

        assert migrate(path) == ()
        assert reader(path).snapshot() == before

    @pytest.mark.parametrize("trigger", list(TRIGGERS))
    def test_triggers_that_were_lost_or_changed_come_back_and_the_epoch_moves_on(self, path, trigger):
        new_registry(path, 3)
        before = reader(path).snapshot()
        run(path, f"DROP TRIGGER {trigger}", f"CREATE TRIGGER {trigger} AFTER INSERT ON workers BEGIN SELECT 1; END")

        assert migrate(path) == (trigger,)

        after = reader(path).snapshot()
        assert after.workers == before.workers
        assert after.identity.epoch == before.identity.epoch + 1

    def test_marks_that_were_lost_are_made_anew(self, path):
        new_registry(path, 3)
        run(path, "DROP TABLE epochs")

        assert migrate(path) == ("epochs", "mark")
        assert reader(path).snapshot().nonce

    def test_a_registry_that_another_language_made_is_adopted(self, path):
        run(
            path,
            *TABLES.values(),
            *TRIGGERS.values(),
            "INSERT INTO meta VALUES (1, 'r-9', 'prod', 2, 0, '')",
        )
        with connected(path) as connection:
            insert(connection, 3)
        before = reader(path).snapshot()

        assert migrate(path) == ("0001_tables", "0002_zone")
        assert reader(path).snapshot() == before

    @pytest.mark.parametrize(
        "loss",
        [
            ("DROP TABLE workers",),
            ("DROP TABLE workers", "DROP TABLE _sqlite_migrations"),
            ("DROP TABLE meta",),
            ("DELETE FROM meta",),
            ("UPDATE meta SET schema_version = 99",),
            ("UPDATE meta SET schema_version = 0",),
            ("ALTER TABLE workers RENAME TO w", "CREATE VIEW workers AS SELECT * FROM w"),
            ("DROP TRIGGER workers_inserted", "ALTER TABLE workers DROP COLUMN model"),
        ],
    )
    def test_what_cannot_be_known_is_never_invented(self, path, loss):
        new_registry(path, 3)
        run(path, *loss)
        before = files(path)

        with pytest.raises(RegistryWriteError):
            migrate(path)

        assert files(path) == before

    def test_a_missing_registry_is_not_made(self, path):
        with pytest.raises(RegistryWriteError):
            migrate(path)

        assert files(path) == {}


class TestBackup:
    def test_a_copy_is_the_same_registry(self, path, tmp_path):
        new_registry(path, 300)
        target = tmp_path / "copy.db"

        backup(path, target)

        assert reader(target).snapshot() == reader(path).snapshot()
        assert sorted(files(path)) == ["copy.db", "registry.db"]

    def test_the_last_commit_of_a_living_writer_is_in_it(self, path, tmp_path):
        new_registry(path, 3)
        with connected(path) as writer:
            writer.execute("DELETE FROM workers WHERE worker_id = 'w-0001'")
            backup(path, tmp_path / "copy.db")

        assert len(reader(tmp_path / "copy.db").snapshot().workers) == 2

    def test_nothing_is_overwritten(self, path, tmp_path):
        new_registry(path, 3)
        (tmp_path / "copy.db").touch()

        with pytest.raises(RegistryWriteError, match="never overwritten"):
            backup(path, tmp_path / "copy.db")

    def test_what_the_daemon_refuses_is_not_called_a_backup(self, path, tmp_path):
        new_registry(path, 3)
        os.truncate(path, path.stat().st_size // 2)

        with pytest.raises(RegistryUnusableError) as refused:
            backup(path, tmp_path / "copy.db")

        assert refused.value.fault is RegistryFault.DAMAGED
        assert not (tmp_path / "copy.db").exists()
