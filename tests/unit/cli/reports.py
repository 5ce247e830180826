"""Reports of passes, built by the decision itself from small worlds."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from providers.model import ScopeFailure
from reaperd.core.conditions import conditions, missing
from reaperd.core.model import (
    DeferReason,
    Mode,
    Observation,
    Outcome,
    OutcomeKind,
    PassOutcome,
    PassReport,
    Plan,
    ReapPolicy,
    Refusal,
    RefusalReason,
    SparedReason,
)
from reaperd.core.reap import decide
from reaperd.core.tracking import bad_times
from registry.model import RegistrySnapshot
from tests.support.worlds import EAST, GCP, HOUR, MINUTE, NOW, WEST, look, machine, policy, ref, row, whole
from tests.support.worlds import broken as failed_scope

PASS_ID = "0f3c5ad0b2c84a5f9d6a3b1c7e8f9a01"


def report(
    seen: Observation,
    wishes: ReapPolicy,
    *,
    mode: Mode = Mode.DRY_RUN,
    outcomes: tuple[Outcome, ...] | None = None,
    **other: Any,
) -> PassReport:
    """Return the report of a pass over this world, as the reconciler would make it."""
    decision = decide(seen, wishes)
    if outcomes is None:
        going = decision.terminations if isinstance(decision, Plan) else ()
        outcomes = tuple(Outcome(ref=v.ref, kind=OutcomeKind.WOULD_TERMINATE) for v in going)
    known = seen.registry if isinstance(seen.registry, RegistrySnapshot) else None
    made = PassReport(
        pass_id=PASS_ID,
        mode=mode,
        started_at=NOW,
        finished_at=NOW + timedelta(seconds=2.1),
        outcome=PassOutcome.COMPLETE,
        reason=None,
        coverage=seen.coverage,
        registry=known,
        digest=decision.digest,
        verdicts=decision.verdicts,
        confirmations_needed=3,
        outcomes=outcomes,
        missing=missing(seen, wishes),
        bad_rows=bad_times(known.workers, NOW) if known else (),
        conditions=conditions(seen, wishes, decision, outcomes),
    )
    if isinstance(decision, Refusal):
        also = tuple(str(reason) for reason in decision.also)
        made = replace(
            made, outcome=PassOutcome.REFUSED, reason=str(decision.reason), detail=decision.detail, also=also
        )
    return replace(made, **other)


def fleet() -> Observation:
    """Return a look at two orphans, holds of many kinds, and rows that somebody should know of."""
    machines = [
        machine("i-0aa11111111111111", worker="w-1"),
        machine("i-0bb22222222222222", worker="transcode-7f3c2a10-3c1e-4f0a-9c55-0d2f6a1b9e77", age=50 * HOUR),
        machine("i-0cc33333333333333", worker=None, age=3 * HOUR),
        machine("i-0dd44444444444444", worker="w-4", at=WEST, protect=True),
        machine("i-0ee55555555555555", worker="w-5", at=WEST, managed_by="autoscaling:workers"),
        machine("i-0ff66666666666666", worker="w-6", age=4 * MINUTE),
        machine("8423946125473651234", worker="w-7", at=GCP, foreign_account=True),
    ]
    rows = [
        row("w-1", "i-0aa11111111111111"),
        row("w-8", "i-0a888888888888888", at=WEST),
        row("w-9", None, unreadable=("created_at",)),
    ]
    coverage = (
        whole(EAST, account="111111111111", instances=4, pages=1, duration=timedelta(seconds=0.2)),
        whole(WEST, account="111111111111", instances=2, pages=1, duration=timedelta(seconds=1.94)),
        whole(GCP, instances=1, pages=3, duration=timedelta(seconds=0.5)),
    )
    return look(machines, rows, coverage=coverage)


def rehearsal() -> PassReport:
    return report(fleet(), policy())


def enforced() -> PassReport:
    """Return a pass that sent one termination, was denied one, and whose third machine was registered meanwhile."""
    outcomes = (
        Outcome(ref=ref("i-0old999999999999"), kind=OutcomeKind.CONFIRMED_GONE),
        Outcome(ref=ref("i-0bb22222222222222"), kind=OutcomeKind.REQUESTED),
        Outcome(
            ref=ref("i-0cc33333333333333"),
            kind=OutcomeKind.DENIED,
            error_code="UnauthorizedOperation",
            detail="You are not authorized to perform: ec2:TerminateInstances",
        ),
    )
    return report(fleet(), policy(), mode=Mode.ENFORCE, outcomes=outcomes)


def deferred(reason: DeferReason = DeferReason.THROTTLED) -> PassReport:
    """Return a pass that had to stop while acting."""
    outcomes = (
        Outcome(ref=ref("i-0bb22222222222222"), kind=OutcomeKind.REQUESTED),
        Outcome(ref=ref("i-0cc33333333333333"), kind=OutcomeKind.DEFERRED, reason=reason),
    )
    return report(
        fleet(),
        policy(),
        mode=Mode.ENFORCE,
        outcomes=outcomes,
        outcome=PassOutcome.DEFERRED,
        reason=str(reason),
        detail="RequestLimitExceeded",
    )


def spared() -> PassReport:
    outcomes = (
        Outcome(ref=ref("i-0bb22222222222222"), kind=OutcomeKind.UNKNOWN, error_code="ReadTimeout"),
        Outcome(ref=ref("i-0cc33333333333333"), kind=OutcomeKind.SPARED, reason=SparedReason.TRACKED_NOW),
    )
    return report(fleet(), policy(), mode=Mode.ENFORCE, outcomes=outcomes)


def refused(reason: RefusalReason) -> PassReport:
    """Return a pass that stood down; those that carry verdicts carry them."""
    keeps_verdicts = reason in {RefusalReason.BREAKER_OPEN, RefusalReason.REAP_HOLD}
    changes: dict[str, Any] = {} if keeps_verdicts else {"verdicts": (), "digest": None, "conditions": ()}
    seen = fleet()
    if reason is RefusalReason.LISTING_INCOMPLETE:
        broken = failed_scope(WEST, ScopeFailure.LISTING, detail="AWS was not able to validate the credentials")
        changes["coverage"] = (seen.coverage[0], broken, seen.coverage[2])
    if reason is RefusalReason.REGISTRY_UNUSABLE:
        changes["registry"] = None
    return report(
        seen,
        policy(),
        outcomes=(),
        outcome=PassOutcome.REFUSED,
        reason=str(reason),
        detail=f"what the guard says of {reason}",
        **changes,
    )


def crowd(size: int = 5000) -> PassReport:
    """Return a rehearsal over a big fleet: thirty orphans, the rest tracked."""
    orphans = 30
    machines = [machine(f"i-{number:017d}", worker=f"w-{number}") for number in range(size)]
    rows = [row(f"w-{number}", f"i-{number:017d}") for number in range(orphans, size)]
    return report(look(machines, rows), policy())
