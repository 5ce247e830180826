"""What one region answers, and whether that proves that it is everything."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest

from providers.aws import aws_lister
from providers.aws.hooks import READ_ONLY
from providers.aws.region import AwsRegion
from providers.aws.session import AwsSessions
from providers.base import InstanceAuditor, Lister, Terminator
from providers.errors import IncompleteListingError
from providers.model import InstanceState, Scope, ScopeFailure
from providers.parsers import Parser
from reaperd.clock import ManualClock, SystemClock
from tests.support.ec2 import FaultyEc2
from tests.support.processes import until
from tests.unit.providers.aws.builders import REGION, hole, lister, options, patience
from tests.unit.providers.aws.canned import (
    ACCOUNT,
    NOW,
    CannedAws,
    Reply,
    answer,
    failure,
    fleets,
    instance,
    page,
    regions,
    reservation,
    spot_fleets,
)

HTML = "<html><head><title>Sign in</title></head><body><p>Welcome to the hotel</p></body></html>"
ONE = Reply(page(reservation(instance("i-1")), token="t1"))


def test_lists_every_machine_of_every_page(canned: CannedAws) -> None:
    canned.will(
        "DescribeInstances",
        Reply(page(reservation(instance("i-1"), instance("i-2")), token="t1")),
        Reply(page(reservation(instance("i-3")))),
    )

    inventory = lister(canned).list_owned()

    assert [machine.ref.instance_id for machine in inventory] == ["i-1", "i-2", "i-3"]
    (coverage,) = inventory.coverage
    assert (coverage.scope, coverage.account) == (Scope("aws", REGION), ACCOUNT)
    assert (coverage.instances, coverage.pages) == (3, 2)
    assert coverage.ok


def test_an_account_without_machines_is_whole(canned: CannedAws) -> None:
    inventory = lister(canned).list_owned()

    assert len(inventory) == 0
    assert inventory.coverage[0].ok


def test_asks_for_our_tag_in_every_state_and_for_what_operators_hide(canned: CannedAws) -> None:
    lister(canned, page_size=7).list_owned()

    (asked,) = canned.asked("DescribeInstances")
    assert asked["Filter.1.Name"] == "tag:reaperd:owner"
    assert asked["Filter.1.Value.1"] == "prod"
    assert "Filter.1.Value.2" not in asked
    assert "Filter.2.Name" not in asked
    assert asked["IncludeManagedResources"] == "true"
    assert asked["MaxResults"] == "7"


def test_a_machine_in_a_state_that_nobody_knows_is_there_and_a_terminated_one_is_not(canned: CannedAws) -> None:
    body = page(reservation(instance("i-1", state="melting"), instance("i-2", state="terminated")))
    canned.will("DescribeInstances", Reply(body))

    inventory = lister(canned).list_owned()

    assert [(found.ref.instance_id, found.state) for found in inventory] == [("i-1", InstanceState.UNKNOWN)]
    assert inventory.coverage[0].instances == 1


def test_passes_the_token_on_and_stops_at_an_empty_one(canned: CannedAws) -> None:
    canned.will("DescribeInstances", ONE, Reply(page(reservation(instance("i-2")), token="")))

    assert len(lister(canned).list_owned()) == 2
    assert [request.get("NextToken") for request in canned.asked("DescribeInstances")] == [None, "t1"]


def test_an_empty_page_with_a_token_is_not_the_end(canned: CannedAws) -> None:
    canned.will("DescribeInstances", Reply(page(token="t1")), Reply(page(reservation(instance("i-1")))))

    inventory = lister(canned).list_owned()

    assert len(inventory) == 1
    assert inventory.coverage[0].pages == 2


@pytest.mark.parametrize("parser", Parser)
@pytest.mark.parametrize(
    ("second", "code"),
    [
        pytest.param(Reply(HTML, content_type="text/html"), "malformed_answer", id="a sign-in page"),
        pytest.param(Reply(HTML), "malformed_answer", id="a sign-in page that says it is XML"),
        pytest.param(Reply(HTML, content_type=None), "malformed_answer", id="a sign-in page of no type"),
        pytest.param(Reply(page(reservation(instance())), content_type="text/html"), "malformed_answer", id="HTML"),
        pytest.param(Reply(answer("DescribeInstances", "")), "malformed_answer", id="no reservationSet"),
        pytest.param(Reply(page("<item><ownerId>1</ownerId></item>")), "malformed_answer", id="no instancesSet"),
        pytest.param(Reply(page(reservation("<item></item>"))), "malformed_answer", id="no instanceId"),
        pytest.param(Reply(page(reservation(instance("")))), "malformed_answer", id="blank instanceId"),
        pytest.param(
            Reply(page(reservation(instance("i-2")), "</reservationSet><reservationSet>")), "malformed_answer", id="two"
        ),
        pytest.param(Reply(page(reservation(instance("i-2", launched="soon")))), "malformed_answer", id="no time"),
        pytest.param(Reply(page(reservation(instance("i-2"))), cut=20), "malformed_answer", id="cut"),
        pytest.param(Reply(""), "malformed_answer", id="empty body"),
        pytest.param(Reply(b"\x1f\x8b\x08"), "malformed_answer", id="garbage"),
        pytest.param(Reply(page(reservation(instance("i-2"))), status=203), "http_203", id="status 203"),
        pytest.param(Reply("<a><b/></a>", status=302), "http_302", id="redirect"),
        pytest.param(Reply("<a/>", status=401), "http_401", id="unauthorized"),
        pytest.param(Reply(HTML, status=401), "http_401", id="unauthorized page"),
        pytest.param(Reply("<br>", status=403), "malformed_answer", id="forbidden, not XML"),
        pytest.param(Reply("<Response><Error>no</Error></Response>", status=400), "malformed_answer", id="odd error"),
        pytest.param(Reply(HTML, status=503), "http_503", id="unavailable"),
        pytest.param(Reply("", status=500), "http_500", id="empty 500"),
        pytest.param(Reply("<a>" * 3000 + "</a>" * 3000, status=400), "malformed_answer", id="nested a thousand deep"),
        pytest.param(failure("UnauthorizedOperation", 403), "UnauthorizedOperation", id="denied"),
        pytest.param(failure("RequestLimitExceeded", 503), "RequestLimitExceeded", id="throttled"),
        pytest.param(failure("InternalError", 500), "InternalError", id="internal"),
        pytest.param(failure("InvalidNextToken"), "InvalidNextToken", id="token expired"),
        pytest.param(Reply("", hang=True), "read_timeout", id="hangs"),
        pytest.param(Reply(page(token="t1")), "repeated_token", id="same token again"),
        pytest.param(Reply(page(reservation(instance("i-1")))), "duplicate_instance", id="same machine again"),
    ],
)
def test_a_second_page_that_proves_nothing_spoils_the_listing(
    canned: CannedAws, second: Reply, code: str, parser: Parser
) -> None:
    canned.will("DescribeInstances", ONE, second)

    broken = hole(lister(canned, parser=parser, **patience(second)))

    assert broken.failure is ScopeFailure.LISTING
    assert broken.error_code == code
    assert (broken.scope, broken.account) == (Scope("aws", REGION), ACCOUNT)
    assert broken.instances >= 1
    assert len(broken.detail) <= 300


def test_a_connection_that_is_closed_spoils_the_listing(canned: CannedAws) -> None:
    def hang_up() -> None:
        raise ConnectionAbortedError

    canned.will("DescribeInstances", ONE, Reply("", before=hang_up))

    assert hole(lister(canned)).error_code == "connection_closed"


def test_a_cloud_that_is_not_there_is_unproven() -> None:
    with CannedAws() as gone:
        account = lister(gone)

    broken = hole(account)

    assert broken.failure is ScopeFailure.WRONG_ACCOUNT
    assert broken.error_code == "unproven"
    assert broken.detail.startswith("endpoint_connection: ")


def test_a_cut_page_is_asked_for_once_more(canned: CannedAws) -> None:
    whole = page(reservation(instance("i-2")))
    canned.will("DescribeInstances", ONE, Reply(whole, cut=30), Reply(whole))

    assert len(lister(canned).list_owned()) == 2
    assert [request.get("NextToken") for request in canned.asked("DescribeInstances")] == [None, "t1", "t1"]


def test_the_error_of_a_cut_page_does_not_carry_the_page(canned: CannedAws) -> None:
    canned.will("DescribeInstances", Reply("<secret>" + "x" * 100_000))

    with pytest.raises(IncompleteListingError) as raised:
        lister(canned).list_owned()

    seen = 0
    pending: list[BaseException | None] = [raised.value]
    while pending:
        one = pending.pop()
        if one is not None:
            seen += 1
            assert len(str(one)) < 1000
            pending += [one.__cause__, one.__context__, *getattr(one, "exceptions", ())]
    assert seen >= 2


def test_a_throttle_that_passes_is_waited_out(canned: CannedAws) -> None:
    canned.will("DescribeInstances", failure("RequestLimitExceeded", 503), ONE, Reply(page()))

    assert len(lister(canned, max_attempts=2).list_owned()) == 1


def test_a_body_that_never_ends_ends_as_a_deadline() -> None:
    with CannedAws() as aws:
        aws.will("DescribeInstances", Reply(page(reservation(*(instance(f"i-{n}") for n in range(50)))), drip=True))

        broken = hole(lister(aws, clock=SystemClock(), listing_timeout=timedelta(seconds=1)))

    assert broken.failure is ScopeFailure.DEADLINE
    assert broken.error_code == "deadline"


@pytest.mark.parametrize("action", ["DescribeInstances", "DescribeRegions", "GetCallerIdentity"])
def test_a_body_that_drips_is_not_read_for_longer_than_a_listing_may_take(action: str) -> None:
    with CannedAws() as aws:
        aws.will("DescribeRegions", Reply(regions(REGION)))
        aws.will(action, Reply("x" * 5000, drip=True))
        times = {"listing_timeout": timedelta(seconds=1), "read_timeout": timedelta(seconds=1)}
        hole(lister(aws, clock=SystemClock(), regions=None, **times))

        until(lambda: not any(thread.name == "providers-fanout" for thread in threading.enumerate()))

        assert len(aws.asked(action)) == 1
        assert not aws.stopping.is_set()


def test_a_connection_is_used_again_after_a_whole_answer() -> None:
    with FaultyEc2() as cloud:
        given = options(endpoint_url=cloud.url, account=cloud.world.account, regions=(REGION,))
        seeing = aws_lister(given, clock=SystemClock())

        coverages = [seeing.list_owned().coverage for _ in range(3)]

    assert [entry.ok for coverage in coverages for entry in coverage] == [True] * 3


def test_a_listing_that_takes_too_long_is_broken_off_between_pages(canned: CannedAws) -> None:
    clock = ManualClock(NOW)
    slow = Reply(page(token="t1"), before=lambda: clock.advance(timedelta(minutes=6)))
    canned.will("DescribeInstances", slow)

    assert hole(lister(canned, clock=clock)).failure is ScopeFailure.DEADLINE
    assert len(canned.asked("DescribeInstances")) == 1


@pytest.mark.parametrize(
    ("date", "skew"),
    [
        (NOW, timedelta(0)),
        (NOW - timedelta(seconds=1), timedelta(0)),
        (NOW + timedelta(minutes=7), timedelta(minutes=7)),
        (NOW - timedelta(seconds=91), timedelta(seconds=90)),
        ("Sun, 29 Nov 2026 12:00:00 -0000", timedelta(0)),
    ],
)
def test_measures_how_far_the_clouds_clock_is_off(canned: CannedAws, date: datetime | str, skew: timedelta) -> None:
    canned.will("DescribeInstances", Reply(page(), date=date))

    assert lister(canned).list_owned().coverage[0].clock_skew == skew


@pytest.mark.parametrize("date", [None, "", "soon"])
def test_a_listing_whose_answers_have_no_date_proves_no_clock(canned: CannedAws, date: str | None) -> None:
    canned.will("DescribeInstances", Reply(page(), date=date))

    with pytest.raises(IncompleteListingError) as caught:
        lister(canned).list_owned()

    assert [entry.error_code for entry in caught.value.coverage] == ["no_date"]


def test_the_worst_page_tells_the_skew(canned: CannedAws) -> None:
    late = NOW + timedelta(seconds=100)
    canned.will("DescribeInstances", ONE, Reply(page(token="t2"), date=late), Reply(page()))

    assert lister(canned).list_owned().coverage[0].clock_skew == timedelta(seconds=100)


def test_a_slow_answer_is_no_skew(canned: CannedAws) -> None:
    clock = ManualClock(NOW)
    slow = Reply(page(), date=NOW + timedelta(seconds=20), before=lambda: clock.advance(timedelta(seconds=30)))
    canned.will("DescribeInstances", slow)

    (coverage,) = lister(canned, clock=clock).list_owned().coverage

    assert coverage.clock_skew == timedelta(0)
    assert coverage.duration == timedelta(seconds=30)


def test_a_refusal_tells_the_skew_too(canned: CannedAws) -> None:
    refusal = failure("RequestExpired")
    canned.will("DescribeInstances", Reply(refusal.body, status=400, date=NOW - timedelta(hours=1)))

    broken = hole(lister(canned))

    assert broken.error_code == "RequestExpired"
    assert broken.clock_skew == timedelta(minutes=59, seconds=59)


def test_a_page_that_cannot_be_read_tells_the_skew_too(canned: CannedAws) -> None:
    canned.will("DescribeInstances", Reply("garbage", date=NOW - timedelta(hours=1)))

    broken = hole(lister(canned))

    assert broken.error_code == "malformed_answer"
    assert broken.clock_skew == timedelta(minutes=59, seconds=59)


@pytest.mark.parametrize("pinned", [ACCOUNT, None], ids=["pinned", "as STS says"])
def test_a_machine_of_another_account_is_listed_and_marked(canned: CannedAws, pinned: str | None) -> None:
    canned.will("DescribeInstances", Reply(page(reservation(instance(), owner="999999999999"))))

    (machine,) = lister(canned, account=pinned).list_owned()

    assert machine.foreign_account
    assert machine.account == "999999999999"


def test_a_fleet_that_relaunches_nothing_manages_nothing(canned: CannedAws) -> None:
    def of(instance_id: str, key: str, fleet: str) -> str:
        return instance(instance_id, tags={"reaperd:owner": "prod", key: fleet})

    machines = (
        of("i-1", "aws:ec2:fleet-id", "fleet-a"),
        of("i-2", "aws:ec2:fleet-id", "fleet-b"),
        of("i-3", "aws:ec2:fleet-id", "fleet-gone"),
        of("i-4", "aws:ec2spot:fleet-request-id", "sfr-a"),
        of("i-5", "aws:ec2spot:fleet-request-id", "sfr-b"),
    )
    canned.will("DescribeInstances", Reply(page(reservation(*machines))))
    canned.will("DescribeFleets", Reply(fleets(fleet_a="instant", fleet_b="maintain")))
    canned.will("DescribeSpotFleetRequests", Reply(spot_fleets(sfr_a="request", sfr_b="maintain")))

    managed = {machine.ref.instance_id: machine.managed_by for machine in lister(canned).list_owned()}

    assert managed == {
        "i-1": None,
        "i-2": "fleet:fleet-b",
        "i-3": "fleet:fleet-gone",
        "i-4": None,
        "i-5": "fleet:sfr-b",
    }


def test_one_unknown_fleet_does_not_hide_the_others(canned: CannedAws) -> None:
    machines = (
        instance(f"i-{fleet}", tags={"reaperd:owner": "prod", "aws:ec2:fleet-id": f"fleet-{fleet}"}) for fleet in "ab"
    )
    canned.will("DescribeInstances", Reply(page(reservation(*machines))))
    canned.will(
        "DescribeFleets",
        failure("InvalidFleetId.NotFound"),
        failure("InvalidFleetId.NotFound"),
        Reply(fleets(fleet_b="instant")),
    )

    managed = {machine.ref.instance_id: machine.managed_by for machine in lister(canned).list_owned()}

    assert managed == {"i-a": "fleet:fleet-a", "i-b": None}


@pytest.mark.parametrize("reply", [failure("UnauthorizedOperation", 403), Reply("<html/>"), Reply("", status=500)])
def test_fleets_that_cannot_be_read_leave_the_listing_whole(canned: CannedAws, reply: Reply) -> None:
    machine = instance(tags={"reaperd:owner": "prod", "aws:ec2:fleet-id": "fleet-a"})
    canned.will("DescribeInstances", Reply(page(reservation(machine))))
    canned.will("DescribeFleets", reply)

    inventory = lister(canned).list_owned()

    assert inventory[0].managed_by == "fleet:fleet-a"
    assert inventory.coverage[0].ok


def test_an_sdk_that_cannot_ask_for_hidden_machines_audits_no_region_whole(canned: CannedAws) -> None:
    ec2 = AwsSessions(options(endpoint_url=canned.url), allowed=READ_ONLY).open().ec2(REGION)
    shape = ec2.client.meta.service_model.operation_model("DescribeInstances").input_shape
    assert shape is not None
    shape.members.pop("IncludeManagedResources")
    canned.will("DescribeInstances", Reply(page(reservation(instance()))))
    region = AwsRegion(REGION, options(), ec2, account=ACCOUNT, clock=ManualClock(NOW))

    sweep = region.audit_instances()

    assert len(sweep.instances) == 1
    assert sweep.coverage[0].error_code == "managed_resources_hidden"
    assert len(region.list_owned()) == 1


def test_has_no_way_to_terminate(canned: CannedAws) -> None:
    account = lister(canned)

    assert isinstance(account, Lister)
    assert isinstance(account, InstanceAuditor)
    assert not isinstance(account, Terminator)
    assert not hasattr(account, "terminate")


def test_tells_of_every_page(canned: CannedAws) -> None:
    told: list[tuple[Scope, int, int]] = []
    canned.will("DescribeInstances", ONE, Reply(page(reservation(instance("i-2"), instance("i-3")))))

    def progress(scope: Scope, *, pages: int, instances: int) -> None:
        told.append((scope, pages, instances))

    aws_lister(options(endpoint_url=canned.url), clock=ManualClock(NOW), progress=progress).list_owned()

    assert told == [(Scope("aws", REGION), 1, 1), (Scope("aws", REGION), 2, 3)]


def test_launch_times_are_in_utc(canned: CannedAws) -> None:
    canned.will("DescribeInstances", Reply(page(reservation(instance(launched="2026-11-29T10:00:00.000Z")))))

    (machine,) = lister(canned).list_owned()

    assert machine.launched_at == datetime(2026, 11, 29, 10, tzinfo=UTC)
