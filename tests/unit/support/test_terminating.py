"""TerminateInstances of our own cloud, and what time does to machines."""

import pytest

from tests.support.ec2 import FaultyEc2
from tests.unit.support.asking import described, error_of, fleet_of, listed

UNKNOWN = "i-0123456789abcdef0"


def test_a_machine_shuts_down_then_is_terminated_then_forgotten(cloud: FaultyEc2):
    fleet_of(cloud, 1)

    reply = cloud.client().terminate_instances(InstanceIds=["i-1"])

    (change,) = reply["TerminatingInstances"]
    assert change["PreviousState"]["Name"] == "running"
    assert change["CurrentState"] == {"Code": 32, "Name": "shutting-down"}
    assert cloud.state_of("i-1") == "shutting-down"
    cloud.advance(30)
    assert cloud.state_of("i-1") == "terminated"
    assert described(cloud.client(), "i-1").get("NetworkInterfaces") is None
    cloud.advance(3600)
    assert cloud.state_of("i-1") == "absent"
    assert error_of(cloud.client().describe_instances, InstanceIds=["i-1"])[0] == "InvalidInstanceID.NotFound"


def test_the_end_can_wait_for_settle(cloud: FaultyEc2):
    fleet_of(cloud, 1)
    cloud.configure(shutdown_s=None)
    cloud.client().terminate_instances(InstanceIds=["i-1"])

    cloud.advance(86_400)
    before = cloud.state_of("i-1")
    cloud.settle()

    assert (before, cloud.state_of("i-1")) == ("shutting-down", "terminated")


def test_terminating_twice_is_harmless(cloud: FaultyEc2):
    fleet_of(cloud, 1)
    client = cloud.client()

    client.terminate_instances(InstanceIds=["i-1"])
    again = client.terminate_instances(InstanceIds=["i-1"])

    assert again["TerminatingInstances"][0]["PreviousState"]["Name"] == "shutting-down"
    assert len(cloud.terminate_requests("i-1")) == 2
    assert cloud.terminated_ids() == ["i-1", "i-1"]


@pytest.mark.parametrize(
    ("bad", "code"), [(UNKNOWN, "InvalidInstanceID.NotFound"), ("ma1", "InvalidInstanceID.Malformed")]
)
def test_one_bad_id_fails_the_whole_request(cloud: FaultyEc2, bad: str, code: str):
    fleet_of(cloud, 1)

    assert error_of(cloud.client().terminate_instances, InstanceIds=["i-1", bad]) == (code, 400)
    assert cloud.state_of("i-1") == "running"
    assert cloud.terminated_ids() == []


def test_a_vanished_machine_is_not_found_however_short_its_id(cloud: FaultyEc2):
    fleet_of(cloud, 1)
    cloud.remove("i-1")

    assert error_of(cloud.client().terminate_instances, InstanceIds=["i-1"]) == ("InvalidInstanceID.NotFound", 400)


def test_more_than_a_thousand_ids_are_refused(cloud: FaultyEc2):
    ids = [f"i-{n:017x}" for n in range(1001)]

    assert error_of(cloud.client().terminate_instances, InstanceIds=ids) == ("InvalidParameterValue", 400)


def test_a_protected_machine_saves_its_zone_only(cloud: FaultyEc2):
    cloud.add_instance(instance_id="i-1", az="us-east-1a")
    cloud.add_instance(instance_id="i-2", az="us-east-1a", protected=True)
    cloud.add_instance(instance_id="i-3", az="us-east-1b")

    error = error_of(cloud.client().terminate_instances, InstanceIds=["i-1", "i-2", "i-3"])

    assert error == ("OperationNotPermitted", 400)
    assert [m.state for m in cloud.instances()] == ["running", "running", "shutting-down"]
    assert cloud.terminated_ids() == ["i-3"]


def test_a_dry_run_changes_nothing_and_is_no_terminate(cloud: FaultyEc2):
    fleet_of(cloud, 1)

    assert error_of(cloud.client().terminate_instances, InstanceIds=["i-1"], DryRun=True) == ("DryRunOperation", 412)
    assert cloud.state_of("i-1") == "running"
    assert cloud.mutating_requests() == []
    assert cloud.terminate_requests() == []
    assert [e.action for e in cloud.dry_runs()] == ["TerminateInstances"]


def test_the_wrong_region_does_not_know_the_machine(cloud: FaultyEc2):
    fleet_of(cloud, 1)

    error = error_of(cloud.client(region="eu-west-1").terminate_instances, InstanceIds=["i-1"])

    assert error == ("InvalidInstanceID.NotFound", 400)


def test_a_managed_machine_is_not_ended(cloud: FaultyEc2):
    cloud.add_instance(instance_id="i-1", operator="eks.amazonaws.com")

    assert error_of(cloud.client().terminate_instances, InstanceIds=["i-1"])[0] == "OperationNotPermitted"
    assert cloud.state_of("i-1") == "running"


def test_states_can_be_set_behind_the_back(cloud: FaultyEc2):
    fleet_of(cloud, 2)
    cloud.client().terminate_instances(InstanceIds=["i-1"])

    cloud.set_state("i-1", "running")
    cloud.advance(60)

    assert cloud.state_of("i-1") == "running"
    assert listed(cloud.client()) == ["i-1", "i-2"]


def test_terminations_are_counted_in_the_buckets_of_their_region(cloud: FaultyEc2):
    cloud.configure(throttled=True)
    for region in ("us-east-1", "eu-west-1"):
        for number in range(1020):
            cloud.add_instance(instance_id=f"i-{number}", region=region)
    ids = [f"i-{number}" for number in range(1020)]
    east, west = cloud.client(), cloud.client(region="eu-west-1")

    east.terminate_instances(InstanceIds=ids[:1000])
    refused = error_of(east.terminate_instances, InstanceIds=ids[1000:])
    west.terminate_instances(InstanceIds=ids[:1000])
    cloud.advance(0.95)
    still_refused = error_of(east.terminate_instances, InstanceIds=ids[1000:])
    cloud.advance(0.05)
    east.terminate_instances(InstanceIds=ids[1000:])

    assert refused == still_refused == ("RequestLimitExceeded", 503)
    assert all(machine.state == "shutting-down" for machine in cloud.instances("us-east-1"))


def test_requests_are_counted_however_few_machines_they_name(cloud: FaultyEc2):
    fleet_of(cloud, 1)
    cloud.configure(throttled=True)
    client = cloud.client()

    for _ in range(100):
        client.terminate_instances(InstanceIds=["i-1"])

    assert error_of(client.terminate_instances, InstanceIds=["i-1"]) == ("RequestLimitExceeded", 503)
    cloud.configure(throttled=False)
    client.terminate_instances(InstanceIds=["i-1"])
