"""Measuring a provider from outside: each operation is reported to an observer, whatever came of it.

Each wrapper is itself what it wraps and has no ability more: what measures a lister cannot terminate, and what
measures a lister that cannot audit does not pretend to. One that cannot look by ids is asked nothing, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Protocol, TypeVar

from providers.allowance import Allowance
from providers.base import (
    BatchPermission,
    BatchTerminator,
    Clock,
    InstanceAuditor,
    Lister,
    Locator,
    Permission,
    Terminator,
)
from providers.errors import (
    CredentialsExpiredError,
    GoesAloneError,
    IncompleteListingError,
    InstanceChangedError,
    InstanceNotFoundError,
    InvalidInstanceIdError,
    ProviderError,
    SpoiledBatchError,
    SpotRequestNotCancelledError,
    TerminateError,
    TerminateRejectedError,
    TerminationDeniedError,
    TerminationProtectedError,
    ThrottledError,
    UnknownResultError,
)
from providers.fanout import Regional
from providers.locating import Locations, locate_with
from providers.locations import NotKnown
from providers.model import AuditSweep, InstanceRef, Inventory, OwnedInstance, Scope

T = TypeVar("T")


class Operation(StrEnum):
    """What a provider was asked for."""

    LIST_OWNED = "list_owned"
    LOCATE = "locate"
    AUDIT_INSTANCES = "audit_instances"
    TERMINATE = "terminate"


class RequestResult(StrEnum):
    """What came of it. The value is a metric label."""

    OK = "ok"
    INCOMPLETE = "incomplete"
    """A listing that raised, an audit with a failed scope, or a machine of which nobody could say where it is."""
    NOT_FOUND = "not_found"
    INVALID_ID = "invalid_id"
    PROTECTED = "protected"
    DENIED = "denied"
    CHANGED = "changed"
    SPOT_REQUEST_NOT_CANCELLED = "spot_request_not_cancelled"
    THROTTLED = "throttled"
    CREDENTIALS_EXPIRED = "credentials_expired"
    UNKNOWN = "unknown"
    REJECTED = "rejected"
    ERROR = "error"
    """Anything that the port does not allow: a fault of the provider's code."""


RESULTS: Mapping[type[ProviderError], RequestResult] = MappingProxyType(
    {
        IncompleteListingError: RequestResult.INCOMPLETE,
        InstanceNotFoundError: RequestResult.NOT_FOUND,
        InvalidInstanceIdError: RequestResult.INVALID_ID,
        TerminationProtectedError: RequestResult.PROTECTED,
        TerminationDeniedError: RequestResult.DENIED,
        InstanceChangedError: RequestResult.CHANGED,
        SpotRequestNotCancelledError: RequestResult.SPOT_REQUEST_NOT_CANCELLED,
        ThrottledError: RequestResult.THROTTLED,
        CredentialsExpiredError: RequestResult.CREDENTIALS_EXPIRED,
        UnknownResultError: RequestResult.UNKNOWN,
        TerminateRejectedError: RequestResult.REJECTED,
    }
)
"""One result for each class of error."""


class RequestObserver(Protocol):
    """Told of every operation once it has ended.

    Must not raise, and is not guarded: its error would come out of the operation like a fault of the provider. That is
    safe (nothing is decided on such a listing, and such a termination counts as of unknown result) but it is a bug.
    """

    def observed(self, *, provider: str, operation: Operation, result: RequestResult, seconds: float) -> None:
        """Take one measurement. Called from whatever thread made the request."""
        ...


def instrumented_lister(inner: Lister, observer: RequestObserver, *, clock: Clock) -> InstrumentedLister:
    """Return the lister, measured; it can audit exactly if the inner one can."""
    if isinstance(inner, InstanceAuditor):
        return InstrumentedListingAuditor(inner, observer, clock=clock)
    return InstrumentedLister(inner, observer, clock=clock)


class _Measuring:
    """What all wrappers share."""

    def __init__(self, name: str, observer: RequestObserver, clock: Clock) -> None:
        self._name = name
        self._observer = observer
        self._clock = clock

    @property
    def name(self) -> str:
        """Return the name of what is measured."""
        return self._name

    def _measured(self, operation: Operation, call: Callable[[], T], judge: Callable[[T], RequestResult]) -> T:
        started = self._clock.monotonic()
        result = RequestResult.ERROR
        try:
            answer = call()
            result = judge(answer)
        except ProviderError as error:
            result = result_of(error)
            raise
        finally:
            seconds = self._clock.monotonic() - started
            self._observer.observed(provider=self._name, operation=operation, result=result, seconds=seconds)
        return answer


def instrumented_terminator(inner: Terminator, observer: RequestObserver, *, clock: Clock) -> InstrumentedTerminator:
    """Return the terminator, measured; it can end several machines together exactly if the inner one can."""
    if isinstance(inner, BatchTerminator):
        return InstrumentedBatchTerminator(inner, observer, clock=clock)
    return InstrumentedTerminator(inner, observer, clock=clock)


class InstrumentedLister(_Measuring):
    """A measured lister."""

    def __init__(self, inner: Lister, observer: RequestObserver, *, clock: Clock) -> None:
        """Keep what is measured, and its name as it is now."""
        super().__init__(inner.name, observer, clock)
        self._inner = inner

    @property
    def regions(self) -> tuple[str, ...]:
        """Return the regions of the inner lister; empty when it does not say."""
        return self._inner.regions if isinstance(self._inner, Regional) else ()

    def list_owned(self) -> Inventory:
        """List as the inner one does."""
        return self._measured(Operation.LIST_OWNED, self._inner.list_owned, lambda _: RequestResult.OK)

    def locate(self, refs: Collection[InstanceRef]) -> Locations:
        """Locate as the inner one does; OnlyListed, and nothing is measured, if it cannot."""
        if not isinstance(self._inner, Locator):
            return locate_with(self._inner, refs)
        return self._measured(Operation.LOCATE, lambda: locate_with(self._inner, refs), _location_result)


class InstrumentedAuditor(_Measuring):
    """A measured auditor."""

    def __init__(self, inner: InstanceAuditor, observer: RequestObserver, *, clock: Clock) -> None:
        """Keep what is measured, and its name as it is now."""
        super().__init__(inner.name, observer, clock)
        self._auditor = inner

    def audit_instances(self) -> AuditSweep:
        """Audit as the inner one does."""
        return self._measured(Operation.AUDIT_INSTANCES, self._auditor.audit_instances, _sweep_result)


class InstrumentedListingAuditor(InstrumentedLister):
    """A measured lister that can audit, too."""

    def __init__(self, inner: Lister, observer: RequestObserver, *, clock: Clock) -> None:
        """Keep what is measured, and its name as it is now. Raises TypeError if the inner one cannot audit."""
        super().__init__(inner, observer, clock=clock)
        if not isinstance(inner, InstanceAuditor):
            msg = f"{inner!r} cannot audit"
            raise TypeError(msg)
        self._auditor = InstrumentedAuditor(inner, observer, clock=clock)

    def audit_instances(self) -> AuditSweep:
        """Audit as the inner one does."""
        return self._auditor.audit_instances()


class InstrumentedTerminator(_Measuring):
    """A measured terminator."""

    def __init__(self, inner: Terminator, observer: RequestObserver, *, clock: Clock) -> None:
        """Keep what is measured, and its name as it is now."""
        super().__init__(inner.name, observer, clock)
        self._inner = inner

    def terminate(
        self, ref: InstanceRef, *, seen: OwnedInstance | None = None, permitted: Permission | None = None
    ) -> None:
        """Terminate as the inner one does."""
        self._measured(
            Operation.TERMINATE,
            lambda: self._inner.terminate(ref, seen=seen, permitted=permitted),
            lambda _: RequestResult.OK,
        )


class InstrumentedBatchTerminator(InstrumentedTerminator):
    """A measured terminator that can end several machines together: each counts as one that was ended alone."""

    def __init__(self, inner: Terminator, observer: RequestObserver, *, clock: Clock) -> None:
        """Keep what is measured, and its name as it is now. Raises TypeError if it can only end machines alone."""
        super().__init__(inner, observer, clock=clock)
        if not isinstance(inner, BatchTerminator):
            msg = f"{inner!r} ends one machine a request"
            raise TypeError(msg)
        self._together = inner

    def allowance(self, scope: Scope) -> Allowance | None:
        """Return what the inner one allows."""
        return self._together.allowance(scope)

    def terminate_many(
        self, seen: Sequence[OwnedInstance], *, permitted: BatchPermission
    ) -> Mapping[InstanceRef, TerminateError | None]:
        """Terminate as the inner one does. Who is to be asked for again is measured then."""
        started = self._clock.monotonic()
        results = dict.fromkeys((each.ref for each in seen), RequestResult.ERROR)
        try:
            answers = self._together.terminate_many(seen, permitted=permitted)
            for ref, error in answers.items():
                results[ref] = RequestResult.OK if error is None else result_of(error)
                if isinstance(error, (GoesAloneError, SpoiledBatchError)):
                    del results[ref]
        finally:
            seconds = self._clock.monotonic() - started
            for result in results.values():
                self._observer.observed(
                    provider=self._name, operation=Operation.TERMINATE, result=result, seconds=seconds
                )
        return answers


def result_of(error: ProviderError) -> RequestResult:
    """Return the result that an error stands for; a subclass counts as its nearest known ancestor."""
    return next((RESULTS[kind] for kind in type(error).__mro__ if kind in RESULTS), RequestResult.ERROR)


def _sweep_result(sweep: AuditSweep) -> RequestResult:
    return RequestResult.OK if all(entry.ok for entry in sweep.coverage) else RequestResult.INCOMPLETE


def _location_result(found: Locations) -> RequestResult:
    unknown = any(isinstance(location, NotKnown) for location in found.values())
    return RequestResult.INCOMPLETE if unknown else RequestResult.OK
