"""A recorded plan with what the ledger has of its machines since. Reads only, leaves no trace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from sqlite3 import Connection

from providers.model import InstanceRef
from reaperd.core.history import EntryKind, Look, ToldOutcome, ToldPass
from reaperd.core.model import OutcomeKind
from reaperd.core.plans import RecordedPlan, Request
from reaperd.ledger.connection import maybe_time, text_of, time_of
from reaperd.ledger.existing import read
from reaperd.ledger.history import COLUMNS, LedgerFile, read_passes
from reaperd.ledger.looks import last_look


def recorded_plan(ledger: LedgerFile, digest: str | None = None) -> RecordedPlan | None:
    """Return the newest recorded pass that had this plan (None: any plan); None when none had.

    Raises:
        LedgerUnusableError: if there is no ledger, it cannot be read, or is another deployment's.
    """

    def work(connection: Connection) -> RecordedPlan | None:
        ledger.require(connection)
        told = _newest(connection, digest)
        if told is None or told.plan_digest is None:
            return None
        look = last_look(connection)
        plan = RecordedPlan(digest=told.plan_digest, told=told, requests=dict(_requests(connection, told.at)))
        if look is None:
            return plan
        return replace(
            plan,
            looked_at=look.at,
            scopes=frozenset(entry.scope for entry in look.coverage),
            listed={instance.ref: instance.state for instance in look.instances},
            verdicts=dict(_verdicts(connection)),
            outcomes={outcome.ref: outcome for outcome in _outcomes(connection, look)},
        )

    return read(ledger.path, work)


def _newest(connection: Connection, digest: str | None) -> ToldPass | None:
    rows = connection.execute(
        f"SELECT {COLUMNS} FROM passes WHERE plan_digest IS NOT NULL AND (? IS NULL OR plan_digest = ?)"  # noqa: S608 - a constant
        " ORDER BY seq DESC LIMIT 1",
        (digest, digest),
    )
    return next(read_passes(rows), None)


def _verdicts(connection: Connection) -> Iterator[tuple[InstanceRef, str]]:
    rows = connection.execute("SELECT provider, region, instance_id, verdict FROM sightings")
    yield from ((InstanceRef(*row[:3]), row[3]) for row in rows)


def _requests(connection: Connection, since: datetime) -> Iterator[tuple[InstanceRef, Request]]:
    """Yield the terminations that were begun since, the newest of a machine last."""
    rows = connection.execute(
        "SELECT provider, region, instance_id, requested_at, outcome, closed_as, closed_at FROM intents"
        " WHERE requested_at >= ? ORDER BY intent_id",
        (text_of(since),),
    )
    for row in rows:
        yield (
            InstanceRef(*row[:3]),
            Request(
                requested_at=time_of(row[3]),
                outcome=_kind(row[4]),
                closed_as=_kind(row[5]),
                closed_at=maybe_time(row[6]),
            ),
        )


def _kind(text: str | None) -> OutcomeKind | None:
    return None if text is None else OutcomeKind(text)


def _outcomes(connection: Connection, look: Look) -> tuple[ToldOutcome, ...]:
    """Return what became of terminations in the pass that made the look."""
    rows = connection.execute(
        f"SELECT {COLUMNS} FROM passes WHERE kind = ? AND started_at = ? ORDER BY seq DESC LIMIT 1",  # noqa: S608 - a constant
        (EntryKind.RECONCILE, text_of(look.at)),
    )
    return next((told.outcomes for told in read_passes(rows)), ())
