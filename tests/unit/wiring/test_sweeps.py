"""A sweep of the daemon's and one for a person: what each remembers, and what it writes (rules 16, 18, 27)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from providers.fake import FakeCloud, FakeMachine
from providers.fake.faults import ListingFault
from providers.model import InstanceRef, InstanceState, Scope
from providers.multicloud import MultiCloud
from reaperd.clock import ManualClock
from reaperd.config import Settings
from reaperd.core.leaks import AuditReport
from reaperd.daemon.work import Turn
from reaperd.ledger.lease import Lease
from reaperd.process import current
from reaperd.wiring.passes import Machinery, Surroundings, daemon_sweep, ledger_of, sweep
from tests.support.site import tree
from tests.unit.config.writing import loaded

START = datetime(2026, 1, 10, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)
REGION = "fake-1"
CONFIG = """\
deployment = "prod-a"
state_dir = "{state}"
[registry]
path = "{state}/registry.db"
[audit]
max_age = "24h"
[[providers]]
name = "fake"
type = "fake"
"""


class Standing(Machinery):
    """The daemon's machinery on a cloud in memory."""

    def __init__(self, settings: Settings, clock: ManualClock) -> None:
        self.warnings: list[str] = []
        around = Surroundings(
            clock=clock,  # type: ignore[arg-type] # what is used of it is a clock
            stopping=lambda: False,
            warn=self.warnings.append,
        )
        super().__init__(settings, around, own_id=lambda: None)
        self.clock = clock
        self.cloud = FakeCloud(regions=(REGION, "fake-2"), clock=clock, owner="prod-a")

    def lister(self, known: Iterable[Scope]) -> MultiCloud:
        return MultiCloud("clouds", self.cloud.auditor(), clock=self.clock)

    def leak(self, **facts: object) -> InstanceRef:
        """Start a machine of nobody's, an hour ago."""
        return self.cloud.add(FakeMachine(**({"owner": None, "age": timedelta(hours=1)} | facts)))  # type: ignore[arg-type]

    def lease(self) -> Lease:
        """Take the lease for a year."""
        with ledger_of(self.settings, self.around.clock) as ledger:
            taken = ledger.take_lease(current(), 365 * DAY, self.clock.now())
        assert isinstance(taken, Lease)
        return taken

    def remembered(self) -> dict[InstanceRef, datetime]:
        with ledger_of(self.settings, self.around.clock) as ledger:
            return dict(ledger.audited())

    def records(self) -> int:
        with ledger_of(self.settings, self.around.clock) as ledger:
            return len(list(ledger._connection.execute("SELECT 1 FROM passes")))


@pytest.fixture
def here(tmp_path: Path) -> Standing:
    return Standing(loaded(CONFIG.format(state=tmp_path / "state")), ManualClock(START))


def leaks(report: AuditReport) -> list[InstanceRef]:
    return [leak.instance.ref for leak in report.findings.leaks]


# ---------------------------------------------------------------- the daemon's


def test_a_machine_that_is_stopped_and_started_every_night_becomes_a_leak_and_stays_one(here: Standing):
    ref, lease, found = here.leak(), here.lease(), []

    for _ in range(4):
        found.append(leaks(daemon_sweep(here, Turn(lease=lease))))
        here.clock.advance(DAY)
        here.cloud.change(ref, launched_at=here.clock.now() - timedelta(minutes=5))

    assert found == [[], [ref], [ref], [ref]]


def test_a_machine_that_is_gone_is_forgotten_and_its_name_is_young_again(here: Standing):
    ref, lease = here.leak(age=2 * DAY), here.lease()
    daemon_sweep(here, Turn(lease=lease))

    here.cloud.change(ref, state=InstanceState.TERMINATED)
    daemon_sweep(here, Turn(lease=lease))

    assert here.remembered() == {}


def test_a_region_that_fails_is_forgotten_nothing_of(here: Standing):
    ref, lease = here.leak(), here.lease()
    daemon_sweep(here, Turn(lease=lease))
    before = here.remembered()

    here.cloud.remove(ref)
    here.cloud.fail_audit(REGION, ListingFault(error_code="AuthFailure"))
    daemon_sweep(here, Turn(lease=lease))

    assert before == here.remembered() == {ref: START - timedelta(hours=1)}


def test_without_the_lease_a_sweep_is_judged_with_what_is_remembered_and_writes_nothing(here: Standing):
    ref = here.leak()
    daemon_sweep(here, Turn(lease=here.lease()))
    here.clock.advance(DAY)
    here.cloud.change(ref, launched_at=here.clock.now())
    new = here.leak()

    report = daemon_sweep(here, Turn())

    assert leaks(report) == [ref]
    assert new not in here.remembered()
    assert here.records() == 1


def test_a_lease_that_was_lost_meanwhile_writes_nothing(here: Standing):
    here.leak()
    lost = here.lease()
    here.clock.advance(366 * DAY)

    report = daemon_sweep(here, Turn(lease=lost))

    assert report.findings.instances == 1
    assert (here.remembered(), here.records()) == ({}, 0)


def test_a_sweep_under_a_clock_that_moved_teaches_nothing(here: Standing):
    here.leak()

    daemon_sweep(here, Turn(lease=here.lease(), clock_step=timedelta(seconds=61)))

    assert (here.remembered(), here.records()) == ({}, 1)


def test_a_ledger_that_cannot_be_read_hides_no_leak(here: Standing):
    ref = here.leak(age=2 * DAY)
    here.settings.ledger_path.mkdir(parents=True)

    report = daemon_sweep(here, Turn(lease=Lease(generation=1, nonce="")))

    assert leaks(report) == [ref]
    assert [warning.split(":")[0] for warning in here.warnings] == [
        "planning without the ledger's memory",
        "looking without knowing since when machines run",
        "the sweep could not be recorded",
    ]


# ---------------------------------------------------------------- a person's


def test_a_sweep_for_a_person_knows_what_the_daemon_saw_and_leaves_no_trace(here: Standing):
    ref = here.leak()
    daemon_sweep(here, Turn(lease=here.lease()))
    here.clock.advance(DAY)
    here.cloud.change(ref, launched_at=here.clock.now())
    here.leak()
    before = tree(here.settings.state_dir)

    report = sweep(here, Turn())

    assert leaks(report) == [ref]
    assert tree(here.settings.state_dir) == before
