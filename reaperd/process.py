"""Who is running: enough to tell, on this host, whether the holder of a lease is dead."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path

_START_TIME = 19
"""Index of starttime behind the command name in /proc/PID/stat (proc(5), field 22)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessIdentity:
    """One process, on one boot of one host. Two with equal fields are the same."""

    host: str
    boot_id: str
    """Empty where the kernel does not tell: then nothing can be proved."""
    pid_namespace: str
    pid: int
    started: str
    """In clock ticks since boot: a pid that was given anew has another one."""

    def is_dead(self) -> bool:
        """Say whether this process is proved dead. False when that cannot be known from here."""
        here = current()
        comparable = bool(self.boot_id) and (self.boot_id, self.pid_namespace) == (here.boot_id, here.pid_namespace)
        return comparable and self._has_ended()

    def _has_ended(self) -> bool:
        seen = _stat(self.pid)
        if seen is None:
            # A /proc may hide the processes of other users (hidepid, systemd's ProtectProc). The kernel does not.
            return not _is_there(self.pid)
        return seen.is_over or seen.started != self.started


@dataclass(frozen=True, slots=True)
class _Stat:
    """What /proc says of one process."""

    started: str
    is_over: bool
    """It is a zombie: nothing of it runs any more."""


def current() -> ProcessIdentity:
    """Return the identity of this process."""
    return ProcessIdentity(
        host=socket.gethostname(),
        boot_id=_read(Path("/proc/sys/kernel/random/boot_id")),
        pid_namespace=_link(Path("/proc/self/ns/pid")),
        pid=os.getpid(),
        started=_started(os.getpid()),
    )


def _started(pid: int) -> str:
    """Return when a process started; empty when that cannot be seen."""
    seen = _stat(pid)
    return "" if seen is None else seen.started


def _stat(pid: int) -> _Stat | None:
    """Return what can be seen of a process; None when nothing can."""
    fields = _read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    if len(fields) <= _START_TIME:
        return None
    return _Stat(started=fields[_START_TIME], is_over=fields[0] in {"Z", "X"})


def _is_there(pid: int) -> bool:
    """Return whether the kernel knows this pid, whoever may see it."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _link(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError:
        return ""
