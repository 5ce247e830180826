"""From what clouds, ledger and registry say to what became of a termination, and to what ends a pass's requests."""

from __future__ import annotations

from dataclasses import dataclass

from providers.errors import (
    CredentialsExpiredError,
    InstanceChangedError,
    InstanceNotFoundError,
    InvalidInstanceIdError,
    SpotRequestNotCancelledError,
    TerminateError,
    TerminationDeniedError,
    TerminationProtectedError,
    ThrottledError,
    UnknownResultError,
)
from providers.model import InstanceRef
from reaperd.core.model import DeferReason, Observation, Outcome, OutcomeKind, SparedReason
from reaperd.errors import LedgerUnusableError
from reaperd.ledger.ledger import BrakeIsOnError, LeaseLostError
from registry.model import RegistryIdentity, RegistrySnapshot

LATE = "the pass ran past its deadline while acting"
REPLACED = "the registry was replaced while the pass was acting"

NO_LEAVE = (LeaseLostError, BrakeIsOnError, LedgerUnusableError)
"""What the ledger says instead of: it may be sent."""

_SPARES = {
    DeferReason.STOPPING: SparedReason.STOPPING,
    DeferReason.NOT_LEADER: SparedReason.NOT_LEADER,
    DeferReason.REAP_HOLD: SparedReason.REAP_HOLD,
}

_KINDS: tuple[tuple[type[TerminateError], OutcomeKind, str | None], ...] = (
    (InstanceNotFoundError, OutcomeKind.ALREADY_GONE, None),
    (InvalidInstanceIdError, OutcomeKind.INVALID_ID, None),
    (TerminationProtectedError, OutcomeKind.PROTECTED, None),
    (TerminationDeniedError, OutcomeKind.DENIED, None),
    (InstanceChangedError, OutcomeKind.SPARED, SparedReason.CHANGED),
    (SpotRequestNotCancelledError, OutcomeKind.FAILED, "spot_request_not_cancelled"),
    (ThrottledError, OutcomeKind.DEFERRED, DeferReason.THROTTLED),
    (CredentialsExpiredError, OutcomeKind.DEFERRED, DeferReason.CREDENTIALS_EXPIRED),
    (UnknownResultError, OutcomeKind.UNKNOWN, None),
)


@dataclass(frozen=True, slots=True)
class Stop:
    """Nothing more may be sent in this pass."""

    reason: DeferReason
    detail: str = ""


def outcome_of(ref: InstanceRef, error: TerminateError) -> Outcome:
    """Return what an error of a terminator means."""
    for kind_of_error, kind, reason in _KINDS:
        if isinstance(error, kind_of_error):
            return Outcome(ref=ref, kind=kind, reason=reason, error_code=error.error_code, detail=error.detail)
    return Outcome(
        ref=ref,
        kind=OutcomeKind.FAILED,
        reason=error.error_code or "rejected",
        error_code=error.error_code,
        detail=error.detail,
    )


def left(ref: InstanceRef, reason: DeferReason) -> Outcome:
    """Return what becomes of a machine that is not asked for because the pass's requests have ended."""
    spared = _SPARES.get(reason)
    if spared is not None:
        return Outcome(ref=ref, kind=OutcomeKind.SPARED, reason=spared)
    return Outcome(ref=ref, kind=OutcomeKind.DEFERRED, reason=reason)


def stopped_by(error: LeaseLostError | BrakeIsOnError | LedgerUnusableError) -> Stop:
    """Return why nothing more may be sent once the ledger gave no leave."""
    match error:
        case LeaseLostError():
            return Stop(DeferReason.NOT_LEADER, "the lease was lost while the pass was acting")
        case BrakeIsOnError():
            return Stop(DeferReason.REAP_HOLD, "somebody put the brake on while the pass was acting")
        case LedgerUnusableError():
            return Stop(DeferReason.LEDGER_UNUSABLE, str(error))


def stop_after(outcome: Outcome) -> Stop | None:
    """Say whether an answer ends the pass's requests: to go on would be to hammer."""
    if outcome.kind is OutcomeKind.DEFERRED and outcome.reason is not None:
        return Stop(DeferReason(outcome.reason), outcome.detail)
    return None


def same_registry(found: RegistryIdentity, seen: Observation) -> bool:
    """Say whether what was looked up is of the registry that was judged, or of what has become of it since."""
    if not isinstance(seen.registry, RegistrySnapshot):
        return False
    judged = seen.registry.identity
    same = (found.registry_id, found.deployment) == (judged.registry_id, judged.deployment)
    return same and found.epoch >= judged.epoch
