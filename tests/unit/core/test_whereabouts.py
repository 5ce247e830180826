"""Which machines are asked for by their ids, and what is believed of them (rule 22)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from providers.locations import Gone, NotKnown, OnlyListed, There
from providers.model import InstanceState, Scope
from reaperd.core.model import OutcomeKind
from reaperd.core.whereabouts import is_proved_gone, locations, unlisted
from tests.support.worlds import DEPLOYMENT, EAST, WEST, broken, intent, look, machine, memory, ref, whole

ASKED = intent(OutcomeKind.REQUESTED)


@pytest.mark.parametrize("outcome", [None, *OutcomeKind], ids=str)
def test_a_machine_with_an_open_intent_that_is_not_listed_is_asked_for(outcome):
    assert unlisted(look([machine("i-2")], memory=memory(intent(outcome)))) == (ref(),)


@pytest.mark.parametrize("state", InstanceState, ids=str)
@pytest.mark.parametrize("owner", [DEPLOYMENT, "prod-b"])
def test_a_listed_machine_is_not_asked_for(state, owner):
    assert unlisted(look([machine(state=state, owner=owner)], memory=memory(ASKED))) == ()


def test_nobody_is_asked_for_without_an_intent():
    assert unlisted(look([])) == ()


def test_they_are_asked_for_in_order():
    asked = [intent(OutcomeKind.REQUESTED, of=ref(name, at)) for name in ("i-2", "i-1") for at in (EAST, WEST)]

    found = unlisted(look([], memory=memory(*asked)))

    assert found == (ref("i-1", WEST), ref("i-2", WEST), ref("i-1", EAST), ref("i-2", EAST))


def test_a_request_that_is_no_older_than_the_look_is_not_asked_about():
    assert unlisted(look([], memory=memory(intent(OutcomeKind.REQUESTED, timedelta(0))))) == ()


def test_a_place_that_was_not_looked_at_is_not_asked_about():
    elsewhere = intent(OutcomeKind.REQUESTED, of=ref(at=Scope("aws", "sa-east-1")))

    assert unlisted(look([], memory=memory(elsewhere))) == ()


@pytest.mark.parametrize(
    "listing", [{"late": True}, {"coverage": (whole(EAST), broken(WEST))}], ids=["late", "incomplete"]
)
def test_after_a_listing_that_is_not_whole_nobody_is_asked_for(listing):
    assert unlisted(look([], memory=memory(ASKED), **listing)) == ()


@pytest.mark.parametrize("found", [Gone(), OnlyListed(), NotKnown("late"), There(InstanceState.STOPPED)], ids=repr)
def test_a_machine_that_is_not_listed_is_where_its_cloud_says(found):
    assert locations(look([], memory=memory(ASKED), located={ref(): found})) == {ref(): found}


def test_the_listing_is_believed_where_it_has_the_machine():
    asked = [intent(OutcomeKind.REQUESTED, of=ref(name)) for name in ("i-1", "i-2", "i-3")]
    listed = [
        machine("i-1", state=InstanceState.STOPPED),
        machine("i-2", owner=""),
        machine("i-3", state=InstanceState.TERMINATED),
    ]

    found = locations(look(listed, memory=memory(*asked), located={each.ref: NotKnown("late") for each in asked}))

    assert found == {
        ref("i-1"): There(InstanceState.STOPPED, DEPLOYMENT),
        ref("i-2"): There(InstanceState.RUNNING),
        ref("i-3"): Gone(),
    }


def test_of_a_machine_that_nobody_asked_for_nothing_is_known():
    assert isinstance(locations(look([], memory=memory(ASKED)))[ref()], NotKnown)


def test_only_gone_is_gone_and_a_listing_where_nobody_can_be_asked():
    proofs = [Gone(), OnlyListed(), There(InstanceState.SHUTTING_DOWN), NotKnown("late")]

    assert list(map(is_proved_gone, proofs)) == [True, True, False, False]
