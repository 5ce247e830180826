"""DescribeInstances of our own cloud, seen by plain boto3."""

from datetime import UTC, datetime

import pytest

from tests.support.ec2 import FaultyEc2
from tests.unit.support.asking import by_name, described, error_of, fleet_of, listed, listed_pages


def test_an_instance_has_the_shapes_that_botocore_names(cloud: FaultyEc2):
    cloud.add_instance(
        instance_id="i-1", worker="w-1", owner="prod-a", name="gpu", age_s=3600, spot="one-time", az="us-east-1c"
    )

    found = described(cloud.client(), "i-1")

    launched = datetime(2026, 1, 10, 11, tzinfo=UTC)
    assert found["LaunchTime"] == launched
    assert found["State"] == {"Code": 16, "Name": "running"}
    assert found["Placement"]["AvailabilityZone"] == "us-east-1c"
    assert found["InstanceLifecycle"] == "spot"
    assert found["SpotInstanceRequestId"].startswith("sir-")
    assert found["Operator"] == {"Managed": False}
    assert {t["Key"]: t["Value"] for t in found["Tags"]} == {
        "reaperd:owner": "prod-a",
        "reaperd:worker-id": "w-1",
        "Name": "gpu",
    }
    attachment = found["NetworkInterfaces"][0]["Attachment"]
    assert (attachment["DeviceIndex"], attachment["AttachTime"]) == (0, launched)


def test_a_machine_without_tags_has_no_such_key(cloud: FaultyEc2):
    cloud.add_instance(instance_id="i-1")

    assert "Tags" not in described(cloud.client(), "i-1")


def test_an_empty_account_has_the_container(cloud: FaultyEc2):
    assert cloud.client().describe_instances()["Reservations"] == []


def test_fields_can_be_missing(cloud: FaultyEc2):
    cloud.add_instance(instance_id="i-1", launched_at=None, missing_fields=["PrivateIpAddress", "PrivateDnsName"])

    found = described(cloud.client(), "i-1")

    assert found.keys().isdisjoint({"LaunchTime", "PrivateIpAddress", "PrivateDnsName"})
    assert "AttachTime" not in found["NetworkInterfaces"][0]["Attachment"]


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "2026-01-10T06:00:00-05:00"])
def test_launch_times_are_served_as_given(cloud: FaultyEc2, text: str):
    cloud.add_instance(instance_id="i-1", launched_at=text)

    assert described(cloud.client(), "i-1")["LaunchTime"] == datetime.fromisoformat(text)


def test_texts_survive_the_markup(cloud: FaultyEc2):
    cloud.add_instance(instance_id="i-1", tags={"a<b": 'x & "y" \u00e9', "reaperd:owner": ""})

    tags = {t["Key"]: t["Value"] for t in described(cloud.client(), "i-1")["Tags"]}

    assert tags == {"a<b": 'x & "y" \u00e9', "reaperd:owner": ""}


def test_regions_are_apart(cloud: FaultyEc2):
    cloud.add_instance(region="eu-west-1", instance_id="i-1")

    assert listed(cloud.client(region="eu-west-1")) == ["i-1"]
    assert listed(cloud.client(region="us-east-1")) == []
    assert error_of(cloud.client().describe_instances, InstanceIds=["i-1"]) == ("InvalidInstanceID.NotFound", 400)


def test_accounts_are_apart_and_a_reservation_may_claim_another_owner(cloud: FaultyEc2):
    cloud.add_access_key("AKIAOTHER", "222222222222")
    cloud.add_instance(instance_id="i-1")
    cloud.add_instance(instance_id="i-2", account="222222222222")
    cloud.add_instance(instance_id="i-3", owner_id="333333333333")

    assert listed(cloud.client(access_key="AKIAOTHER")) == ["i-2"]
    owners = [r["OwnerId"] for r in cloud.client().describe_instances()["Reservations"]]
    assert owners == ["111111111111", "333333333333"]


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("tag:reaperd:owner", ["prod-a"], ["i-1"]),
        ("tag:reaperd:owner", ["prod-*"], ["i-1", "i-2"]),
        ("tag:reaperd:owner", ["prod-?"], ["i-1"]),
        ("tag:reaperd:owner", ["prod-\\?"], []),
        ("tag:reaperd:owner", ["PROD-A"], []),
        ("tag:reaperd:owner", ["staging", "prod-a"], ["i-1", "i-3"]),
        ("tag-key", ["reaperd:owner"], ["i-1", "i-2", "i-3"]),
        ("tag-key", ["reaperd:*"], ["i-1", "i-2", "i-3"]),
        ("instance-state-name", ["stopped", "pending"], ["i-3"]),
        ("instance-id", ["i-2", "i-4"], ["i-2", "i-4"]),
        ("instance-type", ["p4d.*"], ["i-4"]),
    ],
)
def test_filters(cloud: FaultyEc2, name: str, values: list[str], expected: list[str]):
    cloud.add_instance(instance_id="i-1", owner="prod-a")
    cloud.add_instance(instance_id="i-2", owner="prod-a-canary")
    cloud.add_instance(instance_id="i-3", owner="staging", state="stopped")
    cloud.add_instance(instance_id="i-4", instance_type="p4d.24xlarge")

    assert listed(cloud.client(), **by_name(name, *values)) == expected


def test_filters_are_anded_and_unknown_ones_refused(cloud: FaultyEc2):
    cloud.add_instance(instance_id="i-1", owner="prod-a", state="stopped")
    cloud.add_instance(instance_id="i-2", owner="prod-a")
    both = by_name("tag:reaperd:owner", "prod-a")["Filters"] + by_name("instance-state-name", "running")["Filters"]

    assert listed(cloud.client(), Filters=both) == ["i-2"]
    assert error_of(cloud.client().describe_instances, **by_name("colour", "red")) == ("InvalidParameterValue", 400)


def test_max_results_counts_instances_and_splits_a_reservation(cloud: FaultyEc2):
    for n in range(12):
        cloud.add_instance(instance_id=f"i-{n}", reservation_id="r-1")
    client = cloud.client()

    first = client.describe_instances(MaxResults=5)
    pages = list(client.get_paginator("describe_instances").paginate(PaginationConfig={"PageSize": 5}))

    assert [len(r["Instances"]) for r in first["Reservations"]] == [5]
    assert [sum(len(r["Instances"]) for r in page["Reservations"]) for page in pages] == [5, 5, 2]


@pytest.mark.parametrize("size", [4, 1001])
def test_max_results_has_limits(cloud: FaultyEc2, size: int):
    assert error_of(cloud.client().describe_instances, MaxResults=size) == ("InvalidParameterValue", 400)


def test_ids_and_max_results_exclude_each_other(cloud: FaultyEc2):
    cloud.add_instance(instance_id="i-1")

    error = error_of(cloud.client().describe_instances, MaxResults=5, InstanceIds=["i-1"])

    assert error == ("InvalidParameterCombination", 400)


def test_a_token_belongs_to_its_question(cloud: FaultyEc2):
    fleet_of(cloud, 6)
    client = cloud.client()
    token = client.describe_instances(MaxResults=5)["NextToken"]
    other = by_name("instance-state-name", "running")

    assert error_of(client.describe_instances, NextToken="nonsense", MaxResults=5) == ("InvalidNextToken", 400)
    assert error_of(client.describe_instances, NextToken=token, MaxResults=5, **other) == ("InvalidNextToken", 400)


def test_pages_can_be_laid_out(cloud: FaultyEc2):
    fleet_of(cloud, 3)
    cloud.set_pages("us-east-1", [1, 0, 2])

    assert listed_pages(cloud.client()) == [["i-1"], [], ["i-2", "i-3"]]


def test_pages_can_be_shorter_than_asked_for(cloud: FaultyEc2):
    fleet_of(cloud, 5)
    cloud.configure(page_size=2)

    assert [len(page) for page in listed_pages(cloud.client())] == [2, 2, 1]


def test_pages_can_be_cut_before_the_filter(cloud: FaultyEc2):
    for n in range(6):
        cloud.add_instance(instance_id=f"i-{n}", owner="prod-a" if n in {0, 5} else None)
    cloud.configure(page_size=2, cut_before_filter=True)

    assert listed_pages(cloud.client(), **by_name("tag:reaperd:owner", "prod-a")) == [["i-0"], [], ["i-5"]]


def test_managed_machines_can_be_hidden(cloud: FaultyEc2):
    cloud.add_instance(instance_id="i-1")
    cloud.add_instance(instance_id="i-2", operator="eks.amazonaws.com", hidden=True)
    cloud.add_instance(instance_id="i-3", operator="ecs.amazonaws.com")
    client = cloud.client()

    assert listed(client) == ["i-1", "i-3"]
    assert listed(client, IncludeManagedResources=True) == ["i-1", "i-2", "i-3"]
    operator = described(client, "i-2", IncludeManagedResources=True)["Operator"]
    assert operator == {"Managed": True, "Principal": "eks.amazonaws.com", "HiddenByDefault": True}


def test_ten_thousand_machines_are_listed_in_pages_of_a_thousand():
    with FaultyEc2() as cloud:
        for n in range(10_000):
            cloud.add_instance(worker=f"w-{n}", owner="prod-a")
        cloud.clear_requests()

        # Only the first page: botocore takes a second to parse one.
        reply = cloud.client(timeout=30).describe_instances(MaxResults=1000)

    assert sum(len(r["Instances"]) for r in reply["Reservations"]) == 1000


def test_a_time_without_a_zone_is_refused():
    with pytest.raises(ValueError, match="needs a zone"):
        FaultyEc2(now="2026-01-10T12:00:00")
