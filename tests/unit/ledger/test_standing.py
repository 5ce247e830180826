"""What a restarted daemon goes on from."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from reaperd.core.history import Look
from reaperd.core.model import Brake, OutcomeKind, PassKind
from reaperd.ledger.ledger import Ledger
from reaperd.ledger.standing import LastRuns, NewestPass
from reaperd.process import current
from tests.support.worlds import ref
from tests.unit.ledger.conftest import NOW, open_at
from tests.unit.ledger.test_memory import LESSON, TTL, leased, record, requested, verdict

MINUTE = timedelta(minutes=1)


def ran(ledger: Ledger, at: datetime, kind: str = "reconcile", outcome: str = "complete", **other: str) -> None:
    name = f"{kind}-{at:%H%M}"
    ledger.record(
        replace(record(name), kind=kind, outcome=outcome, started_at=at, finished_at=at + timedelta(seconds=2), **other)
    )


def test_a_new_ledger_knows_when_it_was_made_and_nothing_else(ledger: Ledger):
    standing = ledger.standing(NOW)

    assert standing.created_at == NOW
    assert standing.runs == {PassKind.RECONCILE: LastRuns(), PassKind.AUDIT: LastRuns()}
    assert (standing.newest, standing.brake, standing.lease_holder, standing.open_intents) == (None, None, None, 0)


def test_the_last_runs_of_each_kind_survive_a_restart(path: Path):
    with open_at(path) as ledger:
        ran(ledger, NOW)
        ran(ledger, NOW + MINUTE, "audit")
        ran(ledger, NOW + 2 * MINUTE, outcome="refused", reason="breaker_open")
        ledger.learn(replace(LESSON, look=Look(at=NOW + 2 * MINUTE, instances=(), coverage=())), NOW)
        ran(ledger, NOW + 3 * MINUTE, outcome="refused", reason="listing_incomplete")
        ran(ledger, NOW + 4 * MINUTE, "audit", outcome="refused", reason="listing_incomplete")

    with open_at(path) as ledger:
        standing = ledger.standing(NOW + 9 * MINUTE)

    assert standing.runs == {
        PassKind.RECONCILE: LastRuns(attempted_at=NOW + 3 * MINUTE, looked_at=NOW + 2 * MINUTE, completed_at=NOW),
        PassKind.AUDIT: LastRuns(attempted_at=NOW + 4 * MINUTE, looked_at=NOW + MINUTE, completed_at=NOW + MINUTE),
    }
    assert standing.created_at == NOW


def test_the_newest_pass_is_told_and_no_sweep(ledger: Ledger):
    ran(ledger, NOW, outcome="refused", reason="clock", plan_digest="sha256:d")
    ran(ledger, NOW + MINUTE, "audit")

    assert ledger.standing(NOW).newest == NewestPass(
        pass_id="reconcile-1200",
        mode="enforce",
        started_at=NOW,
        finished_at=NOW + timedelta(seconds=2),
        outcome="refused",
        reason="clock",
        plan_digest="sha256:d",
    )


def test_the_brake_and_the_holder_of_the_lease_are_told(ledger: Ledger):
    mark = Brake(since=NOW, by="ann", reason="deploy")
    ledger.hold(mark)
    leased(ledger)

    assert ledger.standing(NOW).brake == mark
    assert ledger.standing(NOW).lease_holder == current()
    assert ledger.standing(NOW + TTL).lease_holder is None


def test_a_machine_that_was_asked_twice_to_end_is_one_open_intent(ledger: Ledger):
    requested(ledger, OutcomeKind.REQUESTED)
    ledger.open_intent(verdict(again=True), pass_id="p", approved=False, lease=leased_again(ledger), now=NOW)
    requested_again = ledger.standing(NOW).open_intents
    requested_elsewhere(ledger)

    assert (requested_again, ledger.standing(NOW).open_intents) == (1, 2)


def leased_again(ledger: Ledger):
    return ledger.take_lease(current(), TTL, NOW)


def requested_elsewhere(ledger: Ledger) -> None:
    ledger.open_intent(verdict(ref("i-2")), pass_id="p", approved=False, lease=leased_again(ledger), now=NOW)


def test_how_things_stand_can_be_read_while_somebody_writes(ledger: Ledger, path: Path):
    with open_at(path) as other, other.transaction():
        other.hold(Brake(since=NOW, by="ann", reason="deploy"))
        ledger._connection.execute("PRAGMA busy_timeout = 0")

        assert ledger.standing(NOW).brake is None


def test_the_last_complete_pass_is_found_behind_many_refusals(ledger: Ledger):
    with ledger.transaction():
        ran(ledger, NOW)
        for minute in range(1, 3_000):
            at = NOW + minute * MINUTE
            ledger.record(replace(record(f"p-{minute}"), outcome="refused", started_at=at, finished_at=at))

    standing = ledger.standing(NOW)

    assert standing.runs[PassKind.RECONCILE].completed_at == NOW
    assert standing.runs[PassKind.RECONCILE].attempted_at == NOW + 2_999 * MINUTE
