"""The orphan reaper's pass: observe, decide, act, report."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from providers.base import Clock, Lister
from providers.locations import Location
from providers.model import InstanceRef
from reaperd.core.census import count
from reaperd.core.conditions import conditions, with_stop
from reaperd.core.memory import Learned, learn_from
from reaperd.core.model import (
    DeferReason,
    Memory,
    Mode,
    Observation,
    Outcome,
    OutcomeKind,
    PassOutcome,
    PassReport,
    Plan,
    ReapPolicy,
    Refusal,
    RefusalReason,
)
from reaperd.core.reap import Picture, decide_on
from reaperd.core.telling import told_of_pass
from reaperd.core.tracking import bad_times, interest_in
from reaperd.core.whereabouts import unlisted
from reaperd.errors import LedgerUnusableError
from reaperd.passes.aside import Patience, Unanswered
from reaperd.passes.observe import Listing, fair, list_clouds, locate, read_registry
from reaperd.passes.ports import Acted, Errand, Hands, Notebook, Stopping
from reaperd.report.trail import record_of
from registry.base import RegistryReader
from registry.model import RegistrySnapshot

_READINGS = 3
"""How often the registry is read again when another process learned of it meanwhile."""

_REFUSABLE = frozenset(str(reason) for reason in RefusalReason)


@dataclass(frozen=True, slots=True)
class _Look:
    """What was seen, what was decided on it, and what it taught."""

    picture: Picture
    decision: Plan | Refusal
    learned: Learned | None = None

    @property
    def seen(self) -> Observation:
        """Return what was seen."""
        return self.picture.seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciler:
    """Everything that one reconcile pass needs. Whether it may act is a matter of the hands that it is given."""

    lister: Lister
    registry: RegistryReader
    notebook: Notebook
    hands: Hands
    policy: ReapPolicy
    mode: Mode
    clock: Clock
    deadline: timedelta
    stopping: Stopping
    clock_step: timedelta | None = None
    """How far (wall - boot time) moved since the previous pass of this process; None for the first."""
    pass_id: str = ""
    """Empty: a new one for each run."""

    def run(self) -> PassReport:
        """Run one pass and return its report. A refusal is a report, never an exception."""
        # Before the listing, so that every age is understated: the safe side.
        now = self.clock.now()
        ends_at = self.clock.monotonic() + self.deadline.total_seconds()
        pass_id = self.pass_id or uuid.uuid4().hex
        patience = Patience(self.clock, ends_at, self.stopping)
        listing = list_clouds(self.lister, patience)
        if listing.interrupted:
            return self._interrupted(pass_id, now, "asked to stop while the clouds were being listed")
        look = self._look(now, listing, patience)
        if isinstance(look, Unanswered):
            return self._interrupted(pass_id, now, "asked to stop while the registry was being read")
        acted = Acted(outcomes=())
        if isinstance(look.decision, Plan):
            acted = self.hands.carry_out(look.decision, look.seen, self.policy, Errand(pass_id, ends_at))
        return self._kept(self._report(pass_id, look, acted), look, acted)

    # ------------------------------------------------------------ observe and decide

    def _look(self, now: datetime, listing: Listing, patience: Patience) -> _Look | Unanswered:
        """Look for what is not listed, read the registry and the ledger, decide, and remember what was learned.

        The last three in one transaction. Unanswered when the process is to end, and the registry does not answer.
        """
        seen = Observation(
            now=now,
            instances=listing.instances,
            coverage=listing.coverage,
            registry=None,
            clock_step=self.clock_step,
            late=listing.late,
        )
        try:
            seen = replace(seen, located=self._located(seen, patience))
            reading = fair(patience)
            for _ in range(_READINGS):
                # After the clouds: a worker that registers during a slow listing is then still seen.
                known = self.notebook.known_epoch()
                registry = read_registry(self.registry, known, reading, interest_in(seen.instances, now))
                if isinstance(registry, Unanswered):
                    return registry
                seen = replace(seen, registry=registry)
                with self.notebook.transaction():
                    memory = self.notebook.recall(now)
                    if known == (memory.pin.epoch if memory.pin else None):
                        return self._decided(replace(seen, memory=memory, leader=self.notebook.leads(self.clock.now())))
        except LedgerUnusableError as error:
            trouble = str(error)
        else:
            trouble = "other processes write it all the time: is more than one daemon using it?"
        return self._without_ledger(replace(seen, ledger_trouble=trouble), patience)

    def _located(self, seen: Observation, patience: Patience) -> Mapping[InstanceRef, Location]:
        """Ask the clouds for the machines whose end was asked for and that they no longer list. Mostly there are none.

        Before the registry, for it is to be as fresh as can be. An intent that another process writes meanwhile is not
        asked about, and stays open.
        """
        asked = replace(seen, memory=Memory(intents=self.notebook.pending()))
        return locate(self.lister, unlisted(asked), patience)

    def _without_ledger(self, seen: Observation, patience: Patience) -> _Look | Unanswered:
        if seen.registry is None:
            interest = interest_in(seen.instances, seen.now)
            registry = read_registry(self.registry, None, fair(patience), interest)
            if isinstance(registry, Unanswered):
                return registry
            seen = replace(seen, registry=registry)
        picture = Picture(seen, self.policy)
        return _Look(picture, decide_on(picture))

    def _decided(self, seen: Observation) -> _Look:
        picture = Picture(seen, self.policy)
        decision = decide_on(picture)
        learned = learn_from(picture)
        if learned is not None:
            self.notebook.learn(learned, seen.now)
        return _Look(picture, decision, learned)

    # ------------------------------------------------------------ report

    def _report(self, pass_id: str, look: _Look, acted: Acted) -> PassReport:
        seen, decision = look.seen, look.decision
        outcomes = (*_confirmed(look.learned), *acted.outcomes)
        report = PassReport(
            pass_id=pass_id,
            mode=self.mode,
            started_at=seen.now,
            finished_at=max(self.clock.now(), seen.now),
            outcome=PassOutcome.COMPLETE,
            reason=None,
            coverage=seen.coverage,
            registry=seen.registry if isinstance(seen.registry, RegistrySnapshot) else None,
            digest=decision.digest,
            verdicts=decision.verdicts,
            confirmations_needed=self.policy.confirm_passes,
            outcomes=outcomes,
            missing=look.picture.missing,
            bad_rows=bad_times(seen.registry.workers, seen.now) if isinstance(seen.registry, RegistrySnapshot) else (),
            conditions=conditions(seen, self.policy, decision, outcomes),
            census=count(look.picture, outcomes),
            brake=seen.memory.brake,
        )
        if isinstance(decision, Refusal):
            also = tuple(str(reason) for reason in decision.also)
            return _refused(report, str(decision.reason), decision.detail, also)
        return _stopped(report, acted)

    def _kept(self, report: PassReport, look: _Look, acted: Acted) -> PassReport:
        """Write the report into a ledger that keeps it; a report that could not be written says so."""
        if look.seen.ledger_trouble is not None or not self.notebook.keeps:
            return report
        try:
            self.notebook.record(record_of(report, look.seen.memory.sightings), told_of_pass(report))
        except LedgerUnusableError as error:
            lost = replace(acted, stopped=DeferReason.LEDGER_UNUSABLE, detail=str(error))
            return _stopped(report, lost)
        return report

    def _interrupted(self, pass_id: str, now: datetime, detail: str) -> PassReport:
        return PassReport(
            pass_id=pass_id,
            mode=self.mode,
            started_at=now,
            finished_at=max(self.clock.now(), now),
            outcome=PassOutcome.DEFERRED,
            reason=str(DeferReason.STOPPING),
            detail=detail,
            confirmations_needed=self.policy.confirm_passes,
        )


def _stopped(report: PassReport, acted: Acted) -> PassReport:
    """Say of a pass that stopped while acting whether it was cut short, or never began."""
    if acted.stopped is None:
        return report
    reason = str(acted.stopped)
    report = replace(report, conditions=with_stop(report.conditions, acted.stopped, acted.detail))
    if acted.requests == 0 and reason in _REFUSABLE:
        # What was not recorded may have been refused before: the ledger's reason comes first, the others stay told.
        first = report.reason
        earlier = () if first is None or first == reason else (first, *report.also)
        return _refused(report, reason, acted.detail, earlier)
    return replace(report, outcome=PassOutcome.DEFERRED, reason=reason, detail=acted.detail)


def _refused(report: PassReport, reason: str, detail: str, also: tuple[str, ...]) -> PassReport:
    refused = replace(report, outcome=PassOutcome.REFUSED, reason=reason, detail=detail, also=also)
    if reason in {RefusalReason.REAP_HOLD, RefusalReason.BREAKER_OPEN}:
        return refused
    return replace(refused, verdicts=(), digest=None)


def _confirmed(learned: Learned | None) -> tuple[Outcome, ...]:
    intents = learned.confirmed_gone if learned is not None else ()
    return tuple(Outcome(ref=intent.ref, kind=OutcomeKind.CONFIRMED_GONE) for intent in intents)
