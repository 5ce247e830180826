"""The open ledger: what passes and operators write, each in one durable transaction."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Self

from sqlite_utils import Database

from providers.model import InstanceRef
from reaperd.core.history import Look
from reaperd.core.memory import Learned
from reaperd.core.model import (
    Approval,
    Brake,
    DecisionRecord,
    Intent,
    Memory,
    Outcome,
    OutcomeKind,
    RegistryPin,
    Verdict,
)
from reaperd.core.starts import LearnedStarts, Starts
from reaperd.ledger import audited, upkeep
from reaperd.ledger import lease as leases
from reaperd.ledger.acts import keep_act
from reaperd.ledger.alarms import Alarms
from reaperd.ledger.chain import link, newest_hash, scopes_of
from reaperd.ledger.connection import (
    BUSY_TIMEOUT_SECONDS,
    Wanted,
    connect_to_read,
    identity_of,
    immediate,
    open_database,
    reading,
    text_of,
    translated,
)
from reaperd.ledger.lease import Lease
from reaperd.ledger.lessons import write_lesson
from reaperd.ledger.looks import last_look
from reaperd.ledger.place import place_of
from reaperd.ledger.recall import brake, open_intents, recall
from reaperd.ledger.standing import Recorded, recorded
from reaperd.ledger.trouble import Seeing
from reaperd.process import ProcessIdentity

APPROVAL_LASTS = timedelta(hours=1)
"""How long an approved plan is let through the breaker (rule 15)."""

_CLOSED_AT_ONCE = frozenset({OutcomeKind.SPARED, OutcomeKind.DEFERRED})
"""Nothing was accepted, so nothing is to be confirmed."""


class LeaseLostError(Exception):
    """The lease is not ours any more: nothing may be sent."""


class BrakeIsOnError(Exception):
    """Somebody put the brake on: nothing may be sent."""


class Ledger:
    """An open ledger. Every method raises LedgerUnusableError when it cannot do what it promises.

    One object belongs to one thread.
    """

    def __init__(self, path: Path, db: Database) -> None:
        """Use `open_ledger`."""
        self._path = path
        self._db = db
        self._connection = db.conn

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def identity(self) -> str:
        """Return what tells this ledger from every other one, also from one that is made in its place."""
        with translated(self._path):
            return identity_of(self._connection)

    def close(self) -> None:
        """Close the file."""
        with translated(self._path):
            self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run several calls as one: all is written, or nothing. Transactions do not nest: the outer one counts."""
        if self._connection.in_transaction:
            with translated(self._path):
                yield
            return
        with immediate(self._connection, self._path):
            yield

    @property
    def alarms(self) -> Alarms:
        """Return the part that is about alerts."""
        return Alarms(self._connection, self._path, self.transaction)

    # ------------------------------------------------------------ what a pass reads and learns

    def recall(self, now: datetime) -> Memory:
        """Return what a decision needs."""
        with self.transaction():
            return recall(self._connection, now)

    def last_look(self) -> Look | None:
        """Return the last complete look, for a person; None when there was none."""
        with translated(self._path):
            return last_look(self._connection)

    def known_epoch(self) -> int | None:
        """Return the registry epoch whose mark we know; None when no registry is known."""
        with translated(self._path):
            row = self._connection.execute("SELECT epoch FROM registry_pin").fetchone()
        return None if row is None else int(row[0])

    def pending(self) -> Mapping[InstanceRef, Intent]:
        """Return the open intents, by their machines."""
        with translated(self._path):
            return open_intents(self._connection)

    def learn(self, learned: Learned, now: datetime) -> None:
        """Write what a look taught."""
        with self.transaction():
            write_lesson(self._connection, learned, now)
            self.pin(learned.pin)
            for intent in learned.confirmed_gone:
                self._close_intents(intent.ref, OutcomeKind.CONFIRMED_GONE, now)

    def pin(self, pin: RegistryPin) -> None:
        """Take this registry for the one that we know."""
        with self.transaction():
            self._connection.execute(
                "INSERT OR REPLACE INTO registry_pin VALUES (1, ?, ?, ?, ?)",
                (pin.registry_id, pin.epoch, pin.nonce, pin.mismatch_accepted),
            )

    def audited(self) -> Starts:
        """Return since when machines run, whoever owns them, by earlier sweeps."""
        with translated(self._path):
            return audited.starts(self._connection)

    def remember_audited(self, learned: LearnedStarts) -> None:
        """Write what a sweep taught of that. A start never becomes later while its machine is there."""
        with self.transaction():
            audited.remember(self._connection, learned)

    # ------------------------------------------------------------ intents

    def open_intent(self, verdict: Verdict, *, pass_id: str, approved: bool, lease: Lease, now: datetime) -> int:
        """Write that a request is about to be sent, and return the intent's number. See open_intents."""
        (number,) = self.open_intents([(verdict, approved)], pass_id=pass_id, lease=lease, now=now)
        return number

    def open_intents(
        self, planned: Sequence[tuple[Verdict, bool]], *, pass_id: str, lease: Lease, now: datetime
    ) -> tuple[int, ...]:
        """Write that one request is about to be sent for all of these, and return each intent's number.

        Each is a verdict, and whether it was approved. All are written or none; the lease and the brake are checked in
        the same transaction.

        Raises:
            LeaseLostError: if the lease is not ours any more.
            BrakeIsOnError: if the brake is on.
            LedgerUnusableError: if it could not be written. In all three cases nothing may be sent.
        """
        with self.transaction():
            if not leases.holds(self._connection, lease, now):
                raise LeaseLostError
            if brake(self._connection) is not None:
                raise BrakeIsOnError
            return tuple(self._opened(each, approved, pass_id, lease, now) for each, approved in planned)

    def _opened(self, verdict: Verdict, approved: bool, pass_id: str, lease: Lease, now: datetime) -> int:  # noqa: FBT001 - a column
        cursor = self._connection.execute(
            "INSERT INTO intents (pass_id, provider, region, instance_id, worker_id, reason, again, approved,"
            " generation, requested_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                pass_id,
                *_key(verdict.ref),
                verdict.instance.worker_id,
                str(verdict.call.reason),
                getattr(verdict.call, "again", False),
                approved,
                lease.generation,
                text_of(now),
            ),
        )
        return int(cursor.lastrowid or 0)

    def answer_intent(self, intent_id: int, outcome: Outcome, now: datetime) -> None:
        """Write what the cloud answered. See answer_intents."""
        self.answer_intents([(intent_id, outcome)], now)

    def answer_intents(self, answered: Iterable[tuple[int, Outcome]], now: datetime) -> None:
        """Write what the cloud answered: all of it, or nothing. An answer with which nothing was accepted closes."""
        rows = [
            (
                str(outcome.kind),
                outcome.error_code,
                outcome.detail,
                text_of(now),
                text_of(now) if outcome.kind in _CLOSED_AT_ONCE else None,
                str(outcome.kind) if outcome.kind in _CLOSED_AT_ONCE else None,
                intent_id,
            )
            for intent_id, outcome in answered
        ]
        with self.transaction():
            self._connection.executemany(
                "UPDATE intents SET outcome = ?, error_code = ?, detail = ?, answered_at = ?, closed_at = ?,"
                " closed_as = ? WHERE intent_id = ?",
                rows,
            )

    def check_leave(self, lease: Lease, now: datetime) -> None:
        """Return if a request may still be sent under an intent that is written. From any thread.

        A process that was frozen after it wrote the intent finds out here that it lost the lease meanwhile.

        Raises:
            LeaseLostError: if the lease is not ours any more.
            BrakeIsOnError: if the brake is on.
            LedgerUnusableError: if that cannot be read.
        """
        # A connection of its own: the ledger's belongs to the pass's thread.
        with translated(self._path), closing(connect_to_read(self._path)) as connection:
            if not leases.holds(connection, lease, now):
                raise LeaseLostError
            if brake(connection) is not None:
                raise BrakeIsOnError

    def _close_intents(self, ref: InstanceRef, closed_as: OutcomeKind, now: datetime) -> None:
        self._connection.execute(
            "UPDATE intents SET closed_at = ?, closed_as = ?"
            " WHERE provider = ? AND region = ? AND instance_id = ? AND closed_at IS NULL",
            (text_of(now), str(closed_as), *_key(ref)),
        )

    # ------------------------------------------------------------ decisions

    def record(self, decision: DecisionRecord) -> None:
        """Add one pass to the history, chained to the one before by its hash."""
        with self.transaction():
            previous = newest_hash(self._connection, "passes")
            self._connection.execute(
                "INSERT INTO passes (pass_id, kind, mode, started_at, finished_at, outcome, reason, plan_digest,"
                " scopes, record, previous_hash, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    decision.pass_id,
                    decision.kind,
                    decision.mode,
                    text_of(decision.started_at),
                    text_of(decision.finished_at),
                    decision.outcome,
                    decision.reason,
                    decision.plan_digest,
                    scopes_of(json.loads(decision.record)),
                    decision.record,
                    previous,
                    link(previous, decision.record),
                ),
            )

    def forget(self, keep: timedelta, now: datetime) -> bool:
        """Drop what is older than `keep`, in small transactions; return False when more is left for the next time.

        What the rolling hour counts stays in any case. Not to be called inside a transaction.
        """
        return upkeep.forget(self._connection, self._path, keep, now)

    # ------------------------------------------------------------ how things stand

    def self_test(self, now: datetime) -> None:
        """Write a row durably and read it back: a full disk and a read-only one read well.

        Raises:
            LedgerUnusableError: if that fails. It says what is wrong, where, and whose that is.
        """
        upkeep.self_test(self._connection, self._path, now)

    def standing(self, now: datetime) -> Recorded:
        """Return what a restarted daemon goes on from."""
        with reading(self._connection, self._path):
            return recorded(self._connection, now)

    # ------------------------------------------------------------ the lease

    def take_lease(self, who: ProcessIdentity, ttl: timedelta, now: datetime) -> Lease | ProcessIdentity:
        """Take the lease, or return who holds it."""
        with self.transaction():
            return leases.take(self._connection, who, ttl, now)

    def renew_lease(self, lease: Lease, ttl: timedelta, now: datetime) -> bool:
        """Extend the lease; False when it is lost."""
        with self.transaction():
            return leases.renew(self._connection, lease, ttl, now)

    def holds_lease(self, lease: Lease, now: datetime) -> bool:
        """Say whether the lease is still ours."""
        with translated(self._path):
            return leases.holds(self._connection, lease, now)

    def release_lease(self, lease: Lease, now: datetime) -> None:
        """Give the lease back."""
        with self.transaction():
            leases.release(self._connection, lease, now)

    # ------------------------------------------------------------ what operators do

    def hold(self, mark: Brake) -> None:
        """Put the brake on. One that is on already is kept, with its first reason."""
        with self.transaction():
            self._connection.execute(
                "INSERT INTO brake VALUES (1, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
                (text_of(mark.since), mark.by, mark.reason),
            )
            keep_act(self._connection, mark.since, "hold", mark.by, mark.reason, {})

    def resume(self, by: str, reason: str, now: datetime) -> bool:
        """Take the brake off; False when it was not on."""
        with self.transaction():
            released = self._connection.execute("DELETE FROM brake").rowcount > 0
            keep_act(self._connection, now, "resume", by, reason, {"was_on": released})
        return released

    def brake(self) -> Brake | None:
        """Return the brake, if it is on."""
        with translated(self._path):
            return brake(self._connection)

    def planned(self, digest: str) -> tuple[InstanceRef, ...] | None:
        """Return the machines of a recorded plan; None when no recorded pass had it."""
        with translated(self._path):
            row = self._connection.execute(
                "SELECT record FROM passes WHERE plan_digest = ? ORDER BY seq DESC LIMIT 1", (digest,)
            ).fetchone()
        if row is None:
            return None
        verdicts = json.loads(row[0])["verdicts"]
        return tuple(
            InstanceRef(v["provider"], v["region"], v["instance_id"]) for v in verdicts if v["verdict"] == "terminate"
        )

    def approve(self, digest: str, refs: tuple[InstanceRef, ...], by: str, reason: str, now: datetime) -> Approval:
        """Let exactly these machines through the breaker, for an hour."""
        approval = Approval(digest=digest, refs=frozenset(refs), expires_at=now + APPROVAL_LASTS)
        with self.transaction():
            self._connection.execute(
                "INSERT OR REPLACE INTO approvals VALUES (?, ?, ?, ?)",
                (digest, json.dumps(sorted(_key(ref) for ref in refs)), text_of(now), text_of(approval.expires_at)),
            )
            keep_act(self._connection, now, "approve", by, reason, {"digest": digest, "machines": len(refs)})
        return approval

    def trust(self, pin: RegistryPin, by: str, reason: str, now: datetime) -> None:
        """Take another registry for the right one from now on."""
        with self.transaction():
            self.pin(pin)
            keep_act(self._connection, now, "trust", by, reason, {"registry_id": pin.registry_id, "epoch": pin.epoch})


def open_ledger(  # noqa: PLR0913 - which one is meant, and how it is opened
    path: Path,
    *,
    deployment: str,
    owner_tag: str,
    now: datetime,
    ledger_id: str | None = None,
    seeing: Seeing = place_of,
    patience: float = BUSY_TIMEOUT_SECONDS,
) -> Ledger:
    """Open the ledger; migrate it if need be, and create it, unless one with a certain `ledger_id` is meant.

    `seeing` says where a path lies. Each write waits `patience` seconds for another writer, at the most.

    Raises:
        LedgerUnusableError: if it cannot be opened and written, lies on a network file system, is another
            deployment's or release's, or is not the one that is meant.
    """
    wanted = Wanted(deployment=deployment, owner_tag=owner_tag, ledger_id=ledger_id)
    return Ledger(path, open_database(path, wanted, now, seeing=seeing, patience=patience))


def _key(ref: InstanceRef) -> tuple[str, str, str]:
    return (ref.provider, ref.region, ref.instance_id)
