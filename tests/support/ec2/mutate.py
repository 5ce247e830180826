"""The actions that change something."""

from __future__ import annotations

from collections.abc import Iterable

from tests.support.ec2 import rendering
from tests.support.ec2.buckets import MACHINES, REQUESTS
from tests.support.ec2.lookup import machines_named, spot_requests_named
from tests.support.ec2.model import Fleet, Machine, SpotRequest, timestamp
from tests.support.ec2.protocol import ApiError, ApiRequest
from tests.support.ec2.world import World


def terminate_instances(world: World, request: ApiRequest) -> str:
    """End machines: all named must exist; a protected one fails its zone's share, and the call."""
    ids = request.listed("InstanceId")
    if len(ids) > 1000:
        message = "The maximum number of instance ids in a request is 1000"
        raise ApiError(message, code="InvalidParameterValue")
    _count(world, request, REQUESTS, 1)
    machines = machines_named(world, request, ids)
    refuse_dry_run(request)
    _count(world, request, MACHINES, len(machines))
    if managed := next((m for m in machines if m.operator), None):
        message = f"The instance '{managed.instance_id}' is managed by {managed.operator} and may not be terminated"
        raise ApiError(message, code="OperationNotPermitted")
    guarded = {m.az: m.instance_id for m in machines if m.protected and m.live}
    ended = [m for m in machines if m.az not in guarded]
    before = {m.instance_id: m.state for m in ended}
    for machine in ended:
        if machine.live:
            world.shut_down(machine)
    world.accepted.extend((m.region, m.instance_id) for m in ended)
    if guarded:
        culprit = min(guarded.values())
        message = (
            f"The instance '{culprit}' may not be terminated. Modify its 'disableApiTermination' "
            "instance attribute and try again."
        )
        raise ApiError(message, code="OperationNotPermitted")
    return rendering.state_changes((m.instance_id, before[m.instance_id], m.state) for m in ended)


def _count(world: World, request: ApiRequest, kind: str, amount: int) -> None:
    if not world.settings.throttled or request.dry_run:
        return
    if not world.buckets.take(request.account, request.region, kind, amount=amount, now=world.clock.now()):
        message = "Request limit exceeded."
        raise ApiError(message, code="RequestLimitExceeded")


def pretend_to_terminate(world: World, request: ApiRequest) -> str:
    """Answer as if the machines were told to end, and do nothing."""
    machines = machines_named(world, request, request.listed("InstanceId"))
    refuse_dry_run(request)
    world.accepted.extend((m.region, m.instance_id) for m in machines)
    return rendering.state_changes((m.instance_id, m.state, "shutting-down") for m in machines)


def start_instances(world: World, request: ApiRequest) -> str:
    """Start stopped machines, which sets their launch time anew."""
    machines = machines_named(world, request, request.listed("InstanceId"))
    refuse_dry_run(request)
    _require_state(machines, {"stopped", "pending", "running"})
    changes = []
    for machine in machines:
        before = machine.state
        if before == "stopped":
            machine.launched_at = timestamp(world.clock.now())
            world.launch(machine)
        changes.append((machine.instance_id, before, machine.state))
    return rendering.state_changes(changes)


def stop_instances(world: World, request: ApiRequest) -> str:
    """Stop running machines."""
    machines = machines_named(world, request, request.listed("InstanceId"))
    refuse_dry_run(request)
    _require_state(machines, {"running", "stopping", "stopped"})
    changes = []
    for machine in machines:
        before = machine.state
        if before == "running":
            machine.state = "stopping"
            world.after(world.settings.stop_s, "stop", machine)
        changes.append((machine.instance_id, before, machine.state))
    return rendering.state_changes(changes)


def _require_state(machines: list[Machine], allowed: set[str]) -> None:
    if wrong := next((m for m in machines if m.state not in allowed), None):
        message = f"The instance '{wrong.instance_id}' is not in a state from which it can be started or stopped."
        raise ApiError(message, code="IncorrectInstanceState")


def cancel_spot_instance_requests(world: World, request: ApiRequest) -> str:
    """Cancel spot requests; their machines go on."""
    requests = spot_requests_named(world, request, request.listed("SpotInstanceRequestId"))
    refuse_dry_run(request)
    for spot in requests:
        spot.state = "cancelled"
    rows = (rendering.leaf("spotInstanceRequestId", s.request_id) + rendering.leaf("state", s.state) for s in requests)
    return rendering.items("spotInstanceRequestSet", rows)


def modify_instance_attribute(world: World, request: ApiRequest) -> str:
    """Set or lift the termination protection. The request log keeps who did."""
    (machine,) = machines_named(world, request, [request.params.get("InstanceId", "")])
    refuse_dry_run(request)
    if value := request.params.get("DisableApiTermination.Value"):
        machine.protected = value.lower() == "true"
    return _DONE


def create_tags(world: World, request: ApiRequest) -> str:
    """Set tags on machines, spot requests and fleets."""
    holders = _holders(world, request)
    tags = tags_in(request, "Tag")
    refuse_dry_run(request)
    if reserved := next((key for key in tags if key.lower().startswith("aws:")), None):
        message = f"Tag keys starting with 'aws:' are reserved for internal use: {reserved}"
        raise ApiError(message, code="InvalidParameterValue")
    for holder in holders:
        holder.tags.update(tags)
    return _DONE


def delete_tags(world: World, request: ApiRequest) -> str:
    """Take tags away; one with a value only where it has that value."""
    holders = _holders(world, request)
    count = sum(1 for name in request.params if name.startswith("Tag.") and name.endswith(".Key"))
    wanted = [(request.params[f"Tag.{n}.Key"], request.params.get(f"Tag.{n}.Value")) for n in range(1, count + 1)]
    refuse_dry_run(request)
    for holder in holders:
        for key, value in wanted or [(key, None) for key in holder.tags]:
            if value is None or holder.tags.get(key) == value:
                holder.tags.pop(key, None)
    return _DONE


def tags_in(request: ApiRequest, prefix: str) -> dict[str, str]:
    """Return the tags of Prefix.N.Key and Prefix.N.Value."""
    tags: dict[str, str] = {}
    number = 1
    while (key := request.params.get(f"{prefix}.{number}.Key")) is not None:
        tags[key] = request.params.get(f"{prefix}.{number}.Value", "")
        number += 1
    return tags


def refuse_dry_run(request: ApiRequest) -> None:
    """End a request that only asks whether it would be done."""
    if request.dry_run:
        message = "Request would have succeeded, but DryRun flag is set."
        raise ApiError(message, code="DryRunOperation")


def _holders(world: World, request: ApiRequest) -> list[Machine | SpotRequest | Fleet]:
    return list(_each_holder(world, request))


def _each_holder(world: World, request: ApiRequest) -> Iterable[Machine | SpotRequest | Fleet]:
    for resource_id in request.listed("ResourceId"):
        key = (request.region, resource_id)
        holder = world.machines.get(key) or world.spot_requests.get(key) or world.fleets.get(key)
        if holder is None or holder.account != request.account:
            message = f"The ID '{resource_id}' is not valid"
            raise ApiError(message, code="InvalidID")
        yield holder


_DONE = rendering.flag("return", value=True)
