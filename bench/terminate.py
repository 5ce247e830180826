"""How long an approved plan of 5,000 machines in 4 regions takes, over what AWS's token buckets take at the least.

    python -m bench.terminate [--orphans 5000 --regions 4 --pace 1.0 --latency-ms 50] [--guarded-every 61] [--check]

The whole way: a rehearsal, its approval, and the pass that enforces it. Ledger, registry, door and client are real, and
the stand-in counts as AWS documents it. The time is that of the door: from the plan to the last answer. AWS
lets go of 1,000 machines at once in each region and of 20 more each second.

Exit 1: something ended that must not, or did not that should have; something was refused for its pace; or, at a full
pace and with no machine protected, it took more than the limit. With `--check` it is small, and only what became of the
machines is looked at.
"""

# ruff: noqa: T201, S603, TID251 - it prints, runs the stand-in, and counts real seconds

from __future__ import annotations

import argparse
import http.client
import json
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from bench.buckets import floor_seconds
from bench.fleet import ACCOUNT, DEPLOYMENT, Recipe, fleet, regions
from bench.targets import Target, finish
from providers.aws import AwsOptions, aws_lister, aws_terminator
from providers.model import Scope
from providers.multicloud import MultiCloud, MultiCloudTerminator
from reaperd.clock import SystemClock
from reaperd.core.model import Mode, Observation, OutcomeKind, PassReport, Plan, ReapPolicy
from reaperd.ledger.lease import Lease
from reaperd.ledger.ledger import open_ledger
from reaperd.ledger.notebooks import LeasedNotebook
from reaperd.passes.act import Enforcer, Rehearsal
from reaperd.passes.pacer import Pacer
from reaperd.passes.ports import Acted, Errand, Hands
from reaperd.passes.reconcile import Reconciler
from reaperd.process import current
from registry.sqlite import SqliteRegistry
from registry.sqlite.admin import create

ROOT = Path(__file__).parent.parent
LIMIT = 1.3
FULL = 1.0
DEADLINE = timedelta(hours=1)

_SINCE = "2026-01-10T10:00:00Z"


@dataclass(slots=True)
class Timed:
    """The door, and how long it took."""

    door: Enforcer
    wall: float = 0.0
    cpu: float = 0.0

    def carry_out(self, plan: Plan, seen: Observation, policy: ReapPolicy, errand: Errand) -> Acted:
        """Carry the plan out."""
        wall, cpu = time.monotonic(), time.process_time()
        try:
            return self.door.carry_out(plan, seen, policy, errand)
        finally:
            self.wall, self.cpu = time.monotonic() - wall, time.process_time() - cpu


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where it happens."""

    recipe: Recipe
    endpoint: str
    folder: Path
    pace: float
    clock: SystemClock = field(default_factory=SystemClock)

    @property
    def scopes(self) -> frozenset[Scope]:
        """Return every region."""
        return frozenset(Scope("aws", region) for region in regions(self.recipe))

    def options(self) -> AwsOptions:
        """Return how the stand-in is reached."""
        return AwsOptions(
            name="aws",
            deployment=DEPLOYMENT,
            account=ACCOUNT,
            regions=regions(self.recipe),
            endpoint_url=self.endpoint,
        )

    def ask(self, what: str) -> bytes:
        """Ask the stand-in itself."""
        connection = http.client.HTTPConnection(urlsplit(self.endpoint).netloc, timeout=60)
        try:
            connection.request("GET", f"/stub/{what}")
            return connection.getresponse().read()
        finally:
            connection.close()


@contextmanager
def place(asked: argparse.Namespace) -> Iterator[Place]:
    """Have a fleet of which every second machine is an orphan, and a registry that knows the others."""
    recipe = Recipe(
        machines=asked.orphans * 2,
        regions=asked.regions,
        stranger_every=0,
        orphan_every=2,
        guarded_every=asked.guarded_every,
    )
    command = [sys.executable, "-m", "bench.stub_ec2", "--machines", str(recipe.machines), "--throttled"]
    command += ["--regions", str(recipe.regions), "--stranger-every", "0", "--orphan-every", "2"]
    command += ["--guarded-every", str(recipe.guarded_every), "--latency-ms", str(asked.latency_ms)]
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as folder,
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as stub,
    ):
        try:
            endpoint = stub.stdout.readline().strip() if stub.stdout else ""
            yield Place(recipe=recipe, endpoint=endpoint, folder=Path(folder), pace=asked.pace)
        finally:
            stub.terminate()


def registry_of(where: Place) -> SqliteRegistry:
    """Return a registry without the orphans."""
    path = where.folder / "registry.db"
    create(path, DEPLOYMENT)
    tracked = [machine for machine in fleet(where.recipe) if not machine.orphan]
    with closing(sqlite3.connect(path)) as connection, connection:
        # As columns: a writer makes every row durable on its own.
        connection.executemany(
            "INSERT INTO workers (worker_id, provider, region, instance_id, state, created_at, updated_at)"
            " VALUES (?, 'aws', ?, ?, 'running', ?, ?)",
            [(machine.worker_id, machine.region, machine.instance_id, _SINCE, _SINCE) for machine in tracked],
        )
    return SqliteRegistry(path)


def one_pass(where: Place, registry: SqliteRegistry, notebook: LeasedNotebook, hands: Hands) -> PassReport:
    """Look, decide and act."""
    report = Reconciler(
        lister=MultiCloud("clouds", aws_lister(where.options(), clock=where.clock), clock=where.clock),
        registry=registry,
        notebook=notebook,
        hands=hands,
        # The breaker as it is by default: without the approval none of it would go.
        policy=ReapPolicy(deployment=DEPLOYMENT, scopes=where.scopes, confirm_passes=1),
        mode=Mode.ENFORCE,
        clock=where.clock,
        deadline=DEADLINE,
        stopping=lambda: False,
    ).run()
    print(f"{report.outcome}: {report.reason or 'done'} {report.detail}".rstrip())
    return report


def acted(where: Place) -> tuple[PassReport, Timed]:
    """Rehearse, approve, and enforce."""
    registry, now = registry_of(where), where.clock.now()
    with open_ledger(
        where.folder / "ledger.db", deployment=DEPLOYMENT, owner_tag=where.options().tags.owner, now=now
    ) as ledger:
        lease = ledger.take_lease(current(), DEADLINE, now)
        notebook = LeasedNotebook(ledger, lease if isinstance(lease, Lease) else None)
        rehearsed = one_pass(where, registry, notebook, Rehearsal())
        refs = tuple(verdict.ref for verdict in rehearsed.verdicts if verdict.terminates)
        ledger.approve(rehearsed.digest or "", refs, "bench", "to measure it", where.clock.now())
        door = Timed(
            Enforcer(
                terminator=MultiCloudTerminator("clouds", aws_terminator(where.options(), clock=where.clock)),
                registry=registry,
                intents=notebook,
                clock=where.clock,
                stopping=lambda: False,
                pacer=Pacer(share=where.pace),
            )
        )
        return one_pass(where, registry, notebook, door), door


def wrong(where: Place, report: PassReport) -> list[str]:
    """Return what must not be: of the stand-in's truth, and of what was told."""
    told = {outcome.ref.instance_id: outcome.kind for outcome in report.outcomes}
    found: list[str] = []
    for line in where.ask("truth").splitlines():
        machine = json.loads(line)
        name, ended = machine["instance_id"], machine["state"] != "running"
        if ended != (machine["orphan"] and not machine["guarded"]):
            found.append(f"{name} is {machine['state']}")
        if machine["orphan"]:
            expected = OutcomeKind.PROTECTED if machine["guarded"] else OutcomeKind.REQUESTED
            if told.get(name) is not expected:
                found.append(f"{name} was told to be {told.get(name)}")
        elif name in told:
            found.append(f"{name} was told to be {told[name]}, and is tracked")
    return found


def floor(where: Place) -> float:
    """Return the seconds that AWS's buckets take for it at the least."""
    orphans = Counter(machine.region for machine in fleet(where.recipe) if machine.orphan)
    return max(floor_seconds(-(-count // 100), count) for count in orphans.values())


def measured(asked: argparse.Namespace) -> int:
    """Do it, print what it took, and return the exit code."""
    with place(asked) as where:
        report, door = acted(where)
        faults = wrong(where, report)
        stats: Mapping[str, Mapping[str, int]] = json.loads(where.ask("stats"))
    calls, errors = (
        sum(count[what] for key, count in stats.items() if key.endswith(" TerminateInstances"))
        for what in ("calls", "errors")
    )
    # What is protected is refused, too, and not for the pace.
    guarded = sum(outcome.kind is OutcomeKind.PROTECTED for outcome in report.outcomes)
    least, peak = floor(where), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{len(report.outcomes)} machines in {asked.regions} regions, {calls} requests, {errors} of them refused")
    print(f"{door.wall:.1f} s at a pace of {asked.pace:g}, {door.cpu:.1f} s of processor, {peak} MB at the most")
    for fault in faults[:10]:
        print(f"WRONG: {fault}")
    name = f"{len(report.outcomes):,} terminations in {asked.regions} regions"
    targets = [
        Target(name=f"{name}: wrong", value=len(faults), limit=0),
        Target(name=f"{name}: refused for their pace", value=max(errors - guarded, 0), limit=0),
    ]
    if asked.pace == FULL and not asked.guarded_every and least > 0:
        over = f"{name}: wall over the {least:.1f} s that AWS's buckets take"
        targets.append(Target(name=over, value=door.wall / least, limit=LIMIT))
    return finish(targets, asked.json)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--orphans", "--machines", type=int, default=5_000)
    parser.add_argument("--regions", type=int, default=4)
    parser.add_argument("--pace", type=float, default=FULL, help="our share of what AWS allows")
    parser.add_argument("--latency-ms", type=float, default=50.0, help="of every call")
    parser.add_argument("--guarded-every", type=int, default=0, help="every so many-th machine is protected")
    parser.add_argument("--check", action="store_true", help="a small fleet, and only whether all is right")
    parser.add_argument("--json", type=Path, help="where the figures go, too")
    asked = parser.parse_args(arguments)
    if asked.check:
        asked.orphans, asked.regions, asked.latency_ms, asked.guarded_every = 300, 2, 0.0, 41
    os.environ |= {
        "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "EXAMPLE",
        "AWS_CONFIG_FILE": os.devnull,
    }
    os.environ |= {"AWS_SHARED_CREDENTIALS_FILE": os.devnull, "AWS_EC2_METADATA_DISABLED": "true"}
    return measured(asked)


if __name__ == "__main__":
    raise SystemExit(main())
