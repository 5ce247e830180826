"""Memory that a pass took and let go of."""

from __future__ import annotations

import ctypes

_LIBC = ctypes.CDLL(None)


def give_back() -> None:
    """Return to the kernel what this process has let go of, where the C library can (glibc's malloc_trim).

    Of its own, glibc returns only what lies at the end of its heaps, and each thread may have a heap: what a look took
    in threads that are gone would stay with the process for ever. It takes some milliseconds.
    """
    trim = getattr(_LIBC, "malloc_trim", None)
    if trim is not None:
        trim(0)
