"""What the registry says of one machine, in words. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from reaperd.core.model import TerminateReason
from reaperd.core.tracking import Ambiguous, Tracked, Tracking
from registry.model import Worker


def told_by_rows(tracking: Tracking) -> str:
    """Return the row that decided, with what it was decided by; or that there is none."""
    if isinstance(tracking, Ambiguous):
        return _elsewhere(tracking.worker) if tracking.worker.instance_id is not None else _misspelt(tracking.worker)
    if isinstance(tracking, Tracked):
        return f"row {tracking.worker.worker_id} ({tracking.worker.state})"
    if tracking.row is None:
        return "no row, and no worker tag" if tracking.reason is TerminateReason.ANONYMOUS else "no row"
    return _OF_AN_ORPHAN[tracking.reason](tracking.row)


def _elsewhere(row: Worker) -> str:
    return f"row {row.worker_id} names {row.provider}/{row.region}/{row.instance_id}"


def _misspelt(row: Worker) -> str:
    return f"row {row.worker_id} ({row.state}) is its worker tag, but for case or blanks"


def _retired(row: Worker) -> str:
    return f"row {row.worker_id} is {row.state}" + _last_written(row.updated_at)


def _abandoned(row: Worker) -> str:
    return f"row {row.worker_id} is {row.state} and names no machine" + _last_written(row.updated_at)


def _silent(row: Worker) -> str:
    beat = "never beat" if row.heartbeat_at is None else f"last beat at {_told(row.heartbeat_at)}"
    return f"row {row.worker_id} is {row.state} and {beat}"


def _last_written(when: datetime | None) -> str:
    return "" if when is None else f", last written at {_told(when)}"


def _told(when: datetime) -> str:
    return f"{when.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


_OF_AN_ORPHAN: Mapping[TerminateReason, Callable[[Worker], str]] = {
    TerminateReason.RETIRED: _retired,
    TerminateReason.LAUNCH_ABANDONED: _abandoned,
    TerminateReason.HEARTBEAT_EXPIRED: _silent,
    TerminateReason.SUPERSEDED: _elsewhere,
}
"""How the row reads by which it is an orphan. Without a row it is one for other reasons."""
