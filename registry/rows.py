"""Which rows name a machine, and which rows cannot be trusted to. Pure; every reader and writer uses the same rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from registry.errors import RegistryWriteError
from registry.model import Alike, Interest, Worker, WorkerState

_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\ufffd\U000e0100-\U000e01ef]"
)
"""What counts as printable and shows nothing: fillers, joiners, variation selectors, the blank of Braille (Unicode 14,
Default_Ignorable_Code_Point); and what stands for a character that could not be read."""

Reading = Callable[[str], str]
"""How somebody reads a name when two are compared."""


def matching(
    workers: Iterable[Worker], machines: Iterable[tuple[str, str | None]], read: Reading | None = None
) -> tuple[Worker, ...]:
    """Return the rows, of any place and state, that name one of these instance ids or have one of these worker ids.

    And the live ones that do so when both names are read in that way. By worker id, so that the order in which they
    were kept changes nothing.
    """
    wanted = tuple(machines)
    instance_ids = {instance_id for instance_id, _ in wanted}
    worker_ids = {worker_id for _, worker_id in wanted if worker_id is not None}
    alike = alike_to(instance_ids | worker_ids, read)
    found = (
        worker
        for worker in workers
        if worker.instance_id in instance_ids or worker.worker_id in worker_ids or is_alike(worker, alike)
    )
    return tuple(sorted(found, key=lambda worker: worker.worker_id))


def alike_to(names: Iterable[str], read: Reading | None) -> Alike | None:
    """Return what finds the rows whose names read like these; None where nothing but the letters counts."""
    return None if read is None else Alike(frozenset(map(read, names)), read)


def is_alike(worker: Worker, alike: Alike | None) -> bool:
    """Say whether a live row has a name that reads like one of these."""
    return alike is not None and worker.state.is_live and alike.matches(worker.worker_id, worker.instance_id)


def names_of(machines: Iterable[tuple[str, str | None]]) -> frozenset[str]:
    """Return the instance ids and the worker ids of these machines."""
    return frozenset(name for machine in machines for name in machine if name is not None)


def is_wanted(worker: Worker, interest: Interest) -> bool:
    """Say whether a row is asked for."""
    if worker.worker_id in interest.names or worker.instance_id in interest.names:
        return True
    if (interest.live and worker.state.is_live) or is_alike(worker, interest.alike):
        return True
    late = interest.later_than
    times = (worker.created_at, worker.launched_at, worker.heartbeat_at, worker.updated_at)
    return late is not None and (bool(worker.unreadable) or any(time is not None and time > late for time in times))


def problem_of(worker: Worker) -> str | None:
    """Return why this row cannot be trusted, or None.

    A name with a blank around it, or with a character that nobody sees, equals no tag and no id of a cloud: the row
    would look as if it protected its machine, and would not.
    """
    names = {"worker_id": worker.worker_id, "provider": worker.provider, "region": worker.region}
    names |= {"instance_id": worker.instance_id} if worker.instance_id is not None else {}
    names |= {"zone": worker.zone} if worker.zone is not None else {}
    for column, value in names.items():
        problem = problem_of_name(value)
        if problem is not None:
            return f"its {column} {value!r} {problem}"
    return None


def problem_of_name(value: str) -> str | None:
    """Return why this text cannot be the name of a worker, a place or a machine, or None."""
    if not value.strip():
        return "is blank"
    if value != value.strip():
        return "has blanks around it"
    if not value.isprintable() or _UNSEEN.search(value):
        return "holds a character that cannot be shown"
    return None


def are_plain_names(names: Sequence[str]) -> bool:
    """Say at once of many whether `problem_of_name` has nothing against any of them. False settles nothing."""
    try:
        text = "".join(names)
    except TypeError:  # one of them is no text
        return False
    # Of all that is blank by its kind, only a space is printable.
    plain = all(names) and text.isprintable() and " " not in text
    return plain and (text.isascii() or _UNSEEN.search(text) is None)


def state_once_placed(worker_id: str, known: str | None, state: WorkerState, instance_id: str) -> WorkerState:
    """Return the state of a row whose machine becomes known.

    Raises:
        RegistryWriteError: when the row names another machine already, or is in a terminal state: its machine was given
            up, and would be protected again by a launch answer that came too late.
    """
    if known not in (None, instance_id):
        msg = (
            f"worker {worker_id} already has the instance {known}; it cannot get {instance_id} too. If {known} is "
            f"wrong, give {instance_id} a row of its own, under another worker id, and only then remove this one"
        )
        raise RegistryWriteError(msg)
    if not state.is_live:
        msg = f"worker {worker_id} is {state}; it cannot get an instance"
        raise RegistryWriteError(msg)
    return WorkerState.RUNNING if state is WorkerState.LAUNCHING else state


def require_launching(worker_id: str, known: str | None, state: WorkerState) -> None:
    """Refuse another place for a row that is not about a launch any more: its machine would lose its protection.

    Raises:
        RegistryWriteError: when the row names a machine, or is in another state than launching.
    """
    if known is not None:
        msg = (
            f"worker {worker_id} already has the instance {known}; it cannot be launched elsewhere. If its place is "
            "wrong, give the machine a row of its own, under another worker id, and only then remove this one"
        )
        raise RegistryWriteError(msg)
    if state is not WorkerState.LAUNCHING:
        msg = f"worker {worker_id} is {state}; it cannot be launched"
        raise RegistryWriteError(msg)
