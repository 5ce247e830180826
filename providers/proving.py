"""The promises of a provider, proved on a real cloud with one machine. Needs no test framework.

`providers.conformance` proves more, on a cloud that tests may break. This looks at a cloud as it is: it launches one
machine onto the cheapest offer, tries on it whatever must not end it, ends it, and looks whether it is gone. Whatever
happens, the last thing is to end that machine; should this process die, it is an orphan like any other.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from enum import StrEnum
from typing import NoReturn

from providers.base import Clock, InstanceAuditor, Provider
from providers.capacity import Offer, Requirement, WorkerHandle, WorkerSpec
from providers.cheapest import cheapest_first
from providers.errors import (
    CapacityError,
    InstanceChangedError,
    InstanceNotFoundError,
    LaunchError,
    TerminateError,
    TerminationWithdrawnError,
    UnknownLaunchError,
)
from providers.fanout import asks_permission
from providers.model import InstanceRef, OwnedInstance

NO_TYPE = "no-cloud-has-this.type"
NOWHERE = "nowhere-1"
PAUSE = timedelta(seconds=5)
LAUNCH = "a launch gives a handle that says all"
"""The promise without which most others are not tried."""


class Verdict(StrEnum):
    """What was found of one promise."""

    KEPT = "kept"
    BROKEN = "broken"
    NOT_TRIED = "not_tried"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """One promise, and what was found."""

    promise: str
    verdict: Verdict
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What is tried, and on what."""

    provider: Provider
    owner: str
    """The deployment."""
    spec: WorkerSpec
    offers: tuple[Offer, ...]
    """Cheapest first; the first that has capacity is taken."""
    clock: Clock
    patience: timedelta = timedelta(minutes=3)
    """How long a cloud may take to show what it accepted."""


class _BrokenError(Exception):
    """A promise is not kept: the message says what was found instead."""


class _NotTriedError(Exception):
    """A promise could not be put to the proof: the message says why."""


def offers_to_try(provider: Provider, requirement: Requirement) -> tuple[Offer, ...]:
    """Return what could be launched onto, cheapest first.

    Raises:
        ProviderError: if nobody offers anything that can be compared.
    """
    return tuple(cheapest_first(provider.quote(requirement)))


def prove(trial: Trial) -> Iterator[Proof]:
    """Yield each promise as soon as it was tried. Launches one machine, and leaves none behind that it can end."""
    run = _Run(trial)
    try:
        for promise, attempt in run.attempts():
            yield run.tried(promise, attempt)
    finally:
        run.clean_up()
    yield run.tried("nothing is left behind", run.nothing_is_left)


class _Run:
    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._provider = trial.provider
        self._worker_id = f"conformance-{uuid.uuid4()}"
        self._handle: WorkerHandle | None = None
        self._pending = False
        """True when a launch was asked for and nobody knows whether there is a machine."""

    def attempts(self) -> Sequence[tuple[str, Callable[[], None]]]:
        return (
            ("its name is there and stable", self._name),
            ("offers can be compared and launched onto", self._offers),
            ("a type that it does not have is no offer and no error", self._unknown_type),
            ("a listing is whole, or raises", self._whole),
            (LAUNCH, self._launch),
            ("the same worker has one machine", self._same_worker),
            ("what was launched is listed as ours", self._is_listed),
            ("what is listed is audited", self._is_audited),
            ("another place than its own is refused", self._elsewhere),
            ("a machine without an id cannot be ended", self._nameless),
            ("another worker than was seen is spared", self._another_worker),
            ("what is no longer permitted is spared", self._not_permitted),
            ("what was launched can be ended, and is then gone", self._end),
            ("ending it twice does no harm", self._end_again),
            ("a worker that was ended gets no second machine", self._late_launch),
        )

    def tried(self, promise: str, attempt: Callable[[], None]) -> Proof:
        try:
            attempt()
        except _BrokenError as error:
            return Proof(promise=promise, verdict=Verdict.BROKEN, detail=str(error))
        except _NotTriedError as error:
            return Proof(promise=promise, verdict=Verdict.NOT_TRIED, detail=str(error))
        # What is tried may be anybody's code: whatever it raises where nothing should be raised breaks its promise,
        # and must not keep the machine from being ended.
        except Exception as error:  # noqa: BLE001
            return Proof(promise=promise, verdict=Verdict.BROKEN, detail=f"{type(error).__name__}: {error}")
        return Proof(promise=promise, verdict=Verdict.KEPT)

    def clean_up(self) -> None:
        """End what this launched, known or not, as far as that can be."""
        for ref in self._to_end():
            # Whatever anybody's code raises here: the others are ended all the same, and what is left is told.
            with suppress(Exception):
                self._provider.terminate(ref)

    def nothing_is_left(self) -> None:
        left = self._until(lambda: not self._ours())
        _require(not left, f"{_names(left)} still exists: end it")
        _require(not self._pending, "a launch was asked for, its answer was lost, and no machine was seen: look again")

    def _to_end(self) -> set[InstanceRef]:
        refs = {self._handle.ref} if self._handle is not None and self._handle.instance_id else set[InstanceRef]()
        with suppress(Exception):  # as above
            found = self._until(lambda: bool(self._ours())) if self._pending else self._ours()
            self._pending = self._pending and not found
            refs |= {instance.ref for instance in found}
        return refs

    # ------------------------------------------------------------ before there is a machine

    def _name(self) -> None:
        before = self._provider.name
        self._provider.list_owned()
        _require(bool(before) and self._provider.name == before, f"{before!r} became {self._provider.name!r}")

    def _offers(self) -> None:
        _require(bool(self._trial.offers), "there is none")
        for offer in self._trial.offers:
            price: object = offer.price_per_hour
            _require(isinstance(price, Decimal) and price > 0, f"{offer.instance_type} costs {price!r}")
            _require(offer.provider == self._provider.name, f"an offer is of {offer.provider!r}")
            _require(bool(offer.region and offer.instance_type and offer.currency), f"{offer} is not whole")

    def _unknown_type(self) -> None:
        offers = self._provider.quote(Requirement(model=self._trial.spec.model, instance_types=(NO_TYPE,)))
        _require(not offers, f"{len(offers)} offers of a type that there is not")

    def _whole(self) -> None:
        inventory = self._provider.list_owned()
        covered = {entry.scope for entry in inventory.coverage}
        _require(bool(covered), "it proves nothing: there is no coverage")
        outside = [str(instance.ref) for instance in inventory if instance.ref.scope not in covered]
        _require(not outside, f"{', '.join(outside)} lie outside of what was covered")

    # ------------------------------------------------------------ the machine

    def _launch(self) -> None:
        refused: list[CapacityError] = []
        for offer in self._trial.offers:
            try:
                self._handle = self._provider.launch(self._worker_id, offer, self._trial.spec)
            except CapacityError as error:
                refused.append(error)
                continue
            except UnknownLaunchError:
                self._pending = True
                raise
            _require_whole(self._handle, self._worker_id, offer, self._trial.spec)
            return
        _skip(f"no capacity: {'; '.join(dict.fromkeys(map(str, refused)))}")

    def _same_worker(self) -> None:
        handle = self._launched()
        again = self._provider.launch(self._worker_id, handle.offer, self._trial.spec)
        _require(again.ref == handle.ref, f"{handle.ref} became {again.ref}")

    def _is_listed(self) -> None:
        handle = self._launched()
        shown = self._until(lambda: bool(self._ours()))
        _require([instance.ref for instance in shown] == [handle.ref], f"listed are {_names(shown)}, not {handle.ref}")
        (instance,) = shown
        _require(instance.owner == self._trial.owner, f"its owner is {instance.owner!r}")
        model = self._trial.spec.model or None
        _require(instance.model == model, f"its model is {instance.model!r}, not {model!r}")

    def _is_audited(self) -> None:
        handle = self._launched()
        if not isinstance(self._provider, InstanceAuditor):
            _skip("it cannot audit")
        seen = {instance.ref for instance in self._provider.audit_instances().instances}
        _require(handle.ref in seen, f"{handle.ref} is not seen")

    def _elsewhere(self) -> None:
        ref = self._launched().ref
        for wrong in (replace(ref, region=NOWHERE), replace(ref, provider=f"not-{ref.provider}")):
            self._must_refuse(wrong, TerminateError)

    def _nameless(self) -> None:
        handle = self._launched()
        try:
            self._provider.terminate(replace(handle, instance_id="").ref)
        except (TerminateError, ValueError):
            return
        _fail("it was taken for done")

    def _another_worker(self) -> None:
        seen = replace(self._instance(), worker_id=f"{self._worker_id}-other")
        self._must_refuse(seen.ref, InstanceChangedError, seen=seen)

    def _not_permitted(self) -> None:
        ref = self._launched().ref
        if not asks_permission(self._provider):
            _fail("its terminate takes no `permitted`")
        self._must_refuse(ref, TerminationWithdrawnError, permitted=lambda: False)

    def _end(self) -> None:
        instance = self._instance()
        self._provider.terminate(instance.ref, seen=instance, permitted=lambda: True)
        left = self._until(lambda: not self._ours())
        _require(not left, f"{_names(left)} is still listed as existing")

    def _end_again(self) -> None:
        ref = self._launched().ref
        with suppress(InstanceNotFoundError, InstanceChangedError):
            self._provider.terminate(ref)

    def _late_launch(self) -> None:
        handle = self._launched()
        with suppress(LaunchError):
            again = self._provider.launch(self._worker_id, handle.offer, self._trial.spec)
            _require(again.ref == handle.ref, f"{again.ref} was started for it")

    # ------------------------------------------------------------ what they are made of

    def _launched(self) -> WorkerHandle:
        if self._handle is None:
            _skip("there is no machine")
        return self._handle

    def _instance(self) -> OwnedInstance:
        self._launched()
        found = self._ours()
        if not found:
            _skip("the machine is not listed")
        return found[0]

    def _ours(self) -> tuple[OwnedInstance, ...]:
        """Return the machines of this run that exist."""
        inventory = self._provider.list_owned()
        return tuple(each for each in inventory if each.worker_id == self._worker_id and each.state.exists)

    def _must_refuse(
        self,
        ref: InstanceRef,
        error: type[TerminateError],
        *,
        seen: OwnedInstance | None = None,
        permitted: Callable[[], bool] | None = None,
    ) -> None:
        try:
            self._provider.terminate(ref, seen=seen, permitted=permitted)
        except error:
            _require(bool(self._ours()), "it was refused, and the machine ended all the same")
            return
        _fail(f"the end of {ref} was accepted")

    def _until(self, settled: Callable[[], bool]) -> tuple[OwnedInstance, ...]:
        """Return what exists of this run, once the cloud shows what it accepted or patience is over."""
        ends_at = self._trial.clock.monotonic() + self._trial.patience.total_seconds()
        while not settled() and self._trial.clock.monotonic() < ends_at:
            self._trial.clock.sleep(PAUSE.total_seconds())
        return self._ours()


def _require_whole(handle: WorkerHandle, worker_id: str, offer: Offer, spec: WorkerSpec) -> None:
    _require(handle.worker_id == worker_id, f"its worker is {handle.worker_id!r}, not {worker_id!r}")
    _require(bool(handle.instance_id), "it names no machine")
    _require((handle.offer, handle.spec) == (offer, spec), "its offer or its spec is not the one that was given")
    aware = handle.launched_at is not None and handle.launched_at.utcoffset() is not None
    _require(aware, f"it was launched at {handle.launched_at}")


def _names(instances: Sequence[OwnedInstance]) -> str:
    return ", ".join(str(instance.ref) for instance in instances) or "nothing"


def _fail(detail: str) -> NoReturn:
    raise _BrokenError(detail)


def _skip(why: str) -> NoReturn:
    raise _NotTriedError(why)


def _require(condition: bool, otherwise: str) -> None:  # noqa: FBT001 - what an assertion is
    if not condition:
        _fail(otherwise)
