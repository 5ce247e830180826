"""One actor at a time (rule 18): a row that names the holder, its generation and its end."""

from __future__ import annotations

import secrets
import sqlite3
from dataclasses import dataclass
from datetime import datetime, timedelta

from reaperd.ledger.connection import text_of, time_of
from reaperd.process import ProcessIdentity

LONGEST = timedelta(hours=1)
"""No lease runs for longer. One that says so was written by a clock that was wrong, and is not waited for."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to act, until it is lost."""

    generation: int
    nonce: str
    """Random: in a ledger that was made anew, another process may take the same generation."""


def take(
    connection: sqlite3.Connection, who: ProcessIdentity, ttl: timedelta, now: datetime
) -> Lease | ProcessIdentity:
    """Take the lease and return it, or return who holds it. To be called inside a write transaction.

    A holder that is proved dead on this host is taken over at once; any other is waited for.
    """
    other = holder(connection, now)
    if other is not None and other != who and not other.is_dead():
        return other
    row = connection.execute("SELECT generation FROM lease").fetchone()
    lease = Lease(generation=1 if row is None else row[0] + 1, nonce=secrets.token_hex(16))
    whose = (who.host, who.boot_id, who.pid_namespace, who.pid, who.started)
    connection.execute(
        "INSERT OR REPLACE INTO lease"
        " (id, generation, nonce, host, boot_id, pid_namespace, pid, started, expires_at)"
        " VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?)",
        (lease.generation, lease.nonce, *whose, text_of(now + ttl)),
    )
    return lease


def holder(connection: sqlite3.Connection, now: datetime) -> ProcessIdentity | None:
    """Return who holds the lease, dead or alive; None when it has run out or nobody ever took it."""
    row = connection.execute("SELECT expires_at, host, boot_id, pid_namespace, pid, started FROM lease").fetchone()
    if row is None or not now < time_of(row[0]) <= now + LONGEST:
        return None
    return ProcessIdentity(host=row[1], boot_id=row[2], pid_namespace=row[3], pid=row[4], started=row[5])


def renew(connection: sqlite3.Connection, lease: Lease, ttl: timedelta, now: datetime) -> bool:
    """Extend the lease; False when it has run out or is another's. One that ran out is lost, even if nobody took it."""
    cursor = connection.execute(
        "UPDATE lease SET expires_at = ? WHERE id = 1 AND generation = ? AND nonce = ? AND expires_at > ?",
        (text_of(now + ttl), lease.generation, lease.nonce, text_of(now)),
    )
    return cursor.rowcount == 1


def holds(connection: sqlite3.Connection, lease: Lease, now: datetime) -> bool:
    """Say whether the lease is still ours."""
    row = connection.execute("SELECT generation, nonce, expires_at FROM lease").fetchone()
    return row is not None and (row[0], row[1]) == (lease.generation, lease.nonce) and now < time_of(row[2])


def release(connection: sqlite3.Connection, lease: Lease, now: datetime) -> None:
    """Give the lease back, if it is still ours."""
    connection.execute(
        "UPDATE lease SET expires_at = ? WHERE id = 1 AND generation = ? AND nonce = ?",
        (text_of(now), lease.generation, lease.nonce),
    )
