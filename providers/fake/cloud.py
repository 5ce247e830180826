"""The cloud in memory itself, and the ports through which programs see it.

Machines are keyed by instance id, so two without a worker tag stay two. Nothing here waits but on the clock that was
given.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from providers.allowance import Allowance, require_batch
from providers.base import BatchPermission, Clock, Permission
from providers.errors import (
    GoesAloneError,
    IncompleteListingError,
    InstanceChangedError,
    InstanceNotFoundError,
    TerminateError,
    TerminateRejectedError,
    TerminationWithdrawnError,
)
from providers.events import ProviderEvent
from providers.fake.announcements import Announcements
from providers.fake.batches import ALLOWANCE, Answers, answers_to
from providers.fake.faults import BEFORE_SENDING, REFUSALS, TAKES_EFFECT, ListingFault, TerminateFault, refusal
from providers.fake.launches import LaunchBook
from providers.fake.locator import located
from providers.fake.machine import NOT_GIVEN, FakeMachine, Mutation, View, as_audited, as_owned, what_changed
from providers.locations import Location
from providers.model import (
    AuditedInstance,
    AuditSweep,
    Coverage,
    InstanceRef,
    InstanceState,
    Inventory,
    OwnedInstance,
    Scope,
    ScopeFailure,
    TagKeys,
)

DEFAULT_ACCOUNT = "111122223333"
DEFAULT_OWNER = "fleet"

Hook = Callable[[InstanceRef], None]

_WITHDRAWN = "it is not to be ended any more"


class FakeCloud:
    """The cloud itself: tests arrange it; programs see it through lister, auditor and terminator.

    The hooks are called outside the lock, so they may use the cloud.
    """

    def __init__(
        self,
        name: str = "fake",
        regions: tuple[str, ...] = ("fake-1",),
        *,
        clock: Clock,
        owner: str = DEFAULT_OWNER,
        account: str | None = DEFAULT_ACCOUNT,
    ) -> None:
        """Start without machines and without faults."""
        self.name = name
        self.regions = regions
        self.owner = owner
        self.account = account
        self.tag_keys = TagKeys()
        self.page_size = 100
        self.shutdown: timedelta | None = timedelta(minutes=1)
        """How long a machine is shutting down. None: until `settle`."""
        self.linger = timedelta(hours=1)
        """How long a terminated machine is still listed."""
        self.before_terminate: Hook = _no_hook
        """Called when a terminate arrives, before the machine is looked at again."""
        self.after_second_look: Hook = _no_hook
        """Called when the machine was found to be the one that was judged, before anything is sent."""
        self.on_terminate: Hook = _no_hook
        """Called after a termination took effect."""
        self.on_list: Callable[[Scope], None] = _no_hook
        """Called after a region was read, before the listing returns."""
        self.launches, self.announcements = LaunchBook(), Announcements()
        self._clock = clock
        self._lock = threading.RLock()
        self._machines: dict[InstanceRef, FakeMachine] = {}
        self._frozen: dict[str, dict[InstanceRef, FakeMachine]] = {}
        self._faults: dict[str, dict[str, ListingFault]] = {"listing": {}, "audit": {}, "locating": {}}
        self._terminate_faults: dict[str, tuple[TerminateFault, int | None]] = {}
        self._list_calls: Counter[str] = Counter()
        self._mutations: list[Mutation] = []
        self._numbered = 0

    # What programs get.

    def lister(self, region: str | None = None) -> FakeLister:
        """Return a lister of one region or of all, which can neither audit nor terminate."""
        return FakeLister(self, self.regions if region is None else (region,))

    def auditor(self, region: str | None = None) -> FakeAuditor:
        """Return a lister that can audit, too."""
        return FakeAuditor(self, self.regions if region is None else (region,))

    def terminator(self, region: str | None = None) -> FakeTerminator:
        """Return a terminator of one region or of all."""
        return FakeTerminator(self, self.regions if region is None else (region,))

    # What tests arrange.

    def add(self, machine: FakeMachine | None = None) -> InstanceRef:
        """Put a machine into the cloud; return its identity."""
        given = machine or FakeMachine()
        with self._lock:
            self._numbered += 1
            ref = InstanceRef(
                self.name, given.region or self.regions[0], given.instance_id or f"{self.name}-{self._numbered:04}"
            )
            launched = given.launched_at or (None if given.age is None else self._clock.now() - given.age)
            owner = self.owner if given.owner == NOT_GIVEN else given.owner
            self._machines[ref] = replace(
                given, instance_id=ref.instance_id, region=ref.region, owner=owner, launched_at=launched
            )
        return ref

    def change(self, ref: InstanceRef, **changes: Any) -> None:  # noqa: ANN401 - the fields of FakeMachine
        """Change fields of a machine behind everybody's back."""
        with self._lock:
            self._machines[ref] = replace(self._machines[ref], **changes)

    def remove(self, ref: InstanceRef) -> None:
        """Let a machine vanish without a trace."""
        with self._lock:
            del self._machines[ref]

    def settle(self, *, still_listed: bool = False) -> None:
        """Let all machines that are shutting down be gone at once."""
        with self._lock:
            for ref in [r for r, machine in self._machines.items() if machine.state is InstanceState.SHUTTING_DOWN]:
                if still_listed:
                    self._machines[ref] = replace(self._machines[ref], state=InstanceState.TERMINATED)
                    continue
                del self._machines[ref]

    def set_clock(self, clock: Clock) -> None:
        """Replace the clock."""
        self._clock = clock

    def fail_listing(self, region: str, fault: ListingFault) -> None:
        """Let the listings of a region go wrong until `mend`."""
        with self._lock:
            self._faults["listing"][region] = fault

    def fail_audit(self, region: str, fault: ListingFault) -> None:
        """Let the audits of a region go wrong until `mend`."""
        with self._lock:
            self._faults["audit"][region] = fault

    def fail_locating(self, region: str, fault: ListingFault) -> None:
        """Let the looks for single machines in a region go wrong, loudly or late, until `mend`."""
        with self._lock:
            self._faults["locating"][region] = fault

    def fail_terminate(self, instance_id: str, fault: TerminateFault, *, calls: int | None = None) -> None:
        """Let the terminations of an id, known or not, go wrong: so many times, or until `mend`."""
        with self._lock:
            self._terminate_faults[instance_id] = (fault, calls)

    def freeze_view(self, region: str) -> None:
        """Let listings of a region show the machines as they are now, whatever becomes of them: a stale view."""
        with self._lock:
            self._frozen[region] = dict(self._machines)

    def mend(self) -> None:
        """Take back every fault and every stale view."""
        with self._lock:
            for faults in self._faults.values():
                faults.clear()
            self._terminate_faults.clear()
            self._frozen.clear()

    # What tests look at.

    def machine(self, ref: InstanceRef) -> FakeMachine | None:
        """Return a machine as it really is; None when it has vanished."""
        with self._lock:
            self._age()
            return self._machines.get(ref)

    @property
    def live(self) -> tuple[InstanceRef, ...]:
        """Return the machines that exist: neither gone nor going."""
        with self._lock:
            self._age()
            return tuple(sorted(ref for ref, machine in self._machines.items() if machine.state.exists))

    @property
    def mutations(self) -> tuple[Mutation, ...]:
        """Return every mutating request that was sent, in order."""
        with self._lock:
            return tuple(self._mutations)

    def terminate_requests(self, instance_id: str) -> int:
        """Return how often the cloud was asked to end this machine, whatever it answered."""
        return sum(m.operation == "terminate" and m.ref.instance_id == instance_id for m in self.mutations)

    def list_calls(self, region: str) -> int:
        """Return how often a region was listed."""
        with self._lock:
            return self._list_calls[region]

    # What the cloud answers.

    def answer_listing(self, region: str) -> tuple[tuple[OwnedInstance, ...], Coverage | None]:
        """Return what a listing of one region shows, and its coverage; None when it proves nothing."""
        with self._lock:
            self._list_calls[region] += 1
            machines, fault = self._look(region, self._faults["listing"])
        owned = self._owned(machines, fault.lost_tags)
        self._clock.sleep(fault.delay.total_seconds())
        self.on_list(Scope(self.name, region))
        return () if fault.is_loud else owned, None if fault.no_coverage else self._coverage(region, fault, len(owned))

    def answer_audit(self, region: str) -> tuple[tuple[AuditedInstance, ...], Coverage]:
        """Return what an audit of one region shows, and its coverage."""
        with self._lock:
            machines, fault = self._look(region, self._faults["audit"])
        self._clock.sleep(fault.delay.total_seconds())
        seen = () if fault.is_loud else tuple(as_audited(ref, machine, self._view) for ref, machine in machines)
        return seen, self._coverage(region, fault, len(seen))

    def answer_locating(self, region: str) -> ListingFault:
        """Return what goes wrong with a look for single machines in a region, once it took its time."""
        with self._lock:
            fault = _taken(region, self._faults["locating"])
        self._clock.sleep(fault.delay.total_seconds())
        return fault

    def answer_launch(self, machine: FakeMachine) -> FakeMachine:
        """Start a machine because somebody asked for it; return it as it is."""
        ref = self.add(machine)
        with self._lock:
            self._mutations.append(Mutation("launch", ref))
            return self._machines[ref]

    def answer_terminate(self, ref: InstanceRef, seen: OwnedInstance | None, permitted: Permission | None) -> None:
        """Look at the machine again, and end it or say why not."""
        self.before_terminate(ref)
        with self._lock:
            self._age()
            fault = self._take_terminate_fault(ref.instance_id)
            if fault is not None and fault in BEFORE_SENDING:
                raise refusal(ref, fault)
            machine = self._looked_at_again(ref, seen)
            self.after_second_look(ref)
            if machine.persistent_spot:
                _ask(ref, permitted)
            self._cancel_spot_request(ref, machine, fault)
            _ask(ref, permitted)
            self._mutations.append(Mutation("terminate", ref))
            if fault in TAKES_EFFECT:
                self._machines[ref] = self._ended(machine)
        if fault in TAKES_EFFECT:
            self.on_terminate(ref)
        if fault is not None and fault in REFUSALS:
            raise refusal(ref, fault)

    def answer_terminate_many(
        self, seen: Sequence[OwnedInstance], permitted: BatchPermission
    ) -> dict[InstanceRef, TerminateError | None]:
        """Look at the machines again, and end those of one zone that may be with one request, or say why not."""
        for each in seen:
            self.before_terminate(each.ref)
        answers: Answers = {}
        fit: dict[InstanceRef, TerminateFault | None] = {}
        with self._lock:
            self._age()
            for each in seen:
                try:
                    fit[each.ref] = self._fit(each, next(iter(fit), None))
                except TerminateError as error:
                    answers[each.ref] = error
        for ref in fit:
            self.after_second_look(ref)
        granted = frozenset(permitted(tuple(fit))) if fit else frozenset()
        asked = {ref: fault for ref, fault in fit.items() if ref in granted}
        answers |= {ref: TerminationWithdrawnError(ref, _WITHDRAWN) for ref in fit if ref not in granted}
        answered, ending = answers_to(asked)
        with self._lock:
            self._mutations += [Mutation("terminate", ref) for ref in asked]
            for ref in ending:
                self._machines[ref] = self._ended(self._machines[ref])
        for ref in ending:
            self.on_terminate(ref)
        return answers | answered

    def answer_question(self, ref: InstanceRef) -> TerminateFault | None:
        """Return what would stand in the way of ending a machine, which nobody does here."""
        with self._lock:
            fault, _ = self._terminate_faults.get(ref.instance_id, (None, None))
        return fault

    def _owned(
        self, machines: list[tuple[InstanceRef, FakeMachine]], lost_tags: frozenset[str]
    ) -> tuple[OwnedInstance, ...]:
        tagged = (
            (ref, machine, {k: v for k, v in machine.all_tags(self.tag_keys).items() if k not in lost_tags})
            for ref, machine in machines
        )
        return tuple(
            as_owned(ref, machine, tags, self._view) for ref, machine, tags in tagged if self.tag_keys.owner in tags
        )

    @property
    def _view(self) -> View:
        return View(keys=self.tag_keys, account=self.account)

    def _look(
        self, region: str, faults: dict[str, ListingFault]
    ) -> tuple[list[tuple[InstanceRef, FakeMachine]], ListingFault]:
        self._age()
        fault = _taken(region, faults)
        view = sorted(self._frozen.get(region, self._machines).items(), key=lambda item: item[0])
        shown = [item for item in view if item[0].region == region and item[0].instance_id not in fault.missing]
        return shown + [item for item in shown if item[0].instance_id in fault.repeated], fault

    def _age(self) -> None:
        """Let time do its work on the machines that were ended."""
        now = self._clock.now()
        for ref, machine in list(self._machines.items()):
            if machine.ended_at is None or self.shutdown is None:
                continue
            if now - machine.ended_at >= self.shutdown + self.linger:
                del self._machines[ref]
            elif now - machine.ended_at >= self.shutdown:
                self._machines[ref] = replace(machine, state=InstanceState.TERMINATED)

    def _take_terminate_fault(self, instance_id: str) -> TerminateFault | None:
        fault, calls = self._terminate_faults.get(instance_id, (None, None))
        if fault is not None and calls is not None:
            self._terminate_faults[instance_id] = (fault, calls - 1)
            if calls <= 1:
                del self._terminate_faults[instance_id]
        return fault

    def _looked_at_again(self, ref: InstanceRef, seen: OwnedInstance | None) -> FakeMachine:
        machine = self._machines.get(ref)
        if machine is None or machine.state.is_gone:
            raise InstanceNotFoundError(ref, error_code="InvalidInstanceID.NotFound")
        now = as_owned(ref, machine, machine.all_tags(self.tag_keys), self._view)
        changed = what_changed(now, seen, owner=self.owner)
        if changed is not None:
            raise InstanceChangedError(ref, error_code=changed)
        return machine

    def _fit(self, seen: OwnedInstance, first: InstanceRef | None) -> TerminateFault | None:
        """Return what will go wrong with a machine that may go together with the first one, or raise."""
        ref = seen.ref
        fault = self._take_terminate_fault(ref.instance_id)
        if fault is not None and fault in BEFORE_SENDING:
            raise refusal(ref, fault)
        machine = self._looked_at_again(ref, seen)
        if machine.persistent_spot:
            raise GoesAloneError(ref, "its spot request may launch it again")
        if first is not None and machine.zone != self._machines[first].zone:
            raise GoesAloneError(ref, f"it is in {machine.zone}")
        return fault

    def _ended(self, machine: FakeMachine) -> FakeMachine:
        return replace(machine, state=InstanceState.SHUTTING_DOWN, ended_at=self._clock.now())

    def _cancel_spot_request(self, ref: InstanceRef, machine: FakeMachine, fault: TerminateFault | None) -> None:
        if machine.persistent_spot:
            self._mutations.append(Mutation("cancel_spot_request", ref))
        if fault is TerminateFault.SPOT_NOT_CANCELLED:
            raise refusal(ref, fault)

    def _coverage(self, region: str, fault: ListingFault, instances: int) -> Coverage:
        return Coverage(
            scope=Scope(self.name, region),
            account=None if fault.failure is ScopeFailure.WRONG_ACCOUNT else self.account,
            instances=0 if fault.is_loud else instances,
            pages=0 if fault.is_loud else max(1, -(-instances // self.page_size)),
            duration=fault.delay,
            failure=fault.failure if fault.is_loud else None,
            error_code=(fault.error_code or fault.failure.value) if fault.is_loud else None,
            clock_skew=fault.clock_skew,
        )


class _View:
    """A cloud as seen from outside: some of its regions."""

    def __init__(self, cloud: FakeCloud, regions: tuple[str, ...]) -> None:
        self._cloud = cloud
        self._regions = regions

    @property
    def name(self) -> str:
        """Return the name of the cloud."""
        return self._cloud.name

    @property
    def regions(self) -> tuple[str, ...]:
        """Return the regions that this object covers."""
        return self._regions


class FakeLister(_View):
    """Lists, and looks for single machines. Has neither audit nor terminate."""

    def list_owned(self) -> Inventory:
        """Return what carries an ownership tag, or raise IncompleteListingError."""
        answers = [self._cloud.answer_listing(region) for region in self._regions]
        coverage = tuple(entry for _, entry in answers if entry is not None)
        if not all(entry.ok for entry in coverage):
            raise IncompleteListingError(coverage)
        return Inventory(tuple(instance for owned, _ in answers for instance in owned), coverage)

    def locate(self, refs: Collection[InstanceRef]) -> Mapping[InstanceRef, Location]:
        """Return where each of these machines is, whatever its tags."""
        return located(self._cloud, self._regions, refs)


class FakeAuditor(FakeLister):
    """Lists and audits."""

    def audit_instances(self) -> AuditSweep:
        """Return every machine, owned or not."""
        answers = [self._cloud.answer_audit(region) for region in self._regions]
        seen = tuple(instance for instances, _ in answers for instance in instances)
        events, unheard = self._cloud.announcements.within(self._scopes)
        coverage = tuple(entry for _, entry in answers)
        return AuditSweep(instances=seen, coverage=coverage, events=events, unheard=unheard)

    def instance_event(self, ref: InstanceRef) -> ProviderEvent | None:
        """Return what is announced for this machine."""
        return self._cloud.announcements.of(ref, self._scopes)

    @property
    def _scopes(self) -> tuple[Scope, ...]:
        return tuple(Scope(self.name, region) for region in self._regions)


class FakeTerminator(_View):
    """Terminates."""

    def terminate(
        self, ref: InstanceRef, *, seen: OwnedInstance | None = None, permitted: Permission | None = None
    ) -> None:
        """Look at the machine again and end it."""
        if ref.provider != self.name:
            raise TerminateRejectedError(ref, f"this is {self.name}", error_code="unknown_provider")
        if ref.region not in self._regions:
            raise TerminateRejectedError(ref, f"{self.name} has {self._regions}", error_code="unknown_region")
        self._cloud.answer_terminate(ref, seen, permitted)

    def allowance(self, scope: Scope) -> Allowance | None:
        """Return how many may go together, and how fast."""
        return ALLOWANCE if scope.provider == self.name and scope.region in self._regions else None

    def terminate_many(
        self, seen: Sequence[OwnedInstance], *, permitted: BatchPermission
    ) -> Mapping[InstanceRef, TerminateError | None]:
        """Look at the machines again and end them together."""
        require_batch(seen, ALLOWANCE.together)
        elsewhere = [each.ref for each in seen if self.allowance(each.ref.scope) is None]
        if elsewhere:
            detail = f"{self.name} has {self._regions}"
            return {ref: TerminateRejectedError(ref, detail, error_code="unknown_region") for ref in elsewhere}
        return self._cloud.answer_terminate_many(seen, permitted)


def _taken(region: str, faults: dict[str, ListingFault]) -> ListingFault:
    """Return what goes wrong this time."""
    fault = faults.get(region, ListingFault())
    if fault.calls is not None:
        faults[region] = replace(fault, calls=fault.calls - 1)
        if fault.calls <= 1:
            del faults[region]
    return fault


def _ask(ref: InstanceRef, permitted: Permission | None) -> None:
    if permitted is not None and not permitted():
        raise TerminationWithdrawnError(ref, _WITHDRAWN)


def _no_hook(_: object) -> None:
    """Do nothing."""
