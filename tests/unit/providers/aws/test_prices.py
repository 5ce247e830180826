"""Offers from rows of prices."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from providers.aws.prices import pools_of
from providers.capacity import Kind, Offer
from providers.model import Scope

SCOPE = Scope("aws", "eu-west-1")
NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


def row(price: Any = "0.42", *, zone: str = "eu-west-1a", age: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "InstanceType": "g5.xlarge",
        "AvailabilityZone": zone,
        "SpotPrice": price,
        "Timestamp": NOW - timedelta(hours=age),
        "ProductDescription": "Linux/UNIX",
    } | more


def test_a_row_is_an_offer_in_dollars_to_the_last_digit():
    pools = pools_of([row("0.4200001")], SCOPE, {"g5.xlarge"})

    assert pools.offers == (
        Offer(
            provider="aws",
            instance_type="g5.xlarge",
            region="eu-west-1",
            zone="eu-west-1a",
            kind=Kind.SPOT,
            price_per_hour=Decimal("0.4200001"),
            currency="USD",
        ),
    )


@pytest.mark.parametrize("rows", [[row("0.1", age=5), row("0.2")], [row("0.2"), row("0.1", age=5)]])
def test_the_newest_price_of_a_pool_counts_in_whatever_order(rows: list[dict[str, Any]]):
    (offer,) = pools_of(rows, SCOPE, frozenset()).offers

    assert offer.price_per_hour == Decimal("0.2")


def test_each_zone_is_a_pool():
    pools = pools_of([row(zone="eu-west-1b"), row(zone="eu-west-1a")], SCOPE, frozenset())

    assert [offer.zone for offer in pools.offers] == ["eu-west-1a", "eu-west-1b"]


@pytest.mark.parametrize("price", ["", "free", "NaN", "Infinity", "-1", "0", None, 0.42])
def test_a_price_that_cannot_be_read_is_counted_and_no_offer(price: Any):
    pools = pools_of([row(price), row(zone="eu-west-1b")], SCOPE, frozenset())

    assert [offer.zone for offer in pools.offers] == ["eu-west-1b"]
    assert pools.unreadable == 1


def test_an_older_price_does_not_stand_in_for_one_that_cannot_be_read():
    pools = pools_of([row("0.1", age=5), row("free")], SCOPE, frozenset())

    assert (pools.offers, pools.unreadable) == ((), 1)


@pytest.mark.parametrize(
    "more", [{"InstanceType": "p5.48xlarge"}, {"ProductDescription": "Windows"}, {"InstanceType": ""}]
)
def test_what_was_not_asked_for_is_no_offer(more: dict[str, Any]):
    assert pools_of([row(**more)], SCOPE, {"g5.xlarge"}).offers == ()
