"""The same controls over HTTP, and the clouds as processes."""

import json
from pathlib import Path

import boto3
import pytest

from tests.support.ec2 import FaultyEc2, control
from tests.support.ec2.clients import Clients
from tests.support.ec2.process import running
from tests.unit.support.asking import error_of, listed


def test_machines_time_and_faults_are_controlled(cloud: FaultyEc2):
    instance_id = control(cloud.url, "add_instance", worker="w-1", owner="prod-a", az="us-east-1b")
    cloud.client().terminate_instances(InstanceIds=[instance_id])
    control(cloud.url, "advance", seconds=30)
    number = control(cloud.url, "fault", code="AuthFailure", region="us-east-1")
    failed = error_of(cloud.client().describe_instances)
    control(cloud.url, "remove_fault", number=number)

    assert control(cloud.url, "now") == "2026-01-10T12:00:30+00:00"
    assert control(cloud.url, "state_of", instance_id=instance_id) == "terminated"
    assert failed == ("AuthFailure", 401)
    assert listed(cloud.client()) == [instance_id]


def test_machines_and_requests_come_back_as_json(cloud: FaultyEc2):
    control(cloud.url, "add_instance", instance_id="i-1", missing_fields=["LaunchTime"], spot="persistent")
    cloud.client().terminate_instances(InstanceIds=["i-1"])

    (machine, _) = control(cloud.url, "instances", region="us-east-1")
    (request,) = control(cloud.url, "terminate_requests", instance_id="i-1")

    assert (machine["state"], machine["missing_fields"]) == ("shutting-down", ["LaunchTime"])
    assert (request["action"], request["status"], request["mutating"]) == ("TerminateInstances", 200, True)
    assert request["params"]["InstanceId.1"] == "i-1"
    assert control(cloud.url, "terminated_ids") == ["i-1"]
    assert [s["state"] for s in control(cloud.url, "spot_requests")] == ["active"]


@pytest.mark.parametrize(
    "command",
    [{"do": "close"}, {"do": "advance"}, {"do": "add_instance", "colour": "red"}, {"do": "configure", "x": 1}],
)
def test_nonsense_is_refused_with_the_reason(cloud: FaultyEc2, command: dict[str, object]):
    with pytest.raises(ValueError, match=r"\w+Error"):
        control(cloud.url, **command)


def test_the_control_is_not_in_the_log(cloud: FaultyEc2):
    control(cloud.url, "settle")

    assert cloud.requests() == []


def test_an_environment_points_boto3_at_the_cloud(cloud: FaultyEc2, monkeypatch: pytest.MonkeyPatch):
    cloud.add_instance(region="eu-west-1", instance_id="i-1")
    for name, value in cloud.environment("eu-west-1").items():
        monkeypatch.setenv(name, value)

    client = boto3.Session().client("ec2")

    assert listed(client) == ["i-1"]
    client.close()


def test_a_cloud_runs_as_a_process_with_a_fleet_from_a_file(tmp_path: Path):
    fleet = {
        "cloud": {"account": "222222222222", "regions": ["us-east-1"], "now": "2026-01-10T12:00:00+00:00"},
        "instances": [{"instance_id": "i-1", "owner": "prod-a", "age_s": 60}, {"instance_id": "i-2"}],
        "faults": [{"code": "RequestLimitExceeded", "action": "DescribeRegions"}],
        "commands": [{"do": "set_pages", "region": "us-east-1", "lengths": [1, 0, 1]}],
    }
    file = tmp_path / "fleet.json"
    file.write_text(json.dumps(fleet), encoding="utf-8")

    with running("--fleet", str(file)) as url:
        clients = Clients(url)
        ids = listed(clients.client("ec2", "us-east-1"))
        error = error_of(clients.client("ec2", "us-east-1").describe_regions)
        account = clients.client("sts", "us-east-1").get_caller_identity()["Account"]
        pages = len(control(url, "requests", action="DescribeInstances"))
        clients.close()

    assert (ids, error, account) == (["i-1", "i-2"], ("RequestLimitExceeded", 503), "222222222222")
    assert pages == 3


@pytest.mark.slow  # importing moto
def test_moto_runs_as_a_process_too():
    with running("--moto") as url:
        instance_id = control(url, "add_instance", owner="prod-a", worker="w-1")
        clients = Clients(url)
        ids = listed(clients.client("ec2", "us-east-1"))
        clients.close()
        log = control(url, "requests")

    assert ids == [instance_id]
    assert [e["action"] for e in log] == ["DescribeInstances"]
