"""Which offer is taken, and when the next one is tried."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.capacity import UNKNOWN_PRICE, Offer, WorkerHandle, WorkerSpec
from providers.cheapest import cheapest_first, launch_cheapest
from providers.errors import (
    CapacityError,
    InvalidSpecError,
    LaunchDeniedError,
    LaunchError,
    OffersExhaustedError,
    QuotaError,
    UnknownLaunchError,
)

SPEC = WorkerSpec(model="m")
FULL = CapacityError("InsufficientInstanceCapacity", "none left", "eu-west-1")


def at(zone: str, price: str, **more: Any) -> Offer:
    given: dict[str, Any] = {"provider": "aws", "instance_type": "g5.xlarge", "region": "eu-west-1"}
    return Offer(**(given | {"zone": zone, "price_per_hour": Decimal(price)} | more))


class Cloud:
    """Launches where nothing stands in the way."""

    def __init__(self, errors: Mapping[str, LaunchError] | None = None) -> None:
        self.errors = errors or {}
        self.tried: list[str] = []

    def launch(self, worker_id: str, offer: Offer, spec: WorkerSpec) -> WorkerHandle:
        self.tried.append(offer.zone)
        if offer.zone in self.errors:
            raise self.errors[offer.zone]
        launched_at = datetime(2026, 1, 10, tzinfo=UTC)
        return WorkerHandle(worker_id=worker_id, instance_id="i-1", offer=offer, spec=spec, launched_at=launched_at)


def test_the_cheapest_offer_is_taken():
    cloud = Cloud()

    handle = launch_cheapest(cloud, "w-1", [at("a", "0.50"), at("b", "0.5"), at("c", "0.4999")], SPEC)

    assert (handle.worker_id, handle.offer.zone, cloud.tried) == ("w-1", "c", ["c"])


@given(st.permutations([at("a", "0.1"), at("b", "0.1"), at("c", "0.2"), at("a", "0.1", instance_type="g6.xlarge")]))
def test_the_order_does_not_depend_on_that_of_the_offers(offers: list[Offer]):
    assert [(o.zone, o.instance_type) for o in cheapest_first(offers)] == [
        ("a", "g5.xlarge"),
        ("a", "g6.xlarge"),
        ("b", "g5.xlarge"),
        ("c", "g5.xlarge"),
    ]


@pytest.mark.parametrize("error", [FULL, QuotaError("VcpuLimitExceeded", "no more", "eu-west-1")])
def test_the_next_offer_is_tried_when_there_is_no_capacity(error: CapacityError):
    cloud = Cloud({"a": error, "b": error})

    handle = launch_cheapest(cloud, "w-1", [at("c", "3"), at("b", "2"), at("a", "1")], SPEC)

    assert (handle.offer.zone, cloud.tried) == ("c", ["a", "b", "c"])


@pytest.mark.parametrize("error", [UnknownLaunchError("lost"), LaunchDeniedError("no"), InvalidSpecError("what?")])
def test_nothing_else_is_followed_by_the_next_offer(error: LaunchError):
    cloud = Cloud({"a": error})

    with pytest.raises(type(error)):
        launch_cheapest(cloud, "w-1", [at("a", "1"), at("b", "2")], SPEC)

    assert cloud.tried == ["a"]


def test_when_none_can_be_had_every_cause_is_told():
    other = CapacityError("Unsupported", "not here", "eu-west-1")

    with pytest.raises(OffersExhaustedError, match="none of 2 offers could be had: none left; not here") as raised:
        launch_cheapest(Cloud({"a": FULL, "b": other}), "w-1", [at("a", "1"), at("b", "2")], SPEC)

    assert raised.value.causes == (FULL, other)
    assert isinstance(raised.value.__cause__, ExceptionGroup)
    assert raised.value.__cause__.exceptions == (FULL, other)


def test_no_offers_are_an_error_too():
    with pytest.raises(OffersExhaustedError, match="w-1: there is no offer"):
        launch_cheapest(Cloud(), "w-1", [], SPEC)


@pytest.mark.parametrize("other", [at("b", "1", currency="EUR"), at("b", "1", price_per_hour=UNKNOWN_PRICE)])
def test_prices_that_cannot_be_compared_launch_nothing(other: Offer):
    cloud = Cloud()

    with pytest.raises(InvalidSpecError):
        launch_cheapest(cloud, "w-1", [at("a", "2"), other], SPEC)

    assert cloud.tried == []
