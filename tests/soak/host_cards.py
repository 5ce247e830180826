"""What goes wrong on the host: with the registry, the ledger, the clock, and who may act, up to the last moment."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path

from reaperd.process import ProcessIdentity
from registry.sqlite.admin import create
from registry.sqlite.schema import NOW
from tests.soak.card import Card, Hand, Play
from tests.soak.cloud_cards import CLOCK, TERMINATE
from tests.soak.stage import DEPLOYMENT, Stage

UNUSABLE = frozenset({"registry_unusable"})
IDENTITY = frozenset({"registry_identity"})
NO_LEDGER = frozenset({"ledger_unusable"})
HELD = frozenset({"reap_hold"})
LOOKING = frozenset({"not_leader"})

# ---------------------------------------------------------------- the registry


def _away(hand: Hand) -> Iterator[None]:
    with _set_aside(hand.stage):
        yield


def _instead(content: Callable[[bytes], bytes]) -> Play:
    def play(hand: Hand) -> Iterator[None]:
        whole = hand.stage.registry.read_bytes()
        with _set_aside(hand.stage):
            hand.stage.registry.write_bytes(content(whole))
            yield

    return play


@contextmanager
def _set_aside(stage: Stage) -> Iterator[None]:
    aside = stage.folder / "aside"
    aside.mkdir()
    files = stage.files_of_registry()
    for path in files:
        path.rename(aside / path.name)
    try:
        yield
    finally:
        for path in stage.files_of_registry():
            path.unlink()
        for path in files:
            (aside / path.name).rename(path)
        aside.rmdir()


def _locked_registry(hand: Hand) -> Iterator[None]:
    with closing(sqlite3.connect(hand.stage.registry, isolation_level=None)) as connection:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        # Something in the log: without that the file alone says all that there is to say, whoever has a lock on it.
        connection.execute(f"UPDATE meta SET updated_at = {NOW}")
        connection.execute("BEGIN EXCLUSIVE")
        yield
        connection.execute("ROLLBACK")


def _another_registry(hand: Hand) -> Iterator[None]:
    with _set_aside(hand.stage):
        create(hand.stage.registry, DEPLOYMENT)
        yield


def _restored(hand: Hand) -> Iterator[None]:
    """An old copy is restored; then the operator puts the right one back, or mends the copy and trusts it."""
    stage, fleet = hand.stage, hand.fleet
    current = stage.folder / "current.db"
    stage.copy_registry(current)
    rows = fleet.remembered_rows()
    stage.replace_registry(hand.backup)
    yield
    if not _is_behind(hand) or fleet.chance.random() < 0.5:
        stage.replace_registry(current)
        return
    fleet.rows = hand.old_rows
    for row in rows.values():
        if row.state.is_live and row.worker not in fleet.rows:
            fleet.add_row(row.worker, row.region, row.instance_id)
    stage.trust()
    hand.back_up()


def _is_behind(hand: Hand) -> bool:
    return hand.old_rows != hand.fleet.rows


def _registry(name: str, play: Play, reasons: frozenset[str] = UNUSABLE) -> Card:
    return Card(name=f"registry: {name}", play=play, stands_down=reasons, registry=False, passes=2)


REGISTRIES = [
    _registry("missing", _away),
    _registry("zero bytes", _instead(lambda _whole: b"")),
    _registry("garbage", _instead(lambda whole: b"no database at all. " * (len(whole) // 20))),
    _registry("cut off", _instead(lambda whole: whole[: len(whole) // 2])),
    _registry("pages overwritten", _instead(lambda whole: whole[:4096] + b"\0" * (len(whole) - 4096))),
    _registry("locked", _locked_registry),
    _registry("another one", _another_registry, IDENTITY),
    _registry("an old copy", _restored, IDENTITY),
]


# ---------------------------------------------------------------- the ledger


def _full_disk(hand: Hand) -> Iterator[None]:
    hand.victim.ask("limit", file_size=4096)
    yield
    hand.victim.ask("limit", file_size=None)


def _ledger_instead(put: Callable[[Path], object], take: Callable[[Path], object]) -> Play:
    def play(hand: Hand) -> Iterator[None]:
        path = hand.stage.ledger_path
        aside = path.with_name("aside.db")
        path.rename(aside)
        put(path)
        yield
        take(path)
        aside.rename(path)

    return play


def _locked_ledger(hand: Hand) -> Iterator[None]:
    with closing(sqlite3.connect(hand.stage.ledger_path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


LEDGERS = [
    Card(name="ledger: full disk", play=_full_disk, stands_down=NO_LEDGER),
    Card(name="ledger: a folder", play=_ledger_instead(Path.mkdir, Path.rmdir), stands_down=NO_LEDGER),
    Card(
        name="ledger: garbage",
        play=_ledger_instead(lambda path: path.write_bytes(b"no ledger " * 900), Path.unlink),
        stands_down=NO_LEDGER,
    ),
    Card(name="ledger: locked", play=_locked_ledger, stands_down=NO_LEDGER, passes=1, rare=True),
]


# ---------------------------------------------------------------- who may act, and what happens at the door


def _brake(hand: Hand) -> Iterator[None]:
    hand.stage.hold()
    yield
    hand.stage.resume()


def _nothing(_hand: Hand) -> Iterator[None]:
    yield


def _other_holder(hand: Hand) -> Iterator[None]:
    """Another host takes the lease, ours having run out."""
    stage = hand.stage
    stage.now += timedelta(minutes=11)
    stage.cloud.set_time(stage.now.isoformat())
    stranger = ProcessIdentity(host="elsewhere", boot_id="other", pid_namespace="other", pid=1, started="1")
    with stage.ledger() as ledger:
        ledger.take_lease(stranger, timedelta(hours=1), stage.now)
    yield
    with stage.ledger() as ledger:
        lease = ledger.take_lease(stranger, timedelta(minutes=1), stage.now)
        ledger.release_lease(lease, stage.now)


def _slow_request(hand: Hand) -> Iterator[None]:
    number = hand.stage.cloud.fault(action=TERMINATE, delay_s=0.4, times=1)
    yield
    hand.stage.cloud.end_fault(number)
    if hand.stage.braked:
        hand.stage.resume()


def _row_arrives(hand: Hand, going: str) -> bool:
    """The launcher of every other orphan writes its row at last."""
    others = [machine for machine in hand.fleet.orphans() if machine.instance_id != going]
    for number, machine in enumerate(others):
        hand.fleet.add_row(f"late-{machine.instance_id}-{number}", machine.region, machine.instance_id)
    return bool(others)


def _brake_arrives(hand: Hand, going: str) -> bool:
    hand.stage.hold()
    return True


def _protection_arrives(hand: Hand, going: str) -> bool:
    others = [machine for machine in hand.fleet.orphans() if machine.instance_id != going]
    for machine in others:
        hand.fleet.protect(machine, on=True)
    return bool(others)


STANDING = [
    Card(name="brake", play=_brake, stands_down=HELD, passes=3),
    Card(name="lease: another host", play=_other_holder, stands_down=LOOKING),
    Card(name="clock: five minutes ahead", play=_nothing, wrong_by=timedelta(minutes=5), stands_down=CLOCK),
    Card(name="clock: an hour behind", play=_nothing, wrong_by=-timedelta(hours=1), stands_down=CLOCK),
    Card(name="door: a row arrives", play=_slow_request, at_the_door=_row_arrives, passes=4),
    Card(
        name="door: the brake arrives", play=_slow_request, at_the_door=_brake_arrives, passes=4, stops_at_the_door=True
    ),
    Card(name="door: the protect tag arrives", play=_slow_request, at_the_door=_protection_arrives, passes=4),
]
