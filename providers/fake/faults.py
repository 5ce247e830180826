"""The ways in which the cloud in memory can be made to fail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from providers.errors import (
    CredentialsExpiredError,
    InstanceNotFoundError,
    InvalidInstanceIdError,
    SpotRequestNotCancelledError,
    TerminateError,
    TerminateRejectedError,
    TerminationDeniedError,
    TerminationProtectedError,
    ThrottledError,
    UnknownResultError,
)
from providers.model import InstanceRef, ScopeFailure


@dataclass(frozen=True, slots=True, kw_only=True)
class ListingFault:
    """How the listing of one region goes wrong. Loud faults raise; the silent ones are what a liar would return."""

    error_code: str | None = None
    """Loud: the region fails with this code."""
    failure: ScopeFailure = ScopeFailure.LISTING
    """The kind of the loud failure; WRONG_ACCOUNT and DEADLINE need no code."""
    delay: timedelta = timedelta(0)
    """The answer takes so long by the clock."""
    missing: frozenset[str] = frozenset()
    """Silent: these instance ids are left out, as by a lost page or a short view."""
    repeated: frozenset[str] = frozenset()
    """Silent: these instance ids are there twice."""
    lost_tags: frozenset[str] = frozenset()
    """Silent: these tag keys are not shown; without the ownership tag a machine is not listed at all."""
    no_coverage: bool = False
    """Silent: instances without a coverage entry of the region."""
    clock_skew: timedelta | None = timedelta(0)
    """What the answer's date says. None: no date."""
    calls: int | None = None
    """Heals by itself after so many listings. None: stays."""

    @property
    def is_loud(self) -> bool:
        """True when the listing fails openly."""
        return self.error_code is not None or self.failure is not ScopeFailure.LISTING


class TerminateFault(StrEnum):
    """How the termination of one machine goes wrong."""

    NOT_FOUND = "not_found"
    MALFORMED = "malformed"
    PROTECTED = "protected"
    DENIED = "denied"
    THROTTLED = "throttled"
    EXPIRED = "expired"
    REJECTED = "rejected"
    UNKNOWN_APPLIED = "unknown_applied"
    """The answer is lost, and the machine ends."""
    UNKNOWN_LOST = "unknown_lost"
    """The answer is lost, and so was the request."""
    IGNORED = "ignored"
    """Accepted, and nothing happens."""
    SPOT_NOT_CANCELLED = "spot_not_cancelled"


REFUSALS: Mapping[TerminateFault, tuple[type[TerminateError], str | None]] = {
    TerminateFault.NOT_FOUND: (InstanceNotFoundError, "InvalidInstanceID.NotFound"),
    TerminateFault.MALFORMED: (InvalidInstanceIdError, "InvalidInstanceID.Malformed"),
    TerminateFault.PROTECTED: (TerminationProtectedError, "OperationNotPermitted"),
    TerminateFault.DENIED: (TerminationDeniedError, "UnauthorizedOperation"),
    TerminateFault.THROTTLED: (ThrottledError, "RequestLimitExceeded"),
    TerminateFault.EXPIRED: (CredentialsExpiredError, "ExpiredToken"),
    TerminateFault.REJECTED: (TerminateRejectedError, "IncorrectInstanceState"),
    TerminateFault.UNKNOWN_APPLIED: (UnknownResultError, None),
    TerminateFault.UNKNOWN_LOST: (UnknownResultError, None),
    TerminateFault.SPOT_NOT_CANCELLED: (SpotRequestNotCancelledError, None),
}
"""The error and the code of each fault that does not answer "accepted"."""
BEFORE_SENDING = frozenset({TerminateFault.NOT_FOUND, TerminateFault.MALFORMED})
"""Faults that the look at the machine meets, so that nothing is sent."""
TAKES_EFFECT = frozenset({None, TerminateFault.UNKNOWN_APPLIED})
"""Faults, or none, with which the machine ends."""


def refusal(ref: InstanceRef, fault: TerminateFault) -> TerminateError:
    """Return the error that a fault answers with."""
    kind, code = REFUSALS[fault]
    return kind(ref, fault.value, error_code=code)
