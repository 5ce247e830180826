"""An explanation is never of another opinion than the decision."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import assume, event, given

from providers.model import InstanceRef
from reaperd.core.explain import LISTED, RESOLUTION, Explanation, Presence, Requirement, explain
from reaperd.core.model import KeepReason, Observation, Plan, ReapPolicy, RefusalReason
from reaperd.core.reap import decide, judge
from tests.property import oracle
from tests.property.strategies import good_worlds, worlds
from tests.support.worlds import World, ref

ELSEWHERE = ref("i-nowhere")


def refs(world: World) -> set[InstanceRef]:
    return {each.ref for each in world.seen.instances} | set(world.seen.memory.sightings) | {ELSEWHERE}


def terminated(seen: Observation, policy: ReapPolicy) -> set[InstanceRef]:
    decision = decide(seen, policy)
    return {verdict.ref for verdict in decision.terminations} if isinstance(decision, Plan) else set()


def unmet(told: Explanation) -> set[str]:
    return {requirement.about for requirement in told.in_the_way if requirement.met is False}


def about(told: Explanation, name: str) -> Requirement:
    return next(requirement for requirement in told.requirements if requirement.about == name)


@given(worlds())
def test_every_condition_is_met_if_and_only_if_the_machine_is_terminated(world: World):
    goes = terminated(world.seen, world.policy)

    told = {each: explain(world.seen, world.policy, each).terminates for each in refs(world)}
    event(f"{sum(told.values())} terminated")
    assert {each for each, so in told.items() if so} == goes


@given(worlds())
def test_every_condition_is_told_once_whatever_the_world(world: World):
    names = [LISTED, *map(str, KeepReason), *map(str, RefusalReason)]

    for each in refs(world):
        assert [requirement.about for requirement in explain(world.seen, world.policy, each).requirements] == names


@given(good_worlds())
def test_what_holds_a_machine_is_exactly_what_the_rules_say(world: World):
    for machine in world.seen.instances:
        if oracle.fate_of(machine, world) is None:
            continue
        holds = unmet(explain(world.seen, world.policy, machine.ref)) & set(map(str, KeepReason))
        assert holds == oracle.holds_of(machine, world)


@given(worlds())
def test_what_stands_down_the_pass_is_in_the_way_of_every_machine(world: World):
    standing = set(oracle.standing(world))

    for each in refs(world):
        told = unmet(explain(world.seen, world.policy, each))
        assert told & set(oracle.REFUSE_ORDER) - {"breaker_open"} == standing


@given(good_worlds())
def test_a_time_that_is_told_is_the_first_at_which_the_condition_is_met(world: World):
    lesson = {verdict.ref: sighting for verdict, sighting in judge(world.seen, world.policy)}
    sightings = {**world.seen.memory.sightings, **lesson}

    for machine in world.seen.instances:
        for requirement in explain(world.seen, world.policy, machine.ref).requirements:
            if requirement.settles_at is None:
                continue
            event(requirement.about)
            assert not requirement.met
            for moment, met in ((requirement.settles_at - RESOLUTION, False), (requirement.settles_at, True)):
                later = world.remembering(sightings=sightings).but(now=moment)
                assume(oracle.orphaned_by(machine, later) == oracle.orphaned_by(machine, world))
                again = explain(later.seen, later.policy, machine.ref)
                assert about(again, requirement.about).met is met


@given(good_worlds())
def test_what_time_alone_settles_leaves_nothing_of_the_machine_itself_in_the_way(world: World):
    lesson = {verdict.ref: sighting for verdict, sighting in judge(world.seen, world.policy)}

    for machine in world.seen.instances:
        at = explain(world.seen, world.policy, machine.ref).settles_at
        if at is None:
            continue
        later = world.remembering(sightings={**world.seen.memory.sightings, **lesson}).but(now=at)
        assume(oracle.orphaned_by(machine, later) == oracle.orphaned_by(machine, world))
        told = explain(later.seen, later.policy, machine.ref)
        # By then the registry may have been silent for too long, and others may be due that open the breaker.
        assert unmet(told) <= {"registry_unusable", "breaker_open"}


@given(worlds())
def test_a_machine_is_called_absent_only_by_a_whole_listing(world: World):
    whole = not {"listing_incomplete", "deadline", "wrong_account"} & set(oracle.standing(world))

    assert explain(world.seen, world.policy, ELSEWHERE).presence is (Presence.ABSENT if whole else Presence.UNKNOWN)


@given(good_worlds())
def test_a_machine_that_was_asked_to_end_is_called_absent_only_if_it_is_proved_gone(world: World):
    listed = {each.ref for each in world.seen.instances}

    for each, asked in world.seen.memory.intents.items():
        if each not in listed and asked.requested_at < world.seen.now:
            presence = explain(world.seen, world.policy, each).presence
            event(presence)
            assert (presence is Presence.ABSENT) == oracle.is_proved_gone(each, world)


@given(good_worlds())
def test_an_objection_of_a_later_look_stands_in_the_way_and_changes_nothing_else(world: World):
    late = ((RefusalReason.LISTING_INCOMPLETE, "aws/us-east-1 (AuthFailure)"),)

    for machine in world.seen.instances:
        before = explain(world.seen, world.policy, machine.ref)
        after = explain(world.seen, world.policy, machine.ref, late)
        assert not after.terminates
        assert unmet(after) == unmet(before) | {"listing_incomplete"}
        assert about(after, "listing_incomplete").detail == late[0][1]
        assert replace(after, requirements=()) == replace(before, requirements=())


def test_the_resolution_is_the_smallest_step_of_time():
    assert timedelta.resolution == RESOLUTION
