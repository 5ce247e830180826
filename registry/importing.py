"""Rows of another book, as rows of a registry. Pure.

Strict where the book is ours (`registry list --format csv|json`): what cannot be read there is refused, because a row
that is read wrongly protects nothing. Lenient where it is not ours and a doubt can be settled by protecting.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from unicodedata import normalize

from registry.errors import RegistryImportError
from registry.model import Worker, WorkerState
from registry.rows import problem_of
from registry.times import parse_time

TIMES = ("created_at", "launched_at", "heartbeat_at", "updated_at")
NEEDED = ("worker_id", "provider", "region", "state")
COLUMNS = (*NEEDED, "instance_id", "zone", "model", *TIMES)
_TOLD = "unreadable"
"""A column of our JSON: the times that could not be read, and are null."""

Record = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Import:
    """What a book holds, in rows of ours."""

    workers: tuple[Worker, ...]
    remarks: tuple[str, ...] = ()
    """What a person should know before it is written."""

    def at(self, provider_names: Mapping[str, str]) -> Import:
        """Return the same with the providers called as the configuration calls them."""
        renamed = (replace(each, provider=provider_names.get(each.provider, each.provider)) for each in self.workers)
        return replace(self, workers=tuple(renamed))


def read_csv(text: str) -> Import:
    """Return the rows of a table with our columns, in any order.

    Raises:
        RegistryImportError: naming every line that cannot be used.
    """
    table = csv.DictReader(io.StringIO(text), strict=True, restkey="more cells than columns")
    try:
        _require_columns(table.fieldnames or ())
        records: list[Record] = [{key: _plain(value) for key, value in row.items()} for row in table]
    except csv.Error as error:
        raise RegistryImportError((f"line {table.line_num}: {error}",)) from error
    # The first line is the header.
    return _all(records, _own, lambda number: f"line {number + 2}")


def read_json(text: str) -> Import:
    """Return the rows of a list of objects with our columns, or of what `registry list --format json` prints.

    Raises:
        RegistryImportError: naming every row that cannot be used.
    """
    return _all(records_of(text, "workers"), _own, lambda number: f"row {number + 1}")


def records_of(text: str, key: str) -> list[Record]:
    """Return the objects of a JSON list, or of the list under this key."""
    try:
        told = json.loads(text)
    except ValueError as error:
        raise RegistryImportError((f"it is no JSON: {error}",)) from error
    rows = told.get(key) if isinstance(told, dict) else told
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise RegistryImportError((f"it is neither a list of rows nor an object with `{key}`",))
    return rows


def from_cedana(records: Iterable[Record]) -> Import:
    """Return the instances of a Cedana database, or of its JSON.

    Every row counts, the soft-deleted ones too, which are not live whatever their state says. The id of the provider
    is no key there: two rows may name one machine. A state that is not known protects the machine.

    Raises:
        RegistryImportError: naming every row that cannot be used.
    """
    rows = [{_folded(key): value for key, value in record.items()} for record in records]
    made = _all(rows, _cedana, lambda number: f"instance {rows[number].get('id', number + 1)}")
    return replace(made, remarks=(*_cedana_remarks(rows), *made.remarks))


# ---------------------------------------------------------------- all rows


def _all(records: Sequence[Record], make: Callable[[Record], Worker], place: Callable[[int], str]) -> Import:
    workers: list[Worker] = []
    problems: list[str] = []
    for number, record in enumerate(records):
        try:
            workers.append(_sound(make(record)))
        except ValueError as error:
            problems.append(f"{place(number)}: {error}")
    twice = [name for name, count in Counter(each.worker_id for each in workers).items() if count > 1]
    problems += [f"worker {name!r} is there more than once" for name in twice]
    if problems:
        raise RegistryImportError(tuple(problems))
    return Import(tuple(workers), tuple(_remarks(workers)))


def _sound(worker: Worker) -> Worker:
    problem = problem_of(worker)
    if problem is not None:
        raise ValueError(problem)
    return worker


def _remarks(workers: Iterable[Worker]) -> Iterable[str]:
    rows = tuple(workers)
    machines = Counter((row.provider, row.region, row.instance_id) for row in rows if row.instance_id is not None)
    for (_, region, instance_id), count in machines.items():
        if count > 1:
            yield f"{instance_id} in {region} is named by {count} rows: while one of them is live, it is kept."
    silent = sum(1 for row in rows if row.state.is_live and row.heartbeat_at is None)
    if silent:
        yield f"Live workers without a heartbeat: {silent:,}. Set registry.heartbeat_ttl only once all of them beat."


# ---------------------------------------------------------------- our own columns


def _require_columns(names: Iterable[str]) -> None:
    found = list(names)
    problems = [f"the column {name} is missing" for name in NEEDED if name not in found]
    problems += [f"the column {name!r} is not one of {', '.join(COLUMNS)}" for name in found if name not in COLUMNS]
    if problems:
        raise RegistryImportError(tuple(problems))


def _plain(value: object) -> object:
    """Take back what keeps a spreadsheet from reading a cell as a formula."""
    if isinstance(value, str) and value.startswith("'") and _may_be_a_formula(value[1:]):
        return value[1:]
    return value


def _may_be_a_formula(text: str) -> bool:
    return normalize("NFKC", text).lstrip().lstrip("'").lstrip().startswith(("=", "+", "-", "@"))


def _own(record: Record) -> Worker:
    unknown = [key for key in record if key not in (*COLUMNS, _TOLD)]
    if unknown:
        # Not left out: a misspelt instance_id would make a row that protects nothing.
        msg = f"it has {', '.join(map(repr, unknown))}, which is none of {', '.join(COLUMNS)}"
        raise ValueError(msg)
    texts = {column: _text(record, column) for column in COLUMNS}
    missing = [column for column in NEEDED if texts[column] is None]
    if missing:
        msg = f"it has no {', '.join(missing)}"
        raise ValueError(msg)
    times = {column: _time(column, texts[column]) for column in TIMES}
    return Worker(
        worker_id=texts["worker_id"] or "",
        provider=texts["provider"] or "",
        region=texts["region"] or "",
        instance_id=texts["instance_id"],
        state=_state(texts["state"] or ""),
        zone=texts["zone"],
        model=texts["model"],
        created_at=times["created_at"],
        launched_at=times["launched_at"],
        heartbeat_at=times["heartbeat_at"],
        updated_at=times["updated_at"],
    )


def _text(record: Record, column: str) -> str | None:
    value = record.get(column)
    if value is not None and not isinstance(value, str):
        msg = f"its {column} is no text: {value!r}"
        raise ValueError(msg)
    return value or None


def _time(column: str, text: str | None) -> datetime | None:
    moment = None if text is None else parse_time(text)
    if text is not None and moment is None:
        msg = f"its {column} {text!r} is no time; write 2026-01-10T12:00:00Z"
        raise ValueError(msg)
    return moment


def _state(text: str) -> WorkerState:
    try:
        return WorkerState(text)
    except ValueError:
        msg = f"its state {text!r} is none of {', '.join(WorkerState)}"
        raise ValueError(msg) from None


# ---------------------------------------------------------------- Cedana

_CEDANA_STATES = {
    "pending": WorkerState.RUNNING,
    "running": WorkerState.RUNNING,
    "stopping": WorkerState.DRAINING,
    "stopped": WorkerState.DRAINING,
    "shutting-down": WorkerState.DRAINING,
    "terminated": WorkerState.TERMINATED,
}
"""`pending` names its machine already: nothing is launching any more."""


def _cedana(row: Record) -> Worker:
    number = row.get("id")
    worker_id = _word(row, "cedanaid") or (f"cedana-{number}" if number is not None else "")
    instance_id = _word(row, "allocatedid") or None
    return Worker(
        worker_id=worker_id,
        provider=_word(row, "provider"),
        region=_word(row, "region"),
        instance_id=instance_id,
        state=_cedana_state(row, instance_id),
        created_at=parse_time(_word(row, "createdat")),
    )


def _cedana_state(row: Record, instance_id: str | None) -> WorkerState:
    if _is_deleted(row):
        return WorkerState.TERMINATED
    state = _CEDANA_STATES.get(_word(row, "state"), WorkerState.RUNNING)
    # A row that names no machine protects by its worker id, and for launching_ttl only.
    return WorkerState.LAUNCHING if instance_id is None and state.is_live else state


def _is_deleted(row: Record) -> bool:
    """Say whether gorm marked a row as deleted.

    Go writes a time that is not set as that of the year 1, or as not valid.
    """
    told = row.get("deletedat")
    if isinstance(told, Mapping):
        told = told.get("Time", told.get("time")) if told.get("Valid", told.get("valid")) is True else None
    if not isinstance(told, str):
        return False
    moment = parse_time(told)
    # What cannot be read is no proof that somebody deleted it.
    return moment is not None and moment.year > 1


def _cedana_remarks(rows: Iterable[Record]) -> Iterable[str]:
    kept = tuple(rows)
    deleted = sum(1 for row in kept if _is_deleted(row))
    if deleted:
        yield f"Deleted there: {deleted:,}. They are terminated here, whatever their state was."
    for state in dict.fromkeys(_word(row, "state") for row in kept if not _is_deleted(row)):
        if state not in _CEDANA_STATES:
            yield f"The state {state!r} is not known: it counts as running, which protects."
    # gorm writes the column of `GPUs` as gp_us.
    gpus = sum(1 for row in kept if _word(row, "gpus") or _word(row, "gpu"))
    if gpus:
        yield f"GPUs of {gpus:,} of its rows are left out: a registry does not keep them."


def _word(row: Record, key: str) -> str:
    value = row.get(key)
    return value.strip() if isinstance(value, str) else ""


def _folded(key: str) -> str:
    """Return a key without case and underscores: the database has `allocated_id`, the JSON `Region` and `ID`."""
    return key.replace("_", "").casefold()
