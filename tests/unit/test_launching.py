"""The safe launch, step by step. What a crash leaves behind: tests/integration/test_safe_launch.py."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from providers.capacity import UNKNOWN_PRICE, Offer, WorkerSpec
from providers.errors import (
    CapacityError,
    InvalidSpecError,
    LaunchDeniedError,
    LaunchEndedError,
    LaunchMismatchError,
    UnknownLaunchError,
    UntaggedLaunchError,
)
from providers.fake import FakeCloud, FakeProvider
from providers.model import InstanceRef
from reaperd.clock import ManualClock
from reaperd.errors import LaunchNotRecordedError, LaunchPendingError, NoCapacityError, WorkerTakenError
from reaperd.launching import SETTLES, launch_worker
from registry.errors import RegistryUnusableError, RegistryWriteError
from registry.memory import MemoryRegistry
from registry.model import RegistryFault, Worker, WorkerState

NOON = datetime(2026, 1, 10, 12, tzinfo=UTC)
SPEC = WorkerSpec(model="llama")
FULL = CapacityError("InsufficientInstanceCapacity", "no capacity", "north")
LOST = UnknownLaunchError("connection reset")


def offer(price: str, region: str = "north", zone: str = "") -> Offer:
    return Offer(
        provider="fake", instance_type="g5.xlarge", region=region, zone=zone or region, price_per_hour=Decimal(price)
    )


CHEAP, MIDDLE, DEAR = offer("0.10"), offer("0.20", zone="north-b"), offer("0.30", "south")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOON)


@pytest.fixture
def provider(clock) -> FakeProvider:
    return FakeProvider(FakeCloud(regions=("north", "south"), clock=clock))


@pytest.fixture
def registry(clock) -> MemoryRegistry:
    return MemoryRegistry("fleet", now=clock.now)


def again(provider, registry, offers):
    """Launch the worker, as a control plane does that was restarted a while later."""
    return launch_worker(provider, registry, SPEC, offers, worker_id="w-1", clock=ManualClock(NOON + SETTLES))


def standing(registry, **other) -> Worker:
    facts = {"worker_id": "w-1", "provider": "fake", "region": "north", "instance_id": None}
    row = Worker(**facts | {"state": WorkerState.LAUNCHING} | other)
    registry.add(row)
    return row


def refusing(provider, errors) -> None:
    """Let the launches onto some offers go wrong."""
    provider.launch_err = lambda wanted: errors.get(wanted.zone)


def test_the_worker_runs_on_the_cheapest_offer_and_its_row_names_the_machine(provider, registry):
    handle = launch_worker(provider, registry, SPEC, [DEAR, CHEAP, MIDDLE], worker_id="w-1")

    row = registry.find("w-1")
    assert handle.offer == CHEAP
    assert (row.provider, row.region, row.instance_id) == ("fake", "north", handle.instance_id)
    assert (row.state, row.model, row.launched_at) == (WorkerState.RUNNING, "llama", NOON)
    assert [owned.worker_id for owned in provider.list_owned()] == ["w-1"]


def test_without_a_worker_id_each_launch_has_one_of_its_own(provider, registry):
    handles = [launch_worker(provider, registry, SPEC, [CHEAP]) for _ in range(2)]

    assert len({handle.worker_id for handle in handles}) == 2
    assert {row.worker_id for row in registry.snapshot().workers} == {handle.worker_id for handle in handles}


def test_the_row_stands_and_names_the_place_before_each_request(provider, registry):
    seen = []

    def look(wanted):
        row = registry.find("w-1")
        seen.append((row.state, row.instance_id, row.region == wanted.region))
        return FULL if wanted != DEAR else None

    provider.launch_err = look
    launch_worker(provider, registry, SPEC, [CHEAP, MIDDLE, DEAR], worker_id="w-1")

    assert seen == [(WorkerState.LAUNCHING, None, True)] * 3
    assert registry.find("w-1").region == "south"


def test_the_row_names_the_zone_of_each_request_and_of_the_machine(provider, registry):
    seen = []

    def look(wanted):
        seen.append((registry.find("w-1").zone, wanted.zone))
        return FULL if wanted == CHEAP else None

    provider.launch_err = look
    launch_worker(provider, registry, SPEC, [CHEAP, MIDDLE], worker_id="w-1")

    assert seen == [("north", "north"), ("north-b", "north-b")]
    assert registry.find("w-1").zone == "north-b"


def test_an_offer_that_leaves_the_zone_to_the_cloud_leaves_it_open_in_the_row(provider, registry):
    open_offer = replace(MIDDLE, zone="")
    provider.launch_err = lambda wanted: FULL if wanted == CHEAP else None

    launch_worker(provider, registry, SPEC, [CHEAP, open_offer], worker_id="w-1")

    assert registry.find("w-1").zone is None


def test_when_nothing_has_capacity_the_row_is_failed_and_every_cause_is_told(provider, registry):
    refusing(provider, {"north": FULL, "south": CapacityError("VcpuLimitExceeded", "quota", "south")})

    with pytest.raises(NoCapacityError) as caught:
        launch_worker(provider, registry, SPEC, [CHEAP, DEAR], worker_id="w-1")

    assert [error.code for error in caught.value.causes] == ["InsufficientInstanceCapacity", "VcpuLimitExceeded"]
    assert registry.find("w-1").state is WorkerState.FAILED


def test_without_an_offer_nothing_is_written(provider, registry):
    with pytest.raises(NoCapacityError, match="nothing was asked for"):
        launch_worker(provider, registry, SPEC, [], worker_id="w-1")

    assert registry.find("w-1") is None


def test_a_refusal_that_is_not_about_capacity_ends_the_launch(provider, registry):
    refusing(provider, {"north": LaunchDeniedError("no")})

    with pytest.raises(LaunchDeniedError):
        launch_worker(provider, registry, SPEC, [CHEAP, DEAR], worker_id="w-1")

    assert registry.find("w-1").state is WorkerState.FAILED
    assert provider.launched_count == 0


def test_a_lost_answer_leaves_the_row_launching_and_nothing_else_is_tried(provider, registry):
    refusing(provider, {"north": LOST})

    with pytest.raises(LaunchPendingError, match="launch again with this worker id"):
        launch_worker(provider, registry, SPEC, [CHEAP, DEAR], worker_id="w-1")

    row = registry.find("w-1")
    assert (row.state, row.region, row.instance_id) == (WorkerState.LAUNCHING, "north", None)
    assert provider.launched_count == 0


def test_asked_again_after_a_lost_answer_it_finds_its_machine(provider, registry):
    def lose(_handle):
        raise LOST

    provider.on_launch = lose
    with pytest.raises(LaunchPendingError):
        launch_worker(provider, registry, SPEC, [CHEAP], worker_id="w-1")

    handle = again(provider, registry, [CHEAP])

    assert provider.launched_count == 1
    assert registry.find("w-1").instance_id == handle.instance_id


def test_asked_again_it_finds_the_offer_that_its_machine_was_launched_onto(provider, registry):
    provider.launch("w-1", MIDDLE, SPEC)
    standing(registry)

    handle = again(provider, registry, [CHEAP, MIDDLE, DEAR])

    assert (handle.offer, provider.launched_count) == (MIDDLE, 1)


def test_asked_again_the_zone_of_the_row_comes_first_and_in_it_the_cheapest(provider, registry):
    standing(registry, zone="north-b")
    dearer = replace(MIDDLE, instance_type="g6.xlarge", price_per_hour=Decimal("0.25"))
    asked = []

    def look(wanted):
        asked.append(wanted)
        return FULL

    provider.launch_err = look
    with pytest.raises(NoCapacityError):
        again(provider, registry, [CHEAP, dearer, MIDDLE, DEAR])

    assert asked == [MIDDLE, dearer, CHEAP]


def test_asked_again_the_other_zones_follow_once_the_zone_of_the_row_has_answered(provider, registry):
    standing(registry, zone="north-b")
    refusing(provider, {"north-b": FULL})

    handle = again(provider, registry, [CHEAP, MIDDLE])

    assert handle.offer == CHEAP
    assert (registry.find("w-1").zone, provider.launched_count) == ("north", 1)


def test_asked_again_in_the_zone_of_the_row_too_early_nothing_is_tried_either(provider, registry):
    standing(registry, zone="north")

    with pytest.raises(LaunchPendingError):
        launch_worker(provider, registry, SPEC, [CHEAP], worker_id="w-1", clock=ManualClock(NOON))

    assert provider.launched_count == 0


def test_a_machine_of_no_offer_stays_protected(provider, registry):
    provider.launch("w-1", MIDDLE, SPEC)
    standing(registry)

    with pytest.raises(LaunchMismatchError):
        again(provider, registry, [CHEAP])

    assert registry.find("w-1").state is WorkerState.LAUNCHING


def test_asked_again_only_the_region_of_the_row_is_tried(provider, registry):
    standing(registry)
    refusing(provider, {"north": FULL, "north-b": FULL})

    with pytest.raises(NoCapacityError) as caught:
        again(provider, registry, [CHEAP, MIDDLE, DEAR])

    assert len(caught.value.causes) == 2
    assert provider.launched_count == 0


def test_asked_again_with_offers_of_other_regions_alone_nothing_is_tried(provider, registry):
    standing(registry)

    with pytest.raises(WorkerTakenError, match="fake/north is pending"):
        again(provider, registry, [DEAR])

    assert registry.find("w-1").state is WorkerState.LAUNCHING


def test_asked_again_and_refused_the_row_goes_on_protecting(provider, registry):
    standing(registry)
    refusing(provider, {"north": LaunchDeniedError("no")})

    with pytest.raises(LaunchDeniedError):
        again(provider, registry, [CHEAP])

    assert registry.find("w-1").state is WorkerState.LAUNCHING


def test_a_machine_that_was_ended_meanwhile_fails_its_worker(provider, registry):
    standing(registry)
    refusing(provider, {"north": LaunchEndedError("gone")})

    with pytest.raises(LaunchEndedError):
        again(provider, registry, [CHEAP])

    assert registry.find("w-1").state is WorkerState.FAILED


@pytest.mark.parametrize("before", [SETTLES - timedelta(seconds=1), timedelta(0), -timedelta(hours=1)])
def test_asked_again_too_early_nothing_is_tried(provider, registry, before):
    standing(registry)

    with pytest.raises(LaunchPendingError, match="may not be visible yet"):
        launch_worker(provider, registry, SPEC, [CHEAP], worker_id="w-1", clock=ManualClock(NOON + before))

    assert provider.launched_count == 0
    assert registry.find("w-1").state is WorkerState.LAUNCHING


def test_a_worker_that_has_its_machine_is_returned_as_it_is(provider, registry):
    first = launch_worker(provider, registry, SPEC, [CHEAP], worker_id="w-1")

    again = launch_worker(provider, registry, SPEC, [DEAR], worker_id="w-1")

    assert (again.ref, again.launched_at, again.spec) == (first.ref, first.launched_at, SPEC)
    assert again.offer.zone == first.offer.zone == "north"
    assert provider.launched_count == 1


@pytest.mark.parametrize("state", [state for state in WorkerState if not state.is_live])
def test_a_worker_id_is_used_once(provider, registry, state):
    standing(registry, state=state)

    with pytest.raises(WorkerTakenError, match=state):
        launch_worker(provider, registry, SPEC, [CHEAP], worker_id="w-1")

    assert provider.launched_count == 0


def test_without_a_registry_nothing_is_asked_for(provider, registry):
    registry.fault = RegistryFault.LOCKED

    with pytest.raises(RegistryUnusableError):
        launch_worker(provider, registry, SPEC, [CHEAP], worker_id="w-1")

    assert provider.launched_count == 0


def test_a_machine_that_the_registry_could_not_be_told_of_is_named(provider, registry):
    def refuse(*_arguments, **_named):
        msg = "disk full"
        raise RegistryWriteError(msg)

    registry.set_instance = refuse
    with pytest.raises(LaunchNotRecordedError, match="disk full") as caught:
        launch_worker(provider, registry, SPEC, [CHEAP], worker_id="w-1")

    assert caught.value.instance == "fake/north/fake-instance-w-1"
    assert registry.find("w-1").state is WorkerState.LAUNCHING


def test_a_machine_without_our_tags_is_named_by_a_row_that_is_failed(provider, registry):
    refusing(provider, {"north": UntaggedLaunchError(InstanceRef("fake", "north", "i-1"), "untagged")})

    with pytest.raises(UntaggedLaunchError):
        launch_worker(provider, registry, SPEC, [CHEAP], worker_id="w-1")

    row = registry.find("w-1")
    assert (row.instance_id, row.state) == ("i-1", WorkerState.FAILED)


def test_an_answer_without_a_machine_is_none(provider, registry):
    class Forgetful:
        def launch(self, *arguments):
            return replace(provider.launch(*arguments), instance_id="")

    with pytest.raises(LaunchPendingError, match="names no machine"):
        launch_worker(Forgetful(), registry, SPEC, [CHEAP], worker_id="w-1")

    assert registry.find("w-1").state is WorkerState.LAUNCHING


def test_offers_that_cannot_be_compared_are_refused_before_anything_is_written(provider, registry):
    with pytest.raises(InvalidSpecError):
        launch_worker(provider, registry, SPEC, [CHEAP, replace(DEAR, price_per_hour=UNKNOWN_PRICE)], worker_id="w-1")

    assert registry.find("w-1") is None
