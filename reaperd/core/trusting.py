"""What becomes of the machines if another registry is believed. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from providers.model import InstanceRef
from reaperd.core.history import Look
from reaperd.core.model import KeepReason, Memory, ReapPolicy, TerminateReason
from reaperd.core.tracking import Ambiguous, Tracked, Tracking, Untracked, classify, index
from registry.model import Worker


@dataclass(frozen=True, slots=True)
class Left:
    """A machine that a row held at the last look, and that is an orphan by the other registry."""

    ref: InstanceRef
    worker_id: str | None
    """The worker whose row it was."""
    reason: TerminateReason


@dataclass(frozen=True, slots=True)
class Succession:
    """What the other registry says of the machines that a row held at the last look, tracked or in doubt."""

    held: int
    """How many there were."""
    left: tuple[Left, ...]
    """Those that are orphans by the other registry, in the order of their places and ids."""
    doubtful: int
    """Those that it holds in doubt."""
    launching: int
    """Those that a launch without a machine holds, which is for registry.launching_ttl at the most."""


def succession(look: Look, memory: Memory, rows: Iterable[Worker], policy: ReapPolicy, now: datetime) -> Succession:
    """Judge the machines of the last look by the rows of another registry, as the next pass would."""
    indexed, listing = index(rows, policy, now), {instance.ref: instance for instance in look.instances}
    judged = {
        ref: classify(instance, indexed, listing, policy, now)
        for ref, instance in sorted(listing.items(), key=lambda item: str(item[0]))
        if _was_held(ref, memory)
    }
    left = tuple(
        Left(ref, memory.sightings[ref].tracked_by, tracking.reason)
        for ref, tracking in judged.items()
        if isinstance(tracking, Untracked)
    )
    return Succession(
        held=len(judged),
        left=left,
        doubtful=sum(isinstance(tracking, Ambiguous) for tracking in judged.values()),
        launching=sum(map(_by_a_launch, judged.values())),
    )


def _was_held(ref: InstanceRef, memory: Memory) -> bool:
    sighting = memory.sightings.get(ref)
    if sighting is None:
        return False
    return sighting.tracked_at == memory.looked_at or sighting.verdict == f"keep/{KeepReason.AMBIGUOUS_WORKER}"


def _by_a_launch(tracking: Tracking) -> bool:
    return isinstance(tracking, Tracked) and tracking.worker.instance_id is None
