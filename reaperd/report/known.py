"""What the metrics know, as one frozen value, and how each event changes it. Pure.

A reader that has the value has all of it as of one moment: a scrape needs no lock, and never sees half a pass.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import product
from types import MappingProxyType
from typing import Generic, TypeVar

from providers.instrumented import Operation, RequestResult
from providers.model import Coverage, Scope
from providers.parsers import Parser
from reaperd.core.census import Census, LeakCensus, count_leaks
from reaperd.core.leaks import AuditReport
from reaperd.core.model import OutcomeKind, PassKind, PassOutcome, PassReport, RefusalReason
from reaperd.report.series import (
    ALERTS,
    BUCKETS_SECONDS,
    CLOSED,
    COUNTED_OUTCOMES,
    MISSED,
    PASSES,
    REFUSALS,
    REQUESTS,
    TERMINATIONS,
    Delivery,
    Labels,
    Series,
)

K = TypeVar("K")
V = TypeVar("V")

_NO_REGION = "*"
"""What a provider answers for that could not even say which regions it has. Once it can, nothing of that stays."""
_UNUSABLE = frozenset({RefusalReason.REGISTRY_UNUSABLE, RefusalReason.REGISTRY_IDENTITY})


@dataclass(frozen=True, slots=True)
class Frozen(Generic[K, V]):
    """A mapping that is replaced whole when it changes."""

    of: Mapping[K, V] = field(default_factory=lambda: MappingProxyType({}))

    def having(self, key: K, value: V) -> Frozen[K, V]:
        """Return it with one entry more, or another value in one."""
        return Frozen(MappingProxyType({**self.of, key: value}))


@dataclass(frozen=True, slots=True)
class Durations:
    """A histogram: how many fell into each bucket, the last one without a bound, and their sum."""

    buckets: tuple[int, ...] = (0,) * (len(BUCKETS_SECONDS) + 1)
    sum_seconds: float = 0.0

    def having(self, seconds: float) -> Durations:
        """Return it with one observation more."""
        place = bisect_left(BUCKETS_SECONDS, seconds)
        counted = (*self.buckets[:place], self.buckets[place] + 1, *self.buckets[place + 1 :])
        return Durations(counted, self.sum_seconds + seconds)


Counts = Frozen[Series, Mapping[Labels, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Everything that the page tells."""

    version: str
    counts: Counts
    parser: Parser | None = None
    """What reads listings; None where nobody said."""
    mode: str | None = None
    """None before the settings are known."""
    providers: frozenset[str] = frozenset()
    scopes: frozenset[Scope] = frozenset()
    """What the configuration names. A provider without one here finds its scopes at run time."""
    intervals: Mapping[PassKind, timedelta] = field(default_factory=lambda: MappingProxyType({}))
    durations: Frozen[PassKind, Durations] = Frozen(MappingProxyType({kind: Durations() for kind in PassKind}))
    attempts: Frozen[PassKind, datetime] = Frozen()
    looks: Frozen[PassKind, datetime] = Frozen()
    completes: Frozen[PassKind, datetime] = Frozen()
    up: Frozen[PassKind, Mapping[Scope, bool]] = Frozen()
    census: Census | None = None
    """Of the last complete look; None before the first of this process."""
    leaks: Mapping[Scope, LeakCensus] = field(default_factory=lambda: MappingProxyType({}))
    """Of each scope, from the last sweep that saw it whole."""
    skipped: frozenset[str] | None = None
    """Providers that the last sweep could not audit; None before the first."""
    registry_up: bool | None = None
    breaker_open: bool | None = None
    held: bool | None = None
    leader: bool = False
    reloaded: tuple[bool, datetime] | None = None
    ledger_created_at: datetime | None = None
    stray: int = 0
    """Events whose labels are in no closed set: not counted, so that no counter begins at 1."""
    last_stray: str = ""

    # ------------------------------------------------------------ the settings

    def configured(self, mode: str, providers: Iterable[str], scopes: Iterable[Scope]) -> Known:
        """Return what is known under other settings. Counters of a provider that was dropped stay: they count on."""
        named = frozenset(providers)
        counts = _with_zeros(self.counts, TERMINATIONS, sorted(named), COUNTED_OUTCOMES)
        counts = _with_zeros(counts, REQUESTS, sorted(named), Operation, RequestResult)
        return replace(self, mode=mode, providers=named, scopes=frozenset(scopes), counts=counts)

    def alerting(self, channels: Iterable[str]) -> Known:
        """Return what is known with these alert channels."""
        return replace(self, counts=_with_zeros(self.counts, ALERTS, channels, Delivery))

    def covers(self, kind: PassKind, scope: Scope) -> bool:
        """Say whether the settings still want this scope. The audit looks everywhere at its providers."""
        if scope.provider not in self.providers:
            return False
        discovered = all(each.provider != scope.provider for each in self.scopes)
        return kind is PassKind.AUDIT or discovered or scope in self.scopes

    # ------------------------------------------------------------ passes

    def passed(self, report: PassReport) -> Known:
        """Return what is known after a reconcile pass."""
        kind = PassKind.RECONCILE
        known = self.ended(kind, report.outcome, (report.finished_at - report.started_at).total_seconds())
        if report.outcome is PassOutcome.REFUSED:
            known = known.counted(REFUSALS, str(report.reason))
        for outcome in report.outcomes:
            if outcome.kind is not OutcomeKind.WOULD_TERMINATE:
                known = known.counted(TERMINATIONS, outcome.ref.provider, outcome.kind)
        if report.outcome is PassOutcome.COMPLETE:
            known = replace(known, completes=known.completes.having(kind, report.started_at))
        if report.outcome is not PassOutcome.DEFERRED or report.coverage:
            known = _registry_read(_covered(known, kind, report.coverage), report)
        return _looked(known, report)

    def swept(self, report: AuditReport) -> Known:
        """Return what is known after a sweep. Of a scope that failed, it is what was known before (rule 26)."""
        kind = PassKind.AUDIT
        known = self.ended(kind, report.outcome, (report.finished_at - report.started_at).total_seconds())
        if report.outcome is PassOutcome.COMPLETE:
            known = replace(
                known,
                looks=known.looks.having(kind, report.started_at),
                completes=known.completes.having(kind, report.started_at),
            )
        known = replace(known, leaks=MappingProxyType({**_kept(self.leaks, report), **count_leaks(report)}))
        if report.coverage or report.skipped:
            known = replace(known, skipped=frozenset(report.skipped))
        return _covered(known, kind, report.coverage)

    def ended(self, kind: PassKind, outcome: PassOutcome, seconds: float) -> Known:
        """Return what is known after a pass of which nothing is known but how it ended."""
        longer = self.durations.having(kind, self.durations.of[kind].having(seconds))
        return replace(self, durations=longer).counted(PASSES, kind, outcome)

    def counted(self, series: Series, *labels: str) -> Known:
        """Return what is known with one event more."""
        before = self.counts.of.get(series, {})
        if labels not in before:
            return replace(self, stray=self.stray + 1, last_stray=f"{series.name} {', '.join(labels)}")
        return replace(self, counts=self.counts.having(series, {**before, labels: before[labels] + 1}))


def nothing_known(version: str, parser: Parser | None = None) -> Known:
    """Return what is known at the start: the counters that need no settings, all at 0."""
    counts: Counts = Frozen()
    for series in (PASSES, REFUSALS, MISSED):
        counts = _with_zeros(counts, series, *(CLOSED[series, label] for label in series.labels))
    return Known(version=version, counts=counts, parser=parser)


def _with_zeros(counts: Counts, series: Series, *values: Iterable[str]) -> Counts:
    """Return the counts with every combination of labels present."""
    every = dict.fromkeys(product(*(tuple(map(str, each)) for each in values)), 0)
    return counts.having(series, {**every, **counts.of.get(series, {})})


def _kept(leaks: Mapping[Scope, LeakCensus], report: AuditReport) -> Mapping[Scope, LeakCensus]:
    """Return what stays known of the scopes that this sweep did not see whole.

    A scope that is not named at all is one less (a region was switched off), but only where everything was seen:
    credentials that fail, or a list of regions that cannot be had, leave scopes unnamed too.
    """
    whole = {entry.scope.provider for entry in report.coverage} - {
        entry.scope.provider for entry in report.coverage if not entry.ok
    }
    named = {entry.scope for entry in report.coverage}
    return {scope: counted for scope, counted in leaks.items() if scope in named or scope.provider not in whole}


def _covered(known: Known, kind: PassKind, coverage: tuple[Coverage, ...]) -> Known:
    """Take over which scopes were seen whole.

    One that was known and is not named was not, where something failed: credentials that fail, or a list of regions
    that cannot be had, leave scopes unnamed. Where everything was seen, it is one less.
    """
    named = {entry.scope: entry.ok for entry in coverage}
    failed = {entry.scope.provider for entry in coverage if not entry.ok}
    before = known.up.of.get(kind, {})
    # Without any coverage nothing came back at all, or not in time.
    unseen = {scope: False for scope in before if (not coverage or scope.provider in failed) and _is_a_region(scope)}
    return replace(known, up=known.up.having(kind, MappingProxyType({**unseen, **named})))


def _is_a_region(scope: Scope) -> bool:
    return scope.region != _NO_REGION


def _registry_read(known: Known, report: PassReport) -> Known:
    unusable = report.registry is None or not _UNUSABLE.isdisjoint({report.reason, *report.also})
    return replace(known, registry_up=not unusable)


def _looked(known: Known, report: PassReport) -> Known:
    """Take over what a complete look counted; of another, only that the brake is on."""
    reasons = {report.reason, *report.also}
    held = RefusalReason.REAP_HOLD in reasons
    if report.census is None:
        return replace(known, held=held or known.held)
    return replace(
        known,
        census=report.census,
        looks=known.looks.having(PassKind.RECONCILE, report.started_at),
        breaker_open=RefusalReason.BREAKER_OPEN in reasons,
        held=held,
    )
