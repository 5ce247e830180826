"""The price lists of clouds: as a source of prices, and several of them side by side."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from providers.base import Clock, InstanceTypeLister
from providers.capacity import Offer, QuoteFailure
from providers.catalogue import InstanceType, offers_of
from providers.errors import QuoteError
from providers.fanout import ANY_REGION, MAX_DETAIL, Answered, Late, Raised, ask_all, snake_case
from providers.identity import Scope


class ListedPrices:
    """The price list of a cloud as a source of prices."""

    def __init__(self, lister: InstanceTypeLister) -> None:
        """Keep the list's owner."""
        self._lister = lister

    def get_prices(self) -> tuple[Offer, ...]:
        """Return an offer for each priced type in each of its regions."""
        return offers_of(self._lister.list_instance_types(), provider=self._lister.name)


def ask_for_types(
    listers: Sequence[InstanceTypeLister], *, clock: Clock, timeout: timedelta | None
) -> tuple[tuple[tuple[str, InstanceType], ...], tuple[QuoteFailure, ...]]:
    """Return the types of every list that could be had, each with its owner's name, and why the others could not.

    Raises:
        QuoteError: if not one of them could be had. It carries each reason.
    """
    answers = ask_all([lister.list_instance_types for lister in listers], clock=clock, timeout=timeout)
    types: list[tuple[str, InstanceType]] = []
    failures: list[QuoteFailure] = []
    for lister, answer in zip(listers, answers, strict=True):
        if isinstance(answer, Answered):
            types += [(lister.name, each) for each in answer.value]
        else:
            failures += _why(lister.name, answer)
    if not any(isinstance(answer, Answered) for answer in answers):
        told = "; ".join(f"{failure}: {failure.detail}" for failure in failures)
        msg = f"no types could be had: {told}"
        raise QuoteError(msg, failures=tuple(failures))
    return tuple(types), tuple(failures)


def _why(name: str, answer: Raised | Late) -> tuple[QuoteFailure, ...]:
    scope = Scope(name, ANY_REGION)
    match answer:
        case Late(waited):
            detail = f"no answer in {waited.total_seconds():.0f} s"
            return (QuoteFailure(scope=scope, error_code="deadline", detail=detail),)
        case Raised(QuoteError(failures=failures)) if failures:
            return failures
        case Raised(error):
            code = snake_case(type(error).__name__)
            return (QuoteFailure(scope=scope, error_code=code, detail=str(error)[:MAX_DETAIL], error=error),)
