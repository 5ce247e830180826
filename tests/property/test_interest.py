"""A pass that keeps the rows that are asked for comes to what it would come to with every row."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import assume, event, given

from reaperd.core.census import census
from reaperd.core.conditions import conditions, missing
from reaperd.core.memory import learn
from reaperd.core.reap import decide, judgements
from reaperd.core.tracking import bad_times, interest_in
from registry.model import RegistrySnapshot
from registry.rows import is_wanted
from tests.property.strategies import worlds
from tests.support.worlds import World


def reading(world: World) -> World:
    """Return the world with the rows that its pass would ask its registry for."""
    registry = world.seen.registry
    assert isinstance(registry, RegistrySnapshot)
    interest = interest_in(world.seen.instances, world.seen.now)
    wanted = tuple(row for row in registry.workers if is_wanted(row, interest))
    others = Counter(row.state for row in registry.workers) - Counter(row.state for row in wanted)
    return world.but(registry=replace(registry, workers=wanted, passed_over=others))


@given(worlds())
def test_rows_that_nobody_asks_for_make_no_difference(world: World):
    assume(isinstance(world.seen.registry, RegistrySnapshot))
    lean = reading(world)
    seen, policy = lean.seen, lean.policy
    assert isinstance(seen.registry, RegistrySnapshot)

    event(f"passed over: {bool(seen.registry.passed_over)}")
    decision = decide(world.seen, policy)
    assert decide(seen, policy) == decision
    assert judgements(seen, policy) == judgements(world.seen, policy)
    assert learn(seen, policy) == learn(world.seen, policy)
    assert census(seen, policy) == census(world.seen, policy)
    assert missing(seen, policy) == missing(world.seen, policy)
    assert bad_times(seen.registry.workers, seen.now) == bad_times(world.rows, seen.now)
    assert conditions(seen, policy, decision, ()) == conditions(world.seen, policy, decision, ())


@given(worlds())
def test_a_row_that_is_not_asked_for_is_about_no_machine_of_the_listing(world: World):
    assume(isinstance(world.seen.registry, RegistrySnapshot))
    left = set(world.rows) - set(reading(world).rows)

    for row in left:
        assert not row.state.is_live
        for machine in world.seen.instances:
            assert row.instance_id != machine.ref.instance_id
            assert row.worker_id != machine.worker_id
