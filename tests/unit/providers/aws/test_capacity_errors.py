"""EC2's words for a launch that came to nothing, one by one."""

from __future__ import annotations

from decimal import Decimal

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError

from providers.aws.capacity_errors import NO_CAPACITY, QUOTAS, launch_error
from providers.capacity import Offer
from providers.errors import (
    CapacityError,
    InvalidSpecError,
    LaunchDeferredError,
    LaunchDeniedError,
    LaunchEndedError,
    LaunchError,
    LaunchMismatchError,
    LaunchRejectedError,
    QuotaError,
    UnknownLaunchError,
)

OFFER = Offer(provider="aws", instance_type="g5.xlarge", region="eu-west-1", price_per_hour=Decimal(1))


def said(code: str, status: int = 400) -> ClientError:
    return ClientError(
        {"Error": {"Code": code, "Message": "because"}, "ResponseMetadata": {"HTTPStatusCode": status}},  # type: ignore[typeddict-item]
        "RunInstances",
    )


def meant(error: Exception) -> LaunchError:
    return launch_error(error, "w-1", OFFER)


@pytest.mark.parametrize("status", [400, 500])
@pytest.mark.parametrize("code", sorted(NO_CAPACITY))
def test_no_capacity_is_no_capacity_whatever_the_status(code: str, status: int):
    error = meant(said(code, status))

    assert type(error) is CapacityError
    assert (error.code, error.region) == (code, "eu-west-1")
    assert NO_CAPACITY[code] in error.message


@pytest.mark.parametrize("code", sorted(QUOTAS))
def test_a_quota_is_told_apart(code: str):
    error = meant(said(code))

    assert isinstance(error, QuotaError)
    assert (error.code, error.region) == (code, "eu-west-1")


def test_the_codes_that_a_control_plane_waits_for_are_all_known():
    known = NO_CAPACITY.keys() | QUOTAS.keys()

    assert known >= {
        "InsufficientInstanceCapacity",
        "InsufficientHostCapacity",
        "InsufficientReservedInstanceCapacity",
        "InsufficientCapacity",
        "SpotMaxPriceTooLow",
        "MaxSpotInstanceCountExceeded",
        "InstanceLimitExceeded",
        "VcpuLimitExceeded",
        "Unsupported",
    }
    assert not NO_CAPACITY.keys() & QUOTAS.keys()


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("RequestLimitExceeded", 503, LaunchDeferredError),
        ("RequestExpired", 400, LaunchDeferredError),
        ("UnauthorizedOperation", 403, LaunchDeniedError),
        ("PendingVerification", 400, LaunchDeniedError),
        ("AuthFailure.ServiceLinkedRoleCreationNotPermitted", 403, LaunchDeniedError),
        ("IdempotentParameterMismatch", 400, LaunchMismatchError),
        ("InvalidInstanceID.NotFound", 400, LaunchEndedError),
        ("InvalidParameterValue", 400, InvalidSpecError),
        ("MissingParameter", 400, InvalidSpecError),
        ("SomethingNew", 400, LaunchRejectedError),
        ("SomethingNew", 500, UnknownLaunchError),
        ("InternalError", 500, UnknownLaunchError),
        ("UnauthorizedOperation", 500, UnknownLaunchError),
        ("SomethingNew", 408, UnknownLaunchError),
    ],
)
def test_a_code_is_of_its_kind(code: str, status: int, kind: type[LaunchError]):
    error = meant(said(code, status))

    assert (type(error), error.error_code) == (kind, code)


def test_a_connection_that_failed_leaves_it_unknown():
    error = meant(ConnectTimeoutError(endpoint_url="http://127.0.0.1:1"))

    assert (type(error), error.error_code) == (UnknownLaunchError, "connect_timeout")


def test_a_message_says_who_what_where_and_why():
    assert str(meant(said("SomethingNew"))).startswith("w-1: g5.xlarge (spot) in aws/eu-west-1: SomethingNew: ")
