"""What types of machine there are, and what the cloud has announced for machines: more of the actions that read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.support.ec2 import rendering
from tests.support.ec2.filters import predicate
from tests.support.ec2.lookup import machines_named
from tests.support.ec2.model import STATE_CODES, Machine, MachineType
from tests.support.ec2.paging import Cut, cut
from tests.support.ec2.protocol import ApiError, ApiRequest
from tests.support.ec2.world import World

_TYPES_A_PAGE = 100
_STATUS_FILTERS: Any = {
    "availability-zone": lambda m: [m.az],
    "event.code": lambda m: [code for code, _ in m.scheduled],
    "instance-state-name": lambda m: [m.state],
}


def describe_instance_types(world: World, request: ApiRequest) -> str:
    """Answer with what the types of the region have. No more than a hundred stand on a page."""
    if int(request.params.get("MaxResults", "0")) > _TYPES_A_PAGE:
        message = f"Value ( {request.params['MaxResults']} ) for parameter maxResults is invalid."
        raise ApiError(message, code="InvalidParameterValue")
    wanted = request.listed("InstanceType")
    rows = [each for each in world.types if request.region in each.described and (not wanted or each.name in wanted)]
    return _page(request, rows, "instanceTypeSet", _described, world, {"instance-type": lambda each: [each.name]})


def describe_instance_type_offerings(world: World, request: ApiRequest) -> str:
    """Answer with what the region offers."""
    rows = [each for each in world.types if request.region in each.offered]
    where = rendering.leaf("locationType", "region") + rendering.leaf("location", request.region)
    return _page(
        request,
        rows,
        "instanceTypeOfferingSet",
        lambda each: rendering.leaf("instanceType", each.name) + where,
        world,
        {"instance-type": lambda each: [each.name]},
    )


def describe_instance_status(world: World, request: ApiRequest) -> str:
    """Answer with what is planned for machines: for those that run, unless all are asked for."""
    ids = request.listed("InstanceId")
    if ids and "MaxResults" in request.params:
        message = "The parameter instancesSet cannot be used with the parameter maxResults"
        raise ApiError(message, code="InvalidParameterCombination")
    rows = machines_named(world, request, ids) if ids else world.machines_of(request.account, request.region)
    every = request.params.get("IncludeAllInstances", "").lower() == "true"
    rows = [machine for machine in rows if every or machine.state == "running"]
    return _page(request, rows, "instanceStatusSet", _status, world, _STATUS_FILTERS)


def _page(request: ApiRequest, rows: list[Any], name: str, render: Any, world: World, filters: Any) -> str:
    positions = {id(row): index for index, row in enumerate(rows)}
    how = Cut(
        matches=predicate(request.filters(), filters),
        position=lambda row: positions[id(row)],
        at_most=world.settings.page_size,
    )
    page = cut(request, rows, how)
    return rendering.items(name, map(render, page.rows)) + page.next_token()


def _described(each: MachineType) -> str:
    return (
        rendering.leaf("instanceType", each.name)
        + rendering.group("vCpuInfo", rendering.leaf("defaultVCpus", each.vcpus))
        + rendering.group("memoryInfo", rendering.leaf("sizeInMiB", each.memory_mib))
        + (_gpus(each.gpus) if each.gpus else "")
    )


def _gpus(gpus: Iterable[tuple[str, int]]) -> str:
    each = (rendering.leaf("name", name) + rendering.leaf("count", count) for name, count in gpus)
    return rendering.group("gpuInfo", rendering.items("gpus", each))


def _status(machine: Machine) -> str:
    return (
        rendering.leaf("instanceId", machine.instance_id)
        + rendering.leaf("availabilityZone", machine.az)
        + rendering.group(
            "instanceState",
            rendering.leaf("code", STATE_CODES[machine.state]),
            rendering.leaf("name", machine.state),
        )
        + rendering.items("eventsSet", (_event(machine, *event) for event in machine.scheduled))
    )


def _event(machine: Machine, code: str, not_before: str) -> str:
    return (
        rendering.leaf("instanceEventId", f"instance-event-{machine.serial:016x}")
        + rendering.leaf("code", code)
        + rendering.leaf("description", f"{machine.schedule_note}The instance is running on degraded hardware")
        + rendering.leaf("notBefore", not_before)
    )
