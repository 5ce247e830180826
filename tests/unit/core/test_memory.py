"""What the ledger is to remember after a look (rules 3, 4, 10, 11, 22)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from providers.locations import Gone, NotKnown, OnlyListed, There
from providers.model import InstanceState, Scope
from reaperd.core.memory import Learned, learn
from reaperd.core.model import Brake, BreakerLimits, Memory, Observation, OutcomeKind, ReapPolicy, RegistryPin
from registry.model import WorkerState
from tests.support.worlds import (
    DEPLOYMENT,
    EAST,
    EPOCH,
    GCP,
    HOUR,
    MINUTE,
    NOW,
    REGISTRY,
    SCOPES,
    WEST,
    broken,
    identity,
    intent,
    look,
    machine,
    memory,
    pin,
    policy,
    ref,
    registry,
    row,
    sighting,
    whole,
)


def learned(seen: Observation, wishes: ReapPolicy | None = None) -> Learned:
    found = learn(seen, wishes or policy())
    assert found is not None
    return found


# ---------------------------------------------------------------- what is a look


BRAKE = Brake(since=NOW, by="ann", reason="a deploy")


@pytest.mark.parametrize(
    ("seen", "wishes"),
    [
        (look([machine()]), policy()),
        (look([machine()], leader=False), policy()),
        (look([machine()], memory=Memory(brake=BRAKE)), policy()),
        (look([machine()]), policy(breaker=BreakerLimits(max_per_pass=0))),
        (look([machine()], leader=False, memory=Memory(brake=BRAKE)), policy(breaker=BreakerLimits(max_per_pass=0))),
    ],
    ids=["acting", "without the lease", "under the brake", "with an open breaker", "all three"],
)
def test_a_complete_look_teaches_whatever_was_decided_on_it(seen, wishes):
    assert learned(seen, wishes).sightings[ref()].confirmations == 1


@pytest.mark.parametrize(
    "trouble",
    [
        {"clock_step": timedelta(seconds=61)},
        {"late": True},
        {"coverage": (whole(EAST), whole(GCP), broken(WEST))},
        {"registry": None},
        {"registry": registry(identity=identity(deployment="prod-b"))},
        {"registry": registry(*(row(f"w-{n}", f"i-{n}") for n in (7, 8, 9)))},
        {"ledger_trouble": "disk full"},
    ],
    ids=["clock", "deadline", "listing", "no registry", "another registry", "mismatch", "ledger"],
)
def test_a_look_with_a_bad_picture_teaches_nothing(trouble):
    assert learn(look([machine()], **trouble), policy()) is None


# ---------------------------------------------------------------- sightings


def test_every_owned_machine_is_seen_with_its_verdict():
    found = learned(look([machine("i-1"), machine("i-2", worker="w-2")], [row("w-2", "i-2")]))

    assert {each.instance_id: s.verdict for each, s in found.sightings.items()} == {
        "i-1": "terminate/unregistered",
        "i-2": "keep/tracked",
    }


def test_a_machine_of_another_owner_is_not_remembered():
    assert learned(look([machine(owner="prod-b")])).sightings == {}


def test_an_absent_machine_is_remembered_without_its_count():
    known = sighting(confirmations=2, counted_at=NOW - MINUTE)

    found = learned(look([], memory=Memory(sightings={ref(): known})))

    assert found.sightings[ref()].confirmations == 0
    assert found.sightings[ref()].first_seen_at == known.first_seen_at
    assert found.forgotten == frozenset()


def test_a_terminated_machine_is_an_absent_one():
    known = Memory(sightings={ref(): sighting(confirmations=2, counted_at=NOW - MINUTE)})

    found = learned(look([machine(state=InstanceState.TERMINATED)], memory=known))

    assert found.sightings[ref()].confirmations == 0


def test_an_absent_machine_without_a_count_needs_no_change():
    assert learned(look([], memory=Memory(sightings={ref(): sighting()}))).sightings == {}


def test_a_machine_that_was_absent_for_over_a_day_is_forgotten():
    known = Memory(sightings={ref(): sighting(last_seen_at=NOW - 25 * HOUR)})

    found = learned(look([], memory=known))

    assert found.forgotten == frozenset({ref()})
    assert found.sightings == {}


# ---------------------------------------------------------------- confirmed gone


GONE = {ref(): Gone()}
PROOFS = [Gone(), OnlyListed()]
"""What its cloud says of the id; or that it cannot be asked so, and its listing is all there is."""
NO_PROOFS = [
    There(InstanceState.RUNNING),
    There(InstanceState.RUNNING, DEPLOYMENT),
    There(InstanceState.SHUTTING_DOWN),
    There(InstanceState.UNKNOWN, "prod-b"),
    NotKnown("no answer in time"),
]


@pytest.mark.parametrize("proof", PROOFS, ids=repr)
@pytest.mark.parametrize("outcome", [None, *OutcomeKind], ids=str)
def test_an_open_intent_of_any_outcome_is_closed_once_its_machine_is_proved_gone(outcome, proof):
    asked = intent(outcome)

    assert learned(look([], memory=memory(asked), located={ref(): proof})).confirmed_gone == (asked,)


@pytest.mark.parametrize("no_proof", NO_PROOFS, ids=repr)
@pytest.mark.parametrize("outcome", [None, *OutcomeKind], ids=str)
def test_a_machine_that_is_only_not_listed_is_not_gone(outcome, no_proof):
    asked = intent(outcome)

    assert learned(look([], memory=memory(asked), located={ref(): no_proof})).confirmed_gone == ()


def test_a_machine_that_nobody_asked_for_is_not_gone():
    asked = intent(OutcomeKind.REQUESTED)

    found = learned(look([], memory=memory(asked), located={ref("i-2"): Gone(), ref(at=WEST): Gone()}))

    assert found.confirmed_gone == ()


def test_each_machine_is_gone_for_itself():
    asked = [intent(OutcomeKind.REQUESTED, of=ref(name)) for name in ("i-1", "i-2", "i-3")]
    found = {ref("i-1"): There(InstanceState.RUNNING), ref("i-2"): Gone()}

    assert learned(look([], memory=memory(*asked), located=found)).confirmed_gone == (asked[1],)


def test_a_terminated_machine_that_is_still_listed_is_gone():
    asked = intent(OutcomeKind.REQUESTED)

    found = learned(look([machine(state=InstanceState.TERMINATED)], memory=memory(asked)))

    assert found.confirmed_gone == (asked,)


@pytest.mark.parametrize("state", [s for s in InstanceState if not s.is_gone], ids=str)
def test_a_machine_that_is_listed_otherwise_is_not_gone_whatever_was_said_of_it(state):
    asked = intent(OutcomeKind.REQUESTED)

    assert learned(look([machine(state=state)], memory=memory(asked), located=GONE)).confirmed_gone == ()


def test_a_machine_whose_owner_tag_was_changed_is_not_gone():
    asked = intent(OutcomeKind.REQUESTED)

    assert learned(look([machine(owner="prod-b")], memory=memory(asked), located=GONE)).confirmed_gone == ()


def test_a_look_begun_no_later_than_the_request_confirms_nothing():
    asked = intent(OutcomeKind.REQUESTED, timedelta(0))

    assert learned(look([], memory=memory(asked), located=GONE)).confirmed_gone == ()


def test_a_look_that_did_not_cover_the_machines_scope_confirms_nothing():
    elsewhere = ref(at=Scope("aws", "sa-east-1"))
    asked = intent(OutcomeKind.REQUESTED, of=elsewhere)

    assert learned(look([], memory=memory(asked), located={elsewhere: Gone()})).confirmed_gone == ()


def test_the_same_id_in_another_place_does_not_keep_an_intent_open():
    asked = intent(OutcomeKind.REQUESTED)

    assert learned(look([machine(at=WEST)], memory=memory(asked), located=GONE)).confirmed_gone == (asked,)


# ---------------------------------------------------------------- the registry that we know


def test_the_registry_is_remembered_with_its_epoch_and_mark():
    assert learned(look()).pin == RegistryPin(registry_id=REGISTRY, epoch=EPOCH, nonce="n-7")


def test_the_pin_moves_on_with_the_registry():
    known = Memory(pin=pin(epoch=3, nonce="n-3"))

    found = learned(look(registry=registry(remembered_nonce="n-3"), memory=known))

    assert found.pin == RegistryPin(registry_id=REGISTRY, epoch=EPOCH, nonce="n-7")


STRANGE_ROWS = [row(f"w-{n}", f"i-{n}") for n in (7, 8, 9)]


def test_an_accepted_mismatch_stays_accepted_while_it_lasts():
    known = Memory(pin=pin(mismatch_accepted=True))

    assert learned(look([machine()], STRANGE_ROWS, memory=known)).pin.mismatch_accepted


def test_an_accepted_mismatch_is_forgotten_once_they_belong_together():
    known = Memory(pin=pin(mismatch_accepted=True))

    assert not learned(look([machine("i-7")], STRANGE_ROWS, memory=known)).pin.mismatch_accepted


def test_a_mismatch_is_not_accepted_by_looking():
    assert not learned(look([machine()], memory=Memory(pin=pin()))).pin.mismatch_accepted


# ---------------------------------------------------------------- machines and scopes that we have listed


def test_a_listed_machine_is_remembered_while_a_live_row_names_it():
    machines = [machine("i-1"), machine("i-2", worker="w-2"), machine("i-3", worker="w-3")]
    rows = [row("w-1", "i-1"), row("w-2", "i-2", state=WorkerState.FAILED), row("w-9", "i-9"), row("w-4", None)]

    assert learned(look(machines, rows)).listed == frozenset({ref("i-1")})


def test_a_machine_that_was_listed_once_stays_remembered_while_a_live_row_names_it():
    known = Memory(listed=frozenset({ref("i-1"), ref("i-2")}))

    assert learned(look([], [row()], memory=known)).listed == frozenset({ref("i-1")})


def test_the_scopes_that_were_listed_are_remembered():
    assert learned(look()).scopes == frozenset(SCOPES)


def test_a_scope_that_was_discovered_is_remembered_until_the_configuration_drops_it():
    south = Scope("aws", "ap-south-1")
    seen = look(coverage=tuple(map(whole, (*SCOPES, south))), memory=Memory(scopes=frozenset({south})))
    later = look(memory=Memory(scopes=frozenset({*SCOPES, south})))

    assert south in learned(seen, policy(discovering=frozenset({"aws"}))).scopes
    assert south not in learned(later, policy()).scopes
