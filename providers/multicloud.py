"""Several clouds, seen as one provider.

Which clouds exist is data, given at construction. The children have distinct names, because the name is the routing
key. Each is typically a MultiRegion.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import TypeVar

from providers.allowance import Allowance, require_batch
from providers.base import BatchPermission, Clock, Lister, Permission, Provider, Terminator
from providers.batches import allowance_of, rejected, terminate_with
from providers.capacity import Offer, Quotes, Requirement, WorkerHandle, WorkerSpec
from providers.errors import ProviderSetupError, TerminateError, TerminateRejectedError
from providers.fanout import Branch, Regional, audit_everywhere, list_everywhere, require_ability
from providers.locating import Locations, locate_everywhere
from providers.model import AuditSweep, InstanceRef, Inventory, OwnedInstance, Scope
from providers.quoting import Place, QuoteObserver, chosen, placed_handle, quote_everywhere
from providers.stragglers import Stragglers

Child = TypeVar("Child", Lister, Terminator, Provider)


class MultiCloud:
    """Lists and audits every cloud side by side. Has no way to terminate: see MultiCloudTerminator."""

    def __init__(self, name: str, *listers: Lister, clock: Clock, timeout: timedelta | None = None) -> None:
        """Keep the children under the names that they have now. A cloud silent after the timeout has failed.

        Raises:
            ProviderSetupError: if there is no child, one is no Lister, or a name is empty or there twice.
        """
        self._children = _checked(name, listers, Lister)
        self._name = name
        self._clock = clock
        self._timeout = timeout
        self._stragglers = Stragglers()

    @property
    def name(self) -> str:
        """Return the name of the whole."""
        return self._name

    @property
    def providers(self) -> tuple[str, ...]:
        """Return the names of the clouds, sorted."""
        return tuple(self._children)

    def list_owned(self) -> Inventory:
        """Return the instances of all clouds, or raise IncompleteListingError with the coverage of all of them.

        Every cloud is asked, whatever happens to another. A child may leave the provider blank; one that names
        another than itself is not believed. Regions are left as they are.
        """
        return list_everywhere(self._branches(), clock=self._clock, timeout=self._timeout, stragglers=self._stragglers)

    def audit_instances(self) -> AuditSweep:
        """Return what the clouds that can audit see; the others are named in `skipped`."""
        return audit_everywhere(self._branches(), clock=self._clock, timeout=self._timeout, stragglers=self._stragglers)

    def locate(self, refs: Collection[InstanceRef]) -> Locations:
        """Return where these machines are, each by its own cloud; OnlyListed of a cloud that cannot say."""
        branches, stragglers = self._branches(), self._stragglers
        return locate_everywhere(branches, refs, clock=self._clock, timeout=self._timeout, stragglers=stragglers)

    def _branches(self) -> dict[Branch, Lister]:
        # Anew for every look: a cloud that discovers its regions knows more of them each time.
        return {Branch(provider=name, regions=_regions(child)): child for name, child in self._children.items()}


class MultiCloudTerminator:
    """Terminates through the child of the machine's cloud."""

    def __init__(self, name: str, *terminators: Terminator) -> None:
        """Keep the children under the names that they have now.

        Raises:
            ProviderSetupError: if there is no child, one is no Terminator, or a name is empty or there twice.
        """
        self._children = _checked(name, terminators, Terminator)
        self._name = name

    @property
    def name(self) -> str:
        """Return the name of the whole."""
        return self._name

    @property
    def providers(self) -> tuple[str, ...]:
        """Return the names of the clouds, sorted."""
        return tuple(self._children)

    def terminate(
        self, ref: InstanceRef, *, seen: OwnedInstance | None = None, permitted: Permission | None = None
    ) -> None:
        """Terminate in the machine's own cloud. There is no fallback, not even for a sole child."""
        child = self._children.get(ref.provider)
        if child is None:
            raise TerminateRejectedError(ref, f"{self._name} has {self.providers}", error_code="unknown_provider")
        child.terminate(ref, seen=seen, permitted=permitted)

    def allowance(self, scope: Scope) -> Allowance | None:
        """Return what the cloud of the scope allows; None, each goes alone, if there is none or it cannot do more."""
        return allowance_of(self._children.get(scope.provider), scope)

    def terminate_many(
        self, seen: Sequence[OwnedInstance], *, permitted: BatchPermission
    ) -> Mapping[InstanceRef, TerminateError | None]:
        """Terminate through the machines' own cloud. There is no fallback; each goes alone if it cannot do more."""
        if not seen:
            return {}
        require_batch(seen, len(seen))
        child = self._children.get(seen[0].ref.provider)
        if child is None:
            return rejected(seen, f"{self._name} has {self.providers}", "unknown_provider")
        return terminate_with(child, seen, permitted)


class MultiCloudProvider(MultiCloud):
    """The whole of it, for control planes: quotes every cloud, and launches and terminates in the one that is named.

    It can audit whatever its children can: those that cannot are named in `skipped`.
    """

    def __init__(
        self,
        name: str,
        *providers: Provider,
        clock: Clock,
        timeout: timedelta | None = None,
        observer: QuoteObserver | None = None,
    ) -> None:
        """Keep the children under the names that they have now. A cloud silent after the timeout has failed.

        Raises:
            ProviderSetupError: if there is no child, one is no Provider, or a name is empty or there twice.
        """
        self._by_name = _checked(name, providers, Provider)
        super().__init__(name, *self._by_name.values(), clock=clock, timeout=timeout)
        self._terminator = MultiCloudTerminator(name, *self._by_name.values())
        self._observer = observer

    def quote(self, requirement: Requirement) -> Quotes:
        """Return what all clouds offer, and why any of them, or a region of theirs, did not answer.

        Raises:
            QuoteError: if every cloud failed.
        """
        calls = {Place(provider=name): partial(child.quote, requirement) for name, child in self._by_name.items()}
        return quote_everywhere(calls, clock=self._clock, timeout=self._timeout, observer=self._observer)

    def launch(self, worker_id: str, offer: Offer, spec: WorkerSpec) -> WorkerHandle:
        """Launch in the cloud of the offer; one that names none goes to a sole cloud, and its handle says which.

        Raises:
            LaunchRejectedError: if the offer is one of another cloud.
        """
        name = chosen(offer.provider, self.providers, of=self._name, what="provider")
        place = Place(provider=name)
        return placed_handle(place, self._by_name[name].launch(worker_id, place.stamped(offer), spec))

    def terminate(
        self, ref: InstanceRef, *, seen: OwnedInstance | None = None, permitted: Permission | None = None
    ) -> None:
        """Terminate in the machine's own cloud. There is no fallback, not even for a sole child."""
        self._terminator.terminate(ref, seen=seen, permitted=permitted)


def _checked(name: str, children: Iterable[Child], port: type) -> dict[str, Child]:
    by_name: dict[str, Child] = {}
    for child in children:
        require_ability(child, port, of=name)
        if not child.name or child.name in by_name:
            msg = f"{name}: every cloud needs a name of its own; {child.name!r} is empty or there twice"
            raise ProviderSetupError(msg)
        by_name[child.name] = child
    if not name or not by_name:
        msg = f"provider {name!r}: a name and at least one cloud are needed"
        raise ProviderSetupError(msg)
    return dict(sorted(by_name.items()))


def _regions(child: Lister) -> tuple[str, ...]:
    return child.regions if isinstance(child, Regional) else ()
