"""A registry of any size, the fleet that it is about, and passes of the daemon over both. The listing costs nothing."""

# ruff: noqa: S608 - it puts constants into its SQL

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from providers.model import Coverage, InstanceRef, InstanceState, Inventory, OwnedInstance, Scope
from reaperd.clock import ManualClock
from reaperd.core.model import BreakerLimits, Mode, PassOutcome, PassReport, ReapPolicy, TerminateReason
from reaperd.ledger.lease import Lease
from reaperd.ledger.ledger import Ledger, open_ledger
from reaperd.ledger.notebooks import LeasedNotebook
from reaperd.passes.act import Rehearsal
from reaperd.passes.reconcile import Reconciler
from reaperd.process import current
from registry.model import WorkerState
from registry.sqlite import SqliteRegistry
from registry.sqlite.admin import create
from registry.sqlite.schema import TRIGGERS

DEPLOYMENT = "bench"
ACCOUNT = "123456789012"
START = datetime(2026, 1, 10, 12, 0, tzinfo=UTC)
INTERVAL = timedelta(minutes=1)
SCOPES = tuple(Scope("aws", f"region-{number}") for number in range(17))
POLICY = ReapPolicy(
    deployment=DEPLOYMENT,
    scopes=frozenset(SCOPES),
    breaker=BreakerLimits(max_per_pass=10**6, max_per_hour=10**6, max_fraction=1.0),
)
COLUMNS = (
    *("worker_id", "provider", "region", "instance_id", "state", "model"),
    *("created_at", "launched_at", "heartbeat_at", "updated_at"),
)
ORPHAN_OF = 100
"""One machine of so many has no live row, and every second of them has no row at all."""


def fate(number: int) -> TerminateReason | None:
    """Return what a machine is terminated for once that is confirmed; None when it is tracked."""
    if number % ORPHAN_OF:
        return None
    return TerminateReason.RETIRED if number % (2 * ORPHAN_OF) else TerminateReason.UNREGISTERED


def fleet(machines: int) -> Inventory:
    """Return so many running machines of ours."""
    return Inventory(
        instances=tuple(
            OwnedInstance(
                ref=InstanceRef("aws", SCOPES[number % len(SCOPES)].region, instance_id(number)),
                state=InstanceState.RUNNING,
                owner=DEPLOYMENT,
                worker_id=f"w-{number:08}",
                launched_at=START - timedelta(hours=2),
                account=ACCOUNT,
                instance_type="m7i.large",
            )
            for number in range(machines)
        ),
        coverage=tuple(Coverage(scope=scope, account=ACCOUNT) for scope in SCOPES),
    )


def instance_id(number: int) -> str:
    """Return an id as EC2 gives them: neighbours have nothing in common."""
    return f"i-0{number * 0x9E3779B97F4A7C15 % 2**64:016x}"


def rows(number_of_rows: int, machines: int) -> Iterator[tuple[str, ...]]:
    """Yield a row for each worker that ever was; those of the machines that are there stand all over the file."""
    ended = [state.value for state in WorkerState if not state.is_live]
    every = number_of_rows // machines
    for row in range(number_of_rows):
        number, rest = divmod(row, every)
        if rest or number >= machines or fate(number) is TerminateReason.UNREGISTERED:
            # A worker whose machine is long gone.
            number = machines + row
        tick = f"{row % 60:02}.{row % 1_000_000:06}Z"
        yield (
            f"w-{number:08}",
            "aws",
            SCOPES[number % len(SCOPES)].region,
            instance_id(number),
            "running" if number < machines and fate(number) is None else ended[row % len(ended)],
            "llama-3-70b",
            f"2026-01-09T10:{row // 60 % 60:02}:{tick}",
            f"2026-01-09T11:{row // 60 % 60:02}:{tick}",
            f"2026-01-10T11:59:{tick}",
            f"2026-01-10T11:59:{tick}",
        )


def fill(path: Path, number_of_rows: int, machines: int) -> None:
    """Make a registry file."""
    create(path, DEPLOYMENT)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN")
        # A million rows are one change here. Their triggers would make millions of it.
        for name in TRIGGERS:
            connection.execute(f"DROP TRIGGER {name}")
        connection.executemany(
            f"INSERT INTO workers ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})",
            rows(number_of_rows, machines),
        )
        for sql in TRIGGERS.values():
            connection.execute(sql)
        connection.execute("COMMIT")


# ---------------------------------------------------------------- passes


@dataclass(frozen=True, slots=True)
class Listed:
    """A cloud that answers at once."""

    inventory: Inventory

    @property
    def name(self) -> str:
        """Return what it is called."""
        return "listed"

    def list_owned(self) -> Inventory:
        """Return all of it."""
        return self.inventory


@dataclass(slots=True, kw_only=True)
class World:
    """A registry, a ledger, and passes over a fleet."""

    registry: Path
    rows: int
    machines: int
    ledger: Ledger
    lease: Lease
    clock: ManualClock = field(default_factory=lambda: ManualClock(START))

    def next_pass(self) -> Reconciler:
        """Return a rehearsal of an interval after the one before, with its listing at hand."""
        self.clock.advance(INTERVAL)
        return Reconciler(
            lister=Listed(fleet(self.machines)),
            registry=SqliteRegistry(self.registry),
            notebook=LeasedNotebook(self.ledger, self.lease),
            hands=Rehearsal(),
            policy=POLICY,
            mode=Mode.DRY_RUN,
            clock=self.clock,
            deadline=timedelta(hours=1),
            stopping=lambda: False,
        )

    def faults(self, report: PassReport, *, confirmed: bool) -> tuple[str, ...]:
        """Return what a pass said that is not so, or that the ledger does not have."""
        orphans = {instance_id(number): why for number in range(self.machines) if (why := fate(number)) is not None}
        workers = report.census.workers if report.census is not None else {}
        tracked = self.machines - len(orphans)
        sound = {
            "outcome": report.outcome is PassOutcome.COMPLETE,
            "verdicts": len(report.verdicts) == self.machines,
            "tracked": sum(verdict.name == "keep/tracked" for verdict in report.verdicts) == tracked,
            "orphans": {v.ref.instance_id: v.orphan for v in report.verdicts if v.orphan is not None} == orphans,
            "terminations": sum(v.terminates for v in report.verdicts) == (len(orphans) if confirmed else 0),
            "missing": report.missing == (),
            "rows": sum(workers.values()) == self.rows,
            "live rows": workers.get(WorkerState.RUNNING) == tracked,
            "sightings": len(self.ledger.recall(report.started_at).sightings) == self.machines,
        }
        told = f"({report.outcome}, {report.reason}: {report.detail})"
        return tuple(f"{name} {told}" for name, is_so in sound.items() if not is_so)


@contextmanager
def world(folder: Path, number_of_rows: int, machines: int) -> Iterator[World]:
    """Make a world."""
    registry = folder / "registry.db"
    fill(registry, number_of_rows, machines)
    ledger = open_ledger(folder / "ledger.db", deployment=DEPLOYMENT, owner_tag="reaperd:owner", now=START)
    with ledger, closing(sqlite3.connect(registry)) as control_plane:
        # As control planes do, it keeps its connection open.
        control_plane.execute("SELECT count(*) FROM meta").fetchone()
        lease = ledger.take_lease(current(), timedelta(days=1), START)
        if not isinstance(lease, Lease):
            sys.exit("somebody else has the lease of a new ledger")
        yield World(registry=registry, rows=number_of_rows, machines=machines, ledger=ledger, lease=lease)
