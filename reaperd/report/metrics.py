"""The metrics, for Prometheus: what the passes reported, as a page. The only home of prometheus_client.

Every event replaces one frozen value together with the text that tells it, and a scrape reads whichever is there. It
waits for no pass, cloud, registry or lock, and sees all of a pass or nothing of it. The text is written by whoever
brings the event: a scrape that had to write it would compete with a deciding pass for the interpreter, line by line.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from types import MappingProxyType

from prometheus_client import GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST as CONTENT_TYPE_OPENMETRICS
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.registry import CollectorRegistry

from providers.base import Clock
from providers.model import Scope
from providers.parsers import Parser
from reaperd.core.leaks import AuditReport
from reaperd.core.model import PassKind, PassOutcome, PassReport
from reaperd.report.known import Known, nothing_known
from reaperd.report.logs import Logger
from reaperd.report.negotiation import prefers_openmetrics
from reaperd.report.samples import PARTS, histograms
from reaperd.report.series import (
    ALERTS,
    ALL,
    COLLECTOR_ERRORS,
    DURATION,
    MISSED,
    REQUESTS,
    Delivery,
    Series,
    SeriesKind,
)
from reaperd.report.visible import visible

Family = Callable[[], Iterable[Metric]]

FRESH_SECONDS = 3.0
"""How old a sample of the process may be on a page. Without a younger one, the scrape takes it itself."""

_END = b"# EOF\n"
"""The last line of OpenMetrics."""


@dataclass(frozen=True, slots=True)
class _Current:
    """What is known, and the text of it in each format that somebody asked for; True is OpenMetrics."""

    known: Known
    texts: Mapping[bool, bytes]


class Metrics:
    """Takes in what happens, from any thread, and gives out the page, to any number of threads."""

    def __init__(self, *, version: str, clock: Clock, log: Logger | None = None, parser: Parser | None = None) -> None:
        """Begin with every counter that needs no settings at 0. Without a log, what fails is only counted.

        `parser` is what reads the listings of this process.
        """
        self._clock = clock
        self._current = _Current(nothing_known(version, parser), MappingProxyType({}))
        self._writing = threading.Lock()
        self._page = _Page(log)

    # ------------------------------------------------------------ what happens

    def configured(
        self,
        *,
        mode: str,
        providers: Iterable[str],
        scopes: Iterable[Scope],
        intervals: Mapping[PassKind, timedelta],
        channels: Iterable[str] = (),
    ) -> None:
        """Take over the settings, at the start and after each reload. The first ones count as a reload that worked."""
        now = self._clock.now()

        def change(known: Known) -> Known:
            told = known.configured(mode, providers, scopes).alerting(channels)
            frozen = MappingProxyType(dict(intervals))
            return replace(told, intervals=frozen, reloaded=known.reloaded or (True, now))

        self._change(change)

    def restored(
        self, kind: PassKind, *, attempt: datetime | None, look: datetime | None, complete: datetime | None
    ) -> None:
        """Take over what the ledger remembers of earlier processes."""

        def change(known: Known) -> Known:
            return replace(
                known,
                attempts=known.attempts if attempt is None else known.attempts.having(kind, attempt),
                looks=known.looks if look is None else known.looks.having(kind, look),
                completes=known.completes if complete is None else known.completes.having(kind, complete),
            )

        self._change(change)

    def attempted(self, kind: PassKind, at: datetime) -> None:
        """Take in that a pass begins."""
        self._change(lambda known: replace(known, attempts=known.attempts.having(kind, at)))

    def passed(self, report: PassReport) -> None:
        """Take in a reconcile pass."""
        self._change(lambda known: known.passed(report))

    def swept(self, report: AuditReport) -> None:
        """Take in a sweep."""
        self._change(lambda known: known.swept(report))

    def failed(self, kind: PassKind, seconds: float) -> None:
        """Take in a pass that ended with an error nobody expected."""
        self._change(lambda known: known.ended(kind, PassOutcome.ERROR, seconds))

    def missed(self, kind: PassKind) -> None:
        """Take in a scheduled run that did not start."""
        self._change(lambda known: known.counted(MISSED, kind))

    def leading(self, leads: bool) -> None:  # noqa: FBT001 - the one thing that it says
        """Take in whether the lease is ours."""
        self._change(lambda known: replace(known, leader=leads))

    def braked(self, on: bool) -> None:  # noqa: FBT001 - the one thing that it says
        """Take in whether the brake is on. A pass that saw it says so too."""
        self._change(lambda known: replace(known, held=on))

    def reloaded(self, *, successful: bool, at: datetime) -> None:
        """Take in a reload of the settings."""
        self._change(lambda known: replace(known, reloaded=(successful, at)))

    def ledger_created(self, at: datetime | None) -> None:
        """Take in how old the ledger is; None: there is none."""
        self._change(lambda known: replace(known, ledger_created_at=at))

    def requested(self, provider: str, operation: str, result: str) -> None:
        """Take in one operation on a provider. Never raises."""
        self._change(lambda known: known.counted(REQUESTS, provider, operation, result))

    def alerted(self, channel: str, outcome: Delivery) -> None:
        """Take in what became of one message to an alert channel."""
        self._change(lambda known: known.counted(ALERTS, channel, outcome))

    def sample(self) -> None:
        """Take in how the process itself is doing. To be called every second or so, by nobody who is waited for.

        The kernel tells that in files. A scrape that read them would have to get the interpreter back from a pass after
        each of a dozen calls.
        """
        self._page.sample(self._clock.monotonic())

    def _change(self, change: Callable[[Known], Known]) -> None:
        # Writers wait for one another, never for a scrape: that only reads the reference.
        with self._writing:
            before = self._current
            known = change(before.known)
            texts = {openmetrics: self._page.text(known, openmetrics=openmetrics) for openmetrics in before.texts}
            self._current = _Current(known, MappingProxyType(texts))
        if known.stray > before.known.stray:
            self._page.told(known.last_stray, "no such series: the event was not counted")

    # ------------------------------------------------------------ the page

    def page(self, accept: str) -> tuple[bytes, str]:
        """Return the page and its content type, in OpenMetrics for whoever prefers it. Never raises."""
        openmetrics = prefers_openmetrics(accept)
        current = self._current
        text = current.texts.get(openmetrics)
        if text is None:
            text = self._page.text(current.known, openmetrics=openmetrics)
            self._keep(current, openmetrics, text)
        content_type = CONTENT_TYPE_OPENMETRICS if openmetrics else CONTENT_TYPE_PLAIN_0_0_4
        now = self._clock.monotonic()
        return text + self._page.process(current.known, now, openmetrics=openmetrics), content_type

    def _keep(self, told: _Current, openmetrics: bool, text: bytes) -> None:  # noqa: FBT001 - a key of the texts
        """Keep the first text in a format, so that the next event writes the next one."""
        # While an event is being taken in, the next scrape will do.
        if self._writing.acquire(blocking=False):
            try:
                if self._current is told:
                    self._current = _Current(told.known, MappingProxyType({**told.texts, openmetrics: text}))
            finally:
                self._writing.release()


class _Page:
    """Writes what is known, and how the process itself is doing."""

    def __init__(self, log: Logger | None) -> None:
        self._log = log
        self._errors = 0
        self._told: frozenset[str] = frozenset()
        self._counting = threading.Lock()
        self._sample: tuple[float, tuple[Metric, ...]] = (-math.inf, ())
        # Not registered anywhere: a registry has a lock.
        process, platform = ProcessCollector(registry=None), PlatformCollector(registry=None)
        garbage = GCCollector(registry=CollectorRegistry())
        self._process: Mapping[str, Family] = {
            "process": process.collect,
            "platform": platform.collect,
            "gc": garbage.collect,
        }

    def text(self, known: Known, *, openmetrics: bool) -> bytes:
        """Return what is known, as the first part of a page."""
        parts = ((each.name, partial(_families_of, each, known)) for each in ALL if each is not COLLECTOR_ERRORS)
        families = tuple(family for name, make in parts for family in self._made(name, make))
        return _written(families, openmetrics=openmetrics).removesuffix(_END)

    def sample(self, now: float) -> None:
        """Keep how the process is doing. Not in text: a few numbers are written faster than a page is kept."""
        self._sample = now, self._sampled()

    def _sampled(self) -> tuple[Metric, ...]:
        return tuple(family for name, collect in self._process.items() for family in self._made(name, collect))

    def process(self, known: Known, now: float, *, openmetrics: bool) -> bytes:
        """Return how the process is doing, as the rest of a page."""
        at, kept = self._sample
        families = list(kept if now - at <= FRESH_SECONDS else self._sampled())
        # Last, so that what failed on this page is counted on it.
        families.append(_metric(COLLECTOR_ERRORS, [((), float(self._errors + known.stray))]))
        return _written(tuple(families), openmetrics=openmetrics)

    def _made(self, name: str, make: Family) -> Iterable[Metric]:
        try:
            return tuple(make())
        except Exception as error:  # noqa: BLE001 - a scrape without one part is worth more than none: counted and told
            self._left_out(name, error)
            return ()

    def _left_out(self, name: str, error: Exception) -> None:
        with self._counting:
            self._errors += 1
        self.told(name, f"{type(error).__name__}: {error}")

    def told(self, name: str, detail: str) -> None:
        """Tell the log what could not be told on the page, once: every event would say it again."""
        with self._counting:
            first = name not in self._told
            self._told |= {name}
        if first and self._log is not None:
            self._log.error("metric_left_out", metric=name, detail=detail)


class _Collected:
    """Families that were made already, as what prometheus_client writes out."""

    def __init__(self, families: tuple[Metric, ...]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        """Return them."""
        return self._families


def _written(families: tuple[Metric, ...], *, openmetrics: bool) -> bytes:
    collected = _Collected(families)
    if openmetrics:
        text: bytes = generate_openmetrics(collected)  # type: ignore[no-untyped-call] # it has no annotations
        return text
    return generate_latest(collected)


def _families_of(series: Series, known: Known) -> tuple[Metric, ...]:
    if series is DURATION:
        return (_histogram(series, known),)
    return (_metric(series, PARTS[series](known)),)


def _metric(series: Series, samples: Iterable[tuple[tuple[str, ...], float]]) -> Metric:
    make = CounterMetricFamily if series.kind is SeriesKind.COUNTER else GaugeMetricFamily
    family = make(series.name, series.meaning, labels=series.labels)
    for labels, value in samples:
        # A region is text of a cloud: half a surrogate pair in it could not be written out, nor the page with it.
        family.add_metric([visible(label) for label in labels], float(value))
    return family


def _histogram(series: Series, known: Known) -> Metric:
    family = HistogramMetricFamily(series.name, series.meaning, labels=series.labels)
    for one in histograms(known):
        family.add_metric(list(one.labels), buckets=list(one.buckets), sum_value=one.sum_seconds)
    return family
