"""One client per region, seen as one provider.

Which regions exist is data, given at construction. The children share one name, that of the cloud.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TypeVar

from providers.allowance import Allowance, require_batch
from providers.base import BatchPermission, Clock, Lister, Permission, Provider, Terminator
from providers.batches import allowance_of, rejected, terminate_with
from providers.capacity import Offer, Quotes, Requirement, WorkerHandle, WorkerSpec
from providers.errors import ProviderSetupError, TerminateError, TerminateRejectedError
from providers.fanout import Branch, audit_everywhere, list_everywhere, require_ability
from providers.locating import Locations, locate_everywhere
from providers.model import AuditSweep, InstanceRef, Inventory, OwnedInstance, Scope
from providers.quoting import Place, QuoteObserver, chosen, placed_handle, quote_everywhere
from providers.stragglers import Stragglers

Child = TypeVar("Child", Lister, Terminator, Provider)


class MultiRegion:
    """Lists and audits every region side by side. Has no way to terminate: see MultiRegionTerminator."""

    def __init__(
        self,
        name: str,
        by_region: Mapping[str, Lister],
        *,
        clock: Clock,
        timeout: timedelta | None = None,
        stragglers: Stragglers | None = None,
    ) -> None:
        """Keep the children. A region that has not answered after the timeout has failed.

        Nor is it asked again while it hangs: by this object, or by all that share these stragglers.

        Raises:
            ProviderSetupError: if there is no child, or one is no Lister or has another name.
        """
        kept = _checked(name, by_region, Lister)
        self._name = name
        self._children: dict[Branch, Lister] = {
            Branch(provider=name, region=region, regions=(region,)): child for region, child in kept.items()
        }
        self._clock = clock
        self._timeout = timeout
        self._stragglers = stragglers or Stragglers()

    @property
    def name(self) -> str:
        """Return the name that the children share."""
        return self._name

    @property
    def regions(self) -> tuple[str, ...]:
        """Return the regions, sorted."""
        return tuple(region for branch in self._children for region in branch.regions)

    def list_owned(self) -> Inventory:
        """Return the instances of all regions, or raise IncompleteListingError with the coverage of all of them.

        Every region is asked, whatever happens to another. A child may leave region and provider blank; one that
        names another region than its own is not believed.
        """
        return list_everywhere(self._children, clock=self._clock, timeout=self._timeout, stragglers=self._stragglers)

    def audit_instances(self) -> AuditSweep:
        """Return what the regions that can audit see; the others are named in `skipped`."""
        return audit_everywhere(self._children, clock=self._clock, timeout=self._timeout, stragglers=self._stragglers)

    def locate(self, refs: Collection[InstanceRef]) -> Locations:
        """Return where these machines are, each by its own region; OnlyListed of a region that cannot say.

        There is no fallback: in the wrong region the answer would be "not found", which reads like "gone".
        """
        children, stragglers = self._children, self._stragglers
        return locate_everywhere(children, refs, clock=self._clock, timeout=self._timeout, stragglers=stragglers)


class MultiRegionTerminator:
    """Terminates through the child of the machine's region."""

    def __init__(self, name: str, by_region: Mapping[str, Terminator]) -> None:
        """Keep the children.

        Raises:
            ProviderSetupError: if there is no child, or one is no Terminator or has another name.
        """
        self._children = _checked(name, by_region, Terminator)
        self._name = name

    @property
    def name(self) -> str:
        """Return the name that the children share."""
        return self._name

    @property
    def regions(self) -> tuple[str, ...]:
        """Return the regions, sorted."""
        return tuple(self._children)

    def terminate(
        self, ref: InstanceRef, *, seen: OwnedInstance | None = None, permitted: Permission | None = None
    ) -> None:
        """Terminate in the machine's own region.

        There is no fallback, not even for a sole child: in the wrong region the answer would be "not found", which
        reads like "gone".
        """
        if ref.provider != self._name:
            raise TerminateRejectedError(ref, f"this is {self._name}", error_code="unknown_provider")
        child = self._children.get(ref.region)
        if child is None:
            raise TerminateRejectedError(ref, f"{self._name} has {self.regions}", error_code="unknown_region")
        child.terminate(ref, seen=seen, permitted=permitted)

    def allowance(self, scope: Scope) -> Allowance | None:
        """Return what the region of the scope allows; None, each goes alone, if there is none or it cannot do more."""
        return allowance_of(self._children.get(scope.region) if scope.provider == self._name else None, scope)

    def terminate_many(
        self, seen: Sequence[OwnedInstance], *, permitted: BatchPermission
    ) -> Mapping[InstanceRef, TerminateError | None]:
        """Terminate through the machines' own region. There is no fallback; each goes alone if it cannot do more."""
        if not seen:
            return {}
        require_batch(seen, len(seen))
        scope = seen[0].ref.scope
        if scope.provider != self._name:
            return rejected(seen, f"this is {self._name}", "unknown_provider")
        child = self._children.get(scope.region)
        if child is None:
            return rejected(seen, f"{self._name} has {self.regions}", "unknown_region")
        return terminate_with(child, seen, permitted)


class MultiRegionProvider(MultiRegion):
    """The whole of it, for control planes: quotes every region, and launches and terminates in the one that is named.

    It can audit whatever its children can: those that cannot are named in `skipped`.
    """

    def __init__(
        self,
        name: str,
        by_region: Mapping[str, Provider],
        *,
        clock: Clock,
        timeout: timedelta | None = None,
        observer: QuoteObserver | None = None,
    ) -> None:
        """Keep the children. A region that has not answered after the timeout has failed.

        Raises:
            ProviderSetupError: if there is no child, or one is no Provider or has another name.
        """
        self._by_region = _checked(name, by_region, Provider)
        super().__init__(name, self._by_region, clock=clock, timeout=timeout)
        self._terminator = MultiRegionTerminator(name, self._by_region)
        self._observer = observer

    def quote(self, requirement: Requirement) -> Quotes:
        """Return what all regions offer, or the one that the requirement names, and why any did not answer.

        A region that is not one of these has nothing to offer here: that is no failure.

        Raises:
            QuoteError: if every region that was asked failed.
        """
        calls = {
            Place(provider=self._name, region=region): partial(child.quote, replace(requirement, region=region))
            for region, child in self._by_region.items()
            if requirement.region in ("", region)
        }
        return quote_everywhere(calls, clock=self._clock, timeout=self._timeout, observer=self._observer)

    def launch(self, worker_id: str, offer: Offer, spec: WorkerSpec) -> WorkerHandle:
        """Launch in the region of the offer; one that names none goes to a sole region, and its handle says which.

        Raises:
            LaunchRejectedError: if the offer is one of another provider or region.
        """
        chosen(offer.provider, (self._name,), of=self._name, what="provider")
        region = chosen(offer.region, self.regions, of=self._name, what="region")
        place = Place(provider=self._name, region=region)
        return placed_handle(place, self._by_region[region].launch(worker_id, place.stamped(offer), spec))

    def terminate(
        self, ref: InstanceRef, *, seen: OwnedInstance | None = None, permitted: Permission | None = None
    ) -> None:
        """Terminate in the machine's own region. There is no fallback: see MultiRegionTerminator."""
        self._terminator.terminate(ref, seen=seen, permitted=permitted)


def _checked(name: str, by_region: Mapping[str, Child], port: type) -> dict[str, Child]:
    if not name or not by_region or not all(by_region):
        msg = f"provider {name!r}: a name, and at least one region, all with names, are needed; has {sorted(by_region)}"
        raise ProviderSetupError(msg)
    for region, child in by_region.items():
        require_ability(child, port, of=f"{name}/{region}")
        if child.name != name:
            msg = f"{name}/{region}: the child calls itself {child.name!r}; all regions share one name"
            raise ProviderSetupError(msg)
    return dict(sorted(by_region.items()))
