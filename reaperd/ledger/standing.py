"""What the ledger knows of how things stand: what a restarted daemon goes on from, and what a person is told."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from reaperd.core.model import Brake, PassKind, PassOutcome
from reaperd.ledger.connection import maybe_time, time_of
from reaperd.ledger.lease import holder
from reaperd.ledger.recall import brake
from reaperd.process import ProcessIdentity


@dataclass(frozen=True, slots=True, kw_only=True)
class LastRuns:
    """When the runs of one kind were, by the times at which they started. None: there was none, or it is forgotten."""

    attempted_at: datetime | None = None
    """The newest that was recorded, whatever came of it."""
    looked_at: datetime | None = None
    """The newest that saw everything, whatever was decided on it."""
    completed_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewestPass:
    """How the newest recorded reconcile pass ended."""

    pass_id: str
    mode: str
    started_at: datetime
    finished_at: datetime
    outcome: str
    reason: str | None
    plan_digest: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """How things stand, by the ledger."""

    created_at: datetime
    """When this ledger was made."""
    runs: Mapping[PassKind, LastRuns] = field(hash=False)
    """Of every kind."""
    newest: NewestPass | None
    brake: Brake | None
    lease_holder: ProcessIdentity | None
    """Who holds the lease, dead or alive; None when it has run out."""
    open_intents: int
    """Machines whose end was asked for and is not proved."""


def recorded(connection: sqlite3.Connection, now: datetime) -> Recorded:
    """Return how things stand. To be called inside one transaction."""
    (created_at,) = connection.execute("SELECT created_at FROM meta").fetchone()
    (open_intents,) = connection.execute(
        "SELECT count(*) FROM (SELECT DISTINCT provider, region, instance_id FROM intents WHERE closed_at IS NULL)"
    ).fetchone()
    return Recorded(
        created_at=time_of(created_at),
        runs={PassKind.RECONCILE: _reconciled(connection), PassKind.AUDIT: _audited(connection)},
        newest=_newest(connection),
        brake=brake(connection),
        lease_holder=holder(connection, now),
        open_intents=open_intents,
    )


def _reconciled(connection: sqlite3.Connection) -> LastRuns:
    # A pass that was refused after a complete look has its look here, and nowhere else.
    row = connection.execute("SELECT at FROM last_look").fetchone()
    return LastRuns(
        attempted_at=_last(connection, PassKind.RECONCILE),
        looked_at=None if row is None else time_of(row[0]),
        completed_at=_last(connection, PassKind.RECONCILE, PassOutcome.COMPLETE),
    )


def _audited(connection: sqlite3.Connection) -> LastRuns:
    # A sweep decides nothing: it is complete when it saw everything.
    complete = _last(connection, PassKind.AUDIT, PassOutcome.COMPLETE)
    return LastRuns(attempted_at=_last(connection, PassKind.AUDIT), looked_at=complete, completed_at=complete)


def _last(connection: sqlite3.Connection, kind: PassKind, outcome: PassOutcome | None = None) -> datetime | None:
    row = connection.execute(
        "SELECT started_at FROM passes WHERE kind = ? AND (? IS NULL OR outcome = ?) ORDER BY started_at DESC LIMIT 1",
        (str(kind), outcome and str(outcome), outcome and str(outcome)),
    ).fetchone()
    return maybe_time(None if row is None else row[0])


def _newest(connection: sqlite3.Connection) -> NewestPass | None:
    row = connection.execute(
        "SELECT pass_id, mode, started_at, finished_at, outcome, reason, plan_digest FROM passes WHERE kind = ?"
        " ORDER BY seq DESC LIMIT 1",
        (str(PassKind.RECONCILE),),
    ).fetchone()
    if row is None:
        return None
    return NewestPass(
        pass_id=row[0],
        mode=row[1],
        started_at=time_of(row[2]),
        finished_at=time_of(row[3]),
        outcome=row[4],
        reason=row[5],
        plan_digest=row[6],
    )
