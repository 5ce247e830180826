"""Worked cases with a process for each pass, on a cloud that writes down what it was asked.

The same cases are played in one process by `tests/scenarios`. Here every pass starts from nothing but what the one
before left on the disk.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.integration.judging import complete, harmless, outcomes, reasons, refused
from tests.support.ec2.protocol import ApiRequest
from tests.support.processes import Result
from tests.support.site import EAST, WEST, Site, tree

pytestmark = pytest.mark.timeout(300)  # on a busy machine; most take a second

LISTING, TERMINATE = "DescribeInstances", "TerminateInstances"
LEAKS, NOT_WHOLE = 3, 4


# ---------------------------------------------------------------- A13: the protect tag


@pytest.mark.parametrize("tag", ["reaperd:protect", "Reaperd:Protect"])
def test_a13_a_machine_that_was_tagged_before_is_never_asked_for(site: Site, tag: str):
    kept, gone = site.orphan(tags={tag: "false"}), site.orphan(worker="w-2")

    documents = two_passes(site)

    assert [outcomes(document) for document in documents] == [{gone: "requested"}, {gone: "confirmed_gone"}]
    assert [reasons(document)[kept] for document in documents] == ["protect_tag"] * 2
    assert [keys(document) for document in documents] == [[f"protected_orphan/aws/{EAST}/{kept}"]] * 2
    assert_asked(site, {gone: 1})


def test_a13_a_machine_that_is_tagged_after_the_listing_is_never_asked_for(site: Site):
    kept, gone = site.orphan(), site.orphan(worker="w-2")
    site.cloud.on(LISTING, Once(lambda request: request.names(kept), lambda: tag(site, kept, "reaperd:protect")))

    first, second = two_passes(site)

    assert outcomes(first) == {kept: "spared", gone: "requested"}
    assert [outcome["reason"] for outcome in first["outcomes"] if outcome["instance_id"] == kept] == ["changed"]
    assert keys(first) == []
    assert reasons(second) == {kept: "protect_tag"}
    assert keys(second) == [f"protected_orphan/aws/{EAST}/{kept}"]
    assert_asked(site, {gone: 1})


# ---------------------------------------------------------------- A16: termination protection


def test_a16_a_protected_machine_stops_only_itself_whatever_its_zone(site: Site):
    beside = site.orphan(az="us-east-1a", age_s=9000)
    guarded = site.orphan(worker="w-2", az="us-east-1a", protected=True, age_s=8000)
    elsewhere = site.orphan(worker="w-3", az="us-east-1b")

    first = complete(site.run("once"), code=1)
    site.later(minutes=5)
    second = complete(site.run("once"))
    site.later(minutes=5)
    third = complete(site.run("once"))

    others = (beside, elsewhere)
    assert outcomes(first) == {guarded: "protected", **dict.fromkeys(others, "requested")}
    assert outcomes(second) == dict.fromkeys(others, "confirmed_gone")
    assert outcomes(third) == {}
    assert [reasons(document)[guarded] for document in (second, third)] == ["protected"] * 2
    assert [keys(document) for document in (first, second, third)] == [
        [f"termination_protected/aws/{EAST}/{guarded}"]
    ] * 3
    assert_asked(site, {guarded: 1, **dict.fromkeys(others, 1)}, accepted=others)


def test_a16_protection_is_asked_about_again_once_stuck_after_is_over_and_never_lifted(site: Site):
    guarded = site.orphan(protected=True)
    complete(site.run("once"), code=1)

    site.later(minutes=29)
    held = complete(site.run("once"))
    site.later(minutes=2)
    asked = complete(site.run("once"), code=1)
    site.cloud.change(guarded, protected=False)
    site.later(minutes=31)
    let_go = complete(site.run("once"))

    assert [outcomes(document) for document in (held, asked, let_go)] == [
        {},
        {guarded: "protected"},
        {guarded: "requested"},
    ]
    assert keys(let_go) == []
    assert_asked(site, {guarded: 3}, accepted=[guarded])


# ---------------------------------------------------------------- A19: accepted is not gone


def test_a19_a_termination_is_confirmed_only_by_a_complete_look_that_does_not_show_the_machine(site: Site):
    orphan = site.orphan()
    stuck = f"termination_stuck/aws/{EAST}/{orphan}"
    site.cloud.fault("ignored", action=TERMINATE)

    first = complete(site.run("once"))
    site.later(minutes=5)
    second = complete(site.run("once"))
    site.later(minutes=5)
    site.cloud.fault(region=EAST, action=LISTING, code="UnauthorizedOperation")
    third = refused(site.run("once"), NOT_WHOLE, "listing_incomplete")
    after_the_third = site.intents()
    site.cloud.clear_faults()
    site.cloud.set_state(orphan, "shutting-down")
    site.later(minutes=25)
    fourth = complete(site.run("once"))
    after_the_fourth = site.intents()
    site.later(minutes=5)
    site.cloud.remove(orphan)
    fifth = complete(site.run("once"))

    documents = (first, second, third, fourth, fifth)
    assert [outcomes(document).get(orphan) for document in documents] == [
        "requested",
        None,
        None,
        None,
        "confirmed_gone",
    ]
    assert reasons(second) == {orphan: "already_requested"}
    assert reasons(fourth) == {orphan: "in_transition"}
    assert [keys(document) for document in documents] == [[], [], ["listing_incomplete"], [stuck], []]
    assert after_the_third == after_the_fourth == [(orphan, "requested", None)]
    assert site.intents() == [(orphan, "requested", "confirmed_gone")]
    assert_asked(site, {orphan: 1})


def test_a19_a_machine_that_an_incomplete_listing_does_not_show_is_not_gone(site: Site):
    orphan, _ = site.orphan(), site.tracked(WEST)
    site.cloud.fault("ignored", action=TERMINATE)
    complete(site.run("once"))
    site.later(minutes=5)
    copy = site.cloud.instance(orphan)
    site.cloud.remove(orphan)
    site.cloud.fault(region=WEST, action=LISTING, code="AuthFailure")

    document = refused(site.run("once"), NOT_WHOLE, "listing_incomplete")

    assert document["outcomes"] == []
    assert site.intents() == [(orphan, "requested", None)]
    site.cloud.clear_faults()
    site.cloud.add_instance(instance_id=orphan, owner="prod", worker="w-orphan", launched_at=copy.launched_at)
    assert reasons(complete(site.run("once")))[orphan] == "already_requested"
    assert_asked(site, {orphan: 1})


def test_a19_a_machine_that_stays_is_sent_again_and_told_once_a_pass(site: Site):
    orphan = site.orphan()
    site.cloud.fault("ignored", action=TERMINATE)

    documents = [complete(site.run("once"))]
    for _ in range(2):
        site.later(minutes=31)
        documents.append(complete(site.run("once")))

    assert [outcomes(document) for document in documents] == [{orphan: "requested"}] * 3
    assert [keys(document) for document in documents] == [[], *[[f"termination_stuck/aws/{EAST}/{orphan}"]] * 2]
    assert_asked(site, {orphan: 3})


# ---------------------------------------------------------------- A20: a rehearsal


def test_a20_a_rehearsal_changes_neither_the_cloud_nor_the_registry(site: Site):
    orphans = [site.orphan(worker=f"w-{number}") for number in (1, 2)]
    tracked = site.tracked(worker="w-3")
    site.configure(mode="dry-run")
    before = tree(site.registry.parent)

    documents = two_passes(site)

    assert [outcomes(document) for document in documents] == [dict.fromkeys(orphans, "would_terminate")] * 2
    assert [reasons(document)[tracked] for document in documents] == ["tracked"] * 2
    assert [keys(document) for document in documents] == [[], []]
    assert tree(site.registry.parent) == before
    assert site.intents() == []
    # Not even one with DryRun.
    assert site.mutations() == []


def test_a20_an_enforcing_pass_finds_nothing_to_carry_out_from_the_rehearsals_before(site: Site):
    spared, gone = site.orphan(worker="w-1"), site.orphan(worker="w-2")
    site.configure(mode="dry-run")
    two_passes(site)
    site.add_row("w-1", spared)
    site.configure(mode="enforce")

    document = complete(site.run("once"))

    assert reasons(document) == {spared: "tracked", gone: "unregistered"}
    assert outcomes(document) == {gone: "requested"}
    assert site.intents() == [(gone, "requested", None)]
    assert_asked(site, {gone: 1})


def test_a20_a_rehearsal_answers_no_request_that_an_enforcing_pass_left_open(site: Site):
    orphan = site.orphan()
    site.cloud.fault("ignored", action=TERMINATE)
    complete(site.run("once"))

    document = complete(site.run("once", "--dry-run"))

    assert (reasons(document), outcomes(document)) == ({orphan: "already_requested"}, {})
    site.later(minutes=31)
    assert outcomes(complete(site.run("once", "--dry-run"))) == {orphan: "would_terminate"}
    assert site.intents() == [(orphan, "requested", None)]
    assert_asked(site, {orphan: 1})


# ---------------------------------------------------------------- A21: a parent that launches again


def _group(_: Site) -> dict[str, Any]:
    return {"tags": {"aws:autoscaling:groupName": "workers-asg"}}


def _fleet(site: Site) -> dict[str, Any]:
    return {"tags": {"aws:ec2:fleet-id": site.cloud.add_fleet(kind="maintain")}}


def _fleet_that_nobody_may_read(site: Site) -> dict[str, Any]:
    site.cloud.fault(action="DescribeFleets", code="UnauthorizedOperation")
    return {"tags": {"aws:ec2:fleet-id": site.cloud.add_fleet(kind="request")}}


def _operator(_: Site) -> dict[str, Any]:
    return {"operator": "eks.amazonaws.com"}


@pytest.mark.parametrize("parent_of", [_group, _fleet, _fleet_that_nobody_may_read, _operator])
def test_a21_what_would_be_launched_again_is_left_to_its_parent(site: Site, parent_of: Any):
    child, gone = site.orphan(**parent_of(site)), site.orphan(worker="w-2")

    documents = two_passes(site)
    site.later(minutes=5)
    documents.append(complete(site.run("once")))

    assert [reasons(document)[child] for document in documents] == ["managed"] * 3
    assert [outcomes(document) for document in documents] == [{gone: "requested"}, {gone: "confirmed_gone"}, {}]
    assert [keys(document) for document in documents] == [[f"managed_orphan/aws/{EAST}/{child}"]] * 3
    assert_asked(site, {gone: 1})
    # Nothing was replaced, so nothing was launched.
    assert {machine.instance_id for machine in site.cloud.instances()} == {child, gone}


def test_a21_the_group_is_named_so_that_somebody_can_scale_it_down(site: Site):
    site.orphan(**_group(site))

    (condition,) = complete(site.run("once"))["conditions"]

    assert (condition["data"]["manager"], condition["data"]["group"]) == ("autoscaling", "workers-asg")


# ---------------------------------------------------------------- A24: the audit


def test_a24_the_audit_tells_of_leaks_in_every_pass_and_changes_nothing(site: Site):
    ours = site.tracked(age_s=30 * 3600)
    site.cloud.add_instance(age_s=2 * 3600)
    nameless = site.cloud.add_instance(age_s=7 * 3600)
    named = site.cloud.add_instance(age_s=7 * 3600, name="Packer Builder")
    leaks = sorted([nameless, named])
    before = tree(site.registry.parent)

    documents = [swept(audit(site), LEAKS)]
    for _ in range(2):
        site.cloud.advance(300)
        documents.append(swept(audit(site), LEAKS))

    assert [[leak["instance_id"] for leak in document["leaks"]] for document in documents] == [leaks] * 3
    assert [keys(document) for document in documents] == [[f"leak/aws/{EAST}/{leak}" for leak in leaks]] * 3
    assert [document["owned"] for document in documents] == [1] * 3
    assert ours not in str([document["leaks"] for document in documents])
    assert [exchange for exchange in site.cloud.requests() if exchange.request.mutating] == []
    assert {machine.state for machine in site.cloud.instances()} == {"running"}
    assert tree(site.registry.parent) == before
    assert not site.state.exists()


def test_a24_an_orphan_is_no_leak_and_a_near_miss_is_never_terminated(site: Site):
    orphan = site.orphan(age_s=7 * 3600)
    near = site.cloud.add_instance(owner="Prod", age_s=7 * 3600)

    document = swept(audit(site), LEAKS)
    once = complete(site.run("once"))

    assert [(leak["instance_id"], leak["near_miss_tag"]) for leak in document["leaks"]] == [
        (near, "reaperd:owner=Prod")
    ]
    assert [miss["instance_id"] for miss in document["near_misses"]] == [near]
    assert outcomes(once) == {orphan: "requested"}
    assert_asked(site, {orphan: 1})


def test_a24_a_region_that_fails_is_named_and_the_leaks_of_the_others_are_told(site: Site):
    leak = site.cloud.add_instance(age_s=7 * 3600)
    site.cloud.add_instance(region=WEST, age_s=7 * 3600)
    site.cloud.fault(region=WEST, action=LISTING, code="UnauthorizedOperation")

    document = swept(audit(site), NOT_WHOLE)

    assert [entry["instance_id"] for entry in document["leaks"]] == [leak]
    assert [entry["error_code"] for entry in document["coverage"] if not entry["ok"]] == ["UnauthorizedOperation"]
    assert site.mutations() == []


# ---------------------------------------------------------------- helpers


class Once:
    """Does something at the first request of a kind, before it is answered."""

    def __init__(self, fires: Any, deed: Any) -> None:
        self._fires, self._deed = fires, deed

    def __call__(self, request: ApiRequest) -> None:
        if self._deed is not None and self._fires(request):
            deed, self._deed = self._deed, None
            deed()


def tag(site: Site, instance_id: str, key: str) -> None:
    site.cloud.change(instance_id, tags=site.cloud.instance(instance_id).tags | {key: "true"})


def two_passes(site: Site) -> list[dict[str, Any]]:
    """Return the documents of two passes that are five minutes apart."""
    first = complete(site.run("once"))
    site.later(minutes=5)
    return [first, complete(site.run("once"))]


def audit(site: Site) -> Result:
    return site.run("audit", "--format", "json", settings={"audit.max_age": "6h"})


def swept(result: Result, code: int) -> dict[str, Any]:
    """Return the JSON of a sweep that ended so."""
    assert result.code == code, f"exit {result.code}\n{result.out}\n{result.err}"
    harmless(result)
    assert result.json["kind"] == "audit"
    return result.json


def keys(document: Mapping[str, Any]) -> list[str]:
    """Return the keys of the conditions; each has to be there once."""
    found = [condition["key"] for condition in document["conditions"]]
    assert len(found) == len(set(found)), found
    return found


def assert_asked(site: Site, expected: Mapping[str, int], *, accepted: Any = None) -> None:
    """Hold the cloud's own journal to how often each machine was asked for, and to which of them it took.

    A request names one machine, and no other kind of request that changes anything was sent.
    """
    asked = [(exchange.action, *exchange.request.listed("InstanceId")) for exchange in site.cloud.mutating_requests()]
    assert sorted(asked) == sorted((TERMINATE, name) for name, times in expected.items() for _ in range(times))
    assert set(site.accepted()) == set(expected if accepted is None else accepted)
    assert site.cloud.requests("ModifyInstanceAttribute") == []
