"""What the registry says, as frozen values. Pure: no I/O, no clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

SCHEMA_VERSION = 2
"""The schema that this release makes. Those since OLDEST_SCHEMA it reads, and writes what they have room for."""
OLDEST_SCHEMA = 1
"""Without zones."""


class WorkerState(StrEnum):
    """The life of a worker. Only the live states protect a machine."""

    LAUNCHING = "launching"
    """Written before the launch request, so that a machine is never without a row."""
    RUNNING = "running"
    DRAINING = "draining"
    COMPLETED = "completed"
    FAILED = "failed"
    TERMINATED = "terminated"

    @property
    def is_live(self) -> bool:
        """True for the states that account for a machine."""
        return self in _LIVE


_LIVE = frozenset({WorkerState.LAUNCHING, WorkerState.RUNNING, WorkerState.DRAINING})


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """One row. Times are UTC; a time that could not be read is None and named in `unreadable`."""

    worker_id: str
    provider: str
    region: str
    instance_id: str | None
    """None until the control plane learns it from its launch answer."""
    state: WorkerState
    zone: str | None = None
    """Where in the region the launch was asked for last. None: the cloud was to choose, or nobody knows any more."""
    model: str | None = None
    created_at: datetime | None = None
    launched_at: datetime | None = None
    heartbeat_at: datetime | None = None
    """None when the worker never beat."""
    updated_at: datetime | None = None
    unreadable: tuple[str, ...] = ()
    """Names of the time columns whose text is no time. Such a row always protects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryIdentity:
    """The `meta` row: which registry this is, and how far it has come."""

    registry_id: str
    deployment: str
    schema_version: int
    epoch: int
    """Raised by triggers at every insert, delete and change of place or state."""
    updated_at: datetime | None
    """The last write of any kind, heartbeats included; None when unreadable."""


@dataclass(frozen=True, slots=True)
class Alike:
    """Names, and how they are read when a row is compared with them. Whoever asks says how."""

    names: frozenset[str]
    """As they are read."""
    read: Callable[[str], str]

    def matches(self, *names: str | None) -> bool:
        """Say whether one of a row's names reads like one of these."""
        return any(name is not None and self.read(name) in self.names for name in names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interest:
    """Which rows are asked for. Every row is proved all the same, and those that nobody asks for are counted.

    A registry keeps a row of each worker that ever was, and next to nothing depends on one that has ended.
    """

    names: frozenset[str]
    """Instance ids and worker ids: the rows that have one of them, whatever their place and state."""
    live: bool = True
    """And every row in a live state."""
    alike: Alike | None = None
    """And, if not all, the live rows whose names read like these."""
    later_than: datetime | None = None
    """And the rows that have a later time than this, or one that cannot be read. None: whatever their times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrySnapshot:
    """The whole registry, read in one transaction and without a limit."""

    identity: RegistryIdentity
    workers: tuple[Worker, ...]
    """Every row, or every one that was asked for; by worker id."""
    nonce: str | None
    """The random mark of the current epoch."""
    oldest_epoch: int | None
    """The oldest epoch whose mark is kept; None when none is."""
    remembered_nonce: str | None = None
    """The mark of the epoch that the caller asked about; None when it is not kept (or was not asked for)."""
    passed_over: Mapping[WorkerState, int] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    """How many rows are not in `workers`, by state, because nobody asked for them."""

    @property
    def rows(self) -> int:
        """Return the number of all rows."""
        return len(self.workers) + sum(self.passed_over.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryRows:
    """The rows that may say something about one machine, read again just before the door."""

    identity: RegistryIdentity
    workers: tuple[Worker, ...]


class RegistryFault(StrEnum):
    """The ways in which a registry file can be unusable, told apart."""

    MISSING = "missing"
    NOT_A_FILE = "not_a_file"
    PERMISSION = "permission"
    EMPTY_FILE = "empty_file"
    NOT_A_DATABASE = "not_a_database"
    DAMAGED = "damaged"
    NO_WORKERS_TABLE = "no_workers_table"
    NO_META_TABLE = "no_meta_table"
    NO_META_ROW = "no_meta_row"
    NEWER_SCHEMA = "newer_schema"
    OTHER_SCHEMA = "other_schema"
    """Older, or columns that are not those of the schema."""
    BAD_ROW = "bad_row"
    LOCKED = "locked"
    CHANGED_WHILE_READ = "changed_while_read"
    ALONE = "alone"
    """Reached by a name that its `-wal` does not stand beside."""
