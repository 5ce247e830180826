"""How many machines may be ended at once, and how fast. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from providers.model import OwnedInstance


@dataclass(frozen=True, slots=True)
class Rate:
    """A token bucket, as clouds document theirs: so many at once, and so many more each second."""

    burst: float
    per_second: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What one scope lets everybody who uses the account do together."""

    together: int
    """How many machines one request may name."""
    requests: Rate
    """Of requests, however many machines they name."""
    machines: Rate
    """Of machines, over however many requests."""


def require_batch(seen: Sequence[OwnedInstance], together: int) -> None:
    """Refuse what cannot be one request.

    Raises:
        ValueError: if they are more than may go together, of several scopes, or one is there twice.
    """
    refs = {instance.ref for instance in seen}
    if len(seen) > together:
        msg = f"{len(seen)} machines for one request, which may name {together}"
        raise ValueError(msg)
    if len(refs) < len(seen) or len({ref.scope for ref in refs}) > 1:
        msg = "the machines of one request are of one scope, and each is there once"
        raise ValueError(msg)
