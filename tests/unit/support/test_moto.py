"""The fault layer in front of moto, and where moto and our own cloud must agree."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError, ReadTimeoutError
from botocore.parsers import ResponseParserError

from tests.support.ec2 import FaultyEc2
from tests.support.ec2.layer import MotoCloud
from tests.unit.support.asking import by_name, dated, described, error_of, listed, listed_pages

UNKNOWN = "i-0123456789abcdef0"


@pytest.fixture
def moto() -> Iterator[MotoCloud]:
    with MotoCloud() as started:
        yield started


@pytest.fixture(params=[FaultyEc2, MotoCloud])
def either(request: pytest.FixtureRequest) -> Iterator[Any]:
    with request.param() as started:
        yield started


# -- the layer


def test_the_layer_logs_and_forwards(moto: MotoCloud):
    instance_id = moto.add_instance(worker="w-1", owner="prod-a", age_s=3600)
    moto.client().terminate_instances(InstanceIds=[instance_id])

    assert [e.action for e in moto.requests()] == ["TerminateInstances"]
    assert len(moto.terminate_requests(instance_id)) == 1
    assert moto.requests()[0].status == 200


def test_machines_are_as_old_as_they_shall_be(moto: MotoCloud):
    found = described(moto.client(), moto.add_instance(age_s=3600))

    age = datetime.now(UTC) - found["LaunchTime"]
    assert timedelta(seconds=3590) < age < timedelta(seconds=3660)
    assert found["NetworkInterfaces"][0]["Attachment"]["AttachTime"] == found["LaunchTime"]


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("error", ClientError),
        ("malformed", ResponseParserError),
        ("truncated", ResponseParserError),
        ("drop", ConnectionClosedError),
        ("hang", ReadTimeoutError),
        ("dripping", ReadTimeoutError),
    ],
)
def test_faults_strike_before_moto(moto: MotoCloud, kind: str, error: type[Exception]):
    moto.add_instance()
    moto.fault(kind, drip_s=30)

    with pytest.raises(error):
        moto.client(timeout=0.2).describe_instances()


@pytest.mark.parametrize("kind", ["html", "missing_set"])
def test_an_answer_without_the_container(moto: MotoCloud, kind: str):
    moto.add_instance()
    moto.fault(kind)

    assert "Reservations" not in moto.client().describe_instances()


def test_pages_tokens_and_duplicates(moto: MotoCloud):
    ids = [moto.add_instance() for _ in range(4)]
    moto.configure(page_size=2)
    client = moto.client()

    with moto.fault("empty_page", page=2, times=1):
        assert [len(page) for page in listed_pages(client)] == [2, 0, 2]
    with moto.fault("lost_token", page=1):
        assert len(listed(client)) == 2
    with moto.fault("duplicate", page=2):
        assert len(listed(client)) == 5
    assert sorted(listed(client)) == sorted(ids)


def test_a_lost_reply_was_applied(moto: MotoCloud):
    instance_id = moto.add_instance()
    moto.fault("lost_reply", action="TerminateInstances")

    with pytest.raises(ConnectionClosedError):
        moto.client().terminate_instances(InstanceIds=[instance_id])

    assert described(moto.client(), instance_id)["State"]["Name"] == "terminated"


def test_a_date_skew_and_other_services(moto: MotoCloud):
    moto.configure(date_skew_s=-86_400)

    reply = moto.client("autoscaling").describe_auto_scaling_groups()

    assert datetime.now(UTC) - dated(reply) > timedelta(hours=23)


def test_json_services_pass_through(moto: MotoCloud):
    moto.client("organizations").create_organization()

    assert [e.action for e in moto.requests()] == ["CreateOrganization"]


def test_assumed_roles_are_accounts_of_their_own(moto: MotoCloud):
    role = "arn:aws:iam::222222222222:role/reaper"
    key = moto.client("sts").assume_role(RoleArn=role, RoleSessionName="reaperd")["Credentials"]["AccessKeyId"]
    moto.client(access_key=key).describe_instances()

    assert moto.requests("DescribeInstances")[0].request.account == "222222222222"


def test_errors_inside_moto_are_answers(moto: MotoCloud):
    moto.add_instance()

    assert error_of(moto.client().describe_instances, NextToken="nonsense") == ("InternalError", 500)


@pytest.mark.parametrize("kind", ["stale", "ignored"])
def test_what_moto_cannot_play_is_refused(moto: MotoCloud, kind: str):
    with pytest.raises(ValueError, match="moto cannot play"):
        moto.fault(kind)


# -- parity


def test_both_find_by_tag_key_and_wildcard(either: Any):
    ours = either.add_instance(owner="prod-a", worker="w-1")
    canary = either.add_instance(owner="prod-a-canary")
    either.add_instance()
    client = either.client()

    assert listed(client, **by_name("tag:reaperd:owner", "prod-a")) == [ours]
    assert sorted(listed(client, **by_name("tag:reaperd:owner", "prod-*"))) == sorted([ours, canary])
    assert listed(client, **by_name("tag:reaperd:owner", "PROD-A")) == []
    assert sorted(listed(client, **by_name("tag-key", "reaperd:owner"))) == sorted([ours, canary])


def test_both_find_by_state(either: Any):
    running, stopped = either.add_instance(), either.add_instance()
    either.client().stop_instances(InstanceIds=[stopped])

    assert listed(either.client(), **by_name("instance-state-name", "stopped")) == [stopped]
    assert listed(either.client(), **by_name("instance-state-name", "running", "pending")) == [running]


def test_both_give_the_same_shapes(either: Any):
    found = described(either.client(), either.add_instance(owner="prod-a", worker="w-1"))

    assert {type(found[name]).__name__ for name in ("InstanceId", "InstanceType", "PrivateIpAddress")} == {"str"}
    assert found["State"] == {"Code": 16, "Name": "running"}
    assert found["LaunchTime"].tzinfo is not None
    assert {t["Key"] for t in found["Tags"]} == {"reaperd:owner", "reaperd:worker-id"}
    assert found["NetworkInterfaces"][0]["Attachment"]["DeviceIndex"] == 0
    assert found["Placement"]["AvailabilityZone"].startswith("us-east-1")


def test_neither_gives_tags_where_there_are_none(either: Any):
    assert "Tags" not in described(either.client(), either.add_instance())


def test_both_have_the_container_in_an_empty_account(either: Any):
    assert either.client().describe_instances(MaxResults=1000)["Reservations"] == []


def test_both_fail_a_terminate_as_a_whole_for_an_unknown_id(either: Any):
    instance_id = either.add_instance()
    client = either.client()

    error = error_of(client.terminate_instances, InstanceIds=[instance_id, UNKNOWN])

    assert error == ("InvalidInstanceID.NotFound", 400)
    assert described(client, instance_id)["State"]["Name"] == "running"


def test_both_do_not_know_a_machine_of_another_region(either: Any):
    instance_id = either.add_instance(region="eu-west-1")

    assert error_of(either.client().terminate_instances, InstanceIds=[instance_id])[0] == "InvalidInstanceID.NotFound"


def test_both_terminate_and_let_it_be_repeated(either: Any):
    instance_id = either.add_instance()
    client = either.client()

    for _ in range(2):
        (change,) = client.terminate_instances(InstanceIds=[instance_id])["TerminatingInstances"]
        assert change["InstanceId"] == instance_id
        assert change["CurrentState"]["Name"] in {"shutting-down", "terminated"}
    assert listed(client, **by_name("instance-state-name", "running")) == []


def test_both_answer_a_dry_run(either: Any):
    instance_id = either.add_instance()

    error = error_of(either.client().terminate_instances, InstanceIds=[instance_id], DryRun=True)

    assert error == ("DryRunOperation", 412)
    assert described(either.client(), instance_id)["State"]["Name"] == "running"


def test_both_name_the_account_in_identity_and_reservation(either: Any):
    either.add_instance()

    account = either.client("sts").get_caller_identity()["Account"]

    assert [r["OwnerId"] for r in either.client().describe_instances()["Reservations"]] == [account]


def test_both_keep_protection_and_let_it_be_lifted(either: Any):
    instance_id = either.add_instance()
    client = either.client()
    client.modify_instance_attribute(InstanceId=instance_id, DisableApiTermination={"Value": True})

    protected = error_of(client.terminate_instances, InstanceIds=[instance_id])
    client.modify_instance_attribute(InstanceId=instance_id, DisableApiTermination={"Value": False})
    client.terminate_instances(InstanceIds=[instance_id])

    assert protected == ("OperationNotPermitted", 400)
    assert [e.action for e in either.mutating_requests()] == [
        "ModifyInstanceAttribute",
        "TerminateInstances",
        "ModifyInstanceAttribute",
        "TerminateInstances",
    ]
