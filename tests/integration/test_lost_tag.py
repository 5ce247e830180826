"""A machine that was asked to end, stays, and loses our tag: no listing by the tag shows it, and it runs and bills."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.integration.judging import complete, outcomes
from tests.support.site import EAST, WEST, Site

pytestmark = pytest.mark.timeout(300)  # on a busy machine; most take a second

LISTING, TERMINATE = "DescribeInstances", "TerminateInstances"


def lost(site: Site) -> str:
    """Return a machine whose end was accepted and ignored, and that carries no tag any more."""
    orphan = site.orphan()
    site.cloud.fault("ignored", action=TERMINATE)
    assert outcomes(complete(site.run("once"))) == {orphan: "requested"}
    site.cloud.change(orphan, tags={})
    return orphan


def test_a_machine_that_lost_our_tag_and_runs_on_is_not_told_to_be_gone(site: Site):
    orphan = lost(site)

    documents = []
    for _ in range(2):
        site.later(minutes=16)
        documents.append(complete(site.run("once")))

    assert [outcomes(document) for document in documents] == [{}, {}]
    assert site.intents() == [(orphan, "requested", None)]
    keys = [[condition["key"] for condition in document["conditions"]] for document in documents]
    assert keys == [[f"termination_stuck/aws/{EAST}/{orphan}"]] * 2


def test_what_is_said_of_it_afterwards_is_that_it_runs(site: Site):
    orphan = lost(site)
    site.later(minutes=5)
    passed = complete(site.run("once"))

    recorded, live = explained(site, orphan), explained(site, orphan, "--look")
    history = [json.loads(line) for line in site.run("history", "--format", "json").out.splitlines()]

    assert (recorded["presence"], live["presence"]) == ("unproved", "unlisted")
    assert live["located"] == {"answer": "there", "state": "running", "owner": None, "detail": ""}
    assert [event["name"] for event in recorded["events"]] == ["terminate/unregistered", "requested"]
    assert [outcomes(document) for document in history] == [{orphan: "requested"}, outcomes(passed)]
    assert history[1]["conditions"] == passed["conditions"]


def test_once_it_is_ended_by_hand_it_is_confirmed_gone(site: Site):
    orphan = lost(site)
    site.later(minutes=5)
    complete(site.run("once"))

    site.cloud.set_state(orphan, "terminated")
    site.later(minutes=5)
    document = complete(site.run("once"))

    assert (outcomes(document), document["conditions"]) == ({orphan: "confirmed_gone"}, [])
    assert site.intents() == [(orphan, "requested", "confirmed_gone")]


def test_while_nobody_can_say_where_it_is_the_others_are_confirmed_and_it_is_not(site: Site):
    gone, unknown = site.orphan(EAST, worker="w-1"), site.orphan(WEST, worker="w-2")
    assert set(outcomes(complete(site.run("once"))).values()) == {"requested"}
    # A listing names no machine: only the looks for this one fail.
    site.cloud.fault(action=LISTING, instance_id=unknown, code="UnauthorizedOperation")
    site.later(minutes=5)

    document = complete(site.run("once"))

    assert outcomes(document) == {gone: "confirmed_gone"}
    assert set(site.intents()) == {(gone, "requested", "confirmed_gone"), (unknown, "requested", None)}


def explained(site: Site, name: str, *words: str) -> dict[str, Any]:
    result = site.run("explain", name, *words, "--format", "json")
    assert result.code == 0, result.err
    (machine,) = json.loads(result.out)["machines"]
    return machine
