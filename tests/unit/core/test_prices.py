"""What an hour of a machine costs, by the operator's own list."""

from __future__ import annotations

import pytest

from reaperd.core.prices import NO_PRICES, price_of
from reaperd.core.reap import judge
from tests.support.worlds import EAST, GCP, WEST, look, machine, policy, ref

LIST = {"m5.large": 0.10, "aws/m5.large": 0.11, "aws/eu-west-1/m5.large": 0.12, "free": 0.0}


@pytest.mark.parametrize(("at", "price"), [(GCP, 0.10), (EAST, 0.11), (WEST, 0.12)])
def test_the_most_precise_entry_holds(at, price):
    assert price_of(ref(at=at), "m5.large", LIST) == price


@pytest.mark.parametrize("instance_type", ["m5.xlarge", "M5.large", "large", "", None])
def test_what_the_list_does_not_name_has_no_price(instance_type):
    assert price_of(ref(), instance_type, LIST) is None
    assert price_of(ref(), instance_type, NO_PRICES) is None


def test_nothing_is_a_price_too():
    assert price_of(ref(), "free", LIST) == 0.0


def test_a_price_is_told_with_the_verdict_and_changes_none():
    seen = look([machine("i-1", instance_type="m5.large"), machine("i-2", instance_type="odd"), machine("i-3")])

    told = [verdict for verdict, _ in judge(seen, policy(prices=LIST))]
    plain = [verdict for verdict, _ in judge(seen, policy())]

    assert [verdict.cost_per_hour_usd for verdict in told] == [0.11, None, None]
    assert [verdict.cost_per_hour_usd for verdict in plain] == [None, None, None]
    assert [verdict.call for verdict in told] == [verdict.call for verdict in plain]
