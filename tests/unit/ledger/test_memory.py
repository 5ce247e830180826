from __future__ import annotations

import hashlib
import sqlite3
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from providers.model import InstanceRef, InstanceState, OwnedInstance, Scope
from reaperd.core.memory import Learned
from reaperd.core.model import (
    Brake,
    DecisionRecord,
    Intent,
    Memory,
    Outcome,
    OutcomeKind,
    RegistryPin,
    Sighting,
    Terminate,
    TerminateReason,
    Verdict,
)
from reaperd.errors import LedgerUnusableError
from reaperd.ledger.lease import Lease
from reaperd.ledger.ledger import BrakeIsOnError, LeaseLostError, Ledger
from reaperd.ledger.notebooks import BrokenNotebook, LeasedNotebook, TracelessNotebook, peek
from reaperd.process import current
from tests.unit.ledger.conftest import NOW, open_at

REF = InstanceRef("aws", "us-east-1", "i-1")
OTHER = InstanceRef("aws", "us-east-1", "i-2")
SCOPE = Scope("aws", "us-east-1")
PIN = RegistryPin(registry_id="r-1", epoch=7, nonce="aa")
SIGHTING = Sighting(
    first_seen_at=NOW - timedelta(hours=2),
    last_seen_at=NOW,
    confirmations=2,
    counted_at=NOW,
    tracked_at=NOW - timedelta(hours=1),
    vanished_at=NOW - timedelta(minutes=1),
    verdict="keep/unconfirmed",
)
LESSON = Learned(
    sightings={REF: SIGHTING},
    forgotten=frozenset(),
    confirmed_gone=(),
    pin=PIN,
    listed=frozenset({REF}),
    scopes=frozenset({SCOPE}),
)
TTL = timedelta(seconds=30)


def verdict(ref: InstanceRef = REF, *, again: bool = False) -> Verdict:
    instance = OwnedInstance(ref=ref, state=InstanceState.RUNNING, owner="prod-a", worker_id="w-1")
    call = Terminate(TerminateReason.UNREGISTERED, again=again)
    return Verdict(instance=instance, call=call, age=None, confirmations=1, orphan=TerminateReason.UNREGISTERED)


def leased(ledger: Ledger) -> Lease:
    taken = ledger.take_lease(current(), TTL, NOW)
    assert isinstance(taken, Lease)
    return taken


def requested(
    ledger: Ledger, kind: OutcomeKind, *, ref: InstanceRef = REF, again: bool = False, approved: bool = False
) -> None:
    number = ledger.open_intent(
        verdict(ref, again=again), pass_id="p", approved=approved, lease=leased(ledger), now=NOW
    )
    ledger.answer_intent(number, Outcome(ref=ref, kind=kind), NOW)


def test_what_was_learned_is_recalled_after_a_restart(path: Path):
    with open_at(path) as ledger:
        ledger.learn(LESSON, NOW)

    with open_at(path) as ledger:
        memory = ledger.recall(NOW)

    assert memory == Memory(
        sightings={REF: SIGHTING},
        looked_at=NOW,
        pin=PIN,
        listed=frozenset({REF}),
        scopes=frozenset({SCOPE}),
        intents={},
    )


def test_a_lesson_replaces_what_is_listed_and_which_scopes_are_known(ledger: Ledger):
    ledger.learn(LESSON, NOW)
    elsewhere = Scope("aws", "eu-west-1")

    ledger.learn(replace(LESSON, listed=frozenset({OTHER}), scopes=frozenset({elsewhere})), NOW)

    memory = ledger.recall(NOW)
    assert (memory.listed, memory.scopes) == (frozenset({OTHER}), frozenset({elsewhere}))


def test_a_forgotten_machine_is_gone_from_the_memory(ledger: Ledger):
    ledger.learn(LESSON, NOW)

    ledger.learn(replace(LESSON, sightings={}, forgotten=frozenset({REF})), NOW)

    assert ledger.recall(NOW).sightings == {}


@pytest.mark.parametrize(
    "kind", [OutcomeKind.REQUESTED, OutcomeKind.PROTECTED, OutcomeKind.UNKNOWN, OutcomeKind.DENIED]
)
def test_an_answered_intent_stays_open_until_the_machine_is_proved_gone(ledger: Ledger, kind: OutcomeKind):
    requested(ledger, kind)
    intent = ledger.recall(NOW).intents[REF]

    ledger.learn(replace(LESSON, confirmed_gone=(intent,)), NOW)

    assert intent.outcome is kind
    assert ledger.recall(NOW).intents == {}


@pytest.mark.parametrize("kind", [OutcomeKind.SPARED, OutcomeKind.DEFERRED])
def test_an_intent_under_which_nothing_was_accepted_closes_at_once(ledger: Ledger, kind: OutcomeKind):
    requested(ledger, kind)

    assert ledger.recall(NOW).intents == {}


def test_an_intent_without_an_answer_is_recalled_as_such(ledger: Ledger):
    ledger.open_intent(verdict(), pass_id="p", approved=False, lease=leased(ledger), now=NOW)

    assert ledger.recall(NOW).intents[REF].outcome is None


def test_a_second_request_remembers_when_the_first_was_sent(ledger: Ledger):
    requested(ledger, OutcomeKind.REQUESTED)
    later = NOW + timedelta(minutes=31)
    lease = ledger.take_lease(current(), TTL, later)
    assert isinstance(lease, Lease)

    ledger.open_intent(verdict(again=True), pass_id="p", approved=False, lease=lease, now=later)

    intent = ledger.recall(later).intents[REF]
    assert (intent.first_requested_at, intent.requested_at) == (NOW, later)


def test_a_request_that_was_refused_first_is_not_the_beginning_of_the_one_that_was_accepted(ledger: Ledger):
    requested(ledger, OutcomeKind.PROTECTED)
    later = NOW + timedelta(minutes=31)
    lease = ledger.take_lease(current(), TTL, later)
    assert isinstance(lease, Lease)

    number = ledger.open_intent(verdict(again=True), pass_id="p", approved=False, lease=lease, now=later)
    ledger.answer_intent(number, Outcome(ref=REF, kind=OutcomeKind.REQUESTED), later)

    assert ledger.recall(later).intents[REF].first_requested_at == later


@pytest.mark.parametrize(
    ("kind", "counted"),
    [
        (OutcomeKind.REQUESTED, 1),
        (OutcomeKind.UNKNOWN, 1),
        (OutcomeKind.ALREADY_GONE, 0),
        (OutcomeKind.PROTECTED, 0),
        (OutcomeKind.DENIED, 0),
        (OutcomeKind.FAILED, 0),
        (OutcomeKind.DEFERRED, 0),
        (OutcomeKind.SPARED, 0),
    ],
)
def test_only_requests_that_were_or_may_have_been_accepted_count_in_the_hour(
    ledger: Ledger, kind: OutcomeKind, counted: int
):
    requested(ledger, kind)

    assert len(ledger.recall(NOW).requests) == counted


def test_a_request_whose_answer_was_lost_counts_in_the_hour(ledger: Ledger):
    ledger.open_intent(verdict(), pass_id="p", approved=False, lease=leased(ledger), now=NOW)

    assert ledger.recall(NOW).requests == (NOW,)


def test_what_is_pending_is_what_a_decision_recalls(ledger: Ledger):
    requested(ledger, OutcomeKind.REQUESTED)
    requested(ledger, OutcomeKind.DENIED, ref=OTHER)
    known = ledger.recall(NOW)
    ledger.learn(replace(LESSON, confirmed_gone=(known.intents[OTHER],)), NOW)

    assert ledger.pending() == {REF: known.intents[REF]}
    assert LeasedNotebook(ledger, None).pending() == ledger.pending()
    assert TracelessNotebook(known).pending() == known.intents


def test_a_confirmed_request_still_counts_in_its_hour(ledger: Ledger):
    requested(ledger, OutcomeKind.REQUESTED)
    intent = ledger.recall(NOW).intents[REF]

    ledger.learn(replace(LESSON, confirmed_gone=(intent,)), NOW)

    assert ledger.recall(NOW).requests == (NOW,)


def test_resends_and_approved_requests_do_not_count_in_the_hour(ledger: Ledger):
    requested(ledger, OutcomeKind.REQUESTED, again=True)
    requested(ledger, OutcomeKind.REQUESTED, ref=OTHER, approved=True)

    assert ledger.recall(NOW).requests == ()


def test_requests_leave_the_window_after_an_hour(ledger: Ledger):
    requested(ledger, OutcomeKind.REQUESTED)

    assert ledger.recall(NOW + timedelta(hours=1)).requests == ()


def test_no_intent_is_written_under_the_brake(ledger: Ledger):
    lease = leased(ledger)
    ledger.hold(Brake(since=NOW, by="me", reason="why"))

    with pytest.raises(BrakeIsOnError):
        ledger.open_intent(verdict(), pass_id="p", approved=False, lease=lease, now=NOW)

    assert ledger.recall(NOW).intents == {}


def test_no_intent_is_written_on_a_lease_that_ran_out_although_nobody_took_it(ledger: Ledger):
    lease = leased(ledger)

    with pytest.raises(LeaseLostError):
        ledger.open_intent(verdict(), pass_id="p", approved=False, lease=lease, now=NOW + TTL)

    assert ledger.recall(NOW).intents == {}


def test_no_intent_is_written_on_a_lease_that_another_process_took(ledger: Ledger):
    lease = leased(ledger)
    ledger.take_lease(replace(current(), host="elsewhere"), TTL, NOW + TTL)

    with pytest.raises(LeaseLostError):
        ledger.open_intent(verdict(), pass_id="p", approved=False, lease=lease, now=NOW)


def test_the_intents_of_one_request_are_written_and_answered_together(ledger: Ledger):
    notebook = LeasedNotebook(ledger, leased(ledger))
    first, second, third = refs = [InstanceRef("aws", "us-east-1", f"i-{number}") for number in range(3)]
    planned = [(verdict(ref), ref == second) for ref in refs]

    numbers = notebook.open_intents(planned, pass_id="p", now=NOW)
    open_at_first = {ref: intent.intent_id for ref, intent in ledger.recall(NOW).intents.items()}
    kinds = (OutcomeKind.REQUESTED, OutcomeKind.UNKNOWN, OutcomeKind.SPARED)
    notebook.answer_intents(
        [(n, Outcome(ref=ref, kind=kind)) for n, ref, kind in zip(numbers, refs, kinds, strict=True)], NOW
    )

    recalled = ledger.recall(NOW)
    assert open_at_first == dict(zip(refs, numbers, strict=True))
    assert {ref: intent.outcome for ref, intent in recalled.intents.items()} == {
        first: OutcomeKind.REQUESTED,
        second: OutcomeKind.UNKNOWN,
    }
    # Neither what was approved nor what was not sent counts for the hour.
    assert len(recalled.requests) == 1
    assert third not in recalled.intents


@pytest.mark.parametrize("trouble", ["the brake", "no lease", "a row that cannot be written"])
def test_of_the_intents_of_one_request_all_are_written_or_none(ledger: Ledger, trouble: str):
    lease = leased(ledger)
    planned = [(verdict(), False), (verdict(REF), False)]
    now = NOW
    if trouble == "the brake":
        ledger.hold(Brake(since=NOW, by="me", reason="why"))
    elif trouble == "no lease":
        now = NOW + TTL
    else:
        ledger._connection.execute(
            "CREATE TRIGGER one_only BEFORE INSERT ON intents WHEN (SELECT count(*) FROM intents) > 0"
            " BEGIN SELECT RAISE(ABORT, 'no space'); END"
        )

    with pytest.raises((BrakeIsOnError, LeaseLostError, LedgerUnusableError)):
        ledger.open_intents(planned, pass_id="p", lease=lease, now=now)

    assert ledger.recall(NOW).intents == {}


def test_of_the_answers_to_one_request_all_are_written_or_none(ledger: Ledger):
    numbers = ledger.open_intents([(verdict(), False)] * 2, pass_id="p", lease=leased(ledger), now=NOW)
    ledger._connection.execute(
        f"CREATE TRIGGER one_only BEFORE UPDATE ON intents WHEN old.intent_id = {numbers[1]}"
        " BEGIN SELECT RAISE(ABORT, 'no space'); END"
    )
    answered = [(number, Outcome(ref=REF, kind=OutcomeKind.REQUESTED)) for number in numbers]

    with pytest.raises(LedgerUnusableError):
        ledger.answer_intents(answered, NOW)

    assert [row[0] for row in ledger._connection.execute("SELECT outcome FROM intents")] == [None, None]


def test_the_first_brake_is_the_one_that_is_remembered(ledger: Ledger):
    ledger.hold(Brake(since=NOW, by="me", reason="first"))
    ledger.hold(Brake(since=NOW, by="you", reason="second"))

    assert ledger.brake() == Brake(since=NOW, by="me", reason="first")


def test_the_brake_comes_off_once(ledger: Ledger):
    ledger.hold(Brake(since=NOW, by="me", reason="why"))

    assert [ledger.resume("me", "done", NOW), ledger.resume("me", "done", NOW)] == [True, False]
    assert ledger.recall(NOW).brake is None


def record(pass_id: str, digest: str | None = None, text: str = '{"verdicts": []}') -> DecisionRecord:
    return DecisionRecord(
        pass_id=pass_id,
        kind="reconcile",
        mode="enforce",
        started_at=NOW,
        finished_at=NOW,
        outcome="complete",
        reason=None,
        plan_digest=digest,
        record=text,
    )


PLANNED = (
    '{"verdicts": [{"provider": "aws", "region": "us-east-1", "instance_id": "i-1", "verdict": "terminate"},'
    ' {"provider": "aws", "region": "us-east-1", "instance_id": "i-2", "verdict": "keep"}]}'
)


def test_only_the_terminations_of_a_recorded_plan_can_be_approved(ledger: Ledger):
    ledger.record(record("p-1", "sha256:d", PLANNED))

    assert ledger.planned("sha256:d") == (REF,)
    assert ledger.planned("sha256:other") is None


def test_an_approval_lasts_an_hour(ledger: Ledger):
    ledger.approve("sha256:d", (REF,), "me", "why", NOW)

    assert [a.refs for a in ledger.recall(NOW + timedelta(minutes=59)).approvals] == [frozenset({REF})]
    assert ledger.recall(NOW + timedelta(hours=1)).approvals == ()


def test_each_record_is_chained_to_the_one_before(ledger: Ledger, path: Path):
    ledger.record(record("p-1"))
    ledger.record(record("p-2"))

    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT record, previous_hash, hash FROM passes ORDER BY seq").fetchall()
    connection.close()
    hashes = [hashlib.sha256(f"{previous}\n{text}".encode()).hexdigest() for text, previous, _ in rows]
    assert [row[2] for row in rows] == hashes
    assert [row[1] for row in rows] == ["", hashes[0]]


def test_old_passes_are_forgotten_and_open_intents_never(ledger: Ledger):
    ledger.record(record("p-1"))
    requested(ledger, OutcomeKind.REQUESTED)

    ledger.forget(timedelta(days=30), NOW + timedelta(days=99))

    assert ledger.planned("p-1") is None
    assert list(ledger.recall(NOW).intents) == [REF]


def test_however_short_the_history_is_kept_the_rolling_hour_is_not_forgotten(ledger: Ledger):
    requested(ledger, OutcomeKind.REQUESTED)
    ledger.learn(replace(LESSON, confirmed_gone=(ledger.recall(NOW).intents[REF],)), NOW)

    ledger.forget(timedelta(seconds=1), NOW + timedelta(minutes=59))

    assert ledger.recall(NOW + timedelta(minutes=59)).requests == (NOW,)


def test_a_trusted_registry_is_pinned_with_who_and_why(ledger: Ledger):
    ledger.trust(replace(PIN, mismatch_accepted=True), "me", "moved", NOW)

    assert ledger.recall(NOW).pin == replace(PIN, mismatch_accepted=True)
    assert ledger.known_epoch() == 7


def test_peeking_reads_what_is_there_and_leaves_no_trace(path: Path):
    with open_at(path) as ledger:
        ledger.learn(LESSON, NOW)
    before = sorted(path.parent.iterdir())

    memory = peek(path, deployment="prod-a", owner_tag="reaperd:owner", busy_timeout=TTL, now=NOW)

    assert memory.sightings == {REF: SIGHTING}
    assert sorted(path.parent.iterdir()) == before


def test_peeking_where_nothing_is_makes_nothing(path: Path):
    memory = peek(path, deployment="prod-a", owner_tag="reaperd:owner", busy_timeout=TTL, now=NOW)

    assert memory == Memory()
    assert not path.parent.exists()


def test_peeking_into_another_deployments_ledger_is_refused(path: Path):
    open_at(path).close()

    with pytest.raises(LedgerUnusableError, match="prod-a"):
        peek(path, deployment="prod-b", owner_tag="reaperd:owner", busy_timeout=TTL, now=NOW)


def test_peeking_into_garbage_is_refused(path: Path):
    path.parent.mkdir()
    path.write_bytes(b"garbage" * 1000)

    with pytest.raises(LedgerUnusableError):
        peek(path, deployment="prod-a", owner_tag="reaperd:owner", busy_timeout=TTL, now=NOW)


def test_a_notebook_without_a_lease_neither_leads_nor_opens_intents(ledger: Ledger):
    notebook = LeasedNotebook(ledger, None)

    assert notebook.leads(NOW) is False
    with pytest.raises(LeaseLostError):
        notebook.open_intent(verdict(), pass_id="p", approved=False, now=NOW)
    with pytest.raises(LeaseLostError):
        notebook.open_intents([(verdict(), False)], pass_id="p", now=NOW)


def test_a_notebook_with_the_lease_serves_the_pass_and_the_door(ledger: Ledger):
    notebook = LeasedNotebook(ledger, leased(ledger))
    with notebook.transaction():
        notebook.learn(LESSON, NOW)
    notebook.record(record("p-1"))
    number = notebook.open_intent(verdict(), pass_id="p-1", approved=False, now=NOW)
    notebook.answer_intent(number, Outcome(ref=REF, kind=OutcomeKind.REQUESTED), NOW)

    assert notebook.leads(NOW)
    assert notebook.known_epoch() == 7
    assert notebook.recall(NOW).intents[REF] == Intent(
        intent_id=number, ref=REF, requested_at=NOW, outcome=OutcomeKind.REQUESTED, first_requested_at=NOW
    )


def test_a_traceless_notebook_keeps_nothing():
    notebook = TracelessNotebook(Memory(pin=PIN))
    with notebook.transaction():
        notebook.learn(LESSON, NOW)
    notebook.record(record("p-1"))

    assert notebook.recall(NOW) == Memory(pin=PIN)
    assert notebook.known_epoch() == 7
    assert notebook.leads(NOW)


def test_a_broken_notebook_says_at_every_use_why():
    notebook = BrokenNotebook(LedgerUnusableError("ledger.db", "the disk is gone"))
    uses = [
        lambda: notebook.transaction(),
        lambda: notebook.recall(NOW),
        lambda: notebook.known_epoch(),
        lambda: notebook.leads(NOW),
        lambda: notebook.learn(LESSON, NOW),
        lambda: notebook.record(record("p-1")),
    ]

    for use in uses:
        with pytest.raises(LedgerUnusableError, match="the disk is gone"):
            use()
