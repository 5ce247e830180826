"""Writing what a look taught: only what is not so already. To be called inside a write transaction.

Most of a fleet is at every look what it was at the last. A sighting says of two times that they are those of the last
look by leaving them empty, so that the next look moves them on for all of a fleet by its own time, in one row.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import datetime

from providers.model import InstanceRef
from reaperd.core.memory import Learned
from reaperd.core.model import Memory, Sighting
from reaperd.ledger.connection import maybe_text, text_of
from reaperd.ledger.looks import keep_look
from reaperd.ledger.recall import recall

OF_THE_LAST_LOOK = ""
"""Stands for the time of the last look."""


def write_lesson(connection: sqlite3.Connection, learned: Learned, now: datetime) -> None:
    """Write it, but for the pin and the intents."""
    before = learned.before or recall(connection, now)
    _write_sightings(connection, learned, before, now)
    _write_listed(connection, learned.listed, before.listed)
    if learned.scopes != before.scopes:
        connection.execute("DELETE FROM scopes")
        connection.executemany("INSERT INTO scopes VALUES (?, ?)", [(s.provider, s.region) for s in learned.scopes])
    if learned.look is not None:
        keep_look(connection, learned.look)


def _write_sightings(connection: sqlite3.Connection, learned: Learned, before: Memory, now: datetime) -> None:
    connection.executemany(
        "INSERT OR REPLACE INTO sightings VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [_row(ref, seen, now) for ref, seen in _changed(learned, before, now)],
    )
    connection.executemany(
        "DELETE FROM sightings WHERE provider = ? AND region = ? AND instance_id = ?",
        [_key(ref) for ref in learned.forgotten],
    )
    connection.execute("INSERT OR REPLACE INTO sighted VALUES (1, ?)", (text_of(now),))


def _changed(learned: Learned, before: Memory, now: datetime) -> Iterator[tuple[InstanceRef, Sighting]]:
    """Yield what does not follow from what stands there and from the time of this look."""
    known = 0
    for ref, after in learned.sightings.items():
        prior = before.sightings.get(ref)
        known += prior is not None
        if prior is None or not _carries_on(prior, after, before.looked_at, now):
            yield ref, after
    for ref, prior in before.sightings.items() if known < len(before.sightings) else ():
        # Not seen any more: what was the time of the last look has to stay what it is.
        lost = ref not in learned.sightings and ref not in learned.forgotten
        if lost and before.looked_at is not None and before.looked_at in {prior.last_seen_at, prior.tracked_at}:
            yield ref, prior


def _carries_on(prior: Sighting, after: Sighting, looked_at: datetime | None, now: datetime) -> bool:
    """Say whether a sighting is what it was, this look standing for the last.

    By identity: under a clock that went back, a time that a row holds itself may equal that of the last look. Whoever
    copies what was recalled has it written once more.
    """
    return (
        looked_at is not None
        and (prior.last_seen_at is looked_at and after.last_seen_at == now)
        and (prior.tracked_at is looked_at) == (after.tracked_at == now)
        and after.tracked_at in {now, prior.tracked_at}
        and _other_facts(prior) == _other_facts(after)
    )


def _other_facts(seen: Sighting) -> tuple[object, ...]:
    return (seen.first_seen_at, seen.confirmations, seen.counted_at, seen.tracked_by, seen.vanished_at, seen.verdict)


def _row(ref: InstanceRef, seen: Sighting, now: datetime) -> tuple[object, ...]:
    return (
        *_key(ref),
        text_of(seen.first_seen_at),
        OF_THE_LAST_LOOK if seen.last_seen_at == now else text_of(seen.last_seen_at),
        seen.confirmations,
        maybe_text(seen.counted_at),
        OF_THE_LAST_LOOK if seen.tracked_at == now else maybe_text(seen.tracked_at),
        seen.tracked_by,
        maybe_text(seen.vanished_at),
        seen.verdict,
    )


def _write_listed(
    connection: sqlite3.Connection, after: frozenset[InstanceRef], before: frozenset[InstanceRef]
) -> None:
    connection.executemany(
        "DELETE FROM listed WHERE provider = ? AND region = ? AND instance_id = ?", map(_key, before - after)
    )
    connection.executemany("INSERT OR IGNORE INTO listed VALUES (?, ?, ?)", map(_key, after - before))


def _key(ref: InstanceRef) -> tuple[str, str, str]:
    return (ref.provider, ref.region, ref.instance_id)
