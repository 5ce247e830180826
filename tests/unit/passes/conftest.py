"""A small world for whole passes: a fake cloud, a registry in memory, a real ledger, a clock that is moved by hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from providers.base import Terminator
from providers.fake import FakeCloud, FakeMachine
from providers.model import InstanceRef, Scope
from reaperd.clock import ManualClock
from reaperd.core.model import BreakerLimits, Mode, OutcomeKind, PassReport, ReapPolicy
from reaperd.ledger.lease import Lease
from reaperd.ledger.ledger import Ledger, open_ledger
from reaperd.ledger.notebooks import LeasedNotebook
from reaperd.passes.act import Enforcer, Rehearsal
from reaperd.passes.pacer import Pacer
from reaperd.passes.ports import Hands
from reaperd.passes.reconcile import Reconciler
from reaperd.process import current
from registry.memory import MemoryRegistry
from registry.model import Worker, WorkerState

START = datetime(2026, 1, 10, 12, 0, tzinfo=UTC)
DEPLOYMENT = "prod-a"
REGION = "fake-1"


@dataclass
class World:
    path: Path
    ledger: Ledger
    clock: ManualClock
    cloud: FakeCloud
    registry: MemoryRegistry
    policy: ReapPolicy = field(
        default_factory=lambda: ReapPolicy(
            deployment=DEPLOYMENT,
            scopes=frozenset({Scope("fake", REGION)}),
            confirm_passes=1,
            breaker=BreakerLimits(max_per_pass=50, max_per_hour=50, max_fraction=1.0),
        )
    )
    stop: bool = False
    deadline: timedelta = timedelta(minutes=4)
    terminator: Terminator | None = None
    """None: the cloud's own."""
    pacer: Pacer = field(default_factory=Pacer)

    def orphan(self, number: int, *, age: timedelta = timedelta(hours=2)) -> InstanceRef:
        return self.cloud.add(FakeMachine(instance_id=f"i-{number}", worker_id=f"w-{number}", age=age))

    def track(self, ref: InstanceRef, worker_id: str) -> None:
        self.registry.add(
            Worker(
                worker_id=worker_id,
                provider=ref.provider,
                region=ref.region,
                instance_id=ref.instance_id,
                state=WorkerState.RUNNING,
            )
        )

    def lease(self) -> Lease:
        taken = self.ledger.take_lease(current(), timedelta(hours=9), self.clock.now())
        assert isinstance(taken, Lease)
        return taken

    def reconciler(self, *, lease: Lease | None = None, rehearse: bool = False) -> Reconciler:
        notebook = LeasedNotebook(self.ledger, lease or self.lease())
        hands: Hands = Rehearsal()
        if not rehearse:
            hands = Enforcer(
                terminator=self.terminator or self.cloud.terminator(),
                registry=self.registry,
                intents=notebook,
                clock=self.clock,
                stopping=lambda: self.stop,
                pacer=self.pacer,
            )
        return Reconciler(
            lister=self.cloud.lister(),
            registry=self.registry,
            notebook=notebook,
            hands=hands,
            policy=self.policy,
            mode=Mode.DRY_RUN if rehearse else Mode.ENFORCE,
            clock=self.clock,
            deadline=self.deadline,
            stopping=lambda: self.stop,
        )

    def another(self) -> Ledger:
        """Open the ledger as another process, or thread, would."""
        return open_ledger(self.path, deployment=DEPLOYMENT, owner_tag="reaperd:owner", now=self.clock.now())

    def reap(self, *, rehearse: bool = False) -> PassReport:
        return self.reconciler(rehearse=rehearse).run()

    def allow(self, **limits: float) -> None:
        self.policy = replace(self.policy, breaker=replace(self.policy.breaker, **limits))


def kinds(report: PassReport) -> dict[str, OutcomeKind]:
    return {outcome.ref.instance_id: outcome.kind for outcome in report.outcomes}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    clock = ManualClock(START)
    path = tmp_path / "ledger.db"
    with open_ledger(path, deployment=DEPLOYMENT, owner_tag="reaperd:owner", now=START) as ledger:
        cloud = FakeCloud("fake", (REGION,), clock=clock, owner=DEPLOYMENT)
        registry = MemoryRegistry(DEPLOYMENT, now=clock.now)
        yield World(path=path, ledger=ledger, clock=clock, cloud=cloud, registry=registry)
