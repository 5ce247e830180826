"""Rows that are read many at a time are those that are read one by one; and the index proves that none is missing."""

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from registry.errors import RegistryUnusableError
from registry.model import Interest, RegistryFault, Worker, WorkerState
from registry.rows import alike_to, are_plain_names, is_wanted, problem_of, problem_of_name
from registry.sqlite.reading import CHUNK
from registry.sqlite.schema import TABLES
from registry.times import parse_time, parse_times
from tests.unit.registry.files import connected, new_registry, reader, run

NOON = datetime(2026, 1, 10, 12, tzinfo=UTC)
TIMES = ("created_at", "launched_at", "heartbeat_at", "updated_at")
COLUMNS = ("worker_id", "provider", "region", "instance_id", "state", "model", *TIMES)
INSERT = f"INSERT OR IGNORE INTO workers ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"

PLAIN_TIMES = st.sampled_from(
    [
        "2026-01-10T11:00:00Z",
        "2026-01-10T12:00:00.000001Z",
        "2026-01-10T12:01:00.001Z",
        "2026-01-10 10:00:00.123456789Z",
        "2026-01-10T12:00:01.123456+00:00",
    ]
)
ODD_TIMES = st.sampled_from(
    [
        *("", "yesterday", "2026-01-10", "2026-W02-6T11:00:00Z", "2026-01-10T11:00:00,5Z", "2026-02-30T11:00:00Z"),
        *("2026-01-10T24:00:00Z", "2026-01-10 24:00:00Z", "2026-01-10T11:60:00Z", "2026-01-10T11:00:00.1234567890Z"),
        *("2026-01-10 11:00:00", "2026-01-10T13:00:00+02:00", "2026-01-10T11:00:00+01:60", "2026-01-10T11:00:00z"),
        *("2026-01-10T11:00:00Z\n2026-01-10T11:00:00Z", "2026-01-1\N{ARABIC-INDIC DIGIT ONE}T11:00:00Z", "\n"),
        *(
            "2026-01-10T11:00:00+00:00\n",
            "2026-01-10T11:00:00Z+00:00",
            "2026-01-10T11:00:00.+00:00",
            "20260110T110000Z",
        ),
    ]
)
PLAIN_NAMES = st.sampled_from(["w-1", "w-2", "W-2", "w-3", "i-1", "I-1", "i-2", "aws", "grün", "a:b/c"])
ODD_NAMES = (
    st.sampled_from(["", " ", "a b", " a", "a ", "a\n", "a\0b", "a\u200bb", "\ufffd", "\xa0a", "a\u3000"])
    | st.sampled_from(["w-1\ufe0f", "i-1\u3164", "a\u2800", "\u034fa", "a\U000e0101"])
    | st.text()
)


def rows(names: st.SearchStrategy[str], times: st.SearchStrategy[str]) -> st.SearchStrategy[tuple[str | None, ...]]:
    states = st.sampled_from([state.value for state in WorkerState])
    maybe = st.none() | times
    return st.tuples(
        st.uuids().map(str) | names,
        *(names, names, st.none() | names, states, st.none() | st.text(max_size=2)),
        *(times, maybe, maybe, times),
    )


PLAIN = rows(PLAIN_NAMES, PLAIN_TIMES)
ODD = rows(PLAIN_NAMES | ODD_NAMES, PLAIN_TIMES | ODD_TIMES)
INTERESTS = st.none() | st.builds(
    Interest,
    names=st.frozensets(PLAIN_NAMES, max_size=3),
    live=st.booleans(),
    alike=st.none() | st.builds(lambda names: alike_to(names, str.lower), st.frozensets(PLAIN_NAMES, max_size=3)),
    later_than=st.none() | st.sampled_from([NOON, NOON + timedelta(minutes=1), NOON - timedelta(days=1)]),
)


def read_straight(path: Path, interest: Interest | None) -> tuple[list[Worker], Counter[WorkerState]] | None:
    """Read every row into a worker, and only then ask what is asked for; None when one of them is bad."""
    with connected(path) as connection:
        told = connection.execute(f"SELECT {', '.join(COLUMNS)} FROM workers ORDER BY worker_id").fetchall()
    workers = []
    for row in (dict(zip(COLUMNS, cells, strict=True)) for cells in told):
        times = {name: None if row[name] is None else parse_time(row[name]) for name in TIMES}
        worker = Worker(
            **{name: row[name] for name in ("worker_id", "provider", "region", "model")},
            instance_id=row["instance_id"] if row["instance_id"] and row["instance_id"].strip() else None,
            state=WorkerState(row["state"]),
            unreadable=tuple(name for name in TIMES if row[name] is not None and times[name] is None),
            **times,
        )
        if problem_of(worker) is not None:
            return None
        workers.append(worker)
    wanted = [worker for worker in workers if interest is None or is_wanted(worker, interest)]
    return wanted, Counter(worker.state for worker in workers if worker not in wanted)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return new_registry(tmp_path_factory.mktemp("shared") / "registry.db")


def fill(path: Path, cells: list[tuple[str | None, ...]]) -> None:
    with connected(path) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("DELETE FROM workers")
        connection.executemany(INSERT, cells)
        connection.execute("COMMIT")


@settings(deadline=None)
@given(st.lists(PLAIN, max_size=6) | st.lists(ODD, max_size=6), INTERESTS)
def test_a_chunk_is_read_as_its_rows_are(shared, cells, interest):
    fill(shared, cells)
    straight = read_straight(shared, interest)

    event(f"refused: {straight is None}")
    if straight is None:
        with pytest.raises(RegistryUnusableError) as refused:
            reader(shared).snapshot(interest=interest)
        assert refused.value.fault is RegistryFault.BAD_ROW
    else:
        snapshot = reader(shared).snapshot(interest=interest)
        assert (list(snapshot.workers), Counter(snapshot.passed_over)) == straight


@settings(deadline=None, max_examples=25)
@given(st.data())
def test_one_odd_row_among_many_changes_nothing_about_the_others(shared, data):
    plain = [(f"w-{n:04}", "aws", "r", f"i-{n}", "completed", None, *["2026-01-10T11:00:00Z"] * 4) for n in range(600)]
    place = data.draw(st.integers(0, len(plain)))
    odd = data.draw(ODD)
    interest = data.draw(INTERESTS)
    fill(shared, [*plain[:place], odd, *plain[place:]])
    straight = read_straight(shared, interest)

    assert len(plain) > 2 * CHUNK
    if straight is None:
        with pytest.raises(RegistryUnusableError, match="cannot be used"):
            reader(shared).snapshot(interest=interest)
    else:
        snapshot = reader(shared).snapshot(interest=interest)
        assert (list(snapshot.workers), Counter(snapshot.passed_over)) == straight


@given(st.lists(PLAIN_TIMES | ODD_TIMES, max_size=4))
def test_times_that_are_read_together_are_those_that_are_read_alone(texts):
    together = parse_times(texts)

    event(f"together: {together is not None}")
    assert together is None or together == [parse_time(text) for text in texts]
    assert together is None or all(moment.tzinfo is UTC for moment in together)


@given(st.lists(st.from_regex(r"\A[0-9]{4}-[0-9W]{2}-?[0-9]{2}[T ,][0-9]{2}:?[0-9]{2}:[0-9]{2}([.,][0-9]{0,10})?Z?\Z")))
def test_what_only_looks_like_times_is_not_read_together(texts):
    together = parse_times(texts)

    assert together is None or together == [parse_time(text) for text in texts]


@pytest.mark.parametrize("plain", ["2026-01-10T11:00:00Z", "2026-02-28T23:59:59.5Z", "2026-01-10T11:00:00.123456Z"])
def test_no_time_that_is_a_character_off_is_read_together_with_others_unless_it_is_a_time(plain):
    for place in range(len(plain)):
        for character in "0123456789+-:.,ZTWwz \n\0\N{ARABIC-INDIC DIGIT ONE}":
            off = plain[:place] + character + plain[place + 1 :]
            together = parse_times([plain, off])

            assert together in (None, [parse_time(plain), parse_time(off)]), off


@given(st.lists(PLAIN_TIMES, max_size=4))
def test_times_as_most_programs_write_them_are_read_together(texts):
    assert parse_times(texts) is not None


@given(st.lists(PLAIN_NAMES | ODD_NAMES, max_size=4))
def test_names_that_are_plain_together_are_plain_alone(names):
    if are_plain_names(names):
        assert [problem_of_name(name) for name in names] == [None] * len(names)


@given(st.lists(PLAIN_NAMES, max_size=4))
def test_names_as_most_people_give_them_are_plain_together(names):
    assert are_plain_names(names)


def test_rows_without_row_numbers_are_read_too(tmp_path):
    path = new_registry(tmp_path / "registry.db", 3)
    make_workers_anew(path, f"{TABLES['workers']}, WITHOUT ROWID")

    assert [worker.worker_id for worker in reader(path).snapshot().workers] == ["w-0000", "w-0001", "w-0002"]


@pytest.mark.parametrize("order", ["NOCASE", "RTRIM"])
def test_ids_that_another_language_orders_otherwise_are_read_too(tmp_path, order):
    path = new_registry(tmp_path / "registry.db", 3)
    make_workers_anew(path, TABLES["workers"].replace("worker_id TEXT", f"worker_id TEXT COLLATE {order}"))
    run(path, "UPDATE workers SET worker_id = 'W-0001' WHERE worker_id = 'w-0001'")

    assert [worker.worker_id for worker in reader(path).snapshot().workers] == ["W-0001", "w-0000", "w-0002"]


def make_workers_anew(path: Path, declaration: str) -> None:
    with connected(path) as connection:
        kept = connection.execute("SELECT * FROM workers").fetchall()
        triggers = [sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master WHERE type = 'trigger'")]
        connection.execute("DROP TABLE workers")
        connection.execute(declaration)
        connection.executemany(f"INSERT INTO workers VALUES ({', '.join('?' * len(kept[0]))})", kept)
        for sql in triggers:
            connection.execute(sql)


def test_text_that_is_not_utf_8_does_no_harm_where_no_name_is_made_of_it(tmp_path):
    path = new_registry(tmp_path / "registry.db", 3)
    run(path, "UPDATE workers SET model = CAST(x'692dff' AS TEXT) WHERE worker_id = 'w-0001'")

    assert [worker.model for worker in reader(path).snapshot().workers] == [None, "i-\ufffd", None]


class Names(frozenset[str]):
    """Names that somebody asks for, and what happens whenever they are compared with a chunk of rows."""

    meanwhile: Callable[[], object]

    def isdisjoint(self, other: Iterable[object], /) -> bool:
        self.meanwhile()
        return super().isdisjoint(other)


@pytest.mark.parametrize("journal", ["wal", "delete", "truncate", "persist"])
def test_a_writer_commits_at_once_between_any_two_chunks_of_a_reading(tmp_path, journal):
    path = new_registry(tmp_path / "registry.db", 4 * CHUNK, journal=journal)
    run(path, "UPDATE workers SET created_at = '2026-01-10T11:00:00Z', updated_at = '2026-01-10T11:00:00Z'")
    names = Names()
    with connected(path) as writer:
        writer.execute("PRAGMA busy_timeout = 0")
        last = "(SELECT max(rowid) FROM workers)"
        # In a transaction of its own, or an error at once.
        names.meanwhile = lambda: writer.execute(f"DELETE FROM workers WHERE rowid = {last}")
        snapshot = reader(path).snapshot(interest=Interest(names=names))
        (left,) = writer.execute("SELECT count(*) FROM workers").fetchone()

    assert len(snapshot.workers) == 4 * CHUNK
    assert left <= 4 * CHUNK - 4


class TestTheIndex:
    @pytest.fixture
    def path(self, tmp_path):
        return new_registry(tmp_path / "registry.db", 300)

    def refusal(self, path: Path) -> str:
        with pytest.raises(RegistryUnusableError) as refused:
            reader(path).snapshot()
        assert refused.value.fault is RegistryFault.DAMAGED
        # SQLite's own and longer check says so, too.
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() != ("ok",)
        return refused.value.detail

    def test_an_index_that_names_another_worker(self, path):
        # It would be in order, and as long as the table.
        overwrite(path, b"w-0200", b"w-020/", index=True, table=False)

        assert "300 workers" in self.refusal(path)

    def test_an_index_that_points_to_another_row(self, path):
        content = bytearray(path.read_bytes())
        at = next(at for at in places(content, b"w-0200") if in_index(path, at))
        # The row number stands behind the text, in two bytes.
        content[at + 7] ^= 1
        path.write_bytes(content)

        assert "300 workers" in self.refusal(path)

    def test_a_table_that_has_another_worker(self, path):
        overwrite(path, b"w-0200", b"w-020/", index=False, table=True)

        assert "300 workers" in self.refusal(path)

    def test_a_worker_that_stands_twice_in_both(self, path):
        overwrite(path, b"w-0200", b"w-0201", index=True, table=True)

        assert "twice" in self.refusal(path)

    def test_an_index_that_is_not_in_order(self, path):
        overwrite(path, b"w-0200", b"z-0200", index=True, table=True)

        assert "in order" in self.refusal(path)

    def test_another_index_that_knows_of_rows_that_the_table_has_lost(self, path):
        run(path, "CREATE INDEX by_instance ON workers (instance_id)")
        overwrite(path, b"i-0200", b"i-9200", index=True, table=False)

        assert "by_instance" in self.refusal(path)

    def test_an_index_of_another_table(self, path):
        run(path, 'CREATE TABLE "it\'s theirs" (name TEXT UNIQUE)', "INSERT INTO \"it's theirs\" VALUES ('n-0200')")
        assert len(reader(path).snapshot().workers) == 300

        overwrite(path, b"n-0200", b"n-0201", index=True, table=False)

        assert "it's theirs" in self.refusal(path)

    def test_another_index_that_is_whole(self, path):
        run(path, "CREATE INDEX by_instance ON workers (instance_id)")

        assert len(reader(path).snapshot().workers) == 300


def overwrite(path: Path, old: bytes, new: bytes, *, index: bool, table: bool) -> None:
    """Change a text wherever it stands in the pages of an index, of a table, or of both."""
    content = bytearray(path.read_bytes())
    for at in places(content, old):
        if index if in_index(path, at) else table:
            content[at : at + len(old)] = new
    path.write_bytes(content)


def places(content: bytes, text: bytes) -> list[int]:
    found = [at for at in range(len(content)) if content.startswith(text, at)]
    assert found
    return found


def in_index(path: Path, at: int) -> bool:
    """Say whether a place is in a page of an index, a leaf or an inner one."""
    return path.read_bytes()[at // 4096 * 4096] in {2, 10}


@pytest.mark.parametrize(
    "sign", "\u034f\u115f\u17b4\u180b\u180f\u200b\u2800\u3164\ufe0f\uffa0\ufffd\U000e0100", ids=ascii
)
def test_a_name_with_a_sign_that_shows_nothing_is_no_name(sign):
    assert problem_of_name(f"i-1{sign}") is not None
    assert not are_plain_names(["w-1", f"i-1{sign}"])
