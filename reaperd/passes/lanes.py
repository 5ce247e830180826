"""A plan that is too big to go one by one: its scopes side by side, some machines of one zone in each request.

Every guard of the door stands here, too, for each request and for every machine in it: the intents of all of them are
on the disk, in the transaction that asked for the lease and the brake; and immediately before it is sent, in the thread
of the call, one reading of the registry is asked about all of them, and the ledger once more for leave.

The ledger belongs to the pass's thread. Only that one writes intents and answers; the calls wait in threads of their
own, one a scope, so that one that hangs keeps neither the others nor the process.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from providers.allowance import Allowance
from providers.base import BatchTerminator, Terminator
from providers.errors import GoesAloneError, SpoiledBatchError, TerminateError, TerminationWithdrawnError
from providers.identity import loosely
from providers.model import InstanceRef, Scope
from reaperd.core.model import DeferReason, Observation, Outcome, OutcomeKind, ReapPolicy, Verdict
from reaperd.core.reap import Recheck
from reaperd.errors import LedgerUnusableError
from reaperd.passes.aside import GLANCE_SECONDS, LAST_WORDS, Aside
from reaperd.passes.leave import Leave, Objections
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
from reaperd.passes.parcels import Answers, Parcel, asked_again, parcels
from reaperd.passes.ports import Acted, Clock, Errand, IntentBook, Stopping
from reaperd.passes.readings import SharedReadings
from registry.base import RegistryReader
from registry.errors import RegistryUnusableError
from registry.model import RegistryRows
from registry.rows import matching

FEW = 20
"""So many of one scope still go alone, each: a bad one then takes nobody along, and they are done in seconds."""

AT_ONCE = 16
"""Scopes that are asked side by side. The others wait their turn."""

LEAST = 20
"""So many at least go together where some are refused. What is tried in vain with one that is counts all the same."""

_TICK_SECONDS = 0.001
"""No wait is shorter: a clock may not move at all for less."""

_SILENT = "no answer to the request came in time"

_ASK_AGAIN = (GoesAloneError, SpoiledBatchError)


class Door(Protocol):
    """What the door works with."""

    @property
    def terminator(self) -> Terminator:
        """Return what ends machines."""
        ...

    @property
    def registry(self) -> RegistryReader:
        """Return the control plane's record."""
        ...

    @property
    def intents(self) -> IntentBook:
        """Return the ledger."""
        ...

    @property
    def clock(self) -> Clock:
        """Return the clock."""
        ...

    @property
    def stopping(self) -> Stopping:
        """Return what says whether the process is to end."""
        ...

    @property
    def pacer(self) -> Pacer:
        """Return what keeps requests apart."""
        ...


def are_many(todo: Sequence[Verdict], terminator: Terminator) -> bool:
    """Say whether some scope has more to end than go one by one, and its cloud ends several together."""
    counts = Counter(verdict.ref.scope for verdict in todo)
    return any(count > FEW and allowance_of(terminator, scope) is not None for scope, count in counts.items())


@dataclass(slots=True)
class _Lane:
    """One scope: one request at a time."""

    scope: Scope
    allowance: Allowance | None
    waiting: deque[Parcel]
    size: int
    """How many go together at the most. Less with every request that one machine spoiled for the others."""
    call: _Call | None = None

    def next_size(self) -> int:
        """Return how many machines the next request would name."""
        return min(len(self.waiting[0].verdicts), self.size)

    def next_parcel(self) -> Parcel:
        """Take what goes next, and leave the rest of it for later."""
        parcel, size = self.waiting.popleft(), self.size
        if len(parcel.verdicts) > size:
            self.waiting.appendleft(Parcel(parcel.verdicts[size:], parcel.rounds))
        return Parcel(parcel.verdicts[:size], parcel.rounds)


@dataclass(slots=True, kw_only=True)
class _Call:
    """One request on its way."""

    parcel: Parcel
    numbers: tuple[int, ...]
    """Of the intents, in the order of the parcel."""
    leave: Leave
    answer: Aside[Answers]


@dataclass(slots=True, kw_only=True)
class Lanes:
    """One big plan on its way through the door."""

    door: Door
    seen: Observation
    errand: Errand
    recheck: Recheck
    readings: SharedReadings
    requests: int = 0
    """How many machines were named in requests that were begun."""
    _outcomes: dict[InstanceRef, Outcome] = field(default_factory=dict)
    _stop: Stop | None = None
    _bell: threading.Event = field(default_factory=threading.Event)
    _until: float | None = None
    """When answers are no longer waited for, since the process is to end; None while it is not."""

    @classmethod
    def of(cls, door: Door, seen: Observation, policy: ReapPolicy, errand: Errand) -> Lanes:
        """Return the lanes of one plan."""
        return cls(
            door=door,
            seen=seen,
            errand=errand,
            recheck=Recheck.of(seen, policy),
            readings=SharedReadings(door.registry),
        )

    def carry_out(self, todo: Sequence[Verdict]) -> Acted:
        """Return one outcome for every termination, in the order that was given."""
        lanes = self._lanes(todo)
        try:
            while any(lane.waiting or lane.call for lane in lanes):
                self._advance(lanes)
        except BaseException:
            # Nobody will take down what their answers say: the intents stand, and read as unknown.
            for lane in lanes:
                if lane.call is not None:
                    lane.call.leave.withdraw()
            raise
        stop = self._stop
        return Acted(
            outcomes=tuple(self._outcomes.get(v.ref) or _not_begun(v.ref, stop) for v in todo),
            stopped=None if stop is None else stop.reason,
            detail="" if stop is None else stop.detail,
            requests=self.requests,
        )

    def _lanes(self, todo: Sequence[Verdict]) -> list[_Lane]:
        by_scope: dict[Scope, list[Verdict]] = {}
        for verdict in todo:
            by_scope.setdefault(verdict.ref.scope, []).append(verdict)
        lanes: list[_Lane] = []
        for scope, verdicts in by_scope.items():
            allowance = allowance_of(self.door.terminator, scope)
            size = 1 if len(verdicts) <= FEW else self.door.pacer.together(allowance)
            lanes.append(_Lane(scope, allowance, deque(parcels(verdicts, size)), size))
        return lanes

    # ------------------------------------------------------------ the loop, in the pass's thread

    def _advance(self, lanes: Sequence[_Lane]) -> None:
        """Take what has been answered, begin what may be begun, and wait for the next of either."""
        self._bell.clear()
        for lane in lanes:
            if lane.call is not None and lane.call.answer.is_over:
                self._take(lane, lane.call)
        self._look_up_obstacles(lanes)
        if self._stop is None:
            for lane in lanes:
                self._begin(lane, sum(each.call is not None for each in lanes))
        self._rest(lanes)

    def _look_up_obstacles(self, lanes: Sequence[_Lane]) -> None:
        obstacle = self._obstacle()
        if obstacle is not None and self._stop is None and any(lane.waiting for lane in lanes):
            self._stop = obstacle
        if self._stop is not None:
            for lane in lanes:
                lane.waiting.clear()
        now = self.door.clock.monotonic()
        if self.door.stopping() and self._until is None:
            self._until = now + LAST_WORDS.total_seconds()
        latest = self.errand.ends_at + LAST_WORDS.total_seconds()
        if now >= (latest if self._until is None else min(latest, self._until)):
            for lane in lanes:
                if lane.call is not None:
                    self._give_up(lane, lane.call, obstacle or Stop(DeferReason.DEADLINE, LATE))

    def _obstacle(self) -> Stop | None:
        if self.door.stopping():
            return Stop(DeferReason.STOPPING)
        return Stop(DeferReason.DEADLINE, LATE) if self._is_late() else None

    def _is_late(self) -> bool:
        return self.door.clock.monotonic() >= self.errand.ends_at

    def _rest(self, lanes: Sequence[_Lane]) -> None:
        """Wait a moment: for an answer if one is on its way, otherwise until the next request may be begun."""
        if any(lane.call is not None for lane in lanes):
            self._bell.wait(GLANCE_SECONDS)
            return
        waits = [self._wait(lane) for lane in lanes if lane.waiting]
        if waits:
            self.door.clock.sleep(max(min(*waits, GLANCE_SECONDS), _TICK_SECONDS))

    def _wait(self, lane: _Lane) -> float:
        now = self.door.clock.monotonic()
        return self.door.pacer.wait(lane.scope, lane.allowance, lane.next_size(), now)

    # ------------------------------------------------------------ one request

    def _begin(self, lane: _Lane, under_way: int) -> None:
        """Write the intents, and send: in this order, and no request without the intents of all that it names."""
        if lane.call is not None or not lane.waiting or under_way >= AT_ONCE or self._stop is not None:
            return
        if self._wait(lane) > 0:
            return
        parcel, clock = lane.next_parcel(), self.door.clock
        self.door.pacer.begun(lane.scope, clock.monotonic())
        planned = [(verdict, self._is_approved(verdict)) for verdict in parcel.verdicts]
        try:
            numbers = self.door.intents.open_intents(planned, pass_id=self.errand.pass_id, now=clock.now())
        except NO_LEAVE as error:
            self._stop = stopped_by(error)
            return
        verdicts = {verdict.ref: verdict for verdict in parcel.verdicts}
        leave = Leave(verdicts, partial(self._objections, verdicts))
        answer = Aside(partial(_sent, self.door.terminator, parcel, leave), bell=self._bell)
        lane.call = _Call(parcel=parcel, numbers=numbers, leave=leave, answer=answer)
        answer.start("terminate")

    def _objections(self, verdicts: Mapping[InstanceRef, Verdict], refs: Sequence[InstanceRef]) -> Objections:
        """Say, immediately before a request is sent, what stands against it. In the thread of the call."""
        obstacle = self._stop or self._obstacle()
        if obstacle is not None:
            return Objections(stop=obstacle)
        machines = {ref: (ref.instance_id, verdicts[ref].instance.worker_id) for ref in refs}
        try:
            # Not bounded here: who waits for the call gives up in time, and takes the leave back.
            found = self.readings.lookup_many(machines.values())
        except RegistryUnusableError as error:
            return Objections(stop=Stop(DeferReason.REGISTRY_UNUSABLE, str(error)))
        if not same_registry(found.identity, self.seen):
            return Objections(stop=Stop(DeferReason.REGISTRY_IDENTITY, REPLACED))
        spared: dict[InstanceRef, Outcome] = {}
        for ref in refs:
            about = RegistryRows(identity=found.identity, workers=matching(found.workers, [machines[ref]], loosely))
            reason = self.recheck.reason(verdicts[ref], about)
            if reason is not None:
                spared[ref] = Outcome(ref=ref, kind=OutcomeKind.SPARED, reason=reason)
        try:
            # Last, so that next to nothing lies between this and the request: a process may be frozen anywhere.
            self.door.intents.check_leave(self.door.clock.now())
        except NO_LEAVE as error:
            return Objections(spared=spared, stop=stopped_by(error))
        return Objections(spared=spared)

    def _is_approved(self, verdict: Verdict) -> bool:
        return any(verdict.ref in approval.refs for approval in self.seen.memory.approvals)

    # ------------------------------------------------------------ its answer

    def _take(self, lane: _Lane, call: _Call) -> None:
        """Take down what came of a request, and bring what is to be asked for again into line."""
        lane.call = None
        parcel, leave, answers = call.parcel, call.leave, call.answer.result()
        self._count(lane, leave)
        outcomes = {verdict.ref: _outcome(verdict.ref, call) for verdict in parcel.verdicts}
        again = asked_again(parcel, answers)
        lane.waiting.extendleft(reversed(again))
        if any(isinstance(error, SpoiledBatchError) for error in answers.values()):
            lane.size = max(min(lane.size, LEAST), lane.size // 2)
        self._write(call, outcomes)
        for verdict in (verdict for each in again for verdict in each.verdicts):
            del outcomes[verdict.ref]
        self._outcomes |= outcomes
        stops = (stop for outcome in outcomes.values() if (stop := stop_after(outcome)) is not None)
        self._stop = self._stop or leave.stop or next(stops, None)

    def _give_up(self, lane: _Lane, call: _Call, stop: Stop) -> None:
        """Do not wait for an answer any longer. What it brings later is dropped, and it gets no leave any more."""
        call.leave.withdraw()
        if call.answer.wait():
            # It came while the time was looked up.
            self._take(lane, call)
            return
        lane.call = None
        self._count(lane, call.leave)
        self._stop = self._stop or replace(stop, detail=_SILENT)
        outcomes = {v.ref: _unanswered(v.ref, call.leave, stop) for v in call.parcel.verdicts}
        self._write(call, outcomes)
        self._outcomes |= outcomes

    def _count(self, lane: _Lane, leave: Leave) -> None:
        self.requests += leave.machines
        now = self.door.clock.monotonic()
        self.door.pacer.answered(lane.scope, lane.allowance, requests=leave.requests, machines=leave.machines, now=now)

    def _write(self, call: _Call, outcomes: Mapping[InstanceRef, Outcome]) -> None:
        answered = [
            (number, outcomes[verdict.ref]) for number, verdict in zip(call.numbers, call.parcel.verdicts, strict=True)
        ]
        try:
            self.door.intents.answer_intents(answered, self.door.clock.now())
        except LedgerUnusableError as error:
            # The intents stand without an answer, which reads as unknown: nothing is sent again too soon.
            self._stop = self._stop or Stop(DeferReason.LEDGER_UNUSABLE, str(error))


def _sent(terminator: Terminator, parcel: Parcel, leave: Leave) -> Answers:
    """Send, and return the answer of each machine. In the thread of the call."""
    verdict, *others = parcel.verdicts
    if others and isinstance(terminator, BatchTerminator):
        return terminator.terminate_many([verdict.instance for verdict in parcel.verdicts], permitted=leave)
    try:
        terminator.terminate(verdict.ref, seen=verdict.instance, permitted=leave.for_one)
    except TerminateError as error:
        return {verdict.ref: error}
    return {verdict.ref: None}


def _outcome(ref: InstanceRef, call: _Call) -> Outcome:
    answers = call.answer.result()
    if ref not in answers:
        return Outcome(ref=ref, kind=OutcomeKind.UNKNOWN, detail="the provider did not say what became of it")
    error = answers[ref]
    if error is None:
        return Outcome(ref=ref, kind=OutcomeKind.REQUESTED)
    if isinstance(error, TerminationWithdrawnError):
        return replace(call.leave.refused(ref) or outcome_of(ref, error), detail=error.detail)
    if isinstance(error, _ASK_AGAIN) and len(call.parcel.verdicts) > 1:
        # Nothing was accepted under this intent: the next request has one of its own.
        return Outcome(ref=ref, kind=OutcomeKind.DEFERRED, error_code=error.error_code, detail=error.detail)
    return outcome_of(ref, error)


def _unanswered(ref: InstanceRef, leave: Leave, stop: Stop) -> Outcome:
    """Return what becomes of a machine whose answer is not waited for any longer."""
    if leave.was_named(ref):
        return Outcome(ref=ref, kind=OutcomeKind.UNKNOWN, detail=_SILENT)
    return leave.refused(ref) or left(ref, stop.reason)


def _not_begun(ref: InstanceRef, stop: Stop | None) -> Outcome:
    # Without a stop everything was tried; this cannot be, and if it were, nothing was sent.
    return left(ref, DeferReason.DEADLINE if stop is None else stop.reason)
