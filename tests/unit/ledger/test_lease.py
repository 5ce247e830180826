from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from reaperd.clock import SystemClock
from reaperd.ledger.keeper import LeaseKeeper
from reaperd.ledger.lease import Lease
from reaperd.ledger.ledger import Ledger
from reaperd.process import ProcessIdentity, current
from tests.unit.ledger.conftest import NOW, open_at

TTL = timedelta(seconds=30)
ROOT = Path(__file__).parents[3]
STRANGER = replace(current(), host="elsewhere", boot_id="another boot")


def taken(ledger: Ledger, who: ProcessIdentity, now: datetime = NOW) -> Lease:
    lease = ledger.take_lease(who, TTL, now)
    assert isinstance(lease, Lease)
    return lease


def test_the_first_to_come_takes_the_lease_and_the_second_is_told_who_has_it(ledger: Ledger):
    taken(ledger, STRANGER)

    assert ledger.take_lease(current(), TTL, NOW) == STRANGER


def test_a_lease_can_be_taken_at_the_moment_it_runs_out(ledger: Ledger):
    first = taken(ledger, STRANGER)

    second = taken(ledger, current(), NOW + TTL)

    assert second.generation == first.generation + 1


def test_a_lease_that_was_given_back_can_be_taken_at_once(ledger: Ledger):
    ledger.release_lease(taken(ledger, STRANGER), NOW)

    taken(ledger, current())


def test_giving_back_an_old_lease_takes_nothing_from_the_new_holder(ledger: Ledger):
    old = taken(ledger, STRANGER)
    new = taken(ledger, current(), NOW + TTL)

    ledger.release_lease(old, NOW + TTL)

    assert ledger.holds_lease(new, NOW + TTL)


def test_a_renewed_lease_lasts_longer(ledger: Ledger):
    lease = taken(ledger, current())

    renewed = ledger.renew_lease(lease, TTL, NOW + timedelta(seconds=20))

    assert renewed
    assert ledger.holds_lease(lease, NOW + timedelta(seconds=49))


def test_a_lease_that_ran_out_cannot_be_renewed_although_nobody_took_it(ledger: Ledger):
    lease = taken(ledger, current())

    assert not ledger.renew_lease(lease, TTL, NOW + TTL)
    assert not ledger.holds_lease(lease, NOW + TTL)


def test_a_holder_that_died_on_this_host_is_taken_over_at_once(ledger: Ledger):
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    dead = identity_of(child.pid)
    taken(ledger, dead)
    alive = ledger.take_lease(current(), TTL, NOW)
    child.kill()
    child.communicate()

    assert alive == dead
    taken(ledger, current())


def test_a_zombie_is_dead(ledger: Ledger):
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    identity = identity_of(child.pid)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

    assert identity.is_dead()
    child.wait()


def test_a_pid_that_was_given_to_another_process_is_not_the_holder():
    assert replace(current(), started="1").is_dead()
    assert not current().is_dead()


def test_a_living_holder_that_proc_hides_is_waited_for():
    """As under systemd's ProtectProc: the holder is another user's, and /proc shows only one's own."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("hiding processes needs root and unshare")
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    held, gone = identity_of(child.pid), replace(current(), pid=2**22 - 1)
    asked = """
import ast, os, sys
from reaperd.process import ProcessIdentity
os.setgid(65534)
os.setuid(65534)
for fields in ast.literal_eval(sys.argv[1]):
    print("seen" if os.path.exists(f"/proc/{fields['pid']}") else "hidden", ProcessIdentity(**fields).is_dead())
"""
    hide = 'mount -t proc -o hidepid=invisible proc /proc && exec "$@"'
    command = [sys.executable, "-c", asked, repr([asdict(held), asdict(gone)])]

    said = subprocess.run(
        ["unshare", "--mount", "sh", "-c", hide, "sh", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    child.communicate(b"\n")

    assert said.stdout == "hidden False\nhidden True\n", said.stderr


def test_a_holder_elsewhere_is_waited_for():
    assert not replace(current(), boot_id="another boot", pid=2**22).is_dead()
    assert not replace(current(), pid_namespace="pid:[1]", pid=2**22).is_dead()
    assert not replace(current(), boot_id="", pid=2**22).is_dead()


def test_of_two_that_reach_for_the_lease_at_the_same_moment_one_gets_it(path: Path):
    open_at(path).close()
    results: list[object] = []

    def reach(name: str) -> None:
        with open_at(path) as ledger:
            results.append(ledger.take_lease(replace(STRANGER, host=name), TTL, NOW))

    threads = [threading.Thread(target=reach, args=(str(number),)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sum(isinstance(result, Lease) for result in results) == 1


def test_a_keeper_renews_until_it_is_left(path: Path):
    clock = SystemClock()
    ttl = timedelta(seconds=0.6)
    with open_at(path) as ledger:
        lease = ledger.take_lease(current(), ttl, clock.now())
        assert isinstance(lease, Lease)
        with LeaseKeeper(lambda: open_at(path), lease, ttl, clock):
            time.sleep(1.5)
            kept = ledger.holds_lease(lease, datetime.now(UTC))

        time.sleep(0.8)
        assert kept
        assert not ledger.holds_lease(lease, datetime.now(UTC))


def test_a_keeper_that_lost_the_lease_stops_and_takes_nothing_back(path: Path):
    clock = SystemClock()
    ttl = timedelta(seconds=0.3)
    with open_at(path) as ledger:
        lease = ledger.take_lease(current(), ttl, clock.now() - timedelta(seconds=9))
        assert isinstance(lease, Lease)
        other = ledger.take_lease(STRANGER, timedelta(seconds=60), clock.now())
        assert isinstance(other, Lease)
        with LeaseKeeper(lambda: open_at(path), lease, ttl, clock):
            time.sleep(0.4)

        assert ledger.holds_lease(other, datetime.now(UTC))


def test_a_keeper_whose_ledger_is_gone_ends_without_a_sound(tmp_path: Path):
    (tmp_path / "file").write_text("")

    with LeaseKeeper(lambda: open_at(tmp_path / "file" / "ledger.db"), Lease(1, ""), TTL, SystemClock()):
        time.sleep(0.1)


def identity_of(pid: int) -> ProcessIdentity:
    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return replace(current(), pid=pid, started=stat[19])
