"""What becomes of the machines if another registry is believed. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from providers.model import InstanceRef
from reaperd.core.model import Memory, Sighting
from registry.model import Worker


@dataclass(frozen=True, slots=True)
class Left:
    """A machine that was tracked at the last look, and that no live row of the other registry names."""

    ref: InstanceRef
    worker_id: str | None
    """The worker that tracked it."""


@dataclass(frozen=True, slots=True)
class Succession:
    """What the other registry says of the machines that the last look found tracked."""

    tracked: int
    """How many there were."""
    left: tuple[Left, ...]
    """Those that are orphans by the other registry, in the order of their places and ids."""


def succession(memory: Memory, rows: Iterable[Worker]) -> Succession:
    """Compare what was tracked at the last look with the rows of another registry.

    A row accounts for a machine by its id, or by its worker as long as it names no machine (rule 6). What the last look
    did not know, a time limit that has passed since or a name that is only alike, `reaperd plan` tells.
    """
    live = [row for row in rows if row.state.is_live]
    named = {(row.provider, row.region, row.instance_id) for row in live if row.instance_id is not None}
    waiting = {row.worker_id for row in live if row.instance_id is None}
    tracked = {ref: sighting for ref, sighting in memory.sightings.items() if _was_tracked(sighting, memory)}
    left = tuple(
        Left(ref, sighting.tracked_by)
        for ref, sighting in sorted(tracked.items(), key=lambda item: str(item[0]))
        if (ref.provider, ref.region, ref.instance_id) not in named and sighting.tracked_by not in waiting
    )
    return Succession(len(tracked), left)


def _was_tracked(sighting: Sighting, memory: Memory) -> bool:
    return sighting.tracked_at is not None and sighting.tracked_at == memory.looked_at
