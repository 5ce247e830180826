"""The machines and their rows, as the test knows them: what it does to them pass after pass, and what may go."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from registry.model import Worker, WorkerState
from tests.soak.stage import DEPLOYMENT, LAUNCH_GRACE, LAUNCHING_TTL, REGIONS, VANISH_GRACE, Stage

PROTECT_TAG = "reaperd:protect"
LARGEST = 60
"""No machine is launched while there are so many."""
_GONE = frozenset({"shutting-down", "terminated", "absent"})


@dataclass(slots=True, kw_only=True)
class Machine:
    """One machine."""

    instance_id: str
    region: str
    launched_at: datetime
    worker: str | None = None
    ours: bool = True
    protect: bool = False
    """It carries the protect tag."""
    guarded: bool = False
    """The cloud's own termination protection is on."""
    vanished_at: datetime | None = None
    """When the row that tracked it was deleted."""


@dataclass(slots=True, kw_only=True)
class Row:
    """One row of the registry."""

    worker: str
    region: str
    instance_id: str | None
    state: WorkerState
    written_at: datetime
    seen: bool = False
    """A complete look found it live, and the machine that it names."""

    def protects(self, machine: Machine, now: datetime) -> bool:
        """Say whether it accounts for this machine."""
        if not self.state.is_live:
            return False
        if self.instance_id is None:
            return self.worker == machine.worker and now - self.written_at < LAUNCHING_TTL
        return (self.region, self.instance_id) == (machine.region, machine.instance_id)


@dataclass(slots=True)
class Fleet:
    """All of them. What a method is named for happens to the cloud or the registry, and to the model."""

    stage: Stage
    chance: random.Random
    machines: dict[str, Machine] = field(default_factory=dict)
    rows: dict[str, Row] = field(default_factory=dict)
    launched: int = 0
    """How many machines there ever were."""

    # ------------------------------------------------------------ what may go

    def forbidden(self, machine: Machine) -> str:
        """Return why this machine must not be terminated now; empty when it may be."""
        now = self.stage.now
        row = next((row for row in self.rows.values() if row.protects(machine, now)), None)
        reasons = {
            "it is not ours": not machine.ours,
            f"the live row {row and row.worker} accounts for it": row is not None,
            "it carries the protect tag": machine.protect,
            "it is too young": now - machine.launched_at <= LAUNCH_GRACE,
            "its row vanished a moment ago": self._just_vanished(machine),
        }
        return next((reason for reason, holds in reasons.items() if holds), "")

    def _just_vanished(self, machine: Machine) -> bool:
        return machine.vanished_at is not None and self.stage.now - machine.vanished_at < VANISH_GRACE

    def orphans(self) -> list[Machine]:
        """Return the machines that may go, now or once their time has come."""
        now = self.stage.now
        return [
            machine
            for machine in self.machines.values()
            if machine.ours
            and not (machine.protect or machine.guarded)
            and not any(row.protects(machine, now) for row in self.rows.values())
        ]

    def tracking(self) -> list[Row]:
        """Return the live rows that name a machine which is there."""
        return [row for row in self.rows.values() if row.state.is_live and row.instance_id in self.machines]

    def looked_at(self, tracking: list[Row]) -> None:
        """Note that a complete look found these rows, and their machines."""
        for row in tracking:
            row.seen = True
            machine = self.machines.get(row.instance_id or "")
            if machine is not None:
                machine.vanished_at = None

    def counted(self) -> int:
        """Forget the machines that the cloud has ended; return how many there were."""
        states = {machine["instance_id"]: machine["state"] for machine in self.stage.cloud.instances()}
        ended = [one for one in self.machines if states.get(one, "absent") in _GONE]
        for instance_id in ended:
            del self.machines[instance_id]
        return len(ended)

    # ------------------------------------------------------------ what happens to the cloud

    def launch(self, *, worker: str | None = None, ours: bool = True, age: timedelta = timedelta(), **more: Any) -> str:
        """Launch a machine."""
        region = more.pop("region", None) or self.chance.choice(REGIONS)
        owner = DEPLOYMENT if ours else more.pop("owner", None)
        instance_id: str = self.stage.cloud.add_instance(
            region=region, owner=owner, worker=worker, age_s=age.total_seconds(), **more
        )
        self.launched += 1
        self.machines[instance_id] = Machine(
            instance_id=instance_id,
            region=region,
            launched_at=self.stage.now - age,
            worker=worker,
            ours=ours,
            guarded=bool(more.get("protected")),
            protect=PROTECT_TAG in more.get("tags", {}),
        )
        return instance_id

    def vanish(self, machine: Machine) -> None:
        """Take a machine away without a trace."""
        self.stage.cloud.remove(machine.instance_id)
        del self.machines[machine.instance_id]

    def protect(self, machine: Machine, *, on: bool) -> None:
        """Set or take away the protect tag."""
        tags = dict(next(m for m in self.stage.cloud.instances() if m["instance_id"] == machine.instance_id)["tags"])
        tags.pop(PROTECT_TAG, None)
        self.stage.cloud.change(machine.instance_id, tags=tags | ({PROTECT_TAG: "true"} if on else {}))
        machine.protect = on

    # ------------------------------------------------------------ what happens to the registry

    def add_row(self, worker: str, region: str, instance_id: str | None) -> None:
        """Write a live row."""
        state = WorkerState.RUNNING if instance_id else WorkerState.LAUNCHING
        self.stage.writer().add(
            Worker(worker_id=worker, provider="aws", region=region, instance_id=instance_id, state=state)
        )
        self.rows[worker] = Row(
            worker=worker, region=region, instance_id=instance_id, state=state, written_at=self.stage.now
        )

    def fill_in(self, row: Row, instance_id: str) -> None:
        """Write the instance id of a launch."""
        self.stage.writer().set_instance(row.worker, instance_id)
        row.instance_id, row.state = instance_id, WorkerState.RUNNING

    def set_state(self, row: Row, state: WorkerState) -> None:
        """Change the state of a row."""
        self.stage.writer().set_state(row.worker, state)
        row.state = state

    def remove_row(self, row: Row) -> None:
        """Delete a row."""
        self.stage.writer().remove(row.worker)
        del self.rows[row.worker]
        machine = self.machines.get(row.instance_id or "")
        others = [other for other in self.rows.values() if other.instance_id == row.instance_id]
        if machine is not None and row.state.is_live and row.seen and not others:
            machine.vanished_at = self.stage.now

    def remembered_rows(self) -> dict[str, Row]:
        """Return a copy of what the registry says."""
        return copy.deepcopy(self.rows)

    def worker_name(self) -> str:
        return f"w-{self.launched:06d}-{self.chance.randrange(1000):03d}"


# ---------------------------------------------------------------- a pass's worth of life


def churn(fleet: Fleet, *, cloud: bool, registry: bool) -> None:
    """Let something happen. `cloud` and `registry` say where things can change."""
    for odds, act, needs_cloud, needs_registry in _LIFE:
        wanted = fleet.chance.random() < odds
        if wanted and (cloud or not needs_cloud) and (registry or not needs_registry):
            act(fleet)


def _healthy_launch(fleet: Fleet) -> None:
    if len(fleet.machines) < LARGEST:
        worker = fleet.worker_name()
        machine = fleet.launch(worker=worker)
        fleet.add_row(worker, fleet.machines[machine].region, machine)


def _lost_launch(fleet: Fleet) -> None:
    if len(fleet.machines) < LARGEST:
        spot = fleet.chance.choice([None, None, None, "persistent"])
        worker = fleet.chance.choice([None, fleet.worker_name()])
        fleet.launch(worker=worker, age=timedelta(minutes=fleet.chance.randrange(4)), spot=spot)


def _flood(fleet: Fleet) -> None:
    for _ in range(7):
        fleet.launch(worker=fleet.worker_name(), age=timedelta(minutes=4))


def _launch_in_two_steps(fleet: Fleet) -> None:
    waiting = [row for row in fleet.rows.values() if row.instance_id is None and row.state.is_live]
    if not waiting:
        worker, region = fleet.worker_name(), fleet.chance.choice(REGIONS)
        fleet.add_row(worker, region, None)
        fleet.launch(worker=worker, region=region)
        return
    row = fleet.chance.choice(waiting)
    named = [m for m in fleet.machines.values() if (m.worker, m.region) == (row.worker, row.region)]
    if named and fleet.chance.random() < 0.8:
        fleet.fill_in(row, named[0].instance_id)
    else:
        fleet.remove_row(row)


def _retire(fleet: Fleet) -> None:
    _on_a_live_row(fleet, lambda row: fleet.set_state(row, fleet.chance.choice(_ENDS)))


def _lose_row(fleet: Fleet) -> None:
    _on_a_live_row(fleet, fleet.remove_row)


def _vanish(fleet: Fleet) -> None:
    if fleet.machines:
        fleet.vanish(fleet.machines[fleet.chance.choice(sorted(fleet.machines))])


def _replace_worker(fleet: Fleet) -> None:
    """A worker's row moves to a new machine; the old one goes on."""

    def move(row: Row) -> None:
        old, new = fleet.machines[row.instance_id or ""], fleet.launch(worker=row.worker, region=row.region)
        fleet.remove_row(row)
        fleet.add_row(row.worker, row.region, new)
        # It is superseded: its worker's row did not vanish, it moved.
        old.vanished_at = None

    _on_a_live_row(fleet, move)


def _stop(fleet: Fleet) -> None:
    if fleet.machines:
        state = fleet.chance.choice(["stopped", "running"])
        fleet.stage.cloud.set_state(fleet.chance.choice(sorted(fleet.machines)), state)


def _stranger(fleet: Fleet) -> None:
    others = [m for m in fleet.machines.values() if not m.ours]
    if len(others) > 6:
        fleet.vanish(others[0])
    owner = fleet.chance.choice([None, "other", DEPLOYMENT.upper(), f" {DEPLOYMENT}"])
    fleet.launch(ours=False, owner=owner, age=timedelta(days=2), name="a stranger")


def _protect(fleet: Fleet) -> None:
    tagged = [machine for machine in fleet.machines.values() if machine.protect]
    if len(tagged) > 2:
        fleet.protect(tagged[0], on=False)
    orphans = fleet.orphans()
    if orphans:
        fleet.protect(fleet.chance.choice(orphans), on=True)


def _guard(fleet: Fleet) -> None:
    for machine in [machine for machine in fleet.machines.values() if machine.guarded]:
        fleet.stage.cloud.change(machine.instance_id, protected=False)
        machine.guarded = False
    orphans = fleet.orphans()
    if orphans:
        machine = fleet.chance.choice(orphans)
        fleet.stage.cloud.change(machine.instance_id, protected=True)
        machine.guarded = True


def clean_up(fleet: Fleet) -> None:
    """The control plane drops rows whose machine is gone."""
    for row in list(fleet.rows.values()):
        if row.instance_id is not None and row.instance_id not in fleet.machines:
            fleet.remove_row(row)


def _on_a_live_row(fleet: Fleet, act: Callable[[Row], None]) -> None:
    live = [row for row in fleet.rows.values() if row.state.is_live and row.instance_id in fleet.machines]
    if len(live) > 6:
        act(fleet.chance.choice(live))


_ENDS = (WorkerState.COMPLETED, WorkerState.FAILED, WorkerState.TERMINATED)
_LIFE: tuple[tuple[float, Callable[[Fleet], None], bool, bool], ...] = (
    (0.75, _healthy_launch, True, True),
    (0.40, _lost_launch, True, False),
    (0.015, _flood, True, False),
    (0.20, _launch_in_two_steps, True, True),
    (0.30, _retire, False, True),
    (0.10, _lose_row, False, True),
    (0.08, _vanish, True, False),
    (0.10, _replace_worker, True, True),
    (0.10, _stop, True, False),
    (0.05, _stranger, True, False),
    (0.05, _protect, True, False),
    (0.05, _guard, True, False),
    (0.30, clean_up, False, True),
)
"""How often each happens in a pass, and whether it changes the cloud, the registry."""
