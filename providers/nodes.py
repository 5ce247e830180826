"""Providers of another shape, made into ours: they provision, list, and terminate by an id alone.

What such a provider does not say is not made up:

* It has no launch times: `launched_at` is None, and the age counts from when a machine was first seen.
* It proves no completeness. A listing that returns is believed to be whole; one that raises, names a region that is
  not configured, or has one id twice, is none. Wrap only a provider that raises rather than return a part.
* It ends machines by an id alone. So the adapter looks where that id is before it sends it, and sends nothing when the
  id is in two places, or is not where the plan was made for.
* It takes no idempotency token. The adapter looks for the worker id first and launches one at a time; two processes
  that launch the same worker id at the same moment are not kept apart.
* It may ignore labels. A machine that comes back without ours is an error that names it: no reaper would ever see it.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NoReturn, Protocol

from providers.base import InstanceTypeLister, Permission
from providers.capacity import Offer, Requirement, WorkerHandle, WorkerSpec
from providers.catalogue import offers_of
from providers.errors import (
    IncompleteListingError,
    InstanceChangedError,
    InstanceNotFoundError,
    LaunchEndedError,
    LaunchRejectedError,
    QuoteError,
    TerminateRejectedError,
    TerminationWithdrawnError,
    UnknownLaunchError,
    UnknownResultError,
    UntaggedLaunchError,
)
from providers.identity import filled, loosely
from providers.locations import Gone, Location, NotKnown, There
from providers.model import (
    NO_TAGS,
    Coverage,
    InstanceRef,
    InstanceState,
    Inventory,
    OwnedInstance,
    Scope,
    ScopeFailure,
    TagKeys,
)

STATES: Mapping[str, InstanceState] = MappingProxyType(
    {
        "provisioning": InstanceState.PENDING,
        "running": InstanceState.RUNNING,
        "terminating": InstanceState.SHUTTING_DOWN,
        "terminated": InstanceState.TERMINATED,
    }
)
"""Their words for ours. Any other is UNKNOWN, which counts as existing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A machine, as such a provider tells it."""

    id: str
    region: str
    zone: str = ""
    provider: str = ""
    instance_type: str = ""
    status: str = "running"
    ip_address: str = ""
    """Never an identity: addresses are given away again."""
    gpu_count: int = 0
    gpu_type: str = ""
    labels: Mapping[str, str] = field(default_factory=lambda: NO_TAGS, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvisionRequest:
    """What such a provider is asked for."""

    name: str
    instance_type: str
    region: str
    zone: str = ""
    ssh_key_names: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=lambda: NO_TAGS, hash=False)
    user_data: str = ""


class NodeProvider(Protocol):
    """The other shape. May raise whatever it likes."""

    @property
    def name(self) -> str:
        """Return the routing key."""
        ...

    def provision(self, request: ProvisionRequest) -> Node:
        """Start a machine."""
        ...

    def terminate(self, node_id: str) -> None:
        """End a machine, wherever it is."""
        ...

    def list(self) -> Sequence[Node]:
        """Return every machine."""
        ...


class NodeLister:
    """Sees what carries the ownership label. Has no way to terminate."""

    def __init__(
        self, inner: NodeProvider, *, regions: tuple[str, ...], owner: str, tag_keys: TagKeys | None = None
    ) -> None:
        """Keep the provider, the regions that it has, and what our label says."""
        self._inner = inner
        self._regions = tuple(sorted(regions))
        self._owner = owner
        self._keys = tag_keys or TagKeys()

    @property
    def name(self) -> str:
        """Return the name of the inner provider."""
        return self._inner.name

    @property
    def regions(self) -> tuple[str, ...]:
        """Return the regions that every listing covers."""
        return self._regions

    def list_owned(self) -> Inventory:
        """Return every node with the ownership label, whoever's it is, or raise IncompleteListingError."""
        owned = tuple(self._seen(node) for node in self._nodes() if self._keys.owner in node.labels)
        counts = Counter(instance.ref.region for instance in owned)
        coverage = (
            Coverage(scope=Scope(self.name, region), instances=counts[region], pages=1) for region in self._regions
        )
        return Inventory(owned, tuple(coverage))

    def locate(self, refs: Collection[InstanceRef]) -> Mapping[InstanceRef, Location]:
        """Return where each of these is, by one list of every machine, whatever its labels."""
        try:
            nodes = self._nodes()
        except IncompleteListingError as error:
            return dict.fromkeys(refs, NotKnown(str(error)))
        return {ref: self._located(ref, [node for node in nodes if node.id == ref.instance_id]) for ref in refs}

    def _located(self, ref: InstanceRef, nodes: Sequence[Node]) -> Location:
        """Return what the nodes of that id say. One in another region may be it: places are renamed."""
        if ref.provider != self.name or ref.region not in self._regions:
            return NotKnown(f"{self.name} has {self._regions}")
        node = next((node for node in nodes if node.region == ref.region), None)
        if node is None:
            return NotKnown(f"this id is in {nodes[0].region}") if nodes else Gone()
        state = STATES.get(node.status, InstanceState.UNKNOWN)
        return Gone() if state.is_gone else There(state, node.labels.get(self._keys.owner))

    def _nodes(self) -> tuple[Node, ...]:
        try:
            nodes = tuple(self._inner.list())
        # Whatever the other provider dies of, it did not list: its errors are not ours and have no common class.
        except Exception as error:  # noqa: BLE001
            self._incomplete(type(error).__name__, str(error), error)
        strays = sorted({node.region for node in nodes} - set(self._regions))
        if strays:
            self._incomplete("scope_mismatch", f"nodes in {', '.join(strays)}; configured: {', '.join(self._regions)}")
        if any(not node.id or node.provider not in ("", self.name) for node in nodes):
            self._incomplete("not_addressable", "a node without an id, or of another provider")
        twice = [ref for ref, times in Counter((node.region, node.id) for node in nodes).items() if times > 1]
        if twice:
            # One id in two zones: to end the one by it could end the other.
            self._incomplete("duplicate_instance", f"{twice[0][1]} is there more than once in {twice[0][0]}")
        return nodes

    def _incomplete(self, code: str, detail: str, cause: BaseException | None = None) -> NoReturn:
        raise IncompleteListingError(
            tuple(
                Coverage(
                    scope=Scope(self.name, region), failure=ScopeFailure.LISTING, error_code=code, detail=detail[:500]
                )
                for region in self._regions
            )
        ) from cause

    def _seen(self, node: Node) -> OwnedInstance:
        labels, keys = node.labels, self._keys
        return OwnedInstance(
            ref=InstanceRef(self.name, node.region, node.id),
            state=STATES.get(node.status, InstanceState.UNKNOWN),
            owner=labels.get(keys.owner, ""),
            worker_id=filled(labels.get(keys.worker)),
            model=labels.get(keys.model),
            registry_id=labels.get(keys.registry),
            protect=loosely(keys.protect) in map(loosely, labels),
            zone=node.zone or None,
            instance_type=node.instance_type or None,
            tags=MappingProxyType(dict(labels)),
        )


class NodeAdapter(NodeLister):
    """The whole of it: lists, ends, quotes from the price list if there is one, and launches."""

    def __init__(
        self, inner: NodeProvider, *, regions: tuple[str, ...], owner: str, tag_keys: TagKeys | None = None
    ) -> None:
        """Keep the provider, the regions that it has, and what our label says."""
        super().__init__(inner, regions=regions, owner=owner, tag_keys=tag_keys)
        self._launching = threading.Lock()

    def terminate(
        self, ref: InstanceRef, *, seen: OwnedInstance | None = None, permitted: Permission | None = None
    ) -> None:
        """Look where this id is now, and end it if it is still the machine that was judged.

        Raises:
            InstanceNotFoundError: if it is not listed in its region; it may be in another, and is then left alone.
            TerminateRejectedError: if the same id is in a second region, or the nodes cannot be listed.
            UnknownResultError: if the provider raises after it was asked: it does not say whether it did it.
        """
        now = self._looked_at_again(ref)
        changed = self._what_changed(now, seen)
        if changed is not None:
            raise InstanceChangedError(ref, error_code=changed)
        if permitted is not None and not permitted():
            raise TerminationWithdrawnError(ref, "it is not to be ended any more")
        try:
            self._inner.terminate(ref.instance_id)
        # It was asked. Whatever comes instead of an answer does not say that nothing happened.
        except Exception as error:
            raise UnknownResultError(ref, str(error), error_code=type(error).__name__) from error

    def quote(self, requirement: Requirement) -> tuple[Offer, ...]:
        """Return the types that can be had now and have a price.

        Raises:
            QuoteError: if the provider has no price list, or it cannot be had.
        """
        if not isinstance(self._inner, InstanceTypeLister):
            msg = f"{self.name}: has no list of instance types, so nothing is known of prices"
            raise QuoteError(msg)
        try:
            types = self._inner.list_instance_types()
        # See _nodes: their errors have no common class.
        except Exception as error:
            msg = f"{self.name}: the instance types cannot be listed: {type(error).__name__}: {error}"
            raise QuoteError(msg) from error
        return tuple(
            offer
            for offer in offers_of(types, provider=self.name)
            if offer.region in self._regions
            and requirement.region in ("", offer.region)
            and (not requirement.instance_types or offer.instance_type in requirement.instance_types)
        )

    def launch(self, worker_id: str, offer: Offer, spec: WorkerSpec) -> WorkerHandle:
        """Provision one node with our labels, or return the one that this worker id already has.

        Raises:
            UnknownLaunchError: if the provider raises: it does not say whether there is a machine.
            UntaggedLaunchError: if the machine does not carry our labels.
            LaunchRejectedError: if the offer is of another place, or whether the worker has a machine cannot be known.
        """
        if not worker_id or offer.provider != self.name or offer.region not in self._regions:
            msg = f"{self.name}: no launch of worker {worker_id!r} in {offer.provider}/{offer.region}"
            raise LaunchRejectedError(msg, error_code="unknown_region" if worker_id else "no_worker_id")
        with self._launching:
            before = self._before(worker_id)
            known = [each for each in before if (each.owner, each.worker_id) == (self._owner, worker_id)]
            if known:
                return self._known(worker_id, known)
            node = self._provisioned(worker_id, offer, spec)
            if node.region != offer.region or node.id in {"", *(each.ref.instance_id for each in before)}:
                # Not where it was asked for, or a machine that was there before: whose that is, is not known.
                msg = f"{self.name}: the launch of worker {worker_id} came back as {node.id!r} in {node.region!r}"
                raise UnknownLaunchError(msg, error_code="scope_mismatch")
            return self._launched(worker_id, node, offer, spec)

    def _looked_at_again(self, ref: InstanceRef) -> OwnedInstance:
        if ref.provider != self.name or ref.region not in self._regions:
            raise TerminateRejectedError(ref, f"{self.name} has {self._regions}", error_code="unknown_region")
        try:
            nodes = [node for node in self._nodes() if node.id == ref.instance_id]
        except IncompleteListingError as error:
            raise TerminateRejectedError(ref, str(error), error_code="not_listed") from error
        here = [node for node in nodes if node.region == ref.region]
        if not here or STATES.get(here[0].status) is InstanceState.TERMINATED:
            raise InstanceNotFoundError(ref)
        if len(nodes) > 1:
            regions = ", ".join(sorted(node.region for node in nodes))
            raise TerminateRejectedError(ref, f"this id is in {regions}", error_code="ambiguous_id")
        return self._seen(here[0])

    def _what_changed(self, now: OwnedInstance, seen: OwnedInstance | None) -> str | None:
        findings = {
            "owner_tag": now.owner != self._owner,
            "in_transition": not now.state.exists,
            "protect_tag": now.protect,
            "worker_tag": seen is not None and seen.worker_id != now.worker_id,
            "registry_tag": seen is not None and seen.registry_id != now.registry_id,
            "launch_time": seen is not None and seen.launched_at != now.launched_at,
        }
        return next((what for what, found in findings.items() if found), None)

    def _before(self, worker_id: str) -> tuple[OwnedInstance, ...]:
        try:
            return tuple(map(self._seen, self._nodes()))
        except IncompleteListingError as error:
            msg = f"{self.name}: whether worker {worker_id} has a machine cannot be known, so none is launched: {error}"
            raise LaunchRejectedError(msg, error_code="not_listed") from error

    def _known(self, worker_id: str, known: list[OwnedInstance]) -> WorkerHandle:
        existing = [each for each in known if each.state.exists]
        if not existing:
            msg = f"{known[0].ref} was launched for worker {worker_id}, and that is over: take a new worker id"
            raise LaunchEndedError(msg, error_code="ended")
        return existing[0].to_handle()

    def _launched(self, worker_id: str, node: Node, offer: Offer, spec: WorkerSpec) -> WorkerHandle:
        made = self._seen(node)
        if (made.owner, made.worker_id) != (self._owner, worker_id):
            msg = f"{made.ref} of worker {worker_id} runs without our labels, so no reaper sees it: end it by hand"
            raise UntaggedLaunchError(made.ref, msg)
        placed = replace(offer, instance_type=node.instance_type or offer.instance_type, zone=node.zone or offer.zone)
        return WorkerHandle(worker_id=worker_id, instance_id=node.id, offer=placed, spec=spec, launched_at=None)

    def _provisioned(self, worker_id: str, offer: Offer, spec: WorkerSpec) -> Node:
        labels = {self._keys.owner: self._owner, self._keys.worker: worker_id}
        if spec.model:
            labels[self._keys.model] = spec.model
        request = ProvisionRequest(
            name=f"{self._owner}-{worker_id}",
            instance_type=offer.instance_type,
            region=offer.region,
            zone=offer.zone,
            labels=MappingProxyType(labels),
            user_data=spec.user_data,
        )
        try:
            return self._inner.provision(request)
        # It was asked. Whatever comes instead of an answer does not say that there is no machine.
        except Exception as error:
            msg = f"{self.name}: whether worker {worker_id} has a machine is not known: {type(error).__name__}: {error}"
            raise UnknownLaunchError(msg, error_code=type(error).__name__) from error
