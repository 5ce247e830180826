import threading
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from providers.base import Lister, Provider, Terminator
from providers.capacity import Kind, Offer, Requirement, WorkerSpec
from providers.catalogue import InstanceType
from providers.errors import (
    IncompleteListingError,
    InstanceChangedError,
    InstanceNotFoundError,
    LaunchEndedError,
    LaunchRejectedError,
    QuoteError,
    TerminateRejectedError,
    UnknownLaunchError,
    UnknownResultError,
    UntaggedLaunchError,
)
from providers.fanout import asks_permission
from providers.locations import Gone, NotKnown, There
from providers.model import InstanceRef, InstanceState, TagKeys
from providers.nodes import Node, NodeAdapter, NodeLister
from tests.unit.providers.nodes import NodeCloud, PricedNodeCloud

REGIONS = ("oslo", "turku")
OWNER = "prod"
OFFER = Offer(provider="other", instance_type="gpu", region="oslo", kind=Kind.ON_DEMAND, price_per_hour=Decimal(2))
SPEC = WorkerSpec(model="llama", user_data="#!/bin/sh\n")


@pytest.fixture
def cloud():
    return PricedNodeCloud()


@pytest.fixture
def adapter(cloud):
    return NodeAdapter(cloud, regions=REGIONS, owner=OWNER)


def labels(worker_id="w-1", owner=OWNER, **more):
    return {"reaperd:owner": owner, "reaperd:worker-id": worker_id} | more


def why_incomplete(adapter):
    with pytest.raises(IncompleteListingError) as caught:
        adapter.list_owned()
    assert [entry.scope.region for entry in caught.value.coverage] == list(REGIONS)
    (code,) = {entry.error_code for entry in caught.value.coverage}
    return code


def test_it_is_a_whole_provider_and_its_lister_cannot_terminate(adapter, cloud):
    assert isinstance(adapter, Provider)
    assert asks_permission(adapter)
    assert (adapter.name, adapter.regions) == ("other", REGIONS)
    lister = NodeLister(cloud, regions=REGIONS, owner=OWNER)
    assert isinstance(lister, Lister)
    assert not isinstance(lister, Terminator)


def test_a_node_is_listed_with_its_zone_and_without_a_launch_time(adapter, cloud):
    cloud.add(zone="oslo-b", instance_type="gpu", labels=labels() | {"reaperd:model": "llama", "Reaperd:Protect": ""})
    cloud.add(labels={})

    (listed,) = adapter.list_owned()

    assert (str(listed.ref), listed.zone, listed.launched_at) == ("other/oslo/n-1", "oslo-b", None)
    assert (listed.owner, listed.worker_id, listed.model, listed.instance_type) == (OWNER, "w-1", "llama", "gpu")
    assert listed.protect
    assert listed.to_handle().offer.zone == "oslo-b"


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("provisioning", InstanceState.PENDING),
        ("running", InstanceState.RUNNING),
        ("terminating", InstanceState.SHUTTING_DOWN),
        ("terminated", InstanceState.TERMINATED),
        ("unhealthy", InstanceState.UNKNOWN),
        ("", InstanceState.UNKNOWN),
    ],
)
def test_a_word_that_is_not_known_is_a_machine_that_exists(adapter, cloud, status, state):
    cloud.add(status=status, labels=labels())

    assert [each.state for each in adapter.list_owned()] == [state]
    assert InstanceState.UNKNOWN.exists


def test_other_tag_keys_are_gone_by(cloud):
    cloud.add(labels={"mine": OWNER})

    lister = NodeLister(cloud, regions=REGIONS, owner=OWNER, tag_keys=TagKeys(owner="mine"))

    assert [each.owner for each in lister.list_owned()] == [OWNER]


def test_a_listing_that_raises_is_none(adapter, cloud):
    cloud.fails["list"] = ConnectionError("reset")

    assert why_incomplete(adapter) == "ConnectionError"


@pytest.mark.parametrize(
    ("node", "code"),
    [
        ({"region": "mars"}, "scope_mismatch"),
        ({"id": ""}, "not_addressable"),
        ({"provider": "third"}, "not_addressable"),
        ({"id": "n-1", "zone": "oslo-b"}, "duplicate_instance"),
    ],
)
def test_a_listing_that_cannot_be_addressed_is_none_even_where_the_node_is_not_ours(adapter, cloud, node, code):
    cloud.add(labels=labels(), zone="oslo-a")
    cloud.add(**node)

    assert why_incomplete(adapter) == code


def test_an_id_that_is_in_two_regions_ends_neither(adapter, cloud):
    for region in REGIONS:
        cloud.add(id="n-1", region=region, labels=labels())
    assert len(adapter.list_owned()) == 2

    with pytest.raises(TerminateRejectedError) as caught:
        adapter.terminate(InstanceRef("other", "oslo", "n-1"))

    assert caught.value.error_code == "ambiguous_id"
    assert cloud.terminated == []


def test_an_id_that_is_in_another_region_than_was_said_is_left_alone(adapter, cloud):
    cloud.add(id="n-1", region="turku", labels=labels())

    with pytest.raises(InstanceNotFoundError):
        adapter.terminate(InstanceRef("other", "oslo", "n-1"))

    assert cloud.terminated == []


def test_nothing_is_ended_while_the_nodes_cannot_be_listed(adapter, cloud):
    node = cloud.add(labels=labels())
    cloud.fails["list"] = ConnectionError("reset")

    with pytest.raises(TerminateRejectedError) as caught:
        adapter.terminate(InstanceRef("other", "oslo", node.id))

    assert caught.value.error_code == "not_listed"
    assert cloud.terminated == []


def test_a_termination_whose_answer_is_an_error_may_have_been_done(adapter, cloud):
    node = cloud.add(labels=labels())
    cloud.fails["terminate"] = TimeoutError("slow")

    with pytest.raises(UnknownResultError, match="slow"):
        adapter.terminate(InstanceRef("other", "oslo", node.id))


def test_a_machine_that_is_gone_already_is_not_ended_again(adapter, cloud):
    gone, going = cloud.add(labels=labels(), status="terminated"), cloud.add(labels=labels(), status="terminating")

    with pytest.raises(InstanceNotFoundError):
        adapter.terminate(InstanceRef("other", "oslo", gone.id))
    with pytest.raises(InstanceChangedError):
        adapter.terminate(InstanceRef("other", "oslo", going.id))

    assert cloud.terminated == []


def test_a_launched_worker_carries_our_labels_its_zone_and_no_invented_time(adapter, cloud):
    handle = adapter.launch("w-1", OFFER, SPEC)
    (request,) = cloud.requests

    assert (request.name, request.region, request.instance_type) == ("prod-w-1", "oslo", "gpu")
    assert dict(request.labels) == labels() | {"reaperd:model": "llama"}
    assert request.user_data == SPEC.user_data
    assert (str(handle.ref), handle.offer.zone, handle.launched_at) == ("other/oslo/n-1", "oslo-a", None)
    assert [each.ref for each in adapter.list_owned()] == [handle.ref]


def test_a_worker_id_never_has_two_machines(adapter, cloud):
    first = adapter.launch("w-1", OFFER, SPEC)

    assert adapter.launch("w-1", OFFER, SPEC).ref == first.ref
    assert NodeAdapter(cloud, regions=REGIONS, owner=OWNER).launch("w-1", OFFER, SPEC).ref == first.ref
    assert len(cloud.requests) == 1


def test_the_same_worker_id_of_another_deployment_is_another_worker(adapter, cloud):
    cloud.add(labels=labels(owner="test"))

    adapter.launch("w-1", OFFER, SPEC)

    assert len(cloud.requests) == 1


def test_two_launches_of_a_worker_at_once_make_one_machine(cloud):
    together = threading.Barrier(2)
    listing = cloud.list

    def wait():
        nodes = listing()
        with suppress(threading.BrokenBarrierError):
            together.wait(0.2)
        return nodes

    cloud.list = wait
    adapter = NodeAdapter(cloud, regions=REGIONS, owner=OWNER)

    threads = [threading.Thread(target=adapter.launch, args=("w-1", OFFER, SPEC)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(cloud.requests) == 1


def test_a_worker_id_whose_machine_is_over_gives_no_other(adapter, cloud):
    cloud.add(labels=labels(), status="terminated")

    with pytest.raises(LaunchEndedError):
        adapter.launch("w-1", OFFER, SPEC)

    assert cloud.requests == []


def test_nothing_is_launched_while_it_cannot_be_known_whether_the_worker_has_a_machine(adapter, cloud):
    cloud.fails["list"] = ConnectionError("reset")

    with pytest.raises(LaunchRejectedError) as caught:
        adapter.launch("w-1", OFFER, SPEC)

    assert caught.value.error_code == "not_listed"
    assert cloud.requests == []


@pytest.mark.parametrize(
    ("worker_id", "place"), [("", {}), ("w-1", {"region": "mars"}), ("w-1", {"region": ""}), ("w-1", {"provider": "x"})]
)
def test_a_launch_that_could_not_be_found_again_is_refused(adapter, cloud, worker_id, place):
    offer = Offer(**{"provider": "other", "instance_type": "gpu", "region": "oslo", "price_per_hour": 1} | place)

    with pytest.raises(LaunchRejectedError):
        adapter.launch(worker_id, offer, SPEC)

    assert cloud.requests == []


def test_a_launch_whose_answer_is_an_error_may_have_made_a_machine(adapter, cloud):
    cloud.fails["provision"] = TimeoutError("slow")

    with pytest.raises(UnknownLaunchError, match="slow"):
        adapter.launch("w-1", OFFER, SPEC)


def test_a_machine_without_our_labels_is_named_and_not_ended(adapter, cloud):
    cloud.keeps_labels = False

    with pytest.raises(UntaggedLaunchError, match="end it by hand") as caught:
        adapter.launch("w-1", OFFER, SPEC)

    assert str(caught.value.ref) == "other/oslo/n-1"
    assert cloud.terminated == []


@pytest.mark.parametrize("answer", [{"id": ""}, {"region": "turku"}, {"id": "n-1"}], ids=["no id", "away", "not new"])
def test_a_launch_that_comes_back_as_something_else_is_of_unknown_result(adapter, cloud, answer):
    cloud.add(labels={})
    cloud.provision = lambda request: Node(**({"id": "n-9", "region": "oslo", "labels": request.labels} | answer))

    with pytest.raises(UnknownLaunchError):
        adapter.launch("w-1", OFFER, SPEC)

    assert cloud.terminated == []


def test_types_that_can_be_had_are_offered(adapter, cloud):
    gpu = {"vcpus": 8, "memory_gib": Decimal(64), "price_per_hour": Decimal("1.5")}
    cloud.types = (
        InstanceType(name="gpu", regions=(*REGIONS, "mars"), available=True, **gpu),
        InstanceType(name="gone", regions=REGIONS, available=False, **gpu),
        InstanceType(name="nowhere", available=True, **gpu),
        InstanceType(name="unpriced", regions=REGIONS, available=True, **(gpu | {"price_per_hour": None})),
    )

    def offered(**need):
        offers = adapter.quote(Requirement(model="m", **need))
        return [(each.instance_type, each.region, each.price_per_hour) for each in offers]

    assert offered() == [("gpu", "oslo", Decimal("1.5")), ("gpu", "turku", Decimal("1.5"))]
    assert offered(region="turku") == [("gpu", "turku", Decimal("1.5"))]
    assert offered(instance_types=("other",)) == []


def test_without_a_price_list_nothing_is_known_of_prices(cloud):
    cloud.fails["list_instance_types"] = ConnectionError("reset")

    for other in (NodeCloud(), cloud):
        with pytest.raises(QuoteError, match="other: "):
            NodeAdapter(other, regions=REGIONS, owner=OWNER).quote(Requirement(model="m"))


def test_a_launch_time_that_somebody_saw_is_not_that_of_this_machine(adapter, cloud):
    node = cloud.add(labels=labels())
    (seen,) = adapter.list_owned()

    with pytest.raises(InstanceChangedError):
        adapter.terminate(seen.ref, seen=replace(seen, launched_at=datetime(2026, 1, 1, tzinfo=UTC)))

    adapter.terminate(seen.ref, seen=seen)
    assert cloud.terminated == [node.id]


def test_a_node_is_looked_for_by_its_id_whatever_its_labels(adapter, cloud):
    bare, going, gone = cloud.add(), cloud.add(status="terminating", labels=labels()), cloud.add(status="terminated")
    nodes = (bare.id, going.id, gone.id, "n-none")

    found = adapter.locate([InstanceRef("other", "oslo", node) for node in nodes])

    assert list(found.values()) == [
        There(InstanceState.RUNNING),
        There(InstanceState.SHUTTING_DOWN, OWNER),
        Gone(),
        Gone(),
    ]


def test_a_node_that_cannot_be_listed_or_is_elsewhere_is_not_known(adapter, cloud):
    node = cloud.add(region="turku")
    refs = [InstanceRef(*ref) for ref in (("other", "oslo", node.id), ("other", "mars", "n-9"), ("x", "oslo", "n-9"))]
    where = [type(found) for found in adapter.locate(refs).values()]
    cloud.fails["list"] = ConnectionError("reset")

    assert where == [NotKnown] * 3
    assert adapter.locate(refs) == dict.fromkeys(
        refs, NotKnown("incomplete listing: other/oslo (ConnectionError), other/turku (ConnectionError)")
    )
