"""When to try a delivery again. Pure: the dice are thrown by the caller."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

MINUTE = timedelta(minutes=1)
LONGEST_QUIET = timedelta(days=1)
"""No receiver can ask for more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Twice the wait after each failure, up to a cap, and no more than so many deliveries a minute."""

    first: timedelta = timedelta(seconds=5)
    cap: timedelta = timedelta(minutes=15)
    per_minute: int = 30
    """For one channel. At least 1."""


def next_try_at(
    attempts: int, now: datetime, backoff: Backoff, *, jitter: float, retry_after: timedelta | None = None
) -> datetime:
    """Return when to try again after so many attempts failed, the last of them now.

    `jitter`, from 0 up to 1, spreads the wait over its upper half, so that what failed together does not come back
    together. What the receiver asked for is honoured, within a day.
    """
    doublings = min(max(attempts, 1) - 1, 64)
    wait = backoff.cap if _is_past(backoff, doublings) else backoff.first * 2**doublings
    asked = timedelta(0) if retry_after is None else min(retry_after, LONGEST_QUIET)
    return now + max(wait * (1 + jitter) / 2, asked)


def may_send_at(sent: Iterable[datetime], now: datetime, backoff: Backoff) -> datetime:
    """Return the earliest time from now on at which the channel may be given one more.

    `sent` are the times of its last attempts; those older than a minute do not matter, nor does their order.
    """
    recent = sorted(min(moment, now) for moment in sent if moment > now - MINUTE)
    if len(recent) < backoff.per_minute:
        return now
    return recent[-backoff.per_minute] + MINUTE


def _is_past(backoff: Backoff, doublings: int) -> bool:
    """Say whether the wait would exceed the cap, without ever computing it: it may be longer than a timedelta."""
    return backoff.first > backoff.cap / float(2**doublings)
