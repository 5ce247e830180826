"""One AWS account for a control plane: shops, launches, lists and ends. No part of a reaper is built from it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from providers.aws.account import AwsAccount
from providers.aws.event_source import AwsEvents
from providers.aws.launch import AwsLauncher
from providers.aws.quote import AwsQuoter
from providers.aws.typelist import AwsTypeLister
from providers.base import Permission, Terminator
from providers.capacity import Offer, Quotes, Requirement, WorkerHandle, WorkerSpec
from providers.catalogue import InstanceType
from providers.events import ProviderEvent
from providers.locations import Location
from providers.model import AuditSweep, InstanceRef, Inventory, OwnedInstance


class AwsProvider:
    """Six objects under one name, each with a session that can send what it is for and nothing else."""

    def __init__(
        self,
        lister: AwsAccount,
        terminator: Terminator,
        quoter: AwsQuoter,
        launcher: AwsLauncher,
        types: AwsTypeLister,
        events: AwsEvents,
    ) -> None:
        """Keep the parts."""
        self._lister = lister
        self._terminator = terminator
        self._quoter = quoter
        self._launcher = launcher
        self._types = types
        self._events = events

    @property
    def name(self) -> str:
        """Return the routing key."""
        return self._lister.name

    @property
    def regions(self) -> tuple[str, ...]:
        """Return the regions that every listing must cover, as far as they are known by now."""
        return self._lister.regions

    def quote(self, requirement: Requirement) -> Quotes:
        """See AwsQuoter.quote."""
        return self._quoter.quote(requirement)

    def launch(self, worker_id: str, offer: Offer, spec: WorkerSpec) -> WorkerHandle:
        """See AwsLauncher.launch."""
        return self._launcher.launch(worker_id, offer, spec)

    def terminate(
        self, ref: InstanceRef, *, seen: OwnedInstance | None = None, permitted: Permission | None = None
    ) -> None:
        """See AwsTerminator.terminate."""
        self._terminator.terminate(ref, seen=seen, permitted=permitted)

    def list_owned(self) -> Inventory:
        """See AwsAccount.list_owned."""
        return self._lister.list_owned()

    def locate(self, refs: Collection[InstanceRef]) -> Mapping[InstanceRef, Location]:
        """See AwsAccount.locate."""
        return self._lister.locate(refs)

    def audit_instances(self) -> AuditSweep:
        """See AwsAccount.audit_instances."""
        return self._lister.audit_instances()

    def list_instance_types(self) -> tuple[InstanceType, ...]:
        """See AwsTypeLister.list_instance_types."""
        return self._types.list_instance_types()

    def instance_event(self, ref: InstanceRef) -> ProviderEvent | None:
        """See AwsEvents.instance_event."""
        return self._events.instance_event(ref)
