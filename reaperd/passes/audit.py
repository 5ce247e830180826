"""The leak watchdog's sweep: looks at everything that runs, and tells. It holds no terminator at all."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from providers.base import Clock, InstanceAuditor
from providers.model import AuditSweep
from reaperd.core.guards import clock_trouble
from reaperd.core.leaks import AuditPolicy, AuditReport, find_leaks
from reaperd.core.model import DeferReason, PassOutcome, RefusalReason
from reaperd.core.starts import NO_STARTS, LearnedStarts, Starts, learn_starts
from reaperd.passes.aside import Aside, Patience, Unanswered
from reaperd.passes.ports import Stopping

_NOTHING = AuditSweep(instances=(), coverage=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Auditor:
    """Everything that one sweep needs."""

    auditor: InstanceAuditor
    policy: AuditPolicy
    clock: Clock
    deadline: timedelta
    stopping: Stopping
    pass_id: str = ""
    """Empty: a new one for each run."""
    remembered: Starts = field(default_factory=lambda: NO_STARTS, hash=False)
    """Since when machines run, by earlier sweeps."""
    clock_step: timedelta | None = None
    """How far this machine's clock moved since the previous sweep (rule 16)."""

    def run(self) -> AuditReport:
        """Sweep once. A scope that failed is in the coverage; what the others showed is reported all the same.

        Ends at the deadline, or soon after the process was asked to: what a hung call brings later is dropped.
        """
        now = self.clock.now()
        ends_at = self.clock.monotonic() + self.deadline.total_seconds()
        answer = Aside(self.auditor.audit_instances)
        answer.start("audit")
        match answer.outwaited(Patience(self.clock, ends_at, self.stopping)):
            case Unanswered.INTERRUPTED:
                detail = "asked to stop while the clouds were being looked at"
                return self._cut_short(now, PassOutcome.DEFERRED, DeferReason.STOPPING, detail)
            case Unanswered.LATE:
                detail = "the clouds had not answered in time"
                return self._cut_short(now, PassOutcome.REFUSED, RefusalReason.DEADLINE, detail)
            case None:
                return self._told(now, answer.result())

    def _told(self, now: datetime, sweep: AuditSweep) -> AuditReport:
        trouble = clock_trouble(self.clock_step, sweep.coverage)
        if trouble is not None:
            return self._report(now, sweep, outcome=PassOutcome.REFUSED, reason=RefusalReason.CLOCK, detail=trouble)
        whole = bool(sweep.coverage) and all(entry.ok for entry in sweep.coverage)
        broken = [f"{entry.scope} ({entry.error_code})" for entry in sweep.coverage if not entry.ok]
        return self._report(
            now,
            sweep,
            outcome=PassOutcome.COMPLETE if whole else PassOutcome.REFUSED,
            reason=None if whole else RefusalReason.LISTING_INCOMPLETE,
            detail=", ".join(broken) or ("" if whole else "no scope was looked at"),
        )

    def _cut_short(
        self, now: datetime, outcome: PassOutcome, reason: RefusalReason | DeferReason, detail: str
    ) -> AuditReport:
        return self._report(now, _NOTHING, outcome=outcome, reason=reason, detail=detail)

    def _report(
        self,
        now: datetime,
        sweep: AuditSweep,
        *,
        outcome: PassOutcome,
        reason: RefusalReason | DeferReason | None,
        detail: str,
    ) -> AuditReport:
        return AuditReport(
            pass_id=self.pass_id or uuid.uuid4().hex,
            started_at=now,
            finished_at=max(self.clock.now(), now),
            outcome=outcome,
            reason=None if reason is None else str(reason),
            detail=detail,
            coverage=sweep.coverage,
            skipped=sweep.skipped,
            events=sweep.events,
            unheard=sweep.unheard,
            findings=find_leaks(sweep.instances, self.policy, now, self.remembered, sweep.events),
            # By a clock that is behind or ahead, a machine would be remembered as old, or as never seen.
            learned=LearnedStarts() if reason is RefusalReason.CLOCK else learn_starts(sweep, self.remembered, now),
        )
