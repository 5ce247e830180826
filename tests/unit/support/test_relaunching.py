"""What comes back: spot requests, groups, fleets."""

from collections.abc import Callable

import pytest

from tests.support.ec2 import FaultyEc2
from tests.unit.support.asking import described, error_of, fleet_of, listed


def spot(cloud: FaultyEc2) -> str:
    cloud.add_instance(instance_id="i-1", worker="w-1", owner="prod-a", spot="persistent")
    return cloud.instance("i-1").spot_request_id or ""


def group(cloud: FaultyEc2) -> str:
    cloud.add_instance(instance_id="i-1", worker="w-1", owner="prod-a", tags={"aws:autoscaling:groupName": "asg"})
    return "asg"


def fleet(cloud: FaultyEc2) -> str:
    fleet_id = cloud.add_fleet()
    cloud.add_instance(instance_id="i-1", worker="w-1", owner="prod-a", tags={"aws:ec2:fleet-id": fleet_id})
    return fleet_id


@pytest.mark.parametrize("parent", [spot, group, fleet])
def test_a_parent_replaces_its_machine_by_a_new_one_with_its_tags(cloud: FaultyEc2, parent: Callable[[FaultyEc2], str]):
    parent(cloud)
    tags = cloud.instance("i-1").tags
    cloud.client().terminate_instances(InstanceIds=["i-1"])

    old, new = cloud.instances()

    assert (old.instance_id, old.state) == ("i-1", "shutting-down")
    assert (new.state, new.tags) == ("running", tags)
    assert new.instance_id != "i-1"
    assert described(cloud.client(), new.instance_id)["LaunchTime"] == cloud.now()


def test_a_replacement_can_take_its_time(cloud: FaultyEc2):
    group(cloud)
    cloud.configure(relaunch_s=90)
    cloud.client().terminate_instances(InstanceIds=["i-1"])

    cloud.advance(89)
    before = len(cloud.instances())
    cloud.advance(1)

    assert (before, len(cloud.instances())) == (1, 2)


def test_a_replacement_is_replaced_too(cloud: FaultyEc2):
    spot(cloud)

    for _ in range(3):
        (live,) = (m.instance_id for m in cloud.instances() if m.live)
        cloud.client().terminate_instances(InstanceIds=[live])

    assert len(cloud.instances()) == 4
    assert len(cloud.spot_requests()) == 1


def test_a_cancelled_request_leaves_its_machine_and_replaces_it_no_more(cloud: FaultyEc2):
    request_id = spot(cloud)
    client = cloud.client()

    reply = client.cancel_spot_instance_requests(SpotInstanceRequestIds=[request_id])
    state = cloud.state_of("i-1")
    client.terminate_instances(InstanceIds=["i-1"])

    (cancelled,) = reply["CancelledSpotInstanceRequests"]
    assert cancelled == {"SpotInstanceRequestId": request_id, "State": "cancelled"}
    assert state == "running"
    assert [m.instance_id for m in cloud.instances()] == ["i-1"]


def test_a_one_time_request_ends_with_its_machine(cloud: FaultyEc2):
    cloud.add_instance(instance_id="i-1", spot="one-time")
    cloud.client().terminate_instances(InstanceIds=["i-1"])

    assert [m.instance_id for m in cloud.instances()] == ["i-1"]
    assert [s.state for s in cloud.spot_requests()] == ["closed"]


def test_an_ignored_terminate_replaces_nothing(cloud: FaultyEc2):
    group(cloud)
    cloud.fault("ignored", action="TerminateInstances")
    cloud.client().terminate_instances(InstanceIds=["i-1"])

    assert listed(cloud.client()) == ["i-1"]


def test_spot_requests_are_described(cloud: FaultyEc2):
    request_id = spot(cloud)
    cloud.add_instance(spot="one-time")
    client = cloud.client()
    persistent = [{"Name": "type", "Values": ["persistent"]}]

    (named,) = client.describe_spot_instance_requests(SpotInstanceRequestIds=[request_id])["SpotInstanceRequests"]
    filtered = client.describe_spot_instance_requests(Filters=persistent)["SpotInstanceRequests"]

    assert (named["Type"], named["State"], named["InstanceId"]) == ("persistent", "active", "i-1")
    assert named["CreateTime"] == cloud.now()
    assert [s["SpotInstanceRequestId"] for s in filtered] == [request_id]
    assert len(client.describe_spot_instance_requests()["SpotInstanceRequests"]) == 2


@pytest.mark.parametrize("call", ["describe_spot_instance_requests", "cancel_spot_instance_requests"])
def test_an_unknown_spot_request_is_an_error(cloud: FaultyEc2, call: str):
    error = error_of(getattr(cloud.client(), call), SpotInstanceRequestIds=["sir-00000000"])

    assert error == ("InvalidSpotInstanceRequestID.NotFound", 400)


def test_a_spot_request_can_be_changed_behind_the_back(cloud: FaultyEc2):
    request_id = spot(cloud)
    cloud.change_spot_request(request_id, state="disabled")

    (found,) = cloud.client().describe_spot_instance_requests()["SpotInstanceRequests"]

    assert found["State"] == "disabled"


def test_a_persistent_request_is_open_until_it_launches_again(cloud: FaultyEc2):
    spot(cloud)
    cloud.configure(relaunch_s=60)
    cloud.client().terminate_instances(InstanceIds=["i-1"])

    before = [s.state for s in cloud.spot_requests()]
    cloud.advance(60)

    (request,) = cloud.spot_requests()
    assert before == ["open"]
    assert (request.state, request.instance_id) == ("active", cloud.instances()[-1].instance_id)


def test_cancelling_between_the_end_and_the_replacement_is_in_time(cloud: FaultyEc2):
    request_id = spot(cloud)
    cloud.configure(relaunch_s=60)
    cloud.client().terminate_instances(InstanceIds=["i-1"])

    cloud.client().cancel_spot_instance_requests(SpotInstanceRequestIds=[request_id])
    cloud.advance(60)

    assert len(cloud.instances()) == 1


def test_spot_prices_are_those_of_now(cloud: FaultyEc2):
    cloud.set_spot_price("g5.xlarge", "0.4000", az="us-east-1a")
    cloud.set_spot_price("g5.xlarge", "0.3500", az="us-east-1b")
    cloud.set_spot_price("g5.xlarge", "0.4200", az="us-east-1a")
    cloud.set_spot_price("p4d.24xlarge", "9.8000")
    cloud.set_spot_price("g5.xlarge", "0.1000", region="eu-west-1")

    reply = cloud.client().describe_spot_price_history(
        InstanceTypes=["g5.xlarge"], ProductDescriptions=["Linux/UNIX"], StartTime=cloud.now()
    )

    prices = {row["AvailabilityZone"]: row["SpotPrice"] for row in reply["SpotPriceHistory"]}
    assert prices == {"us-east-1a": "0.4200", "us-east-1b": "0.3500"}
    assert reply["SpotPriceHistory"][0]["Timestamp"] == cloud.now()


def test_instant_fleets_are_described_only_by_name(cloud: FaultyEc2):
    maintain, instant = cloud.add_fleet(), cloud.add_fleet(kind="instant")
    client = cloud.client()

    assert [f["FleetId"] for f in client.describe_fleets()["Fleets"]] == [maintain]
    (named,) = client.describe_fleets(FleetIds=[instant])["Fleets"]
    assert (named["Type"], named["FleetState"]) == ("instant", "active")
    assert error_of(client.describe_fleets, FleetIds=["fleet-0"]) == ("InvalidFleetId.NotFound", 400)


def test_an_instant_fleet_replaces_nothing(cloud: FaultyEc2):
    fleet_id = cloud.add_fleet(kind="instant")
    cloud.add_instance(instance_id="i-1", tags={"aws:ec2:fleet-id": fleet_id})
    cloud.client().terminate_instances(InstanceIds=["i-1"])

    assert len(cloud.instances()) == 1


def test_without_parents_nothing_comes_back(cloud: FaultyEc2):
    fleet_of(cloud, 1)
    cloud.client().terminate_instances(InstanceIds=["i-1"])
    cloud.settle()

    assert [m.state for m in cloud.instances()] == ["terminated"]
