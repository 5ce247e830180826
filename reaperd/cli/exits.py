"""From a report to the exit code of the contract."""

from __future__ import annotations

from collections.abc import Iterable

from reaperd.core.findings import Finding, Grade
from reaperd.core.leaks import AuditReport
from reaperd.core.model import OutcomeKind, PassOutcome, PassReport, RefusalReason
from reaperd.errors import ExitCode

_WENT_WRONG = frozenset(
    {OutcomeKind.FAILED, OutcomeKind.DENIED, OutcomeKind.PROTECTED, OutcomeKind.INVALID_ID, OutcomeKind.UNKNOWN}
)

_OF_REFUSAL = {
    RefusalReason.LISTING_INCOMPLETE: ExitCode.INCOMPLETE,
    RefusalReason.NOT_LEADER: ExitCode.NOT_LEADER,
}


def code_of_once(report: PassReport) -> ExitCode:
    """Return what `once` answers with."""
    if report.outcome is PassOutcome.REFUSED and report.reason is not None:
        return _OF_REFUSAL.get(RefusalReason(report.reason), ExitCode.SAFETY_STOP)
    if report.outcome is not PassOutcome.COMPLETE:
        return ExitCode.ERROR
    return ExitCode.ERROR if any(outcome.kind in _WENT_WRONG for outcome in report.outcomes) else ExitCode.OK


def code_of_plan(report: PassReport) -> ExitCode:
    """Return what `plan` answers with."""
    code = code_of_once(report)
    return ExitCode.FINDINGS if code is ExitCode.OK and report.digest is not None else code


def code_of_audit(report: AuditReport) -> ExitCode:
    """Return what `audit` answers with. An incomplete one is no proof of anything, leaks or not."""
    if report.reason == RefusalReason.CLOCK:
        return ExitCode.SAFETY_STOP
    if report.outcome is not PassOutcome.COMPLETE:
        return ExitCode.INCOMPLETE
    return ExitCode.FINDINGS if report.findings.leaks else ExitCode.OK


def code_of_doctor(findings: Iterable[Finding]) -> ExitCode:
    """Return what `doctor` answers with. A warning is none of its errors."""
    return ExitCode.ERROR if any(finding.grade is Grade.FAILURE for finding in findings) else ExitCode.OK
