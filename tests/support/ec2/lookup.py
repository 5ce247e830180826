"""Finding what a request names, with EC2's errors for what is not there."""

from __future__ import annotations

import re

from tests.support.ec2.model import Machine, SpotRequest
from tests.support.ec2.protocol import ApiError, ApiRequest
from tests.support.ec2.world import World

_WELL_FORMED = re.compile(r"i-[0-9a-f]{8}(?:[0-9a-f]{9})?")


def machines_named(world: World, request: ApiRequest, ids: list[str]) -> list[Machine]:
    """Return the machines, once each, or fail as a whole.

    An id that there ever was is not malformed: scenarios use short ones.
    """
    if not ids:
        message = "The request must contain the parameter InstanceId"
        raise ApiError(message, code="MissingParameter")
    unique = list(dict.fromkeys(ids))
    found = {i: world.machine(request.account, request.region, i) for i in unique}
    absent = [i for i, machine in found.items() if machine is None]
    if malformed := [i for i in absent if not _WELL_FORMED.fullmatch(i) and i not in world.ever]:
        message = f'Invalid id: "{malformed[0]}"'
        raise ApiError(message, code="InvalidInstanceID.Malformed")
    if absent:
        what = f"IDs '{', '.join(absent)}' do" if len(absent) > 1 else f"ID '{absent[0]}' does"
        message = f"The instance {what} not exist"
        raise ApiError(message, code="InvalidInstanceID.NotFound")
    return [machine for machine in found.values() if machine]


def spot_requests_named(world: World, request: ApiRequest, ids: list[str]) -> list[SpotRequest]:
    """Return the spot requests or fail as a whole."""
    found: list[SpotRequest] = []
    for request_id in dict.fromkeys(ids):
        spot = world.spot_requests.get((request.region, request_id))
        if spot is None or spot.account != request.account:
            message = f"The spot instance request ID '{request_id}' does not exist"
            raise ApiError(message, code="InvalidSpotInstanceRequestID.NotFound")
        found.append(spot)
    return found
