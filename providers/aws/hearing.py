"""Asking for announcements in all regions of a sweep, side by side. It never fails a sweep."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from providers.aws.errors import DEADLINE
from providers.aws.events import Heard, hear
from providers.base import Clock
from providers.events import Unheard
from providers.fanout import MAX_DETAIL, Answered, Late, Raised, ask_all, snake_case
from providers.identity import Scope
from providers.stragglers import Look, StillHangsError, Stragglers

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

PATIENCE = timedelta(seconds=30)
"""How long a sweep waits for announcements, at most."""


def hear_everywhere(
    clients: Mapping[Scope, EC2Client], *, clock: Clock, timeout: timedelta, stragglers: Stragglers
) -> Heard:
    """Return what is announced in all regions. Never raises: a sweep does not fail by what it only mentions.

    A region that has not answered after the timeout is not waited for, and not asked again while it hangs.
    """
    looks = [
        Look(place=("events", str(scope)), call=partial(hear, client, scope), stragglers=stragglers)
        for scope, client in clients.items()
    ]
    answers = ask_all(looks, clock=clock, timeout=timeout)
    stragglers.leave(look for look, answer in zip(looks, answers, strict=True) if isinstance(answer, Late))
    parts = [_part(scope, answer) for scope, answer in zip(clients, answers, strict=True)]
    return Heard(
        events=tuple(event for part in parts for event in part.events),
        unheard=tuple(entry for part in parts for entry in part.unheard),
    )


def _part(scope: Scope, answer: Answered[Heard] | Raised | Late) -> Heard:
    match answer:
        case Answered(heard):
            return heard
        case Late(waited):
            return _silent(scope, DEADLINE, f"no answer within {waited.total_seconds():.0f} s")
        case Raised(StillHangsError()):
            return _silent(scope, DEADLINE, "not asked: the question before waits for its answer still")
        case Raised(error):
            # A defect of ours. It is told, and the sweep goes on.
            return _silent(scope, snake_case(type(error).__name__), str(error)[:MAX_DETAIL])


def _silent(scope: Scope, code: str, detail: str) -> Heard:
    return Heard(unheard=(Unheard(scope=scope, error_code=code, detail=detail),))
