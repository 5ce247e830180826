"""The stand-in for EC2 that the measurements run against: what it tells is what EC2 would."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping

import pytest

from bench.buckets import AWS, Buckets, floor_seconds
from bench.faults import Faults
from bench.fleet import Recipe, fleet, orphans, owned
from bench.stub_api import Api, ApiError
from bench.stub_ec2 import Reply, Settings, Stub

HOME = "us-east-1"
RECIPE = Recipe(machines=600, regions=3, guarded_every=33)
FLEET = fleet(RECIPE)
HERE = [machine for machine in FLEET if machine.region == HOME]
OWNED_HERE = [machine.instance_id for machine in HERE if machine.owned]
OURS = {"Filter.1.Name": "tag:reaperd:owner", "Filter.1.Value.1": "bench"}


@pytest.fixture
def api() -> Api:
    return made(Buckets(lambda: 0.0))


def made(buckets: Buckets) -> Api:
    return Api(RECIPE, buckets)


def page(api: Api, params: Mapping[str, str], region: str = HOME) -> tuple[list[str], str]:
    """Return the ids of one page, and the token of the next."""
    body = api.answer("DescribeInstances", region, params).body.decode()
    token = re.search("<nextToken>(.*?)</nextToken>", body)
    return re.findall("<instanceId>(.*?)</instanceId>", body), token[1] if token else ""


def pages(api: Api, params: Mapping[str, str], region: str = HOME) -> list[list[str]]:
    found, token = page(api, params, region)
    told = [found]
    while token:
        found, token = page(api, {**params, "NextToken": token}, region)
        told.append(found)
    return told


def ids(*asked: str) -> dict[str, str]:
    return {f"InstanceId.{number}": each for number, each in enumerate(asked, start=1)}


def refused(api: Api, action: str, params: Mapping[str, str], region: str = HOME) -> str:
    with pytest.raises(ApiError) as told:
        api.answer(action, region, params)
    return str(told.value)


def states(api: Api) -> dict[str, str]:
    return {machine.instance_id: state for machine, state in api.states()}


def test_the_fleet_follows_from_its_recipe():
    assert fleet(RECIPE) == FLEET
    assert len({machine.instance_id for machine in FLEET}) == 600
    assert len(owned(FLEET)) == 540
    assert len(orphans(FLEET)) == 6
    assert orphans(FLEET) < owned(FLEET)
    assert {machine.region: machine.zone[:-1] for machine in FLEET} == {
        region: region for region in ("us-east-1", "us-east-2", "us-west-1")
    }


def test_a_machine_is_as_large_as_one_of_ec2(api: Api):
    answer = api.answer("DescribeInstances", HOME, ids(HERE[1].instance_id)).body

    assert HERE[1].spot
    assert len(list(ET.fromstring(answer).iter())) == 165 + 3
    assert 10_500 < len(answer) < 11_500


def test_the_pages_together_are_what_was_asked_for(api: Api):
    told = pages(api, {**OURS, "MaxResults": "50"})

    assert [len(each) for each in told] == [50, 50, 50, 30]
    assert [each for some in told for each in some] == OWNED_HERE


def test_zones_together_are_the_region(api: Api):
    told = [
        each
        for letter in "abc"
        for some in pages(api, {"Filter.1.Name": "availability-zone", "Filter.1.Value.1": HOME + letter})
        for each in some
    ]

    assert sorted(told) == sorted(machine.instance_id for machine in HERE)


@pytest.mark.parametrize(
    ("name", "value", "number"),
    [("tag-key", "contact", 20), ("tag:Name", "worker 3?", 4), ("instance-state-name", "stopped", 0)],
)
def test_a_filter_takes_away_what_does_not_fit(api: Api, name, value, number):
    asked = {"Filter.1.Name": name, "Filter.1.Value.1": value}

    assert len(page(api, asked)[0]) == number
    assert len(page(api, {**asked, **{f"Filter.2.{key[9:]}": text for key, text in OURS.items()}})[0]) <= number


def test_what_is_not_known_is_an_error(api: Api):
    assert refused(api, "RunInstances", {}).startswith("InvalidAction")
    assert refused(api, "DescribeInstances", {"Filter.1.Name": "colour", "Filter.1.Value.1": "red"}).startswith(
        "InvalidParameterValue"
    )
    assert refused(api, "DescribeInstances", {"MaxResults": "4"}).startswith("InvalidParameterValue")
    assert refused(api, "DescribeInstances", {**ids("i-1"), "MaxResults": "5"}).startswith("InvalidParameterComb")
    assert refused(api, "DescribeInstances", {}, region="mars-east-1").startswith("AuthFailure")


def test_a_token_is_good_for_its_own_request_only(api: Api):
    _, token = page(api, {**OURS, "MaxResults": "50"})

    assert refused(api, "DescribeInstances", {"MaxResults": "50", "NextToken": token}).startswith("InvalidNextToken")
    assert refused(api, "DescribeInstances", {**OURS, "NextToken": "x"}).startswith("InvalidNextToken")


def test_one_unknown_id_ends_nothing(api: Api):
    stray = next(machine.instance_id for machine in FLEET if machine.region != HOME)

    told = refused(api, "TerminateInstances", ids(OWNED_HERE[0], stray))

    assert told == f"InvalidInstanceID.NotFound: The instance ID '{stray}' does not exist"
    assert set(states(api).values()) == {"running"}


def test_a_guarded_machine_saves_its_zone_although_the_others_end(api: Api):
    guarded = next(machine for machine in HERE if machine.guarded)
    free = [machine for machine in HERE if not machine.guarded][:9]

    told = refused(api, "TerminateInstances", ids(guarded.instance_id, *(machine.instance_id for machine in free)))

    assert told.startswith(f"OperationNotPermitted: The instance '{guarded.instance_id}' may not be terminated.")
    ended = {each for each, state in states(api).items() if state == "shutting-down"}
    assert ended == {machine.instance_id for machine in free if machine.zone != guarded.zone}
    assert len(ended) == 6


def test_the_health_of_every_machine_is_told_in_pages(api: Api):
    told: list[str] = []
    token = ""
    while True:
        more = {"NextToken": token} if token else {}
        body = api.answer("DescribeInstanceStatus", HOME, {"MaxResults": "90", **more}).body.decode()
        told += re.findall("<instanceId>(.*?)</instanceId>", body)
        found = re.search("<nextToken>(.*?)</nextToken>", body)
        if found is None:
            break
        token = found[1]

    assert told == [machine.instance_id for machine in HERE]


def test_what_ends_is_listed_until_it_runs_again(api: Api):
    first = OWNED_HERE[0]
    before = api.answer("DescribeInstances", HOME, OURS)

    api.answer("TerminateInstances", HOME, ids(first))
    api.finish()
    after = api.answer("DescribeInstances", HOME, OURS)

    assert before.items == after.items
    assert before.key != after.key
    assert states(api)[first] == "terminated"
    assert b"<name>terminated</name>" in after.body
    api.reset()
    assert states(api)[first] == "running"


def test_a_bucket_refuses_what_is_not_in_it():
    now = [0.0]
    buckets = Buckets(lambda: now[0])
    api = made(buckets)
    buckets.fill(AWS)

    for _ in range(100):
        api.answer("TerminateInstances", HOME, ids(OWNED_HERE[0]))

    assert refused(api, "TerminateInstances", ids(OWNED_HERE[0])).startswith("RequestLimitExceeded")
    now[0] += 0.2
    api.answer("TerminateInstances", HOME, ids(OWNED_HERE[0]))
    api.answer("TerminateInstances", "us-east-2", ids(FLEET[1].instance_id))


def test_the_floor_is_what_does_not_fit_into_the_buckets():
    assert floor_seconds(requests=13, resources=1250) == pytest.approx(12.5)
    assert floor_seconds(requests=200, resources=200) == pytest.approx(20.0)
    assert floor_seconds(requests=1, resources=1) == 0


def test_a_fault_strikes_what_it_names_as_often_as_it_says():
    faults = Faults([{"kind": "cut", "region": HOME, "page": 2, "times": 1}])

    assert faults.strike(HOME, "DescribeInstances", 1) is None
    assert faults.strike("us-east-2", "DescribeInstances", 2) is None
    assert faults.strike(HOME, "DescribeInstances", 2) == "cut"
    assert faults.strike(HOME, "DescribeInstances", 2) is None
    with pytest.raises(ValueError, match="no such fault"):
        Faults([{"kind": "rain"}])


@pytest.fixture(scope="module")
def stub() -> Stub:
    return Stub(RECIPE, Settings(), 1.0)


def spoilt(stub: Stub, kind: str, **more: str) -> Reply:
    stub.control("faults", b'[{"kind": "%s"}]' % kind.encode())
    reply, _ = stub.called(HOME, {"Action": "DescribeInstances", **OURS, "MaxResults": "50", **more})
    stub.control("reset", b"")
    return reply


@pytest.mark.parametrize(
    ("kind", "status", "told"),
    [
        ("throttled", 503, b"<Code>RequestLimitExceeded</Code>"),
        ("failed", 500, b"<Code>InternalError</Code>"),
        ("denied", 403, b"<Code>UnauthorizedOperation</Code>"),
        ("html", 503, b"<html>"),
        ("emptied", 200, b"<reservationSet/>\n    <nextToken>"),
        ("no_token", 200, b"</reservationSet>\n    \n</DescribeInstancesResponse>"),
    ],
)
def test_a_spoilt_answer_is_spoilt_in_that_way(stub: Stub, kind, status, told):
    reply = spoilt(stub, kind)

    assert (reply.status, told in reply.body) == (status, True)


def test_a_garbled_answer_ends_in_the_middle(stub: Stub):
    whole, _ = stub.called(HOME, {"Action": "DescribeInstances", **OURS, "MaxResults": "50"})

    assert spoilt(stub, "garbled").body == whole.body[: len(whole.body) // 2]


def test_a_token_that_comes_again_is_the_one_that_was_sent(stub: Stub, api: Api):
    _, token = page(api, {**OURS, "MaxResults": "50"})

    assert f"<nextToken>{token}</nextToken>".encode() in spoilt(stub, "same_token", NextToken=token).body
