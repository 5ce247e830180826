"""A recorded plan as the ledger gives it back, with what it has of the time since."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from providers.model import InstanceState
from reaperd.core.history import Look
from reaperd.core.model import Outcome, OutcomeKind, PassReport, SparedReason
from reaperd.core.plans import Fate, RecordedPlan
from reaperd.errors import LedgerUnusableError
from reaperd.ledger.history import LedgerFile
from reaperd.ledger.lease import Lease
from reaperd.ledger.ledger import Ledger
from reaperd.ledger.plans import recorded_plan
from reaperd.process import current
from reaperd.report.trail import record_of
from tests.support.worlds import EAST, HOUR, MINUTE, NOW, look, machine, policy, ref, whole
from tests.unit.cli import reports
from tests.unit.ledger.test_memory import LESSON, SIGHTING, TTL, requested, verdict

REF, OTHER = ref("i-1"), ref("i-2")
PRICES = {"m5.large": 0.096}


@pytest.fixture
def file(path: Path) -> LedgerFile:
    return LedgerFile(path=path, deployment="prod-a", owner_tag="reaperd:owner")


def a_plan(minutes: int = 0, *names: str, **other: object) -> PassReport:
    """Return a pass that would end these machines, of which one was priced."""
    machines = [machine(name, instance_type="m5.large") for name in names or ("i-1", "i-2")]
    made = reports.report(look(machines), policy(prices=PRICES), outcomes=())
    at = NOW + minutes * MINUTE
    return replace(made, pass_id=f"p-{minutes}", started_at=at, finished_at=at, **other)


def keep(ledger: Ledger, *passes: PassReport) -> None:
    for report in passes:
        ledger.record(record_of(report, {}))


def see(ledger: Ledger, minutes: int, verdicts: dict[str, str]) -> None:
    """Let a complete look list these machines, with these verdicts."""
    at = NOW + minutes * MINUTE
    instances = tuple(machine(name) for name in verdicts)
    sightings = {ref(name): replace(SIGHTING, last_seen_at=at, verdict=text) for name, text in verdicts.items()}
    seen = Look(at=at, instances=instances, coverage=(whole(EAST),))
    ledger.learn(replace(LESSON, sightings=sightings, look=seen), at)


def found(file: LedgerFile, digest: str | None = None) -> RecordedPlan:
    plan = recorded_plan(file, digest)
    assert plan is not None
    return plan


def test_a_plan_has_the_evidence_of_each_of_its_machines(ledger: Ledger, file: LedgerFile):
    report = a_plan()
    keep(ledger, report)

    plan = found(file, report.digest)

    assert (plan.digest, plan.told.at, plan.told.pass_id) == (report.digest, NOW, "p-0")
    first = plan.machines[0]
    assert (first.ref, first.name, first.detail) == (REF, "terminate/unregistered", "no row")
    assert (first.instance_type, first.cost_per_hour_usd) == ("m5.large", 0.096)
    assert (first.first_seen_at, first.last_tracked_at) == (NOW, None)
    assert plan.to_go == (REF, OTHER)


def test_when_it_was_tracked_is_part_of_the_evidence(ledger: Ledger, file: LedgerFile):
    report = a_plan()
    tracked = replace(report.verdicts[0], tracked_at=NOW - HOUR)
    keep(ledger, replace(report, verdicts=(tracked,)))

    assert found(file).machines[0].last_tracked_at == NOW - HOUR


def test_a_record_that_is_older_than_the_evidence_is_read_without(ledger: Ledger, file: LedgerFile, path: Path):
    keep(ledger, a_plan())
    newer = ("instance_type", "cost_per_hour_usd", "first_seen_at", "last_tracked_at", "detail")
    with closing(sqlite3.connect(path)) as connection, connection:
        for key in newer:
            for number in (0, 1):
                connection.execute(f"UPDATE passes SET record = json_remove(record, '$.verdicts[{number}].{key}')")

    told = found(file).machines[0]

    assert [getattr(told, key) for key in newer] == [None, None, None, None, ""]


def test_the_newest_pass_with_the_plan_is_the_one_that_is_told(ledger: Ledger, file: LedgerFile):
    report = a_plan()
    keep(ledger, report, a_plan(5), a_plan(7, "i-3"), replace(a_plan(9), digest=None))

    assert found(file, report.digest).told.pass_id == "p-5"
    assert found(file).told.pass_id == "p-7"
    assert recorded_plan(file, "sha256:other") is None


def test_what_a_later_look_says_is_told(ledger: Ledger, file: LedgerFile):
    keep(ledger, a_plan(0, "i-1", "i-2", "i-3", "i-4"))
    see(ledger, 1, {"i-1": "keep/tracked", "i-2": "terminate/unregistered", "i-3": "keep/protect_tag"})

    plan = found(file)

    fates = [plan.became(machine.ref).fate for machine in plan.machines]
    assert fates == [Fate.TRACKED, Fate.TO_GO, Fate.KEPT, Fate.NOT_LISTED]
    assert plan.looked_at == NOW + MINUTE


def test_the_look_of_the_plan_itself_is_no_news(ledger: Ledger, file: LedgerFile):
    keep(ledger, a_plan())
    see(ledger, 0, {"i-1": "terminate/unregistered", "i-2": "terminate/unregistered"})

    assert found(file).to_go == (REF, OTHER)


def test_what_was_asked_since_is_told_and_what_was_asked_before_is_not(ledger: Ledger, file: LedgerFile):
    requested(ledger, OutcomeKind.DENIED, ref=OTHER)
    keep(ledger, a_plan(1))

    assert found(file).to_go == (REF, OTHER)

    later = NOW + 2 * MINUTE
    lease = ledger.take_lease(current(), TTL, later)
    assert isinstance(lease, Lease)
    number = ledger.open_intent(verdict(OTHER), pass_id="p", approved=True, lease=lease, now=later)
    assert found(file).became(OTHER).why == "unknown"
    ledger.answer_intent(number, Outcome(ref=OTHER, kind=OutcomeKind.REQUESTED), later)

    became = found(file).became(OTHER)
    assert (became.fate, became.at, became.why) == (Fate.REQUESTED, later, "")


def test_a_confirmed_end_is_told_with_its_time(ledger: Ledger, file: LedgerFile):
    keep(ledger, a_plan())
    requested(ledger, OutcomeKind.REQUESTED)
    gone_at = NOW + 3 * MINUTE
    (intent,) = ledger.recall(NOW).intents.values()
    ledger.learn(replace(LESSON, confirmed_gone=(intent,)), gone_at)

    became = found(file).became(REF)

    assert (became.fate, became.at) == (Fate.GONE, gone_at)


def test_what_the_pass_of_the_last_look_spared_is_told(ledger: Ledger, file: LedgerFile):
    spared = (Outcome(ref=REF, kind=OutcomeKind.SPARED, reason=SparedReason.TRACKED_NOW),)
    keep(ledger, a_plan(), a_plan(4, "i-1", outcomes=spared))
    see(ledger, 4, {"i-1": "terminate/unregistered", "i-2": "terminate/unregistered"})

    plan = found(file, a_plan().digest)

    assert plan.became(REF).fate is Fate.TRACKED
    assert plan.to_go == (OTHER,)


def test_a_machine_that_is_listed_as_gone_is_gone(ledger: Ledger, file: LedgerFile):
    keep(ledger, a_plan())
    gone = machine("i-1", state=InstanceState.TERMINATED)
    at = NOW + timedelta(minutes=1)
    ledger.learn(replace(LESSON, look=Look(at=at, instances=(gone,), coverage=(whole(EAST),))), at)

    assert found(file).became(REF).fate is Fate.GONE


def test_it_leaves_no_trace_and_makes_no_ledger(ledger: Ledger, file: LedgerFile, tmp_path: Path):
    keep(ledger, a_plan())
    before = file.path.read_bytes()

    assert recorded_plan(file) is not None
    assert file.path.read_bytes() == before
    with pytest.raises(LedgerUnusableError, match="there is no ledger"):
        recorded_plan(replace(file, path=tmp_path / "none.db"))
    assert not (tmp_path / "none.db").exists()


def test_the_ledger_of_another_deployment_is_not_asked(ledger: Ledger, file: LedgerFile):
    keep(ledger, a_plan())

    with pytest.raises(LedgerUnusableError, match="belongs to deployment"):
        recorded_plan(replace(file, deployment="staging-b"))
