"""RunInstances, starting and stopping, tags and attributes."""

from datetime import timedelta
from typing import Any

import pytest

from tests.support.ec2 import FaultyEc2
from tests.unit.support.asking import described, error_of, fleet_of


def launch(cloud: FaultyEc2, **options: Any) -> list[dict[str, Any]]:
    request = {"ImageId": "ami-1", "InstanceType": "g5.xlarge", "MinCount": 1, "MaxCount": 1} | options
    return cloud.client().run_instances(**request)["Instances"]


def tagged(*kinds: str, **tags: str) -> dict[str, Any]:
    pairs = [{"Key": key, "Value": value} for key, value in tags.items()]
    return {"TagSpecifications": [{"ResourceType": kind, "Tags": pairs} for kind in kinds]}


def test_a_launch_is_pending_then_running_and_tagged(cloud: FaultyEc2):
    (launched,) = launch(cloud, **tagged("instance", owner="prod-a"))

    found = described(cloud.client(), launched["InstanceId"])

    assert (launched["State"]["Name"], found["State"]["Name"]) == ("pending", "running")
    assert found["Tags"] == [{"Key": "owner", "Value": "prod-a"}]
    assert (found["InstanceType"], found["ImageId"], found["LaunchTime"]) == ("g5.xlarge", "ami-1", cloud.now())


def test_booting_can_take_time(cloud: FaultyEc2):
    cloud.configure(boot_s=60)
    (launched,) = launch(cloud)

    cloud.advance(59)
    before = cloud.state_of(launched["InstanceId"])
    cloud.advance(1)

    assert (before, cloud.state_of(launched["InstanceId"])) == ("pending", "running")


def test_as_many_as_there_may_be_are_launched_in_one_reservation(cloud: FaultyEc2):
    launched = launch(cloud, MinCount=1, MaxCount=3)

    (reservation,) = cloud.client().describe_instances()["Reservations"]

    assert len(launched) == len(reservation["Instances"]) == 3


def test_a_client_token_launches_once(cloud: FaultyEc2):
    (first,) = launch(cloud, ClientToken="w-1")
    (second,) = launch(cloud, ClientToken="w-1")

    assert first["InstanceId"] == second["InstanceId"]
    assert len(cloud.instances()) == 1
    assert described(cloud.client(), first["InstanceId"])["ClientToken"] == "w-1"


def test_a_client_token_is_bound_to_its_parameters(cloud: FaultyEc2):
    launch(cloud, ClientToken="w-1")
    other = {"ImageId": "ami-2", "MinCount": 1, "MaxCount": 1, "ClientToken": "w-1"}

    assert error_of(cloud.client().run_instances, **other) == ("IdempotentParameterMismatch", 400)


def test_a_lost_launch_is_found_again_by_its_token(cloud: FaultyEc2):
    cloud.fault("lost_reply", action="RunInstances", times=1)
    request = {"ImageId": "ami-1", "MinCount": 1, "MaxCount": 1, "ClientToken": "w-1"}

    cloud.client(attempts=2).run_instances(**request)

    assert len(cloud.requests("RunInstances")) == 2
    assert len(cloud.instances()) == 1


def test_a_client_token_is_of_its_zone(cloud: FaultyEc2):
    cloud.add_subnet("subnet-b", az="us-east-1b")
    in_a = {"Placement": {"AvailabilityZone": "us-east-1a"}, "ClientToken": "w-1"}

    (first,), (again,) = launch(cloud, **in_a), launch(cloud, **in_a)
    (other,) = launch(cloud, SubnetId="subnet-b", ClientToken="w-1")

    assert first["InstanceId"] == again["InstanceId"] != other["InstanceId"]
    assert {m.az for m in cloud.instances()} == {"us-east-1a", "us-east-1b"}


def test_a_launch_leaves_what_it_asked_for_on_the_machine(cloud: FaultyEc2):
    cloud.add_subnet("subnet-1")

    launch(
        cloud,
        SubnetId="subnet-1",
        SecurityGroupIds=["sg-1", "sg-2"],
        UserData="#!/bin/sh\n",
        IamInstanceProfile={"Name": "worker"},
        InstanceInitiatedShutdownBehavior="terminate",
        **tagged("volume", "network-interface", a="1"),
    )

    (machine,) = cloud.instances()
    assert (machine.subnet_id, machine.groups, machine.profile) == ("subnet-1", ("sg-1", "sg-2"), "worker")
    assert (machine.user_data, machine.on_shutdown) == ("#!/bin/sh\n", "terminate")
    assert machine.volume_tags == machine.interface_tags == {"a": "1"}


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"SubnetId": "subnet-9"}, "InvalidSubnetID.NotFound"),
        ({"UserData": "x" * 16385}, "InvalidParameterValue"),
        (tagged("spot-instances-request", a="1"), "InvalidParameterValue"),
    ],
)
def test_a_launch_that_aws_would_refuse_is_refused(cloud: FaultyEc2, options: dict[str, Any], code: str):
    error = error_of(cloud.client().run_instances, ImageId="ami-1", MinCount=1, MaxCount=1, **options)

    assert error == (code, 400)
    assert cloud.instances() == []


def test_what_a_launch_looks_up_is_found_by_its_tags(cloud: FaultyEc2):
    cloud.add_image("ami-1", tags={"image": "worker"})
    cloud.add_image("ami-2", tags={"image": "worker"}, account="222222222222")
    cloud.add_subnet("subnet-1", vpc_id="vpc-1", tags={"role": "worker"})
    cloud.add_subnet("subnet-2", az="us-east-1b", tags={"role": "worker"})
    cloud.add_security_group("sg-1", vpc_id="vpc-1", tags={"role": "worker"})
    cloud.add_security_group("sg-2", vpc_id="vpc-2", tags={"role": "worker"})
    client = cloud.client()
    role = {"Name": "tag:role", "Values": ["worker"]}
    in_zone, in_vpc = (
        {"Name": n, "Values": [v]} for n, v in (("availability-zone", "us-east-1a"), ("vpc-id", "vpc-1"))
    )

    images = client.describe_images(Owners=["self"], Filters=[{"Name": "tag:image", "Values": ["worker"]}])["Images"]
    (subnet,) = client.describe_subnets(Filters=[role, in_zone])["Subnets"]
    (group,) = client.describe_security_groups(Filters=[role, in_vpc])["SecurityGroups"]

    assert [image["ImageId"] for image in images] == ["ami-1"]
    assert (subnet["SubnetId"], subnet["VpcId"], group["GroupId"]) == ("subnet-1", "vpc-1", "sg-1")


@pytest.mark.parametrize("kind", ["one-time", "persistent"])
def test_a_spot_launch_has_a_request_with_tags_of_its_own(cloud: FaultyEc2, kind: str):
    market = {"MarketType": "spot", "SpotOptions": {"SpotInstanceType": kind}}
    tags = tagged("instance", "spot-instances-request", owner="prod-a")

    (launched,) = launch(cloud, InstanceMarketOptions=market, **tags)

    (request,) = cloud.client().describe_spot_instance_requests()["SpotInstanceRequests"]
    assert launched["InstanceLifecycle"] == "spot"
    assert launched["SpotInstanceRequestId"] == request["SpotInstanceRequestId"]
    assert (request["Type"], request["InstanceId"]) == (kind, launched["InstanceId"])
    assert request["Tags"] == [{"Key": "owner", "Value": "prod-a"}]


def test_a_launch_can_be_protected(cloud: FaultyEc2):
    (launched,) = launch(cloud, DisableApiTermination=True)

    error = error_of(cloud.client().terminate_instances, InstanceIds=[launched["InstanceId"]])

    assert error == ("OperationNotPermitted", 400)


def test_a_dry_launch_launches_nothing(cloud: FaultyEc2):
    error = error_of(cloud.client().run_instances, ImageId="ami-1", MinCount=1, MaxCount=1, DryRun=True)

    assert error == ("DryRunOperation", 412)
    assert cloud.instances() == []


def test_a_start_sets_the_launch_time_anew_but_not_the_attachment(cloud: FaultyEc2):
    fleet_of(cloud, 1)
    first = cloud.now() - timedelta(hours=2)
    client = cloud.client()

    client.stop_instances(InstanceIds=["i-1"])
    stopped = cloud.state_of("i-1")
    client.start_instances(InstanceIds=["i-1"])

    found = described(client, "i-1")
    assert (stopped, found["State"]["Name"]) == ("stopped", "running")
    assert found["LaunchTime"] == cloud.now()
    assert found["NetworkInterfaces"][0]["Attachment"]["AttachTime"] == first


def test_stopping_can_take_time(cloud: FaultyEc2):
    fleet_of(cloud, 1)
    cloud.configure(stop_s=60)
    cloud.client().stop_instances(InstanceIds=["i-1"])

    before = cloud.state_of("i-1")
    cloud.advance(60)

    assert (before, cloud.state_of("i-1")) == ("stopping", "stopped")


def test_a_stopped_machine_can_be_terminated_and_not_stopped_after(cloud: FaultyEc2):
    cloud.add_instance(instance_id="i-1", state="stopped")
    client = cloud.client()

    client.terminate_instances(InstanceIds=["i-1"])

    assert error_of(client.stop_instances, InstanceIds=["i-1"]) == ("IncorrectInstanceState", 400)
    assert error_of(client.start_instances, InstanceIds=["i-1"]) == ("IncorrectInstanceState", 400)


def test_tags_are_set_listed_and_taken_away(cloud: FaultyEc2):
    cloud.add_instance(instance_id="i-1", spot="one-time", tags={"a": "1"})
    request_id = cloud.instance("i-1").spot_request_id
    client = cloud.client()

    client.create_tags(Resources=["i-1", request_id], Tags=[{"Key": "a", "Value": "2"}, {"Key": "b", "Value": ""}])
    client.delete_tags(Resources=["i-1"], Tags=[{"Key": "a", "Value": "other"}, {"Key": "b"}])

    rows = client.describe_tags()["Tags"]
    assert {(r["ResourceId"], r["ResourceType"], r["Key"], r["Value"]) for r in rows} == {
        ("i-1", "instance", "a", "2"),
        (request_id, "spot-instances-request", "a", "2"),
        (request_id, "spot-instances-request", "b", ""),
    }
    only = [{"Name": "resource-type", "Values": ["instance"]}, {"Name": "key", "Values": ["a"]}]
    assert len(client.describe_tags(Filters=only)["Tags"]) == 1


def test_tags_are_listed_in_pages(cloud: FaultyEc2):
    cloud.add_instance(tags={f"k{n}": "v" for n in range(12)})
    pages = cloud.client().get_paginator("describe_tags").paginate(PaginationConfig={"PageSize": 5})

    assert [len(page["Tags"]) for page in pages] == [5, 5, 2]


def test_tags_of_aws_and_of_nothing_are_refused(cloud: FaultyEc2):
    fleet_of(cloud, 1)
    client = cloud.client()
    reserved, plain = [{"Key": "aws:x", "Value": "y"}], [{"Key": "x", "Value": "y"}]

    assert error_of(client.create_tags, Resources=["i-1"], Tags=reserved) == ("InvalidParameterValue", 400)
    assert error_of(client.create_tags, Resources=["i-9"], Tags=plain) == ("InvalidID", 400)


def test_protection_can_be_lifted_and_that_is_on_record(cloud: FaultyEc2):
    cloud.add_instance(instance_id="i-1", protected=True)
    client = cloud.client()

    client.modify_instance_attribute(InstanceId="i-1", DisableApiTermination={"Value": False})

    attribute = client.describe_instance_attribute(InstanceId="i-1", Attribute="disableApiTermination")
    assert attribute["DisableApiTermination"] == {"Value": False}
    assert [e.action for e in cloud.mutating_requests()] == ["ModifyInstanceAttribute"]
