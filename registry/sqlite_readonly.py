"""Open a SQLite file for reading without leaving a trace: nothing is created, repaired or checkpointed.

Which way in is right depends on the file, and the wrong one reads a wrong answer or leaves files behind:

* A rollback journal, or a `-wal` beside the file: a plain `mode=ro`. SQLite's own locks keep the reading whole.
* WAL mode and no `-wal` (its last writer closed it): `mode=ro` would create `-wal` and `-shm`, or fail where the folder
  cannot be written. `immutable=1` reads it without either, but also without locks; so afterwards the file must be the
  same, unchanged, and still without a `-wal`. Otherwise what was read is thrown away.

What a reader cannot help: beside a `-wal` without its `-shm` (only a copy looks so) SQLite makes one where the folder
can be written, and any reader of a `-wal` writes into the `-shm`, which is memory that all of them share.

The file itself is never opened by hand: closing such a descriptor would drop every lock that this process holds on it.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from registry.model import RegistryFault

ATTEMPTS = 10
"""How often a reading starts again because a writer came in between."""

COPIED_AT_MOST = 1 << 30
"""Of so many bytes of somebody's memory we make use for a moment, and of no more."""

_SMALLEST_PAGE = 512
_MOUNT_POINT = 4
"""Index of the mount point in a line of /proc/self/mountinfo (proc(5))."""

T = TypeVar("T")


class ReadOnlyOpenError(Exception):
    """The file cannot be read for what it is. Nothing was created or changed, and nothing that was read may be used."""

    def __init__(self, fault: RegistryFault, detail: str) -> None:
        """Keep the fault and what was seen."""
        self.fault = fault
        self.detail = detail
        super().__init__(f"{fault}: {detail}")


def read_whole(path: Path, busy_timeout: timedelta, work: Callable[[sqlite3.Connection], T]) -> T:
    """Return what `work` read in one transaction, starting again when a writer came in between.

    Raises:
        ReadOnlyOpenError: as for read_only; `changed_while_read` only when it happened every time.
    """
    for _ in range(ATTEMPTS - 1):
        try:
            return _read_once(path, busy_timeout, work)
        except ReadOnlyOpenError as error:
            if error.fault is not RegistryFault.CHANGED_WHILE_READ:
                raise
    return _read_once(path, busy_timeout, work)


def read_apart(
    path: Path, busy_timeout: timedelta, work: Callable[[sqlite3.Connection], T], *, at_most: int = COPIED_AT_MOST
) -> T:
    """Return what `work` read of one state of the file, without keeping its writers from committing meanwhile.

    Beside a `-wal` nobody is kept from anything. Otherwise the pages are copied into memory, which takes a fraction of
    a second for a million rows, and `work` gets the copy, however long it takes. A file of more than `at_most` bytes
    is read where it is.

    Raises:
        ReadOnlyOpenError: as for read_whole.
    """
    look = _look(path)
    if look.wal is not None or look.size > at_most:
        return read_whole(path, busy_timeout, work)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as copy:
        copy.text_factory = _decode
        read_whole(path, busy_timeout, lambda source: source.backup(copy))
        try:
            # As little of it is checked as of a file that is opened to be read.
            copy.execute("PRAGMA ignore_check_constraints = ON")
            return work(copy)
        except sqlite3.Error as error:
            raise ReadOnlyOpenError(_fault_of(error), str(error)) from error


@contextmanager
def read_only(path: Path, busy_timeout: timedelta) -> Iterator[sqlite3.Connection]:
    """Give a connection inside one read transaction. What was read counts only once the block has ended well.

    Raises:
        ReadOnlyOpenError: for a file that cannot be opened or read, at any point in the block or at its end; no error
            of sqlite3 leaves it.
    """
    before = _look(path)
    still = before.wal is None and _is_in_wal_mode(before.real, busy_timeout)
    if still:
        _require_its_folder(before)
    try:
        with closing(_connect(before.real, "immutable=1" if still else "mode=ro", busy_timeout)) as connection:
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            yield connection
    except ReadOnlyOpenError:
        # A writer that came in between explains what looks like a fault of the file.
        _require_unchanged(path, before, still=still)
        raise
    except sqlite3.Error as error:
        _require_unchanged(path, before, still=still)
        translated = _translated(error, before)
        if translated.fault is RegistryFault.PERMISSION:
            _require_same_wal(path, before)
        raise translated from error
    _require_unchanged(path, before, still=still)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """What the file system says about a database file, without opening it."""

    real: Path
    """Without symbolic links, as SQLite names the files beside it."""
    links: int
    """How many names it has."""
    identity: tuple[int, int]
    state: tuple[int, int, int]
    """Size and times. A checkpoint changes them; a commit to a `-wal` does not."""
    wal: tuple[int, int, int] | None
    """Which `-wal` stands beside it, by inode, size and time; None without one."""

    @property
    def size(self) -> int:
        """Return the number of its bytes."""
        return self.state[0]


def _read_once(path: Path, busy_timeout: timedelta, work: Callable[[sqlite3.Connection], T]) -> T:
    with read_only(path, busy_timeout) as connection:
        result = work(connection)
    return result  # noqa: RET504  # only the end of the block proves what was read


def _look(path: Path) -> _Look:
    try:
        seen = path.stat()
        real = path.resolve(strict=True)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ReadOnlyOpenError(RegistryFault.MISSING, _missing(path)) from error
    except PermissionError as error:
        raise ReadOnlyOpenError(RegistryFault.PERMISSION, "a folder on its path may not be searched") from error
    except (OSError, ValueError, RuntimeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ReadOnlyOpenError(RegistryFault.NOT_A_FILE, f"the path names no file: {why}") from error
    if not stat.S_ISREG(seen.st_mode):
        raise ReadOnlyOpenError(RegistryFault.NOT_A_FILE, f"it is {_kind(seen.st_mode)}, not a file")
    if seen.st_size == 0:
        raise ReadOnlyOpenError(RegistryFault.EMPTY_FILE, "it has zero bytes")
    if seen.st_size < _SMALLEST_PAGE:
        raise ReadOnlyOpenError(RegistryFault.NOT_A_DATABASE, f"it has {seen.st_size} bytes, too few for a database")
    return _Look(
        real=real,
        links=seen.st_nlink,
        identity=(seen.st_dev, seen.st_ino),
        state=(seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns),
        wal=_wal(real),
    )


def _require_its_folder(before: _Look) -> None:
    """Refuse a file whose `-wal`, if a writer has one, would stand beside another name of it.

    That is a file mounted by itself into a container, and one with a second hard link: it would be read as of its last
    checkpoint, and the newest rows would be missing.
    """
    if before.links > 1:
        detail = f"it has {before.links} names (hard links), and the newest rows may stand beside another one"
        raise ReadOnlyOpenError(RegistryFault.ALONE, detail)
    try:
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    points = {line.split()[_MOUNT_POINT] for line in mounts.splitlines() if len(line.split()) > _MOUNT_POINT}
    if str(before.real).replace(" ", "\\040") in points:
        raise ReadOnlyOpenError(RegistryFault.ALONE, "it is mounted by itself, without the files that stand beside it")


def _missing(path: Path) -> str:
    if os.path.islink(path):  # noqa: PTH114 - never raises, whatever became of the path
        return f"it is a symbolic link to {os.path.realpath(path)}, and there is no such file"
    return "there is no such file"


def _kind(mode: int) -> str:
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(mode), "a device")


def _wal(real: Path) -> tuple[int, int, int] | None:
    try:
        seen = _beside(real, "-wal").stat()
    except FileNotFoundError:
        return None
    # An empty one without its -shm is a leftover that holds nothing.
    if seen.st_size == 0 and not _beside(real, "-shm").exists():
        return None
    return (seen.st_ino, seen.st_size, seen.st_ctime_ns)


def _beside(real: Path, suffix: str) -> Path:
    return real.with_name(real.name + suffix)


def _is_in_wal_mode(real: Path, busy_timeout: timedelta) -> bool:
    # SQLite cannot read WAL mode without locks and says so before it creates anything. Every other error comes up
    # again, and is named, at the real opening.
    try:
        with closing(_connect(real, "mode=ro&nolock=1", busy_timeout)) as connection:
            connection.execute("PRAGMA schema_version").fetchone()
    except sqlite3.Error as error:
        return _primary_code(error) == sqlite3.SQLITE_CANTOPEN
    return False


def _connect(real: Path, query: str, busy_timeout: timedelta) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"file://{quote(os.fsencode(real))}?{query}",
        uri=True,
        timeout=busy_timeout.total_seconds(),
        isolation_level=None,
    )
    # Broken text becomes U+FFFD, for the reader to see and name, instead of an OperationalError without a code.
    connection.text_factory = _decode
    return connection


def _decode(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def _require_unchanged(path: Path, before: _Look, *, still: bool) -> None:
    after = _look_again(path)
    if after is None or after.identity != before.identity:
        raise ReadOnlyOpenError(RegistryFault.CHANGED_WHILE_READ, "another file was put in its place while it was read")
    if still and (after.wal is not None or after.state != before.state):
        raise ReadOnlyOpenError(RegistryFault.CHANGED_WHILE_READ, "it was written while it was read")


def _require_same_wal(path: Path, before: _Look) -> None:
    after = _look_again(path)
    if after is None or after.wal != before.wal:
        raise ReadOnlyOpenError(RegistryFault.CHANGED_WHILE_READ, "a -wal came or went while it was read")


def _look_again(path: Path) -> _Look | None:
    try:
        return _look(path)
    except ReadOnlyOpenError:
        return None


def _translated(error: sqlite3.Error, before: _Look) -> ReadOnlyOpenError:
    primary = _primary_code(error)
    extended = getattr(error, "sqlite_errorcode", None)
    if extended == sqlite3.SQLITE_READONLY_ROLLBACK:
        detail = "a write broke off half-way; only someone who may write can undo it"
        return ReadOnlyOpenError(RegistryFault.DAMAGED, detail)
    if extended in _OPENING:
        return ReadOnlyOpenError(RegistryFault.CHANGED_WHILE_READ, "a writer was just opening it")
    if primary in _PERMISSION and before.wal is not None:
        detail = f"the -wal file beside it cannot be read without write access to the folder ({error})"
        return ReadOnlyOpenError(RegistryFault.PERMISSION, detail)
    if primary in _PERMISSION:
        return ReadOnlyOpenError(RegistryFault.PERMISSION, f"this user cannot open it for reading ({error})")
    return ReadOnlyOpenError(_fault_of(error), str(error))


def _fault_of(error: sqlite3.Error) -> RegistryFault:
    return _FAULTS.get(_primary_code(error), RegistryFault.DAMAGED)


def _primary_code(error: sqlite3.Error) -> int:
    code = getattr(error, "sqlite_errorcode", None)
    return code & 0xFF if isinstance(code, int) else sqlite3.SQLITE_ERROR


# A reader without write permission cannot make the index of a -wal; whoever holds the file is about to.
_OPENING = frozenset({sqlite3.SQLITE_READONLY_RECOVERY, sqlite3.SQLITE_READONLY_CANTINIT})

_PERMISSION = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM})

_FAULTS = {
    sqlite3.SQLITE_BUSY: RegistryFault.LOCKED,
    sqlite3.SQLITE_LOCKED: RegistryFault.LOCKED,
    sqlite3.SQLITE_PROTOCOL: RegistryFault.LOCKED,
    sqlite3.SQLITE_NOTADB: RegistryFault.NOT_A_DATABASE,
}
