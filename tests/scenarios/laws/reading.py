"""Looking things up in the evidence."""

from __future__ import annotations

from collections.abc import Iterator

from alerts.model import Condition
from reaperd.core.model import PassOutcome, PassReport, RefusalReason, Verdict
from tests.scenarios.evidence import Evidence, Pass
from tests.support.ec2 import Machine
from tests.support.ec2.model import AUTOSCALING_TAG

_OWNER = "reaperd:owner"


def numbered(evidence: Evidence) -> Iterator[tuple[int, Pass]]:
    return enumerate(evidence.passes, 1)


def conditions(one: Pass) -> tuple[Condition, ...]:
    return one.reap.conditions if one.reap else one.report.findings.conditions


def ours(evidence: Evidence, one: Pass) -> set[str]:
    here = [m for m in one.before.machines if m.state != "terminated" and owner(m) == evidence.owner]
    return {machine.instance_id for machine in here}


def is_judged(report: PassReport) -> bool:
    return report.outcome is not PassOutcome.REFUSED or report.reason == RefusalReason.BREAKER_OPEN


def why(verdict: Verdict) -> str:
    return verdict.name


def owner(machine: Machine) -> str | None:
    return machine.tags.get(_OWNER)


def group(machine: Machine) -> bool:
    return AUTOSCALING_TAG in machine.tags


def was_throttled(evidence: Evidence, name: str) -> bool:
    tried = [e for p in evidence.passes for e in p.terminates if e.request.names(name)]
    return any(exchange.error_code == "RequestLimitExceeded" for exchange in tried)
