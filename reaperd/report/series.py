"""Every metric: its name, its labels and what it says. The reference page is made from these definitions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from providers.instrumented import Operation, RequestResult
from providers.parsers import Parser
from reaperd.core.model import KeepReason, Mode, OutcomeKind, PassKind, PassOutcome, RefusalReason
from registry.model import WorkerState


class SeriesKind(StrEnum):
    """What Prometheus is told that a metric is."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


class Delivery(StrEnum):
    """What became of an alert. The value is a metric label."""

    SENT = "sent"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Series:
    """One metric."""

    name: str
    kind: SeriesKind
    labels: tuple[str, ...]
    meaning: str
    """Also its help text: one sentence or two."""


def _gauge(name: str, meaning: str, *labels: str) -> Series:
    return Series(f"reaperd_{name}", SeriesKind.GAUGE, labels, meaning)


def _counter(name: str, meaning: str, *labels: str) -> Series:
    return Series(f"reaperd_{name}_total", SeriesKind.COUNTER, labels, meaning)


_SCOPE = ("provider", "region")

# ---------------------------------------------------------------- the process

BUILD_INFO = _gauge("build_info", "Always 1; the label is the version that runs.", "version")
MODE = _gauge("mode", "1 for the mode that the daemon runs in, 0 for the other.", "mode")
LISTING_PARSER = _gauge(
    "listing_parser",
    "1 for what reads the listings of AWS here, 0 for the other. Without lxml, one takes three times as long.",
    "parser",
)
LEADER = _gauge("leader", "1 while this process holds the lease; without it, it only looks.")
RELOAD_OK = _gauge(
    "config_last_reload_successful", "0 when the last reload was refused: the old settings are in force."
)
RELOAD_AT = _gauge("config_last_reload_timestamp_seconds", "When the settings were last read, used or refused.")
LEDGER_CREATED = _gauge(
    "ledger_created_timestamp_seconds", "When the ledger was created. A new ledger has forgotten what it saw before."
)

# ---------------------------------------------------------------- passes

PASSES = _counter("passes", "Passes that ended, by how. A pass of kind audit is a sweep.", "kind", "outcome")
REFUSALS = _counter("refusals", "Reconcile passes that stood down, by the first reason.", "reason")
DURATION = Series(
    "reaperd_pass_duration_seconds", SeriesKind.HISTOGRAM, ("kind",), "How long passes took, whatever came of them."
)
LAST_ATTEMPT = _gauge("last_attempt_timestamp_seconds", "When the last pass began.", "kind")
LAST_LOOK = _gauge(
    "last_look_timestamp_seconds", "When the last complete look began, whatever was decided on it.", "kind"
)
LAST_COMPLETE = _gauge(
    "last_complete_timestamp_seconds", "When the last pass began that was neither refused nor deferred.", "kind"
)
INTERVAL = _gauge("pass_interval_seconds", "The time from one pass to the next, as configured.", "kind")
MISSED = _counter("scheduler_missed_runs", "Scheduled passes that did not start in time.", "kind")
SCOPE_UP = _gauge("scope_up", "1 when the last pass saw the scope whole, 0 when it did not.", "kind", *_SCOPE)

# ---------------------------------------------------------------- the reconciler's look

OWNED = _gauge("owned_instances", "Machines of ours, without those that are gone or going.", *_SCOPE)
ORPHANS = _gauge("orphan_instances", "Owned machines that no live row tracks, whatever holds them.", *_SCOPE)
OLDEST_ORPHAN = _gauge(
    "oldest_orphan_first_seen_timestamp_seconds",
    "When the orphan that is known longest was first seen. Absent without an orphan.",
    *_SCOPE,
)
HELD = _gauge("held_instances", "Machines that are kept, by the first reason that keeps them.", "reason")
WOULD_TERMINATE = _gauge(
    "would_terminate_instances", "Machines that the last look wants to end, let through or not.", *_SCOPE
)
TERMINATING = _gauge(
    "terminating_instances", "Machines whose end was asked for and is not confirmed by a later look.", *_SCOPE
)
TERMINATIONS = _counter(
    "terminations", "What became of terminations. A rehearsal counts nothing.", "provider", "outcome"
)
MISSING = _gauge("missing_workers", "Live rows whose machine the listing does not have.", *_SCOPE)

# ---------------------------------------------------------------- the registry, the breaker, the brake

REGISTRY_UP = _gauge(
    "registry_up", "1 when the last pass could read the registry and it is the one that is known. Absent before."
)
REGISTRY_WORKERS = _gauge("registry_workers", "Rows of the registry, by state.", "state")
REGISTRY_EPOCH = _gauge("registry_epoch", "How often the registry was changed, as it counts itself.")
BREAKER_OPEN = _gauge("breaker_open", "1 when the last look's plan was too big to be carried out.")
REAP_HOLD = _gauge("reap_hold", "1 while somebody holds all terminations with `reaperd hold`.")

# ---------------------------------------------------------------- the audit's sweep

UNOWNED = _gauge(
    "unowned_long_running_instances",
    "Leaks that run: machines that nobody owns and that run too long. Stopped ones are not among them.",
    *_SCOPE,
)
UNOWNED_STOPPED = _gauge(
    "unowned_stopped_instances",
    "Leaks that are stopped: they bill their disks, not their hours.",
    *_SCOPE,
)
UNOWNED_OLDEST = _gauge(
    "unowned_oldest_launch_timestamp_seconds",
    "The earliest known start of a leak that runs. Absent without one whose start is known.",
    *_SCOPE,
)
LEAK_COST = _gauge(
    "leak_cost_dollars_per_hour",
    "What the leaks that run and whose price is known cost. Absent when there are some and no price is known.",
    *_SCOPE,
)
NEAR_MISSES = _gauge("near_miss_tags", "Machines whose tag is ours but for case or blanks. Never terminated.", *_SCOPE)

OUT_OF_SCOPE = _gauge(
    "owned_out_of_scope_instances", "Machines of ours where the reaper does not look, so that none is reaped.", *_SCOPE
)
AUDIT_SKIPPED = _gauge(
    "audit_skipped", "1 for a provider whose kind cannot be audited: what leaks there is seen by nobody.", "provider"
)

# ---------------------------------------------------------------- others

ALERTS = _counter("alerts", "Messages to alert channels, by what became of them.", "channel", "outcome")
REQUESTS = _counter(
    "provider_requests",
    "Operations on a provider, by what came of them. One listing or sweep is one, and so is the end of each machine.",
    "provider",
    "operation",
    "result",
)
COLLECTOR_ERRORS = _counter(
    "collector_errors", "Parts of this page that could not be made and were left out. Anything but 0 is a bug."
)

ALL = (
    BUILD_INFO, MODE, LISTING_PARSER, LEADER, RELOAD_OK, RELOAD_AT, LEDGER_CREATED,
    PASSES, REFUSALS, DURATION, LAST_ATTEMPT, LAST_LOOK, LAST_COMPLETE, INTERVAL, MISSED, SCOPE_UP,
    OWNED, ORPHANS, OLDEST_ORPHAN, HELD, WOULD_TERMINATE, TERMINATING, TERMINATIONS, MISSING,
    REGISTRY_UP, REGISTRY_WORKERS, REGISTRY_EPOCH, BREAKER_OPEN, REAP_HOLD,
    UNOWNED, UNOWNED_STOPPED, UNOWNED_OLDEST, LEAK_COST, NEAR_MISSES, OUT_OF_SCOPE, AUDIT_SKIPPED,
    ALERTS, REQUESTS, COLLECTOR_ERRORS,
)  # fmt: skip
"""In the order of the page."""

COUNTED_OUTCOMES = tuple(kind for kind in OutcomeKind if kind is not OutcomeKind.WOULD_TERMINATE)

Labels = tuple[str, ...]
"""The values of one series' labels, in the order of its definition."""

CLOSED: Mapping[tuple[Series, str], tuple[str, ...]] = {
    (MODE, "mode"): tuple(Mode),
    (LISTING_PARSER, "parser"): tuple(Parser),
    (PASSES, "outcome"): tuple(PassOutcome),
    (REFUSALS, "reason"): tuple(RefusalReason),
    (HELD, "reason"): tuple(KeepReason),
    (TERMINATIONS, "outcome"): COUNTED_OUTCOMES,
    (REGISTRY_WORKERS, "state"): tuple(WorkerState),
    (ALERTS, "outcome"): tuple(Delivery),
    (REQUESTS, "operation"): tuple(Operation),
    (REQUESTS, "result"): tuple(RequestResult),
    **{(series, "kind"): tuple(PassKind) for series in ALL if "kind" in series.labels},
}
"""The values of the labels that the program itself chooses."""

BUCKETS_SECONDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 240.0, 600.0)
"""From a small account to the default deadline and beyond."""
