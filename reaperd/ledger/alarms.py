"""Alerts that are not over, what is still to be delivered, and mutes: the ledger's side of telling people.

What a look means is decided by `alerts.lifecycle`. Here it is read and written in one transaction, so that whatever
kills the process between two steps, an alert is neither lost nor told twice.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from alerts.backoff import LONGEST_QUIET
from alerts.errors import RecordError
from alerts.lifecycle import Alert, Book, Due, Policy, Step, step, withdraw
from alerts.looks import Domain, Look
from alerts.model import Condition
from alerts.mutes import Mute
from alerts.records import alert_record, notification_record, read_alert, read_notification
from providers.base import Clock
from reaperd.core.telling import Alarmed, KeptMute, Telling, Waiting, Watch
from reaperd.ledger import lease as leases
from reaperd.ledger.acts import keep_act
from reaperd.ledger.connection import maybe_time, reading, text_of, time_of, translated
from reaperd.ledger.lease import Lease

KEPT = 10_000
"""So many messages wait for one channel at most; beyond, the oldest are dropped, and that is told."""

SET_ASIDE_AFTER = 8
"""So many failures, and a message lets those behind it pass: one that a receiver chokes on must not stop all."""

_TOO_FAR = LONGEST_QUIET + timedelta(hours=1)
"""No wait is that long: a time beyond was written by a clock that ran ahead, and counts as now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Announced:
    """What came of telling the ledger."""

    step: Step
    at: datetime
    """When that was looked at."""
    dropped: Mapping[str, int]
    """How many messages will never be delivered, by channel: too many waited, or the channel is configured no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bell:
    """Who is told through the ledger, and who hears at once that something was told."""

    watch: Watch
    clock: Clock
    announced: Callable[[Announced], None]
    """Called once all is written."""


class Alarms:
    """The part of an open ledger that is about alerts. Every method raises LedgerUnusableError."""

    def __init__(
        self, connection: sqlite3.Connection, path: Path, transaction: Callable[[], AbstractContextManager[None]]
    ) -> None:
        """Use `Ledger.alarms`."""
        self._connection = connection
        self._path = path
        self._transaction = transaction

    # ------------------------------------------------------------ what a look tells

    def tell(self, telling: Telling, watch: Watch, *, lease: Lease, now: datetime) -> Announced | None:
        """Write what follows from a look; None, and nothing is written, when the lease is not ours (rule 18)."""
        with self._transaction():
            if not leases.holds(self._connection, lease, now):
                return None
            self._connection.execute("DELETE FROM mutes WHERE until <= ?", (text_of(now),))
            look = self._with_memory(telling.look)
            policy = replace(watch.policy, mutes=tuple(kept.mute for kept in _mutes(self._connection)))
            before, texts = _stored(self._connection)
            done = _stepped(before, replace(telling, look=look), watch, policy)
            self._keep_book(texts, done.book)
            for due in done.due:
                self._enqueue(due)
            return Announced(step=done, at=look.at, dropped=self._trimmed(watch))

    def _with_memory(self, look: Look) -> Look:
        if look.domain is not Domain.RECONCILE:
            return look
        row = self._connection.execute("SELECT at FROM last_look").fetchone()
        return replace(look, last_complete=maybe_time(None if row is None else row[0]))

    def _keep_book(self, before: Mapping[str, str], book: Book) -> None:
        """Write what changed. `before` is what is stored, by its key."""
        after = {key: _text(alert_record(alert)) for key, alert in book.items()}
        self._connection.executemany("DELETE FROM alerts WHERE key = ?", [(key,) for key in before.keys() - after])
        self._connection.executemany(
            "INSERT OR REPLACE INTO alerts VALUES (?, ?)",
            [(key, text) for key, text in after.items() if before.get(key) != text],
        )

    def _enqueue(self, due: Due) -> None:
        """Put a message behind those that wait: while they wait for their channel, it does."""
        at = text_of(due.notification.at)
        self._connection.execute(
            "INSERT INTO outbox (channel, notification_id, record, due_at, attempts, next_try_at)"
            " VALUES (?, ?, ?, ?, 0, max(?, coalesce("
            "(SELECT max(next_try_at) FROM outbox WHERE channel = ? AND attempts < ?), '')))"
            " ON CONFLICT (channel, notification_id) DO NOTHING",
            (
                due.channel,
                due.notification.id,
                _text(notification_record(due.notification)),
                at,
                at,
                due.channel,
                SET_ASIDE_AFTER,
            ),
        )

    def _trimmed(self, watch: Watch) -> Mapping[str, int]:
        known = {audience.name for audience in watch.policy.audiences}
        dropped: Counter[str] = Counter()
        for (channel,) in self._connection.execute("SELECT DISTINCT channel FROM outbox").fetchall():
            keep = KEPT if channel in known else 0
            dropped[channel] = self._connection.execute(
                "DELETE FROM outbox WHERE channel = ? AND seq <= coalesce("
                "(SELECT seq FROM outbox WHERE channel = ? ORDER BY seq DESC LIMIT 1 OFFSET ?), -1)",
                (channel, channel, keep),
            ).rowcount
        return {channel: number for channel, number in dropped.items() if number}

    def kept(self) -> Alarmed:
        """Return all that is kept about alerts."""
        with reading(self._connection, self._path):
            return alarmed(self._connection)

    # ------------------------------------------------------------ deliveries

    def due(self, channel: str, now: datetime) -> Waiting | None:
        """Return the message that the channel is to be given next, if one is due."""
        with translated(self._path):
            row = self._connection.execute(
                f"{_WAITING} WHERE channel = ? AND (next_try_at <= ? OR next_try_at > ?)"
                " ORDER BY attempts >= ?, seq LIMIT 1",
                (channel, text_of(now), text_of(now + _TOO_FAR), SET_ASIDE_AFTER),
            ).fetchone()
        return None if row is None else _waiting(row)

    def next_due_at(self, channel: str) -> datetime | None:
        """Return when the next message for the channel falls due; None when none waits."""
        with translated(self._path):
            (text,) = self._connection.execute(
                "SELECT min(next_try_at) FROM outbox WHERE channel = ?", (channel,)
            ).fetchone()
        return maybe_time(text)

    def delivered(self, waiting: Waiting) -> None:
        """Write that the channel took it, or that it will never be tried again."""
        with self._transaction():
            self._connection.execute("DELETE FROM outbox WHERE seq = ?", (waiting.seq,))

    def failed(self, waiting: Waiting, error: str, *, next_try_at: datetime) -> None:
        """Write that the channel did not take it. What waits for that channel waits with it."""
        again = text_of(next_try_at)
        with self._transaction():
            self._connection.execute(
                "UPDATE outbox SET attempts = attempts + 1, last_error = ?, next_try_at = ? WHERE seq = ?",
                (error, again, waiting.seq),
            )
            self._connection.execute(
                "UPDATE outbox SET next_try_at = max(next_try_at, ?) WHERE channel = ?", (again, waiting.channel)
            )

    def make_due(self, now: datetime) -> int:
        """Let everything that waits be tried now; return how much that is."""
        with self._transaction():
            return self._connection.execute("UPDATE outbox SET next_try_at = ?", (text_of(now),)).rowcount

    # ------------------------------------------------------------ mutes

    def mute(self, mute: Mute, by: str, now: datetime) -> None:
        """Hide alerts for a while; another mute of the same pattern is replaced."""
        with self._transaction():
            self._connection.execute(
                "INSERT OR REPLACE INTO mutes VALUES (?, ?, ?, ?, ?)",
                (mute.pattern, text_of(mute.until), mute.reason, by, text_of(now)),
            )
            keep_act(
                self._connection, now, "mute", by, mute.reason, {"key": mute.pattern, "until": text_of(mute.until)}
            )

    def unmute(self, pattern: str, by: str, reason: str, now: datetime) -> bool:
        """End a mute; False when there was none."""
        with self._transaction():
            ended = self._connection.execute("DELETE FROM mutes WHERE pattern = ?", (pattern,)).rowcount > 0
            if ended:
                keep_act(self._connection, now, "unmute", by, reason, {"key": pattern})
        return ended


# ---------------------------------------------------------------- reading

_WAITING = "SELECT seq, channel, record, due_at, attempts, next_try_at, last_error FROM outbox"


def alarmed(connection: sqlite3.Connection) -> Alarmed:
    """Return all that is kept about alerts. To be called inside a transaction."""
    # Whoever only reads may meet a ledger that the newer daemon has not migrated yet.
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'outbox'").fetchone() is None:
        return Alarmed(book={}, waiting=(), mutes=())
    waiting = tuple(_waiting(row) for row in connection.execute(f"{_WAITING} ORDER BY seq"))
    return Alarmed(book=_stored(connection)[0], waiting=waiting, mutes=_mutes(connection))


def _mutes(connection: sqlite3.Connection) -> tuple[KeptMute, ...]:
    rows = connection.execute("SELECT pattern, until, reason, muted_by, muted_at FROM mutes ORDER BY pattern")
    return tuple(
        KeptMute(mute=Mute(pattern=row[0], until=time_of(row[1]), reason=row[2]), by=row[3], at=time_of(row[4]))
        for row in rows
    )


def _stored(connection: sqlite3.Connection) -> tuple[Book, Mapping[str, str]]:
    """Return the book, and each record as it is stored.

    What cannot be read is in the latter alone, and so it goes: if it still holds, the look tells it anew. A pass that
    could not be recorded for it would be the greater evil.
    """
    texts = dict(connection.execute("SELECT key, record FROM alerts"))
    book: dict[str, Alert] = {}
    for key, text in texts.items():
        try:
            book[key] = read_alert(json.loads(text))
        except (RecordError, ValueError):
            continue
    return book, texts


def _waiting(row: tuple[int, str, str, str, int, str, str | None]) -> Waiting:
    try:
        notification = read_notification(json.loads(row[2]))
    except (RecordError, ValueError):
        notification = None
    return Waiting(
        seq=row[0],
        channel=row[1],
        notification=notification,
        due_at=time_of(row[3]),
        attempts=row[4],
        next_try_at=time_of(row[5]),
        last_error=row[6] or "",
    )


# ---------------------------------------------------------------- deciding


def _stepped(book: Book, telling: Telling, watch: Watch, policy: Policy) -> Step:
    """Return what follows from a look, and from the configuration having dropped what nobody looks at any more."""
    lost = {key: alert for key, alert in book.items() if not watch.covers(alert.condition)}
    scopes = frozenset(alert.condition.scope for alert in lost.values())
    taken_back = withdraw(lost, scopes, policy, telling.look.at)
    rest = {key: alert for key, alert in book.items() if key not in lost}
    done = step(rest, _covered(telling, watch), telling.look, policy)
    return replace(done, due=(*taken_back.due, *done.due), ended=(*taken_back.ended, *done.ended))


def _covered(telling: Telling, watch: Watch) -> Iterable[Condition]:
    return (condition for condition in telling.conditions if watch.covers(condition))


def _text(record: Mapping[str, object]) -> str:
    return json.dumps(record, sort_keys=True, separators=(",", ":"))
