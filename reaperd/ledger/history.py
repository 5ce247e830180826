"""Asking the ledger about the past. Reads only, leaves no trace, and never makes a ledger."""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from sqlite3 import Connection
from typing import Any

from providers.model import InstanceRef
from reaperd.core.history import (
    EntryKind,
    Finding,
    Look,
    Recollection,
    ScopeRecord,
    Told,
    ToldAct,
    ToldAnnouncement,
    ToldFinding,
    ToldOutcome,
    ToldPass,
    ToldVerdict,
    Trace,
    Wanted,
    events,
    in_runs,
    newest_announcement,
)
from reaperd.core.model import Memory, PassOutcome
from reaperd.errors import LedgerUnusableError
from reaperd.ledger.chain import broken_acts, broken_passes, newest_hash
from reaperd.ledger.connection import check_owner, maybe_time, text_of, time_of
from reaperd.ledger.existing import read
from reaperd.ledger.looks import last_look
from reaperd.ledger.recall import recall

COLUMNS = "pass_id, kind, mode, started_at, finished_at, outcome, reason, plan_digest, scopes, record"
"""The columns that a pass is read from."""

_REMEDY = "See what was changed: reaperd history --verify"


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerFile:
    """Which ledger, and whose it has to be."""

    path: Path
    deployment: str
    owner_tag: str

    def require(self, connection: Connection) -> None:
        """Raise LedgerUnusableError unless it is ours."""
        check_owner(connection, self.path, self.deployment, self.owner_tag)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Part of the history."""

    told: tuple[Told, ...]
    """Newest first."""
    more: bool
    """True when older ones were left out."""


def history(ledger: LedgerFile, wanted: Wanted, *, limit: int | None, runs: bool) -> Page:
    """Return what was asked for, newest first. `runs`: passes in a row that said the same count, and are told, as one.

    Raises:
        LedgerUnusableError: if there is no ledger, it cannot be read, or is another deployment's.
    """

    def work(connection: Connection) -> Page:
        ledger.require(connection)
        told = _told(connection, wanted)
        found = list(islice(in_runs(told) if runs else told, None if limit is None else limit + 1))
        return Page(told=tuple(found[:limit]), more=limit is not None and len(found) > limit)

    return read(ledger.path, work)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """Whether what is kept is what was recorded."""

    passes: int
    acts: int
    since: datetime | None
    """When the oldest pass that is kept started."""
    newest_hash: str
    """It stands for every pass before it. Noted elsewhere, it also proves that none was taken off the end."""
    broken: tuple[str, ...]
    """The first broken link of each chain, in words; empty: all is as it was recorded."""


def verify(ledger: LedgerFile) -> Verification:
    """Recompute the chains of hashes.

    Raises:
        LedgerUnusableError: as history.
    """

    def work(connection: Connection) -> Verification:
        ledger.require(connection)
        passes, since = connection.execute("SELECT count(*), min(started_at) FROM passes").fetchone()
        acts = connection.execute("SELECT count(*) FROM operator_acts").fetchone()[0]
        firsts = (("pass", next(broken_passes(connection), None)), ("act", next(broken_acts(connection), None)))
        return Verification(
            passes=passes,
            acts=acts,
            since=None if since is None else time_of(since),
            newest_hash=newest_hash(connection, "passes"),
            broken=tuple(f"{kind} number {first[0]}: {first[1]}" for kind, first in firsts if first is not None),
        )

    return read(ledger.path, work)


def recollect(ledger: LedgerFile, asked: str, wanted: Wanted, now: datetime) -> Recollection:
    """Return everything that concerns one machine, named by its id, its `provider/region/id` or its worker.

    `wanted` bounds the time that the events and the record of the scopes are of.

    Raises:
        LedgerUnusableError: as history.
    """

    def work(connection: Connection) -> Recollection:
        ledger.require(connection)
        memory, look = recall(connection, now), last_look(connection)
        newest = next(_passes(connection, Wanted(kinds=frozenset({EntryKind.RECONCILE}))), None)
        return Recollection(
            memory=memory,
            look=look,
            newest=newest,
            traces=tuple(_traces(connection, asked, wanted, memory, look)),
            scopes=tuple(_scopes(connection, wanted)),
        )

    return read(ledger.path, work)


# ---------------------------------------------------------------- passes and acts


def _told(connection: Connection, wanted: Wanted) -> Iterator[Told]:
    passes = _passes(connection, wanted) if wanted.passes else ()
    acts = _acts(connection, wanted) if wanted.acts else ()
    return heapq.merge(passes, acts, key=_at, reverse=True)


def _at(told: Told) -> datetime:
    return told.at


def _passes(connection: Connection, wanted: Wanted) -> Iterator[ToldPass]:
    """Yield the passes, newest first. SQL leaves out most of what was not asked for, and Python the rest."""
    where = _Where()
    where.between("started_at", wanted)
    where.any_of("kind = ?", wanted.kinds - {EntryKind.ACT})
    where.any_of("instr(pass_id, ?) = 1", {wanted.pass_id} - {""})
    # Whatever is asked for stands in the record as a whole word of JSON.
    ids = {name.rpartition("/")[2] for name in wanted.machines}
    for words in (wanted.outcomes, wanted.reasons, wanted.machines | ids):
        where.any_of("instr(record, ?)", map(json.dumps, words))
    rows = connection.execute(
        f"SELECT {COLUMNS} FROM passes {where}"  # noqa: S608 - values are bound
        " ORDER BY started_at DESC, seq DESC",
        where.values,
    )
    return (wanted.narrowed(told) for told in read_passes(rows) if wanted.wants(told))


def read_passes(rows: Iterable[tuple[Any, ...]]) -> Iterator[ToldPass]:
    """Yield passes, of rows with the columns of `COLUMNS`.

    Raises:
        LedgerUnusableError: if the record of one cannot be read.
    """
    for row in rows:
        try:
            yield _told_pass(row)
        except (ValueError, KeyError, TypeError) as error:
            which, what = f"pass {row[0]}", f"its record cannot be read: {error!r}"
            raise LedgerUnusableError(which, what, _REMEDY) from error


def _acts(connection: Connection, wanted: Wanted) -> Iterator[ToldAct]:
    where = _Where()
    where.between("at", wanted)
    # Of one machine only what names it: an approval of a plan that it is in.
    approves = "act = 'approve' AND json_extract(data, '$.digest') IN"
    with_it = "(SELECT digest FROM approvals WHERE instr(refs, ?))"
    where.any_of(f"{approves} {with_it}", (json.dumps(name.rpartition("/")[2]) for name in wanted.machines))
    rows = connection.execute(
        f"SELECT at, act, by_whom, reason, data FROM operator_acts {where} ORDER BY at DESC, seq DESC",  # noqa: S608 - values are bound
        where.values,
    )
    for at, act, by, reason, data in rows:
        yield ToldAct(at=time_of(at), act=act, by=by, reason=reason, data=json.loads(data))


class _Where:
    """The conditions of a query, and the values that are bound to them."""

    def __init__(self) -> None:
        self._conditions: list[str] = []
        self.values: list[str] = []

    def __str__(self) -> str:
        return f"WHERE {' AND '.join(self._conditions)}" if self._conditions else ""

    def between(self, column: str, wanted: Wanted) -> None:
        for sign, moment in ((">=", wanted.since), ("<=", wanted.until)):
            if moment is not None:
                self._conditions.append(f"{column} {sign} ?")
                self.values.append(text_of(moment))

    def any_of(self, condition: str, values: Iterable[str]) -> None:
        bound = list(values)
        if bound:
            self._conditions.append(f"({' OR '.join([condition] * len(bound))})")
            self.values += bound


def _told_pass(row: tuple[Any, ...]) -> ToldPass:
    pass_id, kind, mode, started_at, finished_at, outcome, reason, plan_digest, scopes, record = row
    asked = json.loads(scopes)
    told: Mapping[str, Any] = {} if _says_nothing(outcome, record) else json.loads(record)
    return ToldPass(
        at=time_of(started_at),
        finished_at=time_of(finished_at),
        pass_id=pass_id,
        kind=kind,
        mode=mode,
        outcome=outcome,
        reason=reason,
        also=tuple(told.get("also", ())),
        detail=told.get("detail", ""),
        scopes=frozenset((*asked["whole"], *asked["failed"])),
        verdicts=tuple(_verdict(each) for each in told.get("verdicts", ())),
        outcomes=tuple(_outcome(each) for each in told.get("outcomes", ())),
        findings=tuple(_findings(told)),
        leaks=told.get("leaks_total", 0),
        announcements=tuple(_announcement(each) for each in told.get("events", ())),
        plan_digest=plan_digest,
        record=record,
    )


def _says_nothing(outcome: str, record: str) -> bool:
    """Say, without reading all of it, whether a record is one of the many of a quiet month."""
    return outcome == PassOutcome.COMPLETE and any(all(name in record for name in names) for names in _NOTHING)


_NOTHING = (('"verdicts":[]', '"outcomes":[]'), ('"leaks":[]', '"near_misses":[]', '"events":[]'))
"""Of a pass, and of a sweep."""


def _verdict(told: dict[str, Any]) -> ToldVerdict:
    return ToldVerdict(
        ref=_ref(told),
        worker_id=told["worker_id"],
        state=told["state"],
        name=f"{told['verdict']}/{told['reason']}",
        age_seconds=told["age_seconds"],
        confirmations=told["confirmations"],
        confirmations_needed=told["confirmations_needed"],
        # Not in the records of the first releases.
        instance_type=told.get("instance_type"),
        cost_per_hour_usd=told.get("cost_per_hour_usd"),
        first_seen_at=maybe_time(told.get("first_seen_at")),
        last_tracked_at=maybe_time(told.get("last_tracked_at")),
        detail=told.get("detail", ""),
    )


def _outcome(told: dict[str, Any]) -> ToldOutcome:
    return ToldOutcome(
        ref=_ref(told),
        kind=told["outcome"],
        reason=told["reason"],
        error_code=told["error_code"],
        detail=told["detail"],
    )


def _findings(told: Mapping[str, Any]) -> Iterator[ToldFinding]:
    """Yield each machine of a sweep once: a leak with a tag that is almost ours is a leak."""
    leaks = [_ref(each) for each in told.get("leaks", ())]
    yield from (_finding(each, Finding.LEAK) for each in told.get("leaks", ()))
    yield from (_finding(each, Finding.NEAR_MISS) for each in told.get("near_misses", ()) if _ref(each) not in leaks)


def _finding(told: dict[str, Any], finding: Finding) -> ToldFinding:
    return ToldFinding(
        ref=_ref(told),
        finding=finding,
        name=told["name"],
        instance_type=told["instance_type"],
        age_seconds=told["age_seconds"],
    )


def _announcement(told: dict[str, Any]) -> ToldAnnouncement:
    return ToldAnnouncement(ref=_ref(told), code=told["code"], ends=told["ends"], at=maybe_time(told["at"]))


def _ref(told: dict[str, Any]) -> InstanceRef:
    return InstanceRef(told["provider"], told["region"], told["instance_id"])


# ---------------------------------------------------------------- one machine


def _traces(connection: Connection, asked: str, wanted: Wanted, memory: Memory, look: Look | None) -> Iterator[Trace]:
    """Yield what is known of every machine that goes by that name."""
    workers: dict[InstanceRef, str | None] = {}
    for ref, worker_id in _named(connection, asked, memory, look):
        workers[ref] = worker_id or workers.get(ref)
    told = _of_machines(connection, wanted, {ref.instance_id for ref in workers})
    for ref, worker_id in sorted(workers.items()):
        heard, heard_at = newest_announcement(ref, told)
        yield Trace(
            ref=ref,
            worker_id=worker_id,
            sighting=memory.sightings.get(ref),
            events=tuple(events(ref, told)),
            announced=heard,
            announced_at=heard_at,
        )


def _named(
    connection: Connection, asked: str, memory: Memory, look: Look | None
) -> Iterator[tuple[InstanceRef, str | None]]:
    """Yield the machines that go by a name, with their worker; what was recorded last comes last."""
    names = Wanted(machines=frozenset({asked}))
    for ref in (*memory.sightings, *memory.intents, *memory.listed):
        if asked in {ref.instance_id, str(ref)}:
            yield ref, None
    rows = connection.execute(
        "SELECT provider, region, instance_id, worker_id FROM intents WHERE ? IN (instance_id, worker_id)", (asked,)
    )
    for provider, region, instance_id, worker_id in rows:
        yield InstanceRef(provider, region, instance_id), worker_id
    for told in reversed(list(_passes(connection, names))):
        yield from ((outcome.ref, None) for outcome in told.outcomes)
        yield from ((verdict.ref, verdict.worker_id) for verdict in told.verdicts)
    for instance in look.instances if look is not None else ():
        if asked in {instance.ref.instance_id, str(instance.ref), instance.worker_id}:
            yield instance.ref, instance.worker_id


def _of_machines(connection: Connection, wanted: Wanted, ids: set[str]) -> list[Told]:
    """Return what was told of these machines, oldest first."""
    if not ids:
        return []
    about = Wanted(since=wanted.since, until=wanted.until, machines=frozenset(ids))
    return list(reversed(list(_told(connection, about))))


def _scopes(connection: Connection, wanted: Wanted) -> Iterable[ScopeRecord]:
    where = _Where()
    where.between("started_at", wanted)
    where.any_of("kind = ?", {EntryKind.RECONCILE})
    rows = connection.execute(
        f"SELECT scopes, count(*), min(started_at), max(started_at) FROM passes {where} GROUP BY scopes",  # noqa: S608 - values are bound
        where.values,
    )
    found: dict[str, ScopeRecord] = {}
    for scopes, count, first, last in rows:
        told = json.loads(scopes)
        for scope in told["whole"]:
            found[scope] = _listed(found.get(scope), scope, count, time_of(first), time_of(last))
        for scope in told["failed"]:
            found[scope] = _failed(found.get(scope), scope, count, time_of(last))
    return (found[scope] for scope in sorted(found))


def _listed(known: ScopeRecord | None, scope: str, count: int, first: datetime, last: datetime) -> ScopeRecord:
    known = known or ScopeRecord(scope=scope)
    return replace(
        known,
        whole=known.whole + count,
        first_whole_at=min(known.first_whole_at or first, first),
        last_whole_at=max(known.last_whole_at or last, last),
    )


def _failed(known: ScopeRecord | None, scope: str, count: int, last: datetime) -> ScopeRecord:
    known = known or ScopeRecord(scope=scope)
    return replace(known, failed=known.failed + count, last_failed_at=max(known.last_failed_at or last, last))
