"""What EC2 announces: read, asked for beside a sweep, and for one machine."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from mypy_boto3_ec2 import EC2Client

from providers.aws import AwsAccount, AwsEvents, aws_event_source, aws_lister
from providers.aws.events import planned_events, spot_events
from providers.aws.hooks import READ_ONLY
from providers.aws.session import AwsSessions
from providers.errors import EventError
from providers.identity import InstanceRef, Scope
from providers.model import AuditSweep
from reaperd.clock import ManualClock, SystemClock
from tests.support.ec2 import FaultyEc2
from tests.unit.providers.aws.builders import options
from tests.unit.providers.aws.canned import NOW, CannedAws, Reply, answer, failure, page, regions, reservation

REGIONS = ("eu-west-1", "us-east-1")
SCOPE = Scope("aws", "eu-west-1")
REF = InstanceRef("aws", "eu-west-1", "i-1")
SPOT, STATUS = "DescribeSpotInstanceRequests", "DescribeInstanceStatus"
SOON = "2026-11-30T00:00:00.000Z"


@pytest.fixture
def cloud() -> Iterator[FaultyEc2]:
    with FaultyEc2(now=NOW) as started:
        yield started


def account(cloud: FaultyEc2, **changes: Any) -> AwsAccount:
    given = {"account": "111111111111", "regions": REGIONS} | changes
    return aws_lister(options(endpoint_url=cloud.url, **given), clock=ManualClock(NOW))


def source(cloud: FaultyEc2, **changes: Any) -> AwsEvents:
    given = {"account": "111111111111", "regions": REGIONS} | changes
    return aws_event_source(options(endpoint_url=cloud.url, **given), clock=ManualClock(NOW))


def told(sweep: AuditSweep) -> list[tuple[str, str]]:
    return [(event.ref.instance_id, event.fault_code) for event in sweep.events]


def unheard(sweep: AuditSweep) -> list[tuple[str, str]]:
    return [(entry.scope.region, entry.error_code) for entry in sweep.unheard]


# ---------------------------------------------------------------- what the rows say


def spot(**changes: Any) -> dict[str, Any]:
    return {"InstanceId": "i-1", "Status": {"Code": "marked-for-termination", "UpdateTime": NOW}} | changes


def test_the_status_of_a_spot_request_announces_the_end_of_its_machine():
    (event,) = spot_events([spot()], SCOPE)

    assert (event.ref, event.fault_code, event.marked_for_termination) == (REF, "marked-for-termination", True)
    assert event.termination_time == NOW + timedelta(minutes=2)


def test_a_time_without_a_zone_is_utc():
    (event,) = spot_events([spot(Status={"Code": "marked-for-termination", "UpdateTime": datetime(2026, 1, 1)})], SCOPE)  # noqa: DTZ001  # naive on purpose

    assert event.termination_time == datetime(2026, 1, 1, 0, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    "row",
    [
        spot(Status={"Code": "fulfilled"}),
        spot(Status={}),
        spot(Status="marked-for-termination"),
        spot(InstanceId=None),
        spot(InstanceId=""),
    ],
)
def test_a_request_that_says_nothing_of_a_machine_announces_nothing(row: dict[str, Any]):
    assert spot_events([row], SCOPE) == ()


def plan(code: str, not_before: datetime | None = NOW, note: str = "") -> dict[str, Any]:
    return {"Code": code, "Description": f"{note}degraded hardware", "NotBefore": not_before}


@pytest.mark.parametrize("turn", [1, -1])
def test_of_several_plans_the_nearest_is_told(turn: int):
    later = NOW + timedelta(days=1)
    plans = [plan("instance-stop", None), plan("instance-stop", later), plan("instance-retirement"), plan("x")]

    (event,) = planned_events([{"InstanceId": "i-1", "Events": plans[::turn]}], SCOPE)

    assert (event.fault_code, event.termination_time, event.marked_for_termination) == (
        "instance-retirement",
        NOW,
        False,
    )


@pytest.mark.parametrize(
    "row",
    [
        {"InstanceId": "i-1", "Events": [plan("instance-stop", note="[Completed] ")]},
        {"InstanceId": "i-1", "Events": [plan("instance-stop", note="[Canceled] ")]},
        {"InstanceId": "i-1", "Events": [plan("system-reboot")]},
        {"InstanceId": "i-1", "Events": ["instance-stop"]},
        {"InstanceId": "i-1", "Events": "instance-stop"},
        {"InstanceId": "i-1"},
        {"Events": [plan("instance-stop")]},
    ],
)
def test_a_plan_that_is_over_or_takes_nothing_away_announces_nothing(row: dict[str, Any]):
    assert planned_events([row], SCOPE) == ()


# ---------------------------------------------------------------- beside a sweep


def test_a_sweep_tells_of_every_region_what_is_announced(cloud: FaultyEc2):
    going = cloud.add_instance(region="eu-west-1", spot="one-time")
    retired = cloud.add_instance(region="us-east-1", scheduled=(("instance-retirement", SOON),))
    cloud.add_instance(region="us-east-1", spot="persistent")
    cloud.interrupt(going)

    sweep = account(cloud).audit_instances()

    assert told(sweep) == [(going, "marked-for-termination"), (retired, "instance-retirement")]
    assert sweep.unheard == ()


def test_the_end_of_a_spot_machine_is_told_before_what_is_planned_for_its_host(cloud: FaultyEc2):
    going = cloud.add_instance(region="eu-west-1", spot="one-time", scheduled=(("instance-stop", SOON),))
    cloud.interrupt(going)

    assert told(account(cloud).audit_instances()) == [(going, "marked-for-termination")]


def test_a_machine_that_is_gone_is_told_of_all_the_same(cloud: FaultyEc2):
    gone = cloud.add_instance(region="eu-west-1", spot="one-time", state="terminated")
    cloud.interrupt(gone, "instance-terminated-no-capacity")

    sweep = account(cloud).audit_instances()

    assert sweep.instances == ()
    assert told(sweep) == [(gone, "instance-terminated-no-capacity")]


def spots(*ids: str, token: str = "") -> Reply:
    items = "".join(
        f"<item><instanceId>{each}</instanceId><status><code>marked-for-stop</code></status></item>" for each in ids
    )
    after = f"<nextToken>{token}</nextToken>" if token else ""
    return Reply(answer(SPOT, f"<spotInstanceRequestSet>{items}</spotInstanceRequestSet>{after}"))


def statuses(*ids: str, token: str = "") -> Reply:
    event = f"<eventsSet><item><code>instance-stop</code><notBefore>{SOON}</notBefore></item></eventsSet>"
    items = "".join(f"<item><instanceId>{each}</instanceId>{event}</item>" for each in ids)
    after = f"<nextToken>{token}</nextToken>" if token else ""
    return Reply(answer(STATUS, f"<instanceStatusSet>{items}</instanceStatusSet>{after}"))


def test_all_pages_are_read(canned: CannedAws):
    canned.will("DescribeRegions", Reply(regions("eu-west-1")))
    canned.will(SPOT, spots("i-1", token="1"), spots(token="2"), spots("i-2"))
    canned.will(STATUS, statuses("i-3", token="1"), statuses(token="2"), statuses("i-4"))
    lister = aws_lister(options(endpoint_url=canned.url), clock=ManualClock(NOW))

    sweep = lister.audit_instances()

    assert told(sweep) == [
        ("i-1", "marked-for-stop"),
        ("i-2", "marked-for-stop"),
        ("i-3", "instance-stop"),
        ("i-4", "instance-stop"),
    ]
    for question in (SPOT, STATUS):
        assert [each.get("NextToken") for each in canned.asked(question)] == [None, "1", "2"]


@pytest.mark.parametrize(("refused", "heard"), [(SPOT, STATUS), (STATUS, SPOT)])
def test_a_question_that_is_refused_is_told_and_spoils_neither_the_other_nor_the_sweep(
    cloud: FaultyEc2, refused: str, heard: str
):
    going = cloud.add_instance(region="eu-west-1", spot="one-time")
    retired = cloud.add_instance(region="eu-west-1", scheduled=(("instance-stop", SOON),))
    cloud.interrupt(going)
    cloud.fault(region="eu-west-1", action=refused, code="UnauthorizedOperation")

    sweep = account(cloud).audit_instances()

    assert [each for each, _ in told(sweep)] == [going if heard == SPOT else retired]
    assert unheard(sweep) == [("eu-west-1", "UnauthorizedOperation")]
    assert len(sweep.instances) == 2
    assert all(entry.ok for entry in sweep.coverage)


@pytest.mark.parametrize("action", [SPOT, STATUS])
@pytest.mark.parametrize("kind", ["html", "missing_set", "truncated", "malformed"])
def test_an_answer_that_is_none_is_told(cloud: FaultyEc2, action: str, kind: str):
    cloud.add_instance(region="eu-west-1")
    cloud.fault(kind, region="eu-west-1", action=action)

    sweep = account(cloud).audit_instances()

    assert [region for region, _ in unheard(sweep)] == ["eu-west-1"]
    assert len(sweep.instances) == 1
    assert all(entry.ok for entry in sweep.coverage)


def test_where_nothing_could_be_seen_nothing_is_asked(cloud: FaultyEc2):
    cloud.fault(region="eu-west-1", action="DescribeInstances", code="UnauthorizedOperation")

    sweep = account(cloud).audit_instances()

    asked = {exchange.request.region for exchange in cloud.requests(SPOT)}
    assert sweep.unheard == ()
    assert "us-east-1" in asked
    assert "eu-west-1" not in asked


def test_a_listing_asks_for_no_announcements(cloud: FaultyEc2):
    cloud.fault(action=SPOT, code="UnauthorizedOperation")
    cloud.fault(action=STATUS, code="UnauthorizedOperation")

    account(cloud).list_owned()

    assert cloud.requests(SPOT) == cloud.requests(STATUS) == []


class Hurried:
    """A clock of this machine that runs so fast that nobody's patience lasts longer than a second."""

    def __init__(self) -> None:
        self._inner = SystemClock()

    def now(self) -> datetime:
        return self._inner.now()

    def monotonic(self) -> float:
        return self._inner.monotonic() * 30

    def sleep(self, seconds: float) -> None:
        self._inner.sleep(seconds)


def test_silence_is_waited_for_a_while_and_not_asked_again_while_it_lasts(canned: CannedAws):
    released = threading.Event()

    def wait() -> None:
        released.wait(60)

    canned.will("DescribeRegions", Reply(regions("eu-west-1")))
    canned.will("DescribeInstances", Reply(page(reservation())))
    canned.will(SPOT, Reply(answer(SPOT, "<spotInstanceRequestSet/>"), before=wait))
    canned.will(STATUS, Reply(answer(STATUS, "<instanceStatusSet/>")))
    given = options(endpoint_url=canned.url, read_timeout=timedelta(minutes=1), listing_timeout=timedelta(hours=1))
    lister = AwsAccount(given, AwsSessions(given, allowed=READ_ONLY), clock=Hurried())

    try:
        first, second = lister.audit_instances(), lister.audit_instances()
    finally:
        released.set()

    assert [unheard(sweep) for sweep in (first, second)] == [[("eu-west-1", "deadline")]] * 2
    assert all(entry.ok for sweep in (first, second) for entry in sweep.coverage)
    assert len(canned.asked(SPOT)) <= 1


def test_a_defect_of_ours_is_told_and_the_sweep_goes_on(cloud: FaultyEc2):
    given = options(endpoint_url=cloud.url, account="111111111111")
    blunt = AwsAccount(given, AwsSessions(given, allowed=READ_ONLY - {f"ec2:{SPOT}"}), clock=ManualClock(NOW))

    sweep = blunt.audit_instances()

    assert {code for _, code in unheard(sweep)} == {"mutating_request_error"}
    assert all(entry.ok for entry in sweep.coverage)


# ---------------------------------------------------------------- for one machine


def test_only_that_machine_is_asked_about(cloud: FaultyEc2):
    going, other = (cloud.add_instance(region="eu-west-1", spot="one-time") for _ in range(2))
    cloud.interrupt(going)
    cloud.interrupt(other)

    event = source(cloud).instance_event(InstanceRef("aws", "eu-west-1", going))

    assert event is not None
    assert event.ref.instance_id == going
    (asked,) = cloud.requests(SPOT)
    assert asked.request.filters() == [("instance-id", [going])]


def test_a_stopped_machine_is_asked_about_too(cloud: FaultyEc2):
    stopped = cloud.add_instance(region="eu-west-1", state="stopped", scheduled=(("instance-retirement", SOON),))

    event = source(cloud).instance_event(InstanceRef("aws", "eu-west-1", stopped))

    assert event is not None
    assert event.termination_time == datetime(2026, 11, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("changes", "ref", "code"),
    [
        ({"account": "222222222222"}, REF, "wrong_account"),
        ({}, InstanceRef("gcp", "eu-west-1", "i-1"), "unknown_provider"),
        ({}, InstanceRef("aws", "moon-1", "i-1"), "unknown_region"),
    ],
)
def test_what_cannot_be_asked_is_an_error(cloud: FaultyEc2, changes: dict[str, Any], ref: InstanceRef, code: str):
    with pytest.raises(EventError) as caught:
        source(cloud, **changes).instance_event(ref)

    assert (caught.value.ref, caught.value.error_code) == (ref, code)


def test_half_an_answer_is_told_if_it_announces_something_and_is_an_error_otherwise(cloud: FaultyEc2):
    going, kept = (cloud.add_instance(region="eu-west-1", spot="one-time") for _ in range(2))
    cloud.interrupt(going)
    cloud.fault(action=STATUS, code="UnauthorizedOperation")
    asked = source(cloud)

    assert asked.instance_event(InstanceRef("aws", "eu-west-1", going)) is not None
    with pytest.raises(EventError, match="scheduled events"):
        asked.instance_event(InstanceRef("aws", "eu-west-1", kept))


def test_without_credentials_that_are_taken_it_is_an_error(canned: CannedAws):
    canned.will("GetCallerIdentity", failure("AccessDenied", status=403))

    with pytest.raises(EventError):
        aws_event_source(options(endpoint_url=canned.url), clock=ManualClock(NOW)).instance_event(REF)


def test_moto_is_asked_nothing_that_it_does_not_know(moto_ec2: EC2Client):
    moto_ec2.run_instances(ImageId="ami-12345678", MinCount=1, MaxCount=1)

    sweep = aws_lister(options(account="123456789012"), clock=SystemClock()).audit_instances()

    assert (len(sweep.instances), sweep.events, sweep.unheard) == (1, (), ())
