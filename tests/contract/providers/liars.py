"""Providers that break one promise each. The first ones are how real programs were written."""

from __future__ import annotations

import threading
from dataclasses import replace

from providers.errors import (
    IncompleteListingError,
    InstanceChangedError,
    InstanceNotFoundError,
    TerminateRejectedError,
    TerminationWithdrawnError,
)
from providers.examination import Answer, Probe
from providers.fake import Mutation
from providers.model import AuditSweep, Inventory


class Through:
    """An honest object around another."""

    def __init__(self, harness, inner):
        self.harness = harness
        self.inner = inner

    @property
    def name(self):
        return self.inner.name


class ListsThrough(Through):
    def list_owned(self):
        return self.told(self.inner.list_owned())

    def told(self, inventory):
        return inventory


class KeepsSome(ListsThrough):
    def told(self, inventory):
        return Inventory(tuple(i for i in inventory if self.keeps(i)), inventory.coverage)


class ReturnsWhatItGot(ListsThrough):
    def list_owned(self):
        found = []
        for scope in self.harness.scopes:
            try:
                found.append(self.harness.of(scope).lister(scope.region).list_owned())
            except IncompleteListingError:
                continue
        return Inventory.joined(found)


class ShowsOnlyWhatBroke(ListsThrough):
    def list_owned(self):
        try:
            return self.inner.list_owned()
        except IncompleteListingError as error:
            raise IncompleteListingError(tuple(e for e in error.coverage if not e.ok)) from error


class ReadsOnePage(ListsThrough):
    def told(self, inventory):
        page = self.harness.more_than_a_page - 1
        return Inventory(inventory.instances[:page], tuple(replace(e, pages=1) for e in inventory.coverage))


class ForgetsWorkerless(KeepsSome):
    def keeps(self, instance):
        return instance.worker_id is not None


class KeysByWorker(ListsThrough):
    def told(self, inventory):
        by_worker = {instance.worker_id: instance for instance in inventory}
        return Inventory(tuple(by_worker.values()), inventory.coverage)


class ForgetsStopped(KeepsSome):
    def keeps(self, instance):
        return instance.state != "stopped"


class ClaimsAll(ListsThrough):
    def told(self, inventory):
        ours = tuple(replace(instance, owner=self.harness.owner) for instance in inventory)
        return Inventory(ours, inventory.coverage)


class ProvesNothing(ListsThrough):
    def told(self, inventory):
        return Inventory(inventory.instances, ())


class ReturnsAList(ListsThrough):
    def told(self, inventory):
        return list(inventory)


class CoversWhatItFound(ListsThrough):
    def told(self, inventory):
        found = {instance.ref.scope for instance in inventory}
        return Inventory(inventory.instances, tuple(e for e in inventory.coverage if e.scope in found))


class ForgetsTheRegion(ListsThrough):
    def told(self, inventory):
        lost = tuple(replace(i, ref=replace(i.ref, region="")) for i in inventory)
        return Inventory(lost, inventory.coverage)


class ReadsTheValueOfProtect(ListsThrough):
    def told(self, inventory):
        key = self.harness.tag_keys.protect
        return Inventory(tuple(replace(i, protect=i.tags.get(key) == "true") for i in inventory), inventory.coverage)


class BelievesBlankWorkers(ListsThrough):
    def told(self, inventory):
        key = self.harness.tag_keys.worker
        return Inventory(tuple(replace(i, worker_id=i.tags.get(key)) for i in inventory), inventory.coverage)


class TellsNaiveTimes(ListsThrough):
    def told(self, inventory):
        for instance in inventory:
            object.__setattr__(instance, "launched_at", instance.launched_at.replace(tzinfo=None))
        return inventory


class RenamesItself(ListsThrough):
    @property
    def name(self):
        return f"{self.inner.name}-{self.harness.of(self.harness.scopes[0]).list_calls('north')}"


class TagsWhatItFinds(ListsThrough):
    def told(self, inventory):
        mutate(self.harness, inventory[0].ref, "create_tags")
        return inventory


class CanTerminate(ListsThrough):
    def terminate(self, ref, *, seen=None, permitted=None):
        self.harness.terminator().terminate(ref, seen=seen)


class Alone:
    """Fails when two threads are in it; the first waits for the second, so that it always happens."""

    def __init__(self):
        self._lock = threading.Lock()
        self._second_came = threading.Event()

    def __enter__(self):
        if not self._lock.acquire(blocking=False):
            self._second_came.set()
            msg = "two threads in one buffer"
            raise RuntimeError(msg)
        self._second_came.wait(1)

    def __exit__(self, *_exc):
        self._lock.release()


class ListsAlone(ListsThrough):
    def __init__(self, harness, inner):
        super().__init__(harness, inner)
        self._alone = Alone()

    def list_owned(self):
        with self._alone:
            return self.inner.list_owned()


class TerminatesThrough(Through):
    def terminate(self, ref, *, seen=None, permitted=None):
        self.inner.terminate(ref, seen=seen, permitted=permitted)


class HasAnotherName(TerminatesThrough):
    name = "another"


class EndsTheWorker(TerminatesThrough):
    def terminate(self, ref, *, seen=None, permitted=None):
        worker = seen.worker_id if seen else None
        for instance in self.harness.lister().list_owned():
            if instance.ref == ref or instance.worker_id == worker:
                self.inner.terminate(instance.ref)


class Pretends(TerminatesThrough):
    def terminate(self, ref, *, seen=None, permitted=None):
        """Say nothing, do nothing."""


class IsStartledBySecond(TerminatesThrough):
    def terminate(self, ref, *, seen=None, permitted=None):
        try:
            self.inner.terminate(ref, seen=seen, permitted=permitted)
        except InstanceChangedError as error:
            raise TerminateRejectedError(ref) from error


class TakesNotFoundForSuccess(TerminatesThrough):
    def terminate(self, ref, *, seen=None, permitted=None):
        try:
            self.inner.terminate(ref, seen=seen, permitted=permitted)
        except InstanceNotFoundError:
            return


class FallsBack(TerminatesThrough):
    def terminate(self, ref, *, seen=None, permitted=None):
        for scope in self.harness.scopes:
            here = replace(ref, provider=scope.provider, region=scope.region)
            if self.harness.exists(here):
                self.inner.terminate(here, seen=seen, permitted=permitted)


class ForgetsWhatWasSeen(TerminatesThrough):
    def terminate(self, ref, *, seen=None, permitted=None):
        self.inner.terminate(ref)


class ComparesOnlyTheWorker(TerminatesThrough):
    def terminate(self, ref, *, seen=None, permitted=None):
        now = self.harness.of(ref.scope).machine(ref)
        if seen is not None and now.worker_id != seen.worker_id:
            raise InstanceChangedError(ref)
        self.inner.terminate(ref)


class NeverLooksAgain(TerminatesThrough):
    def terminate(self, ref, *, seen=None, permitted=None):
        self.harness.of(ref.scope).remove(ref)


class LooksTooLate(TerminatesThrough):
    def terminate(self, ref, *, seen=None, permitted=None):
        mutate(self.harness, ref, "terminate")
        self.inner.terminate(ref, seen=seen, permitted=permitted)


class NeverAsks(TerminatesThrough):
    def terminate(self, ref, *, seen=None, permitted=None):
        self.inner.terminate(ref, seen=seen)


class AsksTooEarly(TerminatesThrough):
    def terminate(self, ref, *, seen=None, permitted=None):
        if permitted is not None and not permitted():
            raise TerminationWithdrawnError(ref)
        self.inner.terminate(ref, seen=seen)


class AsksTooLate(TerminatesThrough):
    def terminate(self, ref, *, seen=None, permitted=None):
        mutate(self.harness, ref, "create_tags")
        self.inner.terminate(ref, seen=seen, permitted=permitted)


class TakesSilenceForYes(TerminatesThrough):
    def terminate(self, ref, *, seen=None, permitted=None):
        try:
            self.inner.terminate(ref, seen=seen, permitted=permitted)
        except LookupError:
            self.inner.terminate(ref, seen=seen)


class TerminatesAlone(TerminatesThrough):
    def __init__(self, harness, inner):
        super().__init__(harness, inner)
        self._alone = Alone()

    def terminate(self, ref, *, seen=None, permitted=None):
        with self._alone:
            self.inner.terminate(ref, seen=seen, permitted=permitted)


class AuditsThrough(Through):
    def audit_instances(self):
        return self.told(self.inner.audit_instances())

    def told(self, sweep):
        return sweep


class AuditsUnderAnotherName(AuditsThrough):
    name = "another"


class AuditsAndTerminates(AuditsThrough):
    def terminate(self, ref, *, seen=None, permitted=None):
        self.harness.terminator().terminate(ref, seen=seen)


class KeepsQuietOnScopes(AuditsThrough):
    def told(self, sweep):
        return replace(sweep, coverage=sweep.coverage[1:])


class SeesOnlyOurs(AuditsThrough):
    def told(self, sweep):
        return replace(sweep, instances=tuple(i for i in sweep.instances if i.owner))


class SeesOnlyStrangers(AuditsThrough):
    def told(self, sweep):
        return replace(sweep, instances=tuple(i for i in sweep.instances if not i.owner))


class AuditsOnePage(AuditsThrough):
    def told(self, sweep):
        return replace(sweep, instances=sweep.instances[: self.harness.more_than_a_page - 1])


class RaisesOnAHole(AuditsThrough):
    def told(self, sweep):
        if not all(entry.ok for entry in sweep.coverage):
            raise IncompleteListingError(sweep.coverage)
        return sweep


class GivesUpOnAHole(AuditsThrough):
    def told(self, sweep):
        if all(entry.ok for entry in sweep.coverage):
            return sweep
        return AuditSweep(instances=(), coverage=sweep.coverage)


class TagsWhatItAudits(AuditsThrough):
    def told(self, sweep):
        mutate(self.harness, sweep.instances[0].ref, "create_tags")
        return sweep


class ExaminesThrough(Through):
    def examine(self):
        return self.told(self.inner.examine())

    def told(self, found):
        return found


class ExaminesUnderAnotherName(ExaminesThrough):
    def told(self, found):
        return replace(found, name="another")


class ExaminesAndTerminates(ExaminesThrough):
    def terminate(self, ref, *, seen=None, permitted=None):
        self.harness.terminator().terminate(ref, seen=seen)


class ForgetsAScope(ExaminesThrough):
    def told(self, found):
        return replace(found, scopes=found.scopes[1:])


class KeepsQuietOnOurs(ExaminesThrough):
    def told(self, found):
        return replace(found, scopes=tuple(replace(each, owned=()) for each in found.scopes))


class AsksAboutStrangers(ExaminesThrough):
    def told(self, found):
        strangers = [i.ref for i in self.harness.auditor().audit_instances().instances if i.owner is None]
        probes = tuple(Probe(ref=ref, answer=Answer.ALLOWED) for ref in strangers)
        return replace(found, scopes=tuple(replace(each, probes=probes) for each in found.scopes))


class RaisesOnABrokenScope(ExaminesThrough):
    def told(self, found):
        broken = tuple(each.coverage for each in found.scopes if not each.coverage.ok)
        if broken:
            raise IncompleteListingError(broken)
        return found


class TriesItOut(ExaminesThrough):
    """How else would one know?"""

    def told(self, found):
        for each in found.scopes:
            for probe in each.probes:
                self.harness.terminator().terminate(probe.ref)
        return found


class TagsWhatItExamines(ExaminesThrough):
    def told(self, found):
        for each in found.scopes:
            for probe in each.probes:
                mutate(self.harness, probe.ref, "create_tags")
        return found


PORTS = {
    "lister": ListsThrough,
    "terminator": TerminatesThrough,
    "auditor": AuditsThrough,
    "examiner": ExaminesThrough,
}


def mutate(harness, ref, operation):
    harness.of(ref.scope)._mutations.append(Mutation(operation, ref))
