"""How things stand, for probes and for a person: written by the jobs, read by the HTTP threads without a lock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from alerts.model import Condition
from providers.model import UNPROVEN, Coverage, ScopeFailure
from reaperd.core.leaks import AuditReport
from reaperd.core.model import Brake, Census, PassKind, PassOutcome, PassReport, RefusalReason
from reaperd.report.document import Document, condition_document, moment

SHOWN_CONDITIONS = 50
"""So many are told in one answer; the number of all is told with them."""

PATIENCE = timedelta(minutes=15)
"""So long an account may be unproved because the cloud does not answer; after that it is the credentials."""

_UNPROVED = frozenset(
    {
        RefusalReason.LEDGER_UNUSABLE,
        RefusalReason.WRONG_ACCOUNT,
        RefusalReason.REGISTRY_UNUSABLE,
        RefusalReason.REGISTRY_IDENTITY,
        RefusalReason.REGISTRY_MISMATCH,
    }
)
"""What makes the daemon unfit for its work until a person has looked. A silent cloud is not among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Last:
    """How the last run of a job ended."""

    pass_id: str
    started_at: datetime
    finished_at: datetime
    outcome: PassOutcome
    reason: str | None
    also: tuple[str, ...] = ()
    detail: str = ""

    def document(self) -> Document:
        """Return it as JSON data."""
        return {
            "pass_id": self.pass_id,
            "started_at": moment(self.started_at),
            "finished_at": moment(self.finished_at),
            "outcome": str(self.outcome),
            "reason": self.reason,
            "also": list(self.also),
            "detail": self.detail,
        }


@dataclass(slots=True)
class Standing:
    """What the last runs said. Each field is replaced whole, so a reader never sees half of one."""

    last: dict[PassKind, Last] = field(default_factory=dict)
    looked_at: dict[PassKind, datetime] = field(default_factory=dict)
    """The last complete look, whatever was decided on it."""
    completed_at: dict[PassKind, datetime] = field(default_factory=dict)
    census: Census | None = None
    brake: Brake | None = None
    conditions: tuple[Condition, ...] = ()
    leaks: int | None = None
    """None before the first sweep of this process."""
    reload_refused: str = ""
    """Why the last reload was refused; empty when it was not."""
    digest: str | None = None
    """Of the last pass's plan."""
    _looked: bool = False
    _unproved: tuple[str, ...] = ()
    _silent_since: datetime | None = None

    def restored(self, kind: PassKind, *, look: datetime | None, complete: datetime | None) -> None:
        """Take over what the ledger remembers of earlier processes."""
        if look is not None:
            self.looked_at[kind] = look
        if complete is not None:
            self.completed_at[kind] = complete

    def passed(self, report: PassReport) -> None:
        """Take in one reconcile pass."""
        kind = PassKind.RECONCILE
        self.last[kind] = Last(
            pass_id=report.pass_id,
            started_at=report.started_at,
            finished_at=report.finished_at,
            outcome=report.outcome,
            reason=report.reason,
            also=report.also,
            detail=report.detail,
        )
        self.conditions = report.conditions
        self.digest = report.digest
        self.brake = report.brake
        if report.census is not None:
            self.census = report.census
            self.looked_at[kind] = report.started_at
            self._looked = True
        if report.outcome is PassOutcome.COMPLETE:
            self.completed_at[kind] = report.started_at
        reasons = () if report.outcome is PassOutcome.COMPLETE else (report.reason, *report.also)
        unproved = tuple(str(reason) for reason in reasons if reason in _UNPROVED)
        self._silent_since = _silent_since(self._silent_since, report)
        if _is_silent(report.coverage) and report.finished_at - (self._silent_since or report.finished_at) < PATIENCE:
            unproved = tuple(reason for reason in unproved if reason != RefusalReason.WRONG_ACCOUNT)
        self._unproved = unproved

    def swept(self, report: AuditReport) -> None:
        """Take in one sweep."""
        kind = PassKind.AUDIT
        self.last[kind] = Last(
            pass_id=report.pass_id,
            started_at=report.started_at,
            finished_at=report.finished_at,
            outcome=report.outcome,
            reason=report.reason,
            detail=report.detail,
        )
        self.leaks = len(report.findings.leaks)
        if report.outcome is PassOutcome.COMPLETE:
            self.looked_at[kind] = self.completed_at[kind] = report.started_at

    def failed(self, kind: PassKind, at: datetime) -> None:
        """Take in a run that ended with an error nobody expected."""
        self.last[kind] = Last(
            pass_id="", started_at=at, finished_at=at, outcome=PassOutcome.ERROR, reason=None, detail="see the log"
        )

    def readiness(self, *, standby: bool) -> str:
        """Return what keeps the daemon from being ready, in words; empty when it is."""
        if self._unproved:
            return f"not proved: {', '.join(self._unproved)}"
        last = self.last.get(PassKind.RECONCILE)
        if last is not None and last.outcome is PassOutcome.ERROR:
            return "the last pass ended with an error: see the log"
        if standby:
            return ""
        return "" if self._looked else "no complete look yet"

    def document(self, now: datetime) -> Document:
        """Return it as JSON data, as of now."""
        return {
            "now": moment(now),
            "last": {str(kind): last.document() for kind, last in self.last.items()},
            "last_look": _moments(self.looked_at),
            "last_complete": _moments(self.completed_at),
            "plan_digest": self.digest,
            "brake": _brake(self.brake),
            "held": {} if self.census is None else {str(reason): n for reason, n in self.census.held.items() if n},
            "scopes": _scopes(self.census),
            "leaks": self.leaks,
            "reload_refused": self.reload_refused,
            "conditions": [condition_document(one) for one in self._worst_first()[:SHOWN_CONDITIONS]],
            "conditions_total": len(self.conditions),
        }

    def _worst_first(self) -> list[Condition]:
        """Return the conditions, the most severe first: not all of them are shown."""
        return sorted(self.conditions, key=lambda one: (-one.severity.rank, one.key))


def _is_silent(coverage: Iterable[Coverage]) -> bool:
    """Say whether the account is unproved only because nobody says who calls: a cloud that is down, or credentials."""
    wrong = [entry for entry in coverage if entry.failure is ScopeFailure.WRONG_ACCOUNT]
    return bool(wrong) and all(entry.error_code == UNPROVEN for entry in wrong)


def _silent_since(before: datetime | None, report: PassReport) -> datetime | None:
    return (before or report.finished_at) if _is_silent(report.coverage) else None


def _moments(times: Mapping[PassKind, datetime]) -> Document:
    return {str(kind): moment(time) for kind, time in times.items()}


def _brake(brake: Brake | None) -> Document | None:
    return None if brake is None else {"since": moment(brake.since), "by": brake.by, "reason": brake.reason}


def _scopes(census: Census | None) -> list[Document]:
    if census is None:
        return []
    return [
        {
            "scope": str(scope),
            "owned": counted.owned,
            "orphans": counted.orphans,
            "would_terminate": counted.would_terminate,
            "terminating": counted.terminating,
            "missing": counted.missing,
        }
        for scope, counted in census.scopes.items()
    ]
