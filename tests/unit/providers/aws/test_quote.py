"""Quotes: regions side by side, pages, foreign types, and what is said of those that fail."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from mypy_boto3_ec2 import EC2Client

from providers.aws import AwsLaunchOptions, AwsQuoter, MutatingRequestError, aws_quoter
from providers.aws.hooks import QUOTING
from providers.aws.session import AwsSessions
from providers.capacity import Requirement
from providers.errors import QuoteError
from reaperd.clock import ManualClock, SystemClock
from tests.support.ec2 import FaultyEc2
from tests.support.ec2.world import DEFAULT_REGIONS, ENABLED
from tests.unit.providers.aws.builders import REGION, options
from tests.unit.providers.aws.canned import NOW, CannedAws, Reply, answer, failure

REGIONS = tuple(name for name, status in DEFAULT_REGIONS.items() if status == ENABLED)
WANTED = Requirement(model="m", instance_types=("g5.xlarge",))


@pytest.fixture
def cloud() -> Iterator[FaultyEc2]:
    with FaultyEc2(now=NOW) as started:
        yield started


def quoter(cloud: FaultyEc2 | CannedAws, *, how: AwsLaunchOptions | None = None, **changes: Any) -> AwsQuoter:
    given = {"account": "111111111111"} if isinstance(cloud, FaultyEc2) else {}
    clock = ManualClock(NOW)
    return aws_quoter(options(endpoint_url=cloud.url, **(given | changes)), clock=clock, how=how)


def prices(*rows: tuple[str, str], token: str | None = None) -> Reply:
    items = "".join(
        f"<item><instanceType>g5.xlarge</instanceType><productDescription>Linux/UNIX</productDescription>"
        f"<spotPrice>{price}</spotPrice><timestamp>2026-11-29T11:00:00.000Z</timestamp>"
        f"<availabilityZone>{zone}</availabilityZone></item>"
        for zone, price in rows
    )
    after = f"<nextToken>{token}</nextToken>" if token else ""
    return Reply(answer("DescribeSpotPriceHistory", f"<spotPriceHistorySet>{items}</spotPriceHistorySet>{after}"))


def test_seventeen_regions_of_which_one_fails_give_the_offers_of_sixteen_and_the_reason_of_one(cloud: FaultyEc2):
    for number, region in enumerate(REGIONS):
        cloud.set_spot_price("g5.xlarge", f"0.{number + 10}", region=region)
    cloud.fault(region="eu-west-1", action="DescribeSpotPriceHistory", code="UnauthorizedOperation")

    quotes = quoter(cloud, regions=REGIONS).quote(WANTED)

    assert len(REGIONS) == 17
    assert [offer.region for offer in quotes] == sorted(set(REGIONS) - {"eu-west-1"})
    assert [(str(f.scope), f.error_code) for f in quotes.failures] == [("aws/eu-west-1", "UnauthorizedOperation")]


def test_the_regions_are_asked_side_by_side(cloud: FaultyEc2):
    for region in REGIONS[:4]:
        cloud.set_spot_price("g5.xlarge", "0.1", region=region)
    cloud.fault("hang", region=REGIONS[0], action="DescribeSpotPriceHistory")

    quotes = quoter(cloud, regions=REGIONS[:4], how=AwsLaunchOptions(quote_timeout=timedelta(seconds=1))).quote(WANTED)

    assert [offer.region for offer in quotes] == sorted(REGIONS[1:4])
    assert [(f.scope.region, f.error_code) for f in quotes.failures] == [(REGIONS[0], "deadline")]


def test_the_price_of_now_is_asked_for_and_no_history(canned: CannedAws):
    canned.will("DescribeSpotPriceHistory", prices(("eu-west-1a", "0.42")))

    quoter(canned).quote(WANTED)

    (asked,) = canned.asked("DescribeSpotPriceHistory")
    assert asked["StartTime"] == "2026-11-29T12:00:00Z"
    assert (asked["ProductDescription.1"], asked["InstanceType.1"]) == ("Linux/UNIX", "g5.xlarge")
    assert "InstanceType.2" not in asked


def test_all_pages_are_asked_for(canned: CannedAws):
    first, empty, last = prices(("eu-west-1a", "0.1"), token="1"), prices(token="2"), prices(("eu-west-1b", "0.2"))
    canned.will("DescribeSpotPriceHistory", first, empty, last)

    quotes = quoter(canned).quote(WANTED)

    assert [(offer.zone, offer.price_per_hour) for offer in quotes] == [
        ("eu-west-1a", Decimal("0.1")),
        ("eu-west-1b", Decimal("0.2")),
    ]


def test_prices_that_cannot_be_read_are_counted(canned: CannedAws):
    canned.will("DescribeSpotPriceHistory", prices(("eu-west-1a", "free"), ("eu-west-1b", "0.2")))

    quotes = quoter(canned).quote(WANTED)

    assert [offer.zone for offer in quotes] == ["eu-west-1b"]
    assert quotes.unreadable == 1


def test_types_that_are_not_of_ec2_are_left_out(canned: CannedAws):
    canned.will("DescribeSpotPriceHistory", prices(("eu-west-1a", "0.1")))

    quoter(canned).quote(Requirement(model="m", instance_types=("a2-highgpu-1g", "g5.xlarge", "VM.GPU.A10.1")))

    (asked,) = canned.asked("DescribeSpotPriceHistory")
    assert [value for key, value in asked.items() if key.startswith("InstanceType.")] == ["g5.xlarge"]


def test_foreign_types_alone_are_answered_without_a_request(canned: CannedAws):
    quotes = quoter(canned).quote(Requirement(model="m", instance_types=("a2-highgpu-1g",)))

    assert list(quotes) == []
    assert canned.requests == []


def test_no_type_is_every_type(canned: CannedAws):
    canned.will("DescribeSpotPriceHistory", prices(("eu-west-1a", "0.1")))

    assert len(quoter(canned).quote(Requirement(model="m"))) == 1
    assert not [key for key in canned.asked("DescribeSpotPriceHistory")[0] if key.startswith("InstanceType")]


def test_a_required_region_is_the_only_one_asked(cloud: FaultyEc2):
    for region in ("eu-west-1", "us-east-1"):
        cloud.set_spot_price("g5.xlarge", "0.1", region=region)
    required = Requirement(model="m", instance_types=("g5.xlarge",), region="us-east-1")

    quotes = quoter(cloud, regions=("eu-west-1", "us-east-1")).quote(required)

    assert [offer.region for offer in quotes] == ["us-east-1"]
    assert {exchange.request.region for exchange in cloud.requests("DescribeSpotPriceHistory")} == {"us-east-1"}


@pytest.mark.parametrize(("regions", "asked"), [(("eu-west-1",), 0), (None, 1)])
def test_a_region_that_is_not_covered_has_no_offers(cloud: FaultyEc2, regions: tuple[str, ...] | None, asked: int):
    cloud.set_spot_price("g5.xlarge", "0.1", region="eu-west-1")

    quotes = quoter(cloud, regions=regions).quote(Requirement(model="m", region="moon-1"))

    assert (list(quotes), quotes.failures) == ([], ())
    assert len(cloud.requests("DescribeRegions")) == len(cloud.requests("GetCallerIdentity")) == asked


def test_enabled_regions_are_asked_when_none_are_named(cloud: FaultyEc2):
    cloud.set_spot_price("g5.xlarge", "0.1", region="sa-east-1")

    assert [offer.region for offer in quoter(cloud, regions=None).quote(WANTED)] == ["sa-east-1"]


def test_it_is_an_error_when_every_region_fails_with_the_reason_of_each(cloud: FaultyEc2):
    cloud.fault(region="eu-west-1", action="DescribeSpotPriceHistory", code="UnauthorizedOperation")
    cloud.fault("html", region="us-east-1", action="DescribeSpotPriceHistory")

    with pytest.raises(QuoteError) as raised:
        quoter(cloud, regions=("eu-west-1", "us-east-1")).quote(WANTED)

    codes = {f.scope.region: f.error_code for f in raised.value.failures}
    assert codes == {"eu-west-1": "UnauthorizedOperation", "us-east-1": "malformed_answer"}
    assert isinstance(raised.value.__cause__, BaseExceptionGroup)
    assert len(raised.value.__cause__.exceptions) == 2


def test_no_offers_is_not_an_error(cloud: FaultyEc2):
    quotes = quoter(cloud).quote(WANTED)

    assert (list(quotes), quotes.failures) == ([], ())


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (Reply("<html></html>", content_type="text/html"), "malformed_answer"),
        (Reply(answer("DescribeSpotPriceHistory", "")), "malformed_answer"),
        (prices(("eu-west-1a", "0.1"), token="1"), "endless_listing"),
        (failure("RequestLimitExceeded", 503), "RequestLimitExceeded"),
    ],
)
def test_an_answer_that_is_none_is_a_reason(canned: CannedAws, reply: Reply, code: str):
    canned.will("DescribeSpotPriceHistory", reply)

    with pytest.raises(QuoteError) as raised:
        quoter(canned).quote(WANTED)

    assert [f.error_code for f in raised.value.failures] == [code]


def test_the_prices_of_another_account_are_not_asked_for(cloud: FaultyEc2):
    with pytest.raises(QuoteError, match="belong to 111111111111") as raised:
        quoter(cloud, account="222222222222").quote(WANTED)

    assert [f.error_code for f in raised.value.failures] == ["wrong_account"]
    assert cloud.requests("DescribeSpotPriceHistory") == []


@pytest.mark.parametrize(
    ("operation", "request_"),
    [
        ("run_instances", {"ImageId": "ami-1", "MinCount": 1, "MaxCount": 1}),
        ("terminate_instances", {"InstanceIds": ["i-1"]}),
    ],
)
def test_its_session_can_neither_launch_nor_end(cloud: FaultyEc2, operation: str, request_: dict[str, Any]):
    session = AwsSessions(options(endpoint_url=cloud.url, account="111111111111"), allowed=QUOTING).open()

    with pytest.raises(MutatingRequestError):
        getattr(session.ec2(REGION).client, operation)(**request_)

    assert cloud.mutating_requests() == []


def test_quotes_what_moto_has(moto_ec2: EC2Client):
    given = options(regions=("us-east-1",))

    quotes = aws_quoter(given, clock=SystemClock()).quote(WANTED)

    assert {offer.instance_type for offer in quotes} == {"g5.xlarge"}
    assert all(offer.zone.startswith("us-east-1") for offer in quotes)
