"""Dying at a given line: a process that kills itself with SIGKILL when it is about to run it.

`record` writes every distinct line down instead, in the order in which they were first about to run.
"""

from __future__ import annotations

import atexit
import json
import os
import secrets
import signal
import sys
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

EVERYWHERE = "REAPERD_KILL_EVERYWHERE"
ONE_IN = 4
"""In so many runs, every place is likely to have had its turn; `make soak` takes them all."""

T = TypeVar("T")


def some_of(places: Sequence[T]) -> Sequence[T]:
    """Return one in four places to die at, by chance these or those; all of them if that is asked for."""
    return places if os.environ.get(EVERYWHERE) else places[secrets.randbelow(ONE_IN) :: ONE_IN]


@dataclass(slots=True, kw_only=True)
class Crash:
    """Where to look, and where to die."""

    files: Iterable[str]
    """Ends of the paths of the modules that are watched."""
    at: str | None = None
    """`path:line`; None dies nowhere."""
    visit: int = 1
    """Dies when it comes to that line for the n-th time."""
    record: str | None = None
    """A file to write the lines into when the process ends: {"path:line": visits}."""
    _seen: dict[str, int] = field(default_factory=dict)
    _watched: dict[str, str | None] = field(default_factory=dict)
    _lock: Any = field(default_factory=threading.Lock)

    def arm(self) -> None:
        """Watch this thread from its next call on, and every thread that it starts."""
        if self.record:
            atexit.register(self._write)
        threading.settrace(self._enter)
        sys.settrace(self._enter)

    def _enter(self, frame: FrameType, event: str, arg: object) -> Any:
        path = frame.f_code.co_filename
        if path not in self._watched:
            self._watched[path] = next((end for end in self.files if path.endswith(end)), None)
        return None if self._watched[path] is None else self._line

    def _line(self, frame: FrameType, event: str, arg: object) -> Any:
        if event == "line":
            self._count(f"{self._watched[frame.f_code.co_filename]}:{frame.f_lineno}")
        return self._line

    def _count(self, place: str) -> None:
        with self._lock:
            visits = self._seen[place] = self._seen.get(place, 0) + 1
            if place == self.at and visits == self.visit:
                os.kill(os.getpid(), signal.SIGKILL)

    def _write(self) -> None:
        Path(self.record or os.devnull).write_text(json.dumps(self._seen), encoding="utf-8")
