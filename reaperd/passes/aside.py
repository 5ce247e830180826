"""One call in a thread of its own, for whoever must not hang with it."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from typing import Generic, TypeVar

from reaperd.passes.ports import Clock, Stopping

GLANCE_SECONDS = 0.1
"""How often whoever waits looks up whether to go on waiting."""

LAST_WORDS = timedelta(seconds=5)
"""How long an answer is still waited for once the process is to end, which has ten (rule 25), or the time is up."""

T = TypeVar("T")


class Unanswered(Enum):
    """Why a call is not waited for any longer. What it brings later is dropped."""

    LATE = "late"
    """The time is up."""
    INTERRUPTED = "interrupted"
    """The process is to end."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a call is waited for."""

    clock: Clock
    ends_at: float
    """On the monotonic clock."""
    stopping: Stopping


@dataclass(slots=True)
class Aside(Generic[T]):
    """One call in a daemon thread, so that a hung one keeps neither the pass nor the process."""

    call: Callable[[], T]
    bell: threading.Event = field(default_factory=threading.Event)
    """Rung once it has come to its end: whoever waits for several of them gives them the same."""
    _done: threading.Event = field(default_factory=threading.Event)
    _values: list[T] = field(default_factory=list)
    _errors: list[BaseException] = field(default_factory=list)

    def start(self, name: str) -> None:
        """Begin; `name` is the thread's."""
        # With what is bound to this thread's log: whatever the call logs is told with the pass that it belongs to.
        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=(self._run,), name=name, daemon=True).start()

    @property
    def is_over(self) -> bool:
        """Whether it has come to its end. Waits for nothing."""
        return self._done.is_set()

    def wait(self) -> bool:
        """Say whether it has come to its end; wait a moment for it."""
        return self._done.wait(GLANCE_SECONDS)

    def outwaited(self, patience: Patience) -> Unanswered | None:
        """Wait as long as that, a moment at least; None: it has come to its end."""
        while not self.wait():
            if patience.stopping():
                return Unanswered.INTERRUPTED
            if patience.clock.monotonic() >= patience.ends_at:
                return Unanswered.LATE
        return None

    def result(self) -> T:
        """Return what the call returned, or raise what it raised."""
        if self._errors:
            raise self._errors[0]
        return self._values[0]

    def _run(self) -> None:
        try:
            self._values.append(self.call())
        except BaseException as error:  # noqa: BLE001 - not handled here: raised again in the thread that waits
            self._errors.append(error)
        finally:
            self._done.set()
            self.bell.set()
