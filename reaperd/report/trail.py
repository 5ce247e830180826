"""A report as the record that auditors read a year later."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from alerts.model import Cause, Condition
from providers.events import ProviderEvent
from providers.model import InstanceRef
from reaperd.core.leaks import AuditReport, Leak, oldest_first
from reaperd.core.model import DecisionRecord, PassKind, PassReport, Sighting
from reaperd.report.document import (
    Document,
    audit_document,
    condition_document,
    event_document,
    leak_document,
    place,
    reconcile_document,
)
from reaperd.report.visible import clipped

KEPT_EVENTS = 200
"""So many announcements are kept of one sweep, the newest: `explain` tells them of a machine that is gone."""
KEPT = 50
"""So many machines are kept of one sweep, those that are there the longest; the number of all stands beside them.

Of one pass, so many of what it found missing, and so many conditions.
"""

_LATER = datetime.max.replace(tzinfo=UTC)


def record_of(report: PassReport, before: Mapping[InstanceRef, Sighting]) -> DecisionRecord:
    """Return the pass with every termination and every verdict that is not what it was the last time.

    Of what may be the same for months, at every pass, so much is kept as is read: the rows whose machine is missing,
    and the conditions, of which each has an alert of its own.
    """
    told = (v for v in report.verdicts if v.terminates or v.name != _name_of(before.get(v.ref)))
    kept = replace(
        report, verdicts=tuple(told), missing=report.missing[:KEPT], conditions=_most_severe(report.conditions)
    )
    document = reconcile_document(kept)
    for key, all_of_them in (("missing", report.missing), ("conditions", report.conditions)):
        if len(all_of_them) > KEPT:
            document[f"{key}_total"] = len(all_of_them)
    return DecisionRecord(
        pass_id=report.pass_id,
        kind=str(PassKind.RECONCILE),
        mode=str(report.mode),
        started_at=report.started_at,
        finished_at=report.finished_at,
        outcome=str(report.outcome),
        reason=report.reason,
        plan_digest=report.digest,
        record=json.dumps(document, sort_keys=True, separators=(",", ":")),
    )


def record_of_sweep(report: AuditReport) -> DecisionRecord:
    """Return the sweep in bounded size and without tags: strangers write those, and keep secrets in them."""
    found = report.findings
    document = {
        **audit_document(report),
        "leaks": _kept(found.leaks),
        "leaks_total": len(found.leaks),
        "stopped_total": sum(1 for leak in found.leaks if leak.stopped),
        "near_misses": _kept(found.near_misses),
        "near_misses_total": len(found.near_misses),
        "unknown_age": _kept(found.unknown_age),
        "unknown_age_total": len(found.unknown_age),
        "out_of_scope": [place(ref) for ref in found.out_of_scope[:KEPT]],
        "out_of_scope_total": len(found.out_of_scope),
        "events": [_clipped(event) for event in _newest(report.events)],
        "events_total": len(report.events),
        "ignored_counts": dict(Counter(entry.reason for entry in found.ignored).most_common(KEPT)),
        # A leak is told above.
        "conditions": [condition_document(one) for one in found.conditions if one.cause is not Cause.LEAK][:KEPT],
    }
    del document["ignored"]
    return DecisionRecord(
        pass_id=report.pass_id,
        kind=str(PassKind.AUDIT),
        # A sweep does the same in every mode.
        mode="",
        started_at=report.started_at,
        finished_at=report.finished_at,
        outcome=str(report.outcome),
        reason=report.reason,
        plan_digest=None,
        record=json.dumps(document, sort_keys=True, separators=(",", ":")),
    )


def _newest(events: Iterable[ProviderEvent]) -> list[Document]:
    """Return those that somebody may ask about next. One without a time is about to happen."""
    newest = sorted(events, key=lambda event: (event.termination_time or _LATER, event.ref), reverse=True)
    return [{**place(event.ref), **event_document(event)} for event in newest[:KEPT_EVENTS]]


def _kept(leaks: Iterable[Leak]) -> list[Document]:
    told = (leak_document(leak) for leak in oldest_first(leaks)[:KEPT])
    return [_clipped({key: value for key, value in document.items() if key != "tags"}) for document in told]


def _clipped(document: Document) -> Document:
    return {key: clipped(value) if isinstance(value, str) else value for key, value in document.items()}


def _most_severe(conditions: Iterable[Condition]) -> tuple[Condition, ...]:
    by_severity = sorted(conditions, key=lambda one: one.severity.rank, reverse=True)
    return tuple(sorted(by_severity[:KEPT], key=lambda one: one.key))


def _name_of(sighting: Sighting | None) -> str:
    return "" if sighting is None else sighting.verdict
