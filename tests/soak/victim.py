"""The daemon under test: a process of its own that runs the real jobs when it is told to."""

from __future__ import annotations

import gc
import multiprocessing
import os
import resource
import signal
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from reaperd.config import load
from reaperd.core.model import PassKind
from reaperd.daemon.daemon import Daemon, Signals
from reaperd.report.logs import configure_logs
from reaperd.wiring.daemon import Given, build_daemon
from tests.soak.clock import SoakClock

KEPT_LINES = 400
_UNLIMITED = resource.RLIM_INFINITY
_PATIENCE_SECONDS = 120.0


class VictimDiedError(AssertionError):
    """The daemon ended, or hung, although nobody killed it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the daemon says of one pass."""

    outcome: str
    reason: str | None
    detail: str
    digest: str | None
    looked: bool
    """Whether it was a complete look."""
    now: datetime
    """The right time by its clock, afterwards."""


class Victim:
    """The process, seen from outside."""

    def __init__(self, config: Path, environ: Mapping[str, str], now: datetime) -> None:
        """Fork it. To be called while this process has one thread."""
        context = multiprocessing.get_context("fork")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_live, args=(theirs, config, dict(environ), now), daemon=True)
        self._process.start()
        theirs.close()
        self.pid = self._process.pid or 0
        self.address: tuple[str, int] | None = None

    def started(self) -> tuple[str, int]:
        """Wait until it is up; return where it listens."""
        self.address = self.answer()
        return self.address

    def begin(self, verb: str, **fields: Any) -> None:
        """Tell it to do something."""
        try:
            self._pipe.send((verb, fields))
        except OSError as error:
            raise VictimDiedError from error

    def done(self, seconds: float = 0.0) -> bool:
        """Say whether it has answered, or died."""
        return self._pipe.poll(seconds)

    def answer(self) -> Any:
        """Return what it says; VictimDiedError when it says nothing any more."""
        if not self._pipe.poll(_PATIENCE_SECONDS):
            message = "the daemon hangs"
            raise VictimDiedError(message)
        try:
            return self._pipe.recv()
        except (EOFError, OSError) as error:
            message = "the daemon died"
            raise VictimDiedError(message) from error

    def ask(self, verb: str, **fields: Any) -> Any:
        """Tell it to do something, and return what it says then."""
        self.begin(verb, **fields)
        return self.answer()

    def kill(self) -> None:
        """End it as `kill -9` does."""
        os.kill(self.pid, signal.SIGKILL)
        self.buried()

    def buried(self) -> int | None:
        """Wait for its end and return its exit code."""
        self._process.join(_PATIENCE_SECONDS)
        self._pipe.close()
        code = self._process.exitcode
        if code is not None:
            self._process.close()
        return code


# ---------------------------------------------------------------- inside the process


def _live(pipe: Connection, config: Path, environ: dict[str, str], now: datetime) -> None:
    os.environ.clear()
    os.environ.update(environ)
    threading.current_thread().name = "MainThread"
    driven = _Driven(config, now)
    pipe.send(driven.address)
    while True:
        try:
            verb, fields = pipe.recv()
        except EOFError:
            return
        pipe.send(getattr(driven, verb)(**fields))


class _Driven:
    """The daemon with all that `reaperd run` gives it but the rhythm: a pass starts when it is asked for."""

    def __init__(self, config: Path, now: datetime) -> None:
        self.clock = SoakClock(now)
        self.tail = _Tail()
        log = configure_logs(format_="json", now=self.clock.now, stream=self.tail, environ=os.environ)
        self.signals = signals = Signals(stop=threading.Event(), reload=threading.Event())
        self.daemon: Daemon = build_daemon(
            Given(
                load=lambda: load(config, os.environ),
                log=log,
                clock=self.clock,
                signals=signals,
                environ=os.environ,
            )
        )
        self.parts = self.daemon._with
        server = self.parts.serve(self.daemon._desk)
        assert server is not None
        server.start()
        self.address = server.address
        self.daemon._tell_settings()

    def reconcile(self, at: datetime, rate: float, wrong_by: timedelta) -> Told:
        """Renew the lease, as its thread does, and run the job of a reconcile pass."""
        self.clock.set(at, rate=rate, wrong_by=wrong_by)
        self.parts.metrics.leading(self.parts.leadership.step())
        standing = self.parts.standing
        before = standing.looked_at.get(PassKind.RECONCILE)
        self.daemon.reconcile()
        last = standing.last[PassKind.RECONCILE]
        return Told(
            outcome=str(last.outcome),
            reason=last.reason,
            detail=last.detail,
            digest=standing.digest,
            looked=standing.looked_at.get(PassKind.RECONCILE) != before,
            now=self.clock.right(),
        )

    def audit(self) -> str:
        """Run the job of an audit sweep."""
        self.daemon.audit()
        return str(self.parts.standing.last[PassKind.AUDIT].outcome)

    def reload(self) -> None:
        """Do what SIGHUP does."""
        self.signals.reload.set()
        self.daemon._reload(self.clock.monotonic())
        while self.daemon._reading is not None or self.daemon._coming is not None:
            self.daemon._reload(self.clock.monotonic())

    def limit(self, file_size: int | None) -> None:
        """Let no file be written past so many bytes, as on a full disk; None ends that."""
        soft = _UNLIMITED if file_size is None else file_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, _UNLIMITED))

    def collect(self) -> int:
        """Let go of what is only waiting to be collected."""
        return gc.collect()

    def said(self) -> list[str]:
        """Return the end of its log."""
        return list(self.tail.lines)

    def threads(self) -> list[str]:
        """Return the names of its threads."""
        return sorted(thread.name for thread in threading.enumerate())


class _Tail:
    """The end of a log, in memory: a file would be struck by the full disk that a fault plays."""

    def __init__(self) -> None:
        self.lines: deque[str] = deque(maxlen=KEPT_LINES)

    def write(self, text: str) -> int:
        self.lines.append(text.rstrip())
        return len(text)

    def flush(self) -> None:
        """Nothing is kept back."""

    def isatty(self) -> bool:
        return False
