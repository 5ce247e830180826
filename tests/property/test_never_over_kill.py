"""The laws that keep needed machines alive."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from providers.model import InstanceRef
from reaperd.core.model import KeepReason, Memory, Plan, ReapPolicy, Refusal, TerminateReason
from reaperd.core.reap import decide, judge
from registry.model import Worker, WorkerState
from tests.property import oracle
from tests.property.strategies import (
    HARMLESS,
    IDS,
    LISTING_TROUBLES,
    OTHER_TROUBLES,
    REGISTRY_TROUBLES,
    good_worlds,
    machines,
    worlds,
)
from tests.support.worlds import (
    DEPLOYMENT,
    HOUR,
    MINUTE,
    NOW,
    SCOPES,
    SECOND,
    World,
    look,
    machine,
    pin,
    policy,
    ref,
    row,
)


def ended(world: World) -> dict[InstanceRef, TerminateReason]:
    """Return what would be terminated, if the pass may act, and why."""
    return {v.ref: v.orphan for v, _ in judge(world.seen, world.policy) if v.terminates and v.orphan is not None}


def acted_on(world: World) -> set[InstanceRef]:
    """Return what is terminated in the end."""
    decision = decide(world.seen, world.policy)
    return {v.ref for v in decision.terminations} if isinstance(decision, Plan) else set()


# ---------------------------------------------------------------- tracking


@given(worlds())
def test_a_tracked_machine_is_never_terminated(world: World):
    for verdict in decide(world.seen, world.policy).verdicts:
        if oracle.is_tracked(verdict.instance, world):
            event("tracked")
            assert not verdict.terminates


@st.composite
def protections(draw: st.DrawFn) -> tuple[World, Worker, InstanceRef]:
    """Draw a world, and one more live row that accounts for one of its machines."""
    world = draw(good_worlds())
    mine = [each for each in world.seen.instances if each.owner == DEPLOYMENT and not each.state.is_gone]
    assume(mine)
    chosen = draw(st.sampled_from(mine))
    taken = {row.worker_id for row in world.rows}
    by_tag = chosen.worker_id is not None and chosen.worker_id not in taken
    row = Worker(
        worker_id=chosen.worker_id if by_tag and chosen.worker_id else "w-new",
        provider=chosen.ref.provider,
        region=chosen.ref.region,
        instance_id=None if by_tag and draw(st.booleans()) else chosen.ref.instance_id,
        state=draw(st.sampled_from((WorkerState.LAUNCHING, WorkerState.RUNNING, WorkerState.DRAINING))),
        created_at=NOW - draw(st.sampled_from((timedelta(0), MINUTE))),
        heartbeat_at=draw(st.sampled_from((None, NOW - MINUTE))),
    )
    return world, row, chosen.ref


@given(protections())
def test_one_more_live_row_about_a_machine_saves_it_and_condemns_no_other(drawn):
    world, row, protected = drawn

    before, after = ended(world), ended(world.with_rows((*world.rows, row)))

    event(f"saved: {protected in before}")
    assert protected not in after
    by_the_row = {TerminateReason.SUPERSEDED}
    if row.heartbeat_at is not None:
        by_the_row.add(TerminateReason.HEARTBEAT_EXPIRED)
    assert {reason for ref, reason in after.items() if ref not in before} <= by_the_row


@given(protections())
def test_a_row_that_never_beat_and_names_only_its_machine_condemns_nobody(drawn):
    world, row, _ = drawn
    silent = replace(row, worker_id="w-new", heartbeat_at=None)
    assume(silent.instance_id is not None)

    assert ended(world.with_rows((*world.rows, silent))).keys() <= ended(world).keys()


@given(good_worlds(), st.data())
def test_a_row_that_comes_back_to_life_saves_its_machine(world: World, data: st.DataObject):
    dead = [row for row in world.rows if not row.state.is_live]
    assume(dead)
    chosen = data.draw(st.sampled_from(dead))
    risen = replace(chosen, state=WorkerState.RUNNING, created_at=NOW, heartbeat_at=None)

    after = world.with_rows(risen if row is chosen else row for row in world.rows)

    named = {each.ref for each in world.seen.instances if oracle.names(risen, each) or oracle.means_by_tag(risen, each)}
    event(f"machines of the row: {len(named)}")
    assert not named & ended(after).keys()


# ---------------------------------------------------------------- patience


MORE_PATIENCE: dict[str, Callable[[ReapPolicy], dict[str, Any]]] = {
    "launch_grace": lambda wishes: {"launch_grace": wishes.launch_grace + 3 * HOUR},
    "launch_grace by a second": lambda wishes: {"launch_grace": wishes.launch_grace + SECOND},
    "confirm_passes": lambda wishes: {"confirm_passes": wishes.confirm_passes + 1},
    "look_spacing": lambda wishes: {"look_spacing": wishes.look_spacing + 5 * MINUTE},
    "launching_ttl": lambda wishes: {"launching_ttl": wishes.launching_ttl + 3 * HOUR},
    "vanish_grace": lambda wishes: {"vanish_grace": wishes.vanish_grace + 3 * HOUR},
    "stuck_after": lambda wishes: {"stuck_after": wishes.stuck_after + 3 * HOUR},
    "never": lambda wishes: {"never": wishes.never | {"i-1", "i-2"}},
    "heartbeat_ttl": lambda _: {"heartbeat_ttl": None},
}


@pytest.mark.parametrize("patience", MORE_PATIENCE)
@given(world=good_worlds())
def test_more_patience_never_adds_a_termination(patience: str, world: World):
    patient = world.wishing(**MORE_PATIENCE[patience](world.policy))

    assert ended(patient).keys() <= ended(world).keys()


@given(good_worlds(), st.sampled_from((SECOND, HOUR)))
def test_a_longer_heartbeat_ttl_adds_none_once_heartbeats_work(world: World, longer: timedelta):
    short = world.wishing(heartbeat_ttl=10 * MINUTE)
    assume(any(oracle.has_recent_heartbeat(row, short) for row in short.rows))

    assert ended(world.wishing(heartbeat_ttl=10 * MINUTE + longer)).keys() <= ended(short).keys()


@given(good_worlds())
def test_a_wider_breaker_condemns_nobody(world: World):
    assert acted_on(world) <= ended(world).keys()


# ---------------------------------------------------------------- refusals


def assert_refused(world: World) -> Refusal:
    decision = decide(world.seen, world.policy)

    assert isinstance(decision, Refusal)
    assert not hasattr(decision, "terminations")
    return decision


A_FEW = settings(max_examples=max(10, settings.default.max_examples // 10))
"""Each of the many troubles is tried, so that none is left to chance."""


@pytest.mark.parametrize("name", sorted(LISTING_TROUBLES))
@A_FEW
@given(world=good_worlds())
def test_one_scope_that_is_not_whole_refuses_them_all(name: str, world: World):
    refusal = assert_refused(LISTING_TROUBLES[name](world))

    assert refusal.reason in {"listing_incomplete", "wrong_account", "deadline"}
    assert refusal.verdicts == ()


@pytest.mark.parametrize("name", sorted(REGISTRY_TROUBLES))
@A_FEW
@given(world=good_worlds())
def test_any_trouble_with_the_registry_refuses_the_whole_pass(name: str, world: World):
    refusal = assert_refused(REGISTRY_TROUBLES[name](world))

    assert refusal.reason in {"registry_unusable", "registry_identity", "registry_mismatch"}
    assert refusal.verdicts == ()


@pytest.mark.parametrize("name", sorted(OTHER_TROUBLES))
@A_FEW
@given(world=good_worlds())
def test_any_other_trouble_refuses_the_whole_pass(name: str, world: World):
    assert_refused(OTHER_TROUBLES[name](world))


@pytest.mark.parametrize("name", sorted(HARMLESS))
@A_FEW
@given(world=good_worlds())
def test_what_stands_exactly_on_its_limit_changes_nothing(name: str, world: World):
    there = HARMLESS[name](world)

    assert decide(there.seen, there.policy) == decide(world.seen, world.policy)


@st.composite
def strangers(draw: st.DrawFn) -> World:
    """Draw a registry and a listing that have little or nothing to do with each other."""
    machines_ = draw(st.lists(st.sampled_from([machine(i, at=at) for i in IDS[:2] for at in SCOPES]), unique=True))
    places = st.sampled_from([(i, at) for i in (*IDS[:2], "i-8", "i-9") for at in SCOPES])
    rows = [row(f"w-{n}", i, at=at) for n, (i, at) in enumerate(draw(st.lists(places, max_size=6)))]
    ever = frozenset(ref(i, at) for i, at in draw(st.lists(places, max_size=1)))
    known = draw(st.sampled_from((None, pin(), pin(mismatch_accepted=True))))
    return World(look(machines_, rows, memory=Memory(listed=ever, pin=known)), policy())


@given(strangers())
def test_a_registry_and_a_listing_that_do_not_belong_together_are_refused(world: World):
    decision = decide(world.seen, world.policy)

    event(type(decision).__name__)
    assert ([str(decision.reason)] if isinstance(decision, Refusal) else []) == oracle.refused_for(world)


# ---------------------------------------------------------------- whose it is


@given(worlds())
def test_a_machine_of_another_owner_never_gets_a_verdict(world: World):
    verdicts = decide(world.seen, world.policy).verdicts

    assert all(verdict.instance.owner == DEPLOYMENT for verdict in verdicts)


@given(good_worlds(), machines())
def test_a_machine_of_another_owner_changes_nothing(world: World, stranger):
    ghost = replace(stranger, owner="prod-b", ref=replace(stranger.ref, instance_id="i-77"))

    assert decide(world.but(instances=(*world.seen.instances, ghost)).seen, world.policy) == decide(
        world.seen, world.policy
    )


# ---------------------------------------------------------------- holds hold


HOLDS: dict[str, tuple[dict[str, Any], KeepReason]] = {
    "foreign account": ({"foreign_account": True}, KeepReason.FOREIGN_ACCOUNT),
    "protect tag": ({"protect": True}, KeepReason.PROTECT_TAG),
    "manager": ({"managed_by": "operator:eks"}, KeepReason.MANAGED),
    "another registry": ({"registry_id": "r-9"}, KeepReason.FOREIGN_REGISTRY),
}


@pytest.mark.parametrize("hold", HOLDS)
@given(world=good_worlds())
def test_what_stands_on_a_machine_holds_it(hold: str, world: World):
    facts, reason = HOLDS[hold]

    held = world.but(instances=tuple(replace(each, **facts) for each in world.seen.instances))

    assert ended(held) == {}
    assert all(v.call.reason is reason for v, _ in judge(held.seen, held.policy) if v.ref in ended(world))


@given(good_worlds())
def test_the_never_list_holds_whatever_stands_on_it(world: World):
    listed = world.wishing(never=frozenset(each.ref.instance_id for each in world.seen.instances))

    assert ended(listed) == {}


@given(good_worlds())
def test_a_machine_without_a_believable_age_is_held_at_first_sight(world: World):
    unknown = world.but(instances=tuple(replace(each, launched_at=None) for each in world.seen.instances))

    assert ended(unknown.remembering(sightings={})) == {}
