"""The control plane's side of a registry file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

from sqlite_utils import Database
from sqlite_utils.db import NotFoundError

from registry.errors import RegistryWriteError, WorkerNotFoundError
from registry.model import Interest, Worker, WorkerState
from registry.rows import problem_of, problem_of_name, require_launching, state_once_placed
from registry.sqlite.connection import writing
from registry.sqlite.reader import BUSY_TIMEOUT, SqliteRegistry, read_identity
from registry.sqlite.schema import NOW, has_zones, prove_schema
from registry.times import format_time


class SqliteRegistryWriter:
    """Writes a registry file. Every call opens it, commits one durable transaction (a few milliseconds) and closes it.

    Safe to share between threads and to keep across a restore: it never writes to a file that was replaced.
    """

    def __init__(
        self,
        path: Path,
        deployment: str,
        *,
        now: Callable[[], datetime] | None = None,
        busy_timeout: timedelta = BUSY_TIMEOUT,
    ) -> None:
        """Keep where it is and whose it must be. `now` gives the times of the rows; without it SQLite's clock does."""
        self._path = path
        self._deployment = deployment
        self._now = now
        self._busy_timeout = busy_timeout

    def find(self, worker_id: str) -> Worker | None:
        """Return the row of this worker; None without one."""
        only = Interest(names=frozenset({worker_id}), live=False)
        found = SqliteRegistry(self._path, self._busy_timeout).snapshot(interest=only)
        self._require_ours(found.identity.deployment)
        return next((worker for worker in found.workers if worker.worker_id == worker_id), None)

    def add(self, worker: Worker) -> None:
        """Insert a row. A worker id that stands already is refused."""
        self.add_all((worker,))

    def add_all(self, workers: Iterable[Worker]) -> None:
        """Insert these rows in one transaction: all of them, or, when one is refused, none."""
        rows = tuple(workers)
        for worker in rows:
            _require(problem_of(worker))
            if worker.unreadable:
                _require(f"its {', '.join(worker.unreadable)} could not be read and would be lost")
        with self._writing() as (db, now):
            for worker in rows:
                if db.table("workers").count_where("worker_id = ?", [worker.worker_id]):
                    _require(f"there is a worker {worker.worker_id!r} already")
                db.table("workers").insert({**_columns(worker, now), **_zone(db, worker.zone)})

    def set_place(self, worker_id: str, provider: str, region: str, *, zone: str | None = None) -> None:
        """Say where the worker is launched next."""
        names = {"provider": provider, "region": region} | ({} if zone is None else {"zone": zone})
        for column, value in names.items():
            problem = problem_of_name(value)
            _require(problem and f"its {column} {value!r} {problem}")
        with self._writing() as (db, now):
            row = _row(db, worker_id)
            require_launching(worker_id, row["instance_id"] or None, WorkerState(str(row["state"])))
            _update(db, worker_id, provider=provider, region=region, updated_at=now, **_zone(db, zone))

    def set_instance(self, worker_id: str, instance_id: str, *, launched_at: datetime | None = None) -> None:
        """Fill in the instance id that the launch answer brought; a launching row becomes running."""
        problem = problem_of_name(instance_id)
        _require(problem and f"the instance id {instance_id!r} {problem}")
        with self._writing() as (db, now):
            row = _row(db, worker_id)
            state = state_once_placed(
                worker_id, row["instance_id"] or None, WorkerState(str(row["state"])), instance_id
            )
            launched = _text(launched_at) or row["launched_at"] or now
            _update(db, worker_id, instance_id=instance_id, state=state.value, launched_at=launched, updated_at=now)

    def set_state(self, worker_id: str, state: WorkerState) -> None:
        """Change the state."""
        with self._writing() as (db, now):
            _update(db, worker_id, state=state.value, updated_at=now)

    def heartbeat(self, worker_id: str, at: datetime | None = None) -> None:
        """Record that the worker is alive."""
        with self._writing() as (db, now):
            _update(db, worker_id, heartbeat_at=_text(at) or now, updated_at=now)

    def remove(self, worker_id: str) -> None:
        """Delete the row."""
        with self._writing() as (db, _):
            _row(db, worker_id)
            db.table("workers").delete(worker_id)

    @contextmanager
    def _writing(self) -> Iterator[tuple[Database, str]]:
        """Give the database in a transaction, and the time of the change as text."""
        with writing(self._path, self._busy_timeout) as db:
            prove_schema(db.conn)
            self._require_ours(read_identity(db.conn).deployment)
            yield db, self._time(db)

    def _require_ours(self, found: str) -> None:
        if found != self._deployment:
            _require(f"{self._path} is the registry of deployment {found!r}, not of {self._deployment!r}")

    def _time(self, db: Database) -> str:
        if self._now is None:
            return str(db.execute(f"SELECT {NOW}").fetchone()[0])
        return format_time(self._now())


def _columns(worker: Worker, now: str) -> dict[str, str | None]:
    return {
        "worker_id": worker.worker_id,
        "provider": worker.provider,
        "region": worker.region,
        "instance_id": worker.instance_id,
        "state": worker.state.value,
        "model": worker.model,
        "created_at": _text(worker.created_at) or now,
        "launched_at": _text(worker.launched_at),
        "heartbeat_at": _text(worker.heartbeat_at),
        "updated_at": _text(worker.updated_at) or now,
    }


def _zone(db: Database, zone: str | None) -> dict[str, str | None]:
    """Return the zone, if the file has room for it: one of the first schema keeps none until it is migrated."""
    return {"zone": zone} if has_zones(read_identity(db.conn).schema_version) else {}


def _row(db: Database, worker_id: str) -> dict[str, str | None]:
    try:
        return db.table("workers").get(worker_id)
    except NotFoundError as error:
        msg = f"the registry has no worker {worker_id!r}"
        raise WorkerNotFoundError(msg) from error


def _update(db: Database, worker_id: str, **columns: str | None) -> None:
    _row(db, worker_id)
    db.table("workers").update(worker_id, columns)


def _text(moment: datetime | None) -> str | None:
    if moment is None:
        return None
    try:
        return format_time(moment)
    except ValueError as error:
        raise RegistryWriteError(str(error)) from error


def _require(problem: str | None) -> None:
    if problem is not None:
        raise RegistryWriteError(problem)
