"""What EC2 says when a launch comes to nothing, and what that means in our words. Tables and pure functions."""

from __future__ import annotations

from collections.abc import Mapping

from botocore.exceptions import ClientError

from providers.aws.errors import error_code, error_text, is_credential_trouble, is_refusal, is_throttle
from providers.capacity import Offer
from providers.errors import (
    CapacityError,
    InvalidSpecError,
    LaunchDeferredError,
    LaunchDeniedError,
    LaunchEndedError,
    LaunchError,
    LaunchMismatchError,
    LaunchRejectedError,
    QuotaError,
    UnknownLaunchError,
)

NO_CAPACITY: Mapping[str, str] = {
    "InsufficientInstanceCapacity": "the zone has no such machine free",
    "InsufficientCapacity": "the zone has not enough of what was asked for",
    "InsufficientCapacityOnHost": "the dedicated host has no room",
    "InsufficientHostCapacity": "there is no dedicated host to be had",
    "InsufficientReservedInstanceCapacity": "the reserved machines are all taken",
    "ReservationCapacityExceeded": "the capacity reservation is used up",
    "InsufficientVolumeCapacity": "the zone has no room for the volume",
    "InsufficientAddressCapacity": "the region has no public address to give",
    "InsufficientFreeAddressesInSubnet": "the subnet has no address left; another zone has another subnet",
    "UnfulfillableCapacity": "nothing that would do can be had",
    "SpotMaxPriceTooLow": "the spot price rose above the limit",
    "Unsupported": "the zone does not have this type, or not with this image",
}
"""Codes that say: not here and not now, and nothing was launched. Each with its meaning for a person.

InsufficientInstanceCapacity comes with the status 500, and is an answer all the same.
"""

QUOTAS: Mapping[str, str] = {
    "InstanceLimitExceeded": "the account may not run more machines in this region",
    "VcpuLimitExceeded": "the account may not run more vCPUs of this family in this region",
    "MaxSpotInstanceCountExceeded": "the account may not run more spot machines in this region",
    "VolumeLimitExceeded": "the account may not have more volume in this region",
    "AddressLimitExceeded": "the account may not have more addresses in this region",
}
"""Codes that say the same because of a limit of the account. It can be raised: see Service Quotas."""

_DENIED = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "Blocked",
        "InvalidSubscription",
        "OptInRequired",
        "PendingVerification",
        "UnauthorizedOperation",
    }
)
_DENIED_PREFIX = "AuthFailure."
"""Such as AuthFailure.ServiceLinkedRoleCreationNotPermitted: no spot machine before somebody made that role."""

_MISMATCH = "IdempotentParameterMismatch"
_ENDED = "InvalidInstanceID.NotFound"
_WRONG = ("Invalid", "Malformed", "Missing", "Unknown")
"""How the codes of wrong parameters begin."""


def launch_error(error: Exception, worker_id: str, offer: Offer) -> LaunchError:
    """Return what an error means for a RunInstances that was sent. Unknown unless AWS certainly refused."""
    code = error_code(error)
    said = f"{place_of(worker_id, offer)}: {code}: {error_text(error)}"
    # Before the status is looked at: that there is nothing to be had comes as a server's error.
    if isinstance(error, ClientError) and code in NO_CAPACITY:
        return CapacityError(code, f"{said} ({NO_CAPACITY[code]})", offer.region)
    if isinstance(error, ClientError) and code in QUOTAS:
        return QuotaError(code, f"{said} ({QUOTAS[code]})", offer.region)
    kind = _kind_of(error, code)
    return kind(f"{said}{_ADVICE.get(kind, '')}", error_code=code)


def error_before_launch(error: Exception, worker_id: str, offer: Offer, stage: str) -> LaunchError:
    """Return what an error means that came before anything was sent. `stage` says what was done."""
    code = error_code(error)
    kind = LaunchDeniedError if is_denied(code) else LaunchDeferredError
    said = f"{place_of(worker_id, offer)}: {stage}: {code}: {error_text(error)}"
    return kind(f"{said}{_ADVICE.get(kind, '')}", error_code=f"{stage}:{code}")


def is_denied(code: str) -> bool:
    """Return whether the code says that we may not."""
    return code in _DENIED or code.startswith(_DENIED_PREFIX)


def place_of(worker_id: str, offer: Offer) -> str:
    """Return how a message begins: who, what and where."""
    return f"{worker_id}: {offer.instance_type} ({offer.kind}) in {offer.provider}/{offer.zone or offer.region}"


def _kind_of(error: Exception, code: str) -> type[LaunchError]:
    if is_throttle(error) or is_credential_trouble(error):
        return LaunchDeferredError
    if not is_refusal(error):
        return UnknownLaunchError
    if is_denied(code):
        return LaunchDeniedError
    return _NAMED.get(code) or (InvalidSpecError if code.startswith(_WRONG) else LaunchRejectedError)


_NAMED: Mapping[str, type[LaunchError]] = {_MISMATCH: LaunchMismatchError, _ENDED: LaunchEndedError}
_ADVICE: Mapping[type[LaunchError], str] = {
    LaunchDeniedError: ". Compare with what `reaperd iam-policy --role launcher` prints",
    LaunchDeferredError: ". Nothing was launched; try again later",
    UnknownLaunchError: ". There may be a machine: launch again with the same worker id onto the same offer",
    LaunchEndedError: ". The worker id had a machine, and that is over: take a new one",
}
