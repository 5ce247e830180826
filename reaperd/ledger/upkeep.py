"""What keeps a ledger fit for months: a proof at the start that it can be written, and forgetting in small steps."""

from __future__ import annotations

import sqlite3
from datetime import datetime, timedelta
from pathlib import Path

from reaperd.errors import LedgerUnusableError
from reaperd.ledger.connection import immediate, text_of

KEPT_AT_LEAST = timedelta(hours=24)
"""However short the history is kept, closed intents stay this long: the breaker counts them."""

ROWS = 500
"""So many rows are dropped in one transaction, at most: it takes a few milliseconds, and then others may write."""

STEPS = 8
"""So many transactions a call: a month that was missed is caught up with in ten passes, and none of them stalls."""

_TRIAL = "x" * 16_384
"""About as long as the record of a pass that saw a lot."""


def self_test(connection: sqlite3.Connection, path: Path, now: datetime) -> None:
    """Write a row, durably, and read it back.

    Raises:
        LedgerUnusableError: if that fails.
    """
    written = (text_of(now), _TRIAL)
    with immediate(connection, path):
        connection.execute("INSERT OR REPLACE INTO self_test VALUES (1, ?, ?)", written)
        read = connection.execute("SELECT at, text FROM self_test").fetchone()
    if read != written:
        raise LedgerUnusableError(str(path), "it does not give back what was written into it", "Check the disk")


def forget(connection: sqlite3.Connection, path: Path, keep: timedelta, now: datetime) -> bool:
    """Drop what is older than `keep`, in small transactions; return False when more is left for the next time.

    What the rolling hour counts stays in any case, and so does the newest pass: the next one is chained to it.
    Freed pages are used again, so the file stops growing; it does not shrink.
    """
    before, closed_before = text_of(now - keep), text_of(now - max(keep, KEPT_AT_LEAST))
    for _ in range(STEPS):
        with immediate(connection, path):
            dropped = (
                _drop_passes(connection, before, text_of(now)),
                _drop_intents(connection, closed_before),
                _drop_approvals(connection, before),
            )
        if max(dropped) < ROWS:
            return True
    return False


def _drop_passes(connection: sqlite3.Connection, before: str, now: str) -> int:
    """Drop the oldest passes, from the beginning of the chain only: whatever is missing further on looks forged.

    A pass of a later time than now was recorded under a clock that went wrong; it goes with those around it.
    """
    rows = connection.execute(
        "SELECT seq, finished_at FROM passes WHERE finished_at <= ? AND seq < (SELECT max(seq) FROM passes)"
        " ORDER BY seq LIMIT ?",
        (now, ROWS),
    ).fetchall()
    last = 0
    for seq, finished_at in rows:
        if finished_at >= before:
            break
        last = seq
    cursor = connection.execute(
        "DELETE FROM passes WHERE seq IN (SELECT seq FROM passes WHERE seq <= ? ORDER BY seq LIMIT ?)", (last, ROWS)
    )
    return cursor.rowcount


def _drop_intents(connection: sqlite3.Connection, before: str) -> int:
    """Drop closed intents. Open ones are never dropped: nobody gives up on a machine that was asked to end."""
    cursor = connection.execute(
        "DELETE FROM intents WHERE intent_id IN (SELECT intent_id FROM intents WHERE closed_at < ? LIMIT ?)",
        (before, ROWS),
    )
    return cursor.rowcount


def _drop_approvals(connection: sqlite3.Connection, before: str) -> int:
    cursor = connection.execute(
        "DELETE FROM approvals WHERE digest IN (SELECT digest FROM approvals WHERE expires_at < ? LIMIT ?)",
        (before, ROWS),
    )
    return cursor.rowcount
