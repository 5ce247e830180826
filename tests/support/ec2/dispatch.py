"""From a request to what the cloud says."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.support.ec2 import catalogue, describe, launching, launchpad, mutate, organizations, sts
from tests.support.ec2.protocol import (
    ORGANIZATIONS_ACTIONS,
    STS_ACTIONS,
    Answer,
    ApiError,
    ApiRequest,
    envelope,
    error_answer,
)
from tests.support.ec2.world import DISABLED, World

Handler = Callable[[World, ApiRequest], str]

HANDLERS: Mapping[str, Handler] = {
    "AssumeRole": sts.assume_role,
    "CancelSpotInstanceRequests": mutate.cancel_spot_instance_requests,
    "CreateTags": mutate.create_tags,
    "DeleteTags": mutate.delete_tags,
    "DescribeAvailabilityZones": describe.describe_availability_zones,
    "DescribeFleets": describe.describe_fleets,
    "DescribeImages": launchpad.describe_images,
    "DescribeInstanceAttribute": describe.describe_instance_attribute,
    "DescribeInstanceStatus": catalogue.describe_instance_status,
    "DescribeInstanceTypeOfferings": catalogue.describe_instance_type_offerings,
    "DescribeInstanceTypes": catalogue.describe_instance_types,
    "DescribeInstances": describe.describe_instances,
    "DescribeRegions": describe.describe_regions,
    "DescribeSecurityGroups": launchpad.describe_security_groups,
    "DescribeSpotInstanceRequests": describe.describe_spot_instance_requests,
    "DescribeSpotPriceHistory": describe.describe_spot_price_history,
    "DescribeSubnets": launchpad.describe_subnets,
    "DescribeTags": describe.describe_tags,
    "GetCallerIdentity": sts.get_caller_identity,
    "ListAccounts": organizations.list_accounts,
    "ModifyInstanceAttribute": mutate.modify_instance_attribute,
    "RunInstances": launching.run_instances,
    "StartInstances": mutate.start_instances,
    "StopInstances": mutate.stop_instances,
    "TerminateInstances": mutate.terminate_instances,
}
PRETENCES: Mapping[str, Handler] = {"TerminateInstances": mutate.pretend_to_terminate}
"""What answers when a request is accepted and nothing happens."""


def answer(world: World, request: ApiRequest, handlers: Mapping[str, Handler] = HANDLERS) -> Answer:
    """Return the answer, an error document included."""
    try:
        return envelope(request.action, _content(world, request, handlers))
    except ApiError as error:
        return error_answer(request.action, error)


def _content(world: World, request: ApiRequest, handlers: Mapping[str, Handler]) -> str:
    handler = handlers.get(request.action)
    if handler is None:
        message = f"The action {request.action} is not valid for this web service."
        raise ApiError(message, code="InvalidAction")
    if request.action not in STS_ACTIONS | ORGANIZATIONS_ACTIONS and world.regions.get(request.region) == DISABLED:
        message = "AWS was not able to validate the provided access credentials"
        raise ApiError(message, code="AuthFailure")
    if request.dry_run and not request.mutating:
        mutate.refuse_dry_run(request)
    return handler(world, request)
