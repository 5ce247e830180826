"""What the daemon is given to do. The wiring makes it out of the settings; a reload replaces it whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol

from alerts.lifecycle import Policy
from providers.base import Clock
from providers.model import Scope
from reaperd.core.leaks import AuditReport
from reaperd.core.model import Mode, PassKind, PassReport
from reaperd.core.telling import Telling
from reaperd.daemon.pulse import Tempo
from reaperd.delivery.line import AnyLine
from reaperd.delivery.pinger import Call
from reaperd.ledger.lease import Lease


class LastingClock(Clock, Protocol):
    """A clock that also counts the time for which the machine slept."""

    def since_boot(self) -> timedelta:
        """Return the time since boot, a suspend included."""
        ...


def _nobody(_telling: Telling, _lease: Lease) -> bool:
    """Have nobody to tell."""
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What one run of a job gets from the process that runs it."""

    pass_id: str = ""
    """Empty: the pass makes one."""
    lease: Lease | None = None
    """None: look only."""
    clock_step: timedelta | None = None
    """How far (wall - boot time) moved since the previous pass of this process; None for the first (rule 16)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alerting:
    """Who is told, and how."""

    lines: tuple[AnyLine, ...] = ()
    policy: Policy = field(default_factory=lambda: Policy(audiences=()))
    ping: Call | None = None
    """Calls the dead man's switch; None: there is none."""
    tell: Callable[[Telling, Lease], bool] = _nobody
    """Tells something through the ledger, from any thread; False when that could not be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What the settings in force make the daemon do."""

    deployment: str
    mode: Mode
    providers: tuple[str, ...]
    scopes: tuple[Scope, ...]
    """Those that the configuration names; discovered ones are not among them."""
    tempos: Mapping[PassKind, Tempo]
    lease_ttl: timedelta
    retire: Callable[[], None]
    """Asks what is under way to come to its end: other settings are to be taken over."""
    reconcile: Callable[[Turn], PassReport]
    """Runs one recorded pass. A refusal is a report."""
    audit: Callable[[Turn], AuditReport]
    """Runs one sweep. One that is incomplete is a report."""
    alerting: Alerting = field(default_factory=Alerting)
