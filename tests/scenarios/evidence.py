"""What was seen of a case while it was played. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from reaperd.core.leaks import AuditReport
from reaperd.core.model import PassReport
from tests.scenarios.scraped import Scrape
from tests.support.ec2 import Exchange, Machine


@dataclass(frozen=True, slots=True)
class IntentRow:
    """An intent as it stands in the ledger."""

    instance_id: str
    outcome: str | None
    closed_as: str | None
    requested_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What stood when a terminate came in at the cloud."""

    instance_id: str
    named_along: int
    """How many other machines the same request named."""
    intent_on_disk: bool
    live_row: bool
    """A live row of the registry named the machine."""
    machine: Machine
    first_seen: datetime | None
    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What there was before a pass, or after it."""

    machines: tuple[Machine, ...]
    rows: tuple[Mapping[str, str | None], ...]
    files: Mapping[str, str]
    """The registry's folder, byte for byte."""
    intents: tuple[IntentRow, ...]
    first_seen: Mapping[str, datetime]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """One reconcile pass, or one sweep."""

    report: PassReport | AuditReport
    before: Seen
    after: Seen
    asked: tuple[Exchange, ...]
    """Every request of it, as the cloud saw them."""
    accepted: tuple[str, ...]
    """The machines whose termination the cloud accepted."""
    disturbed: bool
    """The world wrote or locked the registry meanwhile."""
    scraped: tuple[Scrape, Scrape]
    """What /metrics showed before it and after it."""
    events: tuple[Mapping[str, Any], ...]
    """What was logged of it, as JSON."""
    unready: str
    """What keeps a daemon from being ready after it; empty: nothing."""

    @property
    def reap(self) -> PassReport | None:
        """Return the report if this was a reconcile pass."""
        return self.report if isinstance(self.report, PassReport) else None

    @property
    def terminates(self) -> tuple[Exchange, ...]:
        """Return the real terminates, answered or not."""
        return tuple(exchange for exchange in self.changes if exchange.action == "TerminateInstances")

    @property
    def changes(self) -> tuple[Exchange, ...]:
        """Return the requests that would change the cloud."""
        return tuple(e for e in self.asked if e.request.mutating and not e.request.dry_run)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything that came of one variant."""

    owner: str
    """The deployment that the settings name."""
    rehearsing: bool
    passes: tuple[Pass, ...] = ()
    moments: tuple[Moment, ...] = ()
    ended_with: str | None = None
    """The name of the exit code with which the process ended by itself; None: it did not."""
    steps_left: int = 0
    scrapes: tuple[Scrape, ...] = ()
    """Those that the case asks for."""
    true_ages: Mapping[str, timedelta] = field(default_factory=dict)
    began_at: datetime
    sent: tuple[tuple[str, str], ...] = ()
    """Kind and key of every message to a channel, in order."""

    @property
    def reaps(self) -> tuple[PassReport, ...]:
        """Return the reports of the reconcile passes."""
        return tuple(p.reap for p in self.passes if p.reap is not None)
