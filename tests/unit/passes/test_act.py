"""The door: what may pass, in which order, and what stops it."""

from __future__ import annotations

import threading
from datetime import timedelta
from itertools import pairwise

import pytest

from providers.errors import TerminationWithdrawnError
from providers.fake import FakeMachine, TerminateFault
from providers.model import InstanceRef, Scope
from reaperd.clock import ManualClock
from reaperd.core.model import Brake, DeferReason, OutcomeKind, PassOutcome, PassReport, RefusalReason, SparedReason
from reaperd.passes.act import LAST_WORDS
from registry.model import RegistryFault, Worker, WorkerState
from tests.unit.passes.conftest import REGION, World, kinds


def reasons(report: PassReport) -> dict[str, str | None]:
    return {outcome.ref.instance_id: outcome.reason for outcome in report.outcomes}


def test_the_oldest_goes_first_and_ties_go_by_id(world: World):
    for number, hours in ((1, 2), (2, 5), (3, 3), (4, 3)):
        world.orphan(number, age=timedelta(hours=hours))

    report = world.reap()

    assert [outcome.ref.instance_id for outcome in report.outcomes] == ["i-2", "i-3", "i-4", "i-1"]
    assert set(kinds(report).values()) == {OutcomeKind.REQUESTED}


def test_requests_to_one_scope_are_paced_below_what_the_cloud_documents(world: World):
    sent: list[float] = []
    world.cloud.before_terminate = lambda _: sent.append(world.clock.monotonic())
    for number in range(5):
        world.orphan(number)

    world.reap()

    assert [round(later - earlier, 6) for earlier, later in pairwise(sent)] == [0.25] * 4


@pytest.mark.parametrize(
    ("fault", "kind", "reason", "code"),
    [
        (TerminateFault.NOT_FOUND, OutcomeKind.ALREADY_GONE, None, "InvalidInstanceID.NotFound"),
        (TerminateFault.MALFORMED, OutcomeKind.INVALID_ID, None, "InvalidInstanceID.Malformed"),
        (TerminateFault.PROTECTED, OutcomeKind.PROTECTED, None, "OperationNotPermitted"),
        (TerminateFault.DENIED, OutcomeKind.DENIED, None, "UnauthorizedOperation"),
        (TerminateFault.REJECTED, OutcomeKind.FAILED, "IncorrectInstanceState", "IncorrectInstanceState"),
        (TerminateFault.SPOT_NOT_CANCELLED, OutcomeKind.FAILED, "spot_request_not_cancelled", None),
        (TerminateFault.UNKNOWN_APPLIED, OutcomeKind.UNKNOWN, None, None),
        (TerminateFault.IGNORED, OutcomeKind.REQUESTED, None, None),
    ],
)
def test_one_bad_answer_is_recorded_and_does_not_keep_the_others_alive(
    world: World, fault: TerminateFault, kind: OutcomeKind, reason: str | None, code: str | None
):
    bad, good = world.orphan(1, age=timedelta(hours=9)), world.orphan(2)
    world.cloud.fail_terminate(bad.instance_id, fault)

    report = world.reap()

    (first, second) = report.outcomes
    assert (first.kind, first.reason, first.error_code) == (kind, reason, code)
    assert (second.ref, second.kind) == (good, OutcomeKind.REQUESTED)
    assert report.outcome is PassOutcome.COMPLETE


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (TerminateFault.THROTTLED, DeferReason.THROTTLED),
        (TerminateFault.EXPIRED, DeferReason.CREDENTIALS_EXPIRED),
    ],
)
def test_an_answer_to_everybody_stops_the_requests_and_the_next_pass_goes_on(
    world: World, fault: TerminateFault, reason: DeferReason
):
    for number, hours in ((1, 9), (2, 8), (3, 7)):
        world.orphan(number, age=timedelta(hours=hours))
    world.cloud.fail_terminate("i-2", fault, calls=1)

    first = world.reap()
    requested = [world.cloud.terminate_requests(f"i-{number}") for number in (1, 2, 3)]
    second = world.reap()

    assert (first.outcome, first.reason) == (PassOutcome.DEFERRED, reason)
    assert list(kinds(first).values()) == [OutcomeKind.REQUESTED, OutcomeKind.DEFERRED, OutcomeKind.DEFERRED]
    assert requested == [1, 1, 0]
    assert kinds(second) == {"i-2": OutcomeKind.REQUESTED, "i-3": OutcomeKind.REQUESTED}


def test_a_worker_that_registers_after_the_decision_is_spared(world: World):
    first, second = world.orphan(1, age=timedelta(hours=9)), world.orphan(2)
    world.cloud.before_terminate = lambda ref: world.track(second, "w-2") if ref == first else None

    report = world.reap()

    assert kinds(report) == {"i-1": OutcomeKind.REQUESTED, "i-2": OutcomeKind.SPARED}
    assert reasons(report)["i-2"] == SparedReason.TRACKED_NOW
    assert world.cloud.terminate_requests("i-2") == 0


def test_a_machine_that_changed_after_the_decision_is_spared(world: World):
    ref = world.orphan(1)
    world.cloud.before_terminate = lambda _: world.cloud.change(ref, protect=True)

    report = world.reap()

    assert (kinds(report), reasons(report)) == ({"i-1": OutcomeKind.SPARED}, {"i-1": SparedReason.CHANGED})
    assert report.outcome is PassOutcome.COMPLETE


def test_the_brake_stops_the_pass_between_two_machines(world: World):
    world.orphan(1, age=timedelta(hours=9))
    world.orphan(2)
    world.cloud.on_terminate = lambda _: _brake(world)

    report = world.reap()

    assert (report.outcome, report.reason) == (PassOutcome.DEFERRED, DeferReason.REAP_HOLD)
    assert reasons(report) == {"i-1": None, "i-2": SparedReason.REAP_HOLD}


def test_the_brake_before_the_first_request_is_a_refusal(world: World):
    world.orphan(1)
    world.registry.before_reading = _on_second_call(lambda: _brake(world))

    report = world.reap()

    assert (report.outcome, report.reason) == (PassOutcome.REFUSED, RefusalReason.REAP_HOLD)
    assert report.verdicts != ()
    assert world.cloud.mutations == ()


def test_a_lost_lease_stops_the_pass_between_two_machines(world: World):
    world.orphan(1, age=timedelta(hours=9))
    world.orphan(2)
    world.cloud.on_terminate = lambda _: world.clock.advance(timedelta(hours=10))
    world.deadline = timedelta(days=2)

    report = world.reap()

    assert (report.outcome, report.reason) == (PassOutcome.DEFERRED, DeferReason.NOT_LEADER)
    assert reasons(report) == {"i-1": None, "i-2": SparedReason.NOT_LEADER}


def test_a_process_that_slept_past_its_lease_terminates_nothing_when_it_wakes(world: World):
    world.orphan(1)
    world.registry.before_reading = _on_second_call(lambda: world.clock.step_wall(timedelta(hours=10)))

    report = world.reap()

    assert (report.outcome, report.reason) == (PassOutcome.REFUSED, RefusalReason.NOT_LEADER)
    assert report.verdicts == ()
    assert world.cloud.mutations == ()


def test_asked_to_stop_it_begins_no_new_request_and_records_the_one_that_it_sent(world: World):
    world.orphan(1, age=timedelta(hours=9))
    world.orphan(2)

    def ask(_: InstanceRef) -> None:
        world.stop = True

    world.cloud.before_terminate = ask
    report = world.reap()

    assert (report.outcome, report.reason) == (PassOutcome.DEFERRED, DeferReason.STOPPING)
    assert reasons(report) == {"i-1": None, "i-2": SparedReason.STOPPING}
    assert next(iter(world.ledger.recall(world.clock.now()).intents)).instance_id == "i-1"


def test_asked_to_stop_it_does_not_wait_for_an_answer_that_does_not_come(world: World):
    world.orphan(1, age=timedelta(hours=9))
    world.orphan(2)
    world.clock = _Restless(world.clock.now())
    ended = threading.Event()

    def hang(_: InstanceRef) -> None:
        world.stop = True
        ended.wait(30)

    world.cloud.before_terminate = hang
    report = world.reap()
    ended.set()

    assert (report.outcome, report.reason) == (PassOutcome.DEFERRED, DeferReason.STOPPING)
    assert kinds(report) == {"i-1": OutcomeKind.UNKNOWN, "i-2": OutcomeKind.SPARED}
    (intent,) = world.ledger.recall(world.clock.now()).intents.values()
    assert intent.outcome is OutcomeKind.UNKNOWN


class _Restless(ManualClock):
    """A second passes whenever somebody asks for the time."""

    def monotonic(self) -> float:
        self.advance(timedelta(seconds=1))
        return super().monotonic()


def test_the_deadline_stops_the_pass_between_two_machines(world: World):
    world.orphan(1, age=timedelta(hours=9))
    world.orphan(2)
    world.cloud.on_terminate = lambda _: world.clock.advance(timedelta(minutes=4))

    report = world.reap()

    assert (report.outcome, report.reason) == (PassOutcome.DEFERRED, DeferReason.DEADLINE)
    assert kinds(report)["i-2"] is OutcomeKind.DEFERRED


def _over() -> None:
    """Wait for calls that nobody waits for any more."""
    for thread in threading.enumerate():
        if thread.name == "terminate":
            thread.join(20)


def test_an_answer_that_does_not_come_is_not_waited_for_beyond_the_deadline(world: World):
    world.orphan(1, age=timedelta(hours=9))
    world.orphan(2)
    ended = threading.Event()

    def hang(_: InstanceRef) -> None:
        world.clock.advance(world.deadline + LAST_WORDS)
        ended.wait(30)

    world.cloud.before_terminate = hang
    report = world.reap()
    ended.set()
    _over()

    assert (report.outcome, report.reason) == (PassOutcome.DEFERRED, DeferReason.DEADLINE)
    assert kinds(report) == {"i-1": OutcomeKind.UNKNOWN, "i-2": OutcomeKind.DEFERRED}
    assert "deadline" in report.outcomes[0].detail
    (intent,) = world.ledger.recall(world.clock.now()).intents.values()
    assert (intent.ref.instance_id, intent.outcome) == ("i-1", OutcomeKind.UNKNOWN)
    assert world.ledger.recall(world.clock.now()).requests != ()


def test_an_answer_a_little_after_the_deadline_is_still_taken(world: World):
    world.orphan(1)
    late = world.deadline + LAST_WORDS - timedelta(seconds=1)
    world.cloud.on_terminate = lambda _: world.clock.advance(late)

    report = world.reap()

    assert kinds(report) == {"i-1": OutcomeKind.REQUESTED}


def test_a_call_that_was_given_up_sends_nothing_when_it_wakes(world: World):
    world.orphan(1)
    world.clock = _Restless(world.clock.now())
    world.deadline = timedelta(seconds=30)
    ended = threading.Event()
    world.cloud.after_second_look = lambda _: ended.wait(30) and world.clock.step_wall(timedelta(0))

    report = world.reap()
    # Not even if there were time again.
    world.clock._elapsed = 0.0
    ended.set()
    _over()

    assert kinds(report) == {"i-1": OutcomeKind.UNKNOWN}
    assert world.cloud.mutations == ()


def test_a_worker_that_registers_while_the_cloud_is_looked_at_again_is_spared(world: World):
    first, _ = world.orphan(1, age=timedelta(hours=9)), world.orphan(2)
    world.cloud.after_second_look = lambda ref: world.track(ref, "w-1") if ref == first else None

    report = world.reap()

    assert kinds(report) == {"i-1": OutcomeKind.SPARED, "i-2": OutcomeKind.REQUESTED}
    assert reasons(report)["i-1"] == SparedReason.TRACKED_NOW
    assert world.cloud.terminate_requests("i-1") == 0
    assert [ref.instance_id for ref in world.ledger.recall(world.clock.now()).intents] == ["i-2"]
    assert report.outcome is PassOutcome.COMPLETE


@pytest.mark.parametrize(
    ("worker_id", "instance_id"), [("w-9", "I-1"), ("W-1", None)], ids=["its id", "its worker's tag"]
)
def test_a_row_that_misspells_the_machine_and_comes_during_the_second_look_spares_it(
    world: World, worker_id: str, instance_id: str | None
):
    ref, _ = world.orphan(1, age=timedelta(hours=9)), world.orphan(2)
    state = WorkerState.RUNNING if instance_id else WorkerState.LAUNCHING
    row = Worker(worker_id=worker_id, provider=ref.provider, region=ref.region, instance_id=instance_id, state=state)
    world.cloud.after_second_look = lambda seen: world.registry.add(row) if seen == ref else None

    report = world.reap()

    assert reasons(report)["i-1"] == SparedReason.CHANGED
    assert world.cloud.terminate_requests("i-1") == 0
    assert kinds(report)["i-2"] is OutcomeKind.REQUESTED


def test_a_machine_that_is_needed_after_all_keeps_its_spot_request(world: World):
    spot = world.cloud.add(
        FakeMachine(instance_id="i-1", worker_id="w-1", age=timedelta(hours=2), persistent_spot=True)
    )
    world.cloud.after_second_look = lambda _: world.track(spot, "w-1")

    report = world.reap()

    assert reasons(report) == {"i-1": SparedReason.TRACKED_NOW}
    assert world.cloud.mutations == ()


def test_a_registry_that_cannot_be_read_after_the_second_look_gives_no_leave(world: World):
    world.orphan(1, age=timedelta(hours=9))
    world.orphan(2)
    world.cloud.after_second_look = lambda _: setattr(world.registry, "fault", RegistryFault.LOCKED)

    report = world.reap()

    assert (report.outcome, report.reason) == (PassOutcome.REFUSED, DeferReason.REGISTRY_UNUSABLE)
    assert set(kinds(report).values()) == {OutcomeKind.DEFERRED}
    assert world.cloud.mutations == ()
    assert world.ledger.recall(world.clock.now()).intents == {}


def test_a_process_that_lost_its_lease_after_it_wrote_the_intent_sends_nothing(world: World):
    world.orphan(1, age=timedelta(hours=9))
    world.orphan(2)
    # As long as a process may have been frozen, at the worst moment.
    world.cloud.after_second_look = lambda _: world.clock.advance(timedelta(hours=10))
    world.deadline = timedelta(hours=20)

    report = world.reap()

    assert (report.outcome, report.reason) == (PassOutcome.REFUSED, DeferReason.NOT_LEADER)
    assert set(reasons(report).values()) == {SparedReason.NOT_LEADER}
    assert world.cloud.mutations == ()
    assert world.ledger.recall(world.clock.now()).intents == {}


def test_the_brake_stops_a_request_whose_intent_is_written(world: World):
    world.orphan(1)

    def brake(_: InstanceRef) -> None:
        with world.another() as other:
            other.hold(Brake(since=world.clock.now(), by="somebody", reason="an incident"))

    world.cloud.after_second_look = brake

    report = world.reap()

    assert (report.outcome, report.reason) == (PassOutcome.REFUSED, DeferReason.REAP_HOLD)
    assert reasons(report) == {"i-1": SparedReason.REAP_HOLD}
    assert world.cloud.mutations == ()


def test_a_second_look_that_ends_after_the_deadline_sends_nothing(world: World):
    world.orphan(1)
    world.cloud.after_second_look = lambda _: world.clock.advance(world.deadline)

    report = world.reap()

    assert (report.outcome, report.reason) == (PassOutcome.REFUSED, DeferReason.DEADLINE)
    assert kinds(report) == {"i-1": OutcomeKind.DEFERRED}
    assert world.cloud.mutations == ()


def test_a_plug_in_that_withdraws_for_reasons_of_its_own_spares_the_machine(world: World):
    ref = world.orphan(1)

    def withdraw(_: InstanceRef) -> None:
        raise TerminationWithdrawnError(ref, "its own reason")

    world.cloud.before_terminate = withdraw
    report = world.reap()

    assert reasons(report) == {"i-1": SparedReason.CHANGED}
    assert report.outcomes[0].detail == "its own reason"


def test_a_registry_that_became_unreadable_stops_the_pass(world: World):
    world.orphan(1, age=timedelta(hours=9))
    world.orphan(2)
    world.cloud.on_terminate = lambda _: setattr(world.registry, "fault", RegistryFault.LOCKED)

    report = world.reap()

    assert (report.outcome, report.reason) == (PassOutcome.DEFERRED, DeferReason.REGISTRY_UNUSABLE)
    assert world.cloud.terminate_requests("i-2") == 0


def test_a_registry_that_hangs_at_the_door_ends_the_pass_at_the_deadline(world: World):
    world.orphan(1)
    world.clock = _Restless(world.clock.now())
    world.deadline = timedelta(seconds=30)
    ended = threading.Event()
    world.registry.before_reading = _on_second_call(lambda: ended.wait(30))

    report = world.reap()
    ended.set()

    assert (report.outcome, report.reason) == (PassOutcome.REFUSED, RefusalReason.DEADLINE)
    assert "registry" in report.detail
    assert world.cloud.mutations == ()


def test_asked_to_stop_while_the_registry_hangs_at_the_door_it_spares_what_is_left(world: World):
    world.orphan(1)
    ended = threading.Event()

    def hang() -> None:
        world.stop = True
        ended.wait(30)

    world.registry.before_reading = _on_second_call(hang)
    report = world.reap()
    ended.set()

    assert (report.outcome, report.reason) == (PassOutcome.DEFERRED, DeferReason.STOPPING)
    assert reasons(report) == {"i-1": SparedReason.STOPPING}
    assert world.cloud.mutations == ()


@pytest.mark.parametrize("change", ["registry_id", "deployment", "epoch"])
def test_a_registry_that_was_replaced_while_acting_stops_the_pass(world: World, change: str):
    world.orphan(1, age=timedelta(hours=9))
    world.orphan(2)
    world.track(world.orphan(3), "w-3")
    value: object = 0 if change == "epoch" else "another"
    world.cloud.on_terminate = lambda _: setattr(world.registry.contents, change, value)

    report = world.reap()

    assert (report.outcome, report.reason) == (PassOutcome.DEFERRED, DeferReason.REGISTRY_IDENTITY)
    assert world.cloud.terminate_requests("i-2") == 0


def test_no_request_is_sent_whose_intent_could_not_be_written(world: World):
    world.orphan(1)
    world.registry.before_reading = _on_second_call(lambda: _without_intents(world))

    report = world.reap()

    assert (report.outcome, report.reason) == (PassOutcome.REFUSED, RefusalReason.LEDGER_UNUSABLE)
    assert world.cloud.mutations == ()


def test_an_answer_that_could_not_be_written_stops_the_pass_and_is_not_sent_again(world: World):
    world.orphan(1, age=timedelta(hours=9))
    world.orphan(2)
    world.cloud.on_terminate = lambda _: _break_answers(world)

    report = world.reap()
    world.ledger._connection.execute("DROP TRIGGER no_answers")
    again = world.reap()

    assert (report.outcome, report.reason) == (PassOutcome.DEFERRED, DeferReason.LEDGER_UNUSABLE)
    assert kinds(report) == {"i-1": OutcomeKind.REQUESTED, "i-2": OutcomeKind.DEFERRED}
    assert kinds(again) == {"i-2": OutcomeKind.REQUESTED}
    assert world.cloud.terminate_requests("i-1") == 1


def test_a_rehearsal_says_what_it_would_do_and_asks_the_cloud_for_nothing(world: World):
    world.orphan(1)
    world.orphan(2)

    report = world.reap(rehearse=True)

    assert set(kinds(report).values()) == {OutcomeKind.WOULD_TERMINATE}
    assert world.cloud.mutations == ()
    assert world.ledger.recall(world.clock.now()).intents == {}
    assert world.ledger.recall(world.clock.now()).requests == ()


def test_what_enforcing_does_is_what_the_rehearsal_said(world: World):
    for number in range(4):
        world.orphan(number)
    world.track(InstanceRef("fake", REGION, "i-0"), "w-0")

    said = world.reap(rehearse=True)
    done = world.reap()

    assert said.digest == done.digest
    assert [outcome.ref for outcome in said.outcomes] == [outcome.ref for outcome in done.outcomes]


def test_a_machine_elsewhere_is_nothing_to_the_door(world: World):
    world.cloud.add(FakeMachine(instance_id="i-7", owner="prod-b", age=timedelta(days=9)))

    report = world.reap()

    assert report.verdicts == ()
    assert report.coverage[0].scope == Scope("fake", REGION)
    assert world.cloud.mutations == ()


def _on_second_call(act):
    """Let the decision's reading pass and act at the door's."""
    calls: list[None] = []

    def call() -> None:
        calls.append(None)
        if len(calls) == 2:
            act()

    return call


def _brake(world: World) -> None:
    with world.another() as ledger:
        ledger.hold(Brake(since=world.clock.now(), by="me", reason="stop"))


def _without_intents(world: World) -> None:
    with world.another() as ledger:
        ledger._connection.execute("ALTER TABLE intents RENAME TO elsewhere")


def _break_answers(world: World) -> None:
    with world.another() as ledger:
        ledger._connection.execute(
            "CREATE TRIGGER IF NOT EXISTS no_answers BEFORE UPDATE OF outcome ON intents"
            " BEGIN SELECT RAISE(ABORT, 'no space'); END"
        )
