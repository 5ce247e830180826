"""How fast requests go to each scope. Outlives a pass, as what a cloud remembers does."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from providers.allowance import Allowance
from providers.base import BatchTerminator, Terminator
from providers.model import Scope
from reaperd.core.pacing import Pace, together

PACE = timedelta(milliseconds=250)
"""Between two requests to one scope: EC2 documents 5 TerminateInstances a second (refill), we send 4."""

SHARE = 0.5
"""Of what a cloud allows; the rest is for everybody else who uses the account."""


@dataclass(slots=True, kw_only=True)
class Pacer:
    """Keeps one scope's requests apart, and within our share of what its cloud allows. For one thread."""

    share: float = SHARE
    _begun: dict[Scope, float] = field(default_factory=dict)
    _paces: dict[Scope, Pace] = field(default_factory=dict)

    def wait(self, scope: Scope, allowance: Allowance | None, machines: int, now: float) -> float:
        """Return in how many seconds a request that names so many machines may be begun there; 0: now."""
        apart = self._begun.get(scope, now - PACE.total_seconds()) + PACE.total_seconds() - now
        if allowance is None:
            return max(apart, 0.0)
        return max(apart, self._pace(scope, allowance, now).wait(machines, now), 0.0)

    def begun(self, scope: Scope, now: float) -> None:
        """Take down that a request to this scope is begun."""
        self._begun[scope] = now

    def answered(self, scope: Scope, allowance: Allowance | None, *, requests: int, machines: int, now: float) -> None:
        """Take down what was sent there by now: so many requests, which named so many machines together."""
        if allowance is not None:
            self._paces[scope] = self._pace(scope, allowance, now).spent(requests, machines, now)

    def together(self, allowance: Allowance | None) -> int:
        """Return how many machines one request may name."""
        return 1 if allowance is None else together(allowance, self.share)

    def _pace(self, scope: Scope, allowance: Allowance, now: float) -> Pace:
        return self._paces.get(scope) or Pace.of(allowance, self.share, now)


def allowance_of(terminator: Terminator, scope: Scope) -> Allowance | None:
    """Return what a cloud allows there; None: nobody says, and each machine goes alone."""
    return terminator.allowance(scope) if isinstance(terminator, BatchTerminator) else None
