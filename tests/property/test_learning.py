"""What a look teaches, and what it must not."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import assume, event, given
from hypothesis import strategies as st

from alerts.model import Cause
from providers.locations import Gone, Location, NotKnown, There
from providers.model import OwnedInstance, Scope
from reaperd.core.conditions import conditions
from reaperd.core.memory import Learned, learn
from reaperd.core.model import OutcomeKind, Refusal, RefusalReason, SparedReason
from reaperd.core.reap import decide, judge, recheck
from registry.model import RegistryRows, Worker
from tests.property import oracle
from tests.property.strategies import BEATING, LOCATED, TROUBLES, good_worlds, troubles, workers, worlds
from tests.support.worlds import DEPLOYMENT, EPOCH, MINUTE, NOW, REGISTRY, SCOPES, World, identity, intent, ref

NO_LOOK = sorted(set(TROUBLES) - {"no lease", "the brake"})


def learned_from(world: World) -> Learned:
    """Return what a look teaches; a world that is no look is no example."""
    learned = learn(world.seen, world.policy)
    assume(learned is not None)
    assert learned is not None
    return learned


@given(worlds())
def test_a_pass_teaches_exactly_when_its_picture_is_good(world: World):
    learned = learn(world.seen, world.policy)

    event(f"a look: {learned is not None}")
    assert (learned is not None) == oracle.may_be_judged(world)


@given(good_worlds(), st.sampled_from(NO_LOOK))
def test_a_refused_picture_teaches_nothing(world: World, name: str):
    assert learn(TROUBLES[name](world).seen, TROUBLES[name](world).policy) is None


@given(good_worlds(), troubles({name: TROUBLES[name] for name in ("no lease", "the brake")}))
def test_a_pass_without_lease_or_under_the_brake_teaches_the_same_as_one_that_acts(world: World, name: str):
    stopped = TROUBLES[name](world)

    assert learn(stopped.seen, stopped.policy) == learn(world.seen, world.policy)


@given(good_worlds())
def test_a_count_grows_by_one_at_most_and_is_otherwise_kept_or_lost(world: World):
    learned = learned_from(world)

    for each, after in learned.sightings.items():
        before = world.seen.memory.sightings.get(each)
        had = before.confirmations if before else 0
        assert after.confirmations in (0, had, had + 1)
        assert (after.confirmations == 0) == (after.counted_at is None)
        if after.confirmations == had + 1:
            assert after.counted_at == NOW


@given(good_worlds())
def test_the_first_sight_of_a_machine_never_moves(world: World):
    learned = learned_from(world)
    present = {each.ref for each in world.seen.instances if oracle.fate_of(each, world) is not None}

    for each, after in learned.sightings.items():
        before = world.seen.memory.sightings.get(each)
        assert after.first_seen_at == (before.first_seen_at if before else NOW)
        assert after.last_seen_at == (NOW if before is None or each in present else before.last_seen_at)


@given(good_worlds())
def test_a_tracked_or_absent_machine_has_no_count(world: World):
    learned = learned_from(world)
    listed = {each.ref: each for each in world.seen.instances if oracle.fate_of(each, world) is not None}

    for each, before in world.seen.memory.sightings.items():
        if each not in listed:
            after = learned.sightings.get(each, before)
            assert each in learned.forgotten or after.confirmations == 0 or before.confirmations == 0
    for each, machine in listed.items():
        if oracle.orphaned_by(machine, world) is None:
            assert learned.sightings[each].confirmations == 0


@given(good_worlds())
def test_only_what_was_absent_for_over_a_day_is_forgotten(world: World):
    learned = learned_from(world)
    present = {each.ref for each in world.seen.instances if oracle.fate_of(each, world) is not None}
    remembered = world.seen.memory.sightings

    long_gone = {r for r, s in remembered.items() if r not in present and NOW - s.last_seen_at > timedelta(hours=24)}
    assert learned.forgotten == long_gone
    assert not learned.forgotten & learned.sightings.keys()


@given(worlds())
def test_no_age_is_negative(world: World):
    assert all(v.age is None or v.age >= timedelta(0) for v in decide(world.seen, world.policy).verdicts)


@given(good_worlds())
def test_only_a_machine_that_is_not_there_is_confirmed_gone(world: World):
    learned = learned_from(world)
    asked = {each for each, request in world.seen.memory.intents.items() if request.requested_at < NOW}

    due = {each for each in asked if oracle.is_proved_gone(each, world)}
    assert {closed.ref for closed in learned.confirmed_gone} == due
    for closed in learned.confirmed_gone:
        event(f"closed: {closed.outcome}")


@given(good_worlds())
def test_that_it_is_not_listed_confirms_no_end(world: World):
    listed = {each.ref for each in world.seen.instances}
    blind = learned_from(world.but(located={}))

    assert {closed.ref for closed in blind.confirmed_gone} <= listed
    assert {*blind.confirmed_gone} <= {*learned_from(world).confirmed_gone}


@given(good_worlds(), st.sampled_from([each for each in LOCATED if isinstance(each, There | NotKnown)]))
def test_a_machine_that_may_be_there_stays_open_and_takes_no_other_with_it(world: World, found: Location):
    before = {closed.ref for closed in learned_from(world).confirmed_gone}
    listed = {each.ref for each in world.seen.instances}

    for each in world.seen.memory.intents:
        unsure = learned_from(world.but(located={**world.seen.located, each: found}))
        event(f"listed: {each in listed}")
        assert {closed.ref for closed in unsure.confirmed_gone} == (before if each in listed else before - {each})


TAKEN = (None, OutcomeKind.REQUESTED, OutcomeKind.UNKNOWN, OutcomeKind.ALREADY_GONE)
LOST = [each for each in LOCATED if isinstance(each, There) and each.state.exists and each.owner != DEPLOYMENT]


@given(good_worlds(), st.sampled_from(TAKEN), st.sampled_from(LOST))
def test_what_runs_without_our_tag_after_it_was_asked_to_end_is_told_and_never_asked_again(
    world: World, outcome: OutcomeKind | None, found: Location
):
    lost = ref("i-99")
    asked = {**world.seen.memory.intents, lost: intent(outcome, MINUTE, lost)}
    world = world.remembering(intents=asked).but(located={**world.seen.located, lost: found})
    decision = decide(world.seen, world.policy)
    assume(not isinstance(decision, Refusal) or decision.reason is RefusalReason.BREAKER_OPEN)
    told = {c.subject for c in conditions(world.seen, world.policy, decision, ()) if c.cause is Cause.TERMINATION_STUCK}

    for each, request in asked.items():
        if request.outcome in TAKEN and request.requested_at < NOW and oracle.runs_without_us(each, world):
            event(f"listed: {each != lost}")
            assert str(each) in told
            assert each not in {verdict.ref for verdict in decision.verdicts}


@given(good_worlds())
def test_what_is_learned_never_contradicts_what_was_decided(world: World):
    learned = learned_from(world)

    for verdict, _ in judge(world.seen, world.policy):
        assert learned.sightings[verdict.ref].verdict == verdict.name


@given(good_worlds())
def test_the_registry_and_its_listed_machines_are_known_as_of_this_look(world: World):
    learned = learned_from(world)

    mine = {each.ref for each in oracle.ours(world)} | world.seen.memory.listed
    named = {(row.provider, row.region, row.instance_id) for row in world.rows if oracle.is_live(row)}
    assert learned.listed == {each for each in mine if (each.provider, each.region, each.instance_id) in named}
    assert (learned.pin.registry_id, learned.pin.epoch, learned.pin.nonce) == (REGISTRY, EPOCH, "n-7")
    unpinned = world.remembering(pin=None)
    mismatch = any(oracle.is_mismatch(provider, unpinned) for provider in ("aws", "gcp"))
    before = world.seen.memory.pin
    assert learned.pin.mismatch_accepted == (before is not None and before.mismatch_accepted and mismatch)


@given(good_worlds(), st.sampled_from(SCOPES))
def test_an_end_is_confirmed_only_where_somebody_looked(world: World, elsewhere: Scope):
    there = ref("i-99", Scope("aws", "sa-east-1"))
    asked = {each: intent(OutcomeKind.REQUESTED, MINUTE, each) for each in (there, ref("i-99", elsewhere))}
    said = dict.fromkeys(asked, Gone())
    learned = learned_from(world.remembering(intents=asked).but(located=said))

    assert [gone.ref.scope for gone in learned.confirmed_gone] == [elsewhere]


# ---------------------------------------------------------------- the door


def _looked_up(world: World, machine: OwnedInstance) -> RegistryRows:
    """Return what the registry finds when it is asked about one machine, just before its end."""
    about = [r for r in world.rows if r.instance_id == machine.ref.instance_id or r.worker_id == machine.worker_id]
    return RegistryRows(identity=identity(), workers=tuple(about))


@given(good_worlds())
def test_the_door_lets_everything_through_when_nothing_has_changed(world: World):
    for verdict, _ in judge(world.seen, world.policy):
        if verdict.terminates:
            event(f"through: {verdict.orphan}")
            assert recheck(verdict, _looked_up(world, verdict.instance), world.seen, world.policy) is None


@given(good_worlds(), st.data())
def test_the_door_spares_whatever_became_tracked_or_changed(world: World, data: st.DataObject):
    ended = [verdict for verdict, _ in judge(world.seen, world.policy) if verdict.terminates]
    assume(ended)
    verdict = data.draw(st.sampled_from(ended))
    machine = verdict.instance
    found = _looked_up(_changed(world, machine, data), machine)

    spared = recheck(verdict, found, world.seen, world.policy)

    # What worked when the plan was made has not stopped because few rows are looked up.
    beacon = [BEATING] if any(oracle.has_recent_heartbeat(row, world) for row in world.rows) else []
    at_the_door = world.with_rows((*found.workers, *beacon))
    if oracle.is_tracked(machine, at_the_door):
        expected = SparedReason.TRACKED_NOW
    else:
        same = oracle.orphaned_by(machine, at_the_door) == verdict.orphan
        expected = None if same else SparedReason.CHANGED
    event(str(expected))
    assert spared == expected


def _changed(world: World, machine: OwnedInstance, data: st.DataObject) -> World:
    """Return the world with one row written anew, mostly one about the machine."""
    names = ("w-9", "w-1", *([machine.worker_id] * 2 if machine.worker_id else ()))
    fresh: Worker = data.draw(workers(data.draw(st.sampled_from(names))))
    if data.draw(st.booleans()):
        at = machine.ref
        fresh = replace(fresh, provider=at.provider, region=at.region, instance_id=at.instance_id)
    kept = [row for row in world.rows if row.worker_id != fresh.worker_id]
    return world.with_rows((*kept, fresh))
