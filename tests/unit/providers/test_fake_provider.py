import threading
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from providers.base import Capacity, EventSource, InstanceAuditor, Lister, Provider, Terminator
from providers.capacity import Kind, Offer, Requirement, WorkerSpec
from providers.errors import (
    CapacityError,
    IncompleteListingError,
    InstanceNotFoundError,
    LaunchEndedError,
    LaunchMismatchError,
    LaunchRejectedError,
    QuoteError,
    UnknownLaunchError,
)
from providers.events import ProviderEvent
from providers.fake import FakeAuditingProvider, FakeCloud, FakeMachine, FakeProvider, ListingFault
from providers.fake.launches import LaunchBook
from providers.model import InstanceRef, InstanceState, OwnedInstance
from reaperd.clock import ManualClock

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OFFER = Offer(provider="fake", instance_type="gpu", region="fake-1", zone="a", price_per_hour=Decimal(1))
SPEC = WorkerSpec(model="llama")
SMALL = replace(OFFER, instance_type="small")


@pytest.fixture
def clock():
    return ManualClock(NOW)


@pytest.fixture
def cloud(clock):
    return FakeCloud(clock=clock)


@pytest.fixture
def fake(cloud):
    return FakeProvider(cloud)


def orphan(instance_id, region="fake-1"):
    return OwnedInstance(ref=InstanceRef("fake", region, instance_id), state=InstanceState.RUNNING, owner="fleet")


def test_it_is_a_whole_provider_and_audits_only_where_that_is_said(cloud, fake):
    assert isinstance(fake, Provider | Capacity | Lister | Terminator | EventSource)
    assert not isinstance(fake, InstanceAuditor)
    assert isinstance(FakeAuditingProvider(cloud), InstanceAuditor)


def test_a_model_is_quoted_its_own_offers_and_others_the_fall_back(fake):
    fake.set_offers("llama", [OFFER])
    fake.set_offers("", [SMALL])

    assert fake.quote(Requirement(model="llama")) == (OFFER,)
    assert fake.quote(Requirement(model="other")) == (SMALL,)


def test_a_model_without_offers_and_without_a_fall_back_is_quoted_none(fake):
    assert fake.quote(Requirement(model="llama")) == ()


def test_a_quote_holds_the_types_and_the_region_that_were_asked_for(fake):
    fake.set_offers("", [OFFER, SMALL, replace(OFFER, region="fake-2")])

    assert fake.quote(Requirement(model="m", instance_types=("small", "foreign"))) == (SMALL,)
    assert fake.quote(Requirement(model="m", instance_types=("foreign",))) == ()
    assert fake.quote(Requirement(model="m", region="fake-1")) == (OFFER, SMALL)


def test_what_was_set_is_not_changed_by_what_its_giver_does_with_it(fake):
    offers = [OFFER]
    fake.set_offers("", offers)

    offers.clear()

    assert fake.quote(Requirement(model="m")) == (OFFER,)


def test_a_quote_can_be_made_to_fail(fake):
    fake.set_offers("", [OFFER])
    fake.quote_err = QuoteError("unreachable")

    with pytest.raises(QuoteError, match="unreachable"):
        fake.quote(Requirement(model="m"))


def test_a_launched_worker_is_listed_and_its_handle_ends_it(fake, cloud):
    handle = fake.launch("w-1", OFFER, SPEC)
    (listed,) = fake.list_owned()

    assert (handle.worker_id, handle.instance_id, handle.provider) == ("w-1", "fake-instance-w-1", "fake")
    assert (handle.offer, handle.spec, handle.launched_at) == (OFFER, SPEC, NOW)
    assert (listed.ref, listed.worker_id, listed.model, listed.owner) == (handle.ref, "w-1", "llama", cloud.owner)
    assert (listed.zone, listed.instance_type) == ("a", "gpu")

    fake.terminate(handle.ref, seen=listed)
    assert cloud.live == ()


def test_a_worker_id_never_has_two_machines(fake, cloud):
    first = fake.launch("w-1", OFFER, SPEC)

    assert fake.launch("w-1", OFFER, SPEC) == first
    assert FakeProvider(cloud).launch("w-1", OFFER, SPEC) == first
    assert len(cloud.live) == 1
    assert fake.launched_count == 1


def test_a_worker_id_is_launched_once_however_many_ask_at_once(fake, cloud):
    together = threading.Barrier(2)

    class Waits(LaunchBook):
        def find(self, region, worker_id):
            found = super().find(region, worker_id)
            # Both would be here at the same time if they could; one alone gives up waiting.
            with suppress(threading.BrokenBarrierError):
                together.wait(0.2)
            return found

    cloud.launches = Waits()
    launched = []
    fake.on_launch = launched.append

    threads = [threading.Thread(target=fake.launch, args=("w-1", OFFER, SPEC)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [handle.ref for handle in launched] == list(cloud.live)
    assert len(cloud.mutations) == 1


@pytest.mark.parametrize(("offer", "spec"), [(SMALL, SPEC), (OFFER, WorkerSpec(model="other"))], ids=["offer", "spec"])
def test_a_worker_id_with_another_request_is_refused(fake, cloud, offer, spec):
    fake.launch("w-1", OFFER, SPEC)

    with pytest.raises(LaunchMismatchError):
        fake.launch("w-1", offer, spec)

    assert len(cloud.live) == 1


def test_a_worker_id_whose_machine_is_over_gives_no_other(fake, cloud):
    fake.terminate(fake.launch("w-1", OFFER, SPEC).ref)

    with pytest.raises(LaunchEndedError):
        fake.launch("w-1", OFFER, SPEC)

    assert cloud.live == ()


def test_a_worker_id_is_a_token_in_its_region_only(clock):
    cloud = FakeCloud("fake", ("fake-1", "fake-2"), clock=clock)
    fake = FakeProvider(cloud)

    first, second = (fake.launch("w-1", replace(OFFER, region=region), SPEC) for region in cloud.regions)

    assert first.instance_id != second.instance_id
    assert len(cloud.live) == 2


@pytest.mark.parametrize(
    ("worker_id", "offer", "code"),
    [
        ("", OFFER, "no_worker_id"),
        ("w-1", replace(OFFER, provider="other"), "unknown_provider"),
        ("w-1", replace(OFFER, region="mars"), "unknown_region"),
    ],
)
def test_a_launch_that_could_not_be_found_again_is_refused(fake, cloud, worker_id, offer, code):
    with pytest.raises(LaunchRejectedError) as caught:
        fake.launch(worker_id, offer, SPEC)

    assert caught.value.error_code == code
    assert cloud.live == ()


def test_a_launch_can_be_made_to_fail_for_some_offers_and_is_then_neither_recorded_nor_counted(fake, cloud):
    fake.launch_err = lambda offer: CapacityError("none", "no room", "fake-1") if offer.zone == "a" else None
    launched = []
    fake.on_launch = launched.append

    with pytest.raises(CapacityError, match="no room"):
        fake.launch("w-1", OFFER, SPEC)
    assert (fake.launched_count, fake.live_count, cloud.mutations, launched) == (0, 0, (), [])

    other = fake.launch("w-1", replace(OFFER, zone="b"), SPEC)
    assert launched == [other]


def test_the_hook_of_a_launch_may_use_the_provider_and_finds_the_machine_there(fake):
    seen = []
    fake.on_launch = lambda handle: seen.append((handle.worker_id, fake.launched_count, len(fake.list_owned())))

    fake.launch("w-1", OFFER, SPEC)
    fake.launch("w-1", OFFER, SPEC)

    assert seen == [("w-1", 1, 1)]


def test_a_hook_that_raises_is_a_lost_answer(fake, cloud):
    lost_answer = UnknownLaunchError("connection reset")

    def lost(_handle):
        raise lost_answer

    fake.on_launch = lost
    with pytest.raises(UnknownLaunchError):
        fake.launch("w-1", OFFER, SPEC)

    assert len(cloud.live) == 1
    assert fake.launch("w-1", OFFER, SPEC).ref == cloud.live[0]


def test_the_hook_of_a_termination_may_use_the_provider(fake):
    seen = []
    fake.on_terminate = lambda ref: seen.append((ref, fake.live_count))
    handle = fake.launch("w-1", OFFER, SPEC)

    fake.terminate(handle.ref)

    assert seen == [(handle.ref, 0)]


def test_an_unknown_machine_is_not_ended(fake):
    with pytest.raises(InstanceNotFoundError):
        fake.terminate(InstanceRef("fake", "fake-1", "fake-instance-w-9"))


def test_a_listing_can_be_made_to_fail(fake):
    fake.list_owned_err = IncompleteListingError(())

    with pytest.raises(IncompleteListingError):
        fake.list_owned()


def test_a_listing_that_fails_in_one_region_tells_of_all(clock):
    cloud = FakeCloud("fake", ("fake-1", "fake-2"), clock=clock)
    cloud.fail_listing("fake-1", ListingFault(error_code="down"))

    with pytest.raises(IncompleteListingError) as caught:
        FakeProvider(cloud).list_owned()

    assert [entry.ok for entry in caught.value.coverage] == [False, True]


def test_orphans_without_a_worker_are_kept_apart_by_their_instance_ids(fake):
    added = [fake.add_owned_instance(orphan(each)) for each in ("i-1", "i-2")]

    assert [instance.ref for instance in fake.list_owned()] == added
    assert [instance.worker_id for instance in fake.list_owned()] == [None, None]

    fake.terminate(added[0])
    assert [instance.ref for instance in fake.list_owned() if instance.state.exists] == added[1:]


def test_an_orphan_is_shown_as_it_was_given(fake):
    given = replace(
        orphan("i-1"),
        worker_id="w",
        model="llama",
        registry_id="r",
        protect=True,
        managed_by="fleet:f",
        launched_at=NOW - timedelta(days=1),
        account="9" * 12,
        foreign_account=True,
        zone="a",
        instance_type="gpu",
        spot_request_id="sir-1",
        state=InstanceState.STOPPED,
    )
    fake.add_owned_instance(given)

    (listed,) = fake.list_owned()

    assert replace(listed, tags={}) == replace(given, tags={})


@pytest.mark.parametrize("ref", [InstanceRef("other", "fake-1", "i-1"), InstanceRef("fake", "mars", "i-1")])
def test_an_orphan_of_another_place_is_refused(fake, ref):
    with pytest.raises(ValueError, match="is not a machine of fake"):
        fake.add_owned_instance(replace(orphan("i-1"), ref=ref))


def test_orphans_are_not_counted_as_launched(fake):
    fake.add_owned_instance(orphan("i-1"))

    assert (fake.launched_count, fake.live_count) == (0, 0)


def test_launches_are_counted_for_ever_and_live_ones_while_they_live(fake):
    handles = [fake.launch(worker_id, OFFER, SPEC) for worker_id in ("w-1", "w-2")]

    fake.terminate(handles[0].ref)

    assert (fake.launched_count, fake.live_count) == (2, 1)


def test_another_clock_tells_the_time_of_the_next_launch(fake):
    fake.set_clock(ManualClock(NOW + timedelta(days=1)))

    assert fake.launch("w-1", OFFER, SPEC).launched_at == NOW + timedelta(days=1)


def test_another_name_is_that_of_the_machines_too(fake):
    fake.set_name("second")

    handle = fake.launch("w-1", replace(OFFER, provider="second"), SPEC)

    assert (fake.name, str(handle.ref)) == ("second", "second/fake-1/second-instance-w-1")


def test_one_region_of_a_cloud_knows_nothing_of_the_others(clock):
    cloud = FakeCloud("fake", ("fake-1", "fake-2"), clock=clock)
    one, two = (FakeAuditingProvider(cloud, region) for region in cloud.regions)
    one.launch("w-1", OFFER, SPEC)
    cloud.add(FakeMachine(region="fake-2", owner=None))

    assert [len(each.list_owned()) for each in (one, two)] == [1, 0]
    assert [len(each.audit_instances().instances) for each in (one, two)] == [1, 1]
    assert [each.launched_count for each in (one, two)] == [1, 0]


def test_what_the_cloud_announces_is_told(fake):
    ref = fake.launch("w-1", replace(OFFER, kind=Kind.SPOT), SPEC).ref
    event = ProviderEvent(ref=ref, fault_code="marked-for-termination", marked_for_termination=True)
    fake.events[ref] = event

    assert fake.instance_event(ref) == event
    assert fake.instance_event(InstanceRef("fake", "fake-1", "i-9")) is None
