"""What a registry that is whole says."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.errors import RegistryUnusableError, RegistryWriteError
from registry.memory import MemoryRegistry
from registry.model import RegistryFault, RegistrySnapshot, Worker, WorkerState
from registry.rows import matching, problem_of
from registry.sqlite import SqliteRegistry, verify
from registry.sqlite.writer import SqliteRegistryWriter
from tests.unit.registry.files import connected, insert, new_registry, reader, run

ROOT = Path(__file__).parents[3]
NOON = datetime(2026, 1, 10, 12, tzinfo=UTC)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "registry.db"


@pytest.mark.parametrize("rows", [0, 1, 251, 1500])
def test_every_row_is_read(path, rows):
    new_registry(path, rows)

    snapshot = reader(path).snapshot()

    assert [worker.instance_id for worker in snapshot.workers] == [f"i-{number:04}" for number in range(rows)]
    assert snapshot.identity.epoch == 1 + rows


def test_verify_returns_what_the_daemon_would_read(path):
    new_registry(path, 3)

    assert verify(path) == reader(path).snapshot()


@pytest.mark.parametrize("blank", ["''", "' '", "NULL"])
def test_a_blank_instance_id_names_no_machine_and_is_not_an_id(path, blank):
    new_registry(path, 1)
    run(path, f"UPDATE workers SET instance_id = {blank}")

    (worker,) = reader(path).snapshot().workers

    assert worker.instance_id is None
    assert reader(path).lookup("i-9", "w-0000").workers == (worker,)


def test_ids_that_look_like_numbers_stay_as_they_are(path):
    new_registry(path, 1)
    run(path, "UPDATE workers SET worker_id = '00123', instance_id = '007'")

    (worker,) = reader(path).snapshot().workers

    assert (worker.worker_id, worker.instance_id) == ("00123", "007")


def test_a_file_that_another_language_encoded_in_utf_16_is_the_same(path):
    new_registry(path, 1)
    with connected(path) as source:
        script = "\n".join(source.iterdump())
    path.unlink()
    with connected(path) as other:
        other.execute("PRAGMA encoding = 'UTF-16le'")
        other.executescript(script)
        assert other.execute("PRAGMA encoding").fetchone() == ("UTF-16le",)

    assert [worker.worker_id for worker in reader(path).snapshot().workers] == ["w-0000"]


def test_a_dump_that_was_loaded_again_is_a_registry(path):
    new_registry(path, 3)
    with connected(path) as source:
        script = "\n".join(source.iterdump())
    before = reader(path).snapshot()
    path.unlink()
    with connected(path) as other:
        other.executescript(script)

    assert reader(path).snapshot().workers == before.workers


class TestTimes:
    @pytest.fixture(params=["America/New_York", "Pacific/Kiritimati"], autouse=True)
    def zone(self, request, monkeypatch):
        monkeypatch.setenv("TZ", request.param)
        time.tzset()
        yield
        monkeypatch.undo()
        time.tzset()

    def test_the_zone_of_the_host_changes_no_time(self, path):
        new_registry(path, 3)
        run(
            path,
            "UPDATE workers SET created_at = '2026-01-10 11:00:00' WHERE worker_id = 'w-0000'",
            "UPDATE workers SET created_at = '2026-01-10T13:00:00+02:00' WHERE worker_id = 'w-0001'",
            "UPDATE workers SET created_at = 'yesterday', heartbeat_at = '' WHERE worker_id = 'w-0002'",
        )

        naive, offset, unreadable = reader(path).snapshot().workers

        assert naive.created_at == offset.created_at == datetime(2026, 1, 10, 11, tzinfo=UTC)
        assert naive.unreadable == offset.unreadable == ()
        assert unreadable.created_at is None
        assert unreadable.unreadable == ("created_at", "heartbeat_at")

    def test_the_trigger_and_the_clock_of_sqlite_write_utc(self, path):
        new_registry(path)
        writer = SqliteRegistryWriter(path, "prod")
        writer.add(running("w-1"))

        snapshot = reader(path).snapshot()

        now = datetime.now(UTC)
        for written in (snapshot.identity.updated_at, snapshot.workers[0].created_at):
            assert written is not None
            assert timedelta(0) <= now - written < timedelta(minutes=1)

    def test_a_registry_whose_own_time_is_unreadable_is_usable_and_says_so(self, path):
        new_registry(path, 1)
        run(path, "UPDATE meta SET updated_at = 'just now'")

        assert reader(path).snapshot().identity.updated_at is None


def running(worker_id: str) -> Worker:
    return Worker(worker_id=worker_id, provider="aws", region="r", instance_id=None, state=WorkerState.LAUNCHING)


class TestWriters:
    @pytest.mark.parametrize("journal", ["wal", "delete"])
    def test_a_lock_that_is_released_in_time_is_waited_for(self, path, journal):
        new_registry(path, 3, journal=journal)
        locked = threading.Event()

        def hold() -> None:
            with connected(path) as writer:
                writer.execute("BEGIN EXCLUSIVE")
                writer.execute("DELETE FROM workers WHERE worker_id = 'w-0000'")
                locked.set()
                threading.Event().wait(0.3)
                writer.execute("COMMIT")

        with_lock = threading.Thread(target=hold)
        with_lock.start()
        assert locked.wait(5)
        snapshot = SqliteRegistry(path, timedelta(seconds=5)).snapshot()
        with_lock.join()

        # A WAL shows the last commit without waiting; a rollback journal waits for the next one.
        assert len(snapshot.workers) == {"wal": 3, "delete": 2}[journal]

    @pytest.mark.parametrize(
        ("journal", "stays_open", "readings"), [("wal", True, 200), ("wal", False, 60), ("delete", True, 20)]
    )
    def test_no_reading_ever_sees_half_a_transaction(self, path, journal, stays_open, readings):
        new_registry(path, journal=journal)
        patient = SqliteRegistry(path, timedelta(seconds=10))
        epochs = set()
        with ExitStack() as stack:
            stack.callback(write_pairs(path, stays_open=stays_open))
            for _ in range(readings):
                snapshot = undisturbed(patient)
                epochs.add(snapshot.identity.epoch)
                pairs = [worker.instance_id for worker in snapshot.workers]
                assert len(pairs) == 2 * len(set(pairs))
                assert snapshot.identity.epoch - 1 == 2 * last_pair(snapshot.workers) + removed(snapshot.workers)
                assert snapshot.nonce

        assert len(epochs) > 3, "the writer was not writing meanwhile"


def undisturbed(registry: SqliteRegistry) -> RegistrySnapshot:
    """Return a reading. One that a writer disturbed five times was refused for that, and is asked for again."""
    for _ in range(5):
        with suppress_fault(RegistryFault.CHANGED_WHILE_READ):
            return registry.snapshot()
    return registry.snapshot()


@contextmanager
def suppress_fault(fault: RegistryFault) -> Iterator[None]:
    try:
        yield
    except RegistryUnusableError as error:
        if error.fault is not fault:
            raise


PAIRS_KEPT = 50


def last_pair(workers: tuple[Worker, ...]) -> int:
    return max((int(worker.instance_id or 0) for worker in workers), default=0)


def removed(workers: tuple[Worker, ...]) -> int:
    """Return how many rows the writer has removed when its last pair is this one."""
    return 2 * max(0, last_pair(workers) - PAIRS_KEPT)


def write_pairs(path: Path, *, stays_open: bool) -> Callable[[], None]:
    """Start another process that writes two rows and removes two in each transaction; return how to stop it."""
    code = f"""
import sqlite3, sys, itertools
def connect():
    connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30)
    connection.execute("PRAGMA synchronous = OFF")
    return connection
insert = ("INSERT INTO workers (worker_id, provider, region, instance_id, state, created_at, updated_at)"
          " VALUES (?, 'aws', 'r', ?, 'running', '', '')")
writer = connect()
for pair in itertools.count(1):
    writer.execute("BEGIN IMMEDIATE")
    writer.execute(insert, (f"a-{{pair}}", str(pair)))
    writer.execute("DELETE FROM workers WHERE instance_id = ?", (str(pair - {PAIRS_KEPT}),))
    writer.execute(insert, (f"b-{{pair}}", str(pair)))
    writer.execute("COMMIT")
    if not {stays_open}:
        writer.close()
        writer = connect()
    if pair == 1:
        print("writing", flush=True)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "writing\n"

    def stop() -> None:
        process.kill()
        _, errors = process.communicate()
        assert errors == ""

    return stop


NAMES = st.text(st.characters(codec="utf-8"), max_size=8)
TIMES = st.none() | st.datetimes(
    min_value=NOON.replace(tzinfo=None, year=2), max_value=NOON.replace(tzinfo=None, year=9998), timezones=st.just(UTC)
)
WORKERS = st.builds(
    Worker,
    worker_id=NAMES,
    provider=NAMES,
    region=NAMES,
    instance_id=st.none() | NAMES,
    state=st.sampled_from(WorkerState),
    model=st.none() | NAMES,
    created_at=TIMES,
    launched_at=TIMES,
    heartbeat_at=TIMES,
    updated_at=TIMES,
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Path:
    return new_registry(tmp_path_factory.mktemp("shared") / "registry.db")


@given(WORKERS)
def test_a_row_is_either_refused_by_the_writer_or_read_as_it_was_written(shared, worker):
    writer = SqliteRegistryWriter(shared, "prod", now=lambda: NOON)
    twin = MemoryRegistry("prod", now=lambda: NOON)

    if problem_of(worker) is not None:
        with pytest.raises(RegistryWriteError):
            writer.add(worker)
        return
    writer.add(worker)
    twin.add(worker)

    assert reader(shared).snapshot().workers == twin.snapshot().workers
    writer.remove(worker.worker_id)


@given(st.lists(WORKERS, max_size=5), st.lists(st.tuples(NAMES, st.none() | NAMES), max_size=3))
def test_a_row_matches_by_equality_alone(workers, machines):
    found = matching(workers, machines)

    for worker in workers:
        is_it = any(
            worker.instance_id == instance_id or (worker_id is not None and worker.worker_id == worker_id)
            for instance_id, worker_id in machines
        )
        assert (worker in found) == is_it


def test_rows_are_sorted_whatever_their_order_in_the_file(path):
    new_registry(path)
    with connected(path) as writer:
        insert(writer, 30)
        writer.execute("UPDATE workers SET worker_id = 'a-' || worker_id WHERE worker_id > 'w-0020'")

    ids = [worker.worker_id for worker in reader(path).snapshot().workers]

    assert ids == sorted(ids)
