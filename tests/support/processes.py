"""The command line as processes: cold ones, as a person starts them, and warm ones, forked from a zygote."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol, Self

ROOT = Path(__file__).parents[2]
PATIENCE = 120.0
"""Seconds until a process that should have ended is taken for hung, on a busy machine."""

_KEPT = ("PATH", "COV", "LLVM")
"""Beginnings of the variables that a child gets from us. Nothing else of the caller's setup reaches it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a command left behind."""

    code: int
    """The exit code; negative for a signal."""
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """Return stdout, which is nothing but one JSON document."""
        document: dict[str, Any] = json.loads(self.out)
        return document

    @property
    def events(self) -> list[dict[str, Any]]:
        """Return the log, which is JSON line by line; other lines are for people."""
        return [json.loads(line) for line in self.err.splitlines() if line.startswith("{")]


class HungError(AssertionError):
    """A process did not end in time; carries what it had said on stderr. It was killed."""


class Running(Protocol):
    """A command under way."""

    pid: int

    def wait(self, seconds: float = PATIENCE) -> Result:
        """Return what it left; HungError when it does not end."""
        ...

    def ended(self) -> bool:
        """Say whether it has ended."""
        ...

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send it a signal."""
        ...

    def events(self) -> list[dict[str, Any]]:
        """Return what it has logged so far."""
        ...


def environment(**more: str) -> dict[str, str]:
    """Return the environment of a child: ours is not passed on, but for what coverage needs."""
    kept = {name: value for name, value in os.environ.items() if name.startswith(_KEPT)}
    # A time zone that no code may lean on, spelled so that no time zone database is needed.
    return kept | {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error", "TZ": "ODD-5:45", "LANG": "C.UTF-8", **more}


class _Command:
    """What a cold and a warm command have in common: two files for what it says, and a result once it has ended."""

    pid: int

    def __init__(self) -> None:
        self._files = (_file(), _file())
        self._result: Result | None = None

    def wait(self, seconds: float = PATIENCE) -> Result:
        if self._result is None:
            code = self._wait(seconds)
            out, err = (Path(file.name).read_text(encoding="utf-8") for file in self._files)
            self._close()
            if code is None:
                raise HungError(err)
            self._result = Result(code=code, out=out, err=err)
        return self._result

    def ended(self) -> bool:
        return self._result is not None or self._has_ended()

    def kill(self, number: int = signal.SIGKILL) -> None:
        if not self.ended():
            os.kill(self.pid, number)

    def events(self) -> list[dict[str, Any]]:
        text = self._result.err if self._result is not None else Path(self._files[1].name).read_text(encoding="utf-8")
        # The last line may be half written.
        whole = text[: text.rfind("\n") + 1]
        return [json.loads(line) for line in whole.splitlines() if line.startswith("{")]

    def close(self) -> None:
        """End it, if nobody waited for it."""
        if self._result is None:
            self.kill()
            with suppress(HungError):
                self.wait()

    def _wait(self, seconds: float) -> int | None:
        """Return the exit code; None after so many seconds, the process being killed then."""
        raise NotImplementedError

    def _has_ended(self) -> bool:
        raise NotImplementedError

    def _close(self) -> None:
        for file in self._files:
            file.close()


class Cold(_Command):
    """`python -m reaperd`."""

    def __init__(self, argv: tuple[str, ...], env: Mapping[str, str], cwd: Path, **more: Any) -> None:
        super().__init__()
        out, err = self._files
        command = [sys.executable, "-m", "reaperd", *argv]
        self._process = subprocess.Popen(
            command, env=dict(env), cwd=cwd, stdin=subprocess.DEVNULL, stdout=out, stderr=err, **more
        )
        self.pid = self._process.pid

    def _wait(self, seconds: float) -> int | None:
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            return None

    def _has_ended(self) -> bool:
        return self._process.poll() is not None


class Warm(_Command):
    """A command forked from the zygote."""

    def __init__(self, path: Path, argv: tuple[str, ...], env: Mapping[str, str], cwd: Path, **more: Any) -> None:
        super().__init__()
        out, err = self._files
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(path))
        self._lines = self._socket.makefile("r", encoding="utf-8")
        files = {"cwd": str(cwd), "out": out.name, "err": err.name}
        command = {"argv": argv, "env": dict(env), **files, **more}
        self._socket.sendall(json.dumps(command).encode() + b"\n")
        self.pid = int(json.loads(self._lines.readline())["pid"])

    def _wait(self, seconds: float) -> int | None:
        self._socket.settimeout(seconds)
        try:
            return int(json.loads(self._lines.readline())["code"])
        except TimeoutError:
            os.kill(self.pid, signal.SIGKILL)
            return None

    def _has_ended(self) -> bool:
        self._socket.settimeout(0)
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        return True

    def _close(self) -> None:
        super()._close()
        self._lines.close()
        self._socket.close()


class Crew:
    """Starts commands and ends those that are left over."""

    def __init__(self, zygote: Path) -> None:
        self._zygote = zygote
        self._started: list[Cold | Warm] = []

    def cold(self, *argv: str, env: Mapping[str, str], cwd: Path, **more: Any) -> Running:
        """Start `python -m reaperd`; `more` is Popen's."""
        return self._kept(Cold(argv, env, cwd, **more))

    def warm(self, *argv: str, env: Mapping[str, str], cwd: Path, **more: Any) -> Running:
        """Fork a command; `more` goes to the zygote: `crash`."""
        return self._kept(Warm(self._zygote, argv, env, cwd, **more))

    def _kept(self, running: Any) -> Running:
        self._started.append(running)
        started: Running = running
        return started

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        for running in self._started:
            running.close()


@contextmanager
def zygote(folder: Path) -> Iterator[Path]:
    """Run the process that others are forked from, and yield its socket."""
    path = folder / "zygote"
    command = [sys.executable, "-m", "tests.support.zygote", str(path)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, env=environment(), cwd=ROOT, **pipes) as process:
        if process.stdout is None or process.stdout.readline() != b"ready\n":
            message = "the zygote did not start"
            raise RuntimeError(message)
        yield path


def until(happened: Callable[[], Any], seconds: float = PATIENCE) -> None:
    """Wait until something is true."""
    ends_at = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < ends_at, "it did not happen"
        time.sleep(0.01)


def _file() -> IO[bytes]:
    return tempfile.NamedTemporaryFile(prefix="reaperd-")  # closed with its process
