"""`plan`: a look that needs no more than Describe and leaves nothing behind."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from reaperd.ledger.lease import Lease
from reaperd.process import current
from tests.integration.judging import complete, outcomes, reasons, refused
from tests.support.processes import environment
from tests.support.site import EAST, WEST, Site, tree

pytestmark = pytest.mark.timeout(300)  # on a busy machine; most take a second

FINDINGS = 3


@pytest.fixture
def site(site: Site) -> Iterator[Site]:
    """Give credentials that may look and nothing else, and hold every test of this module to that."""
    site.cloud.fault(code="UnauthorizedOperation", mutating=True)
    yield site
    assert site.mutations() == []


@pytest.fixture
def moto_site(moto_site: Site) -> Iterator[Site]:
    """Hold the tests on moto to it, too."""
    moto_site.cloud.fault(code="UnauthorizedOperation", mutating=True)
    yield moto_site
    assert moto_site.mutations() == []


def test_credentials_that_may_only_look_are_enough(moto_site: Site):
    orphans = [moto_site.orphan(EAST), moto_site.orphan(WEST)]
    tracked, young = moto_site.tracked(), moto_site.orphan(age_s=60)

    document = complete(moto_site.run("plan", cold=True), code=FINDINGS)

    assert outcomes(document) == dict.fromkeys(orphans, "would_terminate")
    assert reasons(document) == {**dict.fromkeys(orphans, "unregistered"), tracked: "tracked", young: "launch_grace"}
    assert {e.action for e in moto_site.cloud.requests()} == {"GetCallerIdentity", "DescribeInstances"}


def test_nothing_to_terminate_is_no_finding(site: Site):
    site.tracked()

    assert complete(site.run("plan"))["plan_digest"] is None


def test_it_makes_no_ledger_and_touches_no_file(site: Site):
    site.orphan()
    site.tracked()
    before = tree(site.folder)

    complete(site.run("plan", cold=True), code=FINDINGS)

    assert tree(site.folder) == before
    assert not site.state.exists()
    assert [path.name for path in site.registry.parent.iterdir()] == ["registry.db"]


def test_confirmation_is_taken_as_given_and_shown(site: Site):
    site.orphan()

    (verdict,) = complete(site.run("plan", settings={"reconcile.confirm_passes": "3"}), code=FINDINGS)["verdicts"]

    assert (verdict["confirmations"], verdict["confirmations_needed"]) == (1, 3)


def test_it_says_dry_run_although_the_file_enforces(site: Site):
    assert complete(site.run("plan"))["mode"] == "dry-run"


def test_an_auditor_and_the_reaper_name_the_same_plan(site: Site):
    site.orphan()
    site.orphan(WEST, worker=None)

    auditor = complete(site.run("plan"), code=FINDINGS)
    reaper = complete(site.run("once", "--dry-run"))

    assert auditor["plan_digest"] == reaper["plan_digest"]


# ---------------------------------------------------------------- with a ledger


def test_what_the_ledger_knows_counts_and_stays_as_it_is(site: Site):
    orphan = site.orphan(launched_at=None)
    assert reasons(complete(site.run("once", "--dry-run"))) == {orphan: "launch_grace"}
    seen_long_ago = (datetime.now(UTC) - timedelta(hours=2)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    with closing(sqlite3.connect(site.ledger_path)) as connection, connection:
        connection.execute("UPDATE sightings SET first_seen_at = ?", (seen_long_ago,))
    before = tree(site.folder)

    document = complete(site.run("plan", cold=True), code=FINDINGS)

    assert reasons(document) == {orphan: "unregistered"}
    assert 7200 <= document["verdicts"][0]["age_seconds"] < 7500
    assert tree(site.folder) == before
    assert [path.name for path in site.state.iterdir()] == ["ledger.db"]


def test_the_brake_is_shown(site: Site):
    orphan = site.orphan()
    assert site.run("hold", "--reason", "drill").code == 0
    before = tree(site.folder)

    document = refused(site.run("plan"), 5, "reap_hold")

    assert reasons(document) == {orphan: "unregistered"}
    assert document["plan_digest"] is not None
    assert tree(site.folder) == before


def test_a_registry_that_the_ledger_does_not_know_is_refused(site: Site):
    complete(site.run("once", "--dry-run"))
    with closing(sqlite3.connect(site.registry)) as connection, connection:
        connection.execute("UPDATE meta SET registry_id = 'another'")

    refused(site.run("plan"), 5, "registry_identity")


def test_it_looks_while_another_process_holds_the_lease(site: Site):
    orphan = site.orphan()
    with site.ledger() as ledger:
        assert isinstance(ledger.take_lease(current(), timedelta(minutes=5), datetime.now(UTC)), Lease)
        before = _without_shared_memory(tree(site.folder))

        document = complete(site.run("plan"), code=FINDINGS)

        assert reasons(document) == {orphan: "unregistered"}
        assert _without_shared_memory(tree(site.folder)) == before
        assert ledger.known_epoch() is None


def test_it_looks_while_another_process_is_in_the_middle_of_a_write(site: Site):
    site.orphan()
    with site.ledger() as ledger, ledger.transaction():
        complete(site.run("plan"), code=FINDINGS)


@pytest.mark.parametrize("content", [b"", b"not a database at all\n" * 400], ids=["zero bytes", "garbage"])
def test_a_ledger_that_cannot_be_read_is_told_and_left_alone(site: Site, content: bytes):
    site.orphan()
    site.state.mkdir()
    site.ledger_path.write_bytes(content)
    before = tree(site.folder)

    result = site.run("plan")

    complete(result, code=FINDINGS)
    assert "planning without the ledger's memory" in result.err
    assert tree(site.folder) == before


def _without_shared_memory(marks: dict[str, object]) -> dict[str, object]:
    """Leave out where SQLite notes who reads: the file, and the folder's own times are compared."""
    return {name: mark for name, mark in marks.items() if not name.endswith("-shm")}


# ---------------------------------------------------------------- a registry in use


def test_an_open_writer_of_the_registry_is_not_disturbed(site: Site):
    tracked = site.tracked()
    with closing(sqlite3.connect(site.registry)) as writer:
        writer.execute("UPDATE workers SET heartbeat_at = updated_at")
        writer.commit()
        assert site.registry.with_name("registry.db-wal").stat().st_size > 0
        before = _without_shared_memory(tree(site.folder))

        assert reasons(complete(site.run("plan"))) == {tracked: "tracked"}

        assert _without_shared_memory(tree(site.folder)) == before


CONTROL_PLANE = """
import sqlite3, sys, time
path, machine = sys.argv[1:]
now = "2026-01-10T12:00:00Z"
kept = sqlite3.connect(path, timeout=60, isolation_level=None)
for number in range(200):
    # Every other time on a connection of its own, so that the -wal comes and goes.
    writer = kept if number % 4 < 2 else sqlite3.connect(path, timeout=60, isolation_level=None)
    if number % 2:
        writer.execute("DELETE FROM workers WHERE worker_id = 'w-fleeting'")
    else:
        row = ("w-fleeting", "aws", "us-east-1", machine, "running", now, now)
        writer.execute("INSERT INTO workers (worker_id, provider, region, instance_id, state, created_at, updated_at)"
                       " VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    writer.execute("UPDATE workers SET heartbeat_at = ? WHERE worker_id = 'w-always-0'", (now,))
    if writer is not kept:
        writer.close()
    if number % 20 == 19:
        kept.close()
        time.sleep(0.05)
        kept = sqlite3.connect(path, timeout=60, isolation_level=None)
    time.sleep(0.005)
kept.close()
"""
"""In no package of ours: a control plane in another language would do the same."""


def test_rows_that_always_stood_are_never_misjudged_while_others_come_and_go(site: Site):
    always = [site.tracked(worker=f"w-always-{number}") for number in range(3)]
    waiting = site.orphan(worker="w-waiting")
    site.add_row("w-waiting", None)
    orphan = site.orphan(worker="w-never")
    fleeting = site.orphan(worker="w-fleeting")
    seen: list[str] = []
    words = [sys.executable, "-c", CONTROL_PLANE, str(site.registry), fleeting]

    with subprocess.Popen(words, env=environment()) as control_plane:
        while control_plane.poll() is None:
            document = complete(site.run("plan"), code=FINDINGS)

            told = reasons(document)
            assert {told[instance_id] for instance_id in (*always, waiting)} == {"tracked"}
            assert told[orphan] == "unregistered"
            assert document["missing"] == []
            seen.append(told[fleeting])

    assert control_plane.returncode == 0
    assert set(seen) <= {"tracked", "unregistered"}
    assert document["registry"]["epoch"] > 0
    assert len(seen) > 1


def test_a_path_with_odd_characters_is_just_a_path(tmp_path: Path, site: Site):
    odd = tmp_path / "a b?c#d%20é"
    odd.mkdir()
    moved = Site(folder=odd, cloud=site.cloud, crew=site.crew)
    moved.set_up()
    moved.orphan()

    complete(moved.run("plan"), code=FINDINGS)
    complete(moved.run("once", "--dry-run"))

    assert moved.ledger_path.is_file()
