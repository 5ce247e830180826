"""A provider plug-in for Acme, a cloud that is a JSON file: it quotes, launches, lists, locates, audits and ends.

    {"prices": {"small": "0.02", "large": "0.16"}, "free": 4,
     "machines": {"vm-1": {"power": "on", "type": "small", "since": "2026-01-10T10:00:00+00:00", "tags": {…}}}}

It shows what a plug-in for a real cloud has to get right: a listing is whole or raises, a machine is looked at again
before it is ended, and a worker id never has two machines.
"""

from __future__ import annotations

import fcntl
import json
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from providers.capacity import Offer, Requirement, WorkerHandle, WorkerSpec
from providers.errors import (
    CapacityError,
    IncompleteListingError,
    InstanceChangedError,
    InstanceNotFoundError,
    LaunchEndedError,
    LaunchMismatchError,
    LaunchRejectedError,
    ProviderSetupError,
    QuoteError,
    TerminateRejectedError,
    TerminationWithdrawnError,
)
from providers.locations import Gone, Location, NotKnown, There
from providers.model import (
    AuditedInstance,
    AuditSweep,
    Coverage,
    InstanceRef,
    InstanceState,
    Inventory,
    OwnedInstance,
    Scope,
    ScopeFailure,
)

REGION = "oslo"
STATES = {"on": InstanceState.RUNNING, "off": InstanceState.STOPPED, "ending": InstanceState.SHUTTING_DOWN}
"""A word that is not here is UNKNOWN, which counts as existing."""
NO_CAPACITY = "NoFreeMachine"

Machines = dict[str, dict[str, Any]]


class AcmeError(Exception):
    """Acme did not answer as it should. Nothing was changed."""


def now() -> datetime:
    """Return the time that Acme's own clock gives to a new machine."""
    return datetime.now(UTC)  # noqa: TID251 - the cloud's clock, not reaperd's


@dataclass(frozen=True, kw_only=True)
class AcmeCloud:
    """The inventory. A real cloud has a client in its place."""

    file: Path
    clock: Callable[[], datetime] = now
    turn: threading.Lock = field(default_factory=threading.Lock)

    def read(self) -> dict[str, Any]:
        """Return everything, whole and of the right form, or raise AcmeError."""
        try:
            told: dict[str, Any] = json.loads(self.file.read_text(encoding="utf-8"))
            for each in told["machines"].values():
                _ = (each["power"], datetime.fromisoformat(each["since"]), each["tags"].items())
            _ = [Decimal(price) for price in told.get("prices", {}).values()]
        except (OSError, ValueError, ArithmeticError, KeyError, TypeError, AttributeError) as error:
            msg = f"{type(error).__name__}: {error}"
            raise AcmeError(msg) from error
        return told

    @contextmanager
    def changing(self) -> Iterator[dict[str, Any]]:
        """Give everything, to be changed; write it unless the block raises. Others, of any process, wait."""
        with self.turn, self.file.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            told = self.read()
            yield told
            beside = self.file.with_suffix(".new")
            try:
                beside.write_text(json.dumps(told), encoding="utf-8")
                beside.replace(self.file)
            except OSError as error:
                raise AcmeError(str(error)) from error


class AcmeProvider:
    """Every port: reaperd gives a rehearsal only those of its methods that change nothing."""

    def __init__(self, name: str, cloud: AcmeCloud, owner: str, tags: Mapping[str, str]) -> None:
        """Keep the deployment, and the names of the tags: owner, worker, model, protect and registry."""
        self.name = name
        self.cloud = cloud
        self.owner = owner
        self.tags = tags
        self.scope = Scope(name, REGION)

    # ------------------------------------------------------------ what there is

    def list_owned(self) -> Inventory:
        """Return every machine with our tag, or raise."""
        try:
            ours = tuple(
                self._owned(id_, each)
                for id_, each in self.cloud.read()["machines"].items()
                if self.tags["owner"] in each["tags"]
            )
        except AcmeError as error:
            raise IncompleteListingError((self._failed(error),)) from error
        return Inventory(ours, (Coverage(scope=self.scope, instances=len(ours), pages=1),))

    def locate(self, refs: Collection[InstanceRef]) -> Mapping[InstanceRef, Location]:
        """Return where each of these machines is, whatever its tags. What cannot be known is told, and not raised."""
        try:
            machines = self.cloud.read()["machines"]
        except AcmeError as error:
            return dict.fromkeys(refs, NotKnown(str(error)))
        return {ref: self._located(ref, machines.get(ref.instance_id)) for ref in refs}

    def audit_instances(self) -> AuditSweep:
        """Return every machine, whoever owns it; a failure is told and not raised."""
        try:
            seen = tuple(self._audited(id_, each) for id_, each in self.cloud.read()["machines"].items())
        except AcmeError as error:
            return AuditSweep(instances=(), coverage=(self._failed(error),))
        return AuditSweep(instances=seen, coverage=(Coverage(scope=self.scope, instances=len(seen), pages=1),))

    # ------------------------------------------------------------ getting one

    def quote(self, requirement: Requirement) -> tuple[Offer, ...]:
        """Return what Acme sells."""
        try:
            prices = {kind: Decimal(price) for kind, price in self.cloud.read().get("prices", {}).items()}
        except AcmeError as error:
            msg = f"{self.scope}: {error}"
            raise QuoteError(msg) from error
        wanted = requirement.instance_types or tuple(prices)
        if requirement.region not in ("", REGION):
            return ()
        return tuple(self._offer(kind, prices[kind]) for kind in wanted if kind in prices)

    def launch(self, worker_id: str, offer: Offer, spec: WorkerSpec) -> WorkerHandle:
        """Start a machine, or return the one that this worker already has."""
        if (offer.provider, offer.region) != (self.name, REGION):
            msg = f"{self.scope}: the offer is one of {offer.provider}/{offer.region}"
            raise LaunchRejectedError(msg, error_code="unknown_place")
        if not worker_id:
            msg = f"{self.scope}: a launch needs a worker id"
            raise LaunchRejectedError(msg, error_code="no_worker_id")
        try:
            with self.cloud.changing() as told:
                id_ = self._launched(told, worker_id, offer, spec)
                since = datetime.fromisoformat(told["machines"][id_]["since"])
        except AcmeError as error:
            msg = f"{self.scope}: {error}"
            raise LaunchRejectedError(msg, error_code="acme") from error
        return WorkerHandle(worker_id=worker_id, instance_id=id_, offer=offer, spec=spec, launched_at=since)

    # ------------------------------------------------------------ ending one

    def terminate(
        self,
        ref: InstanceRef,
        *,
        seen: OwnedInstance | None = None,
        permitted: Callable[[], bool] | None = None,
    ) -> None:
        """Look at the machine again, ask for leave, and end it."""
        try:
            with self.cloud.changing() as told:
                machine = told["machines"].get(ref.instance_id) if ref.scope == self.scope else None
                if machine is None:
                    raise InstanceNotFoundError(ref)
                if self._changed(self._owned(ref.instance_id, machine), seen):
                    raise InstanceChangedError(ref, "it is not the machine that was judged")
                # The last thing before the request: the row of a worker may have come meanwhile.
                if permitted is not None and not permitted():
                    raise TerminationWithdrawnError(ref)
                machine["power"] = "ending"
        except AcmeError as error:
            raise TerminateRejectedError(ref, str(error), error_code="acme") from error

    # ------------------------------------------------------------ how Acme's words become ours

    def _owned(self, instance_id: str, each: Mapping[str, Any]) -> OwnedInstance:
        tags = each["tags"]
        return OwnedInstance(
            ref=InstanceRef(self.name, REGION, instance_id),
            state=STATES.get(each["power"], InstanceState.UNKNOWN),
            # As it stands: whether that is our deployment is compared by reaperd.
            owner=tags.get(self.tags["owner"], ""),
            worker_id=tags.get(self.tags["worker"], "").strip() or None,
            model=tags.get(self.tags["model"]),
            registry_id=tags.get(self.tags["registry"]),
            protect=self.tags["protect"].casefold() in (key.casefold() for key in tags),
            launched_at=datetime.fromisoformat(each["since"]),
            instance_type=each.get("type"),
            tags=tags,
        )

    def _audited(self, instance_id: str, each: Mapping[str, Any]) -> AuditedInstance:
        return AuditedInstance(
            ref=InstanceRef(self.name, REGION, instance_id),
            state=STATES.get(each["power"], InstanceState.UNKNOWN),
            instance_type=each.get("type"),
            name=each["tags"].get("name"),
            owner=each["tags"].get(self.tags["owner"]),
            launched_at=datetime.fromisoformat(each["since"]),
            tags=each["tags"],
        )

    def _located(self, ref: InstanceRef, each: Mapping[str, Any] | None) -> Location:
        if ref.scope != self.scope:
            return NotKnown(f"this is {self.scope}")
        if each is None:
            return Gone()
        return There(STATES.get(each["power"], InstanceState.UNKNOWN), each["tags"].get(self.tags["owner"]))

    def _changed(self, now_: OwnedInstance, seen: OwnedInstance | None) -> bool:
        if now_.owner != self.owner or now_.protect or not now_.state.exists:
            return True
        return seen is not None and (now_.worker_id, now_.launched_at) != (seen.worker_id, seen.launched_at)

    def _offer(self, kind: str, price: Decimal) -> Offer:
        return Offer(provider=self.name, instance_type=kind, region=REGION, price_per_hour=price)

    def _launched(self, told: dict[str, Any], worker_id: str, offer: Offer, spec: WorkerSpec) -> str:
        machines: Machines = told["machines"]
        known = next((id_ for id_, each in machines.items() if each.get("token") == worker_id), None)
        if known is not None:
            return _again(known, machines[known], offer)
        if told.get("free", 0) < 1:
            raise CapacityError(NO_CAPACITY, f"{self.scope}: no {offer.instance_type} is free", REGION)
        told["free"] -= 1
        told["made"] = told.get("made", 0) + 1
        tags = {self.tags["owner"]: self.owner, self.tags["worker"]: worker_id, self.tags["model"]: spec.model}
        machine = {"power": "on", "type": offer.instance_type, "token": worker_id, "tags": tags}
        machines[f"acme-{told['made']}"] = machine | {"since": self.cloud.clock().isoformat()}
        return f"acme-{told['made']}"

    def _failed(self, error: Exception) -> Coverage:
        return Coverage(scope=self.scope, failure=ScopeFailure.LISTING, error_code="acme", detail=str(error))


def _again(instance_id: str, machine: Mapping[str, Any], offer: Offer) -> str:
    """Return the machine that a worker already has, if it is what is asked for."""
    if machine["type"] != offer.instance_type:
        msg = f"{instance_id} was launched for this worker, as {machine['type']}"
        raise LaunchMismatchError(msg, error_code="mismatch")
    if machine["power"] not in ("on", "off"):
        msg = f"{instance_id} was launched for this worker, and has ended"
        raise LaunchEndedError(msg, error_code="ended")
    return instance_id


def provider(table: Mapping[str, Any]) -> AcmeProvider:
    """Return the provider of one [[providers]] table. The deployment and the names of the tags were added to it."""
    if "file" not in table:
        msg = f"provider {table['name']!r}: set `file`, the path of Acme's inventory"
        raise ProviderSetupError(msg)
    return AcmeProvider(table["name"], AcmeCloud(file=Path(table["file"])), table["deployment"], table["tags"])
