"""The actions that read."""

from __future__ import annotations

from typing import Any

from tests.support.ec2 import rendering
from tests.support.ec2.filters import (
    FLEET_FILTERS,
    MACHINE_FILTERS,
    PRICE_FILTERS,
    REGION_FILTERS,
    SPOT_FILTERS,
    predicate,
)
from tests.support.ec2.lookup import machines_named, spot_requests_named
from tests.support.ec2.model import Fleet, SpotRequest
from tests.support.ec2.paging import Cut, cut
from tests.support.ec2.protocol import ApiError, ApiRequest
from tests.support.ec2.world import DISABLED, World


def describe_instances(world: World, request: ApiRequest) -> str:
    """Answer with a page, or with the machines named; managed ones may be hidden."""
    ids = request.listed("InstanceId")
    if ids and "MaxResults" in request.params:
        message = "The parameter instancesSet cannot be used with the parameter maxResults"
        raise ApiError(message, code="InvalidParameterCombination")
    include_hidden = request.params.get("IncludeManagedResources", "").lower() == "true"
    rows = machines_named(world, request, ids) if ids else world.machines_of(request.account, request.region)
    rows = [machine for machine in rows if include_hidden or not machine.hidden]
    how = Cut(
        matches=predicate(request.filters(), MACHINE_FILTERS),
        position=lambda machine: machine.serial,
        at_most=world.settings.page_size,
        plan=world.page_plans.get(request.region, ()) if not ids else (),
        before_filter=world.settings.cut_before_filter,
    )
    page = cut(request, rows, how)
    return rendering.reservations(page.rows) + page.next_token()


def describe_spot_instance_requests(world: World, request: ApiRequest) -> str:
    """Answer with spot requests."""
    ids = request.listed("SpotInstanceRequestId")
    own = [s for s in world.spot_requests.values() if (s.account, s.region) == (request.account, request.region)]
    rows: list[SpotRequest] = spot_requests_named(world, request, ids) if ids else own
    page = cut(request, rows, _indexed(rows, predicate(request.filters(), SPOT_FILTERS)))
    return rendering.spot_requests(page.rows) + page.next_token()


def describe_fleets(world: World, request: ApiRequest) -> str:
    """Answer with fleets; an instant one only when it is named."""
    ids = request.listed("FleetId")
    rows: list[Fleet] = [
        fleet
        for fleet in world.fleets.values()
        if (fleet.account, fleet.region) == (request.account, request.region)
        and (fleet.fleet_id in ids if ids else fleet.kind != "instant")
    ]
    if missing := set(ids) - {fleet.fleet_id for fleet in rows}:
        message = f"The fleet ID '{min(missing)}' does not exist"
        raise ApiError(message, code="InvalidFleetId.NotFound")
    page = cut(request, rows, _indexed(rows, predicate(request.filters(), FLEET_FILTERS)))
    return rendering.fleets(page.rows) + page.next_token()


def describe_spot_price_history(world: World, request: ApiRequest) -> str:
    """Answer with the current price of each pool, as AWS does for StartTime=now; there is no history."""
    types, products = request.listed("InstanceType"), request.listed("ProductDescription")
    matches = predicate(request.filters(), PRICE_FILTERS)
    rows = [
        row
        for row in world.spot_prices
        if row.region == request.region
        and (not types or row.instance_type in types)
        and (not products or row.product in products)
        and request.params.get("AvailabilityZone", row.az) == row.az
    ]
    page = cut(request, rows, _indexed(rows, matches, smallest=1))
    return rendering.spot_prices(page.rows) + page.next_token()


def describe_availability_zones(world: World, request: ApiRequest) -> str:
    """Answer with the zones that are enabled; with all of them when asked."""
    everything = request.params.get("AllAvailabilityZones", "").lower() == "true"
    rows = (
        rendering.leaf("zoneName", zone.name)
        + rendering.leaf("zoneState", zone.state)
        + rendering.leaf("regionName", request.region)
        + rendering.leaf("zoneType", zone.kind)
        + rendering.leaf("optInStatus", zone.opted)
        for zone in world.zones_of(request.region)
        if everything or zone.opted != DISABLED
    )
    return rendering.items("availabilityZoneInfo", rows)


def describe_regions(world: World, request: ApiRequest) -> str:
    """Answer with the enabled regions; with all of them when asked."""
    names = request.listed("RegionName")
    if unknown := [name for name in names if name not in world.regions]:
        message = f"Invalid region names provided: {', '.join(unknown)}"
        raise ApiError(message, code="InvalidParameterValue")
    everything = request.params.get("AllRegions", "").lower() == "true"
    matches = predicate(request.filters(), REGION_FILTERS)
    rows = (
        rendering.leaf("regionName", name)
        + rendering.leaf("regionEndpoint", f"ec2.{name}.amazonaws.com")
        + rendering.leaf("optInStatus", status)
        for name, status in world.regions.items()
        if (everything or status != DISABLED) and (not names or name in names) and matches((name, status))
    )
    return rendering.items("regionInfo", rows)


def describe_tags(world: World, request: ApiRequest) -> str:
    """Answer with one row for each tag of each resource."""
    rows = _tag_rows(world, request)
    known: dict[str, Any] = {
        "key": lambda row: [row[2]],
        "resource-id": lambda row: [row[0]],
        "resource-type": lambda row: [row[1]],
        "value": lambda row: [row[3]],
    }
    page = cut(request, rows, _indexed(rows, predicate(request.filters(), known)))
    names = ("resourceId", "resourceType", "key", "value")
    rendered = ("".join(rendering.leaf(n, v) for n, v in zip(names, row, strict=True)) for row in page.rows)
    return rendering.items("tagSet", rendered) + page.next_token()


def _tag_rows(world: World, request: ApiRequest) -> list[tuple[str, str, str, str]]:
    tagged = [
        *((m.instance_id, "instance", m) for m in world.machines.values()),
        *((s.request_id, "spot-instances-request", s) for s in world.spot_requests.values()),
        *((f.fleet_id, "fleet", f) for f in world.fleets.values()),
    ]
    return [
        (resource_id, kind, key, value)
        for resource_id, kind, holder in tagged
        if (holder.account, holder.region) == (request.account, request.region)
        for key, value in holder.tags.items()
    ]


def describe_instance_attribute(world: World, request: ApiRequest) -> str:
    """Answer whether the machine is protected; no other attribute is kept."""
    (machine,) = machines_named(world, request, [request.params.get("InstanceId", "")])
    attribute = request.params.get("Attribute", "")
    if attribute != "disableApiTermination":
        message = f"The test cloud keeps no attribute {attribute!r}"
        raise ApiError(message, code="InvalidParameterValue")
    protection = rendering.group("disableApiTermination", rendering.flag("value", machine.protected))
    return rendering.leaf("instanceId", machine.instance_id) + protection


def _indexed(rows: list[Any], matches: Any, smallest: int = 5) -> Cut:
    positions = {id(row): index for index, row in enumerate(rows)}
    return Cut(matches=matches, position=lambda row: positions[id(row)], smallest=smallest)
