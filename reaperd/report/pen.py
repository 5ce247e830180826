"""Writing a line of the log: whole, alone, and at no price."""

from __future__ import annotations

import io
import os
import select
import stat
import sys
import threading
import weakref
from collections.abc import Callable
from queue import SimpleQueue
from typing import Protocol, TextIO

MOMENT_SECONDS = 0.1
"""So long a caller waits for its line to be out, and not again before some line is."""
LAST_CHANCE_SECONDS = 1.0
"""For what is still to be written when the process ends."""
ROOM = 1_000_000
"""So many characters wait for a stream that takes none; a line that comes later is lost, and counted."""


class Pen:
    """Writes lines to a stream, from any thread. A stream that takes no more costs the line, never the process.

    Nor does one that takes nothing for now: a pipe that nobody empties, a terminal that was stopped, a journal that
    hangs. A thread of its own waits for it.
    """

    def __init__(self, stream: TextIO, lost: Callable[[int], str]) -> None:
        """Nothing is written yet; `lost` makes the line that says how many were not."""
        sheet = _Sheet(stream, lost)
        self._desk: _Desk = _Now(sheet) if sheet.never_waits else _Later(sheet)
        weakref.finalize(self, self._desk.close)

    def write(self, text: str) -> None:
        """Write one event."""
        self._desk.take(text)

    debug = info = warning = error = critical = write
    """What structlog calls."""


class _Sheet:
    """Where the lines go. For one thread at a time.

    It goes past the stream to the descriptor where there is one. The stream would keep a line that it could not
    write, try it again with the next, and end the process with exit code 120 for it.
    """

    def __init__(self, stream: TextIO, lost: Callable[[int], str]) -> None:
        self._stream = stream
        self._descriptor = descriptor_of(stream)
        self._encoding = getattr(stream, "encoding", None) or "utf-8"
        self._tell = lost
        self._lost = 0
        self._torn = False

    @property
    def never_waits(self) -> bool:
        """True of memory and of a file: they take a line, or refuse it."""
        if self._descriptor is None:
            return True
        try:
            return stat.S_ISREG(os.fstat(self._descriptor).st_mode)
        except OSError:
            return False

    def put(self, text: str) -> None:
        """Write one line, and before it how many were lost."""
        self.confess(0)
        self._lost += not self._written(text)

    def confess(self, lost: int) -> None:
        """Say how many lines were lost, these included, if the stream takes any again."""
        self._lost += lost
        if self._lost and self._written(self._tell(self._lost)):
            self._lost = 0

    def _written(self, text: str) -> bool:
        # What was left of a line when the disk was full must not spoil the next one.
        line = f"\n{text}\n" if self._torn else f"{text}\n"
        try:
            self._write(line.encode(self._encoding, "backslashreplace"))
        except Exception:  # noqa: BLE001 - EPIPE, ENOSPC, a closed stream: there is nowhere to tell of it, so it is counted
            return False
        return True

    def _write(self, line: bytes) -> None:
        if self._descriptor is None:
            self._stream.write(line.decode(self._encoding))
            self._stream.flush()
            return
        written = self._write_some(self._descriptor, line)
        while written < len(line):
            self._torn = True
            written += self._write_some(self._descriptor, line[written:])
        self._torn = False

    def _write_some(self, descriptor: int, data: bytes) -> int:
        while True:
            try:
                return os.write(descriptor, data)
            except BlockingIOError:
                # Somebody who shares the open file made it so: it is his to decide, and ours to wait.
                ready = select.poll()
                ready.register(descriptor, select.POLLOUT)
                ready.poll()


class _Desk(Protocol):
    def take(self, text: str) -> None: ...

    def close(self) -> None: ...


class _Now:
    """Writes at once."""

    def __init__(self, sheet: _Sheet) -> None:
        self._sheet = sheet
        # One thread may come in again, from a signal handler or a finalizer.
        self._lock = threading.RLock()

    def take(self, text: str) -> None:
        with self._lock:
            self._sheet.put(text)

    def close(self) -> None:
        """Nothing is left."""


class _Later:
    """Has a thread write that may wait as long as the stream wants.

    The descriptor is not made non-blocking for it: that would be so for everybody who shares the open file, the shell
    that started us included. Nor is it asked beforehand whether it would take a line: somebody else may be quicker.
    """

    def __init__(self, sheet: _Sheet) -> None:
        self._sheet = sheet
        # It may be entered again by the same thread: its documentation promises that.
        self._lines: SimpleQueue[tuple[str | None, threading.Event]] = SimpleQueue()
        self._counting = threading.RLock()
        self._waiting = 0
        """Characters that are not out."""
        self._lost = 0
        self._stuck = False
        self._thread = threading.Thread(target=self._work, name="log", daemon=True)
        self._thread.start()

    def take(self, text: str) -> None:
        """Have it written, and wait for that a moment: what a process says last before it is killed is then seen."""
        with self._counting:
            # All that come after a lost one are lost until it is told: the gap is then where it is said to be.
            if self._lost or self._waiting > ROOM:
                self._lost += 1
                return
            self._waiting += len(text)
        out = threading.Event()
        self._lines.put((text, out))
        if not self._stuck and self._may_be_waited_for() and not out.wait(MOMENT_SECONDS):
            self._stuck = True

    def close(self) -> None:
        """End the thread once everything is out; wait for that no longer than for a last chance."""
        out = threading.Event()
        self._lines.put((None, out))
        if self._may_be_waited_for():
            out.wait(LAST_CHANCE_SECONDS)

    def _may_be_waited_for(self) -> bool:
        """Say no in the thread itself, where a finalizer may log, and where there is none: at the end, after a fork."""
        there = self._thread.is_alive() and not sys.is_finalizing()
        return there and threading.current_thread() is not self._thread

    def _work(self) -> None:
        while True:
            text, out = self._lines.get()
            if text is None:
                out.set()
                return
            self._sheet.put(text)
            self._sheet.confess(self._lost_until(text))
            out.set()

    def _lost_until(self, text: str) -> int:
        """Return how many lines were lost before everything was out; 0 while something waits."""
        with self._counting:
            self._stuck = False
            self._waiting -= len(text)
            if self._waiting:
                return 0
            lost, self._lost = self._lost, 0
            return lost


def descriptor_of(stream: TextIO) -> int | None:
    """Return what is behind a stream; None for one that is only in memory."""
    try:
        return stream.fileno()
    except (AttributeError, io.UnsupportedOperation, ValueError):
        return None
