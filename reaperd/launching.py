"""The safe launch: no machine is ever without a row, wherever the process dies.

    row `launching`  ->  launch  ->  row completed

The row comes first and says where the next request goes. The worker id of the row is the tag of the machine and the
token of the request. So whatever this leaves behind is a machine with a row (the reaper keeps it, and ends it once
`registry.launching_ttl` is over and the row still names no instance), or a row without a machine (which harms nobody).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from providers.base import Clock
from providers.capacity import Offer, WorkerHandle, WorkerSpec, handle_at
from providers.cheapest import Launcher, cheapest_first
from providers.errors import (
    CapacityError,
    LaunchEndedError,
    LaunchError,
    LaunchMismatchError,
    ProviderError,
    UnknownLaunchError,
    UntaggedLaunchError,
)
from providers.model import InstanceRef
from reaperd.clock import SystemClock
from reaperd.errors import LaunchNotRecordedError, LaunchPendingError, NoCapacityError, WorkerTakenError
from registry.base import RegistryWriter
from registry.errors import RegistryError
from registry.model import Worker, WorkerState

SETTLES = timedelta(minutes=1)
"""How long a cloud may take to show a machine that it has started."""


def launch_worker(
    provider: Launcher,
    registry: RegistryWriter,
    spec: WorkerSpec,
    offers: Iterable[Offer],
    *,
    worker_id: str | None = None,
    clock: Clock | None = None,
) -> WorkerHandle:
    """Launch one worker onto the cheapest offer that has capacity; return when its row names its machine.

    Without a worker id a new one is made. With one that stands in the registry this goes on where the last call
    broke off: a worker that has its machine is returned as it is; one that is launching is asked for again, but only
    in the region that its row names, because there alone the cloud can know it. The offers of the row's zone come
    first: EC2 keeps a token by zone, so there it gives the machine of the last request, if there is one. And not before
    that request is SETTLES ago: in another zone, or where the row knows none, it is the machine itself, once it can be
    seen, that keeps a second from being started. One caller at a time for one worker id.

    Raises:
        NoCapacityError: when every offer was refused for want of capacity. The row is failed.
        LaunchPendingError: when an answer was lost, or an earlier one may still be on its way. The row stays
            launching; ask again with the same worker id.
        LaunchNotRecordedError: when there is a machine and the registry could not be told.
        WorkerTakenError: when the worker id is used up, or its launch is pending where none of the offers is.
        InvalidSpecError: when the prices of the offers cannot be compared. Nothing was written.
        ProviderError: for any other refusal. The row is failed, unless it stood before: an earlier request, whose
            answer nobody knows, may have been accepted.
        RegistryError: when the registry could not be read or written before a request. Nothing was asked for then.
    """
    name = worker_id or str(uuid.uuid4())
    standing = registry.find(name) if worker_id else None
    if standing is not None and standing.state.is_live and standing.instance_id is not None:
        return _found_again(standing, standing.instance_id, spec)
    possible = _possible(name, standing, offers)
    if standing is not None:
        _require_settled(standing, (clock or SystemClock()).now())
    return _Launch(provider, registry, spec, name, standing).onto(possible)


class _Launch:
    """One worker on its way."""

    def __init__(
        self, provider: Launcher, registry: RegistryWriter, spec: WorkerSpec, worker_id: str, standing: Worker | None
    ) -> None:
        self._provider = provider
        self._registry = registry
        self._spec = spec
        self._worker_id = worker_id
        self._asked_before = standing is not None
        self._has_row = self._asked_before

    def onto(self, offers: tuple[Offer, ...]) -> WorkerHandle:
        refused: list[LaunchError] = []
        for offer in offers:
            self._write_down(offer)
            try:
                handle = self._ask(offer)
            except (CapacityError, LaunchMismatchError) as error:
                refused.append(error)
                continue
            self._complete(handle.instance_id, offer, handle.launched_at)
            return handle
        raise self._given_up(refused)

    def _write_down(self, offer: Offer) -> None:
        """Make the row say where the request that comes next goes to."""
        if self._has_row:
            self._registry.set_place(self._worker_id, offer.provider, offer.region, zone=offer.zone or None)
            return
        self._registry.add(
            Worker(
                worker_id=self._worker_id,
                provider=offer.provider,
                region=offer.region,
                instance_id=None,
                state=WorkerState.LAUNCHING,
                zone=offer.zone or None,
                model=self._spec.model or None,
            )
        )
        self._has_row = True

    def _ask(self, offer: Offer) -> WorkerHandle:
        try:
            handle = self._provider.launch(self._worker_id, offer, self._spec)
        except CapacityError:
            raise
        except UnknownLaunchError as error:
            raise LaunchPendingError(self._worker_id, _pending(offer, str(error))) from error
        except UntaggedLaunchError as error:
            # Without our tag it is nobody's orphan: all that is left is to have its name in the row.
            self._complete(error.ref.instance_id, offer, None)
            self._registry.set_state(self._worker_id, WorkerState.FAILED)
            raise
        except ProviderError as error:
            self._refused(error)
            raise
        if not handle.instance_id:
            raise LaunchPendingError(self._worker_id, _pending(offer, "the answer names no machine"))
        return handle

    def _refused(self, error: ProviderError) -> None:
        """Give the worker up, unless an earlier request of it, whose answer nobody knows, may have been accepted."""
        if not self._asked_before or isinstance(error, LaunchEndedError):
            self._registry.set_state(self._worker_id, WorkerState.FAILED)

    def _complete(self, instance_id: str, offer: Offer, launched_at: datetime | None) -> None:
        instance = f"{offer.provider}/{offer.region}/{instance_id}"
        try:
            self._registry.set_instance(self._worker_id, instance_id, launched_at=launched_at)
        except RegistryError as error:
            detail = (
                f"{instance} was launched, and the registry could not be told: {error}. Launch again with this worker "
                "id: that records the machine and starts no second one. Otherwise reaperd ends it"
            )
            raise LaunchNotRecordedError(self._worker_id, instance, detail) from error

    def _given_up(self, refused: list[LaunchError]) -> Exception:
        """Return what the caller is told when there is no offer left."""
        if not refused:
            return NoCapacityError(self._worker_id, "there is no offer to launch onto; nothing was asked for")
        mismatch = next((error for error in refused if isinstance(error, LaunchMismatchError)), None)
        if mismatch is not None:
            # There is a machine, from an offer that is not among these: the row goes on protecting it.
            return mismatch
        self._registry.set_state(self._worker_id, WorkerState.FAILED)
        told = "; ".join(dict.fromkeys(map(str, refused)))
        detail = f"none of {len(refused)} offers had capacity ({told}). Its row is failed: launch a new worker"
        return NoCapacityError(self._worker_id, detail, tuple(refused))


def _found_again(worker: Worker, instance_id: str, spec: WorkerSpec) -> WorkerHandle:
    ref = InstanceRef(worker.provider, worker.region, instance_id)
    made = handle_at(ref, worker_id=worker.worker_id, zone=worker.zone, launched_at=worker.launched_at)
    return replace(made, spec=spec)


def _possible(worker_id: str, standing: Worker | None, offers: Iterable[Offer]) -> tuple[Offer, ...]:
    """Return the offers that may be tried. Another region does not know the token of a launch that is pending."""
    ordered = tuple(cheapest_first(offers))
    if standing is None:
        return ordered
    if standing.state is not WorkerState.LAUNCHING:
        raise WorkerTakenError(worker_id, f"it is {standing.state}, and a worker id is used once: launch a new worker")
    place = (standing.provider, standing.region)
    kept = tuple(offer for offer in ordered if (offer.provider, offer.region) == place)
    if not kept:
        detail = (
            f"its launch in {'/'.join(place)} is pending, and none of the offers is there. Elsewhere it could become a "
            "second machine: give offers of that region, or launch a new worker"
        )
        raise WorkerTakenError(worker_id, detail)
    # The sort is stable: among those of one zone the cheapest stays first.
    return tuple(sorted(kept, key=lambda offer: standing.zone is None or offer.zone != standing.zone))


def _require_settled(standing: Worker, now: datetime) -> None:
    """Return only if whatever the last request started can be seen by now."""
    asked = standing.updated_at
    if asked is not None and now - asked >= SETTLES:
        return
    # A time that cannot be read, or that lies ahead, is not known to be long ago.
    ago = "at a time that cannot be read" if asked is None else f"{(now - asked).total_seconds():.0f} s ago"
    detail = (
        f"its launch in {standing.provider}/{standing.region} was asked for {ago}, and may not be visible yet. Launch "
        f"again with this worker id, {SETTLES.total_seconds():.0f} s after that at the earliest"
    )
    raise LaunchPendingError(standing.worker_id, detail)


def _pending(offer: Offer, why: str) -> str:
    return (
        f"whether {offer.provider}/{offer.region} launched a machine is not known ({why}). Its row stays launching: "
        f"launch again with this worker id in {SETTLES.total_seconds():.0f} s, which starts no second one. Otherwise "
        "reaperd ends the machine, if there is one, once registry.launching_ttl is over"
    )
