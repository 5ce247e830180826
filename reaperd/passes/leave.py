"""The leave to send one request for several machines: given last, to each of them, and taken back by whoever waits."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from providers.model import InstanceRef
from reaperd.core.model import Outcome
from reaperd.passes.outcomes import Stop, left


@dataclass(frozen=True, slots=True, kw_only=True)
class Objections:
    """What stands against a request, immediately before it is sent."""

    spared: Mapping[InstanceRef, Outcome] = field(default_factory=dict)
    stop: Stop | None = None


class Leave:
    """The leave for one request, asked for in the thread of the call, and taken back by the one that waits for it."""

    def __init__(self, refs: Iterable[InstanceRef], objections: Callable[[Sequence[InstanceRef]], Objections]) -> None:
        """Keep for whom it may be given at all."""
        self._refs = frozenset(refs)
        self._objections = objections
        self._lock = threading.Lock()
        self._withdrawn = False
        self._spared: dict[InstanceRef, Outcome] = {}
        self._named: set[InstanceRef] = set()
        self.stop: Stop | None = None
        """Why nothing more may be sent at all; None while something may."""
        self.requests = 0
        self.machines = 0
        """How many were named, over all requests."""

    def __call__(self, refs: Sequence[InstanceRef]) -> Collection[InstanceRef]:
        """Return those that may be named now. Of one that may not, and after a stop, there is no yes any more."""
        wanted = [ref for ref in refs if ref in self._refs and ref not in self._spared]
        if not wanted or self._is_over():
            return ()
        found = self._objections(wanted)
        with self._lock:
            self._spared.update(found.spared)
            self.stop = found.stop
            if self._is_over():
                return ()
            granted = [ref for ref in wanted if ref not in self._spared]
            self._named.update(granted)
            self.requests += bool(granted)
            self.machines += len(granted)
            return granted

    def _is_over(self) -> bool:
        return self._withdrawn or self.stop is not None

    def for_one(self) -> bool:
        """Say whether the only machine may be named now."""
        return bool(self(tuple(self._refs)))

    def withdraw(self) -> None:
        """Nobody waits for the answer any more: from now on nothing may be sent."""
        with self._lock:
            self._withdrawn = True

    def was_named(self, ref: InstanceRef) -> bool:
        """Say whether a request with this machine in it may have been sent. A no is certain once it was withdrawn."""
        return ref in self._named

    def refused(self, ref: InstanceRef) -> Outcome | None:
        """Return what becomes of a machine that got no leave; None: nobody told it so, the reason is the adapter's."""
        if ref in self._spared:
            return self._spared[ref]
        return None if self.stop is None else left(ref, self.stop.reason)
