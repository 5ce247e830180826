"""The door when a plan is big: some machines of a zone in each request, and every guard for each of them."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from providers.errors import GoesAloneError, TerminationWithdrawnError
from providers.fake import FakeCloud, FakeMachine, Mutation, TerminateFault
from providers.model import InstanceRef, OwnedInstance, Scope
from reaperd.clock import ManualClock
from reaperd.core.model import (
    Approval,
    Brake,
    BreakerLimits,
    DeferReason,
    OutcomeKind,
    PassOutcome,
    PassReport,
    ReapPolicy,
    RefusalReason,
    SparedReason,
)
from reaperd.ledger.ledger import open_ledger
from reaperd.passes.aside import LAST_WORDS
from reaperd.passes.lanes import AT_ONCE, FEW
from reaperd.passes.pacer import Pacer
from reaperd.passes.parcels import ROUNDS
from registry.memory import MemoryRegistry
from registry.model import RegistryFault, RegistryRows, Worker
from tests.unit.passes.conftest import DEPLOYMENT, START, World, kinds

MANY = FEW + 5
REGIONS = tuple(f"fake-{number}" for number in range(1, 5))
WIDE = BreakerLimits(max_per_pass=10**6, max_per_hour=10**6, max_fraction=1.0)


class Registry(MemoryRegistry):
    """In memory, and safe for the several threads that ask for leave."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._one_at_a_time = threading.RLock()
        self.lookups = 0

    def lookup_many(self, machines, read=None) -> RegistryRows:
        with self._one_at_a_time:
            self.lookups += 1
            return super().lookup_many(machines, read)

    def add(self, worker: Worker) -> None:
        with self._one_at_a_time:
            super().add(worker)


class Watched:
    """The cloud's terminator, and what each request was for."""

    def __init__(self, cloud: FakeCloud) -> None:
        self._inner = cloud.terminator()
        self.name = cloud.name
        self.batches: list[list[str]] = []
        self.alone: list[str] = []

    def allowance(self, scope: Scope):
        return self._inner.allowance(scope)

    def terminate(self, ref, *, seen=None, permitted=None):
        self.alone.append(ref.instance_id)
        self._inner.terminate(ref, seen=seen, permitted=permitted)

    def terminate_many(self, seen: Sequence[OwnedInstance], *, permitted):
        self.batches.append([each.ref.instance_id for each in seen])
        return self._inner.terminate_many(seen, permitted=permitted)

    @property
    def sizes(self) -> list[int]:
        return [len(batch) for batch in self.batches]


@pytest.fixture
def wide(tmp_path: Path) -> Iterator[World]:
    clock = ManualClock(START)
    path = tmp_path / "ledger.db"
    with open_ledger(path, deployment=DEPLOYMENT, owner_tag="reaperd:owner", now=START) as ledger:
        cloud = FakeCloud("fake", REGIONS, clock=clock, owner=DEPLOYMENT)
        policy = ReapPolicy(
            deployment=DEPLOYMENT,
            scopes=frozenset(Scope("fake", region) for region in REGIONS),
            confirm_passes=1,
            breaker=WIDE,
        )
        registry = Registry(DEPLOYMENT, now=clock.now)
        made = World(path=path, ledger=ledger, clock=clock, cloud=cloud, registry=registry, policy=policy)
        made.terminator = Watched(cloud)
        yield made


def watched(world: World) -> Watched:
    assert isinstance(world.terminator, Watched)
    return world.terminator


def orphans(world: World, count: int, region: str = REGIONS[0], **facts: Any) -> list[InstanceRef]:
    """Add so many of one region, the first the oldest."""
    start = world.cloud._numbered
    return [
        world.cloud.add(
            FakeMachine(
                instance_id=f"i-{start + number:04}",
                worker_id=f"w-{start + number:04}",
                region=region,
                age=timedelta(hours=5000 - number),
                **facts,
            )
        )
        for number in range(count)
    ]


def counted(report: PassReport) -> Counter[OutcomeKind]:
    return Counter(outcome.kind for outcome in report.outcomes)


def reason_of(report: PassReport, ref: InstanceRef) -> str | None:
    return next(outcome.reason for outcome in report.outcomes if outcome.ref == ref)


def once(act: Callable[[], object]) -> Callable[[InstanceRef], None]:
    """Return a hook that acts the first time."""
    done: list[None] = []

    def hook(_: InstanceRef) -> None:
        if not done:
            done.append(None)
            act()

    return hook


def brake(world: World) -> None:
    with world.another() as ledger:
        ledger.hold(Brake(since=world.clock.now(), by="me", reason="stop"))


def open_in_ledger(world: World) -> set[InstanceRef]:
    """Return the machines with an open intent, as another process sees it."""
    with world.another() as ledger:
        return set(ledger.recall(world.clock.now()).intents)


# ---------------------------------------------------------------- what goes together


def test_a_small_plan_goes_one_by_one(wide: World):
    orphans(wide, FEW)
    orphans(wide, FEW, REGIONS[1])

    report = wide.reap()

    assert counted(report) == {OutcomeKind.REQUESTED: 2 * FEW}
    assert (watched(wide).batches, len(watched(wide).alone)) == ([], 2 * FEW)


def test_a_big_plan_goes_with_at_most_a_hundred_machines_a_request(wide: World):
    refs = orphans(wide, 250)

    report = wide.reap()

    assert report.outcome is PassOutcome.COMPLETE
    assert [outcome.ref for outcome in report.outcomes] == refs
    assert counted(report) == {OutcomeKind.REQUESTED: 250}
    assert watched(wide).sizes == [100, 100, 50]
    # Oldest first.
    assert [name for batch in watched(wide).batches for name in batch] == [ref.instance_id for ref in refs]
    assert wide.cloud.live == ()


def test_each_request_is_for_machines_of_one_zone(wide: World):
    for number in range(3):
        orphans(wide, 10, zone="ab"[number % 2])

    wide.reap()

    zones = {each.ref.instance_id: each.zone for each in wide.cloud.lister().list_owned()}
    assert [{zones[name] for name in batch} for batch in watched(wide).batches] == [{"a"}, {"b"}]


def test_a_scope_with_few_goes_one_by_one_beside_one_with_many(wide: World):
    orphans(wide, MANY)
    few = orphans(wide, FEW, REGIONS[1])

    report = wide.reap()

    assert counted(report) == {OutcomeKind.REQUESTED: MANY + FEW}
    assert watched(wide).sizes == [MANY]
    assert watched(wide).alone == [ref.instance_id for ref in few]


def test_the_last_one_that_is_left_over_goes_alone(wide: World):
    orphans(wide, 101)

    assert counted(wide.reap()) == {OutcomeKind.REQUESTED: 101}
    assert (watched(wide).sizes, watched(wide).alone) == ([100], ["i-0100"])


def test_a_cloud_that_ends_machines_alone_is_asked_for_each(wide: World):
    class Alone:
        name = "fake"

        def terminate(self, ref, *, seen=None, permitted=None):
            wide.cloud.terminator().terminate(ref, seen=seen, permitted=permitted)

    wide.terminator = Alone()
    orphans(wide, MANY)

    assert counted(wide.reap()) == {OutcomeKind.REQUESTED: MANY}


# ---------------------------------------------------------------- the guards


def test_all_intents_are_on_the_disk_before_the_request_that_names_them(wide: World):
    refs = orphans(wide, 150)
    known: list[set[InstanceRef]] = []
    wide.cloud.after_second_look = lambda _: known.append(open_in_ledger(wide))

    wide.reap()

    assert known[0] == set(refs[:100])
    assert known[-1] == set(refs)


def test_the_registry_is_read_once_for_each_request(wide: World):
    orphans(wide, 150)

    wide.reap()

    assert isinstance(wide.registry, Registry)
    assert wide.registry.lookups == 2


def test_rows_that_misspell_machines_and_come_during_the_second_look_spare_them_and_the_others_go(wide: World):
    refs = orphans(wide, 150)
    rows = [(f"x-{n}", refs[n].instance_id.upper()) for n in (7, 120)]
    again = [(replace(refs[0], instance_id=instance_id), worker_id) for worker_id, instance_id in rows]
    wide.cloud.after_second_look = once(lambda: [wide.track(*each) for each in again])

    report = wide.reap()

    assert counted(report) == {OutcomeKind.REQUESTED: 148, OutcomeKind.SPARED: 2}
    assert {reason_of(report, refs[n]) for n in (7, 120)} == {SparedReason.CHANGED}
    assert wide.cloud.live == (refs[7], refs[120])


def test_a_worker_that_registers_while_the_cloud_is_looked_at_again_is_spared_and_the_others_go(wide: World):
    refs = orphans(wide, 150)
    wide.cloud.after_second_look = once(lambda: [wide.track(refs[n], f"w-{n:04}") for n in (7, 99, 120)])

    report = wide.reap()

    assert counted(report) == {OutcomeKind.REQUESTED: 147, OutcomeKind.SPARED: 3}
    assert {reason_of(report, refs[n]) for n in (7, 99, 120)} == {SparedReason.TRACKED_NOW}
    assert wide.cloud.live == (refs[7], refs[99], refs[120])
    assert open_in_ledger(wide) == set(refs) - {refs[7], refs[99], refs[120]}
    assert report.outcome is PassOutcome.COMPLETE


def test_a_row_that_points_elsewhere_by_now_spares_its_machine(wide: World):
    refs = orphans(wide, MANY)
    elsewhere = InstanceRef("fake", REGIONS[0], "i-elsewhere")
    wide.cloud.after_second_look = once(lambda: wide.track(elsewhere, "w-0003"))

    report = wide.reap()

    assert reason_of(report, refs[3]) == SparedReason.CHANGED
    assert wide.cloud.live == (refs[3],)


def test_a_machine_that_changed_after_the_decision_is_spared_and_the_others_go(wide: World):
    refs = orphans(wide, MANY)
    wide.cloud.before_terminate = once(lambda: wide.cloud.change(refs[3], protect=True))

    report = wide.reap()

    assert counted(report) == {OutcomeKind.REQUESTED: MANY - 1, OutcomeKind.SPARED: 1}
    assert reason_of(report, refs[3]) == SparedReason.CHANGED
    assert wide.cloud.live == (refs[3],)


def _stopped(
    wide: World, report: PassReport, refs: Sequence[InstanceRef], reason: DeferReason, *, sent: int = 100
) -> None:
    """Check that so many went, and that the reason kept the others."""
    assert (report.outcome, report.reason) == (PassOutcome.DEFERRED if sent else PassOutcome.REFUSED, reason)
    assert [ref in wide.cloud.live for ref in refs] == [False] * sent + [True] * (len(refs) - sent)
    assert len(report.outcomes) == len(refs)
    assert {outcome.kind for outcome in report.outcomes[:sent]} <= {OutcomeKind.REQUESTED}
    assert {outcome.kind for outcome in report.outcomes[sent:]} <= {OutcomeKind.SPARED, OutcomeKind.DEFERRED}
    assert {outcome.reason for outcome in report.outcomes[sent:]} == {reason}
    assert open_in_ledger(wide) == set(refs[:sent])


TROUBLES: dict[DeferReason, Callable[[World], object]] = {
    DeferReason.REAP_HOLD: brake,
    DeferReason.NOT_LEADER: lambda world: world.clock.step_wall(timedelta(hours=10)),
    DeferReason.REGISTRY_IDENTITY: lambda world: setattr(world.registry.contents, "registry_id", "another"),
    DeferReason.REGISTRY_UNUSABLE: lambda world: setattr(world.registry, "fault", RegistryFault.LOCKED),
    DeferReason.DEADLINE: lambda world: world.clock.advance(world.deadline),
}


@pytest.mark.parametrize("reason", TROUBLES)
def test_what_comes_up_while_the_cloud_is_looked_at_again_keeps_the_whole_request_back(
    wide: World, reason: DeferReason
):
    refs = orphans(wide, 250)
    wide.cloud.after_second_look = once(lambda: TROUBLES[reason](wide))

    _stopped(wide, wide.reap(), refs, reason, sent=0)
    assert wide.cloud.mutations == ()


@pytest.mark.parametrize("reason", TROUBLES)
def test_what_comes_up_between_two_requests_keeps_the_rest_back(wide: World, reason: DeferReason):
    refs = orphans(wide, 250)
    wide.cloud.on_terminate = once(lambda: TROUBLES[reason](wide))

    _stopped(wide, wide.reap(), refs, reason)


def test_the_brake_under_which_some_are_tracked_by_now_tells_both(wide: World):
    refs = orphans(wide, MANY)
    wide.cloud.after_second_look = once(lambda: (wide.track(refs[0], "w-0000"), brake(wide)))

    report = wide.reap()

    assert [reason_of(report, ref) for ref in refs[:2]] == [SparedReason.TRACKED_NOW, SparedReason.REAP_HOLD]
    assert report.reason == RefusalReason.REAP_HOLD


def test_after_a_brake_in_one_region_nothing_is_sent_in_another(wide: World):
    first, second = orphans(wide, MANY), orphans(wide, MANY, REGIONS[1])
    meeting = threading.Barrier(2, timeout=30)
    ended = threading.Event()

    def look(ref: InstanceRef) -> None:
        if ref == first[0]:
            meeting.wait()
            brake(wide)
            ended.set()
        if ref == second[0]:
            meeting.wait()
            ended.wait(30)

    wide.cloud.after_second_look = look
    report = wide.reap()

    assert set(wide.cloud.live) == {*first, *second}
    assert {outcome.reason for outcome in report.outcomes} == {SparedReason.REAP_HOLD}


class Heard(ManualClock):
    """Lets others wait until the pass's own thread looks at the time once more."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._looked = threading.Condition()
        self._looks = 0

    def monotonic(self) -> float:
        if threading.current_thread() is threading.main_thread():
            with self._looked:
                self._looks += 1
                self._looked.notify_all()
        return super().monotonic()

    def wait_for_the_next_look(self) -> None:
        with self._looked:
            before = self._looks
            assert self._looked.wait_for(lambda: self._looks > before, timeout=30)


def test_after_a_throttle_in_one_region_nothing_is_sent_in_another(wide: World):
    clock = Heard(wide.clock.now())
    wide.clock = clock
    first, second = orphans(wide, MANY), orphans(wide, MANY, REGIONS[1])
    wide.cloud.fail_terminate(first[0].instance_id, TerminateFault.THROTTLED)
    sent = threading.Event()

    def look(ref: InstanceRef) -> None:
        if ref == second[0]:
            assert sent.wait(30)
            # Until the other answer has been taken down.
            while set(first) & open_in_ledger(wide):
                clock.wait_for_the_next_look()
            clock.wait_for_the_next_look()

    def asked(ref: InstanceRef) -> None:
        if ref == first[-1]:
            sent.set()

    wide.cloud.before_terminate, wide.cloud.after_second_look = asked, look
    report = wide.reap()

    assert set(wide.cloud.live) == {*first, *second}
    assert {outcome.reason for outcome in report.outcomes} == {DeferReason.THROTTLED}
    assert {wide.cloud.terminate_requests(ref.instance_id) for ref in second} == {0}


def test_no_request_is_sent_whose_intents_could_not_be_written(wide: World):
    refs = orphans(wide, MANY)
    wide.ledger._connection.execute(
        "CREATE TRIGGER few BEFORE INSERT ON intents WHEN (SELECT count(*) FROM intents) > 3"
        " BEGIN SELECT RAISE(ABORT, 'no space'); END"
    )

    report = wide.reap()

    assert (report.outcome, report.reason) == (PassOutcome.REFUSED, RefusalReason.LEDGER_UNUSABLE)
    assert wide.cloud.live == tuple(refs)
    assert wide.cloud.mutations == ()


def test_answers_that_could_not_be_written_stop_the_pass_and_nothing_is_sent_again(wide: World):
    refs = orphans(wide, 150)

    def no_answers() -> None:
        with wide.another() as ledger:
            ledger._connection.execute(
                "CREATE TRIGGER no_answers BEFORE UPDATE OF outcome ON intents BEGIN SELECT RAISE(ABORT, 'full'); END"
            )

    wide.cloud.on_terminate = once(no_answers)
    first = wide.reap()
    wide.ledger._connection.execute("DROP TRIGGER no_answers")
    second = wide.reap()

    assert (first.outcome, first.reason) == (PassOutcome.DEFERRED, DeferReason.LEDGER_UNUSABLE)
    assert counted(first) == {OutcomeKind.REQUESTED: 100, OutcomeKind.DEFERRED: 50}
    assert counted(second) == {OutcomeKind.REQUESTED: 50}
    assert {wide.cloud.terminate_requests(ref.instance_id) for ref in refs} == {1}


def test_what_was_approved_is_recorded_as_such_and_counts_for_no_hour(wide: World):
    refs = orphans(wide, MANY)
    digest = wide.reap(rehearse=True).digest
    assert digest is not None
    wide.allow(max_per_pass=5, max_per_hour=10)
    approval = wide.ledger.approve(digest, tuple(refs), "me", "yes", wide.clock.now())

    report = wide.reap()

    assert isinstance(approval, Approval)
    assert counted(report) == {OutcomeKind.REQUESTED: MANY}
    assert wide.ledger.recall(wide.clock.now()).requests == ()


# ---------------------------------------------------------------- the end of the process, and of the time


def test_asked_to_stop_it_begins_no_new_request_and_records_the_one_that_it_sent(wide: World):
    refs = orphans(wide, 250)
    wide.cloud.on_terminate = once(lambda: setattr(wide, "stop", True))

    report = wide.reap()

    assert (report.outcome, report.reason) == (PassOutcome.DEFERRED, DeferReason.STOPPING)
    assert counted(report) == {OutcomeKind.REQUESTED: 100, OutcomeKind.SPARED: 150}
    assert {reason_of(report, ref) for ref in refs[100:]} == {SparedReason.STOPPING}
    assert open_in_ledger(wide) == set(refs[:100])


def test_asked_to_stop_while_the_cloud_is_looked_at_again_it_sends_nothing(wide: World):
    refs = orphans(wide, MANY)
    wide.cloud.after_second_look = once(lambda: setattr(wide, "stop", True))

    report = wide.reap()

    assert (report.outcome, report.reason) == (PassOutcome.DEFERRED, DeferReason.STOPPING)
    assert wide.cloud.live == tuple(refs)
    assert open_in_ledger(wide) == set()


class Restless(ManualClock):
    """A second passes whenever somebody asks for the time."""

    def monotonic(self) -> float:
        self.advance(timedelta(seconds=1))
        return super().monotonic()


def over() -> None:
    """Wait for calls that nobody waits for any more."""
    for thread in threading.enumerate():
        if thread.name == "terminate":
            thread.join(20)


@pytest.mark.parametrize("what", ["stop", "deadline"])
def test_a_request_whose_answer_does_not_come_is_unknown_for_all_that_it_named(wide: World, what: str):
    orphans(wide, 150)
    wide.clock = Restless(wide.clock.now())
    wide.deadline = timedelta(seconds=40)
    ended = threading.Event()

    def hang(_: InstanceRef) -> None:
        wide.stop = what == "stop"
        ended.wait(30)

    wide.cloud.on_terminate = hang
    report = wide.reap()
    ended.set()
    over()

    reason = DeferReason.STOPPING if what == "stop" else DeferReason.DEADLINE
    assert (report.outcome, report.reason) == (PassOutcome.DEFERRED, reason)
    assert counted(report)[OutcomeKind.UNKNOWN] == 100
    assert len(open_in_ledger(wide)) == 100
    assert {intent.outcome for intent in wide.ledger.recall(wide.clock.now()).intents.values()} == {OutcomeKind.UNKNOWN}


def test_an_answer_that_comes_while_the_time_is_looked_up_is_taken(wide: World):
    orphans(wide, MANY)
    ended = threading.Event()

    class JustInTime(ManualClock):
        """Lets the call end at the very moment at which it would be given up."""

        def monotonic(self) -> float:
            if self._elapsed >= (wide.deadline + LAST_WORDS).total_seconds():
                ended.set()
                over()
            return super().monotonic()

    def hang(_: InstanceRef) -> None:
        wide.clock.advance(wide.deadline + LAST_WORDS)
        ended.wait(30)

    wide.clock = JustInTime(wide.clock.now())
    wide.cloud.on_terminate = once(lambda: hang(wide.cloud.mutations[0].ref))
    report = wide.reap()

    assert counted(report) == {OutcomeKind.REQUESTED: MANY}


@pytest.mark.parametrize("what", ["stop", "deadline"])
def test_a_call_that_was_given_up_before_it_got_leave_sends_nothing_when_it_wakes(wide: World, what: str):
    refs = orphans(wide, MANY)
    wide.clock = Restless(wide.clock.now())
    wide.deadline = timedelta(seconds=40)
    ended = threading.Event()

    def hang(_: InstanceRef) -> None:
        wide.stop = what == "stop"
        ended.wait(30)

    wide.cloud.before_terminate = hang
    report = wide.reap()
    # Not even if there were time again.
    wide.clock._elapsed, wide.stop = 0.0, False
    ended.set()
    over()

    expected = {"stop": SparedReason.STOPPING, "deadline": DeferReason.DEADLINE}[what]
    assert {outcome.reason for outcome in report.outcomes} == {expected}
    assert wide.cloud.live == tuple(refs)
    assert wide.cloud.mutations == ()
    assert open_in_ledger(wide) == set()


def test_a_registry_that_hangs_ends_the_pass_at_the_deadline_and_nothing_is_sent(wide: World):
    refs = orphans(wide, MANY)
    wide.clock = Restless(wide.clock.now())
    wide.deadline = timedelta(seconds=40)
    ended = threading.Event()
    readings: list[None] = []

    def hang() -> None:
        readings.append(None)
        if len(readings) > 1:
            ended.wait(30)

    wide.registry.before_reading = hang
    report = wide.reap()
    ended.set()
    over()

    assert (report.outcome, report.reason) == (PassOutcome.REFUSED, RefusalReason.DEADLINE)
    assert wide.cloud.live == tuple(refs)
    assert wide.cloud.mutations == ()


def test_an_answer_a_little_after_the_deadline_is_still_taken(wide: World):
    orphans(wide, MANY)
    late = wide.deadline + LAST_WORDS - timedelta(seconds=1)
    wide.cloud.on_terminate = once(lambda: wide.clock.advance(late))

    report = wide.reap()

    assert counted(report) == {OutcomeKind.REQUESTED: MANY}
    assert report.outcome is PassOutcome.COMPLETE


# ---------------------------------------------------------------- answers


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (TerminateFault.NOT_FOUND, OutcomeKind.ALREADY_GONE),
        (TerminateFault.MALFORMED, OutcomeKind.INVALID_ID),
        (TerminateFault.PROTECTED, OutcomeKind.PROTECTED),
        (TerminateFault.DENIED, OutcomeKind.DENIED),
        (TerminateFault.REJECTED, OutcomeKind.FAILED),
        (TerminateFault.IGNORED, OutcomeKind.REQUESTED),
    ],
)
def test_a_bad_one_is_told_and_the_others_go(wide: World, fault: TerminateFault, kind: OutcomeKind):
    refs = orphans(wide, MANY)
    wide.cloud.fail_terminate(refs[3].instance_id, fault)

    report = wide.reap()

    assert kinds(report)[refs[3].instance_id] is kind
    assert sum(outcome.kind is OutcomeKind.REQUESTED for outcome in report.outcomes if outcome.ref != refs[3]) == (
        MANY - 1
    )
    assert wide.cloud.live == (refs[3],)
    assert report.outcome is PassOutcome.COMPLETE
    assert open_in_ledger(wide) == set(refs)


def test_what_others_spoiled_goes_again_without_them_under_an_intent_of_its_own(wide: World):
    refs = orphans(wide, MANY)
    for number in (3, 5):
        wide.cloud.fail_terminate(refs[number].instance_id, TerminateFault.PROTECTED)

    report = wide.reap()

    assert counted(report) == {OutcomeKind.REQUESTED: MANY - 2, OutcomeKind.PROTECTED: 2}
    assert watched(wide).sizes == [MANY, MANY - 2]
    rows = wide.ledger._connection.execute("SELECT instance_id, closed_as FROM intents ORDER BY intent_id").fetchall()
    assert rows[:MANY] == [(r.instance_id, None if r in (refs[3], refs[5]) else "deferred") for r in refs]
    assert rows[MANY:] == [(r.instance_id, None) for r in refs if r not in (refs[3], refs[5])]


def test_where_some_are_refused_fewer_go_together(wide: World):
    refs = orphans(wide, 200)
    for number in (3, 30, 60, 100):
        wide.cloud.fail_terminate(refs[number].instance_id, TerminateFault.PROTECTED)

    report = wide.reap()

    assert counted(report) == {OutcomeKind.REQUESTED: 196, OutcomeKind.PROTECTED: 4}
    first, second, *others = watched(wide).sizes
    assert (first, second, max(others)) == (100, 50, 50)
    # Oldest first, as before.
    assert [watched(wide).batches[n][0] for n in (0, 1)] == ["i-0000", "i-0000"]


class Spoiling(Watched):
    """Names one machine that it refuses in each answer, the first of those that it was asked for."""

    def __init__(self, cloud: FakeCloud, refused: set[str]) -> None:
        super().__init__(cloud)
        self._cloud = cloud
        self._refused = refused

    def terminate_many(self, seen, *, permitted):
        self._cloud.mend()
        bad = next((each.ref.instance_id for each in seen if each.ref.instance_id in self._refused), None)
        if bad is not None:
            self._cloud.fail_terminate(bad, TerminateFault.PROTECTED)
        return super().terminate_many(seen, permitted=permitted)


def test_after_some_rounds_what_is_spoiled_again_and_again_goes_alone(wide: World):
    refs = orphans(wide, 2 * ROUNDS + 1)
    refused = {ref.instance_id for ref in refs[: ROUNDS + 3]}
    wide.terminator = Spoiling(wide.cloud, refused)

    report = wide.reap()

    assert len(watched(wide).batches) == ROUNDS + 1
    assert len(watched(wide).alone) == ROUNDS
    # The first round of each names one; what is left goes alone, where the fault of the last round still stands.
    assert counted(report)[OutcomeKind.PROTECTED] == ROUNDS + 1
    assert counted(report)[OutcomeKind.REQUESTED] == ROUNDS


def test_one_whose_spot_request_may_launch_it_again_goes_alone(wide: World):
    orphans(wide, MANY)
    spot = orphans(wide, 1, persistent_spot=True)[0]

    report = wide.reap()

    assert counted(report) == {OutcomeKind.REQUESTED: MANY + 1}
    assert watched(wide).alone == [spot.instance_id]
    assert Mutation("cancel_spot_request", spot) in wide.cloud.mutations


def test_an_answer_that_was_lost_is_unknown_for_all_and_holds_them(wide: World):
    refs = orphans(wide, MANY)
    wide.cloud.fail_terminate(refs[3].instance_id, TerminateFault.UNKNOWN_LOST, calls=1)

    first = wide.reap()
    second = wide.reap()

    assert counted(first) == {OutcomeKind.UNKNOWN: MANY}
    assert second.outcomes == ()
    assert {wide.cloud.terminate_requests(ref.instance_id) for ref in refs} == {1}


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (TerminateFault.THROTTLED, DeferReason.THROTTLED),
        (TerminateFault.EXPIRED, DeferReason.CREDENTIALS_EXPIRED),
    ],
)
def test_an_answer_to_everybody_stops_the_requests_and_the_next_pass_goes_on(
    wide: World, fault: TerminateFault, reason: DeferReason
):
    refs = orphans(wide, 250)
    wide.cloud.fail_terminate(refs[130].instance_id, fault, calls=1)

    first = wide.reap()
    second = wide.reap()

    assert (first.outcome, first.reason) == (PassOutcome.DEFERRED, reason)
    assert counted(first) == {OutcomeKind.REQUESTED: 100, OutcomeKind.DEFERRED: 150}
    assert counted(second) == {OutcomeKind.REQUESTED: 150}


def test_a_provider_that_says_nothing_of_a_machine_leaves_it_unknown(wide: World):
    class Forgets(Watched):
        def terminate_many(self, seen, *, permitted):
            answers = dict(super().terminate_many(seen, permitted=permitted))
            del answers[seen[3].ref]
            return answers

    refs = orphans(wide, MANY)
    wide.terminator = Forgets(wide.cloud)

    report = wide.reap()

    assert kinds(report)[refs[3].instance_id] is OutcomeKind.UNKNOWN
    assert counted(report)[OutcomeKind.REQUESTED] == MANY - 1


def test_a_provider_that_asks_for_others_than_it_was_given_gets_no_leave_for_them(wide: World):
    class Greedy(Watched):
        def terminate_many(self, seen, *, permitted):
            asked.append(set(permitted([*(each.ref for each in seen), other])))
            return super().terminate_many(seen, permitted=permitted)

    asked: list[set[InstanceRef]] = []
    refs, other = orphans(wide, MANY), orphans(wide, 1, REGIONS[1])[0]
    wide.track(other, "w-other")
    wide.terminator = Greedy(wide.cloud)

    wide.reap()

    assert asked == [set(refs)]
    assert wide.cloud.live == (other,)


def test_after_a_no_there_is_no_yes(wide: World):
    class Insists(Watched):
        def terminate_many(self, seen, *, permitted):
            asked.append(len(permitted([each.ref for each in seen])))
            wide.registry.remove("w-new")
            return super().terminate_many(seen, permitted=permitted)

    asked: list[int] = []
    refs = orphans(wide, MANY)
    wide.terminator = Insists(wide.cloud)
    readings: list[None] = []

    def register() -> None:
        readings.append(None)
        if len(readings) == 2:
            wide.track(refs[3], "w-new")

    wide.registry.before_reading = register
    report = wide.reap()

    assert asked == [MANY - 1]
    assert wide.cloud.live == (refs[3],)
    assert reason_of(report, refs[3]) == SparedReason.TRACKED_NOW


def test_a_provider_that_withdraws_for_reasons_of_its_own_spares_the_machine(wide: World):
    class Withdraws(Watched):
        def terminate_many(self, seen, *, permitted):
            return {each.ref: TerminationWithdrawnError(each.ref, "its own reason") for each in seen}

    orphans(wide, MANY)
    wide.terminator = Withdraws(wide.cloud)

    report = wide.reap()

    assert {(outcome.reason, outcome.detail) for outcome in report.outcomes} == {
        (SparedReason.CHANGED, "its own reason")
    }


def test_one_that_goes_alone_and_is_told_to_go_alone_has_failed(wide: World):
    class Refuses(Watched):
        def terminate_many(self, seen, *, permitted):
            return {each.ref: GoesAloneError(each.ref) for each in seen}

        def terminate(self, ref, *, seen=None, permitted=None):
            raise GoesAloneError(ref)

    orphans(wide, MANY)
    wide.terminator = Refuses(wide.cloud)

    report = wide.reap()

    assert {(outcome.kind, outcome.reason) for outcome in report.outcomes} == {(OutcomeKind.FAILED, "rejected")}


def test_a_provider_that_dies_ends_the_pass_and_takes_leave_from_the_others(wide: World):
    class DiesError(Exception):
        pass

    class Dies(Watched):
        def terminate_many(self, seen, *, permitted):
            if seen[0].ref.region == REGIONS[0]:
                meeting.wait()
                raise DiesError
            meeting.wait()
            ended.wait(30)
            return super().terminate_many(seen, permitted=permitted)

    meeting, ended = threading.Barrier(2, timeout=30), threading.Event()
    first, second = orphans(wide, MANY), orphans(wide, MANY, REGIONS[1])
    wide.terminator = Dies(wide.cloud)

    with pytest.raises(DiesError):
        wide.reap()
    ended.set()
    over()

    assert set(wide.cloud.live) == {*first, *second}
    # Nobody knows what became of them.
    assert open_in_ledger(wide) == {*first, *second}


# ---------------------------------------------------------------- side by side, and how fast


def test_the_regions_are_asked_side_by_side(wide: World):
    meeting = threading.Barrier(len(REGIONS), timeout=30)
    firsts = {orphans(wide, MANY, region)[0] for region in REGIONS}

    def meet(ref: InstanceRef) -> None:
        if ref in firsts:
            meeting.wait()

    wide.cloud.before_terminate = meet
    report = wide.reap()

    assert counted(report) == {OutcomeKind.REQUESTED: len(REGIONS) * MANY}


def test_one_region_that_hangs_keeps_no_other(wide: World):
    hanging, *_ = orphans(wide, 150)
    others = orphans(wide, 250, REGIONS[1])
    ended = threading.Event()

    def hang(ref: InstanceRef) -> None:
        if ref == hanging:
            ended.wait(30)

    def over_at_last(_: InstanceRef) -> None:
        if not set(others) & set(wide.cloud.live):
            ended.set()

    wide.cloud.before_terminate, wide.cloud.on_terminate = hang, over_at_last
    wide.clock = Restless(wide.clock.now())
    wide.deadline = timedelta(hours=1)

    assert counted(wide.reap()) == {OutcomeKind.REQUESTED: 400}


def test_no_more_than_so_many_regions_are_asked_at_once(wide: World, tmp_path: Path):
    regions = tuple(f"r-{number:02}" for number in range(AT_ONCE + 4))
    wide.cloud = FakeCloud("fake", regions, clock=wide.clock, owner=DEPLOYMENT)
    wide.policy = replace(wide.policy, scopes=frozenset(Scope("fake", region) for region in regions))
    wide.terminator = Watched(wide.cloud)
    for region in regions:
        orphans(wide, FEW + 1, region)
    lock, inside, most = threading.Lock(), [0], [0]
    firsts = {next(ref for ref in wide.cloud.live if ref.region == region) for region in regions}
    full = threading.Event()

    def enter(ref: InstanceRef) -> None:
        if ref not in firsts:
            return
        with lock:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            if inside[0] == AT_ONCE:
                full.set()
        full.wait(30)

    def leave(ref: InstanceRef) -> None:
        if ref in firsts:
            with lock:
                inside[0] -= 1

    wide.cloud.before_terminate, wide.cloud.after_second_look = enter, leave
    report = wide.reap()

    assert counted(report) == {OutcomeKind.REQUESTED: len(regions) * (FEW + 1)}
    assert most == [AT_ONCE]


@pytest.mark.parametrize(("share", "seconds"), [(1.0, 0.0), (0.5, 11.0), (0.1, 251.0)])
def test_requests_keep_within_our_share_of_what_the_cloud_allows(wide: World, share: float, seconds: float):
    wide.pacer = Pacer(share=share)
    wide.deadline = timedelta(hours=1)
    orphans(wide, 600)

    report = wide.reap()

    assert counted(report) == {OutcomeKind.REQUESTED: 600}
    took = wide.clock.monotonic()
    assert took >= seconds
    assert took <= seconds + 6


def test_what_an_earlier_pass_sent_is_remembered(wide: World):
    orphans(wide, 400)
    wide.reap()
    before = wide.clock.monotonic()
    orphans(wide, 400)

    wide.reap()

    # 490 at once, and 10 more a second.
    assert wide.clock.monotonic() - before >= 30


def test_what_does_not_fit_into_the_time_is_left_to_the_next_pass(wide: World):
    wide.deadline = timedelta(seconds=20)
    orphans(wide, 1000)

    first, second = wide.reap(), wide.reap()

    assert (first.outcome, first.reason) == (PassOutcome.DEFERRED, DeferReason.DEADLINE)
    assert counted(first)[OutcomeKind.REQUESTED] >= 600
    assert counted(first)[OutcomeKind.DEFERRED] == 1000 - counted(first)[OutcomeKind.REQUESTED]
    assert counted(second)[OutcomeKind.REQUESTED] >= 100


def test_what_goes_alone_counts_too(wide: World):
    orphans(wide, MANY, persistent_spot=True)

    report = wide.reap()

    assert counted(report) == {OutcomeKind.REQUESTED: MANY}
    # A request apart each, besides the one that found out.
    assert wide.clock.monotonic() >= 0.25 * MANY
