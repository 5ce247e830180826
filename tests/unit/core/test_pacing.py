"""Our own copy of a cloud's buckets."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.allowance import Allowance, Rate
from reaperd.core.pacing import Bucket, Pace, together

EC2 = Allowance(together=100, requests=Rate(100, 5), machines=Rate(1000, 20))


def test_our_bucket_is_a_share_of_the_clouds_less_what_a_second_brings():
    assert Bucket.of(Rate(1000, 20), 0.5, 7.0) == Bucket(490.0, 10.0, 490.0, 7.0)
    assert Bucket.of(Rate(1000, 20), 1.0, 7.0) == Bucket(980.0, 20.0, 980.0, 7.0)


def test_a_small_share_still_lets_one_through():
    bucket = Bucket.of(Rate(100, 5), 0.001, 0.0)

    assert (bucket.most, bucket.wait(1, 0.0)) == (1.0, 0.0)
    assert bucket.taken(1, 0.0).wait(1, 0.0) == pytest.approx(200.0)


def test_what_was_taken_runs_in_again_up_to_the_brim():
    empty = Bucket(10.0, 2.0, 10.0, 0.0).taken(10, 0.0)

    assert [empty.at(now).held for now in (0.0, 1.0, 5.0, 60.0)] == [0.0, 2.0, 10.0, 10.0]
    assert [empty.wait(4, now) for now in (0.0, 1.0, 2.0)] == [2.0, 1.0, 0.0]


def test_a_full_bucket_gains_nothing_before_something_is_taken():
    assert Bucket(10.0, 2.0, 10.0, 0.0).taken(10, 100.0).held == 0.0


def test_more_than_it_was_said_to_need_is_owed():
    owing = Bucket(10.0, 2.0, 10.0, 0.0).taken(16, 0.0)

    assert owing.wait(1, 0.0) == pytest.approx(3.5)


def test_more_than_it_can_ever_hold_waits_for_a_full_one():
    assert Bucket(10.0, 2.0, 4.0, 0.0).wait(50, 0.0) == 3.0


def test_a_clock_that_stands_still_or_falls_back_brings_nothing():
    assert Bucket(10.0, 2.0, 4.0, 8.0).at(3.0).held == 4.0


def test_both_requests_and_machines_have_to_be_there():
    pace = Pace.of(EC2, 1.0, 0.0)

    assert pace.wait(100, 0.0) == 0.0
    assert pace.spent(95, 0, 0.0).wait(1, 0.0) == pytest.approx(0.2)
    assert pace.spent(1, 980, 0.0).wait(100, 0.0) == pytest.approx(5.0)


def test_a_request_names_no_more_than_our_share_holds():
    assert [together(EC2, share) for share in (1.0, 0.5, 0.05, 0.000_1)] == [100, 100, 49, 1]


SHARES = st.sampled_from((1.0, 0.5, 0.1, 0.01))
STEPS = st.lists(st.tuples(st.integers(1, 100), st.floats(0, 3), st.floats(0, 5)), min_size=1, max_size=40)


@given(SHARES, STEPS)
def test_a_cloud_that_counts_as_it_documents_never_refuses_what_was_waited_for(share: float, steps):
    """Whenever between our sending and its answer the cloud counts, and whenever in a second it adds."""
    now, pace = 1000.0, Pace.of(EC2, share, 1000.0)
    counted: list[tuple[float, int]] = []
    for wanted, way, idle in steps:
        machines = min(wanted, together(EC2, share))
        now += pace.wait(machines, now)
        counted.append((now + way / 2, machines))
        now += way
        pace = pace.spent(1, machines, now)
        now += idle

    for rate, amounts in ((EC2.requests, [1] * len(counted)), (EC2.machines, [m for _, m in counted])):
        level, before = float(rate.burst), int(counted[0][0])
        for (at, _), amount in zip(counted, amounts, strict=True):
            # It adds at whole seconds only: the least favourable of all that its documentation allows.
            level = min(rate.burst, level + (int(at) - before) * rate.per_second)
            assert level >= amount
            level, before = level - amount, int(at)


@given(SHARES, STEPS)
def test_over_any_span_no_more_is_sent_than_the_share_allows(share: float, steps):
    now, pace = 0.0, Pace.of(EC2, share, 0.0)
    sent: list[tuple[float, int]] = []
    for wanted, way, idle in steps:
        machines = min(wanted, together(EC2, share))
        now += pace.wait(machines, now)
        sent.append((now, machines))
        now += way
        pace = pace.spent(1, machines, now)
        now += idle

    for first in range(len(sent)):
        for last in range(first, len(sent)):
            total = sum(machines for _, machines in sent[first : last + 1])
            span = sent[last][0] - sent[first][0]
            most = max((EC2.machines.burst - EC2.machines.per_second) * share, 1.0)
            assert total <= most + EC2.machines.per_second * share * span + 1e-6
    assert all(later[0] >= earlier[0] for earlier, later in pairwise(sent))
