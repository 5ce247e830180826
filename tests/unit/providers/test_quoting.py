import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from providers.base import InstanceAuditor, Provider
from providers.capacity import Offer, QuoteFailure, Quotes, Requirement, WorkerSpec
from providers.errors import (
    CapacityError,
    LaunchRejectedError,
    ProviderSetupError,
    QuoteError,
    TerminateError,
    UnknownLaunchError,
)
from providers.fake import FakeAuditingProvider, FakeCloud, FakeProvider
from providers.gated import gated
from providers.model import InstanceRef, Scope
from providers.multicloud import MultiCloudProvider
from providers.multiregion import MultiRegionProvider
from providers.quoting import QuoteTally
from reaperd.clock import ManualClock, SystemClock

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NEED = Requirement(model="llama", instance_types=("gpu",))
REGIONS = tuple(f"r{n:02}" for n in range(17))


class Lines:
    def __init__(self):
        self.written = []

    def warning(self, event, /, **fields):
        self.written.append((event, fields))


def offer(region, provider="c", **fields):
    return Offer(provider=provider, instance_type="gpu", region=region, price_per_hour=Decimal(1), **fields)


@pytest.fixture
def clock():
    return ManualClock(NOW)


@pytest.fixture
def world(clock):
    """Return the children of a cloud with so many regions, each of which has one offer."""

    def world(*regions, name="c", kind=FakeProvider):
        cloud = FakeCloud(name, regions, clock=clock)
        children = {region: kind(cloud, region) for region in regions}
        for region, child in children.items():
            child.set_offers("llama", [offer(region, name)])
        return cloud, children

    return world


def test_the_wrappers_are_whole_providers_that_audit(world, clock):
    _, children = world("a", "b")
    regions = MultiRegionProvider("c", children, clock=clock)
    clouds = MultiCloudProvider("all", regions, clock=clock)

    for wrapper in (regions, clouds):
        assert isinstance(wrapper, Provider)
        assert isinstance(wrapper, InstanceAuditor)
    assert (regions.regions, clouds.providers) == (("a", "b"), ("c",))


@pytest.mark.parametrize("child", [None, object(), FakeCloud("c", clock=ManualClock(NOW)).lister()])
def test_a_child_that_is_no_whole_provider_is_refused(clock, child):
    with pytest.raises(ProviderSetupError):
        MultiRegionProvider("c", {"a": child}, clock=clock)
    with pytest.raises(ProviderSetupError):
        MultiCloudProvider("all", child, clock=clock)


def test_a_child_whose_terminate_cannot_be_asked_again_is_refused(clock, world):
    class Old(FakeProvider):
        def terminate(self, ref, *, seen=None):
            raise AssertionError

    _, children = world("a", kind=Old)

    with pytest.raises(ProviderSetupError, match="permitted"):
        MultiRegionProvider("c", children, clock=clock)


def test_a_quote_over_seventeen_regions_of_which_one_fails_has_sixteen_offers_and_one_reason(world, clock):
    _, children = world(*REGIONS)
    children["r03"].quote_err = error = QuoteError("no answer from r03")
    log = Lines()
    tally = QuoteTally(log)

    quotes = MultiRegionProvider("c", children, clock=clock, observer=tally).quote(NEED)

    assert [each.region for each in quotes] == [region for region in REGIONS if region != "r03"]
    (failure,) = quotes.failures
    assert (failure.scope, failure.error_code, failure.error) == (Scope("c", "r03"), "quote_error", error)
    assert "no answer from r03" in failure.detail
    assert tally.counts[Scope("c", "r03"), "quote_error"] == 1
    assert sum(count for (_, result), count in tally.counts.items() if result == "ok") == 16
    assert [(event, fields["region"]) for event, fields in log.written] == [("quote_failed", "r03")]


def test_regions_are_asked_side_by_side(world):
    cloud, children = world(*REGIONS[:8])
    together = threading.Barrier(8, timeout=10)

    class Waits(FakeProvider):
        def quote(self, requirement):
            together.wait()
            return ()

    children = {region: Waits(cloud, region) for region in children}

    assert MultiRegionProvider("c", children, clock=SystemClock()).quote(NEED).failures == ()


def test_no_offers_anywhere_is_an_answer_even_beside_a_failure(world, clock):
    _, children = world("a", "b")
    children["a"].set_offers("llama", [])
    children["b"].quote_err = OSError("down")

    quotes = MultiRegionProvider("c", children, clock=clock).quote(NEED)

    assert len(quotes) == 0
    assert [failure.error_code for failure in quotes.failures] == ["os_error"]


def test_when_every_region_fails_every_cause_is_kept(world, clock):
    _, children = world("a", "b")
    errors = [OSError("one"), ValueError("two")]
    for child, error in zip(children.values(), errors, strict=True):
        child.quote_err = error

    with pytest.raises(QuoteError, match=r"c/a \(os_error\), c/b \(value_error\)") as caught:
        MultiRegionProvider("c", children, clock=clock).quote(NEED)

    assert isinstance(caught.value.__cause__, ExceptionGroup)
    assert list(caught.value.__cause__.exceptions) == errors
    assert [failure.scope.region for failure in caught.value.failures] == ["a", "b"]


def test_a_region_that_does_not_answer_in_time_has_failed(world):
    cloud, children = world("a", "b")
    released = threading.Event()

    class Hangs(FakeProvider):
        def quote(self, requirement):
            released.wait(30)
            return ()

    children["a"] = Hangs(cloud, "a")

    quotes = MultiRegionProvider("c", children, clock=SystemClock(), timeout=timedelta(seconds=0.3)).quote(NEED)
    released.set()

    assert [each.region for each in quotes] == ["b"]
    assert [(failure.scope.region, failure.error_code) for failure in quotes.failures] == [("a", "deadline")]


def test_each_region_is_asked_for_itself_and_one_that_is_named_alone(world, clock):
    cloud, children = world("a", "b")
    asked = []

    class Notes(FakeProvider):
        def quote(self, requirement):
            asked.append((self.regions[0], requirement))
            return ()

    multi = MultiRegionProvider("c", {region: Notes(cloud, region) for region in children}, clock=clock)
    multi.quote(NEED)
    assert sorted(asked, key=lambda each: each[0]) == [(region, replace(NEED, region=region)) for region in "ab"]

    asked.clear()
    multi.quote(replace(NEED, region="b"))
    assert asked == [("b", replace(NEED, region="b"))]


def test_a_region_that_is_not_there_has_nothing_to_offer(world, clock):
    _, children = world("a")

    assert MultiRegionProvider("c", children, clock=clock).quote(replace(NEED, region="mars")) == Quotes(())


def test_what_a_child_leaves_blank_is_filled_in_and_another_place_is_not_believed(world, clock):
    _, children = world("a", "b")
    children["a"].set_offers("llama", [offer("", "")])
    children["b"].set_offers("llama", [offer("b"), offer("a")])
    children["a"].quote = lambda _: (offer("", ""),)
    children["b"].quote = lambda _: (offer("b"), offer("a"))

    quotes = MultiRegionProvider("c", children, clock=clock).quote(NEED)

    assert tuple(quotes) == (offer("a"),)
    assert [(failure.scope.region, failure.error_code) for failure in quotes.failures] == [("b", "scope_mismatch")]
    assert "offers c/a" in quotes.failures[0].detail


def test_clouds_are_quoted_together_and_their_failures_with_them(world, clock):
    _, one = world("a", "b", name="one")
    _, two = world("a", name="two")
    one["b"].quote_err = OSError("down")
    clouds = [MultiRegionProvider(name, children, clock=clock) for name, children in (("one", one), ("two", two))]

    quotes = MultiCloudProvider("all", *clouds, clock=clock).quote(NEED)

    assert tuple(quotes) == (offer("a", "one"), offer("a", "two"))
    assert [failure.scope for failure in quotes.failures] == [Scope("one", "b")]


def test_a_region_that_only_one_cloud_has_is_quoted_there_and_the_others_have_not_failed(world, clock):
    clouds = [
        MultiRegionProvider(name, world(region, name=name)[1], clock=clock)
        for name, region in (("one", "a"), ("two", "b"))
    ]

    assert MultiCloudProvider("all", *clouds, clock=clock).quote(replace(NEED, region="b")) == Quotes(
        (offer("b", "two"),)
    )


def test_a_cloud_that_fails_whole_is_told_region_by_region(world, clock):
    _, one = world("a", "b", name="one")
    _, two = world("a", name="two")
    for child in one.values():
        child.quote_err = OSError("down")
    clouds = [MultiRegionProvider("one", one, clock=clock), two["a"]]
    tally = QuoteTally()

    quotes = MultiCloudProvider("all", *clouds, clock=clock, observer=tally).quote(NEED)

    assert tuple(quotes) == (offer("a", "two"),)
    assert [failure.scope for failure in quotes.failures] == [Scope("one", "a"), Scope("one", "b")]
    assert tally.counts == {
        (Scope("one", "a"), "os_error"): 1,
        (Scope("one", "b"), "os_error"): 1,
        (Scope("two", "*"), "ok"): 1,
    }


def test_when_every_cloud_fails_every_region_is_named(world, clock):
    _, one = world("a", "b", name="one")
    _, two = world("a", name="two")
    for child in (*one.values(), *two.values()):
        child.quote_err = OSError("down")

    with pytest.raises(QuoteError) as caught:
        MultiCloudProvider("all", MultiRegionProvider("one", one, clock=clock), two["a"], clock=clock).quote(NEED)

    assert [str(each.scope) for each in caught.value.failures] == ["one/a", "one/b", "two/*"]
    assert len(caught.value.__cause__.exceptions) == 3


def test_a_gated_cloud_quotes_nothing_beside_the_others(world, clock):
    class Off:
        def provision_allowed(self, cloud):
            return False

    _, one = world("a", name="one")
    _, two = world("a", name="two")
    multi = MultiCloudProvider("all", gated("one", one["a"], Off(), Lines()), two["a"], clock=clock)

    assert multi.quote(NEED) == Quotes((offer("a", "two"),))


def test_a_gated_cloud_is_audited_all_the_same(world, clock):
    class Off:
        def provision_allowed(self, cloud):
            return False

    _, children = world("a", kind=FakeAuditingProvider)

    sweep = MultiCloudProvider("all", gated("c", children["a"], Off(), Lines()), clock=clock).audit_instances()

    assert [entry.scope for entry in sweep.coverage] == [Scope("c", "a")]
    assert sweep.skipped == ()


def test_a_worker_is_launched_and_ended_where_its_offer_is(world, clock):
    one, children = world("a", "b", name="one")
    two, others = world("a", name="two")
    multi = MultiCloudProvider("all", MultiRegionProvider("one", children, clock=clock), others["a"], clock=clock)

    handle = multi.launch("w-1", offer("b", "one"), WorkerSpec(model="llama"))

    assert (one.live, two.live) == ((handle.ref,), ())
    assert [instance.to_handle().ref for instance in multi.list_owned()] == [handle.ref]
    multi.terminate(handle.ref)
    assert one.live == ()


def test_an_offer_that_names_no_place_goes_to_a_sole_one_and_the_handle_says_which(world, clock):
    cloud, children = world("a")
    multi = MultiCloudProvider("all", MultiRegionProvider("c", children, clock=clock), clock=clock)

    handle = multi.launch("w-1", offer("", ""), WorkerSpec())

    assert str(handle.ref) == "c/a/c-instance-w-1"
    multi.terminate(handle.ref)
    assert cloud.live == ()


@pytest.mark.parametrize(
    ("asked", "code"),
    [(offer(""), "unknown_region"), (offer("mars"), "unknown_region"), (offer("a", "mars"), "unknown_provider")],
    ids=["none of two", "unknown region", "unknown provider"],
)
def test_an_offer_that_cannot_be_placed_is_refused(world, clock, asked, code):
    cloud, children = world("a", "b")

    with pytest.raises(LaunchRejectedError) as caught:
        MultiRegionProvider("c", children, clock=clock).launch("w-1", asked, WorkerSpec())

    assert caught.value.error_code == code
    assert cloud.mutations == ()


@pytest.mark.parametrize("asked", [offer("mars"), offer("a", "mars")], ids=["region", "provider"])
def test_a_sole_child_does_not_stand_in_for_a_place_that_is_not_there(world, clock, asked):
    cloud, children = world("a")
    regions = MultiRegionProvider("c", children, clock=clock)

    for multi in (regions, MultiCloudProvider("all", regions, clock=clock)):
        with pytest.raises(LaunchRejectedError):
            multi.launch("w-1", asked, WorkerSpec())
        with pytest.raises(TerminateError):
            multi.terminate(InstanceRef(asked.provider, asked.region, "i-1"))

    assert cloud.mutations == ()


@pytest.mark.parametrize("asked", [offer("mars"), offer("a", "mars")], ids=["region", "provider"])
def test_a_sole_child_that_takes_everything_is_not_given_what_is_for_another(world, clock, asked):
    _, children = world("a")
    taken = []
    children["a"].launch = lambda *request: taken.append(request)
    regions = MultiRegionProvider("c", children, clock=clock)

    for multi in (regions, MultiCloudProvider("all", regions, clock=clock)):
        with pytest.raises(LaunchRejectedError):
            multi.launch("w-1", asked, WorkerSpec())

    assert taken == []


def test_a_sole_child_does_not_stand_in_for_a_blank_place_when_a_machine_is_to_be_ended(world, clock):
    cloud, children = world("a")
    ref = children["a"].launch("w-1", offer("a"), WorkerSpec()).ref
    regions = MultiRegionProvider("c", children, clock=clock)

    for multi in (regions, MultiCloudProvider("all", regions, clock=clock)):
        for blank in (replace(ref, region=""), replace(ref, provider="")):
            with pytest.raises(TerminateError):
                multi.terminate(blank)

    assert cloud.live == (ref,)


def test_what_a_child_says_of_a_launch_is_handed_on(world, clock):
    _, children = world("a")
    error = CapacityError("InsufficientInstanceCapacity", "none", "a")
    children["a"].launch_err = lambda _: error

    with pytest.raises(CapacityError) as caught:
        MultiRegionProvider("c", children, clock=clock).launch("w-1", offer("a"), WorkerSpec())

    assert caught.value is error


def test_a_handle_of_another_place_is_a_launch_of_unknown_result(world, clock):
    _, children = world("a")
    elsewhere = children["a"].launch("w-1", offer("a"), WorkerSpec())
    children["a"].launch = lambda *_: replace(elsewhere, offer=offer("b"))

    with pytest.raises(UnknownLaunchError, match="c-instance-w-1"):
        MultiRegionProvider("c", children, clock=clock).launch("w-2", offer("a"), WorkerSpec())


def test_a_handle_without_a_place_gets_that_of_its_child(world, clock):
    _, children = world("a")
    placeless = replace(children["a"].launch("w-1", offer("a"), WorkerSpec()), offer=offer("", ""))
    children["a"].launch = lambda *_: placeless

    handle = MultiRegionProvider("c", children, clock=clock).launch("w-2", offer("a"), WorkerSpec())

    assert handle.offer == offer("a")


def test_the_children_are_those_of_the_construction(world, clock):
    _, children = world("a", "b")
    multi = MultiRegionProvider("c", children, clock=clock)

    children.clear()

    assert len(multi.quote(NEED)) == 2


def test_quotes_are_a_sequence_and_are_joined_in_order():
    failure = QuoteFailure(scope=Scope("c", "b"), error_code="down")
    joined = Quotes.joined([Quotes((offer("a"),)), Quotes((), (failure,)), Quotes((offer("d"),))])

    assert (joined[0], joined[-1:], len(joined)) == (offer("a"), (offer("d"),), 2)
    assert list(joined) == [offer("a"), offer("d")]
    assert str(joined.failures[0]) == "c/b (down)"
