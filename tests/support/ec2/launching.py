"""RunInstances."""

from __future__ import annotations

import base64
import binascii

from tests.support.ec2 import rendering
from tests.support.ec2.model import Machine, SpotRequest, timestamp
from tests.support.ec2.mutate import refuse_dry_run, tags_in
from tests.support.ec2.protocol import ApiError, ApiRequest
from tests.support.ec2.world import World


def run_instances(world: World, request: ApiRequest) -> str:
    """Launch, once for each client token; the same token with other parameters is an error.

    A token is of the zone that is asked for, or of the region when none is: in another zone the same token launches.
    """
    count = _count(request)
    zone = _zone(world, request)
    _require_taggable(request)
    user_data = _user_data(request)
    refuse_dry_run(request)
    token = request.params.get("ClientToken", "")
    key = (request.account, request.region, zone or "", token)
    if token and key in world.launches:
        machines = _launched_before(world, request, *world.launches[key])
    else:
        machines = _launch(world, request, count)
        for machine in machines:
            machine.az = zone or machine.az
            machine.user_data = user_data
        world.launches[key] = (request.params, [m.instance_id for m in machines])
    first = machines[0]
    return rendering.reservation(first.reservation_id, first.owner_id, machines)


def _count(request: ApiRequest) -> int:
    """Capacity is never short here, so there will be as many as there may be."""
    low, high = (int(request.params.get(name, "0")) for name in ("MinCount", "MaxCount"))
    if not 1 <= low <= high:
        message = "MinCount and MaxCount must be at least 1, and MaxCount not less than MinCount"
        raise ApiError(message, code="InvalidParameterValue")
    return high


def _zone(world: World, request: ApiRequest) -> str | None:
    """Return the zone that is asked for, by itself or by a subnet."""
    asked, subnet_id = (request.params.get(name) for name in ("Placement.AvailabilityZone", "SubnetId"))
    if subnet_id is None:
        return asked
    subnet = world.subnets.get(subnet_id)
    if subnet is None or subnet.region != request.region:
        message = f"The subnet ID '{subnet_id}' does not exist"
        raise ApiError(message, code="InvalidSubnetID.NotFound")
    if asked not in {None, subnet.az}:
        message = f"The subnet {subnet_id} is in {subnet.az}, not in {asked}"
        raise ApiError(message, code="InvalidParameterCombination")
    return subnet.az


def _require_taggable(request: ApiRequest) -> None:
    is_spot = request.params.get("InstanceMarketOptions.MarketType") == "spot"
    if not is_spot and _specified_tags(request, "spot-instances-request"):
        message = "'spot-instances-request' is not a valid taggable resource type for this operation."
        raise ApiError(message, code="InvalidParameterValue")


def _user_data(request: ApiRequest) -> str:
    """Return what a machine will read: EC2 decodes once."""
    try:
        data = base64.b64decode(request.params.get("UserData", ""), validate=True)
    except binascii.Error as error:
        message = "Invalid BASE64 encoding of user data"
        raise ApiError(message, code="InvalidUserData.Malformed") from error
    if len(data) > 16384:
        message = "User data is limited to 16384 bytes"
        raise ApiError(message, code="InvalidParameterValue")
    return data.decode(errors="replace")


def _launched_before(world: World, request: ApiRequest, params: object, ids: list[str]) -> list[Machine]:
    if params != request.params:
        message = "Arguments on this idempotent request are inconsistent with arguments used in previous request(s)."
        raise ApiError(message, code="IdempotentParameterMismatch")
    found = [world.machines.get((request.region, instance_id)) for instance_id in ids]
    if any(machine is None for machine in found):
        message = "The instances of this client token are gone"
        raise ApiError(message, code="InvalidInstanceID.NotFound")
    return [machine for machine in found if machine]


def _launch(world: World, request: ApiRequest, count: int) -> list[Machine]:
    reservation_id, _ = world.new_id("r")
    return [world.launch(_machine(world, request, reservation_id)) for _ in range(count)]


def _machine(world: World, request: ApiRequest, reservation_id: str) -> Machine:
    params = request.params
    instance_id, serial = world.new_id()
    now = timestamp(world.clock.now())
    return Machine(
        instance_id=instance_id,
        region=request.region,
        account=request.account,
        owner_id=request.account,
        serial=serial,
        reservation_id=reservation_id,
        az=params.get("Placement.AvailabilityZone", f"{request.region}a"),
        launched_at=now,
        attached_at=now,
        instance_type=params.get("InstanceType", "m1.small"),
        image_id=params.get("ImageId", "ami-0b5eea76982371e91"),
        tags=_specified_tags(request, "instance"),
        protected=params.get("DisableApiTermination", "").lower() == "true",
        spot_request_id=_spot_request(world, request, instance_id),
        client_token=params.get("ClientToken", ""),
        subnet_id=params.get("SubnetId"),
        groups=tuple(request.listed("SecurityGroupId")),
        profile=params.get("IamInstanceProfile.Arn") or params.get("IamInstanceProfile.Name"),
        on_shutdown=params.get("InstanceInitiatedShutdownBehavior", "stop"),
        volume_tags=_specified_tags(request, "volume"),
        interface_tags=_specified_tags(request, "network-interface"),
    )


def _spot_request(world: World, request: ApiRequest, instance_id: str) -> str | None:
    if request.params.get("InstanceMarketOptions.MarketType") != "spot":
        return None
    request_id = f"sir-{world.serial():08x}"
    world.spot_requests[request.region, request_id] = SpotRequest(
        request_id=request_id,
        region=request.region,
        account=request.account,
        kind=request.params.get("InstanceMarketOptions.SpotOptions.SpotInstanceType", "one-time"),
        instance_id=instance_id,
        created_at=timestamp(world.clock.now()),
        tags=_specified_tags(request, "spot-instances-request"),
    )
    return request_id


def _specified_tags(request: ApiRequest, resource_type: str) -> dict[str, str]:
    tags: dict[str, str] = {}
    number = 1
    while kind := request.params.get(f"TagSpecification.{number}.ResourceType"):
        if kind == resource_type:
            tags |= tags_in(request, f"TagSpecification.{number}.Tag")
        number += 1
    return tags
