"""Which rows name a machine, and which rows cannot be trusted to. Pure; every reader and writer uses the same rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from registry.errors import RegistryWriteError
from registry.model import Interest, Worker, WorkerState


def matching(workers: Iterable[Worker], machines: Iterable[tuple[str, str | None]]) -> tuple[Worker, ...]:
    """Return the rows, of any place and state, that name one of these instance ids or have one of these worker ids.

    By worker id, so that the order in which they were kept changes nothing.
    """
    wanted = tuple(machines)
    instance_ids = {instance_id for instance_id, _ in wanted}
    worker_ids = {worker_id for _, worker_id in wanted if worker_id is not None}
    found = (worker for worker in workers if worker.instance_id in instance_ids or worker.worker_id in worker_ids)
    return tuple(sorted(found, key=lambda worker: worker.worker_id))


def names_of(machines: Iterable[tuple[str, str | None]]) -> frozenset[str]:
    """Return the instance ids and the worker ids of these machines."""
    return frozenset(name for machine in machines for name in machine if name is not None)


def is_wanted(worker: Worker, interest: Interest) -> bool:
    """Say whether a row is asked for."""
    if worker.worker_id in interest.names or worker.instance_id in interest.names:
        return True
    if interest.live and worker.state.is_live:
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
    if not value.isprintable() or "\N{REPLACEMENT CHARACTER}" in value:
        return "holds a character that cannot be shown"
    return None


def are_plain_names(names: Sequence[str]) -> bool:
    """Say at once of many whether `problem_of_name` has nothing against any of them. False settles nothing."""
    try:
        text = "".join(names)
    except TypeError:  # one of them is no text
        return False
    # Of all that is blank, only a space is printable.
    return all(names) and text.isprintable() and " " not in text and "\N{REPLACEMENT CHARACTER}" not in text


def state_once_placed(worker_id: str, known: str | None, state: WorkerState, instance_id: str) -> WorkerState:
    """Return the state of a row whose machine becomes known.

    Raises:
        RegistryWriteError: when the row names another machine already, or is in a terminal state: its machine was given
            up, and would be protected again by a launch answer that came too late.
    """
    if known not in (None, instance_id):
        msg = f"worker {worker_id} already has the instance {known}; it cannot get {instance_id} too"
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
        msg = f"worker {worker_id} already has the instance {known}; it cannot be launched elsewhere"
        raise RegistryWriteError(msg)
    if state is not WorkerState.LAUNCHING:
        msg = f"worker {worker_id} is {state}; it cannot be launched"
        raise RegistryWriteError(msg)
