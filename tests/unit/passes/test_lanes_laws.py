"""The laws of the door when a plan is big, tried with whatever may come up in the middle of it."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from providers.fake import FakeCloud, FakeMachine, TerminateFault
from providers.model import Coverage, InstanceRef, OwnedInstance, Scope
from reaperd.clock import ManualClock
from reaperd.core.model import BreakerLimits, Observation, Outcome, OutcomeKind, Plan, ReapPolicy, Verdict
from reaperd.core.reap import decide
from reaperd.errors import LedgerUnusableError
from reaperd.ledger.ledger import BrakeIsOnError, LeaseLostError
from reaperd.passes.act import Enforcer
from reaperd.passes.lanes import FEW
from reaperd.passes.pacer import Pacer
from reaperd.passes.ports import Errand
from registry.memory import MemoryRegistry
from registry.model import RegistryFault, RegistryRows, Worker, WorkerState
from tests.unit.passes.conftest import DEPLOYMENT, START

REGIONS = ("north", "south")
SETTLED = {OutcomeKind.REQUESTED, OutcomeKind.UNKNOWN}
DEADLINE = 240.0
FULL = LedgerUnusableError("ledger.db", "it is full")


class Book:
    """A ledger in memory: what may be sent, and under which intents."""

    def __init__(self) -> None:
        self.trouble: Exception | None = None
        self.deaf = False
        """Whether answers cannot be written."""
        self.open: dict[int, InstanceRef] = {}
        self.answered: dict[int, Outcome] = {}
        self.lock = threading.Lock()
        self.here = threading.local()

    def open_intent(self, verdict: Verdict, *, pass_id: str, approved: bool, now: datetime) -> int:
        return self.open_intents([(verdict, approved)], pass_id=pass_id, now=now)[0]

    def open_intents(self, planned: Sequence[tuple[Verdict, bool]], *, pass_id: str, now: datetime) -> tuple[int, ...]:
        self.check_leave(now)
        with self.lock:
            numbers = tuple(range(len(self.open), len(self.open) + len(planned)))
            self.open |= {number: verdict.ref for number, (verdict, _) in zip(numbers, planned, strict=True)}
            return numbers

    def check_leave(self, now: datetime) -> None:
        if self.trouble is not None:
            raise self.trouble
        self.here.gave_leave = True

    def answer_intent(self, intent_id: int, outcome: Outcome, now: datetime) -> None:
        self.answer_intents([(intent_id, outcome)], now)

    def answer_intents(self, answered: Iterable[tuple[int, Outcome]], now: datetime) -> None:
        if self.deaf:
            raise FULL
        self.answered |= dict(answered)

    def standing(self, ref: InstanceRef) -> bool:
        """Say whether an intent for this machine is open and has no answer."""
        with self.lock:
            return any(each == ref and number not in self.answered for number, each in self.open.items())


class Registry(MemoryRegistry):
    """In memory, for several threads; knows what was found whenever it was read."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.lock = threading.RLock()
        self.begun = 0
        self.found: list[tuple[int, str, tuple[Worker, ...]]] = []
        """Of each reading: its number, of which registry it was, and all rows."""

    def lookup_many(self, machines: Iterable[tuple[str, str | None]], read: Any = None) -> RegistryRows:
        with self.lock:
            number, self.begun = self.begun, self.begun + 1
            found = super().lookup_many(machines, read)
            self.found.append((number, self.contents.registry_id, tuple(self.contents.workers.values())))
            return found

    def add(self, worker: Worker) -> None:
        with self.lock:
            if worker.worker_id not in self.contents.workers:
                super().add(worker)


@dataclass
class World:
    """One big plan, and what is broken of the laws."""

    sizes: tuple[int, int]
    events: Mapping[tuple[str, int], Callable[[World], object]]
    """By the kind of moment and its number."""
    faults: Mapping[int, TerminateFault]
    clock: ManualClock = field(default_factory=lambda: ManualClock(START))
    book: Book = field(default_factory=Book)
    stop: bool = False
    broken: list[str] = field(default_factory=list)
    named: Counter[InstanceRef] = field(default_factory=Counter)
    seen: Observation = field(init=False)
    planned: dict[InstanceRef, OwnedInstance] = field(init=False)

    def __post_init__(self) -> None:
        self.cloud = FakeCloud("fake", REGIONS, clock=self.clock, owner=DEPLOYMENT)
        self.registry = Registry(DEPLOYMENT, now=self.clock.now)
        self.refs = [
            self.cloud.add(
                FakeMachine(
                    instance_id=f"{region}-{number}",
                    region=region,
                    worker_id=None if number % 7 == 6 else f"w-{region}-{number}",
                    zone="ab"[number % 2],
                    persistent_spot=number % 11 == 10,
                    age=timedelta(hours=1000 - number),
                )
            )
            for region, size in zip(REGIONS, self.sizes, strict=True)
            for number in range(size)
        ]
        self.policy = ReapPolicy(
            deployment=DEPLOYMENT,
            scopes=frozenset(Scope("fake", region) for region in REGIONS),
            confirm_passes=1,
            breaker=BreakerLimits(max_per_pass=10**6, max_per_hour=10**6, max_fraction=1.0),
        )
        for number, fault in self.faults.items():
            self.cloud.fail_terminate(self.refs[number % len(self.refs)].instance_id, fault)
        self.here = threading.local()
        self._counts: Counter[str] = Counter()
        self._counting = threading.Lock()

    def at(self, moment: str) -> None:
        """Let happen what is to happen at this moment."""
        with self._counting:
            number = self._counts[moment]
            self._counts[moment] += 1
        self.events.get((moment, number), _nothing)(self)

    def plan(self) -> Plan:
        inventory = self.cloud.lister().list_owned()
        self.seen = Observation(
            now=self.clock.now(),
            instances=tuple(inventory),
            coverage=tuple(Coverage(scope=scope) for scope in self.policy.scopes),
            registry=self.registry.snapshot(),
        )
        plan = decide(self.seen, self.policy)
        assert isinstance(plan, Plan)
        self.planned = {verdict.ref: verdict.instance for verdict in plan.terminations}
        return plan

    def run(self) -> tuple[Outcome, ...]:
        plan = self.plan()
        self.cloud.before_terminate = lambda _: self.at("look")
        self.cloud.after_second_look = self.looked
        self.cloud.on_terminate = lambda _: self.at("ended")
        self.registry.before_reading = lambda: self.at("reading")
        door = Enforcer(
            terminator=Watch(self),
            registry=self.registry,
            intents=self.book,
            clock=self.clock,
            stopping=lambda: self.stop,
            pacer=Pacer(share=1.0),
        )
        return door.carry_out(plan, self.seen, self.policy, Errand("p", self.clock.monotonic() + DEADLINE)).outcomes

    def looked(self, _: InstanceRef) -> None:
        self.at("leave")
        self.here.asked = self.registry.begun
        self.here.over = self.stop or self.clock.monotonic() >= DEADLINE
        self.book.here.gave_leave = False

    def judge(self, granted: Iterable[InstanceRef]) -> None:
        """Hold what is about to be named to the law, by what the registry said after this thread looked at it."""
        for ref in granted:
            self.named[ref] += 1
            readings = [found for found in self.registry.found if found[0] >= self.here.asked]
            if self.here.over or not self.book.here.gave_leave:
                self.broken.append(f"{ref} got leave when there was none")
            if ref not in self.planned:
                self.broken.append(f"{ref} was never planned")
            elif not self.book.standing(ref):
                self.broken.append(f"{ref} has no open intent")
            elif not any(name == "memory" and not self.is_needed(ref, rows) for _, name, rows in readings):
                self.broken.append(f"{ref} had a live row, or nobody looked")

    def is_needed(self, ref: InstanceRef, rows: Iterable[Worker]) -> bool:
        worker = self.planned[ref].worker_id
        return any(
            row.state.is_live and (row.instance_id == ref.instance_id or row.worker_id == worker) for row in rows
        )


class Watch:
    """The cloud's terminator, with a judge between the leave and the request."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._inner = world.cloud.terminator()
        self.name = world.cloud.name

    def allowance(self, scope: Scope):
        return self._inner.allowance(scope)

    def terminate(self, ref, *, seen=None, permitted=None):
        def asked() -> bool:
            granted = permitted()
            self._world.judge([ref] if granted else [])
            return granted

        self._inner.terminate(ref, seen=seen, permitted=asked)

    def terminate_many(self, seen, *, permitted):
        def asked(refs):
            granted = permitted(refs)
            self._world.judge(granted)
            return granted

        return self._inner.terminate_many(seen, permitted=asked)


def _nothing(_: World) -> None:
    """Nothing happens."""


def _tracked(number: int, *, by_tag: bool) -> Callable[[World], object]:
    def happen(world: World) -> None:
        ref = world.refs[number % len(world.refs)]
        worker = f"w-{ref.instance_id}" if by_tag else f"new-{number}"
        world.registry.add(
            Worker(
                worker_id=worker,
                provider=ref.provider,
                region=ref.region,
                instance_id=None if by_tag else ref.instance_id,
                state=WorkerState.LAUNCHING if by_tag else WorkerState.RUNNING,
                created_at=world.clock.now(),
            )
        )

    return happen


def _changed(number: int, **facts: Any) -> Callable[[World], object]:
    return lambda world: world.cloud.change(world.refs[number % len(world.refs)], **facts)


NUMBERS = st.integers(0, 99)
STOPS = st.sampled_from(
    [
        lambda world: setattr(world.book, "trouble", BrakeIsOnError()),
        lambda world: setattr(world.book, "trouble", LeaseLostError()),
        lambda world: setattr(world.book, "trouble", FULL),
        lambda world: setattr(world.book, "deaf", True),
        lambda world: setattr(world.registry, "fault", RegistryFault.LOCKED),
        lambda world: setattr(world.registry.contents, "registry_id", "another"),
        lambda world: setattr(world.registry.contents, "epoch", -1),
        lambda world: setattr(world, "stop", True),
        lambda world: world.clock.advance(timedelta(seconds=DEADLINE)),
    ]
)
ACTIONS = st.one_of(
    st.builds(_tracked, NUMBERS, by_tag=st.booleans()),
    st.builds(_tracked, NUMBERS, by_tag=st.booleans()),
    st.builds(_changed, NUMBERS, protect=st.just(True)),
    st.builds(_changed, NUMBERS, worker_id=st.just("w-other")),
    st.builds(_changed, NUMBERS, owner=st.just("somebody")),
    STOPS,
    STOPS,
    STOPS,
)
MOMENTS = st.tuples(st.sampled_from(("look", "leave", "ended", "reading")), st.integers(0, 60))
FAULTS = st.dictionaries(NUMBERS, st.sampled_from(list(TerminateFault)), max_size=4)
WORLDS = st.builds(
    World,
    sizes=st.tuples(st.integers(FEW + 1, 45), st.integers(0, 40)),
    events=st.dictionaries(MOMENTS, ACTIONS, max_size=6),
    faults=FAULTS,
)
TRIED = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@given(WORLDS)
@TRIED
def test_nothing_is_named_that_is_needed_or_was_never_planned(world: World):
    world.run()

    event(f"named: {bool(world.named)}")
    assert world.broken == []


@given(WORLDS)
@TRIED
def test_what_is_told_is_what_was_done(world: World):
    outcomes = world.run()

    told = {outcome.ref: outcome.kind for outcome in outcomes}
    assert [outcome.ref for outcome in outcomes] == [v.ref for v in decide(world.seen, world.policy).terminations]  # type: ignore[union-attr]
    live = set(world.cloud.live)
    ignored = {
        world.refs[number % len(world.refs)]
        for number, fault in world.faults.items()
        if fault is TerminateFault.IGNORED
    }
    for ref in world.planned:
        if ref not in live:
            assert told[ref] in SETTLED, f"{ref} has ended, and was told to be {told[ref]}"
        if told[ref] is OutcomeKind.REQUESTED:
            assert ref not in live or ref in ignored
        if told[ref] in SETTLED:
            assert world.named[ref] > 0


@given(WORLDS)
@TRIED
def test_every_intent_is_answered_as_it_was_told_and_none_is_sent_under_an_answered_one(world: World):
    outcomes = {outcome.ref: outcome.kind for outcome in world.run()}

    last: dict[InstanceRef, int] = {}
    settled: defaultdict[InstanceRef, int] = defaultdict(int)
    for number, ref in world.book.open.items():
        last[ref] = number
        answer = world.book.answered.get(number)
        settled[ref] += answer is not None and answer.kind in SETTLED
    assert all(count <= 1 for count in settled.values())
    if not world.book.deaf:
        assert set(world.book.answered) == set(world.book.open)
        for ref, number in last.items():
            # One that was begun and handed back, and then not begun again, is told as not begun.
            handed_back = world.book.answered[number].kind is OutcomeKind.DEFERRED
            assert handed_back or world.book.answered[number].kind is outcomes[ref]
