"""A look writes what has changed, and the ledger knows all of it all the same."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from providers.model import InstanceRef, InstanceState, OwnedInstance
from reaperd.core.history import Wanted
from reaperd.core.memory import Learned, learn
from reaperd.core.model import Memory, Sighting
from reaperd.core.sightings import FORGET_AFTER
from reaperd.errors import LedgerUnusableError
from reaperd.ledger.history import LedgerFile, recollect
from reaperd.ledger.ledger import Ledger
from reaperd.ledger.looks import last_look
from reaperd.ledger.notebooks import peek
from registry.model import Worker
from tests.support.worlds import EAST, HOUR, MINUTE, NOW, look, machine, pin, policy, ref, row
from tests.unit.ledger.conftest import open_at

FLEET = tuple(machine(f"i-{number:03}", worker=f"w-{number:03}") for number in range(200))
ROWS = tuple(row(f"w-{number:03}", f"i-{number:03}") for number in range(0, 200, 2))
OF_EVERY_LOOK = 3
"""The time of the sightings, the look itself and the pin of the registry: a row each."""


@pytest.fixture
def file(path: Path) -> LedgerFile:
    return LedgerFile(path=path, deployment="prod-a", owner_tag="reaperd:owner")


def lesson(ledger: Ledger, at: datetime, fleet: tuple[OwnedInstance, ...], rows: tuple[Worker, ...]) -> Learned:
    """Return what a look teaches whoever remembers what the ledger has."""
    # The registry is the right one, whatever it names.
    seen = look(fleet, rows, now=at, memory=replace(ledger.recall(at), pin=pin(mismatch_accepted=True)))
    learned = learn(seen, policy(confirm_passes=3))
    assert learned is not None
    return learned


def looked(ledger: Ledger, at: datetime, fleet: tuple[OwnedInstance, ...], rows: tuple[Worker, ...]) -> int:
    """Look once more, and return how many rows that wrote."""
    before = ledger._connection.total_changes
    ledger.learn(lesson(ledger, at, fleet, rows), at)
    return ledger._connection.total_changes - before


def tracked(fleet: tuple[OwnedInstance, ...]) -> tuple[Worker, ...]:
    return tuple(row(each.worker_id or "", each.ref.instance_id) for each in fleet)


def test_a_look_at_what_has_not_changed_writes_next_to_nothing(ledger: Ledger):
    looked(ledger, NOW, FLEET, tracked(FLEET))

    written = looked(ledger, NOW + MINUTE, FLEET, tracked(FLEET))

    assert written == OF_EVERY_LOOK
    memory = ledger.recall(NOW)
    assert memory.looked_at == NOW + MINUTE
    assert {each.last_seen_at for each in memory.sightings.values()} == {NOW + MINUTE}
    assert {each.tracked_at for each in memory.sightings.values()} == {NOW + MINUTE}
    assert {each.first_seen_at for each in memory.sightings.values()} == {NOW}


def test_a_look_writes_the_machines_that_it_counts(ledger: Ledger):
    for minute in range(3):
        looked(ledger, NOW + minute * MINUTE, FLEET, ROWS)

    written = looked(ledger, NOW + 3 * MINUTE, FLEET, ROWS)

    # Of those without a row only: they are confirmed once more.
    assert written == OF_EVERY_LOOK + len(FLEET) - len(ROWS)


def test_a_machine_that_is_another_now_is_written_and_no_other(ledger: Ledger, file: LedgerFile):
    rows = tracked(FLEET)
    looked(ledger, NOW, FLEET, rows)
    stopped = (replace(FLEET[0], state=InstanceState.STOPPED), *FLEET[1:])

    written = looked(ledger, NOW + MINUTE, stopped, rows)

    assert written == OF_EVERY_LOOK + 1
    kept = recollect(file, "i-000", Wanted(), NOW).look
    assert kept is not None
    assert kept.instances == stopped


def test_a_machine_that_went_keeps_the_time_at_which_it_was_last_there(ledger: Ledger):
    rows = tracked(FLEET)
    for minute in range(4):
        looked(ledger, NOW + minute * MINUTE, FLEET, rows)

    written = looked(ledger, NOW + 4 * MINUTE, FLEET[1:], rows)
    later = looked(ledger, NOW + 5 * MINUTE, FLEET[1:], rows)

    # Its sighting, its place in what was listed.
    assert (written, later) == (OF_EVERY_LOOK + 2, OF_EVERY_LOOK)
    left = ledger.recall(NOW).sightings[FLEET[0].ref]
    assert (left.last_seen_at, left.tracked_at) == (NOW + 3 * MINUTE, NOW + 3 * MINUTE)
    assert len(ledger.recall(NOW).sightings) == len(FLEET)


def test_a_machine_that_is_not_tracked_any_more_keeps_the_time_at_which_it_was(ledger: Ledger):
    rows = tracked(FLEET)
    for minute in range(2):
        looked(ledger, NOW + minute * MINUTE, FLEET, rows)
    for minute in range(2, 5):
        looked(ledger, NOW + minute * MINUTE, FLEET, rows[1:])

    left = ledger.recall(NOW).sightings[FLEET[0].ref]

    assert (left.last_seen_at, left.tracked_at) == (NOW + 4 * MINUTE, NOW + MINUTE)
    assert (left.confirmations, left.vanished_at) == (3, NOW + 2 * MINUTE)


def test_a_machine_that_was_gone_for_a_day_is_forgotten(ledger: Ledger):
    looked(ledger, NOW, FLEET[:2], ())
    looked(ledger, NOW + FORGET_AFTER, FLEET[:1], ())
    assert set(ledger.recall(NOW).sightings) == {FLEET[0].ref, FLEET[1].ref}

    looked(ledger, NOW + FORGET_AFTER + MINUTE, FLEET[:1], ())

    assert set(ledger.recall(NOW).sightings) == {FLEET[0].ref}


def test_what_is_listed_and_named_is_written_once(ledger: Ledger):
    looked(ledger, NOW, FLEET, ROWS)
    assert ledger.recall(NOW).listed == {ref(each.instance_id or "") for each in ROWS}

    looked(ledger, NOW + MINUTE, FLEET, ROWS[1:])

    assert ledger.recall(NOW).listed == {ref(each.instance_id or "") for each in ROWS[1:]}


def test_a_ledger_that_lost_the_time_of_its_last_look_is_a_damaged_one(path: Path):
    with open_at(path) as ledger:
        for minute in range(2):
            looked(ledger, NOW + minute * MINUTE, FLEET[:2], tracked(FLEET[:1]))
        with closing(sqlite3.connect(path)) as other, other:
            other.execute("DELETE FROM sighted")
            # Only the time at which the row was there: without it a machine would never have been tracked.
            other.execute("UPDATE sightings SET last_seen_at = ?", (NOW.isoformat(),))

        with pytest.raises(LedgerUnusableError, match="it holds '' where a time belongs"):
            ledger.recall(NOW)


# ---------------------------------------------------------------- any looks, one after the other

STEPS = st.sampled_from([timedelta(0), MINUTE, HOUR, 25 * HOUR, -MINUTE, -HOUR])
LOOKS = st.lists(
    st.tuples(STEPS, st.sets(st.integers(0, 4)), st.sets(st.integers(0, 4)), st.booleans()), min_size=2, max_size=8
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lessons")


@settings(deadline=None, max_examples=100)
@given(LOOKS)
def test_the_ledger_knows_what_it_would_if_every_look_wrote_everything(folder: Path, looks):
    path = folder / "ledger.db"
    path.unlink(missing_ok=True)
    known: dict[InstanceRef, Sighting] = {}
    now = NOW
    with open_at(path) as ledger:
        for step, there, rows, told in looks:
            now += step
            fleet = tuple(FLEET[number] for number in sorted(there))
            learned = lesson(ledger, now, fleet, tuple(row(f"w-{n:03}", f"i-{n:03}") for n in sorted(rows)))
            known = {r: s for r, s in {**known, **learned.sightings}.items() if r not in learned.forgotten}
            event(f"seen again: {any(s.last_seen_at == now for s in known.values())}")
            # Whether the look says what it knew, or leaves it to the ledger.
            ledger.learn(learned if told else replace(learned, before=None), now)

            memory = ledger.recall(now)
            assert memory == Memory(
                sightings=known,
                looked_at=now,
                pin=learned.pin,
                listed=learned.listed,
                scopes=learned.scopes,
            )
            kept = last_look(ledger._connection)
            assert kept is not None
            assert kept.instances == fleet


# ---------------------------------------------------------------- ledgers of earlier releases


@pytest.fixture
def older(path: Path) -> Path:
    path.parent.mkdir()
    dump = Path(__file__).with_name("data") / "schema_1.sql"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(dump.read_text(encoding="utf-8"))
        connection.execute("INSERT INTO last_look VALUES (1, ?, ?, '[]')", (AT, LISTED))
        connection.commit()
    return path


AT = "2026-01-10T12:00:00.000000Z"
LISTED = """[
    {"ref": ["aws", "us-east-1", "i-1"], "state": "stopped", "owner": "prod-a", "worker_id": "w-1",
     "registry_id": "r-1", "protect": true, "managed_by": "fleet:f", "launched_at": "2026-01-10T11:00:00.000000Z",
     "account": "111111111111", "foreign_account": true, "instance_type": "m7i.large"},
    {"ref": ["aws", "us-east-1", "i-2"], "state": "running", "owner": "prod-a", "worker_id": null,
     "registry_id": null, "protect": false, "managed_by": null, "launched_at": null,
     "account": null, "foreign_account": false, "instance_type": null}
]"""


def test_the_last_look_of_an_earlier_release_is_kept(older: Path, file: LedgerFile):
    open_at(older).close()

    kept = recollect(file, "i-1", Wanted(), NOW).look

    assert kept is not None
    assert kept.at == NOW
    assert kept.instances == (
        OwnedInstance(
            ref=ref("i-1"),
            state=InstanceState.STOPPED,
            owner="prod-a",
            worker_id="w-1",
            registry_id="r-1",
            protect=True,
            managed_by="fleet:f",
            launched_at=NOW - HOUR,
            account="111111111111",
            foreign_account=True,
            instance_type="m7i.large",
        ),
        OwnedInstance(ref=ref("i-2"), state=InstanceState.RUNNING, owner="prod-a"),
    )


def test_sightings_of_an_earlier_release_go_on(older: Path):
    with open_at(older) as ledger:
        before = ledger.recall(NOW).sightings[ref("i-1")]
        looked(ledger, NOW + MINUTE, (machine("i-1"),), ())
        after = ledger.recall(NOW).sightings[ref("i-1")]

    assert after == replace(
        before,
        last_seen_at=NOW + MINUTE,
        counted_at=NOW + MINUTE,
        confirmations=before.confirmations + 1,
        verdict=after.verdict,
    )


def test_whoever_only_reads_a_ledger_of_an_earlier_release_finds_its_memory_and_no_look(older: Path, file: LedgerFile):
    memory = peek(older, deployment="prod-a", owner_tag="reaperd:owner", busy_timeout=MINUTE, now=NOW)
    told = recollect(file, "i-1", Wanted(), NOW)

    assert set(memory.sightings) == {ref("i-1", EAST)}
    assert memory.looked_at is None
    assert told.look is None
