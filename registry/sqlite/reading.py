"""The rows of a registry file: a chunk of plain ones is proved by its columns, any other one row by row.

Both ways say the same of every row. The second costs several times as much, and names what is wrong with one.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import compress
from operator import attrgetter, not_, or_
from types import MappingProxyType
from typing import Any

from registry.model import Interest, RegistryFault, Worker, WorkerState
from registry.rows import are_plain_names, is_wanted, problem_of
from registry.sqlite_readonly import ReadOnlyOpenError
from registry.times import parse_time, parse_times

CHUNK = 250
"""So many rows are looked at together: many more of them would not fit into the cache of a processor."""

_TIMES = ("created_at", "launched_at", "heartbeat_at", "updated_at")
_COLUMNS = ("worker_id", "provider", "region", "instance_id", "state", "zone", "model", *_TIMES)
_STATES: Mapping[str, WorkerState] = {state.value: state for state in WorkerState}
_LIVE = frozenset(state.value for state in WorkerState if state.is_live)
_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Reading:
    """Every row, proved."""

    workers: tuple[Worker, ...]
    """Those that were asked for, by worker id."""
    passed_over: Mapping[WorkerState, int]
    """How many were not, by state."""
    rows: int
    """How many there are."""
    seal: int
    """Stands for the worker id and the row number of every row; 0 when nobody asked for it."""


def read_rows(connection: sqlite3.Connection, interest: Interest | None, *, sealed: bool) -> Reading:
    """Return the rows that are asked for, and count the others. To be called inside one transaction.

    Raises:
        ReadOnlyOpenError: naming a row that cannot be used.
    """
    try:
        with quick_text(connection):
            return _read(connection, interest, sealed=sealed)
    except sqlite3.OperationalError:
        # Text that is not UTF-8 costs a second reading. Whatever else it was comes up again in it.
        return _read(connection, interest, sealed=sealed)


@contextmanager
def quick_text(connection: sqlite3.Connection) -> Iterator[None]:
    """Let SQLite's module make the text. What is not UTF-8 raises sqlite3.OperationalError within the block."""
    careful = connection.text_factory
    connection.text_factory = str
    try:
        yield
    finally:
        connection.text_factory = careful


def seal_of(numbered: Iterable[tuple[object, object]]) -> int:
    """Return what stands for these worker ids and their row numbers, in whatever order they come.

    Python's hashes have 64 bits and a key that every process draws anew: no damage is likely to keep their sum.
    """
    return sum(map(hash, numbered))


def _read(connection: sqlite3.Connection, interest: Interest | None, *, sealed: bool) -> Reading:
    workers: list[Worker] = []
    passed_over: Counter[str] = Counter()
    number = seal = 0
    # A table of the first schema does without zones, and any may do without row numbers.
    there = {name for (name,) in connection.execute("SELECT name FROM pragma_table_info('workers')")}
    asked = (name if name in there else "NULL" for name in _COLUMNS)
    for rows in _chunks(connection, (*asked, "rowid" if sealed else "NULL")):
        *columns, numbers = zip(*rows, strict=True)
        seal += seal_of(zip(columns[0], numbers, strict=True)) if sealed else 0
        number += len(rows)
        wanted, others = _at_once(rows, columns, interest) or _one_by_one(rows, interest)
        workers += wanted
        passed_over.update(others)
    workers.sort(key=attrgetter("worker_id"))
    counted = {_STATES[state]: count for state, count in passed_over.items()}
    return Reading(tuple(workers), MappingProxyType(counted), number, seal)


def _chunks(connection: sqlite3.Connection, columns: Iterable[str]) -> Iterator[list[_Row]]:
    # The table itself, never an index: an index can be whole where the table is not.
    cursor = connection.execute(f"SELECT {', '.join(columns)} FROM workers NOT INDEXED")  # noqa: S608  # constants
    while rows := cursor.fetchmany(CHUNK):
        yield rows


_Row = tuple[Any, ...]
"""One row, or one column of a chunk. Text or NULL in each cell, unless the file is not as it should be."""
_Found = tuple[Iterable[Worker], Iterable[str]]
"""The rows that are asked for, and the states of the others."""
_Answers = Sequence[bool]
"""One for each row of a chunk."""


# ---------------------------------------------------------------- a chunk at once


def _at_once(rows: Sequence[_Row], columns: Sequence[_Row], interest: Interest | None) -> _Found | None:
    """Return what is in a chunk; None unless every cell of it is as a control plane should write it."""
    worker_ids, providers, regions, instance_ids, states, zones, models, *times = columns
    names = (worker_ids, providers, regions, _known(instance_ids), _known(zones))
    if not (all(map(are_plain_names, names)) and _are_texts(_known(models)) and _STATES.keys() >= set(states)):
        return None
    newest = [_newest(texts) for texts in times]
    if None in newest:
        return None
    if interest is None:
        return map(_worker, rows), ()
    wanted = _asked_for(worker_ids, instance_ids, states, interest)
    late = interest.later_than
    if late is not None and any(moment is not None and moment > late for moment in newest):
        wanted = _either(wanted, (any(moment is not None and moment > late for moment in _times(row)) for row in rows))
    return map(_worker, compress(rows, wanted)), compress(states, map(not_, wanted))


def _newest(texts: _Row) -> datetime | None:
    """Return the latest time of a column; None when a cell holds anything but a time in the plainest spelling."""
    moments = parse_times(texts)
    if moments is None and None in texts:
        moments = parse_times(_known(texts))
    return None if moments is None else max(moments, default=_NEVER)


def _asked_for(worker_ids: _Row, instance_ids: _Row, states: _Row, interest: Interest) -> _Answers:
    """Return whether each row of a chunk is asked for by its state or its names."""
    wanted = [interest.live and state in _LIVE for state in states]
    alike = interest.alike
    if alike is not None and not interest.live:
        rows = zip(states, worker_ids, instance_ids, strict=True)
        wanted = [state in _LIVE and alike.matches(worker, instance) for state, worker, instance in rows]
    others, names = tuple(map(not_, wanted)), interest.names
    # Nobody asks for most of them, and that can be said without a look at each.
    if names.isdisjoint(compress(worker_ids, others)) and names.isdisjoint(compress(instance_ids, others)):
        return wanted
    return _either(
        wanted, (one in names or other in names for one, other in zip(worker_ids, instance_ids, strict=True))
    )


def _either(some: _Answers, others: Iterable[bool]) -> _Answers:
    return list(map(or_, some, others))


def _known(cells: Sequence[Any]) -> Sequence[Any]:
    return [cell for cell in cells if cell is not None] if None in cells else cells


def _are_texts(cells: Sequence[Any]) -> bool:
    try:
        "".join(cells)
    except TypeError:
        return False
    return True


def _worker(row: _Row) -> Worker:
    worker_id, provider, region, instance_id, state, zone, model, *_ = row
    created_at, launched_at, heartbeat_at, updated_at = _times(row)
    return Worker(
        worker_id=worker_id,
        provider=provider,
        region=region,
        instance_id=instance_id,
        state=_STATES[state],
        zone=zone,
        model=model,
        created_at=created_at,
        launched_at=launched_at,
        heartbeat_at=heartbeat_at,
        updated_at=updated_at,
    )


def _times(row: _Row) -> list[datetime | None]:
    """Return the times of a row whose chunk was found to be plain: the last cells but the row number."""
    return [None if text is None else datetime.fromisoformat(text) for text in row[-len(_TIMES) - 1 : -1]]


# ---------------------------------------------------------------- row by row


def _one_by_one(rows: Iterable[_Row], interest: Interest | None) -> _Found:
    workers = [_proved(dict(zip(_COLUMNS, row, strict=False))) for row in rows]
    if interest is None:
        return workers, ()
    wanted = [is_wanted(worker, interest) for worker in workers]
    return compress(workers, wanted), (worker.state.value for worker in compress(workers, map(not_, wanted)))


def _proved(row: Mapping[str, Any]) -> Worker:
    for column, value in row.items():
        if not isinstance(value, str | None):
            raise _bad_row(row, f"its {column} is no text: {value!r}")
    times = {column: parse_time(row[column] or "") for column in _TIMES}
    worker = Worker(
        worker_id=row["worker_id"] or "",
        provider=row["provider"] or "",
        region=row["region"] or "",
        # An empty id names no machine. Taken as a name it would match none, and the row would protect nothing.
        instance_id=row["instance_id"] if (row["instance_id"] or "").strip() else None,
        state=_state(row),
        # As with the instance id: what is empty is not known.
        zone=row["zone"] if (row["zone"] or "").strip() else None,
        model=row["model"],
        created_at=times["created_at"],
        launched_at=times["launched_at"],
        heartbeat_at=times["heartbeat_at"],
        updated_at=times["updated_at"],
        unreadable=tuple(column for column in _TIMES if row[column] is not None and times[column] is None),
    )
    problem = problem_of(worker)
    if problem is not None:
        raise _bad_row(row, problem)
    return worker


def _state(row: Mapping[str, Any]) -> WorkerState:
    state = _STATES.get(row["state"] or "")
    if state is None:
        raise _bad_row(row, f"its state is {row['state']!r}")
    return state


def _bad_row(row: Mapping[str, Any], problem: str) -> ReadOnlyOpenError:
    return ReadOnlyOpenError(RegistryFault.BAD_ROW, f"the row of worker {row['worker_id']!r} cannot be used: {problem}")
