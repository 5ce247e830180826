"""What a pass did, as events with fields, for whoever collects logs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from alerts.model import Cause, Condition, Severity
from providers.model import Coverage, InstanceRef
from reaperd.core.ignoring import RuleState, RuleUse
from reaperd.core.leaks import AuditFindings, AuditReport, oldest_first
from reaperd.core.model import Outcome, OutcomeKind, PassOutcome, PassReport
from reaperd.report.logs import Logger

Event = tuple[str, str, Mapping[str, object]]
"""A level, a name and fields."""

TOLD = 50
"""So many machines of one kind are told of one sweep; the event of its end counts all."""

_WENT_WRONG = frozenset(
    {OutcomeKind.FAILED, OutcomeKind.DENIED, OutcomeKind.PROTECTED, OutcomeKind.INVALID_ID, OutcomeKind.UNKNOWN}
)


def log_pass(logger: Logger, report: PassReport) -> None:
    """Write the events of one pass."""
    for level, name, fields in events_of(report):
        logger.log(_LEVELS[level], name, pass_id=report.pass_id, **fields)


def log_audit(logger: Logger, report: AuditReport) -> None:
    """Write the events of one sweep."""
    for level, name, fields in events_of_audit(report):
        logger.log(_LEVELS[level], name, pass_id=report.pass_id, **fields)


_LEVELS = {"info": 20, "warning": 30, "error": 40}


def events_of(report: PassReport) -> Iterator[Event]:
    """Yield what happened, the end of the pass last."""
    yield from _of_coverage(report.coverage)
    for worker in report.bad_rows:
        yield "warning", "registry_row_bad_timestamp", {"worker_id": worker.worker_id, "unreadable": worker.unreadable}
    reasons = {verdict.ref: str(verdict.call.reason) for verdict in report.verdicts if verdict.terminates}
    for outcome in report.outcomes:
        yield _of_outcome(outcome, reasons)
    holds = {str(verdict.ref): str(verdict.call.reason) for verdict in report.verdicts if not verdict.terminates}
    told = {str(outcome.ref) for outcome in report.outcomes} | {str(report.reason), *report.also}
    for condition in report.conditions:
        if not told & {condition.subject, str(condition.cause)}:
            yield _of_condition(condition, holds)
    if report.outcome is not PassOutcome.COMPLETE:
        stood = {"reason": report.reason, "also": report.also, "detail": report.detail, "plan_digest": report.digest}
        yield ("error" if report.outcome is PassOutcome.ERROR else "warning"), str(report.outcome), stood
    yield "info", "pass_finished", _finished(report)


def events_of_audit(report: AuditReport) -> Iterator[Event]:
    """Yield what a sweep found, its end last. Of many machines, those that are there the longest."""
    found = report.findings
    yield from _of_coverage(report.coverage)
    for provider in report.skipped:
        yield "info", "provider_not_audited", {"provider": provider}
    for entry in report.unheard:
        why = {"error_code": entry.error_code, "detail": entry.detail}
        yield "warning", "announcements_unheard", {"scope": str(entry.scope), **why}
    for condition in _told_conditions(found):
        yield _of_condition(condition, {})
    young = set(found.near_misses).difference(found.leaks)
    for leak in oldest_first(young)[:TOLD]:
        yield "warning", "near_miss_tag_found", {**_place(leak.instance.ref), "tag": leak.near_miss}
    for leak in found.unknown_age[:TOLD]:
        yield "info", "age_unknown", _place(leak.instance.ref)
    for use, state in report.idle_rules:
        yield _of_rule(use, state)
    yield "info", "sweep_finished", _swept(report)


def _told_conditions(found: AuditFindings) -> Iterator[Condition]:
    oldest = {str(leak.instance.ref) for leak in oldest_first(found.leaks)[:TOLD]}
    others = [condition for condition in found.conditions if condition.cause is not Cause.LEAK]
    yield from (condition for condition in found.conditions if condition.subject in oldest)
    yield from others[:TOLD]


def _of_rule(use: RuleUse, state: RuleState) -> Event:
    until = None if use.rule.until is None else use.rule.until.isoformat()
    told = {"rule": use.number, "rule_reason": use.rule.reason, "until": until, "matched": use.matched}
    return "info", f"ignore_rule_{state}", told


def _swept(report: AuditReport) -> Mapping[str, object]:
    found = report.findings
    return {
        "outcome": str(report.outcome),
        "reason": report.reason,
        "detail": report.detail,
        "scopes": len(report.coverage),
        "skipped": report.skipped,
        "instances": found.instances,
        "owned": found.owned,
        "leaks": len(found.leaks),
        "stopped": sum(1 for leak in found.leaks if leak.stopped),
        "ignored": len(found.ignored),
        "near_misses": len(found.near_misses),
        "unknown_age": len(found.unknown_age),
        "out_of_scope": len(found.out_of_scope),
        "idle_rules": len(report.idle_rules),
        "events": len(report.events),
        "unheard": len(report.unheard),
        "seconds": round((report.finished_at - report.started_at).total_seconds(), 3),
    }


def _of_coverage(coverage: Iterable[Coverage]) -> Iterator[Event]:
    for entry in coverage:
        if not entry.ok:
            why = {"error_code": entry.error_code or str(entry.failure), "detail": entry.detail}
            yield "warning", "scope_incomplete", {"scope": str(entry.scope), **why}


def _of_outcome(outcome: Outcome, reasons: Mapping[InstanceRef, str]) -> Event:
    fields = {
        **_place(outcome.ref),
        "reason": reasons.get(outcome.ref),
        "outcome_reason": None if outcome.reason is None else str(outcome.reason),
        "error_code": outcome.error_code,
        "detail": outcome.detail,
    }
    told = {key: value for key, value in fields.items() if value}
    if outcome.kind is OutcomeKind.REQUESTED:
        return "info", "orphan_terminated", told
    return ("warning" if outcome.kind in _WENT_WRONG else "info"), f"termination_{outcome.kind}", told


def _of_condition(condition: Condition, holds: Mapping[str, str]) -> Event:
    level = "info" if condition.severity is Severity.INFO else "warning"
    known = {"cause": str(condition.cause), "severity": str(condition.severity)}
    told = {key: value for key, value in condition.data.items() if key not in known and value not in (None, "")}
    if condition.subject in holds:
        return level, "orphan_held", {"instance": condition.subject, "hold": holds[condition.subject], **known, **told}
    subject = {"instance": condition.subject} if condition.subject else {}
    return level, "condition_holds", {**subject, **known, **told}


def _finished(report: PassReport) -> Mapping[str, object]:
    return {
        "mode": str(report.mode),
        "outcome": str(report.outcome),
        "reason": report.reason,
        "scopes": len(report.coverage),
        "verdicts": len(report.verdicts),
        "terminate": sum(1 for verdict in report.verdicts if verdict.terminates),
        "requested": sum(1 for outcome in report.outcomes if outcome.kind is OutcomeKind.REQUESTED),
        "missing": len(report.missing),
        "plan_digest": report.digest,
        "seconds": round((report.finished_at - report.started_at).total_seconds(), 3),
    }


def _place(ref: InstanceRef) -> Mapping[str, str]:
    return {"provider": ref.provider, "region": ref.region, "instance_id": ref.instance_id}
