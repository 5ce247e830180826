"""A report as CSV: one line a verdict or a leak, safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence

from reaperd.core.leaks import AuditReport, Leak
from reaperd.core.model import PassReport
from reaperd.report.document import event_document, leak_document, verdict_document
from reaperd.report.visible import cell

VERDICT_COLUMNS = (
    "provider",
    "region",
    "instance_id",
    "worker_id",
    "state",
    "verdict",
    "reason",
    "age_seconds",
    "confirmations",
    "confirmations_needed",
    "outcome",
    "outcome_reason",
    "error_code",
    "instance_type",
    "cost_per_hour_usd",
    "first_seen_at",
    "last_tracked_at",
    "detail",
)


LEAK_COLUMNS = (
    "provider",
    "region",
    "instance_id",
    "instance_type",
    "name",
    "state",
    "launched_at",
    "first_seen_at",
    "age_seconds",
    "cost_per_hour_usd",
    "near_miss_tag",
    "event_code",
    "event_at",
)


def reconcile_sheet(report: PassReport) -> str:
    """Return one line for every verdict, with the outcome of those that were to go."""
    return sheet(VERDICT_COLUMNS, _verdicts(report))


def _verdicts(report: PassReport) -> Iterator[Mapping[str, object]]:
    outcomes = {outcome.ref: outcome for outcome in report.outcomes}
    for verdict in report.verdicts:
        outcome = outcomes.get(verdict.ref)
        told: Mapping[str, object] = {}
        if outcome is not None:
            told = {
                "outcome": str(outcome.kind),
                "outcome_reason": outcome.reason,
                "error_code": outcome.error_code,
            }
        yield {**verdict_document(verdict, report.confirmations_needed), **told}


def audit_sheet(report: AuditReport) -> str:
    """Return one line for every leak."""
    return sheet(LEAK_COLUMNS, map(_leak, report.findings.leaks))


def _leak(leak: Leak) -> Mapping[str, object]:
    event = {} if leak.event is None else event_document(leak.event)
    return {**leak_document(leak), "event_code": event.get("code"), "event_at": event.get("at")}


def sheet(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> str:
    """Return a header and one line for every row; a column that a row does not have stays empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([cell(row.get(column)) for column in columns] for row in rows)
    return text.getvalue()
