"""Ending several machines through one of several children. What the wrappers `MultiRegion` and `MultiCloud` share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from providers.base import BatchPermission, BatchTerminator, Terminator
from providers.errors import GoesAloneError, TerminateError, TerminateRejectedError
from providers.model import InstanceRef, OwnedInstance, Scope

if TYPE_CHECKING:
    from providers.allowance import Allowance

Answers = Mapping[InstanceRef, TerminateError | None]


def allowance_of(child: object, scope: Scope) -> Allowance | None:
    """Return what a child allows; None, each goes alone, for one that is not there or cannot end several together."""
    return child.allowance(scope) if isinstance(child, BatchTerminator) else None


def terminate_with(child: Terminator, seen: Sequence[OwnedInstance], permitted: BatchPermission) -> Answers:
    """End the machines through this child; one that can only end them alone is asked nothing, and each is to go so."""
    if isinstance(child, BatchTerminator):
        return child.terminate_many(seen, permitted=permitted)
    detail = f"{child.name} ends one machine a request"
    return {each.ref: GoesAloneError(each.ref, detail) for each in seen}


def rejected(seen: Sequence[OwnedInstance], detail: str, error_code: str) -> Answers:
    """Return that these machines are not ours to end: nothing was sent."""
    return {each.ref: TerminateRejectedError(each.ref, detail, error_code=error_code) for each in seen}
