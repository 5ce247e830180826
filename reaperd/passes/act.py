"""The one door: nothing else in the program may send a terminate.

All guards stand in front of it again, because a plan is seconds old when it is carried out: is the process
still to run, is there time, is the registry still the one that was judged and does it still know nothing of
this machine; then, in the transaction that makes the intent durable, the lease and the brake. The adapter looks
at the machine itself once more, and asks once more for leave before it sends: looking takes its time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from providers.base import Terminator
from providers.errors import TerminateError, TerminationWithdrawnError
from providers.identity import loosely
from providers.model import Scope
from reaperd.core.model import DeferReason, Observation, Outcome, OutcomeKind, Plan, ReapPolicy, Verdict
from reaperd.core.reap import Recheck
from reaperd.errors import LedgerUnusableError
from reaperd.passes.aside import LAST_WORDS, Aside, Patience, Unanswered
from reaperd.passes.lanes import Lanes, are_many
from reaperd.passes.observe import look_up
from reaperd.passes.outcomes import (
    LATE,
    NO_LEAVE,
    REPLACED,
    Stop,
    left,
    outcome_of,
    same_registry,
    stop_after,
    stopped_by,
)
from reaperd.passes.pacer import Pacer, allowance_of
from reaperd.passes.ports import Acted, Clock, Errand, IntentBook, Stopping
from registry.base import RegistryReader
from registry.errors import RegistryUnusableError
from registry.model import RegistryRows

_Lookup = Callable[[str, str | None], RegistryRows | Unanswered]
"""Reads the rows about a machine: by its id, and by its worker's."""


@dataclass(frozen=True, slots=True)
class _Step:
    """What came of one machine, and whether it ends the pass's requests."""

    outcome: Outcome | None = None
    """None: it was not even begun."""
    stop: Stop | None = None


class Rehearsal:
    """Says what would be done. Holds no terminator, so it cannot do it."""

    def carry_out(self, plan: Plan, seen: Observation, policy: ReapPolicy, errand: Errand) -> Acted:
        """Return `would_terminate` for every termination of the plan."""
        return Acted(outcomes=tuple(Outcome(ref=v.ref, kind=OutcomeKind.WOULD_TERMINATE) for v in plan.terminations))


@dataclass(frozen=True, slots=True, kw_only=True)
class Enforcer:
    """Sends the terminations of a plan, oldest first within a region.

    One machine a request, unless they are too many for that: then each request names some of one zone, see Lanes.
    """

    terminator: Terminator
    registry: RegistryReader
    intents: IntentBook
    clock: Clock
    stopping: Stopping
    pacer: Pacer = field(default_factory=Pacer)

    def carry_out(self, plan: Plan, seen: Observation, policy: ReapPolicy, errand: Errand) -> Acted:
        """Return one outcome for every termination of the plan."""
        todo = plan.terminations
        if are_many(todo, self.terminator):
            return Lanes.of(self, seen, policy, errand).carry_out(todo)
        return self._one_by_one(todo, _Run(door=self, seen=seen, errand=errand, recheck=Recheck.of(seen, policy)))

    def _one_by_one(self, todo: Sequence[Verdict], run: _Run) -> Acted:
        outcomes: list[Outcome] = []
        for verdict in todo:
            step = run.send(verdict)
            if step.outcome is not None:
                outcomes.append(step.outcome)
            if step.stop is not None:
                not_begun = (left(v.ref, step.stop.reason) for v in todo[len(outcomes) :])
                return Acted(
                    outcomes=(*outcomes, *not_begun),
                    stopped=step.stop.reason,
                    detail=step.stop.detail,
                    requests=run.requests,
                )
        return Acted(outcomes=tuple(outcomes), requests=run.requests)


@dataclass(slots=True, kw_only=True)
class _Run:
    """One plan on its way through the door."""

    door: Enforcer
    seen: Observation
    errand: Errand
    recheck: Recheck
    requests: int = 0

    def send(self, verdict: Verdict) -> _Step:
        """Terminate one machine, unless something has changed."""
        obstacle = self._obstacle()
        if obstacle is not None:
            return _Step(stop=obstacle)
        # Before the rows are looked up: as little time as can be lies between that and the request.
        self._pace(verdict.ref.scope)
        patience = Patience(self.door.clock, self.errand.ends_at, self.door.stopping)
        lookup = partial(look_up, self.door.registry, patience=patience)
        return self._spared(verdict, lookup) or self._request(verdict)

    def _obstacle(self) -> Stop | None:
        if self.door.stopping():
            return Stop(DeferReason.STOPPING)
        return Stop(DeferReason.DEADLINE, LATE) if self._is_late() else None

    def _is_late(self) -> bool:
        return self.door.clock.monotonic() >= self.errand.ends_at

    def _spared(self, verdict: Verdict, lookup: _Lookup) -> _Step | None:
        """Look the rows up again; None: they still say what they said."""
        try:
            found = lookup(verdict.ref.instance_id, verdict.instance.worker_id)
        except RegistryUnusableError as error:
            return _Step(stop=Stop(DeferReason.REGISTRY_UNUSABLE, str(error)))
        if isinstance(found, Unanswered):
            return _Step(stop=_unanswered(found))
        if not same_registry(found.identity, self.seen):
            return _Step(stop=Stop(DeferReason.REGISTRY_IDENTITY, REPLACED))
        reason = self.recheck.reason(verdict, found)
        if reason is None:
            return None
        return _Step(outcome=Outcome(ref=verdict.ref, kind=OutcomeKind.SPARED, reason=reason))

    def _pace(self, scope: Scope) -> None:
        clock, pacer = self.door.clock, self.door.pacer
        wait = pacer.wait(scope, allowance_of(self.door.terminator, scope), 1, clock.monotonic())
        if wait > 0:
            clock.sleep(wait)
        pacer.begun(scope, clock.monotonic())

    def _request(self, verdict: Verdict) -> _Step:
        """Write the intent, send, write the answer: in this order, and no request without its intent."""
        door = self.door
        approved, now = self._approved(verdict), door.clock.now()
        try:
            number = door.intents.open_intent(verdict, pass_id=self.errand.pass_id, approved=approved, now=now)
        except NO_LEAVE as error:
            return _Step(stop=stopped_by(error))
        leave = _Leave(partial(self._objection, verdict))
        outcome, stop = self._answer(verdict, leave)
        if not leave.kept_it_back(outcome):
            self.requests += 1
            self._count(verdict.ref.scope)
        try:
            door.intents.answer_intent(number, outcome, door.clock.now())
        except LedgerUnusableError as error:
            # The intent stands without an answer, which reads as unknown: it will not be sent again too soon.
            return _Step(outcome, Stop(DeferReason.LEDGER_UNUSABLE, str(error)))
        return _Step(outcome, stop)

    def _count(self, scope: Scope) -> None:
        allowance, now = allowance_of(self.door.terminator, scope), self.door.clock.monotonic()
        self.door.pacer.answered(scope, allowance, requests=1, machines=1, now=now)

    def _objection(self, verdict: Verdict) -> _Step | None:
        """Say, immediately before something is sent, why it must not be; None: it may. In the thread of the call."""
        if self._is_late():
            return _Step(stop=Stop(DeferReason.DEADLINE, LATE))
        # Not bounded here: who waits for the call gives up in time, and takes the leave back.
        spared = self._spared(verdict, partial(self.door.registry.lookup, read=loosely))
        if spared is not None:
            return spared
        try:
            # Last, so that next to nothing lies between this and the request: a process may be frozen anywhere.
            self.door.intents.check_leave(self.door.clock.now())
        except NO_LEAVE as error:
            return _Step(stop=stopped_by(error))
        return None

    def _answer(self, verdict: Verdict, leave: _Leave) -> tuple[Outcome, Stop | None]:
        """Send, and return what came of it, and whether it ends the pass's requests.

        Unknown when the process is to end, or the pass's time is up, and the answer does not come. What comes later is
        dropped, and a call that has not sent anything by then gets no leave to.
        """
        clock = self.door.clock
        answer = Aside(partial(_terminate, self.door.terminator, verdict, leave))
        answer.start("terminate")
        waits_until = self.errand.ends_at + LAST_WORDS.total_seconds()
        stop = Stop(DeferReason.DEADLINE, "no answer to a request came before the deadline and a little longer")
        while not answer.wait():
            if stop.reason is not DeferReason.STOPPING and self.door.stopping():
                stop = Stop(DeferReason.STOPPING, "asked to stop while the answer was on its way")
                waits_until = min(waits_until, clock.monotonic() + LAST_WORDS.total_seconds())
            if clock.monotonic() >= waits_until:
                leave.withdraw()
                # It may have come while the time was looked up.
                if not answer.wait():
                    return Outcome(ref=verdict.ref, kind=OutcomeKind.UNKNOWN, detail=stop.detail), stop
        outcome = answer.result()
        return (
            leave.refused(outcome) if isinstance(outcome, TerminationWithdrawnError) else (outcome, stop_after(outcome))
        )

    def _approved(self, verdict: Verdict) -> bool:
        return any(verdict.ref in approval.refs for approval in self.seen.memory.approvals)


class _Leave:
    """The leave to send, asked for in the thread of the call, and taken back by the one that waits for it."""

    def __init__(self, objection: Callable[[], _Step | None]) -> None:
        self._objection = objection
        self._withdrawn = threading.Event()
        self._step: _Step | None = None

    def __call__(self) -> bool:
        """Say whether it may be sent now. After a no there is no yes."""
        if self._step is None and not self._withdrawn.is_set():
            self._step = self._objection()
        return self._step is None and not self._withdrawn.is_set()

    def kept_it_back(self, outcome: Outcome) -> bool:
        """Say whether nothing was sent, for want of leave. After a lost answer, a no comes too late for that."""
        return self._step is not None and outcome.kind is not OutcomeKind.UNKNOWN

    def withdraw(self) -> None:
        """Nobody waits for the answer any more: from now on nothing may be sent."""
        self._withdrawn.set()

    def refused(self, error: TerminationWithdrawnError) -> tuple[Outcome, Stop | None]:
        """Return what came of a call that got no leave."""
        if self._step is None:
            # Nobody told it so: the reason is the adapter's own.
            return outcome_of(error.ref, error), None
        outcome, stop = self._step.outcome, self._step.stop
        if outcome is None and stop is not None:
            outcome = left(error.ref, stop.reason)
        return replace(outcome or outcome_of(error.ref, error), detail=error.detail), stop


def _terminate(terminator: Terminator, verdict: Verdict, leave: _Leave) -> Outcome | TerminationWithdrawnError:
    """Return what came of the request, or that it got no leave and was not sent."""
    try:
        terminator.terminate(verdict.ref, seen=verdict.instance, permitted=leave)
    except TerminationWithdrawnError as error:
        return error
    except TerminateError as error:
        return outcome_of(verdict.ref, error)
    return Outcome(ref=verdict.ref, kind=OutcomeKind.REQUESTED)


def _unanswered(why: Unanswered) -> Stop:
    match why:
        case Unanswered.LATE:
            return Stop(DeferReason.DEADLINE, "the registry had not answered when the time was up")
        case Unanswered.INTERRUPTED:
            return Stop(DeferReason.STOPPING, "asked to stop while the registry was being read")
