"""Laws of shopping in several places: nobody's failure hides another's offers, and nothing goes astray."""

from datetime import UTC, datetime
from decimal import Decimal
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.capacity import Offer, Requirement, WorkerSpec
from providers.errors import LaunchError, QuoteError, TerminateError
from providers.fake import FakeCloud, FakeProvider
from providers.model import InstanceRef
from providers.multicloud import MultiCloudProvider
from providers.multiregion import MultiRegionProvider
from reaperd.clock import ManualClock

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CLOUDS, REGIONS = ("one", "two", "three"), ("a", "b", "c")
NEED = Requirement(model="m")
# What each region of each cloud says: that it fails, or the prices of its offers.
SAYINGS = st.dictionaries(
    st.sampled_from(CLOUDS),
    st.dictionaries(
        st.sampled_from(REGIONS), st.none() | st.lists(st.integers(1, 3), max_size=2), min_size=1, max_size=3
    ),
    min_size=1,
)


def offer(provider, region, price=1):
    return Offer(provider=provider, instance_type="gpu", region=region, price_per_hour=Decimal(price))


def build(sayings, order=0):
    """Return everything, combined in an order of its own, and the clouds below it."""
    clock, shuffled = ManualClock(NOW), Random(order).sample
    clouds, combined = {}, []
    for name in shuffled(sorted(sayings), len(sayings)):
        clouds[name] = FakeCloud(name, tuple(sorted(sayings[name])), clock=clock)
        children = {}
        for region in shuffled(sorted(sayings[name]), len(sayings[name])):
            child = children[region] = FakeProvider(clouds[name], region)
            prices = sayings[name][region]
            if prices is None:
                child.quote_err = OSError(f"{name}/{region}")
            child.set_offers("", [offer(name, region, price) for price in prices or ()])
        combined.append(MultiRegionProvider(name, children, clock=clock))
    return MultiCloudProvider("all", *combined, clock=clock), clouds


def places(sayings, *, failing):
    return {(n, r) for n, regions in sayings.items() for r, prices in regions.items() if (prices is None) is failing}


@given(SAYINGS)
def test_a_quote_fails_exactly_when_every_place_does(sayings):
    multi, _ = build(sayings)

    if places(sayings, failing=False):
        multi.quote(NEED)
        return
    with pytest.raises(QuoteError) as caught:
        multi.quote(NEED)
    raised = {str(error) for error in caught.value.__cause__.exceptions}
    assert raised == {f"{name}/{region}" for name, region in places(sayings, failing=True)}


@given(SAYINGS)
def test_every_offer_of_a_place_that_answers_is_there_and_every_failure_is_told(sayings):
    multi, _ = build(sayings)

    try:
        quotes = multi.quote(NEED)
        offers, failures = tuple(quotes), quotes.failures
    except QuoteError as error:
        offers, failures = (), error.failures

    assert sorted((each.provider, each.region, each.price_per_hour) for each in offers) == sorted(
        (name, region, price)
        for name, regions in sayings.items()
        for region, prices in regions.items()
        for price in prices or ()
    )
    assert sorted((each.scope.provider, each.scope.region) for each in failures) == sorted(
        places(sayings, failing=True)
    )


@given(SAYINGS, st.integers(1, 99))
def test_the_order_in_which_places_are_combined_does_not_matter(sayings, order):
    answers = []
    for arranged in (0, order):
        multi, _ = build(sayings, arranged)
        try:
            answers.append(multi.quote(NEED))
        except QuoteError as error:
            answers.append(error.failures)

    assert answers[0] == answers[1]


@given(SAYINGS, st.sampled_from(("", "mars", *CLOUDS)), st.sampled_from(("", "mars", *REGIONS)))
def test_a_launch_goes_where_its_offer_says_or_nowhere_and_its_handle_ends_it(sayings, provider, region):
    multi, clouds = build(sayings)
    sole_cloud = provider or (next(iter(sayings)) if len(sayings) == 1 else None)
    regions = sayings.get(sole_cloud, {})
    sole_region = region or (next(iter(regions)) if len(regions) == 1 else None)

    try:
        handle = multi.launch("w-1", offer(provider, region), WorkerSpec())
    except LaunchError:
        assert sole_region not in regions
        assert not any(cloud.mutations for cloud in clouds.values())
        return

    assert (handle.offer.provider, handle.offer.region) == (sole_cloud, sole_region)
    assert [ref for cloud in clouds.values() for ref in cloud.live] == [handle.ref]
    multi.terminate(handle.ref)
    assert not any(cloud.live for cloud in clouds.values())


@given(SAYINGS, st.sampled_from(("", "mars", *CLOUDS)), st.sampled_from(("", "mars", *REGIONS)))
def test_a_termination_of_a_place_that_is_not_there_reaches_no_cloud(sayings, provider, region):
    multi, clouds = build(sayings)
    for name, cloud in clouds.items():
        for each in sayings[name]:
            multi.launch("w-1", offer(name, each), WorkerSpec())
        assert len(cloud.live) == len(sayings[name])
    before = {name: cloud.live for name, cloud in clouds.items()}
    instance_id = next(iter(before.values()))[0].instance_id

    if region in sayings.get(provider, {}):
        return
    with pytest.raises(TerminateError):
        multi.terminate(InstanceRef(provider, region, instance_id))

    assert {name: cloud.live for name, cloud in clouds.items()} == before
