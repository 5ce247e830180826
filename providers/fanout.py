"""Asking several children side by side, and the judgement whether their answers together are whole.

What the wrappers `MultiRegion` and `MultiCloud` share. A child that fails, is late, or does not prove what it
covered never takes the others' coverage with it, and never lets their instances through.
"""

from __future__ import annotations

import contextvars
import inspect
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Generic, Protocol, TypeVar, runtime_checkable

from providers.base import Clock, InstanceAuditor, Lister, Terminator
from providers.errors import IncompleteListingError, ProviderSetupError
from providers.events import ProviderEvent, Unheard
from providers.model import (
    AuditedInstance,
    AuditSweep,
    Coverage,
    InstanceRef,
    Inventory,
    OwnedInstance,
    Scope,
    ScopeFailure,
)
from providers.stragglers import Look, StillHangsError, Stragglers

MAX_WORKERS = 16
ANY_REGION = "*"
"""The region of a failed coverage whose child did not live to say which regions it has."""
MAX_DETAIL = 500
_POLL_SECONDS = 0.05

T = TypeVar("T")
Seen = TypeVar("Seen", OwnedInstance, AuditedInstance)


@dataclass(frozen=True, slots=True)
class Answered(Generic[T]):
    """What a call returned, in time."""

    value: T


@dataclass(frozen=True, slots=True)
class Raised:
    """What a call raised, in time."""

    error: BaseException


@dataclass(frozen=True, slots=True)
class Late:
    """No answer in time, or none at all because the time was over before its turn came."""

    waited: timedelta


def ask_all(
    calls: Sequence[Callable[[], T]],
    *,
    clock: Clock,
    timeout: timedelta | None = None,
    workers: int = MAX_WORKERS,
) -> tuple[Answered[T] | Raised | Late, ...]:
    """Make every call in daemon threads and return one answer each, in the order of the calls.

    The timeout spans the whole round. An answer that comes later is dropped. Without a timeout this waits as long as
    the slowest call; a call that never returns keeps its thread, but not the process.
    """
    asked = _Round(calls, clock, timeout)
    for _ in range(min(workers, len(calls))):
        # With the caller's context, so that what a child logs is told with what it belongs to.
        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=(asked.work,), name="providers-fanout", daemon=True).start()
    return asked.wait()


class _Round(Generic[T]):
    """The calls of one fan-out, shared by its threads."""

    def __init__(self, calls: Sequence[Callable[[], T]], clock: Clock, timeout: timedelta | None) -> None:
        self._calls = calls
        self._clock = clock
        self._timeout = timeout
        self._started = clock.monotonic()
        self._changed = threading.Condition()
        self._next = 0
        self._left = len(calls)
        self._closed = False
        self._answers: dict[int, Answered[T] | Raised] = {}

    def work(self) -> None:
        """Make calls until none is left or the time is over."""
        while (turn := self._take()) is not None:
            self._record(turn, _answer(self._calls[turn]))

    def wait(self) -> tuple[Answered[T] | Raised | Late, ...]:
        """Return when every call was answered or the time is over."""
        waited = 0.0
        with self._changed:
            while self._left and not self._is_over(waited):
                # In slices, because the clock may be moved by hand while this thread sleeps in real time.
                if not self._changed.wait(_POLL_SECONDS):
                    waited += _POLL_SECONDS
            self._closed = True
            late = Late(timedelta(seconds=self._clock.monotonic() - self._started))
            return tuple(self._answers.get(turn, late) for turn in range(len(self._calls)))

    def _take(self) -> int | None:
        with self._changed:
            if self._closed or self._next >= len(self._calls):
                return None
            self._next += 1
            return self._next - 1

    def _record(self, turn: int, answer: Answered[T] | Raised) -> None:
        with self._changed:
            self._left -= 1
            if not (self._closed or self._is_over()):
                self._answers[turn] = answer
            self._changed.notify_all()

    def _is_over(self, waited: float = 0.0) -> bool:
        """Return whether the time is over by the clock, or by what was really waited should the clock stand still."""
        if self._timeout is None:
            return False
        return max(self._clock.monotonic() - self._started, waited) >= self._timeout.total_seconds()


def _answer(call: Callable[[], T]) -> Answered[T] | Raised:
    try:
        return Answered(call())
    # The one broad except of the fan-out, wider than Exception on purpose: whatever a child dies of must become a
    # failed scope. Let through, it would end this thread without an answer, and the pass would wait for it for ever.
    except BaseException as error:  # noqa: BLE001
        return Raised(error)


@runtime_checkable
class Regional(Protocol):
    """A child that knows its regions beforehand, so that a missing one can be named. Optional."""

    @property
    def regions(self) -> tuple[str, ...]:
        """Return the regions that every listing must cover; empty when not known."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """The place that one child answers for."""

    provider: str
    region: str | None = None
    """None: the child has regions of its own."""
    regions: tuple[str, ...] = ()
    """Every region that its answer must cover; empty when it did not say beforehand."""

    @property
    def label(self) -> str:
        """Return how this child is called among its siblings."""
        return self.provider if self.region is None else str(Scope(self.provider, self.region))

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """Return the scopes that fail when this child gives no usable answer."""
        return tuple(Scope(self.provider, region) for region in self.regions or (ANY_REGION,))

    @property
    def required(self) -> tuple[Scope, ...]:
        """Return the scopes that a whole answer must contain."""
        return self.scopes if self.regions else ()

    def place(self, scope: Scope) -> Scope:
        """Return the scope with what the child left blank filled in.

        Raises:
            _AnswerError: if the child names another place than the one it is registered under. Stamping over that
                would list one machine under two identities, and the second looks like an orphan.
        """
        placed = Scope(scope.provider or self.provider, scope.region or self.region or "")
        if placed.provider != self.provider or self.region not in (None, placed.region):
            code = "scope_mismatch"
            raise _AnswerError(code, f"registered as {self.label}, answers for {scope}")
        return placed


class _AnswerError(Exception):
    """An answer that proves nothing. Never leaves this module."""

    def __init__(self, code: str, detail: str) -> None:
        self.code = code
        super().__init__(detail)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part(Generic[Seen]):
    """One child's judged answer."""

    instances: tuple[Seen, ...] = ()
    coverage: tuple[Coverage, ...]
    skipped: tuple[str, ...] = ()
    events: tuple[ProviderEvent, ...] = ()
    unheard: tuple[Unheard, ...] = ()
    error: BaseException | None = None


def list_everywhere(
    children: Mapping[Branch, Lister], *, clock: Clock, timeout: timedelta | None, stragglers: Stragglers
) -> Inventory:
    """Return what all children list, as one inventory, coverage sorted by scope.

    A child whose listing of an earlier round has not ended is not asked again: its scopes have failed.

    Raises:
        IncompleteListingError: if anything is missing, late, unproven, contradictory or there twice. Carries the
            coverage of every scope of every child.
    """
    calls = {branch: partial(_listed, branch, lister) for branch, lister in children.items()}
    parts = _looked("listing", calls, stragglers, clock=clock, timeout=timeout)
    instances = tuple(instance for part in parts for instance in part.instances)
    coverage = _blamed(_sorted_coverage(parts), _repeated(instances), "duplicate_instance")
    if not coverage or not all(entry.ok for entry in coverage):
        raise IncompleteListingError(coverage) from _cause(parts)
    return Inventory(instances, coverage)


def audit_everywhere(
    children: Mapping[Branch, Lister], *, clock: Clock, timeout: timedelta | None, stragglers: Stragglers
) -> AuditSweep:
    """Return what all children that can audit see. What failed is in the coverage, who cannot is in `skipped`."""
    auditors = {branch: child for branch, child in children.items() if isinstance(child, InstanceAuditor)}
    calls = {branch: partial(_audited, branch, auditor) for branch, auditor in auditors.items()}
    parts = _looked("audit", calls, stragglers, clock=clock, timeout=timeout)
    skipped = [branch.label for branch in children if branch not in auditors]
    skipped.extend(name for part in parts for name in part.skipped)
    return AuditSweep(
        instances=tuple(instance for part in parts for instance in part.instances),
        coverage=_sorted_coverage(parts),
        skipped=tuple(sorted(skipped)),
        events=tuple(event for part in parts for event in part.events),
        unheard=tuple(sorted((entry for part in parts for entry in part.unheard), key=lambda entry: entry.scope)),
    )


def require_ability(child: object, port: type, *, of: str) -> None:
    """Raise ProviderSetupError unless the child has what the port asks for."""
    if not isinstance(child, port):
        msg = f"{of}: {child!r} is not a {port.__name__}"
        raise ProviderSetupError(msg)
    if port is Terminator and not asks_permission(child):
        msg = f"{of}: {child!r} cannot be asked again before it sends: its terminate takes no `permitted`. Update it"
        raise ProviderSetupError(msg)


def asks_permission(child: object) -> bool:
    """Say whether a terminator takes `permitted`. One that does not could end a machine that somebody needs again."""
    try:
        parameters = inspect.signature(child.terminate).parameters.values()  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        return False
    return any(each.name == "permitted" or each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters)


def _looked(
    kind: str,
    calls: Mapping[Branch, Callable[[], _Part[Seen]]],
    stragglers: Stragglers,
    *,
    clock: Clock,
    timeout: timedelta | None,
) -> tuple[_Part[Seen], ...]:
    """Make every call but those whose like hangs still, and judge the answers."""
    looks = [Look(place=(kind, branch.label), call=call, stragglers=stragglers) for branch, call in calls.items()]
    answers = ask_all(looks, clock=clock, timeout=timeout)
    stragglers.leave(look for look, answer in zip(looks, answers, strict=True) if isinstance(answer, Late))
    return tuple(_part(branch, answer) for branch, answer in zip(calls, answers, strict=True))


def _listed(branch: Branch, lister: Lister) -> _Part[OwnedInstance]:
    try:
        answer: object = lister.list_owned()
    except IncompleteListingError as error:
        return _Part(coverage=_broken(branch, error.coverage), error=error)
    if not isinstance(answer, Inventory) or not answer.coverage:
        code = "no_coverage"
        raise _AnswerError(code, f"{type(answer).__name__} without a proof of what it covers")
    coverage = _placed_coverage(branch, answer.coverage)
    instances = _placed_instances(branch, answer.instances)
    _require_covered(instances, coverage)
    return _Part(instances=instances, coverage=(*coverage, *_missing(branch, coverage)))


def _audited(branch: Branch, auditor: InstanceAuditor) -> _Part[AuditedInstance]:
    answer: object = auditor.audit_instances()
    if not isinstance(answer, AuditSweep) or not (answer.coverage or answer.skipped):
        code = "no_coverage"
        raise _AnswerError(code, f"{type(answer).__name__} without a word on what it covers")
    coverage = _placed_coverage(branch, answer.coverage)
    instances = _placed_instances(branch, answer.instances)
    _require_covered(instances, coverage)
    missing = (entry for entry in _missing(branch, coverage) if str(entry.scope) not in answer.skipped)
    events, strays = _placed_events(branch, answer.events)
    return _Part(
        instances=instances,
        coverage=(*coverage, *missing),
        skipped=answer.skipped,
        events=events,
        unheard=(*(_placed_unheard(branch, entry) for entry in answer.unheard), *strays),
    )


def _part(branch: Branch, answer: Answered[_Part[Seen]] | Raised | Late) -> _Part[Seen]:
    match answer:
        case Answered(part):
            return part
        case Late(waited):
            return _Part(coverage=tuple(replace(_late(scope), duration=waited) for scope in branch.scopes))
        case Raised(StillHangsError()):
            detail = "not asked: the look before has not ended, and waits for its answer still"
            return _Part(coverage=tuple(replace(_late(scope), detail=detail) for scope in branch.scopes))
        case Raised(error):
            code = error.code if isinstance(error, _AnswerError) else snake_case(type(error).__name__)
            return _Part(coverage=tuple(_failed(scope, code, str(error)) for scope in branch.scopes), error=error)


def _late(scope: Scope) -> Coverage:
    return Coverage(scope=scope, failure=ScopeFailure.DEADLINE, error_code="deadline")


def _failed(scope: Scope, code: str, detail: str) -> Coverage:
    return Coverage(scope=scope, failure=ScopeFailure.LISTING, error_code=code, detail=detail[:MAX_DETAIL])


def snake_case(name: str) -> str:
    """Return the name of a class as the code of an error."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def _placed_coverage(branch: Branch, coverage: Iterable[Coverage]) -> tuple[Coverage, ...]:
    return tuple(replace(entry, scope=branch.place(entry.scope)) for entry in coverage)


def _placed_instances(branch: Branch, instances: Iterable[Seen]) -> tuple[Seen, ...]:
    # There are many machines in few scopes, and most stand where they belong: those stay the objects that they are.
    places: dict[tuple[str, str], Scope] = {}
    return tuple(_placed_instance(branch, instance, places) for instance in instances)


def _placed_instance(branch: Branch, instance: Seen, places: dict[tuple[str, str], Scope]) -> Seen:
    ref = instance.ref
    named = (ref.provider, ref.region)
    if named not in places:
        places[named] = branch.place(ref.scope)
    scope = places[named]
    if named == (scope.provider, scope.region):
        return instance
    return replace(instance, ref=InstanceRef(scope.provider, scope.region, ref.instance_id))


def _placed_events(
    branch: Branch, told: Iterable[ProviderEvent]
) -> tuple[tuple[ProviderEvent, ...], tuple[Unheard, ...]]:
    """Return the events of this child's machines, and a word on those of others: no sweep fails for them."""
    events: list[ProviderEvent] = []
    strays: list[Unheard] = []
    for event in told:
        try:
            scope = branch.place(event.ref.scope)
        except _AnswerError as error:
            strays.append(Unheard(scope=branch.scopes[0], error_code=error.code, detail=str(error)[:MAX_DETAIL]))
        else:
            ref = InstanceRef(scope.provider, scope.region, event.ref.instance_id)
            events.append(replace(event, ref=ref))
    return tuple(events), tuple(dict.fromkeys(strays))


def _placed_unheard(branch: Branch, entry: Unheard) -> Unheard:
    return replace(
        entry, scope=Scope(entry.scope.provider or branch.provider, entry.scope.region or branch.region or ANY_REGION)
    )


def _require_covered(instances: Iterable[Seen], coverage: Iterable[Coverage]) -> None:
    covered = {(entry.scope.provider, entry.scope.region) for entry in coverage}
    refs = (instance.ref for instance in instances)
    strays = [str(ref) for ref in refs if (ref.provider, ref.region) not in covered]
    if strays:
        code = "scope_mismatch"
        raise _AnswerError(code, f"outside the scopes that were covered: {', '.join(strays)}")


def _missing(branch: Branch, coverage: Iterable[Coverage]) -> tuple[Coverage, ...]:
    covered = {entry.scope for entry in coverage}
    return tuple(_failed(s, "no_coverage", "not in the answer") for s in branch.required if s not in covered)


def _broken(branch: Branch, coverage: tuple[Coverage, ...]) -> tuple[Coverage, ...]:
    """Return the coverage of a child that says that it is incomplete, so that at least one scope has failed."""
    placed = _placed_coverage(branch, coverage)
    entries = (*placed, *_missing(branch, placed))
    if not entries:
        return tuple(_failed(scope, "no_coverage", "incomplete, without a word on where") for scope in branch.scopes)
    if all(entry.ok for entry in entries):
        why = "incomplete, while every scope is said to be whole"
        return _blamed(entries, dict.fromkeys((entry.scope for entry in entries), why), "incomplete_listing")
    return entries


def _sorted_coverage(parts: Iterable[_Part[Seen]]) -> tuple[Coverage, ...]:
    distinct = dict.fromkeys(entry for part in parts for entry in part.coverage)
    return tuple(sorted(distinct, key=lambda entry: entry.scope))


def _repeated(instances: tuple[OwnedInstance, ...]) -> dict[Scope, str]:
    """Return the scopes in which a machine stands that is listed more than once, with the last such machine.

    Twice under one ref, or the same machine under two: one account under two names, two clients of one region. An id
    alone proves nothing (some clouds number per region), so its worker and launch time must be the same, too.
    """
    refs = Counter(_address(instance) for instance in instances)
    machines = Counter(_machine(instance) for instance in instances)
    if len(refs) == len(machines) == len(instances):
        return {}
    repeated = (i.ref for i in instances if refs[_address(i)] > 1 or machines[_machine(i)] > 1)
    return {ref.scope: f"{ref.instance_id} is listed more than once" for ref in repeated}


def _address(instance: OwnedInstance) -> tuple[str, str, str]:
    # No ref: its hash is worked out in Python.
    return (instance.ref.provider, instance.ref.region, instance.ref.instance_id)


def _machine(instance: OwnedInstance) -> tuple[object, ...]:
    return (instance.ref.instance_id, instance.worker_id, instance.launched_at)


def _blamed(coverage: tuple[Coverage, ...], why: Mapping[Scope, str], code: str) -> tuple[Coverage, ...]:
    """Return the coverage with these scopes failed; one that has failed already keeps its own reason."""
    return tuple(
        replace(entry, failure=ScopeFailure.LISTING, error_code=code, detail=why[entry.scope])
        if entry.ok and entry.scope in why
        else entry
        for entry in coverage
    )


def _cause(parts: Iterable[_Part[OwnedInstance]]) -> BaseException | None:
    """Return what the children raised, tracebacks and all, for the log of the pass."""
    errors = [part.error for part in parts if part.error is not None]
    return BaseExceptionGroup("children of an incomplete listing", errors) if errors else None
