"""Asking several places side by side for their offers, and finding the one that a launch has to go to.

What the wrappers `MultiRegionProvider` and `MultiCloudProvider` share. Unlike a listing, a quote of some places is
worth having: a place that fails is told, counted and left out, and only when all of them fail is there no answer.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Protocol

from providers.base import Clock, Log
from providers.capacity import Offer, QuoteFailure, Quotes, WorkerHandle
from providers.errors import LaunchRejectedError, QuoteError, UnknownLaunchError
from providers.fanout import ANY_REGION, MAX_DETAIL, Answered, Late, Raised, ask_all, snake_case
from providers.model import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where one child sells."""

    provider: str
    region: str | None = None
    """None: the child has regions of its own."""

    @property
    def scope(self) -> Scope:
        """Return the scope that failed when this child did."""
        return Scope(self.provider, ANY_REGION if self.region is None else self.region)

    def owns(self, offer: Offer) -> bool:
        """Say whether an offer is one of this place."""
        return offer.provider == self.provider and self.region in (None, offer.region)

    def stamped(self, offer: Offer) -> Offer:
        """Return the offer with what the child left blank filled in."""
        return replace(offer, provider=offer.provider or self.provider, region=offer.region or self.region or "")


class QuoteObserver(Protocol):
    """Told of every place of every quote. Must not raise."""

    def quoted(self, scope: Scope, *, offers: int, failure: QuoteFailure | None) -> None:
        """Take what one place said: so many offers, or why none."""
        ...


class QuoteTally:
    """Counts what places said, and writes the failures to a log."""

    def __init__(self, log: Log | None = None) -> None:
        """Start at nothing."""
        self._log = log
        self._lock = threading.Lock()
        self._counts: Counter[tuple[Scope, str]] = Counter()

    def quoted(self, scope: Scope, *, offers: int, failure: QuoteFailure | None) -> None:
        """Take what one place said."""
        with self._lock:
            self._counts[scope, "ok" if failure is None else failure.error_code] += 1
        if failure is not None and self._log is not None:
            self._log.warning(
                "quote_failed",
                provider=scope.provider,
                region=scope.region,
                error_code=failure.error_code,
                detail=failure.detail,
            )

    @property
    def counts(self) -> Mapping[tuple[Scope, str], int]:
        """Return how often each place said `ok`, or failed with which code."""
        with self._lock:
            return dict(self._counts)


def quote_everywhere(
    calls: Mapping[Place, Callable[[], Sequence[Offer]]],
    *,
    clock: Clock,
    timeout: timedelta | None,
    observer: QuoteObserver | None = None,
) -> Quotes:
    """Return the offers of every place that answered, in the order of the places, and why the others did not.

    Raises:
        QuoteError: if every one of them failed. It carries each reason, and as its cause a group of all that was
            raised.
    """
    answers = ask_all(list(calls.values()), clock=clock, timeout=timeout)
    judged = {place: _judged(place, answer) for place, answer in zip(calls, answers, strict=True)}
    quotes = Quotes.joined(part.quotes for part in judged.values())
    if observer is not None:
        _tell(observer, judged)
    if judged and not any(part.answered for part in judged.values()):
        raise _nobody(quotes.failures)
    return quotes


def chosen(named: str, among: Sequence[str], *, of: str, what: str) -> str:
    """Return which child a launch goes to: the one that the offer names, or the only one when it names none.

    Raises:
        LaunchRejectedError: if there is no such child, or none is named and there are several. A name that is not
            known is never taken for the only one: the handle would say that the machine is elsewhere.
    """
    if named in among:
        return named
    if not named and len(among) == 1:
        return among[0]
    said = f"names the {what} {named!r}" if named else f"names no {what}"
    msg = f"{of}: the offer {said}; has {', '.join(among)}"
    raise LaunchRejectedError(msg, error_code=f"unknown_{what}")


def placed_handle(place: Place, handle: WorkerHandle) -> WorkerHandle:
    """Return the handle with what the child left blank filled in, so that a terminate finds the machine.

    Raises:
        UnknownLaunchError: if it names another place than the child's. A terminate by it would look where the machine
            is not and find nothing, which reads like "gone".
    """
    placed = replace(handle, offer=place.stamped(handle.offer))
    if not place.owns(placed.offer):
        elsewhere = Scope(handle.offer.provider, handle.offer.region)
        msg = (
            f"{place.scope}: launched {handle.instance_id!r} for worker {handle.worker_id} and calls it one of "
            f"{elsewhere}; there is a machine, and nobody knows where"
        )
        raise UnknownLaunchError(msg, error_code="scope_mismatch")
    return placed


@dataclass(frozen=True, slots=True)
class _Part:
    """One child's judged answer."""

    quotes: Quotes
    answered: bool


def _judged(place: Place, answer: Answered[Sequence[Offer]] | Raised | Late) -> _Part:
    match answer:
        case Answered(offers):
            return _offered(place, offers)
        case Late(waited):
            late = QuoteFailure(
                scope=place.scope, error_code="deadline", detail=f"no answer in {waited.total_seconds():.1f} s"
            )
            return _Part(Quotes((), (late,)), answered=False)
        case Raised(QuoteError(failures=failures)) if failures:
            return _Part(Quotes((), failures), answered=False)
        case Raised(error):
            code = snake_case(type(error).__name__)
            failed = QuoteFailure(scope=place.scope, error_code=code, detail=str(error)[:MAX_DETAIL], error=error)
            return _Part(Quotes((), (failed,)), answered=False)


def _offered(place: Place, offers: Sequence[Offer]) -> _Part:
    told = offers if isinstance(offers, Quotes) else Quotes(tuple(offers))
    stamped = tuple(place.stamped(offer) for offer in told)
    strays = [offer for offer in stamped if not place.owns(offer)]
    if strays:
        # One of them would be launched elsewhere than where it was quoted; and who errs in one errs perhaps in all.
        named = sorted({str(Scope(offer.provider, offer.region)) for offer in strays})
        detail = f"registered as {place.scope}, offers {', '.join(named)}"[:MAX_DETAIL]
        mismatch = QuoteFailure(scope=place.scope, error_code="scope_mismatch", detail=detail)
        return _Part(Quotes((), (*told.failures, mismatch)), answered=False)
    return _Part(Quotes(stamped, told.failures), answered=True)


def _tell(observer: QuoteObserver, judged: Mapping[Place, _Part]) -> None:
    for place, part in judged.items():
        if part.answered:
            observer.quoted(place.scope, offers=len(part.quotes), failure=None)
        for failure in part.quotes.failures:
            observer.quoted(failure.scope, offers=0, failure=failure)


def _nobody(failures: tuple[QuoteFailure, ...]) -> QuoteError:
    error = QuoteError(f"no place could be quoted: {', '.join(map(str, failures))}", failures=failures)
    causes = [failure.error for failure in failures if failure.error is not None]
    error.__cause__ = BaseExceptionGroup("the places that could not be quoted", causes) if causes else None
    return error
