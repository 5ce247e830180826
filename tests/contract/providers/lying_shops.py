"""Whole providers that break one promise each."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace

from providers.capacity import WorkerHandle
from providers.errors import (
    CapacityError,
    IncompleteListingError,
    InstanceChangedError,
    LaunchEndedError,
    LaunchError,
    LaunchRejectedError,
    TerminateRejectedError,
    UnknownLaunchError,
)
from providers.fake import FakeMachine
from providers.model import Inventory
from tests.contract.providers.liars import Alone, Through, mutate


class ShopsThrough(Through):
    def quote(self, requirement):
        return self.inner.quote(requirement)

    def launch(self, worker_id, offer, spec):
        return self.inner.launch(worker_id, offer, spec)

    def terminate(self, ref, *, seen=None, permitted=None):
        self.inner.terminate(ref, seen=seen, permitted=permitted)

    def list_owned(self):
        return self.inner.list_owned()

    def audit_instances(self):
        return self.inner.audit_instances()

    def start(self, worker_id, offer, spec):
        """Start a machine behind the back of the cloud's own memory of tokens."""
        machine = FakeMachine(region=offer.region, worker_id=worker_id, model=spec.model)
        ref = self.harness.of(self.harness.scopes[0]).add(machine)
        return WorkerHandle(
            worker_id=worker_id,
            instance_id=ref.instance_id,
            offer=offer,
            spec=spec,
            launched_at=self.harness.clock.now(),
        )


class ShopsUnderAnotherName(ShopsThrough):
    name = "another"


class OffersNothing(ShopsThrough):
    def quote(self, requirement):
        return ()


class TellsFloats(ShopsThrough):
    def quote(self, requirement):
        return [replace(offer, price_per_hour=float(offer.price_per_hour)) for offer in self.inner.quote(requirement)]


class GivesThemAway(ShopsThrough):
    def quote(self, requirement):
        return [replace(offer, price_per_hour=offer.price_per_hour * 0) for offer in self.inner.quote(requirement)]


class IgnoresTypes(ShopsThrough):
    def quote(self, requirement):
        return self.inner.quote(replace(requirement, instance_types=()))


class KnowsEveryType(ShopsThrough):
    def quote(self, requirement):
        offers = self.inner.quote(requirement)
        known = {offer.instance_type for offer in offers}
        if set(requirement.instance_types) - known:
            msg = "InvalidParameterValue"
            raise LaunchError(msg)
        return offers


class IgnoresTheRegion(ShopsThrough):
    def quote(self, requirement):
        return self.inner.quote(replace(requirement, region=""))


class TagsWhatItQuotes(ShopsThrough):
    def quote(self, requirement):
        offers = self.inner.quote(requirement)
        ref = self.harness.add_owned(self.harness.scopes[0])
        mutate(self.harness, ref, "create_tags")
        return offers


class ForgetsTheSpec(ShopsThrough):
    def launch(self, worker_id, offer, spec):
        handle = self.inner.launch(worker_id, offer, spec)
        return replace(handle, spec=replace(spec, model=""))


class LaunchesAtNaiveTimes(ShopsThrough):
    def launch(self, worker_id, offer, spec):
        handle = replace(self.inner.launch(worker_id, offer, spec))
        object.__setattr__(handle, "launched_at", handle.launched_at.replace(tzinfo=None))
        return handle


class TagsLater(ShopsThrough):
    def launch(self, worker_id, offer, spec):
        handle = self.inner.launch(worker_id, offer, spec)
        self.harness.of(handle.ref.scope).change(handle.ref, worker_id=None)
        return handle


class ForgetsTheModel(ShopsThrough):
    def launch(self, worker_id, offer, spec):
        handle = self.inner.launch(worker_id, offer, spec)
        self.harness.of(handle.ref.scope).change(handle.ref, model=None)
        return handle


class HasNoToken(ShopsThrough):
    def launch(self, worker_id, offer, spec):
        return self.start(worker_id, offer, spec)


class HasATokenAnOffer(ShopsThrough):
    def __init__(self, harness, inner):
        super().__init__(harness, inner)
        self.known = {}

    def launch(self, worker_id, offer, spec):
        token = (worker_id, offer, spec)
        if token not in self.known:
            self.known[token] = self.start(worker_id, offer, spec)
        return self.known[token]


class LooksAndThenLaunches(ShopsThrough):
    """Each of two waits until the other has looked, too, so that it always happens."""

    def __init__(self, harness, inner):
        super().__init__(harness, inner)
        self.looked = threading.Semaphore(0)

    def launch(self, worker_id, offer, spec):
        found = [owned for owned in self.inner.list_owned() if owned.worker_id == worker_id]
        self.looked.release()
        self.looked.acquire(timeout=0.05)
        self.looked.acquire(timeout=0.05)
        if found:
            return replace(self.start(worker_id, offer, spec), instance_id=found[0].ref.instance_id)
        return self.start(worker_id, offer, spec)


class LaunchesAlone(ShopsThrough):
    def __init__(self, harness, inner):
        super().__init__(harness, inner)
        self._alone = Alone()

    def launch(self, worker_id, offer, spec):
        with self._alone:
            return self.inner.launch(worker_id, offer, spec)


class TakesAnyWorker(ShopsThrough):
    def launch(self, worker_id, offer, spec):
        if not worker_id:
            return self.start(None, offer, spec)
        return self.inner.launch(worker_id, offer, spec)


class LaunchesWhereItIs(ShopsThrough):
    def launch(self, worker_id, offer, spec):
        here = self.harness.scopes[0]
        return self.inner.launch(worker_id, replace(offer, provider=here.provider, region=here.region), spec)


class SaysNoInOneWord(ShopsThrough):
    def launch(self, worker_id, offer, spec):
        try:
            return self.inner.launch(worker_id, offer, spec)
        except CapacityError as error:
            raise LaunchRejectedError(str(error)) from error


class TakesSilenceForNoCapacity(ShopsThrough):
    def launch(self, worker_id, offer, spec):
        try:
            return self.inner.launch(worker_id, offer, spec)
        except UnknownLaunchError as error:
            code = "timeout"
            raise CapacityError(code, str(error)) from error


class SaysThatItEnds(ShopsThrough):
    def terminate(self, ref, *, seen=None, permitted=None):
        """Say nothing, do nothing."""


class IsStartledByTheSecond(ShopsThrough):
    def terminate(self, ref, *, seen=None, permitted=None):
        try:
            self.inner.terminate(ref, seen=seen, permitted=permitted)
        except InstanceChangedError as error:
            raise TerminateRejectedError(ref) from error


class StartsTheEndedAgain(ShopsThrough):
    def launch(self, worker_id, offer, spec):
        try:
            return self.inner.launch(worker_id, offer, spec)
        except LaunchEndedError:
            return self.start(worker_id, offer, spec)


@dataclass(frozen=True, kw_only=True)
class LooseHandle(WorkerHandle):
    @property
    def ref(self):
        return self.instance_id and super().ref


class EndsWhatHasNoName(ShopsThrough):
    def launch(self, worker_id, offer, spec):
        made = self.inner.launch(worker_id, offer, spec)
        return LooseHandle(
            worker_id=worker_id, instance_id=made.instance_id, offer=offer, spec=spec, launched_at=made.launched_at
        )

    def terminate(self, ref, *, seen=None, permitted=None):
        if ref:
            self.inner.terminate(ref, seen=seen, permitted=permitted)


class EndsWithoutLeave(ShopsThrough):
    def terminate(self, ref, *, seen=None, permitted=None):
        self.inner.terminate(ref)


class ListsWhatItLaunched(ShopsThrough):
    def list_owned(self):
        inventory = self.inner.list_owned()
        return Inventory(tuple(i for i in inventory if i.worker_id), inventory.coverage)


class ListsWhatItGot(ShopsThrough):
    def list_owned(self):
        try:
            return self.inner.list_owned()
        except IncompleteListingError as error:
            return Inventory((), tuple(entry for entry in error.coverage if entry.ok))


class AuditsWhatIsNotOurs(ShopsThrough):
    def audit_instances(self):
        sweep = self.inner.audit_instances()
        return replace(sweep, instances=tuple(i for i in sweep.instances if not i.owner))
