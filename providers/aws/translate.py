"""What EC2 answers, read into our words. Pure: a raw answer in, values out.

Everything is checked that the decision hangs on; what it does not hang on may be missing or odd without the machine
being dropped for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from types import MappingProxyType

from providers.identity import filled, loosely
from providers.model import NO_TAGS, AuditedInstance, InstanceRef, InstanceState, OwnedInstance, TagKeys

Raw = Mapping[str, object]
_MAPPINGS = (dict, Mapping)
"""Any mapping. A dictionary, which nearly all are, is known as one much faster by its own name."""

_NAME_TAG = "Name"
_AUTOSCALING_TAG = "aws:autoscaling:groupName"
_MANAGER_TAGS = (
    (_AUTOSCALING_TAG, "autoscaling"),
    ("aws:eks:cluster-name", "eks"),
    ("aws:elasticmapreduce:job-flow-id", "elasticmapreduce"),
)
"""Tags that only AWS can set, each by a service that replaces what it loses."""
_FLEET_TAGS = ("aws:ec2:fleet-id", "aws:ec2spot:fleet-request-id")
_FLEET = "fleet:"
_TELLING_TAGS = frozenset({*(key for key, _ in _MANAGER_TAGS), *_FLEET_TAGS})

_STATES = {str(state): state for state in InstanceState}


class MalformedAnswerError(Exception):
    """An answer is not of the form that proves what it says. Stays inside this package."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vantage:
    """From where an answer is read."""

    provider: str
    region: str
    keys: TagKeys
    account: str | None
    """The account that every reservation must belong to; None: any."""


@dataclass(frozen=True, slots=True)
class RawInstance:
    """One instance as it came, with what only its reservation tells."""

    instance_id: str
    account: str | None
    fields: Raw


def raw_instances(page: Raw) -> Iterator[RawInstance]:
    """Return the instances of one page of DescribeInstances.

    Raises:
        MalformedAnswerError: if a container is missing or no list, or an instance has no id. A truly empty account
            answers with an empty list; a page without the list is somebody else's answer.
    """
    for reservation in _members(page, "Reservations"):
        account = _text(reservation, "OwnerId")
        for fields in _members(reservation, "Instances"):
            instance_id = _text(fields, "InstanceId")
            if instance_id is None:
                msg = "an instance without InstanceId"
                raise MalformedAnswerError(msg)
            yield RawInstance(instance_id, account, fields)


def next_token(page: Raw) -> str | None:
    """Return the token of the next page; None, absent or empty, is the explicit end.

    Raises:
        MalformedAnswerError: if there is a token that is no text.
    """
    token = page.get("NextToken")
    if token is None or token == "":
        return None
    if not isinstance(token, str):
        msg = f"NextToken is {type(token).__name__}"
        raise MalformedAnswerError(msg)
    return token


def owned_instance(raw: RawInstance, vantage: Vantage) -> OwnedInstance:
    """Return the machine as the reaper sees it. A fleet counts as managing it: see release_fleets.

    Raises:
        MalformedAnswerError: if its tags cannot be read: the protect tag may be among them.
    """
    tags = _tags(raw)
    keys = vantage.keys
    return OwnedInstance(
        ref=InstanceRef(vantage.provider, vantage.region, raw.instance_id),
        state=_state(raw.fields),
        owner=tags.get(keys.owner, ""),
        worker_id=filled(tags.get(keys.worker)),
        model=filled(tags.get(keys.model)),
        registry_id=tags.get(keys.registry),
        protect=_is_protected(tags, keys.protect),
        managed_by=_manager(raw.fields, tags),
        launched_at=_moment(raw.fields.get("LaunchTime")),
        account=raw.account,
        # Without an owner it is not proved to be ours, and unknown means hold.
        foreign_account=vantage.account is not None and raw.account != vantage.account,
        zone=_text(_mapping(raw.fields.get("Placement")), "AvailabilityZone"),
        instance_type=_text(raw.fields, "InstanceType"),
        spot_request_id=_text(raw.fields, "SpotInstanceRequestId"),
        tags=tags,
    )


def audited_instance(raw: RawInstance, vantage: Vantage) -> AuditedInstance:
    """Return the machine as the audit sees it.

    Raises:
        MalformedAnswerError: if its tags cannot be read.
    """
    tags = _tags(raw)
    return AuditedInstance(
        ref=InstanceRef(vantage.provider, vantage.region, raw.instance_id),
        state=_state(raw.fields),
        instance_type=_text(raw.fields, "InstanceType"),
        name=filled(tags.get(_NAME_TAG)),
        owner=tags.get(vantage.keys.owner),
        launched_at=_moment(raw.fields.get("LaunchTime")),
        attached_at=_attached_at(raw.fields),
        account=raw.account,
        managed_by=_manager(raw.fields, tags),
        tags=tags,
    )


def managing_fleet(instance: OwnedInstance) -> str | None:
    """Return the id of the fleet that is said to manage this machine, or None."""
    managed_by = instance.managed_by or ""
    return managed_by.removeprefix(_FLEET) if managed_by.startswith(_FLEET) else None


def release_fleets(instances: Iterable[OwnedInstance], harmless: frozenset[str]) -> tuple[OwnedInstance, ...]:
    """Return the instances, those of a harmless fleet (one that relaunches nothing) as managed by nobody."""
    return tuple(
        replace(instance, managed_by=None) if managing_fleet(instance) in harmless else instance
        for instance in instances
    )


def changed(now: OwnedInstance, *, deployment: str, seen: OwnedInstance | None) -> str | None:
    """Return why this machine may no longer be terminated, or None when it still may."""
    reasons = {
        "it belongs to another account": now.foreign_account,
        f"its owner tag is now {now.owner!r}": now.owner != deployment,
        f"it is {now.state}": not now.state.exists,
        "it carries the protect tag": now.protect,
        f"it is managed by {now.managed_by}": now.managed_by is not None,
    }
    if seen is not None:
        reasons |= {
            f"its worker tag was {seen.worker_id!r} and is now {now.worker_id!r}": now.worker_id != seen.worker_id,
            f"its registry tag was {seen.registry_id!r} and is now {now.registry_id!r}": (
                now.registry_id != seen.registry_id
            ),
            f"it was launched at {seen.launched_at} and is now of {now.launched_at}": (
                now.launched_at != seen.launched_at
            ),
        }
    found = [reason for reason, holds in reasons.items() if holds]
    return "; ".join(found) or None


def _members(holder: Raw, key: str) -> list[Raw]:
    members = holder.get(key)
    if not isinstance(members, list):
        msg = f"no list of {key}"
        raise MalformedAnswerError(msg)
    for member in members:
        if not isinstance(member, _MAPPINGS):
            msg = f"{key} holds a {type(member).__name__}"
            raise MalformedAnswerError(msg)
    return members


def _tags(raw: RawInstance) -> Mapping[str, str]:
    if "Tags" not in raw.fields:
        return NO_TAGS
    tags: dict[str, str] = {}
    for tag in _members(raw.fields, "Tags"):
        key, value = tag.get("Key"), tag.get("Value", "")
        if not isinstance(key, str) or not isinstance(value, str) or key in tags:
            msg = f"{raw.instance_id}: a tag that cannot be read"
            raise MalformedAnswerError(msg)
        tags[key] = value
    return MappingProxyType(tags)


def _state(fields: Raw) -> InstanceState:
    return _STATES.get(_text(_mapping(fields.get("State")), "Name") or "", InstanceState.UNKNOWN)


def _is_protected(tags: Mapping[str, str], protect: str) -> bool:
    return _holds(tuple(tags), protect)


@lru_cache(maxsize=1024)
def _holds(keys: tuple[str, ...], protect: str) -> bool:
    """Say whether the key is there, however it is spelt. The machines of a fleet share their keys."""
    wanted = loosely(protect)
    return any(loosely(key) == wanted for key in keys)


def _manager(fields: Raw, tags: Mapping[str, str]) -> str | None:
    if _TELLING_TAGS.isdisjoint(tags):
        return _operator(fields.get("Operator"))
    by_tag = next((f"{manager}:{tags[key]}" for key, manager in _MANAGER_TAGS if key in tags), None)
    # Two fleets together have no type that could be asked for, so they stay what they are: managing.
    fleets = "+".join(tags[key] for key in _FLEET_TAGS if key in tags)
    return by_tag or _operator(fields.get("Operator")) or (f"{_FLEET}{fleets}" if fleets else None)


def _operator(operator: object) -> str | None:
    """Return who manages the machine on somebody's behalf. Anything odd counts as somebody."""
    if operator is None:
        return None
    fields = _mapping(operator)
    is_managed = fields.get("Managed", False) is not False or "Principal" in fields
    if isinstance(operator, Mapping) and not is_managed:
        return None
    return f"operator:{_text(fields, 'Principal') or 'unknown'}"


def _attached_at(fields: Raw) -> datetime | None:
    interfaces = fields.get("NetworkInterfaces")
    for interface in interfaces if isinstance(interfaces, list) else []:
        attachment = _mapping(_mapping(interface).get("Attachment"))
        if attachment.get("DeviceIndex") == 0:
            return _moment(attachment.get("AttachTime"))
    return None


def _moment(value: object) -> datetime | None:
    """Return the time in UTC. EC2 knows no other zone, so one without a zone is in UTC."""
    if not isinstance(value, datetime):
        return None
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def _mapping(value: object) -> Raw:
    return value if isinstance(value, _MAPPINGS) else {}


def _text(fields: Raw, key: str) -> str | None:
    value = fields.get(key)
    return value if isinstance(value, str) and value else None
