"""What EC2 announces for machines: the end of spot capacity, and what is planned for a host. Best effort.

Neither decides anything: what cannot be had is told beside what could, and no listing and no sweep is less whole by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from providers.aws.answers import Answer
from providers.aws.errors import CALL_ERRORS, BrokenAnswerError, error_code, error_text
from providers.aws.rows import all_rows
from providers.events import ProviderEvent, Unheard, scheduled_event, spot_event
from providers.identity import InstanceRef, Scope

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_ec2.type_defs import (
        DescribeInstanceStatusRequestTypeDef,
        DescribeSpotInstanceRequestsRequestTypeDef,
    )

_PAGE = 1000
_NO_MACHINE = "InvalidInstanceID."
_OVER = ("[completed]", "[canceled]")
"""How the description of a plan begins once nothing more comes of it."""

Hear = Callable[[], Iterable[ProviderEvent]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What was heard in one region."""

    events: tuple[ProviderEvent, ...] = ()
    """One a machine at most: the end of a spot machine before what is planned for its host."""
    unheard: tuple[Unheard, ...] = ()
    """One for each question that got no answer."""


def hear(client: EC2Client, scope: Scope, instance_id: str | None = None) -> Heard:
    """Return what is announced in a region, or for one machine of it. Never raises for what AWS answers.

    Every spot request and every running machine of the region is read, without a filter: what a test cloud or an older
    endpoint cannot filter would be an error there.
    """
    spot = _heard(scope, "spot requests", lambda: spot_events(_spot_rows(client, instance_id), scope))
    planned = _heard(scope, "scheduled events", lambda: planned_events(_status_rows(client, instance_id), scope))
    by_machine = {event.ref: event for event in (*planned.events, *spot.events)}
    wanted = (event for ref, event in sorted(by_machine.items()) if instance_id in (None, ref.instance_id))
    return Heard(events=tuple(wanted), unheard=(*spot.unheard, *planned.unheard))


def spot_events(rows: Iterable[Answer], scope: Scope) -> tuple[ProviderEvent, ...]:
    """Return the interruptions that the status of spot requests tells of."""
    found = (_spot_event(row, scope) for row in rows)
    return tuple(event for event in found if event is not None)


def planned_events(rows: Iterable[Answer], scope: Scope) -> tuple[ProviderEvent, ...]:
    """Return what is planned for machines and takes them away: of each the nearest."""
    nearest: dict[InstanceRef, ProviderEvent] = {}
    for row in rows:
        for event in _planned(row, scope):
            known = nearest.get(event.ref)
            if known is None or _at(event) < _at(known):
                nearest[event.ref] = event
    return tuple(nearest.values())


def _heard(scope: Scope, what: str, ask: Hear) -> Heard:
    try:
        return Heard(events=tuple(ask()))
    except (*CALL_ERRORS, BrokenAnswerError) as error:
        detail = f"{what}: {error_text(error)}"
        return Heard(unheard=(Unheard(scope=scope, error_code=error_code(error), detail=detail),))


def _spot_rows(client: EC2Client, instance_id: str | None) -> list[Answer]:
    request: DescribeSpotInstanceRequestsRequestTypeDef = {"MaxResults": _PAGE}
    if instance_id is not None:
        request["Filters"] = [{"Name": "instance-id", "Values": [instance_id]}]

    def ask(token: str | None) -> Answer:
        asked: DescribeSpotInstanceRequestsRequestTypeDef = {**request}
        if token is not None:
            asked["NextToken"] = token
        return client.describe_spot_instance_requests(**asked)

    return all_rows(ask, "SpotInstanceRequests")


def _status_rows(client: EC2Client, instance_id: str | None) -> list[Answer]:
    def ask(token: str | None) -> Answer:
        if instance_id is not None:
            # Without MaxResults, which EC2 does not take with ids; so there is one page.
            return client.describe_instance_status(InstanceIds=[instance_id], IncludeAllInstances=True)
        asked: DescribeInstanceStatusRequestTypeDef = {"MaxResults": _PAGE}
        if token is not None:
            asked["NextToken"] = token
        return client.describe_instance_status(**asked)

    try:
        return all_rows(ask, "InstanceStatuses")
    except ClientError as error:
        if not error_code(error).startswith(_NO_MACHINE):
            raise
        return []


def _spot_event(row: Answer, scope: Scope) -> ProviderEvent | None:
    ref, status = _ref(row, scope), row.get("Status")
    if ref is None or not isinstance(status, Mapping):
        return None
    return spot_event(ref, str(status.get("Code")), updated_at=_moment(status.get("UpdateTime")))


def _planned(row: Answer, scope: Scope) -> Iterable[ProviderEvent]:
    ref, plans = _ref(row, scope), row.get("Events")
    if ref is None or not isinstance(plans, list):
        return
    for plan in plans:
        if isinstance(plan, Mapping) and not str(plan.get("Description", "")).lower().startswith(_OVER):
            event = scheduled_event(ref, str(plan.get("Code")), not_before=_moment(plan.get("NotBefore")))
            if event is not None:
                yield event


def _ref(row: Answer, scope: Scope) -> InstanceRef | None:
    """Return the machine that a row is about; None of a spot request that has none."""
    instance_id = row.get("InstanceId")
    if not isinstance(instance_id, str) or not instance_id:
        return None
    return InstanceRef(scope.provider, scope.region, instance_id)


def _at(event: ProviderEvent) -> datetime:
    return event.termination_time or datetime.max.replace(tzinfo=UTC)


def _moment(value: object) -> datetime | None:
    if not isinstance(value, datetime):
        return None
    return value if value.tzinfo is not None else value.replace(tzinfo=UTC)
