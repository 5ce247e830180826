"""A thousand launches that break off anywhere, beside a reaper: nothing is lost, and nothing that is needed ends."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from providers.capacity import Offer, WorkerSpec
from providers.errors import CapacityError, LaunchDeniedError, ProviderError, UnknownLaunchError
from providers.fake import FakeCloud, FakeProvider
from providers.model import InstanceRef, Scope
from reaperd.clock import ManualClock
from reaperd.core.model import BreakerLimits, Mode, PassOutcome, ReapPolicy
from reaperd.errors import LaunchError
from reaperd.launching import launch_worker
from reaperd.ledger.lease import Lease
from reaperd.ledger.ledger import Ledger, open_ledger
from reaperd.ledger.notebooks import LeasedNotebook
from reaperd.passes.act import Enforcer
from reaperd.passes.reconcile import Reconciler
from reaperd.process import current
from registry.model import Worker, WorkerState
from registry.sqlite import SqliteRegistry
from registry.sqlite.admin import create
from registry.sqlite.writer import SqliteRegistryWriter

NOON = datetime(2026, 1, 10, 12, tzinfo=UTC)
DEPLOYMENT = "prod-a"
ZONES = (("north", "north-a"), ("north", "north-b"), ("south", "south-a"))
SPEC = WorkerSpec(model="llama")
WORLDS, LAUNCHES = 40, 25
"""Together the thousand."""
POLICY = ReapPolicy(
    deployment=DEPLOYMENT,
    scopes=frozenset({Scope("fake", "north"), Scope("fake", "south")}),
    confirm_passes=2,
    breaker=BreakerLimits(max_per_pass=1000, max_per_hour=1000, max_fraction=1.0),
)


NO_ANSWER = UnknownLaunchError("connection reset")


class Killed(BaseException):
    """The process of the control plane is gone. Nobody catches it."""


@dataclass
class Fate:
    """What goes wrong in one attempt."""

    killed_at: int | None = None
    """The boundary between two steps at which the process dies."""
    full: frozenset[str] = frozenset()
    """The zones without capacity."""
    refused: bool = False
    """Our tags are."""
    lost: bool = False
    """The answer is, and the machine is there."""
    unsent: bool = False
    """The answer is, and so was the request."""
    passes_at: frozenset[int] = frozenset()
    """The boundaries at which the reaper makes a pass."""


def drawn(dice: random.Random) -> Fate:
    return Fate(
        killed_at=dice.choice((None, *range(14))),
        full=frozenset(dice.sample([zone for _, zone in ZONES], dice.choice((0, 0, 1, 2, 2, 3)))),
        refused=dice.random() < 0.1,
        lost=dice.random() < 0.25,
        unsent=dice.random() < 0.1,
        passes_at=frozenset(dice.sample(range(12), dice.choice((0, 0, 0, 1)))),
    )


@dataclass
class World:
    """A cloud of two regions, a registry file, a ledger and an enforcing reaper, by one clock."""

    path: Path
    ledger: Ledger
    clock: ManualClock
    cloud: FakeCloud
    provider: FakeProvider
    launched: Counter[str] = field(default_factory=Counter)
    needed: list[str] = field(default_factory=list)
    """Machines that were ended although a row protected them. There must be none."""
    fate: Fate = field(default_factory=Fate)
    boundary: int = 0

    def writer(self) -> SqliteRegistryWriter:
        return SqliteRegistryWriter(self.path, DEPLOYMENT, now=self.clock.now)

    def rows(self) -> tuple[Worker, ...]:
        return SqliteRegistry(self.path).snapshot().workers

    # What happens to an attempt.

    def attempt(self, worker_id: str, fate: Fate, offers: list[Offer]) -> None:
        self.fate, self.boundary = fate, 0
        try:
            registry, provider = Steps(self, self.writer()), Steps(self, self.provider)
            launch_worker(provider, registry, SPEC, offers, worker_id=worker_id, clock=self.clock)
        except (Killed, ProviderError, LaunchError):
            pass
        finally:
            self.fate = Fate()

    def pass_boundary(self) -> None:
        here, self.boundary = self.boundary, self.boundary + 1
        if here in self.fate.passes_at:
            self.reap()
        if here == self.fate.killed_at:
            raise Killed

    def refusal(self, offer: Offer) -> Exception | None:
        if self.fate.unsent:
            return NO_ANSWER
        if offer.zone in self.fate.full:
            return CapacityError("InsufficientInstanceCapacity", offer.zone, offer.region)
        return LaunchDeniedError("may not create tags") if self.fate.refused else None

    def answer(self, handle: Any) -> None:
        self.launched[handle.worker_id] += 1
        if self.fate.lost:
            raise NO_ANSWER

    # The reaper.

    def reap(self, wait: timedelta = timedelta(minutes=1)) -> None:
        self.clock.advance(wait)
        taken = self.ledger.take_lease(current(), timedelta(days=9), self.clock.now())
        assert isinstance(taken, Lease)
        notebook = LeasedNotebook(self.ledger, taken)
        registry = SqliteRegistry(self.path)
        report = Reconciler(
            lister=self.cloud.lister(),
            registry=registry,
            notebook=notebook,
            hands=Enforcer(
                terminator=self.cloud.terminator(),
                registry=registry,
                intents=notebook,
                clock=self.clock,
                stopping=lambda: False,
            ),
            policy=POLICY,
            mode=Mode.ENFORCE,
            clock=self.clock,
            deadline=timedelta(minutes=4),
            stopping=lambda: False,
        ).run()
        assert report.outcome is PassOutcome.COMPLETE, report.detail

    def ended(self, ref: InstanceRef) -> None:
        worker_id = self.cloud.machine(ref).worker_id
        for row in self.rows():
            names_it = (row.provider, row.region, row.instance_id) == (ref.provider, ref.region, ref.instance_id)
            if row.state.is_live and (names_it or (self.is_awaited(row) and row.worker_id == worker_id)):
                self.needed.append(f"{ref}, by {row}")

    def is_awaited(self, row: Worker) -> bool:
        return row.instance_id is None and self.clock.now() - row.updated_at < POLICY.launching_ttl


class Steps:
    """A registry or a provider whose user may die before and after every call."""

    def __init__(self, world: World, inner: Any) -> None:
        self.world = world
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        def step(*args: Any, **named: Any) -> Any:
            self.world.pass_boundary()
            answer = getattr(self.inner, name)(*args, **named)
            self.world.pass_boundary()
            return answer

        return step


@contextmanager
def made(tmp_path: Path) -> Iterator[World]:
    clock = ManualClock(NOON)
    cloud = FakeCloud(regions=("north", "south"), clock=clock, owner=DEPLOYMENT)
    create(tmp_path / "registry.db", DEPLOYMENT)
    ledger = tmp_path / "ledger.db"
    with open_ledger(ledger, deployment=DEPLOYMENT, owner_tag="reaperd:owner", now=clock.now()) as book:
        world = World(tmp_path / "registry.db", book, clock, cloud, FakeProvider(cloud))
        world.provider.launch_err = world.refusal
        world.provider.on_launch = world.answer
        cloud.on_terminate = world.ended
        yield world


def offered(dice: random.Random) -> list[Offer]:
    return [
        Offer(
            provider="fake",
            instance_type="g5.xlarge",
            region=region,
            zone=zone,
            price_per_hour=Decimal(dice.randrange(1, 99)) / 100,
        )
        for region, zone in ZONES
    ]


def play(world: World, dice: random.Random, worker_id: str) -> None:
    """Launch one worker, in as many attempts as its control plane makes; offers may change in between."""
    offers = offered(dice)
    world.attempt(worker_id, drawn(dice), offers)
    for _ in range(dice.choice((0, 0, 1, 1, 2))):
        world.clock.advance(timedelta(minutes=dice.choice((0, 1, 10, 59, 61, 100))))
        world.attempt(worker_id, drawn(dice), offers if dice.random() < 0.7 else offered(dice))


@pytest.mark.parametrize("seed", range(WORLDS))
def test_wherever_a_launch_breaks_off_no_machine_is_lost_doubled_or_ended_while_it_is_needed(tmp_path, seed):
    dice = random.Random(seed)
    with made(tmp_path) as world:
        for number in range(LAUNCHES):
            play(world, dice, f"w-{number}")
        for _ in range(6):
            world.reap(timedelta(minutes=20))

        named = {(row.provider, row.region, row.instance_id) for row in world.rows() if row.state.is_live}
        untracked = [ref for ref in world.cloud.live if (ref.provider, ref.region, ref.instance_id) not in named]
    assert untracked == []
    assert world.needed == []
    assert max(world.launched.values()) == 1


def test_the_thousand_launches_meet_everything_that_can_happen(tmp_path):
    dice = random.Random(0)
    with made(tmp_path) as world:
        for number in range(LAUNCHES * 4):
            play(world, dice, f"w-{number}")
        before = len(world.cloud.live)
        for _ in range(6):
            world.reap(timedelta(minutes=20))

        states = Counter(row.state for row in world.rows())
        assert 0 < len(world.cloud.live) < before
        assert states[WorkerState.RUNNING] == len(world.cloud.live)
        assert states[WorkerState.FAILED] > 0
        assert states[WorkerState.LAUNCHING] > 0
        assert len(world.rows()) < LAUNCHES * 4
