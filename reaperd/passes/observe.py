"""The picture of one pass: the clouds first, the registry after them, each whole or not at all."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial

from providers.base import Lister
from providers.errors import IncompleteListingError
from providers.identity import loosely
from providers.locating import locate_with
from providers.locations import Location, NotKnown
from providers.model import Coverage, InstanceRef, OwnedInstance
from reaperd.core.model import RegistryTrouble
from reaperd.passes.aside import Aside, Patience, Unanswered
from registry.base import RegistryReader
from registry.errors import RegistryUnusableError
from registry.model import Interest, RegistryRows, RegistrySnapshot

FAIR_SECONDS = 1.0
"""So long the registry is waited for although the clouds used up the time: else, after them, it would be blamed too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What the clouds said."""

    instances: tuple[OwnedInstance, ...] = ()
    coverage: tuple[Coverage, ...] = ()
    late: bool = False
    """The deadline passed before they had answered."""
    interrupted: bool = False
    """The process is to end."""


def list_clouds(lister: Lister, patience: Patience) -> Listing:
    """Return the whole inventory, or the coverage that says why there is none. Never a part of it.

    Returns when the patience ends, at the latest: a hung call goes on in a thread of its own, and what it brings
    later is dropped.
    """
    answer = Aside(lister.list_owned)
    answer.start("listing")
    unanswered = answer.outwaited(patience)
    if unanswered is not None:
        return Listing(
            late=unanswered is Unanswered.LATE,
            interrupted=unanswered is Unanswered.INTERRUPTED,
        )
    try:
        inventory = answer.result()
    except IncompleteListingError as error:
        return Listing(coverage=error.coverage)
    return Listing(instances=tuple(inventory), coverage=inventory.coverage)


def locate(lister: Lister, refs: Collection[InstanceRef], patience: Patience) -> Mapping[InstanceRef, Location]:
    """Return where each of these machines is, whatever its tags; NotKnown when the patience ends before the answer.

    OnlyListed when the lister cannot look for one. Nobody is asked for nothing.
    """
    if not refs:
        return {}
    answer = Aside(partial(locate_with, lister, refs))
    answer.start("locating")
    unanswered = answer.outwaited(patience)
    if unanswered is not None:
        return dict.fromkeys(refs, NotKnown(f"no answer: {unanswered.value}"))
    return answer.result()


def fair(patience: Patience) -> Patience:
    """Return the patience with the registry, once the clouds have been listed."""
    return replace(patience, ends_at=max(patience.ends_at, patience.clock.monotonic() + FAIR_SECONDS))


def read_registry(
    registry: RegistryReader, remembered_epoch: int | None, patience: Patience, interest: Interest | None = None
) -> RegistrySnapshot | RegistryTrouble | Unanswered:
    """Return the whole registry, or the rows that are asked for, as of one moment; or why there is none.

    Returns in time, as `list_clouds` does. What is late is a trouble; Unanswered says that the process is to end.
    """
    answer = Aside(partial(registry.snapshot, remembered_epoch=remembered_epoch, interest=interest))
    answer.start("registry")
    unanswered = answer.outwaited(patience)
    if unanswered is Unanswered.LATE:
        return RegistryTrouble(detail="it had not answered when the time was up", late=True)
    if unanswered is not None:
        return unanswered
    try:
        return answer.result()
    except RegistryUnusableError as error:
        return RegistryTrouble(detail=str(error))


def look_up(
    registry: RegistryReader, instance_id: str, worker_id: str | None, patience: Patience
) -> RegistryRows | Unanswered:
    """Return the rows of one machine, in time.

    Raises:
        RegistryUnusableError: as RegistryReader.lookup.
    """
    answer = Aside(partial(registry.lookup, instance_id, worker_id, loosely))
    answer.start("lookup")
    return answer.outwaited(patience) or answer.result()
