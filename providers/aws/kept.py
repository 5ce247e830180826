"""Answers that are good for a while."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from datetime import timedelta
from typing import Generic, TypeVar

from providers.base import Clock

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Kept(Generic[Key, Value]):
    """Asks for a value once and gives it again until it is too old. Safe to use from several threads.

    What asking raises is passed on and not kept. Two that miss at the same time both ask.
    """

    def __init__(self, clock: Clock, lifetime: timedelta) -> None:
        """Start with nothing."""
        self._clock = clock
        self._lifetime_seconds = lifetime.total_seconds()
        self._lock = threading.Lock()
        self._found: dict[Key, tuple[float, Value]] = {}

    def get(self, key: Key, ask: Callable[[], Value]) -> Value:
        """Return the value of a key, asking for it when there is none that is young enough."""
        now = self._clock.monotonic()
        with self._lock:
            found = self._found.get(key)
        if found is not None and now - found[0] < self._lifetime_seconds:
            return found[1]
        value = ask()
        with self._lock:
            # As old as the question: the answer may have been true no later than that.
            self._found[key] = (now, value)
        return value
