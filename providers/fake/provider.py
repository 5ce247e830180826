"""The cloud in memory as a whole provider, for control planes: it quotes, launches, lists and terminates.

    fake = FakeProvider(FakeCloud(clock=clock))
    fake.set_offers("llama", [offer])
    fake.launch_err = lambda offer: CapacityError("InsufficientInstanceCapacity", "none") if offer.zone == "a" else None

A hook that raises after a launch was recorded is a lost answer: the machine is there, and the caller does not know it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping

from providers.base import Clock, Permission
from providers.capacity import Offer, Requirement, WorkerHandle, WorkerSpec
from providers.errors import LaunchEndedError, LaunchMismatchError, LaunchRejectedError
from providers.events import ProviderEvent
from providers.fake.cloud import FakeCloud, Hook
from providers.fake.machine import FakeMachine, machine_of
from providers.locations import Location
from providers.model import AuditSweep, InstanceRef, Inventory, OwnedInstance, Scope


class FakeProvider:
    """Every port of a control plane but the audit. The hooks are called outside the locks, so they may use it."""

    def __init__(self, cloud: FakeCloud, region: str | None = None) -> None:
        """Serve one region of the cloud or all."""
        self.cloud = cloud
        self._region = region
        self.regions = cloud.regions if region is None else (region,)
        self.on_launch: Callable[[WorkerHandle], None] = _no_hook
        """Called after a machine was launched and recorded; not when a launch is asked for again."""
        self.launch_err: Callable[[Offer], Exception | None] = _no_error
        """Asked first at each launch: what it returns is raised, and nothing is recorded or counted."""
        self.quote_err: Exception | None = None
        """Raised by every quote."""
        self.list_owned_err: Exception | None = None
        """Raised by every listing, before anything is listed."""
        self._lock = threading.Lock()
        self._offers: dict[str, tuple[Offer, ...]] = {}

    @property
    def name(self) -> str:
        """Return the name of the cloud."""
        return self.cloud.name

    # What programs ask.

    def quote(self, requirement: Requirement) -> tuple[Offer, ...]:
        """Return the offers of the model, or those of every model, that the requirement lets through."""
        if self.quote_err is not None:
            raise self.quote_err
        with self._lock:
            offers = self._offers.get(requirement.model, self._offers.get("", ()))
        return tuple(offer for offer in offers if _satisfies(offer, requirement))

    def launch(self, worker_id: str, offer: Offer, spec: WorkerSpec) -> WorkerHandle:
        """Start a machine onto an offer, or return the one that this worker id already has in the region."""
        error = self.launch_err(offer)
        if error is not None:
            raise error
        self._require_own(worker_id, offer)
        book = self.cloud.launches
        with book.turn:
            known = book.find(offer.region, worker_id)
            handle = known or self._start(worker_id, offer, spec)
            book.record(handle)
        if known is None:
            self.on_launch(handle)
            return handle
        return self._again(known, offer, spec)

    def terminate(
        self, ref: InstanceRef, *, seen: OwnedInstance | None = None, permitted: Permission | None = None
    ) -> None:
        """Look at the machine again and end it."""
        self.cloud.terminator(self._region).terminate(ref, seen=seen, permitted=permitted)

    def list_owned(self) -> Inventory:
        """Return what carries an ownership tag, or raise."""
        if self.list_owned_err is not None:
            raise self.list_owned_err
        return self.cloud.lister(self._region).list_owned()

    def locate(self, refs: Collection[InstanceRef]) -> Mapping[InstanceRef, Location]:
        """Return where each of these machines is, whatever its tags."""
        return self.cloud.lister(self._region).locate(refs)

    def instance_event(self, ref: InstanceRef) -> ProviderEvent | None:
        """Return what was put into `events` for this machine."""
        return self.cloud.announcements.of(ref, tuple(Scope(self.name, region) for region in self.regions))

    # What tests arrange and look at.

    @property
    def on_terminate(self) -> Hook:
        """Called after a termination took effect, with the machine's identity. One hook for the whole cloud."""
        return self.cloud.on_terminate

    @on_terminate.setter
    def on_terminate(self, hook: Hook) -> None:
        self.cloud.on_terminate = hook

    @property
    def events(self) -> dict[InstanceRef, ProviderEvent]:
        """What the cloud announces for which machine. One book for the whole cloud."""
        return self.cloud.announcements.events

    def set_name(self, name: str) -> None:
        """Rename the cloud. Before anything is in it, and before anything is built on it."""
        self.cloud.name = name

    def set_clock(self, clock: Clock) -> None:
        """Replace the clock of the cloud."""
        self.cloud.set_clock(clock)

    def set_offers(self, model: str, offers: Iterable[Offer]) -> None:
        """Set what a model is quoted. The empty model is the fall-back of those without offers of their own."""
        with self._lock:
            self._offers[model] = tuple(offers)

    def add_owned_instance(self, instance: OwnedInstance) -> InstanceRef:
        """Put a machine into the cloud that nobody launched here: an orphan. Its instance id is its key."""
        if instance.ref.provider != self.name or instance.ref.region not in self.regions:
            msg = f"{instance.ref} is not a machine of {self.name} in {self.regions}"
            raise ValueError(msg)
        return self.cloud.add(machine_of(instance))

    @property
    def launched_count(self) -> int:
        """Return how many machines were ever launched; a launch that failed or was asked for again is none."""
        return len(self.cloud.launches.within(self.regions))

    @property
    def live_count(self) -> int:
        """Return how many of the launched machines exist."""
        live = set(self.cloud.live)
        return sum(handle.ref in live for handle in self.cloud.launches.within(self.regions))

    def _require_own(self, worker_id: str, offer: Offer) -> None:
        if not worker_id:
            msg = f"{self.name}: a launch without a worker id would be a machine that no row can name"
            raise LaunchRejectedError(msg, error_code="no_worker_id")
        if offer.provider != self.name:
            msg = f"{self.name}: the offer is one of {offer.provider!r}"
            raise LaunchRejectedError(msg, error_code="unknown_provider")
        if offer.region not in self.regions:
            msg = f"{self.name}: the offer is for {offer.region!r}; has {', '.join(self.regions)}"
            raise LaunchRejectedError(msg, error_code="unknown_region")

    def _start(self, worker_id: str, offer: Offer, spec: WorkerSpec) -> WorkerHandle:
        # Ids are never the same twice, not even when a worker is wrongly launched in a second region.
        elsewhere = f"-{offer.region}" if self.cloud.launches.knows(worker_id) else ""
        machine = self.cloud.answer_launch(
            FakeMachine(
                instance_id=f"{self.name}-instance-{worker_id}{elsewhere}",
                region=offer.region,
                worker_id=worker_id,
                model=spec.model or None,
                zone=offer.zone or None,
                instance_type=offer.instance_type,
            )
        )
        return WorkerHandle(
            worker_id=worker_id,
            instance_id=machine.instance_id,
            offer=offer,
            spec=spec,
            launched_at=machine.launched_at,
        )

    def _again(self, known: WorkerHandle, offer: Offer, spec: WorkerSpec) -> WorkerHandle:
        if (known.offer, known.spec) != (offer, spec):
            msg = f"{known.ref} was launched for worker {known.worker_id} onto another offer, or with another spec"
            raise LaunchMismatchError(msg, error_code="IdempotentParameterMismatch")
        machine = self.cloud.machine(known.ref)
        if machine is None or not machine.state.exists:
            msg = f"{known.ref} was launched for worker {known.worker_id} and is gone"
            raise LaunchEndedError(msg, error_code="ended")
        return known


class FakeAuditingProvider(FakeProvider):
    """The same, able to audit."""

    def audit_instances(self) -> AuditSweep:
        """Return every machine, owned or not."""
        return self.cloud.auditor(self._region).audit_instances()


def _satisfies(offer: Offer, requirement: Requirement) -> bool:
    return (not requirement.instance_types or offer.instance_type in requirement.instance_types) and (
        requirement.region in ("", offer.region)
    )


def _no_hook(_: object) -> None:
    """Do nothing."""


def _no_error(_: object) -> None:
    """Let every launch through."""
