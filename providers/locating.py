"""Looking for single machines through whatever is wrapped around a provider. No error of one spoils another's answer.

What is late, raises or is no answer is NotKnown; what cannot look at all says so itself, with OnlyListed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import timedelta
from functools import partial

from providers.base import Clock, Lister, Locator
from providers.fanout import MAX_DETAIL, Answered, Branch, Late, Raised, ask_all
from providers.locations import Gone, Location, NotKnown, OnlyListed, There
from providers.model import InstanceRef
from providers.stragglers import Look, StillHangsError, Stragglers

LOCATING_TIMEOUT = timedelta(seconds=20)
"""A glance at a few machines. What takes longer is asked again in the next pass, and keeps this one from its work."""

Locations = Mapping[InstanceRef, Location]


def locate_with(child: object, refs: Collection[InstanceRef]) -> Locations:
    """Return what a provider says of each of these, and no other; OnlyListed when it is no Locator.

    Raises:
        Exception: whatever it raises although it promised not to.
    """
    if not isinstance(child, Locator):
        return dict.fromkeys(refs, OnlyListed())
    told: object = child.locate(refs)
    answers = told if isinstance(told, Mapping) else {}
    return {ref: _believed(answers.get(ref)) for ref in refs}


def locate_everywhere(
    children: Mapping[Branch, Lister],
    refs: Collection[InstanceRef],
    *,
    clock: Clock,
    timeout: timedelta | None,
    stragglers: Stragglers,
) -> Locations:
    """Return where each of these is, by the one child that answers for its place; NotKnown where there is none.

    Never raises. A child that hangs is waited for LOCATING_TIMEOUT at most, and not asked again while it hangs.
    """
    asked = {branch: [ref for ref in refs if _answers_for(branch, ref)] for branch in children}
    looks = {
        branch: Look(
            place=("locating", branch.label), call=partial(locate_with, child, asked[branch]), stragglers=stragglers
        )
        for branch, child in children.items()
        if asked[branch]
    }
    within = LOCATING_TIMEOUT if timeout is None else min(timeout, LOCATING_TIMEOUT)
    answers = ask_all(tuple(looks.values()), clock=clock, timeout=within)
    stragglers.leave(look for look, answer in zip(looks.values(), answers, strict=True) if isinstance(answer, Late))
    found: dict[InstanceRef, Location] = dict.fromkeys(refs, NotKnown("nobody here answers for this place"))
    for branch, answer in zip(looks, answers, strict=True):
        found |= _told(answer, asked[branch])
    return found


def _answers_for(branch: Branch, ref: InstanceRef) -> bool:
    return branch.provider == ref.provider and branch.region in (None, ref.region)


def _told(answer: Answered[Locations] | Raised | Late, refs: Collection[InstanceRef]) -> Locations:
    match answer:
        case Answered(told):
            return told
        case Late():
            return dict.fromkeys(refs, NotKnown("no answer in time"))
        case Raised(StillHangsError()):
            return dict.fromkeys(refs, NotKnown("not asked: the look before has not ended"))
        case Raised(error):
            return dict.fromkeys(refs, NotKnown(f"{type(error).__name__}: {error}"[:MAX_DETAIL]))


def _believed(answer: object) -> Location:
    if isinstance(answer, (There, Gone, NotKnown, OnlyListed)):
        return answer
    return NotKnown("no answer" if answer is None else f"{type(answer).__name__} is no answer")
