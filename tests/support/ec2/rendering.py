"""The XML of what the cloud holds, in the shapes that botocore's EC2 model names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from xml.sax.saxutils import escape

from tests.support.ec2.model import STATE_CODES, Fleet, Image, Machine, SecurityGroup, SpotPrice, SpotRequest, Subnet

_VPC = "vpc-0a9d8e7f6c5b4a321"
_SUBNET = "subnet-0c32f1d7a8b9e4f61"


def leaf(name: str, value: object) -> str:
    """Render an element with text; nothing for None."""
    return "" if value is None else f"<{name}>{escape(str(value))}</{name}>"


def flag(name: str, value: object) -> str:
    """Render a boolean."""
    return f"<{name}>{'true' if value else 'false'}</{name}>"


def group(name: str, *content: str) -> str:
    """Render an element around others."""
    return f"<{name}>{''.join(content)}</{name}>"


def items(name: str, rows: Iterable[str]) -> str:
    """Render a list."""
    return group(name, *(group("item", row) for row in rows))


def tag_set(tags: Mapping[str, str]) -> str:
    """Render tags; a resource without any has no such element."""
    return items("tagSet", (leaf("key", k) + leaf("value", v) for k, v in tags.items())) if tags else ""


def reservations(machines: Iterable[Machine]) -> str:
    """Render a page of DescribeInstances; neighbours of one launch share their reservation."""
    grouped = groupby(machines, key=lambda m: (m.reservation_id, m.owner_id))
    return items("reservationSet", (reservation(key[0], key[1], list(members)) for key, members in grouped))


def reservation(reservation_id: str, owner_id: str, machines: list[Machine]) -> str:
    """Render one launch."""
    return (
        leaf("reservationId", reservation_id)
        + leaf("ownerId", owner_id)
        + "<groupSet/>"
        + items("instancesSet", (instance(m) for m in machines))
    )


def instance(machine: Machine) -> str:
    """Render an instance without the fields that it is to lack."""
    fields = _always(machine)
    if machine.state != "terminated":
        fields |= _network(machine)
    return "".join(xml for name, xml in fields.items() if name not in machine.missing_fields)


def _always(machine: Machine) -> dict[str, str]:
    return {
        "InstanceId": leaf("instanceId", machine.instance_id),
        "ImageId": leaf("imageId", machine.image_id),
        "State": state("instanceState", machine.state),
        "StateTransitionReason": leaf("reason", "" if machine.live else "User initiated"),
        "AmiLaunchIndex": leaf("amiLaunchIndex", 0),
        "ProductCodes": "<productCodes/>",
        "InstanceType": leaf("instanceType", machine.instance_type),
        "LaunchTime": leaf("launchTime", machine.launched_at),
        "Placement": group("placement", leaf("availabilityZone", machine.az), leaf("tenancy", "default")),
        "Monitoring": group("monitoring", leaf("state", "disabled")),
        "StateReason": "" if machine.live else _STATE_REASON,
        "Architecture": leaf("architecture", "x86_64"),
        "RootDeviceType": leaf("rootDeviceType", "ebs"),
        "RootDeviceName": leaf("rootDeviceName", "/dev/sda1"),
        "InstanceLifecycle": leaf("instanceLifecycle", "spot" if machine.spot_request_id else None),
        "SpotInstanceRequestId": leaf("spotInstanceRequestId", machine.spot_request_id),
        "ClientToken": leaf("clientToken", machine.client_token),
        "Tags": tag_set(machine.tags),
        "Operator": _operator(machine),
    }


_STATE_REASON = group(
    "stateReason",
    leaf("code", "Client.UserInitiatedShutdown"),
    leaf("message", "Client.UserInitiatedShutdown: User initiated shutdown"),
)


def _network(machine: Machine) -> dict[str, str]:
    address = f"10.{machine.serial >> 16 & 255}.{machine.serial >> 8 & 255}.{machine.serial & 255}"
    name = f"ip-{address.replace('.', '-')}.{machine.region}.compute.internal"
    attachment = group(
        "attachment",
        leaf("attachmentId", f"eni-attach-{machine.serial:017x}"),
        leaf("deviceIndex", 0),
        leaf("status", "attached"),
        leaf("attachTime", machine.attached_at),
        flag("deleteOnTermination", value=True),
    )
    interface = (
        leaf("networkInterfaceId", f"eni-{machine.serial:017x}")
        + leaf("subnetId", machine.subnet_id or _SUBNET)
        + leaf("vpcId", _VPC)
        + leaf("ownerId", machine.owner_id)
        + leaf("status", "in-use")
        + leaf("privateIpAddress", address)
        + attachment
    )
    return {
        "PrivateDnsName": leaf("privateDnsName", name),
        "PrivateIpAddress": leaf("privateIpAddress", address),
        "SubnetId": leaf("subnetId", machine.subnet_id or _SUBNET),
        "VpcId": leaf("vpcId", _VPC),
        "NetworkInterfaces": items("networkInterfaceSet", [interface]),
    }


def _operator(machine: Machine) -> str:
    if machine.operator is None:
        return group("operator", flag("managed", value=False))
    principal = leaf("principal", machine.operator)
    return group("operator", flag("managed", value=True), principal, flag("hiddenByDefault", machine.hidden))


def state(name: str, value: str) -> str:
    """Render an instance state."""
    return group(name, leaf("code", STATE_CODES[value]), leaf("name", value))


def state_changes(changes: Iterable[tuple[str, str, str]]) -> str:
    """Render (id, before, after) of machines told to change."""
    rows = (leaf("instanceId", i) + state("currentState", after) + state("previousState", b) for i, b, after in changes)
    return items("instancesSet", rows)


def spot_requests(requests: Iterable[SpotRequest]) -> str:
    """Render spot requests."""
    return items("spotInstanceRequestSet", (_spot_request(r) for r in requests))


def _spot_request(request: SpotRequest) -> str:
    return (
        leaf("spotInstanceRequestId", request.request_id)
        + leaf("type", request.kind)
        + leaf("state", request.state)
        + leaf("instanceId", request.instance_id)
        + leaf("createTime", request.created_at)
        + group(
            "status",
            leaf("code", request.status_code),
            leaf("updateTime", request.status_at or request.created_at or None),
        )
        + leaf("productDescription", "Linux/UNIX")
        + leaf("instanceInterruptionBehavior", "terminate")
        + tag_set(request.tags)
    )


def spot_prices(rows: Iterable[SpotPrice]) -> str:
    """Render spot prices."""
    return items("spotPriceHistorySet", (_spot_price(row) for row in rows))


def _spot_price(row: SpotPrice) -> str:
    return (
        leaf("instanceType", row.instance_type)
        + leaf("productDescription", row.product)
        + leaf("spotPrice", row.price)
        + leaf("timestamp", row.since)
        + leaf("availabilityZone", row.az)
    )


def images(rows: Iterable[Image]) -> str:
    """Render images."""
    return items("imagesSet", (_image(row) for row in rows))


def _image(image: Image) -> str:
    return (
        leaf("imageId", image.image_id)
        + leaf("imageState", image.state)
        + leaf("imageOwnerId", image.account)
        + leaf("creationDate", image.created_at)
        + tag_set(image.tags)
    )


def subnets(rows: Iterable[Subnet]) -> str:
    """Render subnets."""
    return items("subnetSet", (_subnet(row) for row in rows))


def _subnet(subnet: Subnet) -> str:
    return (
        leaf("subnetId", subnet.subnet_id)
        + leaf("vpcId", subnet.vpc_id)
        + leaf("availabilityZone", subnet.az)
        + leaf("state", "available")
        + tag_set(subnet.tags)
    )


def security_groups(rows: Iterable[SecurityGroup]) -> str:
    """Render security groups."""
    return items("securityGroupInfo", (_security_group(row) for row in rows))


def _security_group(security_group: SecurityGroup) -> str:
    return (
        leaf("groupId", security_group.group_id)
        + leaf("groupName", security_group.group_id)
        + leaf("vpcId", security_group.vpc_id)
        + leaf("ownerId", security_group.account)
        + tag_set(security_group.tags)
    )


def fleets(rows: Iterable[Fleet]) -> str:
    """Render fleets."""
    return items("fleetSet", (_fleet(row) for row in rows))


def _fleet(fleet: Fleet) -> str:
    return (
        leaf("fleetId", fleet.fleet_id)
        + leaf("fleetState", fleet.state)
        + leaf("type", fleet.kind)
        + leaf("createTime", fleet.created_at)
        + tag_set(fleet.tags)
    )
