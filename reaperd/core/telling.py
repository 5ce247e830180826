"""What a pass has to tell people, and which alerts anybody still looks after. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from alerts.lifecycle import Audience, Book, Policy
from alerts.looks import DOMAINS, Domain, Look
from alerts.model import Cause, Condition, Notification
from alerts.mutes import Mute, is_muted
from providers.model import Coverage, Scope
from reaperd.core.leaks import AuditReport
from reaperd.core.model import PassOutcome, PassReport, RefusalReason

_JUDGED = frozenset({RefusalReason.REAP_HOLD, RefusalReason.BREAKER_OPEN})
"""Refusals of a plan: the breaker was asked before them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """What somebody found, and how far they looked."""

    conditions: tuple[Condition, ...]
    look: Look


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """Who is told, and what is looked after, as the configuration has it."""

    policy: Policy
    """Its mutes are not in it: they are in the ledger, where `reaperd mute` puts them."""
    levels: tuple[Audience, ...] = ()
    """The channels that are told all that holds after each look, and keep track themselves."""
    providers: frozenset[str]
    scopes: frozenset[Scope]
    """Those that the configuration names."""
    discovering: frozenset[str] = frozenset()
    """Providers whose scopes no configuration names."""

    def covers(self, condition: Condition) -> bool:
        """Say whether some look may still find that this is over. The audit looks everywhere at its providers."""
        if not condition.scope:
            return True
        provider, _, region = condition.scope.partition("/")
        if provider not in self.providers:
            return False
        audited = DOMAINS[condition.cause] is Domain.AUDIT
        return audited or provider in self.discovering or Scope(provider, region) in self.scopes


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A message that its channel has not taken yet."""

    seq: int
    channel: str
    notification: Notification | None
    """None when what is stored cannot be read: it was not written by this program, or by a later one."""
    due_at: datetime
    attempts: int
    next_try_at: datetime
    last_error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptMute:
    """A mute, and who wanted it."""

    mute: Mute
    by: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarmed:
    """All that the ledger keeps about alerts."""

    book: Book = field(hash=False)
    waiting: tuple[Waiting, ...]
    """What no channel has taken yet, oldest first."""
    mutes: tuple[KeptMute, ...]
    """Those that are over too, until the next look."""

    def is_muted(self, key: str, now: datetime) -> bool:
        """Say whether an alert with this key is not told now."""
        return is_muted(key, (kept.mute for kept in self.mutes), now)


def told_of_pass(report: PassReport) -> Telling:
    """Return what a reconcile pass tells through the ledger: everything but that the ledger cannot be used."""
    look = Look(
        domain=Domain.RECONCILE,
        at=report.finished_at,
        scopes=_whole(report.coverage),
        complete=report.census is not None,
        judged=report.outcome in {PassOutcome.COMPLETE, PassOutcome.DEFERRED} or report.reason in _JUDGED,
    )
    return Telling(conditions=tuple(c for c in report.conditions if c.cause is not Cause.LEDGER_UNUSABLE), look=look)


def told_of_sweep(report: AuditReport) -> Telling:
    """Return what a sweep tells."""
    look = Look(
        domain=Domain.AUDIT,
        at=report.finished_at,
        scopes=frozenset(map(str, report.seen_whole)),
        complete=report.outcome is PassOutcome.COMPLETE,
    )
    return Telling(conditions=report.findings.conditions, look=look)


def told_of_the_ledger(report: PassReport) -> Telling:
    """Return what a reconcile pass tells of the ledger itself, which can go through no ledger."""
    found = tuple(c for c in report.conditions if c.cause is Cause.LEDGER_UNUSABLE)
    # Whatever else it saw: a pass that kept its report has used the ledger.
    return Telling(conditions=found, look=Look(domain=Domain.RECONCILE, at=report.finished_at, complete=not found))


def told_of_the_pace(conditions: Iterable[Condition], now: datetime) -> Telling:
    """Return what whoever watches the pace of the passes tells."""
    return Telling(conditions=tuple(conditions), look=Look(domain=Domain.PACE, at=now, complete=True))


def _whole(coverage: Iterable[Coverage]) -> frozenset[str]:
    return frozenset(str(entry.scope) for entry in coverage if entry.ok)
