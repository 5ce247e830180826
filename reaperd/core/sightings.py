"""What one look teaches us about the machines that we have seen before (rules 10 to 12). Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from providers.model import OwnedInstance
from reaperd.core.model import Sighting
from reaperd.core.tracking import Ambiguous, Tracked, Tracking, Untracked

FORGET_AFTER = timedelta(hours=24)
"""How long a machine that is no longer listed is remembered."""

EPOCH_OF_CLOUDS = datetime(2006, 1, 1, tzinfo=UTC)
"""EC2 opened in 2006: an older launch time is a default value of somebody's language, not a time."""


def advance(prior: Sighting | None, tracking: Tracking, now: datetime, spacing: timedelta) -> Sighting:
    """Return what is known of a listed machine after this look.

    Being tracked, or in doubt, starts the count anew; two looks closer than `spacing` count as one.
    """
    seen = prior or Sighting(first_seen_at=now, last_seen_at=now)
    if isinstance(tracking, Tracked):
        # Made anew, because nearly all are of this kind: what is not told here starts from the beginning.
        return Sighting(
            first_seen_at=seen.first_seen_at,
            last_seen_at=now,
            tracked_at=now,
            tracked_by=tracking.worker.worker_id,
            verdict=seen.verdict,
        )
    seen = replace(seen, last_seen_at=now)
    if isinstance(tracking, Ambiguous):
        return _doubted(seen, tracking.worker.worker_id, now)
    vanished = seen.tracked_at is not None and not _still_has_its_row(seen, tracking)
    since = (seen.vanished_at or now) if vanished else None
    if seen.counted_at is not None and now - seen.counted_at < spacing:
        return replace(seen, vanished_at=since)
    return replace(seen, confirmations=seen.confirmations + 1, counted_at=now, vanished_at=since)


def _doubted(seen: Sighting, worker_id: str, now: datetime) -> Sighting:
    """Return what is known of a machine that a row is perhaps about.

    If no row was known to be, it is the one that may vanish: who removes a row in order to correct it has the same hour
    as anybody else whose row is gone.
    """
    its_row = seen.tracked_at is None or seen.tracked_by == worker_id
    tracked_at, tracked_by = (now, worker_id) if its_row else (seen.tracked_at, seen.tracked_by)
    return replace(
        seen, confirmations=0, counted_at=None, vanished_at=None, tracked_at=tracked_at, tracked_by=tracked_by
    )


def _still_has_its_row(seen: Sighting, tracking: Untracked) -> bool:
    """Say whether the row that tracked the machine is there, in whatever state. Another worker's old row is not it."""
    return tracking.has_row if seen.tracked_by is None else seen.tracked_by in tracking.workers


def absent(prior: Sighting, now: datetime) -> Sighting | None:
    """Return what is kept of a machine that a complete listing no longer has; None when it is forgotten."""
    if now - prior.last_seen_at > FORGET_AFTER:
        return None
    return replace(prior, confirmations=0, counted_at=None)


def age(instance: OwnedInstance, prior: Sighting | None, now: datetime) -> timedelta | None:
    """Return how long a machine has existed at least; None when nothing says so. Never negative."""
    launched, seen = believable(instance.launched_at, now), prior.first_seen_at if prior is not None else None
    start = seen if launched is None or (seen is not None and seen < launched) else launched
    return None if start is None else max(now - start, timedelta(0))


def believable(launched_at: datetime | None, now: datetime) -> datetime | None:
    """Return a launch time that can be counted from; None when it is missing, zero, too old or in the future."""
    if launched_at is None or not EPOCH_OF_CLOUDS <= launched_at <= now:
        return None
    return launched_at
