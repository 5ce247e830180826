"""The samples of each metric, from what is known. Pure.

Each metric is a part of its own, so that one that cannot be made costs the page nothing but itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from providers.model import Scope
from providers.parsers import Parser
from reaperd.core.census import LeakCensus, ScopeCensus
from reaperd.core.model import Mode, PassKind
from reaperd.report import series
from reaperd.report.known import Durations, Frozen, Known
from reaperd.report.series import Labels, Series


@dataclass(frozen=True, slots=True)
class Histogram:
    """One histogram, its buckets cumulative."""

    labels: Labels
    buckets: tuple[tuple[str, float], ...]
    sum_seconds: float


Sample = tuple[Labels, float]
Part = Callable[[Known], Iterable[Sample]]


def histograms(known: Known) -> Iterator[Histogram]:
    """Yield how long passes took, by kind."""
    for kind, durations in known.durations.of.items():
        yield Histogram((str(kind),), tuple(_cumulative(durations)), durations.sum_seconds)


def _cumulative(durations: Durations) -> Iterator[tuple[str, float]]:
    total = 0
    for bound, number in zip((*map(str, series.BUCKETS_SECONDS), "+Inf"), durations.buckets, strict=True):
        total += number
        yield bound, float(total)


# ---------------------------------------------------------------- the kinds of parts


def _one(read: Callable[[Known], float | None], known: Known) -> Iterator[Sample]:
    value = read(known)
    if value is not None:
        yield (), float(value)


def _by_kind(read: Callable[[Known], Frozen[PassKind, datetime]], known: Known) -> Iterator[Sample]:
    for kind, moment in read(known).of.items():
        yield (str(kind),), moment.timestamp()


def _by_scope(read: Callable[[ScopeCensus], float | None], known: Known) -> Iterator[Sample]:
    """Yield a figure of the last complete look for each scope that the settings still want."""
    counted: Mapping[Scope, ScopeCensus] = known.census.scopes if known.census is not None else {}
    for scope, one in counted.items():
        value = read(one)
        if value is not None and known.covers(PassKind.RECONCILE, scope):
            yield _place(scope), float(value)


def _by_swept_scope(read: Callable[[LeakCensus], float | None], known: Known) -> Iterator[Sample]:
    for scope, one in known.leaks.items():
        value = read(one)
        if value is not None and known.covers(PassKind.AUDIT, scope):
            yield _place(scope), float(value)


def _counts(which: Series, known: Known) -> Iterator[Sample]:
    for labels, number in known.counts.of.get(which, {}).items():
        yield labels, float(number)


# ---------------------------------------------------------------- the others


def _version(known: Known) -> Iterator[Sample]:
    yield (known.version,), 1.0


def _modes(known: Known) -> Iterator[Sample]:
    if known.mode is not None:
        for mode in Mode:
            yield (str(mode),), float(mode == known.mode)


def _parsers(known: Known) -> Iterator[Sample]:
    if known.parser is not None:
        for parser in Parser:
            yield (str(parser),), float(parser is known.parser)


def _intervals(known: Known) -> Iterator[Sample]:
    for kind, interval in known.intervals.items():
        yield (str(kind),), interval.total_seconds()


def _scopes_up(known: Known) -> Iterator[Sample]:
    for kind, scopes in known.up.of.items():
        for scope, up in scopes.items():
            if known.covers(kind, scope):
                yield (str(kind), *_place(scope)), float(up)


def _skipped(known: Known) -> Iterator[Sample]:
    if known.skipped is not None:
        for provider in sorted(known.providers):
            yield (provider,), float(provider in known.skipped)


def _held(known: Known) -> Iterator[Sample]:
    if known.census is not None:
        for reason, number in known.census.held.items():
            yield (str(reason),), float(number)


def _workers(known: Known) -> Iterator[Sample]:
    if known.census is not None:
        for state, number in known.census.workers.items():
            yield (str(state),), float(number)


def _place(scope: Scope) -> tuple[str, str]:
    return scope.provider, scope.region


def _seconds(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()


PARTS: Mapping[Series, Part] = {
    series.BUILD_INFO: _version,
    series.MODE: _modes,
    series.LISTING_PARSER: _parsers,
    series.LEADER: partial(_one, lambda known: known.leader),
    series.RELOAD_OK: partial(_one, lambda known: None if known.reloaded is None else known.reloaded[0]),
    series.RELOAD_AT: partial(_one, lambda known: None if known.reloaded is None else known.reloaded[1].timestamp()),
    series.LEDGER_CREATED: partial(_one, lambda known: _seconds(known.ledger_created_at)),
    series.PASSES: partial(_counts, series.PASSES),
    series.REFUSALS: partial(_counts, series.REFUSALS),
    series.LAST_ATTEMPT: partial(_by_kind, lambda known: known.attempts),
    series.LAST_LOOK: partial(_by_kind, lambda known: known.looks),
    series.LAST_COMPLETE: partial(_by_kind, lambda known: known.completes),
    series.INTERVAL: _intervals,
    series.MISSED: partial(_counts, series.MISSED),
    series.SCOPE_UP: _scopes_up,
    series.OWNED: partial(_by_scope, lambda one: one.owned),
    series.ORPHANS: partial(_by_scope, lambda one: one.orphans),
    series.OLDEST_ORPHAN: partial(_by_scope, lambda one: _seconds(one.oldest_orphan_seen_at)),
    series.HELD: _held,
    series.WOULD_TERMINATE: partial(_by_scope, lambda one: one.would_terminate),
    series.TERMINATING: partial(_by_scope, lambda one: one.terminating),
    series.TERMINATIONS: partial(_counts, series.TERMINATIONS),
    series.MISSING: partial(_by_scope, lambda one: one.missing),
    series.REGISTRY_UP: partial(_one, lambda known: known.registry_up),
    series.REGISTRY_WORKERS: _workers,
    series.REGISTRY_EPOCH: partial(_one, lambda known: None if known.census is None else known.census.epoch),
    series.BREAKER_OPEN: partial(_one, lambda known: known.breaker_open),
    series.REAP_HOLD: partial(_one, lambda known: known.held),
    series.UNOWNED: partial(_by_swept_scope, lambda one: one.running),
    series.UNOWNED_STOPPED: partial(_by_swept_scope, lambda one: one.stopped),
    series.UNOWNED_OLDEST: partial(_by_swept_scope, lambda one: _seconds(one.oldest_start)),
    series.LEAK_COST: partial(_by_swept_scope, lambda one: one.cost_per_hour_usd),
    series.NEAR_MISSES: partial(_by_swept_scope, lambda one: one.near_misses),
    series.OUT_OF_SCOPE: partial(_by_swept_scope, lambda one: one.out_of_scope),
    series.AUDIT_SKIPPED: _skipped,
    series.ALERTS: partial(_counts, series.ALERTS),
    series.REQUESTS: partial(_counts, series.REQUESTS),
}
"""All but the histogram and the count of what could not be made."""
