"""How long machines are known to run, whoever owns them (rule 27)."""

from __future__ import annotations

import sqlite3

from providers.model import InstanceRef
from reaperd.core.starts import NO_STARTS, LearnedStarts, Starts
from reaperd.ledger.connection import text_of, time_of


def starts(connection: sqlite3.Connection) -> Starts:
    """Return the earliest start that is known of each machine."""
    # Whoever only reads may meet a ledger that the newer daemon has not migrated yet.
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'audited'").fetchone() is None:
        return NO_STARTS
    rows = connection.execute("SELECT provider, region, instance_id, started_at FROM audited")
    return {InstanceRef(*row[:3]): time_of(row[3]) for row in rows}


def remember(connection: sqlite3.Connection, learned: LearnedStarts) -> None:
    """Write what a sweep taught. A start that is there already never becomes later. To be called in a transaction."""
    connection.executemany(
        "DELETE FROM audited WHERE provider = ? AND region = ? AND instance_id = ?",
        [(ref.provider, ref.region, ref.instance_id) for ref in learned.forgotten],
    )
    connection.executemany(
        "INSERT INTO audited VALUES (?, ?, ?, ?) ON CONFLICT (provider, region, instance_id)"
        " DO UPDATE SET started_at = min(started_at, excluded.started_at)",
        [(ref.provider, ref.region, ref.instance_id, text_of(start)) for ref, start in learned.noted.items()],
    )
