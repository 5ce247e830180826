"""What is wrong with the ledger's file, in words: SQLite says what failed, and the file system shows why."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

from reaperd.errors import LedgerUnusableError
from reaperd.ledger.place import Place, place_of, user_name

Seeing = Callable[[Path], Place]
"""Says where a path lies: `place_of`."""

_AWAY = "Move it away, or use another state_dir"
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_FORBIDDEN = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_PRIMARY = 0xFF
"""SQLite's extended codes have the primary one in their lowest byte."""


def require_local(path: Path, seeing: Seeing = place_of) -> None:
    """Refuse a network file system (rule 30): locks do not hold there, so two daemons could both be the only one.

    Raises:
        LedgerUnusableError: if the path lies on one.
        OSError: if that cannot be seen.
    """
    place = seeing(path)
    if place.is_network:
        detail = f"it lies on a network file system ({place.filesystem}, at {place.path}), where locks do not hold"
        raise LedgerUnusableError(str(path), detail, "Move state_dir to a local disk")


_Error = sqlite3.Error | OSError | ValueError
"""What can go wrong with a file of ours. A ValueError is of what stands in it."""


def explained(path: Path, error: _Error, seeing: Seeing = place_of) -> LedgerUnusableError:
    """Return the error with what is wrong, where, whose that is, how much room there is, and what to do."""
    what, remedy = _judged(path, error)
    where = "" if is_busy(error) else _surroundings(path, seeing)
    return LedgerUnusableError(str(path), f"{what}{where}", remedy)


def _judged(path: Path, error: _Error) -> tuple[str, str]:
    said = str(error).rstrip(".")
    if _is_folder(path):
        return f"a folder is in its place ({said})", _AWAY
    if _is(error, {sqlite3.SQLITE_FULL}, _FULL):
        return f"the disk is full ({said})", "Make room there"
    if _is(error, {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}):
        return f"it is no ledger, or a damaged one ({said})", _AWAY
    if _is(error, {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM}, _FORBIDDEN):
        if _is_read_only(path):
            return f"its file system is read-only ({said})", "Mount it to be written, or use another state_dir"
        return f"it may not be written ({said})", f"Give the folder and what is in it to user {_who()}"
    kept = f"another process keeps it to itself ({said})", "`reaperd doctor` names that process"
    return kept if is_busy(error) else (said, "")


def _is(error: _Error, codes: set[int], numbers: frozenset[int] = frozenset()) -> bool:
    if isinstance(error, OSError):
        return error.errno in numbers
    return getattr(error, "sqlite_errorcode", 0) & _PRIMARY in codes


def is_busy(error: _Error) -> bool:
    """Say whether another process keeps the file from whoever asked."""
    return _is(error, {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def _is_read_only(path: Path) -> bool:
    try:
        return bool(os.statvfs(_nearest(path)).f_flag & os.ST_RDONLY)
    except OSError:
        return False


def _surroundings(path: Path, seeing: Seeing) -> str:
    try:
        place = seeing(path.parent)
    except OSError as error:
        return f"; its folder cannot be looked at by user {_who()}: {error.strerror}"
    free = f"{_size(place.free_bytes)} of {_size(place.total_bytes)} free"
    return f"; folder {place.path}: owner {place.owner}, mode {place.mode:04o}, {free}; this is user {_who()}"


def _nearest(path: Path) -> Path:
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def _who() -> str:
    return user_name(os.geteuid())


def _size(number: int) -> str:
    left = float(number)
    for unit in ("bytes", "KiB", "MiB"):
        if left < 1024:  # noqa: PLR2004 - of the next unit
            return f"{left:.0f} {unit}"
        left /= 1024
    return f"{left:.1f} GiB"
