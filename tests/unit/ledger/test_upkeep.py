"""What keeps a ledger fit for months: the proof at the start, and forgetting in small steps."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from providers.model import InstanceRef
from reaperd.core.memory import Learned, learn
from reaperd.core.model import Brake, Memory, Outcome, OutcomeKind
from reaperd.errors import LedgerUnusableError
from reaperd.ledger.history import LedgerFile, verify
from reaperd.ledger.lease import Lease
from reaperd.ledger.ledger import Ledger
from reaperd.ledger.schema import SCHEMA_VERSION
from reaperd.ledger.upkeep import ROWS, STEPS
from reaperd.process import current
from tests.support.worlds import look, machine, policy, ref, row
from tests.unit.ledger.conftest import NOW, open_at
from tests.unit.ledger.test_memory import LESSON, record, requested, verdict

MONTH = timedelta(days=30)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def file(path: Path) -> LedgerFile:
    return LedgerFile(path=path, deployment="prod-a", owner_tag="reaperd:owner")


def recorded(ledger: Ledger, at: datetime, text: str = '{"verdicts":[]}') -> None:
    count = ledger._connection.execute("SELECT coalesce(max(seq), 0) FROM passes").fetchone()[0]
    ledger.record(replace(record(f"p-{count + 1}", text=text), started_at=at, finished_at=at))


def backlog(ledger: Ledger, number: int) -> None:
    with ledger.transaction():
        for minute in range(number):
            recorded(ledger, NOW + minute * MINUTE)


def kept(ledger: Ledger) -> list[int]:
    return [seq for (seq,) in ledger._connection.execute("SELECT seq FROM passes ORDER BY seq")]


# ---------------------------------------------------------------- forgetting


def test_what_is_older_than_asked_for_is_dropped_from_the_beginning(ledger: Ledger, file: LedgerFile):
    backlog(ledger, 10)

    assert ledger.forget(5 * MINUTE, NOW + 10 * MINUTE)

    assert kept(ledger) == [6, 7, 8, 9, 10]
    assert verify(file).broken == ()


def test_a_month_that_was_missed_is_caught_up_with_in_small_steps(ledger: Ledger, file: LedgerFile):
    backlog(ledger, ROWS * STEPS + 100)
    steps: list[int] = []
    ledger._connection.set_trace_callback(
        lambda statement: steps.append(1) if statement.startswith("DELETE FROM passes") else None
    )

    first = ledger.forget(MONTH, NOW + 99 * MONTH)
    left, steps_taken = len(kept(ledger)), len(steps)
    second = ledger.forget(MONTH, NOW + 99 * MONTH)

    assert (first, left, steps_taken) == (False, 100, STEPS)
    assert (second, len(kept(ledger))) == (True, 1)
    assert verify(file).broken == ()


def test_others_may_write_between_two_steps(ledger: Ledger, path: Path):
    backlog(ledger, ROWS * 3)
    begun: list[str] = []
    written: list[bool] = []
    with open_at(path) as other:
        other._connection.execute("PRAGMA busy_timeout = 0")

        def intrude(statement: str) -> None:
            if statement == "BEGIN IMMEDIATE":
                begun.append(statement)
                other.hold(Brake(since=NOW, by="ann", reason="why"))
                written.append(True)

        ledger._connection.set_trace_callback(intrude)
        ledger.forget(MONTH, NOW + 99 * MONTH)

    assert len(written) == len(begun) == 3


def test_the_newest_pass_stays_so_that_the_next_is_chained_to_it(ledger: Ledger, file: LedgerFile):
    backlog(ledger, 3)
    newest = verify(file).newest_hash

    ledger.forget(MONTH, NOW + 99 * MONTH)
    recorded(ledger, NOW + 99 * MONTH)

    assert kept(ledger) == [3, 4]
    assert verify(file).broken == ()
    previous = ledger._connection.execute("SELECT previous_hash FROM passes WHERE seq = 4").fetchone()[0]
    assert previous == newest


def test_passes_that_ended_in_another_order_than_they_were_recorded_leave_no_gap(ledger: Ledger, file: LedgerFile):
    # A sweep and a pass at the same time: the one that ended first was recorded last.
    for seconds in (0, 20, 10, 30):
        recorded(ledger, NOW + timedelta(seconds=seconds))

    ledger.forget(MONTH, NOW + MONTH + timedelta(seconds=15))

    assert kept(ledger) == [2, 3, 4]
    assert verify(file).broken == ()


def test_a_pass_of_the_future_keeps_nothing_for_ever(ledger: Ledger, file: LedgerFile):
    recorded(ledger, NOW)
    recorded(ledger, NOW + 999 * MONTH)
    recorded(ledger, NOW + MINUTE)
    recorded(ledger, NOW + MONTH)

    ledger.forget(MONTH, NOW + MONTH + 5 * MINUTE)

    assert kept(ledger) == [4]
    assert verify(file).broken == ()


def test_a_clock_that_was_set_back_drops_nothing(ledger: Ledger):
    backlog(ledger, 5)

    ledger.forget(MONTH, NOW - 99 * MONTH)

    assert kept(ledger) == [1, 2, 3, 4, 5]


def test_closed_intents_and_old_approvals_go_and_open_intents_stay(ledger: Ledger):
    requested(ledger, OutcomeKind.REQUESTED)
    requested(ledger, OutcomeKind.SPARED, ref=ref("i-2"))
    ledger.approve("sha256:d", (ref("i-1"),), "me", "why", NOW)

    ledger.forget(MONTH, NOW + MONTH + timedelta(hours=2))

    counted = [
        ledger._connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("intents", "approvals")
    ]
    assert counted == [1, 0]
    assert list(ledger.recall(NOW).intents) == [ref("i-1")]


def test_the_file_stops_growing(path: Path):
    text = '{"verdicts":[],"filler":"' + "x" * 3_000 + '"}'
    sizes: list[int] = []
    with open_at(path) as ledger:
        for hour in range(60):
            for minute in range(50):
                with ledger.transaction():
                    recorded(ledger, NOW + timedelta(hours=hour, minutes=minute), text)
            ledger.forget(timedelta(hours=10), NOW + timedelta(hours=hour + 1))
            sizes.append(sum(each.stat().st_size for each in path.parent.iterdir()))

    assert max(sizes[15:]) <= max(sizes[:15]) * 1.1
    assert max(sizes) < 8_000_000


def test_what_is_remembered_of_machines_is_bounded_by_those_that_are_there(ledger: Ledger):
    now, seen = NOW, look()
    for hour in range(60):
        now = NOW + timedelta(hours=hour)
        machines = [machine(f"i-{hour}-{number}", worker=f"w-{hour}-{number}") for number in range(10)]
        rows = [row(f"w-{hour}-{number}", f"i-{hour}-{number}") for number in range(5)]
        seen = replace(look(machines, rows), now=now, memory=ledger.recall(now))
        lesson = learn(seen, policy())
        assert isinstance(lesson, Learned)
        ledger.learn(lesson, now)

    memory: Memory = ledger.recall(now)
    assert len(memory.listed) == 5
    # First-seen is kept for a day after a machine was last listed.
    assert len(memory.sightings) <= 26 * 10


# ---------------------------------------------------------------- the proof at the start


def test_a_ledger_that_can_be_written_passes_its_test_any_number_of_times(path: Path):
    with open_at(path) as ledger:
        for minute in range(50):
            ledger.self_test(NOW + minute * MINUTE)
        rows = ledger._connection.execute("SELECT at, length(text) FROM self_test").fetchall()

    assert rows == [("2026-01-10T12:49:00.000000Z", 16_384)]


def test_what_the_test_wrote_is_on_the_disk(ledger: Ledger, path: Path):
    ledger.self_test(NOW)

    with closing(sqlite3.connect(path)) as other:
        assert other.execute("SELECT count(*) FROM self_test").fetchone() == (1,)


def test_a_full_disk_reads_well_and_fails_the_test(ledger: Ledger, path: Path):
    pages = ledger._connection.execute("PRAGMA page_count").fetchone()[0]
    ledger._connection.execute(f"PRAGMA max_page_count = {pages}")

    assert ledger.recall(NOW) == Memory()
    with pytest.raises(LedgerUnusableError, match="the disk is full") as error:
        ledger.self_test(NOW)

    assert error.value.path == str(path)
    for fact in (f"folder {path.parent}", "mode 0700", "owner ", "this is user ", " free", "Make room there"):
        assert fact in str(error.value)


def test_a_disk_that_gives_back_something_else_fails_the_test(ledger: Ledger):
    ledger._connection.execute(
        "CREATE TRIGGER forgetful AFTER INSERT ON self_test BEGIN UPDATE self_test SET text = 'other'; END"
    )

    with pytest.raises(LedgerUnusableError, match="does not give back what was written"):
        ledger.self_test(NOW)


# ---------------------------------------------------------------- an older ledger


@pytest.fixture
def older(path: Path) -> Path:
    path.parent.mkdir()
    dump = Path(__file__).with_name("data") / "schema_1.sql"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(dump.read_text(encoding="utf-8"))
    return path


def test_a_ledger_of_the_first_schema_is_migrated_and_keeps_all_it_knew(older: Path, file: LedgerFile):
    with open_at(older) as ledger:
        ledger.self_test(NOW)
        memory = ledger.recall(NOW)
        schema = ledger._connection.execute("SELECT schema_version FROM meta").fetchone()[0]

    assert schema == SCHEMA_VERSION
    assert set(memory.sightings) == set(LESSON.sightings)
    assert list(memory.intents) == [InstanceRef("aws", "us-east-1", "i-1")]
    assert memory.brake == Brake(since=NOW, by="ann", reason="deploy")
    assert [approval.digest for approval in memory.approvals] == ["sha256:d"]
    assert (verify(file).broken, verify(file).passes, verify(file).acts) == ((), 2, 2)


def test_a_ledger_of_the_first_schema_goes_on_where_it_was(older: Path, file: LedgerFile):
    with open_at(older) as ledger:
        recorded(ledger, NOW + timedelta(hours=1), '{"coverage":[]}')
        ledger.resume("ann", "done", NOW)
        lease = ledger.take_lease(current(), MONTH, NOW + MINUTE)
        assert isinstance(lease, Lease)
        number = ledger.open_intent(verdict(), pass_id="p", approved=False, lease=lease, now=NOW)
        ledger.answer_intent(number, Outcome(ref=ref("i-1"), kind=OutcomeKind.REQUESTED), NOW)

    assert (verify(file).broken, verify(file).passes, verify(file).acts) == ((), 3, 3)


def test_a_ledger_is_migrated_once(older: Path):
    open_at(older).close()
    open_at(older).close()

    with closing(sqlite3.connect(older)) as connection:
        names = connection.execute("SELECT name FROM _sqlite_migrations ORDER BY id").fetchall()
    assert names == [("m001_first",), ("m002_self_test",), ("m003_alerts",), ("m004_identity",), ("m005_only_changes",)]


def test_reading_a_ledger_of_the_first_schema_does_not_change_it(older: Path, file: LedgerFile):
    before = older.read_bytes()

    found = verify(file)

    assert found.broken == ()
    assert older.read_bytes() == before
