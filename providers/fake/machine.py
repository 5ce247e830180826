"""A machine of the cloud in memory, and what others see of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import MappingProxyType

from providers.identity import filled, loosely
from providers.model import NO_TAGS, AuditedInstance, InstanceRef, InstanceState, OwnedInstance, TagKeys

NOT_GIVEN = "\0"


@dataclass(frozen=True, slots=True)
class Mutation:
    """One mutating request that reached the cloud, whatever it answered."""

    operation: str
    ref: InstanceRef


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """With which eyes machines are seen."""

    keys: TagKeys
    account: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeMachine:
    """One machine as the cloud really has it, whatever a listing shows."""

    instance_id: str = ""
    """Empty: the cloud numbers it."""
    region: str = ""
    """Empty: the cloud's first region."""
    state: InstanceState = InstanceState.RUNNING
    owner: str | None = NOT_GIVEN
    """None: no ownership tag. Not given: the cloud's own deployment."""
    worker_id: str | None = None
    model: str | None = None
    registry_id: str | None = None
    protect: bool = False
    tags: Mapping[str, str] = field(default_factory=lambda: NO_TAGS, hash=False)
    """Further tags. They win over those that the fields above make, so a near miss can be written here."""
    age: timedelta | None = timedelta(0)
    """At the moment of adding. None: the cloud does not report a launch time. May be negative."""
    launched_at: datetime | None = None
    """Wins over the age."""
    attached_at: datetime | None = None
    managed_by: str | None = None
    account: str | None = None
    """None: the account of the cloud."""
    zone: str | None = None
    instance_type: str | None = None
    spot_request_id: str | None = None
    persistent_spot: bool = False
    name: str | None = None
    cost_per_hour_usd: float | None = None
    ended_at: datetime | None = None
    """When a termination took effect. Set by the cloud."""

    def all_tags(self, keys: TagKeys) -> dict[str, str]:
        """Return the tags as they stand on the machine."""
        made = {
            keys.owner: self.owner,
            keys.worker: self.worker_id,
            keys.model: self.model,
            keys.registry: self.registry_id,
            keys.protect: "true" if self.protect else None,
        }
        return {key: value for key, value in made.items() if value is not None} | dict(self.tags)


def machine_of(seen: OwnedInstance) -> FakeMachine:
    """Return a machine that a listing will show as this one."""
    return FakeMachine(
        instance_id=seen.ref.instance_id,
        region=seen.ref.region,
        state=seen.state,
        owner=seen.owner,
        worker_id=seen.worker_id,
        model=seen.model,
        registry_id=seen.registry_id,
        protect=seen.protect,
        tags=seen.tags,
        age=None,
        launched_at=seen.launched_at,
        managed_by=seen.managed_by,
        account=seen.account,
        zone=seen.zone,
        instance_type=seen.instance_type,
        spot_request_id=seen.spot_request_id,
    )


def as_owned(ref: InstanceRef, machine: FakeMachine, tags: Mapping[str, str], view: View) -> OwnedInstance:
    """Return the machine as a listing shows it, with these of its tags."""
    keys = view.keys
    return OwnedInstance(
        ref=ref,
        state=machine.state,
        owner=tags.get(keys.owner, ""),
        worker_id=filled(tags.get(keys.worker)),
        model=tags.get(keys.model),
        registry_id=tags.get(keys.registry),
        protect=loosely(keys.protect) in map(loosely, tags),
        managed_by=machine.managed_by,
        launched_at=machine.launched_at,
        account=machine.account or view.account,
        foreign_account=machine.account not in (None, view.account),
        zone=machine.zone,
        instance_type=machine.instance_type,
        spot_request_id=machine.spot_request_id,
        tags=MappingProxyType(dict(tags)),
    )


def as_audited(ref: InstanceRef, machine: FakeMachine, view: View) -> AuditedInstance:
    """Return the machine as an audit shows it."""
    tags = machine.all_tags(view.keys)
    return AuditedInstance(
        ref=ref,
        state=machine.state,
        instance_type=machine.instance_type,
        name=machine.name,
        owner=tags.get(view.keys.owner),
        launched_at=machine.launched_at,
        attached_at=machine.attached_at,
        account=machine.account or view.account,
        managed_by=machine.managed_by,
        cost_per_hour_usd=machine.cost_per_hour_usd,
        tags=MappingProxyType(tags),
    )


def what_changed(now: OwnedInstance, seen: OwnedInstance | None, *, owner: str) -> str | None:
    """Return what forbids to end this machine; None when it is still what the plan was made for."""
    findings = {
        "owner_tag": now.owner != owner,
        "in_transition": not now.state.exists,
        "protect_tag": now.protect,
        "managed": now.managed_by is not None,
        "worker_tag": seen is not None and seen.worker_id != now.worker_id,
        "registry_tag": seen is not None and seen.registry_id != now.registry_id,
        "launch_time": seen is not None and seen.launched_at != now.launched_at,
    }
    return next((what for what, found in findings.items() if found), None)
