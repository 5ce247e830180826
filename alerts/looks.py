"""What was looked at, and what that can say of an alert: only who looked may say that something is over. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from alerts.model import Cause, Condition, Datum, Severity

DELAY = timedelta(minutes=15)
"""So long without a complete look, and a cause that mostly passes by itself is told."""
LATE_AFTER = 5
"""So many intervals without the end of a pass, and the passes are late."""

DELAYED = frozenset({Cause.LISTING_INCOMPLETE, Cause.DEADLINE, Cause.CLOCK})


class Domain(StrEnum):
    """Who looks."""

    RECONCILE = "reconcile"
    AUDIT = "audit"
    PACE = "pace"
    """Whoever watches that passes end."""


DOMAINS: Mapping[Cause, Domain] = {
    Cause.LEAK: Domain.AUDIT,
    Cause.TERMINATION_FAILED: Domain.RECONCILE,
    Cause.TERMINATION_PROTECTED: Domain.RECONCILE,
    Cause.TERMINATION_DENIED: Domain.RECONCILE,
    Cause.TERMINATION_STUCK: Domain.RECONCILE,
    Cause.INVALID_ID: Domain.RECONCILE,
    Cause.MANAGED_ORPHAN: Domain.RECONCILE,
    Cause.PROTECTED_ORPHAN: Domain.RECONCILE,
    Cause.AMBIGUOUS_WORKER: Domain.RECONCILE,
    Cause.FOREIGN_REGISTRY: Domain.RECONCILE,
    Cause.FOREIGN_ACCOUNT: Domain.RECONCILE,
    Cause.ROW_VANISHED: Domain.RECONCILE,
    Cause.OWNED_OUT_OF_SCOPE: Domain.AUDIT,
    Cause.HEARTBEATS_STOPPED: Domain.RECONCILE,
    Cause.BREAKER_OPEN: Domain.RECONCILE,
    Cause.REGISTRY_UNUSABLE: Domain.RECONCILE,
    Cause.REGISTRY_IDENTITY: Domain.RECONCILE,
    Cause.REGISTRY_MISMATCH: Domain.RECONCILE,
    Cause.WRONG_ACCOUNT: Domain.RECONCILE,
    Cause.LISTING_INCOMPLETE: Domain.RECONCILE,
    Cause.LEDGER_UNUSABLE: Domain.RECONCILE,
    Cause.CLOCK: Domain.RECONCILE,
    Cause.DEADLINE: Domain.RECONCILE,
    Cause.BLIND: Domain.RECONCILE,
    Cause.LATE: Domain.PACE,
}
"""Whose look finds each cause, and finds it gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How far somebody looked."""

    domain: Domain
    at: datetime
    """When it ended."""
    scopes: frozenset[str] = frozenset()
    """The scopes that were seen whole, as `provider/region`."""
    complete: bool
    """All that there is to see was seen: every scope, and for a reconcile pass the registry."""
    judged: bool = False
    """A decision was made on it, and the breaker was asked."""
    last_complete: datetime | None = None
    """The last complete look of this domain, of earlier processes too; None when there is none."""


def resolves(look: Look, condition: Condition) -> bool:
    """Say whether the look would have shown the condition if it still held."""
    if DOMAINS[condition.cause] is not look.domain:
        return False
    if look.domain is Domain.AUDIT:
        # Best effort: each scope for itself.
        return condition.scope in look.scopes
    if condition.cause is Cause.BREAKER_OPEN:
        return look.complete and look.judged
    return look.complete and (not condition.subject or condition.scope in look.scopes)


def counts(look: Look, condition: Condition) -> bool:
    """Say whether the look may raise the condition. What a sweep saw of a scope that failed is not to be relied on."""
    return look.domain is not Domain.AUDIT or condition.scope in look.scopes


def is_ripe(look: Look, condition: Condition, since: datetime) -> bool:
    """Say whether it is time to tell. `since`: when the condition was first seen."""
    if condition.cause not in DELAYED:
        return True
    return look.at - (look.last_complete or since) >= DELAY


def late(ended_at: datetime, now: datetime, interval: timedelta) -> tuple[Condition, ...]:
    """Return the condition that no pass has ended for too long, or nothing.

    `ended_at` is when the last pass ended, however it did; the start of the process when none has.
    """
    if now - ended_at < LATE_AFTER * interval:
        return ()
    data: dict[str, Datum] = {"last_ended_at": ended_at.isoformat(), "interval_seconds": interval.total_seconds()}
    return (Condition(cause=Cause.LATE, severity=Severity.WARNING, data=data),)
