"""What a cloud tells us, as frozen values. Pure: no I/O, no clock.

Times are timezone-aware; a naive one is refused, because comparing it would raise in the middle of a pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import overload

from providers.capacity import UNKNOWN_PRICE, Kind, Offer, WorkerHandle, WorkerSpec
from providers.events import ProviderEvent, Unheard
from providers.identity import NO_TAGS, InstanceRef, Scope, require_aware

__all__ = [
    "NO_TAGS",
    "UNPROVEN",
    "AuditSweep",
    "AuditedInstance",
    "Coverage",
    "InstanceRef",
    "InstanceState",
    "Inventory",
    "OwnedInstance",
    "Scope",
    "ScopeFailure",
    "TagKeys",
    "require_aware",
]


class InstanceState(StrEnum):
    """The life of a machine, in our words. What a cloud calls otherwise is mapped by its adapter."""

    PENDING = "pending"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    """Also hibernated, suspended, deallocated: it exists and bills (its disks at least)."""
    SHUTTING_DOWN = "shutting-down"
    """Somebody asked for its end and the cloud has not finished. Also: deleting."""
    TERMINATED = "terminated"
    """Gone. Some clouds still list it for about an hour."""
    UNKNOWN = "unknown"
    """A word that we do not know. Counts as existing, so that a new state never hides a machine."""

    @property
    def is_gone(self) -> bool:
        """True when the machine no longer exists, although it may still be listed."""
        return self is InstanceState.TERMINATED

    @property
    def in_transition(self) -> bool:
        """True while a termination is under way."""
        return self is InstanceState.SHUTTING_DOWN

    @property
    def exists(self) -> bool:
        """True for everything that is neither gone nor going."""
        return not (self.is_gone or self.in_transition)


@dataclass(frozen=True, slots=True, kw_only=True)
class TagKeys:
    """The names of the tags that carry ownership."""

    owner: str = "reaperd:owner"
    worker: str = "reaperd:worker-id"
    model: str = "reaperd:model"
    protect: str = "reaperd:protect"
    registry: str = "reaperd:registry-id"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedInstance:
    """One machine of a listing by ownership tag.

    `owner` is the value as it stands on the machine: whether that is *our* deployment is decided in the
    core, never by the cloud's filter.
    """

    ref: InstanceRef
    state: InstanceState
    owner: str
    worker_id: str | None = None
    """None when the tag is missing or blank (a launch that broke off half-way)."""
    model: str | None = None
    registry_id: str | None = None
    """The value of the optional registry tag; None when absent."""
    protect: bool = False
    """True when the protect tag is present, whatever its value and the case of its key."""
    managed_by: str | None = None
    """What would relaunch or otherwise manages this machine (`autoscaling:NAME`, `operator:NAME`, `fleet:ID`)."""
    launched_at: datetime | None = None
    """None when the provider does not report it. Whether the value is believable is decided in the core."""
    account: str | None = None
    """None when the provider has no accounts or does not say."""
    foreign_account: bool = False
    """True when the account of the machine is not the one that the adapter was pinned to."""
    zone: str | None = None
    instance_type: str | None = None
    spot_request_id: str | None = None
    tags: Mapping[str, str] = field(default_factory=lambda: NO_TAGS, hash=False)

    def __post_init__(self) -> None:
        require_aware(self.launched_at, f"launched_at of {self.ref}")

    def to_handle(self) -> WorkerHandle:
        """Return the handle that a launch would have given, as far as the machine itself can tell.

        The price is unknown. The kind is spot where a spot request is known, and otherwise not to be relied on.
        """
        offer = Offer(
            provider=self.ref.provider,
            instance_type=self.instance_type or "",
            region=self.ref.region,
            zone=self.zone or "",
            kind=Kind.SPOT if self.spot_request_id else Kind.ON_DEMAND,
            price_per_hour=UNKNOWN_PRICE,
        )
        return WorkerHandle(
            worker_id=self.worker_id or "",
            instance_id=self.ref.instance_id,
            offer=offer,
            spec=WorkerSpec(model=self.model or ""),
            launched_at=self.launched_at,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedInstance:
    """One machine of a sweep over everything that runs, whoever owns it."""

    ref: InstanceRef
    state: InstanceState
    instance_type: str | None = None
    name: str | None = None
    """A human label. Text of a stranger: escape it wherever it is shown."""
    owner: str | None = None
    """The value of the ownership tag; None without one."""
    launched_at: datetime | None = None
    """The *last* start on clouds that reset it; None when not reported: the age is then unknown, never 0."""
    attached_at: datetime | None = None
    """When its primary network interface was attached (EC2): older than launched_at after a stop and start."""
    account: str | None = None
    managed_by: str | None = None
    cost_per_hour_usd: float | None = None
    """None when the price is not known: never guessed."""
    tags: Mapping[str, str] = field(default_factory=lambda: NO_TAGS, hash=False)

    def __post_init__(self) -> None:
        require_aware(self.launched_at, f"launched_at of {self.ref}")
        require_aware(self.attached_at, f"attached_at of {self.ref}")


UNPROVEN = "unproven"
"""The error code of a scope whose caller's identity could not be had: nobody knows which account it is."""


class ScopeFailure(StrEnum):
    """Why a scope could not be listed whole."""

    LISTING = "listing"
    """The cloud answered with an error, a warning, or something that does not prove completeness."""
    WRONG_ACCOUNT = "wrong_account"
    """The caller's identity is not the pinned account, or could not be had (error_code `unproven`)."""
    DEADLINE = "deadline"
    """The answer did not come in time; one that comes later is dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """What one listing of one scope covered. Stored with the decision, so that it can be asked for a year later."""

    scope: Scope
    account: str | None = None
    """The account that the caller was proved to be; None when unproven or when there are no accounts."""
    instances: int = 0
    pages: int = 0
    duration: timedelta = timedelta(0)
    failure: ScopeFailure | None = None
    """None: the listing is whole, and that was proved."""
    error_code: str | None = None
    """The cloud's own code, or ours in snake_case when the cloud gave none."""
    detail: str = ""
    clock_skew: timedelta | None = None
    """How far the provider's Date header lay outside [request sent, answer received], at its worst; zero when inside.

    None when the provider sends no date.
    """

    @property
    def ok(self) -> bool:
        """True when this scope was listed whole."""
        return self.failure is None


@dataclass(frozen=True, slots=True)
class Inventory(Sequence[OwnedInstance]):
    """Every owned instance of every scope, with the proof. A listing that is not whole has no Inventory: it raises."""

    instances: tuple[OwnedInstance, ...]
    coverage: tuple[Coverage, ...]

    def __post_init__(self) -> None:
        broken = [str(entry.scope) for entry in self.coverage if not entry.ok]
        if broken:
            msg = f"an inventory cannot be built on an incomplete listing of {', '.join(broken)}"
            raise ValueError(msg)

    @overload
    def __getitem__(self, index: int) -> OwnedInstance: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[OwnedInstance, ...]: ...
    def __getitem__(self, index: int | slice) -> OwnedInstance | tuple[OwnedInstance, ...]:
        return self.instances[index]

    def __len__(self) -> int:
        return len(self.instances)

    @classmethod
    def joined(cls, parts: Iterable[Inventory]) -> Inventory:
        """Return the parts as one inventory, in the order given."""
        kept = tuple(parts)
        return cls(
            tuple(instance for part in kept for instance in part.instances),
            tuple(entry for part in kept for entry in part.coverage),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSweep:
    """One best-effort look at everything. Unlike an Inventory it may have holes, and names them."""

    instances: tuple[AuditedInstance, ...]
    coverage: tuple[Coverage, ...]
    """One entry a scope, failed ones included."""
    skipped: tuple[str, ...] = ()
    """Names of providers that cannot audit."""
    events: tuple[ProviderEvent, ...] = ()
    """What clouds announce, or have carried out, also for machines that are no longer among the instances."""
    unheard: tuple[Unheard, ...] = ()
    """Where that could not be had. It takes nothing from the coverage."""
