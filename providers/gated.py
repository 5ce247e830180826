"""An operator's switch in front of a provider: no quotes and no launches while its cloud is off.

Ending and listing machines are never gated, and the gate is not even asked: whoever switches a cloud off wants to stop
spending there, and what stands in the way of cleaning up spends. Audits, and looks for single machines, pass through
for the same reason.

Wrap each cloud before you combine them, so that the others are still shopped at:

    MultiCloudProvider("clouds", gated("aws", aws, gate, log), gated("gcp", gcp, gate, log), clock=clock)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any

from providers.allowance import Allowance
from providers.base import (
    BatchPermission,
    BatchTerminator,
    EventSource,
    Examiner,
    Gate,
    InstanceAuditor,
    InstanceTypeLister,
    Locator,
    Log,
    Permission,
    Provider,
)
from providers.capacity import Offer, Quotes, Requirement, WorkerHandle, WorkerSpec
from providers.catalogue import InstanceType
from providers.errors import GateClosedError, GateUnreadableError, TerminateError
from providers.events import ProviderEvent
from providers.examination import Examination
from providers.fanout import Regional
from providers.locating import Locations
from providers.model import AuditSweep, InstanceRef, Inventory, OwnedInstance, Scope


def gated(cloud: str, inner: Provider, gate: Gate | None, log: Log) -> Provider:
    """Return the provider behind the gate; without one, the provider itself.

    `cloud` is what the gate is asked about: the name that an operator types, which need not be that of the provider.
    What comes back has exactly the optional abilities that the inner one has.
    """
    if gate is None:
        return inner
    abilities = tuple(mixin for port, mixin in _ABILITIES.items() if isinstance(inner, port))
    provider: GatedProvider = _with(abilities)(cloud, inner, gate, log)
    return provider


class GatedProvider:
    """A provider behind a gate. Make it with `gated`, which gives it the inner one's optional abilities, too."""

    def __init__(self, cloud: str, inner: Provider, gate: Gate, log: Log) -> None:
        """Keep the parts."""
        self._cloud = cloud
        self._inner: Any = inner
        self._gate = gate
        self._log = log

    @property
    def name(self) -> str:
        """Return the name of the inner provider, so that offers and handles are routed as before."""
        return str(self._inner.name)

    @property
    def regions(self) -> tuple[str, ...]:
        """Return the regions of the inner provider; empty when it does not say."""
        return self._inner.regions if isinstance(self._inner, Regional) else ()

    def quote(self, requirement: Requirement) -> Sequence[Offer]:
        """Return no offers while the cloud is off: that is what it has for us. The inner provider is not asked."""
        closed = self._closed()
        if closed is not None:
            self._log.warning(
                "quote_gated", cloud=self._cloud, provider=self.name, reason=closed.error_code, detail=str(closed)
            )
            return Quotes(())
        offers: Sequence[Offer] = self._inner.quote(requirement)
        return offers

    def launch(self, worker_id: str, offer: Offer, spec: WorkerSpec) -> WorkerHandle:
        """Launch as the inner provider does, unless the cloud is off: somebody decided to spend, and must be told.

        Raises:
            GateClosedError: while the cloud is off; GateUnreadableError while that cannot be known.
        """
        closed = self._closed()
        if closed is not None:
            raise closed
        handle: WorkerHandle = self._inner.launch(worker_id, offer, spec)
        return handle

    def terminate(
        self, ref: InstanceRef, *, seen: OwnedInstance | None = None, permitted: Permission | None = None
    ) -> None:
        """Terminate as the inner provider does, whatever the gate would say."""
        self._inner.terminate(ref, seen=seen, permitted=permitted)

    def list_owned(self) -> Inventory:
        """List as the inner provider does, whatever the gate would say."""
        inventory: Inventory = self._inner.list_owned()
        return inventory

    def _closed(self) -> GateClosedError | None:
        """Return why the cloud is off; None when it is on."""
        try:
            allowed: object = self._gate.provision_allowed(self._cloud)
        # A gate is anybody's code, and may ask anything: a file, a database, a service. Whatever it dies of is a
        # switch that cannot be read, and only that; it must not come out of a quote as a fault of the cloud.
        except Exception as error:  # noqa: BLE001
            return self._unreadable(f"{type(error).__name__}: {error}", error)
        if allowed is True:
            return None
        if allowed is not False:
            # A coroutine that nobody awaited, or the text "off", would be true.
            return self._unreadable(f"it answered {allowed!r}, neither True nor False")
        msg = f"{self._cloud}: launches are switched off here; `reaperd gate on {self._cloud}` switches them on"
        return GateClosedError(msg, error_code="gate_closed")

    def _unreadable(self, why: str, cause: Exception | None = None) -> GateUnreadableError:
        msg = f"{self._cloud}: whether launches are switched off cannot be known, so none is made ({why})"
        closed = GateUnreadableError(msg, error_code="gate_unreadable")
        closed.__cause__ = cause
        return closed


class _Audits(GatedProvider):
    def audit_instances(self) -> AuditSweep:
        """Audit as the inner provider does, whatever the gate would say."""
        sweep: AuditSweep = self._inner.audit_instances()
        return sweep


class _Locates(GatedProvider):
    def locate(self, refs: Collection[InstanceRef]) -> Locations:
        """Locate as the inner provider does, whatever the gate would say."""
        found: Locations = self._inner.locate(refs)
        return found


class _EndsSeveral(GatedProvider):
    def allowance(self, scope: Scope) -> Allowance | None:
        """Return what the inner provider allows."""
        allowance: Allowance | None = self._inner.allowance(scope)
        return allowance

    def terminate_many(
        self, seen: Sequence[OwnedInstance], *, permitted: BatchPermission
    ) -> Mapping[InstanceRef, TerminateError | None]:
        """Terminate as the inner provider does, whatever the gate would say."""
        answers: Mapping[InstanceRef, TerminateError | None] = self._inner.terminate_many(seen, permitted=permitted)
        return answers


class _Examines(GatedProvider):
    def examine(self) -> Examination:
        """Examine as the inner provider does."""
        found: Examination = self._inner.examine()
        return found


class _ListsTypes(GatedProvider):
    def list_instance_types(self) -> tuple[InstanceType, ...]:
        """List as the inner provider does: a price list is no offer."""
        types: tuple[InstanceType, ...] = self._inner.list_instance_types()
        return types


class _TellsEvents(GatedProvider):
    def instance_event(self, ref: InstanceRef) -> ProviderEvent | None:
        """Tell what the inner provider tells."""
        event: ProviderEvent | None = self._inner.instance_event(ref)
        return event


_ABILITIES: Mapping[type, type[GatedProvider]] = {
    InstanceAuditor: _Audits,
    BatchTerminator: _EndsSeveral,
    Locator: _Locates,
    Examiner: _Examines,
    InstanceTypeLister: _ListsTypes,
    EventSource: _TellsEvents,
}


@cache
def _with(abilities: tuple[type[GatedProvider], ...]) -> Any:  # noqa: ANN401 - a class with bases known only now
    # A class for each mixture, because a protocol is told by the methods that a class has: one that answered for
    # methods which it hands on would be an auditor to some versions of Python and none to others.
    return type("GatedProvider", abilities or (GatedProvider,), {})
