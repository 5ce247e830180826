"""The decision depends on what was seen, and on nothing else."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from reaperd.core.conditions import conditions
from reaperd.core.memory import learn
from reaperd.core.model import Plan, Refusal
from reaperd.core.reap import decide
from registry.model import RegistrySnapshot
from tests.property.strategies import worlds
from tests.support.worlds import World


def without_words(decision: Plan | Refusal) -> Plan | Refusal:
    """Drop the texts: they tell what was met first."""
    verdicts = tuple(replace(verdict, detail="") for verdict in decision.verdicts)
    if isinstance(decision, Refusal):
        return replace(decision, verdicts=verdicts, detail="")
    return replace(decision, verdicts=verdicts)


@st.composite
def shuffled(draw: st.DrawFn) -> tuple[World, World]:
    """Draw a world, and the same one told in another order."""
    world = draw(worlds())
    seen, memory = world.seen, world.seen.memory
    other = world.but(
        instances=tuple(draw(st.permutations(seen.instances))),
        coverage=tuple(draw(st.permutations(seen.coverage))),
        memory=replace(
            memory,
            sightings=dict(draw(st.permutations(list(memory.sightings.items())))),
            intents=dict(draw(st.permutations(list(memory.intents.items())))),
            requests=tuple(draw(st.permutations(memory.requests))),
        ),
    )
    if isinstance(seen.registry, RegistrySnapshot):
        other = other.with_rows(draw(st.permutations(seen.registry.workers)))
    return world, other


@given(shuffled())
def test_the_order_in_which_things_are_told_does_not_matter(pair):
    one, other = pair

    assert without_words(decide(one.seen, one.policy)) == without_words(decide(other.seen, other.policy))


@given(shuffled())
def test_the_order_in_which_things_are_told_teaches_nothing(pair):
    one, other = pair

    assert learn(one.seen, one.policy) == learn(other.seen, other.policy)


@given(worlds())
def test_the_same_world_twice_gives_the_same_plan(world: World):
    again = World(replace(world.seen), replace(world.policy))

    first, second = decide(world.seen, world.policy), decide(again.seen, again.policy)

    assert first == second
    assert first.digest == second.digest


@given(worlds())
def test_conditions_are_one_a_key_and_in_order(world: World):
    found = conditions(world.seen, world.policy, decide(world.seen, world.policy), ())

    keys = [condition.key for condition in found]
    assert keys == sorted(set(keys))
