"""A page of metrics, made and read as a scraper would."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from providers.model import AuditedInstance, InstanceState, Scope, TagKeys
from providers.parsers import Parser
from reaperd.clock import ManualClock
from reaperd.core.census import census
from reaperd.core.leaks import AuditPolicy, AuditReport, find_leaks
from reaperd.core.model import Observation, Outcome, PassKind, PassOutcome, PassReport, ReapPolicy
from reaperd.report.metrics import Metrics
from tests.support.worlds import DEPLOYMENT, EAST, HOUR, MINUTE, NOW, SCOPES, WEST, policy, ref, whole
from tests.unit.cli.reports import report

OPENMETRICS = "application/openmetrics-text; version=1.0.0"
PROVIDERS = ("aws", "gcp")
INTERVALS = {PassKind.RECONCILE: MINUTE, PassKind.AUDIT: 15 * MINUTE}

Labels = frozenset[tuple[str, str]]
Page = Mapping[str, Mapping[Labels, float]]


def fresh(**changes: Any) -> Metrics:
    """Return metrics that know their settings and nothing else."""
    metrics = Metrics(version="1.2.3", clock=ManualClock(NOW), parser=Parser.LXML)
    configure(metrics, **changes)
    return metrics


def configure(metrics: Metrics, **changes: Any) -> None:
    facts: dict[str, Any] = {"mode": "dry-run", "providers": PROVIDERS, "scopes": SCOPES, "intervals": INTERVALS}
    metrics.configured(**(facts | changes))


def passed(seen: Observation, wishes: ReapPolicy | None = None, *outcomes: Outcome, **other: Any) -> PassReport:
    """Return the report of a pass over this world, with what its look counted."""
    used = wishes or policy()
    made = report(seen, used, outcomes=outcomes)
    return replace(made, **({"census": census(seen, used, outcomes)} | other))


def stranger(instance_id: str = "i-9", *, at: Scope = EAST, age: timedelta = 7 * HOUR, **other: Any) -> AuditedInstance:
    facts = {"state": InstanceState.RUNNING, "launched_at": NOW - age} | other
    return AuditedInstance(ref=ref(instance_id, at), **facts)


def swept(*machines: AuditedInstance, **other: Any) -> AuditReport:
    """Return the report of a sweep under which six hours are long."""
    wishes = AuditPolicy(deployment=DEPLOYMENT, tags=TagKeys(), max_age=6 * HOUR)
    facts = {
        "pass_id": "p",
        "started_at": NOW,
        "finished_at": NOW + MINUTE,
        "outcome": PassOutcome.COMPLETE,
        "reason": None,
        "coverage": (whole(EAST), whole(WEST)),
        "findings": find_leaks(machines, wishes, NOW),
    }
    return AuditReport(**(facts | other))


def page(metrics: Metrics, accept: str = "") -> str:
    return metrics.page(accept)[0].decode()


def read(text: str) -> Page:
    """Return every sample, by name and labels."""
    found: dict[str, dict[Labels, float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = frozenset(sample.labels.items())
            assert labels not in found.setdefault(sample.name, {}), f"{sample.name} {labels} twice"
            found[sample.name][labels] = sample.value
    return found


def scrape(metrics: Metrics) -> Page:
    return read(page(metrics))


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    """Return one sample's value; None when it is absent."""
    return scrape(metrics).get(f"reaperd_{name}", {}).get(frozenset(labels.items()))


def place(scope: Scope) -> dict[str, str]:
    return {"provider": scope.provider, "region": scope.region}


def series_of(found: Page) -> set[tuple[str, Labels]]:
    return {(name, labels) for name, samples in found.items() for labels in samples}


def ours(found: Page) -> Page:
    return {name: samples for name, samples in found.items() if name.startswith("reaperd_")}


def values_of(found: Page, label: str) -> Iterable[str]:
    return {told for samples in ours(found).values() for labels in samples for name, told in labels if name == label}
