"""Since when a machine runs, whoever owns it, and what a sweep teaches us about that (rule 27). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType

from providers.model import AuditedInstance, AuditSweep, InstanceRef
from reaperd.core.sightings import believable

Starts = Mapping[InstanceRef, datetime]
"""The earliest time at which each machine is known to have existed."""

NO_STARTS: Starts = MappingProxyType({})

REMEMBERED = 100_000
"""So many machines are remembered, about 12 MB. Of more than these, the youngest count from what the cloud says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedStarts:
    """What is to be written after a sweep, and nothing that is written already."""

    noted: Starts = field(default_factory=lambda: NO_STARTS, hash=False)
    """Machines that are new, or older than we knew."""
    forgotten: frozenset[InstanceRef] = frozenset()
    """Machines that a complete look at their scope showed to be gone."""


def told_start(instance: AuditedInstance, now: datetime) -> datetime | None:
    """Return the earliest start that the cloud tells; None when it tells none that can be believed.

    A nightly stop and start resets EC2's launch time; the attach time of the primary network interface does not move.
    """
    told = (believable(instance.launched_at, now), believable(instance.attached_at, now))
    return min((moment for moment in told if moment is not None), default=None)


def started(instance: AuditedInstance, now: datetime, remembered: datetime | None = None) -> datetime | None:
    """Return the earliest time that a machine is known to have existed; None when nothing says so.

    `remembered` is what earlier sweeps knew. One that lies ahead was written under a clock that went wrong.
    """
    known = (told_start(instance, now), remembered if remembered is not None and remembered <= now else None)
    return min((moment for moment in known if moment is not None), default=None)


def learn_starts(sweep: AuditSweep, before: Starts, now: datetime) -> LearnedStarts:
    """Return what a sweep teaches. A scope that failed makes nothing forgotten, and nothing younger.

    A machine that nobody gives a start to has run since we first saw it, at least.
    """
    there = {instance.ref: instance for instance in sweep.instances if not instance.state.is_gone}
    whole = {entry.scope for entry in sweep.coverage if entry.ok}
    gone = {ref for ref in before if ref.scope in whole and ref not in there}
    starts = {ref: started(instance, now, before.get(ref)) or now for ref, instance in there.items()}
    noted = {ref: start for ref, start in starts.items() if ref not in before or start < before[ref]}
    return _bounded(noted, gone, before, sweep)


def _bounded(
    noted: dict[InstanceRef, datetime], gone: set[InstanceRef], before: Starts, sweep: AuditSweep
) -> LearnedStarts:
    """Keep within the limit: scopes that nobody looks at any more go first, then the youngest are not noted."""
    kept = before.keys() - gone
    if len(kept | noted.keys()) > REMEMBERED:
        looked_at = {entry.scope for entry in sweep.coverage}
        dropped = {ref for ref in kept if ref.scope not in looked_at}
        gone, kept = gone | dropped, kept - dropped
    room = max(REMEMBERED - len(kept), 0)
    added = sorted((start, ref) for ref, start in noted.items() if ref not in kept)[:room]
    changed = {ref: start for ref, start in noted.items() if ref in kept}
    return LearnedStarts(noted={**changed, **{ref: start for start, ref in added}}, forgotten=frozenset(gone))
