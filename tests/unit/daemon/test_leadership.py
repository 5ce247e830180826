from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from reaperd.clock import ManualClock, SystemClock
from reaperd.daemon.leadership import Leadership
from reaperd.ledger.connection import text_of
from reaperd.ledger.ledger import Ledger, open_ledger
from reaperd.process import ProcessIdentity, current
from tests.unit.ledger.conftest import NOW

TTL = timedelta(seconds=30)
ELSEWHERE = replace(current(), host="elsewhere", boot_id="another")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


def opened(path: Path) -> Ledger:
    return open_ledger(path, deployment="prod-a", owner_tag="reaperd:owner", now=NOW)


def leadership(path: Path, clock: ManualClock | SystemClock, who: ProcessIdentity | None = None) -> Leadership:
    return Leadership(lambda: opened(path), who or current(), ttl=TTL, clock=clock)


def can_be_had(path: Path) -> bool:
    other = leadership(path, SystemClock(), ELSEWHERE)
    try:
        return other.step()
    finally:
        other.stop()


@pytest.fixture
def ours(path: Path, clock: ManualClock) -> Iterator[Leadership]:
    made = leadership(path, clock)
    yield made
    made.stop()


@pytest.fixture
def theirs(path: Path, clock: ManualClock) -> Iterator[Leadership]:
    made = leadership(path, clock, ELSEWHERE)
    yield made
    made.stop()


def test_the_first_one_leads_and_the_second_knows_who_does(ours: Leadership, theirs: Leadership):
    assert ours.step()
    assert not theirs.step()

    assert theirs.lease is None
    assert theirs.holder == current()
    assert ours.holder is None


def test_a_lease_that_is_renewed_is_kept(ours: Leadership, theirs: Leadership, clock: ManualClock):
    ours.step()
    first = ours.lease
    for _ in range(10):
        clock.advance(TTL / 2)
        assert ours.step()

    assert ours.lease == first
    assert not theirs.step()


def test_a_process_that_was_frozen_past_its_lease_does_not_lead_when_it_wakes(ours: Leadership, clock: ManualClock):
    ours.step()
    clock.advance(TTL)

    assert ours.lease is None


def test_a_frozen_process_comes_back_with_another_generation(ours: Leadership, clock: ManualClock):
    ours.step()
    before = ours.lease
    clock.advance(TTL)
    ours.step()

    assert ours.lease is not None
    assert ours.lease != before


def test_a_standby_takes_over_what_ran_out(ours: Leadership, theirs: Leadership, clock: ManualClock):
    ours.step()
    theirs.step()
    clock.advance(TTL)

    assert theirs.step()
    assert not ours.step()
    assert ours.holder == ELSEWHERE


def test_a_lease_that_could_not_be_renewed_once_is_ours_until_it_runs_out(
    ours: Leadership, path: Path, clock: ManualClock
):
    ours.step()
    before = ours.lease
    path.rename(path.with_suffix(".away"))
    path.mkdir()
    clock.advance(TTL / 3)

    assert ours.step()
    assert ours.lease == before

    clock.advance(TTL)
    assert not ours.step()


def test_a_ledger_that_was_put_in_the_place_of_ours_is_led_too(ours: Leadership, path: Path):
    ours.step()
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()
    opened(path).close()

    assert ours.step()

    with opened(path) as ledger:
        assert ours.lease is not None
        assert ledger.holds_lease(ours.lease, NOW)


def test_the_thread_renews_tells_changes_and_gives_the_lease_back(path: Path):
    told: list[bool] = []
    lost, taken = threading.Event(), threading.Event()

    def changed(leads: bool) -> None:
        told.append(leads)
        if len(told) > 1:
            (taken if leads else lost).set()

    ours = Leadership(lambda: opened(path), current(), ttl=timedelta(seconds=0.3), clock=SystemClock())
    ours.start(changed=changed)
    try:
        soon = text_of(SystemClock().now() + timedelta(minutes=30))
        with sqlite3.connect(path) as thief:
            thief.execute(
                "UPDATE lease SET generation = generation + 1, pid = 1, host = 'x', boot_id = 'y', expires_at = ?",
                (soon,),
            )
        thief.close()
        assert lost.wait(20)
        with sqlite3.connect(path) as thief:
            thief.execute("UPDATE lease SET expires_at = '2000-01-01T00:00:00.000000Z'")
        thief.close()
        assert taken.wait(20)
    finally:
        ours.stop()

    assert told == [True, False, True]
    assert ours.lease is None
    assert can_be_had(path)


def test_a_stop_before_the_first_renewal_gives_the_lease_back_too(path: Path):
    ours = leadership(path, SystemClock())
    ours.start(changed=lambda _: None)
    ours.stop()

    assert can_be_had(path)


def test_an_error_nobody_expected_does_not_end_the_thread_that_renews(path: Path):
    told: list[str] = []
    tries = threading.Semaphore(0)
    broken = threading.Event()

    def opened_or_not() -> Ledger:
        if broken.is_set():
            tries.release()
            msg = "nobody expected this"
            raise RuntimeError(msg)
        return opened(path)

    clock = SystemClock()
    ours = Leadership(opened_or_not, current(), ttl=timedelta(seconds=0.3), clock=clock, warn=told.append)
    ours.start(changed=lambda _: None)
    try:
        broken.set()
        assert tries.acquire(timeout=20)
        # Long enough for the lease to run out meanwhile.
        assert tries.acquire(timeout=20)
        assert tries.acquire(timeout=20)
        broken.clear()
        ends_at = clock.monotonic() + 20
        while ours.lease is None:
            assert clock.monotonic() < ends_at
            threading.Event().wait(0.01)
    finally:
        ours.stop()

    assert "nobody expected this" in told[0]


def test_two_that_took_the_same_generation_of_different_ledgers_do_not_both_lead(
    ours: Leadership, theirs: Leadership, path: Path
):
    ours.step()
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()

    assert theirs.step()
    assert not ours.step()
    assert ours.holder == ELSEWHERE
