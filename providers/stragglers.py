"""Looks that nobody waits for any more, and that have not ended."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class StillHangsError(Exception):
    """A look before, of the same kind and at the same place, waits for its answer still: this one was not begun."""


class Stragglers:
    """Remembers them across rounds, so that nothing is asked again while it hangs.

    Each keeps its thread, its connection and its memory. Another look at the same place would most likely hang as
    well, and every pass would leave one more behind.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self._lock = threading.Lock()
        self._looks: list[Look[Any]] = []

    def begin(self, look: Look[Any]) -> None:
        """Let a look begin.

        Raises:
            StillHangsError: if its like hangs, or nobody waits for it any more.
        """
        with self._lock:
            if look.is_left or any(other.is_running and other.place == look.place for other in self._looks):
                raise StillHangsError
            look.is_running = True

    def leave(self, looks: Iterable[Look[Any]]) -> None:
        """Wait for these no longer."""
        with self._lock:
            for look in looks:
                look.is_left = True
                self._looks.append(look)
            self._looks = [look for look in self._looks if look.is_running]


@dataclass(slots=True, kw_only=True, eq=False)
class Look(Generic[T]):
    """One call, which knows whether it is under way."""

    place: tuple[str, str]
    """Its kind, and where."""
    call: Callable[[], T]
    stragglers: Stragglers
    is_running: bool = field(default=False, init=False)
    is_left: bool = field(default=False, init=False)

    def __call__(self) -> T:
        """Make the call.

        Raises:
            StillHangsError: as Stragglers.begin.
        """
        self.stragglers.begin(self)
        try:
            return self.call()
        finally:
            self.is_running = False
