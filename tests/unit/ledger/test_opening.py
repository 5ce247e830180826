from __future__ import annotations

import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from reaperd.errors import LedgerUnusableError
from tests.unit.ledger.conftest import NOW, open_at


def test_a_new_ledger_is_made_with_its_folder_and_for_its_owner_alone(path: Path):
    open_at(path).close()

    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_ledger_is_opened_again_as_it_was(path: Path):
    open_at(path).close()
    created = _meta(path)

    open_at(path).close()

    assert _meta(path) == created


def test_every_commit_is_on_the_disk_before_it_returns(path: Path):
    with open_at(path) as ledger:
        synchronous = ledger._connection.execute("PRAGMA synchronous").fetchone()[0]
        journal = ledger._connection.execute("PRAGMA journal_mode").fetchone()[0]

    assert (synchronous, journal) == (2, "wal")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [({"deployment": "prod-b"}, "prod-a"), ({"owner_tag": "other:owner"}, "reaperd:owner")],
)
def test_another_deployments_ledger_is_refused(path: Path, change: dict[str, str], complaint: str):
    open_at(path).close()

    with pytest.raises(LedgerUnusableError, match=complaint):
        open_at(path, **change)


def test_a_newer_schema_is_refused_and_left_alone(path: Path):
    open_at(path).close()
    _execute(path, "UPDATE meta SET schema_version = 99")

    with pytest.raises(LedgerUnusableError, match="newer"):
        open_at(path)

    assert _meta(path)[3] == 99


def test_another_programs_database_is_refused_and_left_alone(path: Path):
    path.parent.mkdir()
    _execute(path, "CREATE TABLE workers (id)")

    with pytest.raises(LedgerUnusableError, match="another program"):
        open_at(path)

    connection = sqlite3.connect(path)
    names = connection.execute("SELECT name FROM sqlite_master").fetchall()
    connection.close()
    assert names == [("workers",)]


def test_a_ledger_without_its_meta_row_is_refused(path: Path):
    open_at(path).close()
    _execute(path, "DELETE FROM meta")
    _execute(path, "DROP TABLE _sqlite_migrations")

    with pytest.raises(LedgerUnusableError):
        open_at(path)


@pytest.mark.parametrize(
    "content", [b"not a database, but long enough to look at" * 40, b"SQLite format 3\x00" + b"\xff" * 4096]
)
def test_a_file_that_is_no_database_is_refused_and_left_alone(path: Path, content: bytes):
    path.parent.mkdir()
    path.write_bytes(content)

    with pytest.raises(LedgerUnusableError):
        open_at(path)

    assert path.read_bytes() == content


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path):
    (tmp_path / "file").write_text("")

    with pytest.raises(LedgerUnusableError):
        open_at(tmp_path / "file" / "ledger.db")


def test_eight_processes_that_start_at_the_same_moment_make_one_ledger(path: Path):
    errors: list[BaseException] = []

    def start() -> None:
        try:
            open_at(path).close()
        except LedgerUnusableError as error:
            errors.append(error)

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert errors == []
    assert _meta(path)[1] == "prod-a"


def test_the_first_moment_of_a_ledger_may_be_shared(tmp_path: Path):
    # SQLite itself fails in one of six rounds or so.
    for number in range(40):
        path, start = tmp_path / str(number) / "ledger.db", threading.Barrier(3)

        def opened(path: Path = path, start: threading.Barrier = start) -> None:
            start.wait()
            open_at(path).close()

        with ThreadPoolExecutor(3) as pool:
            for each in [pool.submit(opened) for _ in range(3)]:
                each.result()


@pytest.mark.slow
def test_a_file_that_another_program_never_lets_go_of_is_refused_after_a_while(path: Path):
    path.parent.mkdir()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        began = time.monotonic()

        with pytest.raises(LedgerUnusableError, match="another process keeps it") as refused:
            open_at(path)

    assert "database is locked" in str(refused.value)
    assert "`reaperd doctor` names that process" in str(refused.value)
    assert 1 < time.monotonic() - began < 20


def test_a_transaction_that_fails_leaves_nothing(path: Path):
    with open_at(path) as ledger:
        with pytest.raises(RuntimeError), ledger.transaction():
            ledger.resume("me", "inside", NOW)
            raise RuntimeError

        acts = ledger._connection.execute("SELECT count(*) FROM operator_acts").fetchone()[0]

    assert acts == 0


def test_a_full_disk_is_a_ledger_that_cannot_be_used(path: Path):
    with open_at(path) as ledger:
        pages = ledger._connection.execute("PRAGMA page_count").fetchone()[0]
        ledger._connection.execute(f"PRAGMA max_page_count = {pages}")

        with pytest.raises(LedgerUnusableError, match="full"):
            for _ in range(2000):
                ledger.resume("me", "x" * 1000, NOW)


def _meta(path: Path) -> tuple[object, ...]:
    connection = sqlite3.connect(path)
    row = connection.execute("SELECT * FROM meta").fetchone()
    connection.close()
    return tuple(row)


def _execute(path: Path, sql: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute(sql)
    connection.commit()
    connection.close()
