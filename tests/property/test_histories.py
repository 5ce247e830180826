"""Many looks at a world that moves: every orphan ends in time, every tracked machine lives for ever.

What is expected is computed anew at each look from the bare history of looks, never from what the core remembers.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from hypothesis import event, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from providers.locations import Gone, Location, NotKnown, There
from providers.model import InstanceRef, InstanceState, OwnedInstance
from reaperd.core.memory import learn
from reaperd.core.model import (
    Brake,
    Intent,
    Memory,
    Observation,
    OutcomeKind,
    Plan,
    ReapPolicy,
    Refusal,
    RegistryTrouble,
)
from reaperd.core.reap import decide
from reaperd.core.whereabouts import unlisted
from registry.model import RegistryIdentity, Worker, WorkerState
from tests.support.worlds import (
    HOUR,
    MINUTE,
    NOW,
    SCOPES,
    SECOND,
    broken,
    identity,
    machine,
    policy,
    registry,
    row,
    whole,
)

ABSENT, TRACKED, ROWLESS, ROWED = "absent", "tracked", "without a row", "with a row that does not protect"
IN_VAIN = ("a broken scope", "a scope not asked", "no registry", "another registry", "the clock", "late")
STUCK_AFTER = 30 * MINUTE
TERMINAL = (WorkerState.COMPLETED, WorkerState.FAILED, WorkerState.TERMINATED)


@dataclass(slots=True)
class Life:
    """One machine, and how each complete look found it."""

    machine: OwnedInstance
    launched_at: datetime
    found: list[tuple[datetime, str]] = field(default_factory=list)
    hidden: bool = False
    """True while the cloud forgets to list it."""
    lingers: bool = False
    """True when a request is accepted and nothing happens."""
    asked: list[datetime] = field(default_factory=list)

    def count(self, spacing: timedelta) -> int:
        """Return in how many looks in a row it was untracked, those too close together being one."""
        counted: list[datetime] = []
        for at, found in self.found:
            if found in {ABSENT, TRACKED}:
                counted = []
            elif not counted or at - counted[-1] >= spacing:
                counted.append(at)
        return len(counted)

    def vanished_at(self) -> datetime | None:
        """Return the first of the looks that found its row gone since it was tracked."""
        known, since = False, None
        for at, found in self.found:
            known = known or found == TRACKED
            if found in {TRACKED, ROWED}:
                since = None
            elif found == ROWLESS and known:
                since = since or at
        return since


class MovingWorld(RuleBasedStateMachine):
    """A cloud, a registry and a ledger, with everything that goes wrong between them."""

    def __init__(self) -> None:
        super().__init__()
        self.now = NOW
        self.number = 0
        self.epoch = 1
        self.lives: dict[InstanceRef, Life] = {}
        self.rows: dict[str, Worker] = {}
        self.memory = Memory()
        self.leader = True
        self.answers = True
        """False while the cloud, asked for one machine by its id, does not answer."""
        self.policy: ReapPolicy = policy()

    @initialize(
        passes=st.integers(1, 3),
        grace=st.sampled_from((15 * MINUTE, timedelta(0))),
        vanish_grace=st.sampled_from((HOUR, timedelta(0))),
    )
    def begin(self, passes: int, grace: timedelta, vanish_grace: timedelta) -> None:
        self.policy = policy(
            confirm_passes=passes, launch_grace=grace, vanish_grace=vanish_grace, stuck_after=STUCK_AFTER
        )

    # ------------------------------------------------------------ the control plane and the cloud

    def _appears(self, *, worker: str | None, told: bool, lingers: bool) -> OwnedInstance:
        self.number += 1
        at = SCOPES[self.number % len(SCOPES)]
        born = machine(f"i-{self.number}", at=at, worker=worker, launched_at=self.now if told else None)
        self.lives[born.ref] = Life(born, self.now, lingers=lingers)
        return born

    def _write(self, written: Worker) -> None:
        self.epoch += 1
        self.rows[written.worker_id] = written

    @rule(told=st.booleans(), lingers=st.booleans())
    def launch(self, told: bool, lingers: bool) -> None:
        worker = f"w-{self.number + 1}"
        born = self._appears(worker=worker, told=told, lingers=lingers)
        self._write(row(worker, born.ref.instance_id, at=born.ref.scope, created_at=self.now))

    @rule(told=st.booleans())
    def launch_without_learning_the_id(self, told: bool) -> None:
        worker = f"w-{self.number + 1}"
        born = self._appears(worker=worker, told=told, lingers=False)
        self._write(row(worker, None, at=born.ref.scope, created_at=self.now, state=WorkerState.LAUNCHING))

    @rule(told=st.booleans(), lingers=st.booleans(), tagged=st.booleans())
    def launch_without_a_row(self, told: bool, lingers: bool, tagged: bool) -> None:
        self._appears(worker=f"w-{self.number + 1}" if tagged else None, told=told, lingers=lingers)

    @precondition(lambda self: self.rows)
    @rule(data=st.data())
    def learn_the_id(self, data: st.DataObject) -> None:
        worker = data.draw(st.sampled_from(sorted(self.rows)))
        number = worker.removeprefix("w-")
        born = next((life.machine for ref, life in self.lives.items() if ref.instance_id == f"i-{number}"), None)
        if born is not None and self.rows[worker].state.is_live:
            self._write(replace(self.rows[worker], instance_id=born.ref.instance_id, state=WorkerState.RUNNING))

    @precondition(lambda self: self.rows)
    @rule(data=st.data(), state=st.sampled_from(WorkerState))
    def change_the_state_of_a_row(self, data: st.DataObject, state: WorkerState) -> None:
        worker = data.draw(st.sampled_from(sorted(self.rows)))
        self._write(replace(self.rows[worker], state=state))

    @precondition(lambda self: self.rows)
    @rule(data=st.data())
    def lose_a_row(self, data: st.DataObject) -> None:
        self.epoch += 1
        del self.rows[data.draw(st.sampled_from(sorted(self.rows)))]

    @precondition(lambda self: self.lives)
    @rule(data=st.data())
    def hide_or_show_a_machine(self, data: st.DataObject) -> None:
        life = self.lives[data.draw(st.sampled_from(sorted(self.lives)))]
        life.hidden = not life.hidden

    @rule()
    def stop_or_begin_to_answer_for_single_machines(self) -> None:
        self.answers = not self.answers

    @rule()
    def put_the_brake_on_or_off(self) -> None:
        brake = None if self.memory.brake else Brake(since=self.now, by="ann", reason="a deploy")
        self.memory = replace(self.memory, brake=brake)

    @rule()
    def lose_or_win_the_lease(self) -> None:
        self.leader = not self.leader

    @rule(by=st.sampled_from((29 * SECOND, MINUTE, 16 * MINUTE, 31 * MINUTE, HOUR, 5 * HOUR)))
    def wait(self, by: timedelta) -> None:
        self.now += by

    # ------------------------------------------------------------ looks

    @rule(times=st.integers(1, 4))
    def look(self, times: int) -> None:
        for _ in range(times):
            self.now += MINUTE
            self._pass(self._observation())

    @rule()
    def look_again_at_once(self) -> None:
        self.now += SECOND
        self._pass(self._observation())

    @rule(
        what=st.sampled_from(
            ("a broken scope", "a scope not asked", "no registry", "another registry", "the clock", "late")
        )
    )
    def look_in_vain(self, what: str) -> None:
        self.now += MINUTE
        seen = self._observation()
        spoiled = {
            "a broken scope": {"coverage": (*map(whole, SCOPES[1:]), broken(SCOPES[0])), "instances": ()},
            "a scope not asked": {"coverage": tuple(map(whole, SCOPES[1:])), "instances": ()},
            "no registry": {"registry": RegistryTrouble(detail="locked")},
            "another registry": {
                "registry": registry(identity=identity(registry_id="r-2" if self.memory.pin else "", deployment="x"))
            },
            "the clock": {"clock_step": HOUR},
            "late": {"late": True},
        }[what]
        seen = replace(seen, **spoiled)  # type: ignore[arg-type]

        assert isinstance(decide(seen, self.policy), Refusal)
        assert learn(seen, self.policy) is None

    def _observation(self) -> Observation:
        self_identity: RegistryIdentity = identity(epoch=self.epoch, updated_at=self.now)
        asked = self.memory.pin
        found = registry(
            *self.rows.values(),
            identity=self_identity,
            nonce=f"n-{self.epoch}",
            remembered_nonce=f"n-{asked.epoch}" if asked else None,
        )
        seen = Observation(
            now=self.now,
            instances=tuple(life.machine for life in self.lives.values() if not life.hidden),
            coverage=tuple(map(whole, SCOPES)),
            registry=found,
            memory=self.memory,
            leader=self.leader,
        )
        return replace(seen, located={ref: self._location(ref) for ref in unlisted(seen)})

    def _location(self, ref: InstanceRef) -> Location:
        if not self.answers:
            return NotKnown("no answer in time")
        return There(InstanceState.RUNNING) if ref in self.lives else Gone()

    def _pass(self, seen: Observation) -> None:
        """Decide, compare with what the history demands, act, and remember as the ledger would."""
        decision, learned = decide(seen, self.policy), learn(seen, self.policy)
        if learned is None:
            assert isinstance(decision, Refusal)
            assert "registry_mismatch" in {decision.reason, *decision.also}
            event("refused: mismatch")
            return
        for closed in learned.confirmed_gone:
            event("confirmed gone")
            assert closed.ref not in self.lives
        for life in self.lives.values():
            life.found.append((self.now, self._finding(life)))
        stopped = self.memory.brake is not None or not self.leader
        assert isinstance(decision, Refusal) == stopped
        goes = {ref for ref, life in self.lives.items() if self._is_due(life)}
        terminated = {v.ref for v in decision.terminations} if isinstance(decision, Plan) else set()
        assert terminated == (set() if stopped else goes)
        self.memory = replace(
            self.memory,
            sightings={
                ref: s for ref, s in (self.memory.sightings | learned.sightings).items() if ref not in learned.forgotten
            },
            intents={r: i for r, i in self.memory.intents.items() if i not in learned.confirmed_gone},
            pin=learned.pin,
            listed=learned.listed,
            scopes=learned.scopes,
        )
        for ref in sorted(terminated):
            self._request(ref)

    def _request(self, ref: InstanceRef) -> None:
        life = self.lives[ref]
        event("sent again" if life.asked else f"ended {life.found[-1][1]}")
        life.asked.append(self.now)
        sent = Intent(
            intent_id=len(life.asked),
            ref=ref,
            requested_at=self.now,
            outcome=OutcomeKind.REQUESTED,
            first_requested_at=life.asked[0],
        )
        self.memory = replace(self.memory, intents={**self.memory.intents, ref: sent})
        if not life.lingers:
            del self.lives[ref]

    # ------------------------------------------------------------ what the history demands

    def _finding(self, life: Life) -> str:
        if life.hidden:
            return ABSENT
        ref, worker = life.machine.ref, life.machine.worker_id
        about = [
            each
            for each in self.rows.values()
            if each.instance_id == ref.instance_id or (each.instance_id is None and each.worker_id == worker)
        ]
        if any(each.state not in TERMINAL and not self._is_abandoned(each) for each in about):
            return TRACKED
        return ROWED if about else ROWLESS

    def _is_abandoned(self, each: Worker) -> bool:
        assert each.created_at is not None
        in_flight = each.state is WorkerState.LAUNCHING and each.instance_id is None
        return in_flight and self.now - each.created_at >= HOUR

    def _is_due(self, life: Life) -> bool:
        at, found = life.found[-1]
        if found in {ABSENT, TRACKED} or life.count(self.policy.look_spacing) < self.policy.confirm_passes:
            return False
        seen_first = next(when for when, how in life.found if how != ABSENT)
        born = seen_first if life.machine.launched_at is None else min(life.launched_at, seen_first)
        vanished = life.vanished_at()
        old_enough = at - born > self.policy.launch_grace
        waited = vanished is None or at - vanished >= self.policy.vanish_grace
        may_ask = not self._is_asked(life) or at - life.asked[-1] >= STUCK_AFTER
        return old_enough and waited and may_ask

    def _is_asked(self, life: Life) -> bool:
        return life.machine.ref in self.memory.intents

    @invariant()
    def memory_is_sane(self) -> None:
        for sighting in self.memory.sightings.values():
            assert sighting.first_seen_at <= sighting.last_seen_at <= self.now
            assert (sighting.confirmations == 0) == (sighting.counted_at is None)

    def teardown(self) -> None:
        """Let things calm down: then every orphan ends within `confirm_passes` looks, and no tracked machine does."""
        self.leader = True
        self.answers = True
        self.memory = replace(self.memory, brake=None)
        for life in self.lives.values():
            life.hidden = False
        self.now += MINUTE
        self._pass(self._observation())
        self.now += HOUR + MINUTE
        tracked = {ref for ref, life in self.lives.items() if self._finding(life) == TRACKED}
        for _ in range(self.policy.confirm_passes):
            self._pass(self._observation())
            self.now += MINUTE
        left = {ref for ref, life in self.lives.items() if not life.asked}
        assert left == {ref for ref in tracked if not self.lives[ref].asked}
        assert tracked <= self.lives.keys()
        # A last look at what was ended by the one before: of what is gone no request stays open.
        self._pass(self._observation())
        assert self.memory.intents.keys() <= self.lives.keys()


def test_orphans_end_in_time_and_tracked_machines_live_for_ever():
    run_state_machine_as_test(MovingWorld, settings=settings(stateful_step_count=40))
