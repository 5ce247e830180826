"""The core against a second reading of the rules: each decision, both ways, in every world that can be drawn."""

from __future__ import annotations

from hypothesis import event, given

from reaperd.core.model import Plan, Refusal, Terminate, Verdict
from reaperd.core.reap import decide, digest_of, judge
from registry.model import RegistrySnapshot
from tests.property import oracle
from tests.property.strategies import good_worlds, worlds
from tests.support.worlds import World


def fate(verdict: Verdict) -> oracle.Fate:
    call = verdict.call
    if isinstance(call, Terminate):
        return ("terminate", str(call.reason), call.again)
    return ("keep", str(call.reason), False)


@given(good_worlds())
def test_every_verdict_is_the_one_that_the_rules_give(world: World):
    verdicts = [verdict for verdict, _ in judge(world.seen, world.policy)]

    for verdict in verdicts:
        event(verdict.name)
    assert {str(v.ref): fate(v) for v in verdicts} == oracle.fates_of(world)
    assert len(verdicts) == len({v.ref for v in verdicts})


@given(good_worlds())
def test_every_termination_is_justified_by_age_sightings_and_registry(world: World):
    terminated = [verdict for verdict, _ in judge(world.seen, world.policy) if verdict.terminates]

    for verdict in terminated:
        machine = verdict.instance
        age = oracle.age_of(machine, world)
        assert age is not None
        assert age > world.policy.launch_grace
        assert world.policy.confirmation_given or oracle.count_of(machine, world) >= world.policy.confirm_passes
        assert not oracle.is_tracked(machine, world)
        assert verdict.orphan == oracle.orphaned_by(machine, world)
        assert oracle.holds_of(machine, world) == set()


@given(good_worlds())
def test_every_ripe_orphan_that_nothing_holds_is_ended(world: World):
    decision = decide(world.seen, world.policy)

    ended = {str(v.ref) for v in decision.terminations} if isinstance(decision, Plan) else None
    due = {ref for ref, (call, _, _) in oracle.fates_of(world).items() if call == "terminate"}
    assert ended == (None if oracle.refused_for(world) else due)


@given(worlds())
def test_a_pass_stands_down_for_exactly_the_reasons_of_the_rules(world: World):
    decision = decide(world.seen, world.policy)

    told = [decision.reason, *decision.also] if isinstance(decision, Refusal) else []
    event(f"refused for {told[0] if told else 'nothing'}")
    assert [str(each) for each in told] == oracle.refused_for(world)


@given(good_worlds())
def test_the_evidence_of_a_verdict_is_what_the_rules_count(world: World):
    for verdict, after in judge(world.seen, world.policy):
        machine = verdict.instance
        assert verdict.age == oracle.age_of(machine, world)
        assert verdict.confirmations == after.confirmations == oracle.count_of(machine, world)
        assert verdict.orphan == oracle.orphaned_by(machine, world)
        assert after.vanished_at == oracle.vanished_since(machine, world)
        waits = {"launch_grace", "unconfirmed", "row_vanished"} & oracle.holds_of(machine, world)
        assert verdict.ripe == (verdict.orphan is not None and not waits)


@given(worlds())
def test_a_plan_is_named_by_what_it_terminates(world: World):
    decision = decide(world.seen, world.policy)

    goes = [v.ref for v in decision.verdicts if v.terminates]
    assert decision.digest == digest_of(world.policy.deployment, goes)
    assert (decision.digest is None) == (not goes)
    if isinstance(decision, Refusal) and decision.reason not in {"reap_hold", "breaker_open"}:
        assert decision.verdicts == ()
    elif isinstance(world.seen.registry, RegistrySnapshot):
        assert len(decision.verdicts) == len(oracle.fates_of(world))
