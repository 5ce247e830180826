"""Reading the memory out of an open ledger, in whatever way it was opened."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from datetime import datetime

from providers.model import InstanceRef, Scope
from reaperd.core.model import WINDOW, Approval, Brake, Intent, Memory, OutcomeKind, RegistryPin, Sighting
from reaperd.ledger.connection import maybe_time, text_of, time_of

_COUNTED = "(outcome IS NULL OR outcome IN ('requested', 'unknown'))"


def recall(connection: sqlite3.Connection, now: datetime) -> Memory:
    """Return everything that a decision needs. To be called inside one transaction."""
    looked_at = _looked_at(connection)
    return Memory(
        sightings=dict(_sightings(connection, looked_at)),
        looked_at=looked_at,
        intents=open_intents(connection),
        requests=_requests(connection, now),
        pin=_pin(connection),
        listed=frozenset(InstanceRef(*row) for row in connection.execute("SELECT * FROM listed")),
        scopes=frozenset(Scope(*row) for row in connection.execute("SELECT * FROM scopes")),
        brake=brake(connection),
        approvals=_approvals(connection, now),
    )


def brake(connection: sqlite3.Connection) -> Brake | None:
    """Return the brake, if it is on."""
    row = connection.execute("SELECT since, held_by, reason FROM brake").fetchone()
    return None if row is None else Brake(since=time_of(row[0]), by=row[1], reason=row[2])


def _looked_at(connection: sqlite3.Connection) -> datetime | None:
    # Whoever only reads may meet a ledger that the newer daemon has not migrated yet.
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'sighted'").fetchone() is None:
        return None
    row = connection.execute("SELECT at FROM sighted").fetchone()
    return None if row is None else time_of(row[0])


def _sightings(connection: sqlite3.Connection, looked_at: datetime | None) -> Iterator[tuple[InstanceRef, Sighting]]:
    rows = connection.execute(
        "SELECT provider, region, instance_id, first_seen_at, last_seen_at, confirmations, counted_at, tracked_at,"
        " tracked_by, vanished_at, verdict FROM sightings"
    )
    for provider, region, instance_id, first, last, confirmations, counted, tracked, by, vanished, verdict in rows:
        yield (
            InstanceRef(provider, region, instance_id),
            Sighting(
                first_seen_at=time_of(first),
                last_seen_at=looked_at if last == "" and looked_at is not None else time_of(last),
                confirmations=confirmations,
                counted_at=maybe_time(counted),
                tracked_at=looked_at if tracked == "" and looked_at is not None else maybe_time(tracked),
                tracked_by=by,
                vanished_at=maybe_time(vanished),
                verdict=verdict,
            ),
        )


def open_intents(connection: sqlite3.Connection) -> Mapping[InstanceRef, Intent]:
    """Return the newest open intent of each machine."""
    found: dict[InstanceRef, Intent] = {}
    rows = connection.execute(
        "SELECT provider, region, instance_id, intent_id, requested_at, outcome, error_code FROM intents"
        " WHERE closed_at IS NULL ORDER BY intent_id"
    )
    for row in rows:
        ref = InstanceRef(*row[:3])
        earlier = found.get(ref)
        requested_at = time_of(row[4])
        outcome = None if row[5] is None else OutcomeKind(row[5])
        repeats = earlier is not None and _may_be_ending(earlier.outcome) and _may_be_ending(outcome)
        found[ref] = Intent(
            intent_id=row[3],
            ref=ref,
            requested_at=requested_at,
            outcome=outcome,
            error_code=row[6],
            first_requested_at=earlier.first_requested_at if earlier is not None and repeats else requested_at,
        )
    return found


def _may_be_ending(outcome: OutcomeKind | None) -> bool:
    """Say whether the cloud may have taken the request: only then is a machine that is still there stuck."""
    return outcome in {None, OutcomeKind.REQUESTED, OutcomeKind.UNKNOWN, OutcomeKind.ALREADY_GONE}


def _requests(connection: sqlite3.Connection, now: datetime) -> tuple[datetime, ...]:
    rows = connection.execute(
        f"SELECT requested_at FROM intents WHERE requested_at > ? AND NOT again AND NOT approved AND {_COUNTED}",  # noqa: S608 - a constant
        (text_of(now - WINDOW),),
    )
    return tuple(time_of(row[0]) for row in rows)


def _pin(connection: sqlite3.Connection) -> RegistryPin | None:
    row = connection.execute("SELECT registry_id, epoch, nonce, mismatch_accepted FROM registry_pin").fetchone()
    if row is None:
        return None
    return RegistryPin(registry_id=row[0], epoch=row[1], nonce=row[2], mismatch_accepted=bool(row[3]))


def _approvals(connection: sqlite3.Connection, now: datetime) -> tuple[Approval, ...]:
    rows = connection.execute(
        "SELECT digest, refs, expires_at FROM approvals WHERE expires_at > ? ORDER BY digest", (text_of(now),)
    )
    return tuple(
        Approval(
            digest=row[0],
            refs=frozenset(InstanceRef(*ref) for ref in json.loads(row[1])),
            expires_at=time_of(row[2]),
        )
        for row in rows
    )
