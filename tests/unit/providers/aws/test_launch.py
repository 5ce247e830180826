"""One launch: what is asked of EC2, and what its answers mean for the worker."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from mypy_boto3_ec2 import EC2Client

from providers.aws import AwsLauncher, AwsLaunchOptions, MutatingRequestError, aws_launcher, aws_provider
from providers.aws.hooks import LAUNCHING
from providers.aws.session import AwsSessions
from providers.base import InstanceAuditor, Provider
from providers.capacity import Kind, Offer, Requirement, WorkerSpec
from providers.cheapest import launch_cheapest
from providers.errors import (
    CapacityError,
    InvalidSpecError,
    LaunchDeferredError,
    LaunchDeniedError,
    LaunchEndedError,
    LaunchError,
    LaunchMismatchError,
    LaunchRejectedError,
    ProviderSetupError,
    QuotaError,
    UnknownLaunchError,
    UntaggedLaunchError,
)
from providers.model import Scope, TagKeys
from reaperd.clock import ManualClock, SystemClock
from tests.support.ec2 import FaultyEc2, Machine
from tests.unit.providers.aws.builders import REGION as CANNED_REGION
from tests.unit.providers.aws.builders import options
from tests.unit.providers.aws.canned import ACCOUNT as CANNED_ACCOUNT
from tests.unit.providers.aws.canned import NOW, OWNED, CannedAws, Reply, answer, instance, page, reservation

ACCOUNT = "111111111111"
REGION = "us-east-1"
SPEC = WorkerSpec(model="llama", image="ami-1")
OFFER = Offer(
    provider="aws", instance_type="g5.xlarge", region=REGION, zone="us-east-1a", price_per_hour=Decimal("0.42")
)


@pytest.fixture
def cloud() -> Iterator[FaultyEc2]:
    with FaultyEc2(now=NOW) as started:
        yield started


def offer(**changes: Any) -> Offer:
    return Offer(
        **{
            "provider": "aws",
            "instance_type": "g5.xlarge",
            "region": REGION,
            "zone": "us-east-1a",
            "price_per_hour": Decimal("0.42"),
        }
        | changes
    )


def launcher(cloud: FaultyEc2, *, clock: ManualClock | None = None, fell_back: Any = None, **how: Any) -> AwsLauncher:
    more = {} if fell_back is None else {"fell_back": fell_back}
    return aws_launcher(
        options(account=ACCOUNT, regions=(REGION, "eu-west-1"), endpoint_url=cloud.url),
        clock=clock or ManualClock(NOW),
        how=AwsLaunchOptions(**how),
        **more,
    )


def canned_launcher(aws: CannedAws) -> AwsLauncher:
    return aws_launcher(options(endpoint_url=aws.url), clock=ManualClock(NOW))


def launched(tags: dict[str, str]) -> Reply:
    inside = f"<ownerId>{CANNED_ACCOUNT}</ownerId><instancesSet>{instance(tags=tags)}</instancesSet>"
    return Reply(answer("RunInstances", inside))


def refused(
    launching: AwsLauncher, worker_id: str = "w-1", onto: Offer = OFFER, spec: WorkerSpec = SPEC
) -> LaunchError:
    with pytest.raises(LaunchError) as raised:
        launching.launch(worker_id, onto, spec)
    return raised.value


def only(cloud: FaultyEc2) -> Machine:
    (machine,) = cloud.instances()
    return machine


def test_a_spot_machine_is_launched_once_in_its_zone_and_ends_when_it_shuts_down(cloud: FaultyEc2):
    handle = launcher(cloud).launch("w-1", OFFER, SPEC)

    machine, (request,) = only(cloud), cloud.spot_requests()
    assert (machine.instance_type, machine.az, machine.image_id) == ("g5.xlarge", "us-east-1a", "ami-1")
    assert (machine.client_token, machine.on_shutdown, machine.protected) == ("w-1", "terminate", False)
    assert (request.kind, request.instance_id) == ("one-time", machine.instance_id)
    assert (handle.worker_id, handle.instance_id, handle.spec) == ("w-1", machine.instance_id, SPEC)
    assert (handle.offer, handle.launched_at) == (OFFER, NOW)


def test_everything_that_a_launch_makes_is_tagged(cloud: FaultyEc2):
    launcher(cloud, registry_id="r-1", extra_tags={"team": "ml"}).launch("w-1", OFFER, SPEC)

    machine, (request,) = only(cloud), cloud.spot_requests()
    assert machine.tags == {
        "team": "ml",
        "Name": "prod-w-1",
        "reaperd:role": "worker",
        "reaperd:owner": "prod",
        "reaperd:worker-id": "w-1",
        "reaperd:model": "llama",
        "reaperd:registry-id": "r-1",
    }
    assert machine.volume_tags == machine.interface_tags == request.tags == machine.tags


def test_an_on_demand_machine_has_no_spot_request(cloud: FaultyEc2):
    launcher(cloud).launch("w-1", offer(kind=Kind.ON_DEMAND), SPEC)

    assert only(cloud).spot_request_id is None
    assert cloud.spot_requests() == []


def test_an_offer_without_a_zone_gets_the_zone_of_its_machine(cloud: FaultyEc2):
    handle = launcher(cloud).launch("w-1", offer(zone=""), SPEC)

    assert handle.offer.zone == only(cloud).az


def test_user_data_arrives_as_it_was_written_with_the_variables_in_it(cloud: FaultyEc2):
    spec = WorkerSpec(image="ami-1", user_data="#!/bin/sh\nexec worker\n", env={"TOKEN": "it's"})

    launcher(cloud).launch("w-1", OFFER, spec)

    assert only(cloud).user_data == "#!/bin/sh\nexport TOKEN='it'\\''s'\nexec worker\n"


@pytest.mark.parametrize("profile", ["worker", f"arn:aws:iam::{ACCOUNT}:instance-profile/fleet/worker"])
def test_a_profile_goes_by_its_name_or_its_arn(cloud: FaultyEc2, profile: str):
    launcher(cloud).launch("w-1", OFFER, WorkerSpec(image="ami-1", instance_profile=profile))

    ((name, value),) = [
        pair
        for pair in cloud.requests("RunInstances")[0].request.params.items()
        if pair[0].startswith("IamInstanceProfile")
    ]
    assert (name.rpartition(".")[2], value) == ("Arn" if profile.startswith("arn:") else "Name", profile)


# -- the image


def test_the_newest_available_image_of_its_own_and_of_the_variant_is_taken(cloud: FaultyEc2):
    nightly = {"reaperd:image": "nightly"}
    cloud.add_image("ami-old", tags=nightly, created_at="2026-10-01T00:00:00.000Z")
    cloud.add_image("ami-new", tags=nightly, created_at="2026-11-01T00:00:00.000Z")
    cloud.add_image("ami-pending", tags=nightly, created_at="2026-11-02T00:00:00.000Z", state="pending")
    cloud.add_image("ami-stranger", tags=nightly, created_at="2026-11-03T00:00:00.000Z", account="222222222222")
    cloud.add_image("ami-worker", tags={"reaperd:image": "worker"}, created_at="2026-11-04T00:00:00.000Z")

    launching = launcher(cloud)
    launching.launch("w-1", OFFER, WorkerSpec(image_variant="nightly"))
    launching.launch("w-2", OFFER, WorkerSpec())

    images = {machine.client_token: machine.image_id for machine in cloud.instances()}
    assert images == {"w-1": "ami-new", "w-2": "ami-worker"}


def test_an_image_is_not_asked_for_again_for_five_minutes(cloud: FaultyEc2):
    clock = ManualClock(NOW)
    launching = launcher(cloud, clock=clock)
    cloud.add_image("ami-1", tags={"reaperd:image": "worker"}, created_at="2026-10-01T00:00:00.000Z")
    launching.launch("w-1", OFFER, WorkerSpec())
    cloud.add_image("ami-2", tags={"reaperd:image": "worker"}, created_at="2026-11-01T00:00:00.000Z")

    clock.advance(timedelta(minutes=4, seconds=59))
    launching.launch("w-2", OFFER, WorkerSpec())
    clock.advance(timedelta(seconds=1))
    launching.launch("w-3", OFFER, WorkerSpec())

    images = {machine.client_token: machine.image_id for machine in cloud.instances()}
    assert images == {"w-1": "ami-1", "w-2": "ami-1", "w-3": "ami-2"}


def test_an_image_that_is_named_is_not_asked_for(cloud: FaultyEc2):
    launcher(cloud).launch("w-1", OFFER, WorkerSpec(image="ami-1", image_variant="nightly"))

    assert cloud.requests("DescribeImages") == []


def test_no_image_is_an_error_that_says_which_tag_is_missing(cloud: FaultyEc2):
    error = refused(launcher(cloud), spec=WorkerSpec(image_variant="nightly"))

    assert isinstance(error, InvalidSpecError)
    assert "reaperd:image=nightly" in error.message
    assert cloud.instances() == []


def test_a_look_for_the_image_that_fails_launches_nothing(cloud: FaultyEc2):
    cloud.fault(action="DescribeImages", code="UnauthorizedOperation")

    error = refused(launcher(cloud), spec=WorkerSpec())

    assert (type(error), error.error_code) == (LaunchDeniedError, "image:UnauthorizedOperation")
    assert cloud.mutating_requests() == []


# -- the network


ROLE = {"reaperd:role": "worker"}


def test_a_tagged_subnet_of_the_zone_and_the_tagged_groups_of_its_network_are_taken(cloud: FaultyEc2):
    cloud.add_subnet("subnet-00", az="us-east-1b", tags=ROLE)
    cloud.add_subnet("subnet-2", vpc_id="vpc-2", tags=ROLE)
    cloud.add_subnet("subnet-1", vpc_id="vpc-1", tags=ROLE)
    cloud.add_subnet("subnet-0", vpc_id="vpc-1")
    cloud.add_security_group("sg-2", vpc_id="vpc-1", tags=ROLE)
    cloud.add_security_group("sg-1", vpc_id="vpc-1", tags=ROLE)
    cloud.add_security_group("sg-other", vpc_id="vpc-2", tags=ROLE)

    launcher(cloud).launch("w-1", OFFER, SPEC)

    machine = only(cloud)
    assert (machine.az, machine.subnet_id, machine.groups) == ("us-east-1a", "subnet-1", ("sg-1", "sg-2"))


def test_a_zone_without_a_tagged_subnet_has_the_default_network_and_is_not_asked_again_for_half_an_hour(
    cloud: FaultyEc2,
):
    clock = ManualClock(NOW)
    launching = launcher(cloud, clock=clock)
    launching.launch("w-1", OFFER, SPEC)
    clock.advance(timedelta(minutes=29))
    launching.launch("w-2", OFFER, SPEC)
    asked = len(cloud.requests("DescribeSubnets"))
    cloud.add_subnet("subnet-1", tags=ROLE)
    clock.advance(timedelta(minutes=1))
    launching.launch("w-3", OFFER, SPEC)

    assert asked == 1
    subnets = {machine.client_token: machine.subnet_id for machine in cloud.instances()}
    assert subnets == {"w-1": None, "w-2": None, "w-3": "subnet-1"}


@pytest.mark.parametrize("action", ["DescribeSubnets", "DescribeSecurityGroups"])
def test_a_look_for_the_network_that_fails_falls_back_and_is_told_and_tried_again(cloud: FaultyEc2, action: str):
    told: list[tuple[Scope, str, str]] = []
    cloud.add_subnet("subnet-1", tags=ROLE)
    cloud.fault(action=action, code="UnauthorizedOperation", times=1)

    def tell(scope: Scope, *, zone: str, error_code: str, detail: str) -> None:
        told.append((scope, zone, error_code))

    launching = launcher(cloud, fell_back=tell)

    launching.launch("w-1", OFFER, SPEC)
    launching.launch("w-2", OFFER, SPEC)

    assert told == [(Scope("aws", REGION), "us-east-1a", "UnauthorizedOperation")]
    subnets = {machine.client_token: machine.subnet_id for machine in cloud.instances()}
    assert subnets == {"w-1": None, "w-2": "subnet-1"}


def test_a_network_that_is_named_is_not_asked_for(cloud: FaultyEc2):
    cloud.add_subnet("subnet-9")
    named = {"subnets": {"us-east-1a": "subnet-9"}, "security_groups": {REGION: ("sg-9",)}}

    launcher(cloud, **named).launch("w-1", OFFER, SPEC)

    assert (only(cloud).subnet_id, only(cloud).groups) == ("subnet-9", ("sg-9",))
    assert cloud.requests("DescribeSubnets") == cloud.requests("DescribeSecurityGroups") == []


# -- once, whatever happens


def test_the_same_worker_twice_is_one_machine_and_one_handle(cloud: FaultyEc2):
    launching = launcher(cloud)

    first, second = (launching.launch("w-1", OFFER, SPEC) for _ in range(2))

    assert first == second
    assert len(cloud.instances()) == 1


def test_the_same_worker_twice_is_one_machine_although_a_newer_image_came_between(cloud: FaultyEc2):
    cloud.add_image("ami-1", tags={"reaperd:image": "worker"}, created_at="2026-10-01T00:00:00.000Z")
    first = launcher(cloud).launch("w-1", OFFER, WorkerSpec())
    cloud.add_image("ami-2", tags={"reaperd:image": "worker"}, created_at="2026-11-01T00:00:00.000Z")

    second = launcher(cloud).launch("w-1", OFFER, WorkerSpec())

    assert first.instance_id == second.instance_id
    assert len(cloud.instances()) == 1


def test_the_same_worker_in_another_zone_is_refused_and_no_second_machine(cloud: FaultyEc2):
    """EC2 keeps tokens by zone: it would launch."""
    launching = launcher(cloud)
    launching.launch("w-1", OFFER, SPEC)

    error = refused(launching, onto=offer(zone="us-east-1b"))

    assert isinstance(error, LaunchMismatchError)
    assert "its zone is us-east-1a, not us-east-1b" in error.message
    assert len(cloud.instances()) == 1


@pytest.mark.parametrize(
    ("onto", "spec", "reason"),
    [
        (offer(instance_type="g6.xlarge"), SPEC, "its type is g5.xlarge, not g6.xlarge"),
        (offer(kind=Kind.ON_DEMAND), SPEC, "its kind is spot, not on_demand"),
        (OFFER, WorkerSpec(image="ami-2"), "its image is ami-1, not ami-2"),
    ],
)
@pytest.mark.parametrize("seen", [True, False])
def test_another_machine_for_the_same_worker_is_refused_with_what_differs(
    cloud: FaultyEc2, onto: Offer, spec: WorkerSpec, reason: str, *, seen: bool
):
    launching = launcher(cloud)
    if not seen:
        cloud.fault("stale", action="DescribeInstances", after=1, times=1)
    launching.launch("w-1", OFFER, SPEC)

    error = refused(launching, onto=onto, spec=spec)

    assert isinstance(error, LaunchMismatchError)
    assert reason in error.message
    assert (error.error_code == "IdempotentParameterMismatch") is not seen
    assert len(cloud.instances()) == 1


def test_what_a_machine_does_not_show_may_differ_too(cloud: FaultyEc2):
    launching = launcher(cloud)
    cloud.fault("stale", action="DescribeInstances", after=1, times=1)
    launching.launch("w-1", OFFER, SPEC)

    error = refused(launching, spec=WorkerSpec(image="ami-1", model="llama", user_data="#!/bin/sh\n"))

    assert isinstance(error, LaunchMismatchError)
    assert "user data" in error.message


@pytest.mark.parametrize("forgotten", [True, False])
def test_a_worker_whose_machine_is_over_gets_no_other(cloud: FaultyEc2, *, forgotten: bool):
    launching = launcher(cloud)
    ended = launching.launch("w-1", OFFER, SPEC).instance_id
    if forgotten:
        cloud.remove(ended)
    else:
        cloud.set_state(ended, "terminated")

    error = refused(launching)

    assert isinstance(error, LaunchEndedError)
    assert "take a new one" in error.message


def test_an_answer_that_shows_an_ended_machine_is_no_handle(cloud: FaultyEc2):
    launching = launcher(cloud)
    cloud.fault("stale", action="DescribeInstances", after=1, times=1)
    cloud.set_state(launching.launch("w-1", OFFER, SPEC).instance_id, "shutting-down")

    assert isinstance(refused(launching), LaunchEndedError)


def test_two_machines_of_one_worker_are_never_one_handle(cloud: FaultyEc2):
    for _ in range(2):
        cloud.add_instance(worker="w-1", owner="prod", az="us-east-1a", image_id="ami-1", spot="one-time")

    error = refused(launcher(cloud))

    assert isinstance(error, LaunchMismatchError)
    assert all(machine.instance_id in error.message for machine in cloud.instances())
    assert cloud.mutating_requests() == []


@pytest.mark.parametrize("tags", [{"reaperd:owner": "other"}, {"reaperd:owner": "PROD"}, {}])
def test_a_machine_of_another_fleet_with_the_same_worker_id_is_none_of_ours(cloud: FaultyEc2, tags: dict[str, str]):
    cloud.add_instance(worker="w-1", tags=tags)

    launcher(cloud).launch("w-1", OFFER, SPEC)

    assert len(cloud.instances()) == 2


@pytest.mark.parametrize("tags", [OWNED | {"reaperd:owner": "other"}, OWNED | {"reaperd:worker-id": "w-2"}, {}])
def test_the_cloud_s_own_filter_is_not_believed(canned: CannedAws, tags: dict[str, str]):
    canned.will("DescribeInstances", Reply(page(reservation(instance("i-9", tags=tags)))))
    canned.will("RunInstances", launched(tags=OWNED))

    handle = canned_launcher(canned).launch("w-1", offer(region=CANNED_REGION, zone=""), SPEC)

    assert handle.instance_id == "i-1"


@pytest.mark.parametrize("kind", ["lost_reply", "truncated", "html"])
def test_a_lost_answer_is_asked_for_again_with_the_same_token(cloud: FaultyEc2, kind: str):
    cloud.fault(kind, action="RunInstances", times=1, **({"applied": True} if kind == "html" else {}))

    handle = launcher(cloud).launch("w-1", OFFER, SPEC)

    assert handle.instance_id == only(cloud).instance_id
    tokens = {exchange.request.params["ClientToken"] for exchange in cloud.requests("RunInstances")}
    assert (tokens, len(cloud.requests("RunInstances"))) == ({"w-1"}, 2)


def test_a_machine_whose_answers_were_all_lost_is_found_by_its_tags(cloud: FaultyEc2):
    cloud.fault("lost_reply", action="RunInstances")

    handle = launcher(cloud).launch("w-1", OFFER, SPEC)

    assert handle.instance_id == only(cloud).instance_id


def test_an_outcome_that_nobody_can_know_is_said_to_be_unknown_and_can_be_asked_for_again(cloud: FaultyEc2):
    launching = launcher(cloud)
    with cloud.fault("drop", action="RunInstances"):
        error = refused(launching)

    assert isinstance(error, UnknownLaunchError)
    assert "same worker id" in error.message
    launching.launch("w-1", OFFER, SPEC)
    assert len(cloud.instances()) == 1


def test_a_refusal_after_a_lost_answer_proves_nothing(cloud: FaultyEc2):
    cloud.fault("drop", action="RunInstances", times=1)
    cloud.fault(action="RunInstances", code="InsufficientInstanceCapacity")

    assert isinstance(refused(launcher(cloud)), UnknownLaunchError)


@pytest.mark.parametrize("code", ["InternalError", "Unavailable"])
def test_a_server_s_error_is_unknown(cloud: FaultyEc2, code: str):
    cloud.fault(action="RunInstances", code=code)

    assert isinstance(refused(launcher(cloud)), UnknownLaunchError)


def test_nothing_is_repeated_once_the_time_is_up(cloud: FaultyEc2):
    cloud.fault("drop", action="RunInstances")

    error = refused(launcher(cloud, launch_timeout=timedelta(seconds=1)))

    assert isinstance(error, UnknownLaunchError)
    assert len(cloud.requests("RunInstances")) == 1


def test_a_throttle_is_waited_out(cloud: FaultyEc2):
    cloud.fault(action="RunInstances", code="RequestLimitExceeded", times=2)

    launcher(cloud).launch("w-1", OFFER, SPEC)

    assert len(cloud.instances()) == 1


def test_a_throttle_that_goes_on_is_for_later(cloud: FaultyEc2):
    cloud.fault(action="RunInstances", code="RequestLimitExceeded")

    error = refused(launcher(cloud))

    assert isinstance(error, LaunchDeferredError)
    assert cloud.instances() == []


# -- no


def test_no_capacity_is_asked_for_once_and_says_where(cloud: FaultyEc2):
    """It comes with the status 500, on which the SDK would insist."""
    cloud.fault(action="RunInstances", code="InsufficientInstanceCapacity")

    error = refused(launcher(cloud))

    assert isinstance(error, CapacityError)
    assert (error.code, error.region) == ("InsufficientInstanceCapacity", REGION)
    assert "w-1: g5.xlarge (spot) in aws/us-east-1a" in error.message
    assert len(cloud.requests("RunInstances")) == 1


def test_a_quota_is_no_capacity_either(cloud: FaultyEc2):
    cloud.fault(action="RunInstances", code="MaxSpotInstanceCountExceeded")

    assert isinstance(refused(launcher(cloud)), QuotaError)


def test_no_capacity_in_two_zones_launches_in_the_third(cloud: FaultyEc2):
    for zone in ("us-east-1a", "us-east-1b"):
        where = {"Placement.AvailabilityZone": zone}
        cloud.fault(action="RunInstances", code="InsufficientInstanceCapacity", params=where)
    offers = [
        offer(zone=f"us-east-1{letter}", price_per_hour=Decimal(price))
        for letter, price in (("c", 3), ("a", 1), ("b", 2))
    ]

    handle = launch_cheapest(launcher(cloud), "w-1", offers, SPEC)

    asked = [exchange.request.params["Placement.AvailabilityZone"] for exchange in cloud.requests("RunInstances")]
    assert asked == ["us-east-1a", "us-east-1b", "us-east-1c"]
    assert (handle.offer.zone, only(cloud).az) == ("us-east-1c", "us-east-1c")


def test_an_unknown_outcome_is_not_followed_by_another_zone(cloud: FaultyEc2):
    cloud.fault("drop", action="RunInstances", params={"Placement.AvailabilityZone": "us-east-1a"})

    with pytest.raises(UnknownLaunchError):
        launch_cheapest(launcher(cloud), "w-1", [OFFER, offer(zone="us-east-1b")], SPEC)

    assert cloud.instances() == []


def test_tags_that_are_refused_are_a_launch_that_is(cloud: FaultyEc2):
    cloud.fault(
        action="RunInstances", code="UnauthorizedOperation", message="not authorized to perform: ec2:CreateTags"
    )

    error = refused(launcher(cloud))

    assert isinstance(error, LaunchDeniedError)
    assert "ec2:CreateTags" in error.message
    assert "reaperd iam-policy --role launcher" in error.message
    assert cloud.instances() == []


def test_a_machine_without_its_tags_is_named_with_the_command_that_ends_it(canned: CannedAws):
    canned.will("RunInstances", launched(tags={}))
    canned.will("DescribeInstances", Reply(page()), Reply(page(reservation(instance(tags={})))))

    error = refused(canned_launcher(canned), onto=offer(region=CANNED_REGION, zone=""))

    assert isinstance(error, UntaggedLaunchError)
    assert str(error.ref) == "aws/eu-west-1/i-1"
    assert "aws ec2 terminate-instances --region eu-west-1 --instance-ids i-1" in error.message


def test_tags_that_an_answer_does_not_show_yet_are_looked_for(canned: CannedAws):
    canned.will("RunInstances", launched(tags={}))
    canned.will("DescribeInstances", Reply(page()), Reply(page(reservation(instance()))))

    handle = canned_launcher(canned).launch("w-1", offer(region=CANNED_REGION, zone=""), SPEC)

    assert handle.instance_id == "i-1"
    assert canned.asked("DescribeInstances")[1]["InstanceId.1"] == "i-1"


@pytest.mark.parametrize(
    "answered",
    [
        Reply(answer("RunInstances", "<instancesSet/>")),
        Reply(answer("RunInstances", f"<ownerId>{CANNED_ACCOUNT}</ownerId><instancesSet/>")),
        Reply(answer("RunInstances", f"<ownerId>9</ownerId><instancesSet>{instance()}</instancesSet>")),
        Reply(
            answer(
                "RunInstances",
                f"<ownerId>{CANNED_ACCOUNT}</ownerId><instancesSet>{instance()}{instance('i-2')}</instancesSet>",
            )
        ),
    ],
    ids=["no machine, no owner", "no machine", "another account", "two machines"],
)
def test_an_answer_that_is_not_one_machine_of_ours_leaves_it_unknown(canned: CannedAws, answered: Reply):
    canned.will("RunInstances", answered)

    error = refused(canned_launcher(canned), onto=offer(region=CANNED_REGION, zone=""))

    assert isinstance(error, UnknownLaunchError)


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (LaunchDeniedError, "OptInRequired"),
        (LaunchDeniedError, "AuthFailure.ServiceLinkedRoleCreationNotPermitted"),
        (LaunchDeferredError, "RequestExpired"),
        (InvalidSpecError, "InvalidAMIID.NotFound"),
        (LaunchRejectedError, "OperationNotPermitted"),
    ],
)
def test_a_refusal_is_of_its_kind(cloud: FaultyEc2, kind: type[LaunchError], code: str):
    cloud.fault(action="RunInstances", code=code, http=400)

    error = refused(launcher(cloud))

    assert (type(error), error.error_code) == (kind, code)


def test_a_look_that_fails_launches_nothing(cloud: FaultyEc2):
    cloud.fault(action="DescribeInstances", code="InternalError")

    error = refused(launcher(cloud))

    assert (type(error), error.error_code) == (LaunchDeferredError, "look:InternalError")
    assert cloud.mutating_requests() == []


def test_another_account_is_refused(cloud: FaultyEc2):
    cloud.set_caller_account("222222222222")

    error = refused(launcher(cloud))

    assert (type(error), error.error_code) == (LaunchDeniedError, "wrong_account")
    assert cloud.mutating_requests() == []


@pytest.mark.parametrize(
    ("onto", "code"), [(offer(provider="gcp"), "unknown_provider"), (offer(region="eu-north-1"), "unknown_region")]
)
def test_an_offer_of_somebody_else_is_refused(cloud: FaultyEc2, onto: Offer, code: str):
    error = refused(launcher(cloud), onto=onto)

    assert (type(error), error.error_code) == (LaunchRejectedError, code)
    assert cloud.mutating_requests() == []


@pytest.mark.parametrize("worker_id", ["", " ", "w 1", "w*", "w?", "-w", "wörker", "w\n", "w" * 65])
def test_a_worker_id_that_is_no_token_is_refused_before_anything_is_sent(cloud: FaultyEc2, worker_id: str):
    error = refused(launcher(cloud), worker_id)

    assert (type(error), error.error_code) == (InvalidSpecError, "worker_id")
    assert cloud.requests() == []


def test_a_worker_id_of_64_characters_is_a_token(cloud: FaultyEc2):
    assert launcher(cloud).launch("w" * 64, OFFER, SPEC).worker_id == "w" * 64


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        (WorkerSpec(image="ami-1", user_data="#!/bin/sh\n" + "x" * 16384), "user_data_too_long"),
        (WorkerSpec(image="ami-1", user_data="#cloud-config\n", env={"A": "1"}), "env_without_script"),
        (WorkerSpec(image="ami-1", instance_profile=f"arn:aws:iam::{ACCOUNT}:role/worker"), "instance_profile"),
        (WorkerSpec(image="ami-1", model="m" * 257), "model"),
    ],
)
def test_what_no_machine_can_be_given_is_refused_before_anything_is_sent(cloud: FaultyEc2, spec: WorkerSpec, code: str):
    error = refused(launcher(cloud), spec=spec)

    assert (type(error), error.error_code) == (InvalidSpecError, code)
    assert cloud.requests() == []


# -- what it is built from


def test_launching_asks_for_a_pinned_account(cloud: FaultyEc2):
    with pytest.raises(ProviderSetupError, match="account: must be set"):
        aws_launcher(options(account=None), clock=ManualClock(NOW))


@pytest.mark.parametrize("key", ["reaperd:owner", "Reaperd:Owner", "reaperd:worker-id", "reaperd:protect", "name"])
def test_no_tag_of_the_operator_s_stands_in_for_one_of_ours(key: str):
    with pytest.raises(ProviderSetupError, match=key):
        aws_launcher(options(), clock=ManualClock(NOW), how=AwsLaunchOptions(extra_tags={key: "x"}))


@pytest.mark.parametrize(
    "how",
    [
        {"registry_id": ""},
        {"role": ""},
        {"security_groups": {REGION: ()}},
        {"launch_timeout": timedelta(0)},
        {"extra_tags": {"aws:team": "x"}},
        {"extra_tags": {"team": "x" * 257}},
    ],
)
def test_options_that_cannot_be_right_are_refused(how: dict[str, Any]):
    with pytest.raises(ProviderSetupError):
        AwsLaunchOptions(**how)


@pytest.mark.parametrize("operation", ["terminate_instances", "create_tags", "request_spot_instances"])
def test_its_session_can_launch_and_change_nothing_else(cloud: FaultyEc2, operation: str):
    session = AwsSessions(options(endpoint_url=cloud.url, account=ACCOUNT), allowed=LAUNCHING).open()
    requests: dict[str, dict[str, Any]] = {
        "terminate_instances": {"InstanceIds": ["i-1"]},
        "create_tags": {"Resources": ["i-1"], "Tags": [{"Key": "a", "Value": "b"}]},
        "request_spot_instances": {},
    }

    # What is on nobody's list cannot even be named: see test_models.
    with pytest.raises((MutatingRequestError, AttributeError)):
        getattr(session.ec2(REGION).client, operation)(**requests[operation])

    assert cloud.mutating_requests() == []


def test_a_whole_provider_shops_launches_lists_and_ends(cloud: FaultyEc2):
    cloud.set_spot_price("g5.xlarge", "0.42", az="us-east-1b")
    given = options(account=ACCOUNT, regions=(REGION,), endpoint_url=cloud.url)
    provider = aws_provider(given, clock=ManualClock(NOW))

    (quoted,) = provider.quote(Requirement(model="llama", instance_types=("g5.xlarge",)))
    handle = provider.launch("w-1", quoted, SPEC)
    (listed,) = provider.list_owned()
    provider.terminate(handle.ref, seen=listed)

    assert isinstance(provider, Provider)
    assert isinstance(provider, InstanceAuditor)
    assert (listed.ref, listed.worker_id, listed.model) == (handle.ref, "w-1", "llama")
    assert cloud.terminated_ids() == [handle.instance_id]


def test_launches_on_moto(moto_ec2: EC2Client):
    given = options(regions=(REGION,))
    spec = WorkerSpec(image="ami-12345678", user_data="#!/bin/sh\n", env={"A": "1"})

    handle = aws_launcher(given, clock=SystemClock()).launch("w-1", offer(instance_type="t3.micro"), spec)
    again = aws_launcher(given, clock=SystemClock()).launch("w-1", offer(instance_type="t3.micro"), spec)

    (found,) = moto_ec2.describe_instances()["Reservations"]
    assert [i["InstanceId"] for i in found["Instances"]] == [handle.instance_id] == [again.instance_id]
    tags = {tag["Key"]: tag["Value"] for tag in found["Instances"][0]["Tags"]}
    assert (tags[TagKeys().owner], tags[TagKeys().worker]) == ("prod", "w-1")
