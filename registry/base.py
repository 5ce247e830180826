"""The two ports of a registry: a reader for the daemon, a writer for control planes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from registry.model import Interest, RegistryRows, RegistrySnapshot, Worker, WorkerState


@runtime_checkable
class RegistryReader(Protocol):
    """Reads, and never creates, migrates, repairs or writes anything."""

    def snapshot(self, *, remembered_epoch: int | None = None, interest: Interest | None = None) -> RegistrySnapshot:
        """Return the whole registry as of one moment, or, with an interest, the rows of it that are asked for.

        `remembered_epoch` asks for the mark of that epoch, so that a restored backup can be told.

        Raises:
            RegistryUnusableError: for every form of file that is not a whole, current registry.
        """
        ...

    def lookup(self, instance_id: str, worker_id: str | None, read: Callable[[str], str] | None = None) -> RegistryRows:
        """Return every row, of any place and state, that names this instance id or has this worker id.

        Letter by letter; and the live rows that do so once both names are read in the way that is given.

        Raises:
            RegistryUnusableError: as for snapshot.
        """
        ...

    def lookup_many(
        self, machines: Iterable[tuple[str, str | None]], read: Callable[[str], str] | None = None
    ) -> RegistryRows:
        """Return every row that a lookup of any of these would, once each and by worker id, all as of one moment.

        Each machine is an instance id, and a worker id or None.

        Raises:
            RegistryUnusableError: as for snapshot.
        """
        ...


@runtime_checkable
class RegistryWriter(Protocol):
    """The control plane's side. Each call is one durable transaction; a refused one changes nothing.

    Raises RegistryWriteError when a change is refused, WorkerNotFoundError for an unknown worker id.
    """

    def find(self, worker_id: str) -> Worker | None:
        """Return the row of this worker; None without one.

        Raises:
            RegistryUnusableError: as for RegistryReader.snapshot.
        """
        ...

    def add(self, worker: Worker) -> None:
        """Insert a row. A worker id that stands already is refused."""
        ...

    def set_place(self, worker_id: str, provider: str, region: str, *, zone: str | None = None) -> None:
        """Say where the worker is launched next; its time to get an instance begins anew. A zone that stood is gone.

        Refused unless the row is launching and names no instance.
        """
        ...

    def set_instance(self, worker_id: str, instance_id: str, *, launched_at: datetime | None = None) -> None:
        """Fill in the instance id that the launch answer brought; a launching row becomes running.

        Refused when the row names another machine, or is in a terminal state. `launched_at` is now unless it was known.
        """
        ...

    def set_state(self, worker_id: str, state: WorkerState) -> None:
        """Change the state."""
        ...

    def heartbeat(self, worker_id: str, at: datetime | None = None) -> None:
        """Record that the worker is alive. Raises meta.updated_at, not the epoch."""
        ...

    def remove(self, worker_id: str) -> None:
        """Delete the row."""
        ...
