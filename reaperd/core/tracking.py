"""Which row accounts for which machine (rules 6 and 7). Pure.

A machine is matched by its id and place, or by its worker tag to a row that has no id yet, letter by letter. Never by
IP, DNS name or display name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain
from operator import attrgetter

from providers.identity import loosely
from providers.model import InstanceRef, OwnedInstance
from reaperd.core.model import CLOCK_TOLERANCE, ReapPolicy, TerminateReason
from registry.model import Interest, Worker, WorkerState


@dataclass(frozen=True, slots=True)
class Tracked:
    """A live row accounts for the machine."""

    worker: Worker


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """A live row speaks of this worker or this id, but of another place or in another spelling. Unknown means hold."""

    worker: Worker


@dataclass(frozen=True, slots=True)
class Untracked:
    """No live row protects the machine."""

    reason: TerminateReason
    has_row: bool
    """True when some row, in whatever state, is about this machine."""
    workers: frozenset[str] = field(default=frozenset(), compare=False)
    """The worker ids of those rows."""
    row: Worker | None = field(default=None, compare=False)
    """The row that it is an orphan by; None when no row is about it."""


Tracking = Tracked | Ambiguous | Untracked
_Cause = tuple[TerminateReason, Worker | None]


@dataclass(frozen=True, slots=True)
class Rows:
    """The registry's rows, indexed, with what has to be known of all of them at once."""

    by_instance: Mapping[str, Sequence[Worker]]
    by_worker: Mapping[str, Sequence[Worker]]
    by_loose_name: Mapping[str, Sequence[Worker]]
    """The live ones, by what they match a machine by: its id or, as long as they have none, its worker tag."""
    heartbeats_work: bool
    """See the function of that name."""


def interest_in(instances: Collection[OwnedInstance], now: datetime) -> Interest:
    """Return the rows that can make a difference to a look at these machines, or to what is told of it.

    A row in a terminal state protects nothing. It says why a machine that it names is an orphan, and it is reported if
    its times cannot be relied on.
    """
    names = {instance.ref.instance_id for instance in instances}
    names.update(instance.worker_id for instance in instances if instance.worker_id is not None)
    return Interest(names=frozenset(names), later_than=now + CLOCK_TOLERANCE)


def index(workers: Iterable[Worker], policy: ReapPolicy, now: datetime) -> Rows:
    """Return the rows, ready to be asked."""
    by_instance: dict[str, list[Worker]] = {}
    by_worker: dict[str, list[Worker]] = {}
    by_loose_name: dict[str, list[Worker]] = {}
    # In the order of their names, so that the order in which they were told changes nothing.
    told = sorted(workers, key=attrgetter("worker_id"))
    for worker in told:
        if worker.instance_id is not None:
            by_instance.setdefault(worker.instance_id, []).append(worker)
        by_worker.setdefault(worker.worker_id, []).append(worker)
        if worker.state.is_live:
            by_loose_name.setdefault(loosely(_match(worker)), []).append(worker)
    return Rows(by_instance, by_worker, by_loose_name, heartbeats_work(told, policy, now))


def heartbeats_work(workers: Iterable[Worker], policy: ReapPolicy, now: datetime) -> bool:
    """Say whether at least one live row has a heartbeat within the ttl. created_at proves nothing here."""
    return policy.heartbeat_ttl is not None and any(_beats(worker, policy.heartbeat_ttl, now) for worker in workers)


def classify(
    instance: OwnedInstance, rows: Rows, listing: Mapping[InstanceRef, OwnedInstance], policy: ReapPolicy, now: datetime
) -> Tracking:
    """Say what the rows say of one machine. `listing` is the complete listing, our own instances only."""
    named, by_tag = _about(instance, rows)
    lapsed: list[_Cause] = []
    for worker in (*named, *by_tag):
        if not worker.state.is_live:
            continue
        expiry = _expiry(worker, rows, policy, now)
        if expiry is None:
            return Tracked(worker)
        lapsed.append((expiry, worker))
    elsewhere = _elsewhere(instance, rows)
    astray = (worker for worker in elsewhere if not _superseded_by(worker, instance, listing))
    alike = (worker for worker in _alike(instance, rows) if _expiry(worker, rows, policy, now) is None)
    doubtful = next(chain(astray, alike), None)
    if doubtful is not None:
        return Ambiguous(doubtful)
    about = (*named, *by_tag, *elsewhere)
    reason, row = _reason(instance, lapsed, (*named, *by_tag), elsewhere)
    return Untracked(reason, has_row=bool(about), workers=frozenset(each.worker_id for each in about), row=row)


def bad_times(workers: Iterable[Worker], now: datetime) -> tuple[Worker, ...]:
    """Return the rows with a time that cannot be read or lies in the future."""
    return tuple(worker for worker in workers if has_bad_time(worker, now))


def has_bad_time(worker: Worker, now: datetime) -> bool:
    """Say whether a row's times cannot be relied on; such a row always protects.

    A time a little ahead of `now` protects too, but is not reported: the row may have been written while the
    clouds were listed.
    """
    newest = _newest(worker)
    return bool(worker.unreadable) or (newest is not None and newest > now + CLOCK_TOLERANCE)


def _about(instance: OwnedInstance, rows: Rows) -> tuple[tuple[Worker, ...], tuple[Worker, ...]]:
    ref = instance.ref
    with_its_id = rows.by_instance.get(ref.instance_id, ())
    named = [row for row in with_its_id if row.provider == ref.provider and row.region == ref.region]
    by_tag = [row for row in _rows_of_tag(instance, rows) if row.instance_id is None]
    return tuple(named), tuple(by_tag)


def _rows_of_tag(instance: OwnedInstance, rows: Rows) -> Sequence[Worker]:
    return rows.by_worker.get(instance.worker_id, ()) if instance.worker_id is not None else ()


def _elsewhere(instance: OwnedInstance, rows: Rows) -> tuple[Worker, ...]:
    """Return the live rows of the same worker, or of the same id, that name another machine or place.

    The same id in another place is more likely one machine with a wrong row (a misspelt provider, a renamed table)
    than a coincidence of two clouds' numbering, whatever its tag says.
    """
    ref = instance.ref
    of_worker = [
        worker
        for worker in _rows_of_tag(instance, rows)
        if worker.instance_id is not None
        and (worker.provider, worker.region, worker.instance_id) != (ref.provider, ref.region, ref.instance_id)
    ]
    of_id = [
        worker
        for worker in rows.by_instance.get(ref.instance_id, ())
        if (worker.provider, worker.region) != (ref.provider, ref.region)
    ]
    return tuple(worker for worker in (*of_worker, *of_id) if worker.state.is_live)


def _alike(instance: OwnedInstance, rows: Rows) -> Iterator[Worker]:
    """Yield the live rows that would be about this machine if names were read loosely, and are not as it is."""
    for mine, by_tag in ((instance.ref.instance_id, False), (instance.worker_id, True)):
        for worker in rows.by_loose_name.get(loosely(mine), ()) if mine is not None else ():
            if (worker.instance_id is None) is by_tag and _match(worker) != mine:
                yield worker


def _match(worker: Worker) -> str:
    return worker.worker_id if worker.instance_id is None else worker.instance_id


def _superseded_by(worker: Worker, instance: OwnedInstance, listing: Mapping[InstanceRef, OwnedInstance]) -> bool:
    """Say whether the machine that the row names exists and carries the worker's id in its own tag."""
    if worker.worker_id != instance.worker_id or not worker.instance_id:
        return False
    other = listing.get(InstanceRef(worker.provider, worker.region, worker.instance_id))
    return (
        other is not None
        and other.ref.instance_id != instance.ref.instance_id
        and other.state.exists
        and other.worker_id == worker.worker_id
    )


def _reason(
    instance: OwnedInstance, lapsed: list[_Cause], own: tuple[Worker, ...], elsewhere: tuple[Worker, ...]
) -> _Cause:
    """Return why it is an orphan, and by which row."""
    if lapsed:
        return lapsed[0]
    if elsewhere:
        return TerminateReason.SUPERSEDED, elsewhere[0]
    if own:
        return TerminateReason.RETIRED, own[0]
    return TerminateReason.UNREGISTERED if instance.worker_id is not None else TerminateReason.ANONYMOUS, None


def _expiry(worker: Worker, rows: Rows, policy: ReapPolicy, now: datetime) -> TerminateReason | None:
    """Return why a live row no longer protects; None while it does."""
    newest = _newest(worker)
    # A time a moment ahead is no bad one, but who wrote it while the clouds were listed is alive.
    if worker.unreadable or (newest is not None and newest > now):
        return None
    if worker.state is WorkerState.LAUNCHING and worker.instance_id is None:
        # A launch in flight does not beat yet: its own limit is the only one.
        abandoned = newest is not None and now - newest >= policy.launching_ttl
        return TerminateReason.LAUNCH_ABANDONED if abandoned else None
    if policy.heartbeat_ttl is None or not rows.heartbeats_work:
        return None
    beat = worker.heartbeat_at or worker.created_at
    expired = beat is not None and now - beat > policy.heartbeat_ttl
    return TerminateReason.HEARTBEAT_EXPIRED if expired else None


def _beats(worker: Worker, ttl: timedelta, now: datetime) -> bool:
    if not worker.state.is_live or worker.heartbeat_at is None:
        return False
    return -CLOCK_TOLERANCE <= now - worker.heartbeat_at <= ttl


def _newest(worker: Worker) -> datetime | None:
    """Return the latest of a row's times; None without any."""
    newest = worker.created_at
    for moment in (worker.launched_at, worker.heartbeat_at, worker.updated_at):
        if moment is not None and (newest is None or moment > newest):
            newest = moment
    return newest
