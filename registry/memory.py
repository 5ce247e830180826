"""A registry in memory that keeps the promises of the file, for tests and rehearsed stories. For one thread."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import datetime
from secrets import token_hex

from registry.errors import RegistryUnusableError, RegistryWriteError, WorkerNotFoundError
from registry.model import (
    SCHEMA_VERSION,
    Interest,
    RegistryFault,
    RegistryIdentity,
    RegistryRows,
    RegistrySnapshot,
    Worker,
    WorkerState,
)
from registry.rows import (
    Reading,
    is_wanted,
    matching,
    problem_of,
    problem_of_name,
    require_launching,
    state_once_placed,
)
from registry.times import format_time, parse_time

EPOCHS_KEPT = 10_000


@dataclass(slots=True)
class Contents:
    """All that a registry holds. A saved one, put back, is a restored backup."""

    registry_id: str
    deployment: str
    epoch: int
    updated_at: datetime
    nonces: dict[int, str]
    workers: dict[str, Worker] = field(default_factory=dict)


class MemoryRegistry:
    """Reader and writer in one.

    Its seams: `fault` makes every reading be refused, `before_reading` is called before each one (to change a row
    between two looks, say), and `contents` may be looked at, saved and put back.
    """

    def __init__(
        self,
        deployment: str,
        *,
        now: Callable[[], datetime],
        registry_id: str = "memory",
        nonce: Callable[[], str] = token_hex,
    ) -> None:
        """Begin with no workers, at epoch 1."""
        self.fault: RegistryFault | None = None
        self.before_reading: Callable[[], object] = _nothing
        self.contents = Contents(registry_id, deployment, 1, now(), {1: nonce()})
        self._now = now
        self._nonce = nonce

    def save(self) -> Contents:
        """Return a backup."""
        return deepcopy(self.contents)

    def restore(self, saved: Contents) -> None:
        """Put a backup back."""
        self.contents = deepcopy(saved)

    def snapshot(self, *, remembered_epoch: int | None = None, interest: Interest | None = None) -> RegistrySnapshot:
        """Return the whole registry, or the rows of it that are asked for."""
        self._read()
        contents = self.contents
        every = [contents.workers[worker_id] for worker_id in sorted(contents.workers)]
        wanted = [worker for worker in every if interest is None or is_wanted(worker, interest)]
        return RegistrySnapshot(
            identity=self._identity(),
            workers=tuple(wanted),
            nonce=contents.nonces[contents.epoch],
            oldest_epoch=min(contents.nonces),
            remembered_nonce=None if remembered_epoch is None else contents.nonces.get(remembered_epoch),
            passed_over=Counter(worker.state for worker in every) - Counter(worker.state for worker in wanted),
        )

    def lookup(self, instance_id: str, worker_id: str | None, read: Reading | None = None) -> RegistryRows:
        """Return every row that names this instance id or has this worker id."""
        return self.lookup_many([(instance_id, worker_id)], read)

    def lookup_many(self, machines: Iterable[tuple[str, str | None]], read: Reading | None = None) -> RegistryRows:
        """Return every row that names one of these machines or has one of these worker ids."""
        self._read()
        return RegistryRows(identity=self._identity(), workers=matching(self.contents.workers.values(), machines, read))

    def find(self, worker_id: str) -> Worker | None:
        """Return the row of this worker; None without one."""
        self._read()
        return self.contents.workers.get(worker_id)

    def add(self, worker: Worker) -> None:
        """Insert a row."""
        _require(problem_of(worker))
        if worker.unreadable:
            _require(f"its {', '.join(worker.unreadable)} could not be read and would be lost")
        if worker.worker_id in self.contents.workers:
            _require(f"there is a worker {worker.worker_id!r} already")
        now = self._now()
        added = replace(
            worker,
            created_at=_utc(worker.created_at) or now,
            launched_at=_utc(worker.launched_at),
            heartbeat_at=_utc(worker.heartbeat_at),
            updated_at=_utc(worker.updated_at) or now,
        )
        self.contents.workers[worker.worker_id] = added
        self._raise_epoch()

    def set_place(self, worker_id: str, provider: str, region: str, *, zone: str | None = None) -> None:
        """Say where the worker is launched next."""
        row = self._row(worker_id)
        require_launching(worker_id, row.instance_id, row.state)
        moved = replace(row, provider=provider, region=region, zone=zone)
        _require(problem_of(moved))
        self._write(moved)

    def set_instance(self, worker_id: str, instance_id: str, *, launched_at: datetime | None = None) -> None:
        """Fill in the instance id."""
        problem = problem_of_name(instance_id)
        _require(problem and f"the instance id {instance_id!r} {problem}")
        row = self._row(worker_id)
        state = state_once_placed(worker_id, row.instance_id, row.state, instance_id)
        launched = _utc(launched_at) or row.launched_at or self._now()
        self._write(replace(row, instance_id=instance_id, state=state, launched_at=launched))

    def set_state(self, worker_id: str, state: WorkerState) -> None:
        """Change the state."""
        self._write(replace(self._row(worker_id), state=state))

    def heartbeat(self, worker_id: str, at: datetime | None = None) -> None:
        """Record that the worker is alive."""
        self._write(replace(self._row(worker_id), heartbeat_at=_utc(at) or self._now()))

    def remove(self, worker_id: str) -> None:
        """Delete the row."""
        self._row(worker_id)
        del self.contents.workers[worker_id]
        self._raise_epoch()

    def _read(self) -> None:
        self.before_reading()
        if self.fault is not None:
            raise RegistryUnusableError(self.fault, "memory", "a fault was asked for", "Take it away again")

    def _identity(self) -> RegistryIdentity:
        contents = self.contents
        return RegistryIdentity(
            registry_id=contents.registry_id,
            deployment=contents.deployment,
            schema_version=SCHEMA_VERSION,
            epoch=contents.epoch,
            updated_at=contents.updated_at,
        )

    def _row(self, worker_id: str) -> Worker:
        try:
            return self.contents.workers[worker_id]
        except KeyError:
            msg = f"the registry has no worker {worker_id!r}"
            raise WorkerNotFoundError(msg) from None

    def _write(self, row: Worker) -> None:
        before = self._row(row.worker_id)
        now = self._now()
        self.contents.workers[row.worker_id] = replace(row, updated_at=now)
        self.contents.updated_at = now
        if _protects(row) != _protects(before):
            self._raise_epoch()

    def _raise_epoch(self) -> None:
        contents = self.contents
        contents.epoch += 1
        contents.updated_at = self._now()
        contents.nonces[contents.epoch] = self._nonce()
        contents.nonces.pop(contents.epoch - EPOCHS_KEPT, None)


def _protects(row: Worker) -> tuple[str, str, str | None, WorkerState]:
    return (row.provider, row.region, row.instance_id, row.state)


def _utc(moment: datetime | None) -> datetime | None:
    if moment is None:
        return None
    try:
        return parse_time(format_time(moment))
    except ValueError as error:
        raise RegistryWriteError(str(error)) from error


def _require(problem: str | None) -> None:
    if problem is not None:
        raise RegistryWriteError(problem)


def _nothing() -> None:
    pass
