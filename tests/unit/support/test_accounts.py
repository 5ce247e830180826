"""Who asks, and where: STS, regions, the metadata service."""

from datetime import UTC, datetime

import pytest

from tests.support.ec2 import FaultyEc2
from tests.unit.support.asking import bare, error_of, listed

ROLE = "arn:aws:iam::222222222222:role/reaper"


def regions_of(cloud: FaultyEc2, **options: object) -> dict[str, str]:
    return {r["RegionName"]: r["OptInStatus"] for r in cloud.client().describe_regions(**options)["Regions"]}


def test_the_default_account_is_configurable():
    with FaultyEc2(account="222222222222") as cloud:
        cloud.add_instance(instance_id="i-1")

        assert cloud.client("sts").get_caller_identity()["Account"] == "222222222222"
        assert cloud.client().describe_instances()["Reservations"][0]["OwnerId"] == "222222222222"


def test_the_caller_may_become_another(cloud: FaultyEc2):
    cloud.add_instance(instance_id="i-1")
    cloud.set_caller_account("222222222222")

    assert cloud.client("sts").get_caller_identity()["Account"] == "222222222222"
    assert listed(cloud.client()) == []


def test_an_access_key_belongs_to_its_account(cloud: FaultyEc2):
    cloud.add_access_key("AKIAOTHER", "222222222222", "arn:aws:iam::222222222222:user/other")

    identity = cloud.client("sts", access_key="AKIAOTHER").get_caller_identity()

    assert (identity["Account"], identity["Arn"]) == ("222222222222", "arn:aws:iam::222222222222:user/other")


def test_an_assumed_role_sees_its_account(cloud: FaultyEc2):
    cloud.add_role(ROLE, external_id="secret-word")
    cloud.add_instance(instance_id="i-1")
    cloud.add_instance(instance_id="i-2", account="222222222222")

    reply = cloud.client("sts").assume_role(RoleArn=ROLE, RoleSessionName="reaperd", ExternalId="secret-word")

    key = reply["Credentials"]["AccessKeyId"]
    assert reply["Credentials"]["Expiration"] > datetime.now(UTC)
    assert listed(cloud.client(access_key=key)) == ["i-2"]
    arn = cloud.client("sts", access_key=key).get_caller_identity()["Arn"]
    assert arn == "arn:aws:sts::222222222222:assumed-role/reaper/reaperd"


@pytest.mark.parametrize("external_id", [{}, {"ExternalId": "wrong"}])
def test_a_role_asks_for_its_external_id(cloud: FaultyEc2, external_id: dict[str, str]):
    cloud.add_role(ROLE, external_id="secret-word")

    error = error_of(cloud.client("sts").assume_role, RoleArn=ROLE, RoleSessionName="reaperd", **external_id)

    assert error == ("AccessDenied", 403)


def test_an_unknown_role_is_denied(cloud: FaultyEc2):
    error = error_of(cloud.client("sts").assume_role, RoleArn=ROLE, RoleSessionName="reaperd")

    assert error == ("AccessDenied", 403)
    assert cloud.mutating_requests() == []


def test_only_enabled_regions_are_listed(cloud: FaultyEc2):
    enabled, everything = regions_of(cloud), regions_of(cloud, AllRegions=True)

    assert set(enabled.values()) == {"opt-in-not-required"}
    assert len(enabled) == 17
    assert {name for name, status in everything.items() if status == "not-opted-in"} == everything.keys() - enabled


def test_regions_are_named_filtered_and_configured():
    with FaultyEc2(regions=["us-east-1", "eu-west-1"]) as cloud:
        cloud.set_region("me-south-1", "opted-in")
        by_status = [{"Name": "opt-in-status", "Values": ["opted-in"]}]

        assert regions_of(cloud) == {
            "us-east-1": "opt-in-not-required",
            "eu-west-1": "opt-in-not-required",
            "me-south-1": "opted-in",
        }
        assert list(regions_of(cloud, RegionNames=["eu-west-1"])) == ["eu-west-1"]
        assert list(regions_of(cloud, Filters=by_status)) == ["me-south-1"]


def test_machines_of_a_disabled_region_run_on_unseen(cloud: FaultyEc2):
    cloud.add_instance(region="eu-west-1", instance_id="i-1")
    cloud.set_region("eu-west-1", "not-opted-in")

    assert "eu-west-1" not in regions_of(cloud)
    assert error_of(cloud.client(region="eu-west-1").describe_instances) == ("AuthFailure", 401)
    assert cloud.state_of("i-1") == "running"


def test_an_unknown_action_is_an_error(cloud: FaultyEc2):
    assert error_of(cloud.client().describe_vpcs) == ("InvalidAction", 400)


def test_the_metadata_service_says_who_one_is(cloud: FaultyEc2):
    cloud.set_own_instance("i-1", "eu-west-1")

    _, _, token = bare(cloud, "/latest/api/token", "PUT")
    known = {"X-aws-ec2-metadata-token": token.decode()}

    assert bare(cloud, "/latest/meta-data/instance-id", **known)[2] == b"i-1"
    assert bare(cloud, "/latest/meta-data/placement/region", **known)[2] == b"eu-west-1"
    assert bare(cloud, "/latest/meta-data/instance-id")[0] == 401


def test_off_ec2_there_is_no_metadata(cloud: FaultyEc2):
    assert bare(cloud, "/latest/api/token", "PUT")[0] == 404
    assert cloud.mutating_requests() == []
