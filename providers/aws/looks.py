"""What a look at a region has found, and whether that proves that it is all."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Generic, TypeVar

from providers.aws.answers import Answer
from providers.aws.errors import DEADLINE, BrokenAnswerError, error_code, error_text
from providers.aws.session import Ec2
from providers.aws.translate import RawInstance, raw_instances
from providers.aws.zones import Part
from providers.base import Clock, Progress
from providers.model import AuditedInstance, Coverage, OwnedInstance, Scope, ScopeFailure

DUPLICATE = "duplicate_instance"
OUTSIDE = "outside_zone"
"""A machine is listed that is in none of the zones that were asked for: then another may be in a zone that was not."""

Seen = TypeVar("Seen", OwnedInstance, AuditedInstance)


class Tally:
    """Tells how far the looks at one region have come, together."""

    def __init__(self, scope: Scope, progress: Progress | None) -> None:
        """Begin with nothing."""
        self._scope = scope
        self._progress = progress
        self._lock = threading.Lock()
        self._pages = 0
        self._instances = 0

    def page(self, instances: int) -> None:
        """Take in one page."""
        with self._lock:
            self._pages += 1
            self._instances += instances
            if self._progress is not None:
                self._progress(self._scope, pages=self._pages, instances=self._instances)


class Look(Generic[Seen]):
    """One look, at a region or at a part of one."""

    def __init__(self, scope: Scope, account: str, clock: Clock, ec2: Ec2) -> None:
        """Begin, in the thread that looks."""
        ec2.dates.start(clock)
        self._scope = scope
        self._account = account
        self._clock = clock
        self._dates = ec2.dates
        self._started = clock.monotonic()
        self._duration = timedelta(0)
        self.skew: timedelta | None = None
        self.pages = 0
        self.found: dict[str, Seen] = {}
        self.error: Exception | None = None

    @property
    def existing(self) -> tuple[Seen, ...]:
        """Return what is not gone: EC2 lists terminated machines for about an hour."""
        return tuple(instance for instance in self.found.values() if not instance.state.is_gone)

    def take(self, page: Answer, read: Callable[[RawInstance], Seen], part: Part | None) -> int:
        """Add the machines of one page, all of which must be in the part; return how many there are.

        Raises:
            BrokenAnswerError: if one was listed before, or is elsewhere.
            MalformedAnswerError: if it is no page.
        """
        before = len(self.found)
        for raw in raw_instances(page):
            if raw.instance_id in self.found:
                raise _twice(raw.instance_id)
            if part is not None:
                _require_in(part, raw)
            self.found[raw.instance_id] = read(raw)
        self.pages += 1
        return len(self.found) - before

    def join(self, parts: Iterable[Look[Seen]]) -> None:
        """Add looks at the parts, each of which has ended. The first that failed is what this one fails of."""
        for part in parts:
            self.pages += part.pages
            self._measured(part.skew)
            self.error = self.error or part.error or self._overlap(part)
            self.found |= part.found

    def _overlap(self, part: Look[Seen]) -> Exception | None:
        both = self.found.keys() & part.found.keys()
        return _twice(min(both)) if both else None

    def end(self) -> None:
        """Stop the clocks of this look, in its own thread."""
        self._duration = timedelta(seconds=self._clock.monotonic() - self._started)
        self._measured(self._dates.worst)

    def _measured(self, skew: timedelta | None) -> None:
        if skew is not None:
            self.skew = max(self.skew or timedelta(0), skew)

    @property
    def undated(self) -> bool:
        """Return whether no answer told the time. Known once the look has ended."""
        return self.skew is None

    def coverage(self) -> Coverage:
        """Return what this look proves."""
        code = None if self.error is None else error_code(self.error)
        return Coverage(
            scope=self._scope,
            account=self._account,
            instances=len(self.existing),
            pages=self.pages,
            duration=self._duration,
            failure=None if code is None else _failure(code),
            error_code=code,
            detail="" if self.error is None else error_text(self.error),
            clock_skew=self.skew,
        )


def _require_in(part: Part, raw: RawInstance) -> None:
    placement = raw.fields.get("Placement")
    zone = placement.get("AvailabilityZone") if isinstance(placement, Mapping) else None
    if zone not in part:
        raise BrokenAnswerError(OUTSIDE, f"{raw.instance_id} is in {zone}, and {', '.join(sorted(part))} was asked for")


def _twice(instance_id: str) -> BrokenAnswerError:
    return BrokenAnswerError(DUPLICATE, f"{instance_id} was listed twice")


def _failure(code: str) -> ScopeFailure:
    return ScopeFailure.DEADLINE if code == DEADLINE else ScopeFailure.LISTING
