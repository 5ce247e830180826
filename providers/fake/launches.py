"""What was launched onto a cloud in memory, by worker id: the memory of its idempotency tokens."""

from __future__ import annotations

import threading

from providers.capacity import WorkerHandle


class LaunchBook:
    """The launches of one cloud. A token is known in its region only, as on EC2."""

    def __init__(self) -> None:
        """Start empty."""
        self.turn = threading.Lock()
        """Held while a launch is looked up and made, so that two of one worker id cannot both be the first."""
        self._handles: dict[tuple[str, str], WorkerHandle] = {}

    def find(self, region: str, worker_id: str) -> WorkerHandle | None:
        """Return the launch of a worker id in a region."""
        return self._handles.get((region, worker_id))

    def knows(self, worker_id: str) -> bool:
        """Return whether a worker id was launched in any region."""
        return any(known == worker_id for _, known in self._handles)

    def record(self, handle: WorkerHandle) -> None:
        """Remember a launch."""
        self._handles[handle.offer.region, handle.worker_id] = handle

    def within(self, regions: tuple[str, ...]) -> tuple[WorkerHandle, ...]:
        """Return every launch of these regions, ended ones too, in their order."""
        with self.turn:
            return tuple(handle for (region, _), handle in self._handles.items() if region in regions)
