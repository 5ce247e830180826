"""The price list of an account: what is asked, and when there is none."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from providers.aws import AwsTypeLister, MutatingRequestError, aws_type_lister
from providers.aws.hooks import QUOTING
from providers.aws.session import AwsSessions
from providers.errors import QuoteError
from providers.pricelist import ListedPrices
from reaperd.clock import ManualClock
from tests.support.ec2 import FaultyEc2
from tests.unit.providers.aws.builders import options
from tests.unit.providers.aws.canned import NOW

ACTIONS = ("DescribeInstanceTypes", "DescribeInstanceTypeOfferings", "DescribeSpotPriceHistory")
REGIONS = ("eu-west-1", "us-east-1")


@pytest.fixture
def cloud() -> Iterator[FaultyEc2]:
    with FaultyEc2(now=NOW) as started:
        started.add_type("g5.xlarge", gpus=[("A10G", 1)], regions=REGIONS)
        for region, price in zip(REGIONS, ("0.5", "0.4"), strict=True):
            started.set_spot_price("g5.xlarge", price, region=region)
        yield started


def lister(cloud: FaultyEc2, **changes: Any) -> AwsTypeLister:
    given = {"account": "111111111111", "regions": REGIONS} | changes
    return aws_type_lister(options(endpoint_url=cloud.url, **given), clock=ManualClock(NOW))


def reasons(of: AwsTypeLister) -> list[tuple[str, str]]:
    with pytest.raises(QuoteError) as caught:
        of.list_instance_types()
    return [(failure.scope.region, failure.error_code) for failure in caught.value.failures]


def test_every_type_is_told_with_what_it_costs_where(cloud: FaultyEc2):
    (machine,) = lister(cloud).list_instance_types()

    assert (machine.name, machine.gpu_count, machine.gpu_type) == ("g5.xlarge", 1, "A10G")
    assert (machine.vcpus, machine.memory_gib) == (4, Decimal(16))
    assert [(region, machine.price_in(region)) for region in machine.regions] == [
        ("eu-west-1", Decimal("0.5")),
        ("us-east-1", Decimal("0.4")),
    ]


def test_all_pages_of_every_answer_are_read(cloud: FaultyEc2):
    cloud.configure(page_size=2)
    for number in range(5):
        cloud.add_type(f"m{number}.large", regions=REGIONS)
        cloud.set_spot_price(f"m{number}.large", "0.1", region="eu-west-1")

    types = lister(cloud, regions=("eu-west-1",)).list_instance_types()

    assert len(types) == 6
    assert all(each.available and each.price_per_hour is not None for each in types)
    # Of the prices the test cloud makes pages as long as they are asked for.
    assert [len(cloud.requests(action)) for action in ACTIONS[:2]] == [3, 3]


def test_the_regions_that_are_enabled_are_asked_when_none_are_named(cloud: FaultyEc2):
    lister(cloud, regions=None).list_instance_types()

    assert len({exchange.request.region for exchange in cloud.requests("DescribeInstanceTypes")}) == 17


@pytest.mark.parametrize("action", ACTIONS)
def test_a_region_that_fails_in_any_part_leaves_no_list(cloud: FaultyEc2, action: str):
    cloud.fault(region="eu-west-1", action=action, code="UnauthorizedOperation")

    assert reasons(lister(cloud)) == [("eu-west-1", "UnauthorizedOperation")]


@pytest.mark.parametrize("action", ACTIONS)
def test_an_answer_without_its_list_is_none(cloud: FaultyEc2, action: str):
    cloud.fault("missing_set", region="us-east-1", action=action)

    assert reasons(lister(cloud)) == [("us-east-1", "malformed_answer")]


def test_a_region_that_hangs_is_not_waited_for_longer_than_for_a_listing(cloud: FaultyEc2):
    cloud.fault("hang", region="eu-west-1", action="DescribeInstanceTypes")

    assert reasons(lister(cloud, listing_timeout=timedelta(seconds=1))) == [("eu-west-1", "deadline")]


def test_another_account_has_no_list(cloud: FaultyEc2):
    assert reasons(lister(cloud, account="222222222222")) == [(region, "wrong_account") for region in REGIONS]
    assert cloud.requests("DescribeInstanceTypes") == []


def test_without_regions_every_one_failed(cloud: FaultyEc2):
    cloud.fault(action="DescribeRegions", code="UnauthorizedOperation")

    assert reasons(lister(cloud, regions=None)) == [("*", "UnauthorizedOperation")]


def test_the_next_question_after_a_failure_is_asked_anew(cloud: FaultyEc2):
    shop = lister(cloud)
    with cloud.fault(action="DescribeInstanceTypes", code="UnauthorizedOperation"):
        reasons(shop)

    assert len(shop.list_instance_types()) == 1
    assert len(cloud.requests("GetCallerIdentity")) == 2


def test_a_defect_of_ours_is_no_answer_of_the_cloud(cloud: FaultyEc2):
    given = options(endpoint_url=cloud.url, account="111111111111")
    blunt = AwsTypeLister(given, AwsSessions(given, allowed=QUOTING - {f"ec2:{ACTIONS[0]}"}), clock=ManualClock(NOW))

    with pytest.raises(MutatingRequestError):
        blunt.list_instance_types()


def test_the_list_is_a_source_of_prices(cloud: FaultyEc2):
    prices = ListedPrices(lister(cloud)).get_prices()

    assert [(offer.region, offer.price_per_hour, str(offer.kind)) for offer in prices] == [
        ("eu-west-1", Decimal("0.5"), "spot"),
        ("us-east-1", Decimal("0.4"), "spot"),
    ]
