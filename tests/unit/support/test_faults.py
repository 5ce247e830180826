"""What boto3 makes of each fault."""

import time
from concurrent.futures import ThreadPoolExecutor
from http.client import IncompleteRead

import pytest
from botocore.exceptions import (
    ClientError,
    ConnectionClosedError,
    PaginationError,
    ReadTimeoutError,
)
from botocore.parsers import ResponseParserError

from tests.support.ec2 import FaultyEc2
from tests.unit.support.asking import bare, by_name, error_of, fleet_of, listed, listed_pages


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("RequestLimitExceeded", 503),
        ("UnauthorizedOperation", 403),
        ("AuthFailure", 401),
        ("InvalidNextToken", 400),
        ("ExpiredToken", 403),
        ("InternalError", 500),
        ("OptInRequired", 401),
    ],
)
def test_an_error_has_its_code_and_usual_status(cloud: FaultyEc2, code: str, status: int):
    cloud.fault(code=code)

    assert error_of(cloud.client().describe_instances) == (code, status)


def test_an_error_may_have_any_status_and_message(cloud: FaultyEc2):
    cloud.fault(code="Blocked", http=418, message="try <again> later")

    with pytest.raises(ClientError, match="try <again> later"):
        cloud.client().describe_instances()
    assert error_of(cloud.client().describe_instances) == ("Blocked", 418)


def test_identity_can_fail(cloud: FaultyEc2):
    cloud.fault(action="GetCallerIdentity", code="AccessDenied")

    assert error_of(cloud.client("sts").get_caller_identity) == ("AccessDenied", 403)


def test_a_page_of_html_with_200_is_an_answer_without_the_container(cloud: FaultyEc2):
    fleet_of(cloud, 1)
    cloud.fault("html")

    assert cloud.client().describe_instances().keys() == {"ResponseMetadata"}


def test_a_page_of_html_with_503_is_an_error(cloud: FaultyEc2):
    cloud.fault("html", http=503)

    with pytest.raises(ClientError):
        cloud.client().describe_instances()


def test_any_body_can_be_served(cloud: FaultyEc2):
    cloud.fault("body", body="", http=200)

    with pytest.raises(ResponseParserError):
        cloud.client().describe_instances()


def test_the_container_can_be_missing_from_one_page(cloud: FaultyEc2):
    fleet_of(cloud, 6)
    cloud.configure(page_size=5)
    cloud.fault("missing_set", page=1)
    client = cloud.client()

    first = client.describe_instances(MaxResults=1000)
    second = client.describe_instances(MaxResults=1000, NextToken=first["NextToken"])

    assert "Reservations" not in first
    assert len(second["Reservations"]) == 1


def test_the_container_can_be_missing_elsewhere(cloud: FaultyEc2):
    cloud.fault("missing_set")

    assert "Regions" not in cloud.client().describe_regions()


@pytest.mark.parametrize("kind", ["missing_set", "html"])
def test_sts_without_its_result_makes_botocore_raise_a_bare_key_error(cloud: FaultyEc2, kind: str):
    cloud.fault(kind)

    with pytest.raises(KeyError, match="GetCallerIdentityResult"):
        cloud.client("sts").get_caller_identity()


def test_half_a_document_cannot_be_parsed(cloud: FaultyEc2):
    fleet_of(cloud, 1)
    cloud.fault("malformed")

    with pytest.raises(ResponseParserError):
        cloud.client().describe_instances()


def test_a_truncated_body_breaks_off(cloud: FaultyEc2):
    fleet_of(cloud, 1)
    cloud.fault("truncated")

    with pytest.raises(ResponseParserError):  # botocore does not compare with Content-Length
        cloud.client().describe_instances()
    with pytest.raises(IncompleteRead):
        bare(cloud, "/?Action=DescribeInstances")


def test_a_dripping_body_outlives_the_read_timeout(cloud: FaultyEc2):
    cloud.fault("dripping", drip_s=0.004)
    client = cloud.client(timeout=0.4)
    began = time.monotonic()

    client.describe_instances()

    assert time.monotonic() - began > 0.4


def test_a_dripping_body_is_cut_when_the_cloud_closes(cloud: FaultyEc2):
    cloud.fault("dripping", drip_s=30)
    client = cloud.client(timeout=0.1)

    with pytest.raises(ReadTimeoutError):
        client.describe_instances()


def test_a_hanging_request_ends_with_the_client(cloud: FaultyEc2):
    cloud.fault("hang", times=1)
    client = cloud.client(timeout=0.1)

    with pytest.raises(ReadTimeoutError):
        client.describe_instances()

    (exchange,) = cloud.requests()
    assert (exchange.status, exchange.fault) == (None, "hang")
    assert listed(client) == []


def test_a_dropped_connection(cloud: FaultyEc2):
    cloud.fault("drop")

    with pytest.raises(ConnectionClosedError):
        cloud.client().describe_instances()


def test_dropped_connections_are_retried_by_botocore(cloud: FaultyEc2):
    cloud.fault("drop", times=2)

    assert listed(cloud.client(attempts=3)) == []
    assert [e.fault for e in cloud.requests()] == ["drop", "drop", None]


def test_a_lost_reply_leaves_the_machine_terminated(cloud: FaultyEc2):
    fleet_of(cloud, 1)
    cloud.fault("lost_reply", action="TerminateInstances")

    with pytest.raises(ConnectionClosedError):
        cloud.client().terminate_instances(InstanceIds=["i-1"])

    assert cloud.state_of("i-1") == "shutting-down"
    assert cloud.terminated_ids() == ["i-1"]


@pytest.mark.parametrize("kind", ["error", "drop"])
def test_without_applied_nothing_is_done(cloud: FaultyEc2, kind: str):
    fleet_of(cloud, 1)
    cloud.fault(kind, action="TerminateInstances")

    with pytest.raises((ClientError, ConnectionClosedError)):
        cloud.client().terminate_instances(InstanceIds=["i-1"])

    assert cloud.state_of("i-1") == "running"


def test_an_error_may_come_after_the_deed(cloud: FaultyEc2):
    fleet_of(cloud, 1)
    cloud.fault(code="InternalError", action="TerminateInstances", applied=True)

    assert error_of(cloud.client().terminate_instances, InstanceIds=["i-1"]) == ("InternalError", 500)
    assert cloud.state_of("i-1") == "shutting-down"


def test_an_ignored_terminate_is_accepted_and_nothing_happens(cloud: FaultyEc2):
    fleet_of(cloud, 1)
    cloud.fault("ignored", action="TerminateInstances")

    reply = cloud.client().terminate_instances(InstanceIds=["i-1"])
    cloud.advance(3600)

    assert reply["TerminatingInstances"][0]["CurrentState"]["Name"] == "shutting-down"
    assert cloud.state_of("i-1") == "running"
    assert cloud.terminated_ids() == ["i-1"]


def test_an_empty_page_still_leads_to_what_it_stands_before(cloud: FaultyEc2):
    fleet_of(cloud, 6)
    cloud.configure(page_size=5)
    cloud.fault("empty_page", page=1, times=1)
    cloud.fault("empty_page", page=3, times=1)

    pages = listed_pages(cloud.client(), **by_name("tag-key", "reaperd:owner"))

    assert [len(page) for page in pages] == [0, 5, 0, 1]


def test_empty_pages_can_go_on_for_ever(cloud: FaultyEc2):
    fleet_of(cloud, 1)
    cloud.fault("empty_page")
    pages = cloud.client().get_paginator("describe_instances").paginate()

    lengths = [len(page["Reservations"]) for page, _ in zip(pages, range(20), strict=False)]

    assert lengths == [0] * 20


def test_a_lost_token_ends_the_listing_early(cloud: FaultyEc2):
    fleet_of(cloud, 6)
    cloud.configure(page_size=5)
    cloud.fault("lost_token", page=1)

    assert listed(cloud.client()) == ["i-1", "i-2", "i-3", "i-4", "i-5"]


def test_a_repeated_token_leads_back(cloud: FaultyEc2):
    fleet_of(cloud, 12)
    cloud.configure(page_size=5)
    cloud.fault("repeated_token")

    with pytest.raises(PaginationError):
        list(cloud.client().get_paginator("describe_instances").paginate())


def test_a_duplicate_repeats_the_last_of_the_page_before(cloud: FaultyEc2):
    fleet_of(cloud, 6)
    cloud.configure(page_size=5)
    cloud.fault("duplicate", page=2)

    assert listed_pages(cloud.client())[1] == ["i-5", "i-6"]


def test_a_duplicate_on_page_one_repeats_its_own_first(cloud: FaultyEc2):
    fleet_of(cloud, 2)
    cloud.fault("duplicate")

    assert listed(cloud.client()) == ["i-1", "i-1", "i-2"]


def test_a_stale_view_shows_what_was(cloud: FaultyEc2):
    fleet_of(cloud, 1)
    rule = cloud.fault("stale", action="DescribeInstances")
    cloud.add_instance(instance_id="i-2")
    cloud.client().terminate_instances(InstanceIds=["i-1"])

    stale = cloud.client().describe_instances()["Reservations"]
    rule.remove()

    assert [(r["Instances"][0]["InstanceId"], r["Instances"][0]["State"]["Name"]) for r in stale] == [
        ("i-1", "running")
    ]
    assert listed(cloud.client()) == ["i-1", "i-2"]


def test_a_delay_alone_is_a_slow_right_answer(cloud: FaultyEc2):
    fleet_of(cloud, 1)
    cloud.fault(delay_s=0.1)
    began = time.monotonic()

    assert listed(cloud.client()) == ["i-1"]
    assert time.monotonic() - began >= 0.1


# -- the wire


def test_gzip_is_spoken_to_those_who_ask(cloud: FaultyEc2):
    _, headers, body = bare(cloud, "/?Action=DescribeRegions", **{"Accept-Encoding": "gzip"})

    assert headers["Content-Encoding"] == "gzip"
    assert body.startswith(b"\x1f\x8b")


def test_closing_ends_idle_and_hanging_connections_at_once():
    cloud = FaultyEc2().start()
    cloud.client().describe_instances()
    cloud.fault("hang")
    with pytest.raises(ReadTimeoutError):
        cloud.client(timeout=0.05).describe_instances()
    began = time.monotonic()

    cloud.close()
    cloud.close()

    assert time.monotonic() - began < 1


def test_a_slow_region_does_not_hold_up_the_others(cloud: FaultyEc2):
    cloud.fault("hang", region="eu-west-1")
    slow, quick = cloud.client(region="eu-west-1", timeout=1), cloud.client(region="us-east-1")

    with ThreadPoolExecutor() as pool:
        hanging = pool.submit(slow.describe_instances)
        answers = list(pool.map(lambda _: listed(quick), range(5)))
        waits = not hanging.done()

    assert answers == [[]] * 5
    assert waits
    assert isinstance(hanging.exception(), ReadTimeoutError)
