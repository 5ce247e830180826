"""The state of the test cloud and what time does to it."""

from __future__ import annotations

import copy
import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from tests.support.ec2.buckets import Buckets
from tests.support.ec2.clock import CloudClock
from tests.support.ec2.model import (
    AUTOSCALING_TAG,
    FLEET_TAG,
    Fleet,
    Image,
    Machine,
    MachineType,
    SecurityGroup,
    SpotPrice,
    SpotRequest,
    Subnet,
    Zone,
    timestamp,
)

_NEVER = datetime.max.replace(tzinfo=UTC)
ENABLED = "opt-in-not-required"
DISABLED = "not-opted-in"
DEFAULT_REGIONS = {
    "ap-northeast-1": ENABLED,
    "ap-northeast-2": ENABLED,
    "ap-northeast-3": ENABLED,
    "ap-south-1": ENABLED,
    "ap-southeast-1": ENABLED,
    "ap-southeast-2": ENABLED,
    "ca-central-1": ENABLED,
    "eu-central-1": ENABLED,
    "eu-north-1": ENABLED,
    "eu-west-1": ENABLED,
    "eu-west-2": ENABLED,
    "eu-west-3": ENABLED,
    "sa-east-1": ENABLED,
    "us-east-1": ENABLED,
    "us-east-2": ENABLED,
    "us-west-1": ENABLED,
    "us-west-2": ENABLED,
    "af-south-1": DISABLED,
    "ap-east-1": DISABLED,
    "me-south-1": DISABLED,
}


@dataclass(slots=True, kw_only=True)
class Settings:
    """How the cloud behaves when nothing is wrong. Seconds are of the cloud's clock."""

    shutdown_s: float | None = 30.0
    """From shutting-down to terminated; None waits for settle()."""
    forget_s: float | None = 3600.0
    """A terminated machine is listed for so long."""
    boot_s: float | None = 0.0
    """From pending to running."""
    stop_s: float | None = 0.0
    """From stopping to stopped."""
    relaunch_s: float | None = 0.0
    """Until a persistent spot request, a group or a fleet replaces its machine."""
    page_size: int = 1000
    """No page is longer, whatever MaxResults says."""
    cut_before_filter: bool = False
    """Cut pages first and filter then, so that filtered pages come back short or empty."""
    throttled: bool = False
    """Count terminations in AWS's buckets, and refuse what is too much."""
    zones: dict[str, list[Zone]] = field(default_factory=dict)
    """Of a region that has others than most: see World.zones_of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Organization:
    """Who belongs together, and who is told."""

    accounts: tuple[Mapping[str, object], ...] = ()
    """As ListAccounts shows them. Empty: there is none."""
    readers: frozenset[str] = frozenset()
    """The accounts that are told."""


@dataclass(frozen=True, slots=True, order=True)
class Transition:
    """Something that time will do."""

    due: datetime
    number: int
    verb: str
    region: str
    instance_id: str


class World:
    """Everything in all accounts and regions. Not safe for threads: the caller holds a lock."""

    organization = Organization()

    def __init__(self, clock: CloudClock, regions: Mapping[str, str], account: str) -> None:
        self.clock = clock
        self.regions = dict(regions)
        self.account = account
        self.settings, self.buckets = Settings(), Buckets()
        self.machines: dict[tuple[str, str], Machine] = {}
        """By (region, instance id), in the order of their launch."""
        self.ever: set[str] = set()
        """Ids of all machines that there ever were."""
        self.spot_requests: dict[tuple[str, str], SpotRequest] = {}
        self.fleets: dict[tuple[str, str], Fleet] = {}
        self.launches: dict[tuple[str, ...], tuple[Mapping[str, str], list[str]]] = {}
        """What a token launched: (account, region, zone if one was asked for, token) -> (parameters, instance ids)."""
        self.page_plans: dict[str, list[int]] = {}
        """Lengths of the first pages of a region's listing of instances."""
        self.accepted: list[tuple[str, str]] = []
        """(region, instance id) of every real terminate that was answered with success, in order."""
        self.identities: dict[str, tuple[str, str]] = {}
        """Access key -> (account, ARN); others belong to the default account."""
        self.roles: dict[str, str | None] = {}
        """ARN of a role that may be assumed -> the external id that it asks for."""
        self.spot_prices: list[SpotPrice] = []
        """Each the current one of its pool."""
        self.types: list[MachineType] = []
        self.images: list[Image] = []
        self.subnets: dict[str, Subnet] = {}
        self.security_groups: list[SecurityGroup] = []
        self.own_instance: tuple[str, str] | None = None
        """(instance id, region) of the machine that the client runs on."""
        self._transitions: list[Transition] = []
        self._serial = 0

    def zones_of(self, region: str) -> list[Zone]:
        """Return the zones of a region: three of its own and a local one that nobody enabled, unless told."""
        own = [Zone(f"{region}{letter}") for letter in "abc"]
        return self.settings.zones.get(region, [*own, Zone(f"{region}-loc-1a", kind="local-zone", opted=DISABLED)])

    def serial(self) -> int:
        """Return the next number, from 1."""
        self._serial += 1
        return self._serial

    def snapshot(self) -> World:
        """Return a copy that time does not touch."""
        frozen = copy.copy(self)
        frozen.machines = {key: replace(m, tags=dict(m.tags)) for key, m in self.machines.items()}
        frozen.spot_requests = {key: replace(s) for key, s in self.spot_requests.items()}
        frozen.fleets = {key: replace(f) for key, f in self.fleets.items()}
        frozen._transitions = []  # it is the same class
        return frozen

    # -- reading

    def machines_of(self, account: str, region: str) -> list[Machine]:
        """Return an account's machines of a region, in order."""
        return [m for m in self.machines.values() if m.region == region and m.account == account]

    def machine(self, account: str, region: str, instance_id: str) -> Machine | None:
        """Return the machine if this account has it in this region."""
        found = self.machines.get((region, instance_id))
        return found if found and found.account == account else None

    # -- launching and ending

    def launch(self, machine: Machine, *, pending: bool = True) -> Machine:
        """Add a machine, booting."""
        self.machines[machine.region, machine.instance_id] = machine
        self.ever.add(machine.instance_id)
        if pending:
            machine.state = "pending"
            self.after(self.settings.boot_s, "boot", machine)
        return machine

    def shut_down(self, machine: Machine) -> None:
        """Begin the end of a machine; its parent will replace it."""
        machine.state = "shutting-down"
        self.after(self.settings.shutdown_s, "terminate", machine)
        if self._parent(machine):
            self.after(self.settings.relaunch_s, "relaunch", machine)
        if (spot := self._spot_request(machine)) and spot.state == "active":
            spot.state = "open" if spot.kind == "persistent" else "closed"

    def _spot_request(self, machine: Machine) -> SpotRequest | None:
        return self.spot_requests.get((machine.region, machine.spot_request_id or ""))

    def _parent(self, machine: Machine) -> bool:
        spot = self._spot_request(machine)
        fleet = self.fleets.get((machine.region, machine.tags.get(FLEET_TAG, "")))
        return (
            AUTOSCALING_TAG in machine.tags
            or (spot is not None and spot.kind == "persistent" and spot.state in {"open", "active"})
            or (fleet is not None and fleet.kind == "maintain" and fleet.state == "active")
        )

    def new_id(self, prefix: str = "i") -> tuple[str, int]:
        """Return an id that looks like one of AWS, and its number."""
        serial = self.serial()
        return f"{prefix}-{0x0F00000000000000 + serial:017x}", serial

    # -- time

    def after(self, seconds: float | None, verb: str, machine: Machine, since: datetime | None = None) -> None:
        """Plan what happens to a machine; None means not before settle()."""
        due = _NEVER if seconds is None else (since or self.clock.now()) + timedelta(seconds=seconds)
        heapq.heappush(self._transitions, Transition(due, self.serial(), verb, machine.region, machine.instance_id))

    def tick(self) -> None:
        """Let everything happen that is due."""
        while self._transitions and self._transitions[0].due <= self.clock.now():
            self._happen(heapq.heappop(self._transitions))

    def settle(self) -> None:
        """Let everything happen now, but forget nothing."""
        waiting = [t for t in self._transitions if t.verb != "forget"]
        self._transitions = [t for t in self._transitions if t.verb == "forget"]
        for transition in sorted(waiting, key=lambda t: t.number):
            self._happen(replace(transition, due=self.clock.now()))
        self.tick()

    def _happen(self, transition: Transition) -> None:
        machine = self.machines.get((transition.region, transition.instance_id))
        if machine is None:
            return
        match transition.verb, machine.state:
            case "boot", "pending":
                machine.state = "running"
            case "stop", "stopping":
                machine.state = "stopped"
            case "terminate", "shutting-down":
                machine.state = "terminated"
                self.after(self.settings.forget_s, "forget", machine, since=transition.due)
            case "forget", "terminated":
                del self.machines[transition.region, transition.instance_id]
            case "relaunch", _:
                self._relaunch(machine, transition.due)
            case _:
                pass

    def _relaunch(self, old: Machine, at: datetime) -> None:
        if not self._parent(old):
            return
        instance_id, serial = self.new_id()
        now = timestamp(at)
        new = replace(
            old,
            instance_id=instance_id,
            serial=serial,
            reservation_id=f"r-{serial:017x}",
            state="running",
            launched_at=now,
            attached_at=now,
            tags=dict(old.tags),
            client_token="",
        )
        self.launch(new, pending=False)
        if spot := self._spot_request(old):
            spot.instance_id, spot.state = instance_id, "active"
