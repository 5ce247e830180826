"""Who holds the ledger's write lock, found out without taking it: nothing is written, opened for writing or made."""

from __future__ import annotations

import fcntl
import os
import struct
from datetime import timedelta
from pathlib import Path

from reaperd.clock import SystemClock

PATIENCE = timedelta(seconds=5)
"""As long as a pass waits for it. Who holds it for so long at every look does not let go between two writes."""

_EVERY_SECONDS = 0.05
_WRITER_BYTE = 120
"""Of the -shm file: SQLite's WAL-index format gives the lock of the one writer this place."""
_FORM = "hhqqi0q"
"""Linux's struct flock, to its end."""


def holder_of_the_write_lock(ledger: Path, clock: SystemClock, patience: timedelta = PATIENCE) -> int | None:
    """Return the process that holds the write lock for as long as the patience lasts; None when nobody does.

    0 is one that cannot be seen from here. Not to be asked in a process that has the ledger open: closing the file
    lets go of every lock that the process has on it.
    """
    index = ledger.with_name(f"{ledger.name}-shm")
    ends_at = clock.monotonic() + patience.total_seconds()
    first = _holder(index)
    while first is not None and clock.monotonic() < ends_at:
        clock.sleep(_EVERY_SECONDS)
        if _holder(index) != first:
            return None
    return first


def _holder(index: Path) -> int | None:
    try:
        descriptor = os.open(index, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        # Without it nobody has the ledger open; who may not read it is told so elsewhere.
        return None
    try:
        asked = struct.pack(_FORM, fcntl.F_WRLCK, os.SEEK_SET, _WRITER_BYTE, 1, 0)
        kind, _, _, _, pid = struct.unpack(_FORM, fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))
    finally:
        os.close(descriptor)
    return None if kind == fcntl.F_UNLCK else max(pid, 0)
