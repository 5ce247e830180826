"""A report as the JSON of the contract."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from alerts.model import Condition
from providers.events import ProviderEvent, Unheard
from providers.model import Coverage, InstanceRef
from reaperd.core.ignoring import RuleUse
from reaperd.core.leaks import AuditReport, Ignored, Leak
from reaperd.core.model import Outcome, PassKind, PassOutcome, PassReport, Verdict
from registry.model import RegistrySnapshot, Worker

Document = dict[str, object]


def reconcile_document(report: PassReport) -> Document:
    """Return a reconcile pass as JSON data."""
    return {
        "kind": str(PassKind.RECONCILE),
        "pass_id": report.pass_id,
        "mode": str(report.mode),
        "started_at": moment(report.started_at),
        "finished_at": moment(report.finished_at),
        "outcome": str(report.outcome),
        "reason": report.reason,
        "also": list(report.also),
        "detail": report.detail,
        "coverage": [coverage_document(entry) for entry in report.coverage],
        "registry": _registry(report.registry),
        "plan_digest": report.digest,
        "verdicts": [verdict_document(verdict, report.confirmations_needed) for verdict in report.verdicts],
        "outcomes": [_outcome(outcome) for outcome in report.outcomes],
        "missing": [_missing(worker) for worker in report.missing],
        "conditions": [condition_document(condition) for condition in report.conditions],
    }


def audit_document(report: AuditReport) -> Document:
    """Return a sweep as JSON data."""
    found = report.findings
    return {
        "kind": str(PassKind.AUDIT),
        "pass_id": report.pass_id,
        "started_at": moment(report.started_at),
        "finished_at": moment(report.finished_at),
        "outcome": str(report.outcome),
        "reason": report.reason,
        "detail": report.detail,
        "coverage": [coverage_document(entry) for entry in report.coverage],
        "skipped": list(report.skipped),
        "events": [{**place(event.ref), **event_document(event)} for event in report.events],
        "unheard": [unheard_document(entry) for entry in report.unheard],
        "leaks": [leak_document(leak) for leak in found.leaks],
        "ignored": [_ignored(entry) for entry in found.ignored],
        "near_misses": [leak_document(leak) for leak in found.near_misses],
        "unknown_age": [leak_document(leak) for leak in found.unknown_age],
        "out_of_scope": [place(ref) for ref in found.out_of_scope],
        "rules": [_rule(use, complete=report.outcome is PassOutcome.COMPLETE) for use in found.rules],
        "conditions": [condition_document(condition) for condition in found.conditions],
        "instances": found.instances,
        "owned": found.owned,
    }


def leak_document(leak: Leak) -> Document:
    """Return one machine that nobody owns."""
    instance = leak.instance
    return {
        **place(instance.ref),
        "instance_type": instance.instance_type,
        "name": instance.name,
        "state": str(instance.state),
        "launched_at": _maybe(instance.launched_at),
        "first_seen_at": _maybe(leak.first_seen_at),
        "age_seconds": seconds(leak.age),
        "cost_per_hour_usd": instance.cost_per_hour_usd,
        "near_miss_tag": leak.near_miss,
        "event": None if leak.event is None else event_document(leak.event),
        "tags": dict(instance.tags),
    }


def event_document(event: ProviderEvent) -> Document:
    """Return what a cloud announces for a machine: its own word, whether the machine ends by it, and when it goes."""
    at = event.termination_time
    return {
        "code": event.fault_code,
        "ends": event.marked_for_termination,
        "at": None if at is None else moment(at),
    }


def unheard_document(entry: Unheard) -> Document:
    """Return a place whose announcements could not be had."""
    return {"scope": str(entry.scope), "error_code": entry.error_code, "detail": entry.detail}


def coverage_document(entry: Coverage) -> Document:
    """Return what one scope's listing covered."""
    return {
        "scope": str(entry.scope),
        "account": entry.account,
        "ok": entry.ok,
        "instances": entry.instances,
        "pages": entry.pages,
        "seconds": round(entry.duration.total_seconds(), 3),
        "error_code": entry.error_code,
        "detail": entry.detail,
    }


def verdict_document(verdict: Verdict, needed: int) -> Document:
    """Return what was decided on one machine."""
    instance = verdict.instance
    return {
        **place(verdict.ref),
        "worker_id": instance.worker_id,
        "state": str(instance.state),
        "verdict": "terminate" if verdict.terminates else "keep",
        "reason": str(verdict.call.reason),
        "age_seconds": seconds(verdict.age),
        "confirmations": verdict.confirmations,
        "confirmations_needed": needed,
        "instance_type": instance.instance_type,
        "cost_per_hour_usd": verdict.cost_per_hour_usd,
        "first_seen_at": _maybe(verdict.first_seen_at),
        "last_tracked_at": _maybe(verdict.tracked_at),
        "detail": verdict.detail,
    }


def condition_document(condition: Condition) -> Document:
    """Return one condition."""
    return {"key": condition.key, "severity": str(condition.severity), "data": dict(condition.data)}


def place(ref: InstanceRef) -> Mapping[str, str]:
    """Return the three keys that name a machine."""
    return {"provider": ref.provider, "region": ref.region, "instance_id": ref.instance_id}


@lru_cache(maxsize=1024)
def moment(when: datetime) -> str:
    """Return a time as the contract writes it: UTC, whole seconds, `Z`.

    Machines of one look share most of their times; to write one takes longer than to find it.
    """
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds(duration: timedelta | None) -> int | None:
    """Return whole seconds; None when unknown."""
    return None if duration is None else int(duration.total_seconds())


def _maybe(when: datetime | None) -> str | None:
    return None if when is None else moment(when)


def _ignored(entry: Ignored) -> Document:
    return {**leak_document(entry.leak), "reason": entry.reason}


def _rule(use: RuleUse, *, complete: bool) -> Document:
    return {
        "number": use.number,
        "reason": use.rule.reason,
        "until": None if use.rule.until is None else use.rule.until.isoformat(),
        "matched": use.matched,
        "state": str(use.state(complete=complete)),
    }


def _registry(registry: RegistrySnapshot | None) -> Document | None:
    if registry is None:
        return None
    return {
        "registry_id": registry.identity.registry_id,
        "epoch": registry.identity.epoch,
        "rows": registry.rows,
        "live": sum(1 for worker in registry.workers if worker.state.is_live),
    }


def _outcome(outcome: Outcome) -> Document:
    return {
        **place(outcome.ref),
        "outcome": str(outcome.kind),
        "reason": None if outcome.reason is None else str(outcome.reason),
        "error_code": outcome.error_code,
        "detail": outcome.detail,
    }


def _missing(worker: Worker) -> Document:
    return {
        "worker_id": worker.worker_id,
        "provider": worker.provider,
        "region": worker.region,
        "instance_id": worker.instance_id,
    }
