"""Which requests a fault hits, the Date header and the log."""

from datetime import UTC, datetime

import pytest
from botocore.exceptions import (
    ClientError,
)

from tests.support.ec2 import ApiRequest, FaultyEc2
from tests.unit.support.asking import by_name, dated, error_of, fleet_of, listed


def test_a_fault_hits_its_region_action_and_account_only(cloud: FaultyEc2):
    cloud.add_access_key("AKIAOTHER", "222222222222")
    cloud.fault(code="AuthFailure", region="eu-west-1", action="DescribeInstances", account="222222222222")

    assert listed(cloud.client(region="eu-west-1")) == []
    assert listed(cloud.client(access_key="AKIAOTHER")) == []
    other = cloud.client(region="eu-west-1", access_key="AKIAOTHER")
    assert error_of(other.describe_instances) == ("AuthFailure", 401)
    assert other.describe_regions()["Regions"]


def test_a_fault_hits_its_page_only(cloud: FaultyEc2):
    fleet_of(cloud, 6)
    cloud.configure(page_size=5)
    cloud.fault(code="InvalidNextToken", page=2)
    client = cloud.client()

    first = client.describe_instances(MaxResults=1000)

    again = {"MaxResults": 1000, "NextToken": first["NextToken"]}
    assert error_of(client.describe_instances, **again) == ("InvalidNextToken", 400)
    assert [e.request.page for e in cloud.requests()] == [1, 2]


def test_a_fault_hits_its_instance_only(cloud: FaultyEc2):
    fleet_of(cloud, 2)
    cloud.fault(code="OperationNotPermitted", instance_id="i-2", action="TerminateInstances")
    client = cloud.client()

    client.terminate_instances(InstanceIds=["i-1"])

    assert error_of(client.terminate_instances, InstanceIds=["i-2"]) == ("OperationNotPermitted", 400)
    assert [m.state for m in cloud.instances()] == ["shutting-down", "running"]


def test_a_fault_can_look_at_parameters(cloud: FaultyEc2):
    cloud.fault(code="InternalError", params={"Filter.1.Name": "tag:*"})

    assert listed(cloud.client()) == []
    assert error_of(cloud.client().describe_instances, **by_name("tag:a", "b"))[0] == "InternalError"


def test_a_fault_can_forbid_all_changes_even_as_dry_runs(cloud: FaultyEc2):
    fleet_of(cloud, 1)
    cloud.fault(code="UnauthorizedOperation", mutating=True)
    client = cloud.client()

    assert listed(client) == ["i-1"]
    denied = error_of(client.terminate_instances, InstanceIds=["i-1"], DryRun=True)
    assert denied == ("UnauthorizedOperation", 403)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"times": 2}, "xx---"),
        ({"after": 2}, "--xxx"),
        ({"after": 1, "times": 2}, "-xx--"),
        ({"call": 3}, "--x--"),
    ],
)
def test_a_fault_counts_its_requests(cloud: FaultyEc2, rule: dict[str, int], expected: str):
    cloud.fault(code="InternalError", **rule)
    client = cloud.client()

    for _ in expected:
        try:
            client.describe_instances()
        except ClientError:
            continue

    assert "".join("x" if e.error_code else "-" for e in cloud.requests()) == expected


def test_the_first_rule_that_is_due_hits(cloud: FaultyEc2):
    with cloud.fault(code="First", times=1) as rule, cloud.fault(code="Second"):
        codes = [error_of(cloud.client().describe_instances)[0] for _ in range(2)]

    assert codes == ["First", "Second"]
    assert (rule.seen, rule.strikes) == (2, 1)
    assert listed(cloud.client()) == []


def test_an_unknown_kind_or_field_is_refused(cloud: FaultyEc2):
    with pytest.raises(ValueError, match="no_such_kind"):
        cloud.fault("no_such_kind")
    with pytest.raises(TypeError, match="colour"):
        cloud.fault(code="X", colour="red")


# -- the Date header


@pytest.mark.parametrize(
    ("skew", "expected"),
    [
        (0, datetime(2026, 1, 10, 12, 0, 0, tzinfo=UTC)),
        (-600, datetime(2026, 1, 10, 11, 50, 0, tzinfo=UTC)),
        (None, None),
    ],
)
def test_the_date_is_the_clouds_with_its_skew(cloud: FaultyEc2, skew: float | None, expected: datetime | None):
    cloud.configure(date_skew_s=skew)

    assert dated(cloud.client().describe_instances()) == expected


def test_one_answer_can_have_a_date_of_its_own(cloud: FaultyEc2):
    cloud.fault(date_skew_s=3600, call=1)
    client = cloud.client()

    hours = [dated(client.describe_instances()).hour for _ in range(2)]

    assert hours == [13, 12]


def test_a_running_clock_dates_with_the_real_time():
    with FaultyEc2() as cloud:
        cloud.advance(86_400)

        assert abs(dated(cloud.client().describe_instances()) - datetime.now(UTC)).total_seconds() < 60


# -- the log


def test_the_log_has_what_was_asked_and_what_came_back(cloud: FaultyEc2):
    cloud.fault(code="AuthFailure", region="eu-west-1")
    client = cloud.client(region="eu-west-1")
    error_of(client.describe_instances, **by_name("tag:a", "b"))

    (exchange,) = cloud.requests("DescribeInstances", "eu-west-1")

    assert exchange.request.filters() == [("tag:a", ["b"])]
    assert (exchange.status, exchange.error_code, exchange.fault) == (401, "AuthFailure", "error")
    assert exchange.request.at == cloud.now()
    assert cloud.requests("DescribeRegions") == []


def test_an_observer_sees_a_request_before_it_is_answered(cloud: FaultyEc2):
    fleet_of(cloud, 1)
    seen: list[tuple[int, str]] = []

    def note(request: ApiRequest) -> None:
        seen.append((request.number, cloud.state_of("i-1")))

    cloud.on("TerminateInstances", note)
    cloud.client().describe_instances()
    cloud.client().terminate_instances(InstanceIds=["i-1"])

    assert seen == [(2, "running")]


def test_forgetting_the_log(cloud: FaultyEc2):
    fleet_of(cloud, 1)
    cloud.client().terminate_instances(InstanceIds=["i-1"])

    cloud.clear_requests()

    assert (cloud.requests(), cloud.terminated_ids()) == ([], [])
