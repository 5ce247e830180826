"""The policies allow what is really sent: each request of a log is judged, with the tags of what it is about."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from providers.aws import (
    AwsOptions,
    aws_launcher,
    aws_lister,
    aws_organization,
    aws_quoter,
    aws_terminator,
    aws_type_lister,
)
from providers.aws.hooks import TERMINATING
from providers.aws.policy import Role, policy
from providers.capacity import Kind, Offer, Requirement, WorkerSpec
from providers.model import InstanceRef
from reaperd.clock import ManualClock
from tests.support.ec2 import FaultyEc2
from tests.support.iam import Request, Resource, allowed
from tests.unit.providers.aws.canned import NOW

ACCOUNT, REGION = "111111111111", "us-east-1"
FLEETS = {"ec2:DescribeFleets", "ec2:DescribeSpotFleetRequests"}
"""Asked about only where a machine says that it is a fleet's."""
SERVICES = {"GetCallerIdentity": "sts", "AssumeRole": "sts", "ListAccounts": "organizations"}
MADE = ["instance", "volume", "network-interface"]


@pytest.fixture
def cloud() -> Iterator[FaultyEc2]:
    with FaultyEc2(now=NOW) as started:
        yield started


def options(cloud: FaultyEc2) -> AwsOptions:
    return AwsOptions(
        name="aws",
        deployment="prod-eu",
        account=ACCOUNT,
        regions=(REGION,),
        split_by_zone=(REGION,),
        endpoint_url=cloud.url,
        max_attempts=1,
    )


def test_the_reapers_policy_is_enough_to_look_and_to_terminate(cloud: FaultyEc2):
    given = options(cloud)
    gone = cloud.add_instance(region=REGION, owner="prod-eu", worker="w-1", spot="persistent")
    (spot,) = cloud.spot_requests()
    cloud.change_spot_request(spot.request_id, tags={"reaperd:owner": "prod-eu"})
    foreign = cloud.add_instance(region=REGION, owner="prod-us", worker="w-2")
    lister = aws_lister(given, clock=ManualClock(NOW))

    lister.list_owned()
    lister.audit_instances()
    aws_terminator(given, clock=ManualClock(NOW)).terminate(InstanceRef("aws", REGION, gone))

    denied = [each.action for each in judged(cloud) if not allowed(policy(Role.REAPER, [given]), each)]
    assert denied == []
    assert {each.action for each in judged(cloud)} | {"sts:AssumeRole", *FLEETS} >= TERMINATING
    assert not allowed(policy(Role.REAPER, [given]), Request("ec2:TerminateInstances", [machine(cloud, foreign)]))


def test_the_auditors_policy_is_enough_to_look(cloud: FaultyEc2):
    given = options(cloud)
    lister = aws_lister(given, clock=ManualClock(NOW))

    lister.list_owned()
    lister.audit_instances()

    assert [each.action for each in judged(cloud) if not allowed(policy(Role.AUDITOR, [given]), each)] == []
    assert "ec2:DescribeInstances" in {each.action for each in judged(cloud)}


@pytest.mark.parametrize("role", [Role.AUDITOR, Role.REAPER])
def test_who_is_to_compare_with_the_organization_may_and_others_may_not(cloud: FaultyEc2, role: Role):
    given = options(cloud)

    aws_organization(given, clock=ManualClock(NOW)).look()

    (sent,) = judged(cloud)
    assert sent.action == "organizations:ListAccounts"
    assert allowed(policy(role, [given], organization=True), sent)
    assert not allowed(policy(role, [given]), sent)


@pytest.mark.parametrize("kind", Kind)
def test_the_launchers_policy_is_enough_to_ask_for_prices_and_to_launch(cloud: FaultyEc2, kind: Kind):
    given = options(cloud)
    place = {"instance_type": "g5.xlarge", "region": REGION, "zone": "us-east-1a", "price_per_hour": Decimal("0.42")}
    cloud.set_spot_price("g5.xlarge", "0.42", region=REGION)

    aws_quoter(given, clock=ManualClock(NOW)).quote(Requirement(model="m", instance_types=("g5.xlarge",)))
    aws_type_lister(given, clock=ManualClock(NOW)).list_instance_types()
    aws_launcher(given, clock=ManualClock(NOW)).launch(
        "w-1", Offer(provider="aws", kind=kind, **place), WorkerSpec(model="m", image="ami-1")
    )

    denied = [each.action for each in judged(cloud) if not allowed(policy(Role.LAUNCHER, [given]), each)]
    assert denied == []
    assert {"ec2:RunInstances", "ec2:CreateTags"} <= {each.action for each in judged(cloud)}


# ---------------------------------------------------------------- from a log to what AWS judges


def judged(cloud: FaultyEc2) -> list[Request]:
    """Return what AWS would ask of the policy for every request of the log."""
    return [each for exchange in cloud.requests() for each in asked(cloud, exchange.request)]


def asked(cloud: FaultyEc2, sent: Any) -> Iterator[Request]:
    service = SERVICES.get(sent.action, "ec2")
    action = f"{service}:{sent.action}"
    if sent.action == "TerminateInstances":
        yield Request(action, [machine(cloud, each) for each in sent.listed("InstanceId")])
    elif sent.action == "CancelSpotInstanceRequests":
        tags_by_id = {each.request_id: each.tags for each in cloud.spot_requests()}
        yield Request(action, [cancelled(each, tags_by_id[each]) for each in sent.listed("SpotInstanceRequestId")])
    elif sent.action == "RunInstances":
        tags = tags_of(sent.params)
        spot = ["spot-instances-request"] if sent.params.get("InstanceMarketOptions.MarketType") == "spot" else []
        made = [new(kind, tags.get(kind, {})) for kind in (*MADE, *spot)]
        used = [thing(f"arn:aws:ec2:{REGION}::image/ami-1")]
        used += [thing(f"arn:aws:ec2:{REGION}:{ACCOUNT}:{kind}/x") for kind in ("subnet", "security-group")]
        yield Request(action, [*made, *used])
        # A launch with tags asks for a second permission, for each kind that is tagged.
        yield Request("ec2:CreateTags", [new(kind, pairs, launch="RunInstances") for kind, pairs in tags.items()])
    else:
        yield Request(action)


def cancelled(request_id: str, tags: dict[str, str]) -> Resource:
    carried = {f"aws:ResourceTag/{key}": value for key, value in tags.items()}
    return thing(f"arn:aws:ec2:{REGION}:{ACCOUNT}:spot-instances-request/{request_id}", **carried)


def machine(cloud: FaultyEc2, instance_id: str) -> Resource:
    tags = {f"aws:ResourceTag/{key}": value for key, value in cloud.instance(instance_id).tags.items()}
    return thing(f"arn:aws:ec2:{REGION}:{ACCOUNT}:instance/{instance_id}", **tags)


def thing(arn: str, **keys: str) -> Resource:
    return Resource(arn, {"ec2:Region": REGION, **keys})


def new(kind: str, tags: dict[str, str], launch: str = "") -> Resource:
    keys = {f"aws:RequestTag/{key}": value for key, value in tags.items()}
    return thing(f"arn:aws:ec2:{REGION}:{ACCOUNT}:{kind}/*", **keys, **({"ec2:CreateAction": launch} if launch else {}))


def tags_of(params: dict[str, str]) -> dict[str, dict[str, str]]:
    """Return the tags of a launch by the kind of what gets them."""
    found: dict[str, dict[str, str]] = {}
    for name, value in params.items():
        parts = name.split(".")
        if parts[0] == "TagSpecification" and parts[-1] == "Key":
            kind = params[f"TagSpecification.{parts[1]}.ResourceType"]
            found.setdefault(kind, {})[value] = params[name.removesuffix("Key") + "Value"]
    return found
