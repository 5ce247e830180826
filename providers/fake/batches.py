"""What the cloud in memory answers to one request for the end of several machines. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from providers.allowance import Allowance, Rate
from providers.errors import SpoiledBatchError, TerminateError
from providers.fake.faults import REFUSALS, TAKES_EFFECT, TerminateFault, refusal
from providers.model import InstanceRef

ALLOWANCE = Allowance(together=100, requests=Rate(100, 5), machines=Rate(1000, 20))

Answers = dict[InstanceRef, TerminateError | None]

_FOR_ALL = (
    TerminateFault.UNKNOWN_LOST,
    TerminateFault.UNKNOWN_APPLIED,
    TerminateFault.EXPIRED,
    TerminateFault.THROTTLED,
)
"""What befalls the whole request, whichever of its machines brought it. The first that is there does."""


def answers_to(asked: Mapping[InstanceRef, TerminateFault | None]) -> tuple[Answers, frozenset[InstanceRef]]:
    """Return the answer of each machine that a request names, and which of them end.

    A machine that is refused spoils the request for the others.
    """
    common = next((fault for fault in _FOR_ALL if fault in asked.values()), None)
    if common is not None:
        ending = asked if common in TAKES_EFFECT else ()
        return {ref: refusal(ref, common) for ref in asked}, frozenset(ending)
    refused = {ref: refusal(ref, fault) for ref, fault in asked.items() if fault in REFUSALS and fault is not None}
    if refused:
        names = ", ".join(sorted(ref.instance_id for ref in refused))
        return {ref: refused.get(ref) or SpoiledBatchError(ref, f"because of {names}") for ref in asked}, frozenset()
    return dict.fromkeys(asked), frozenset(ref for ref, fault in asked.items() if fault in TAKES_EFFECT)
