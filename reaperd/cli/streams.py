"""The three standard streams, whoever started us."""

from __future__ import annotations

import os
import sys


def occupy_streams() -> None:
    """Put the null device wherever a standard stream is closed, as after `2>&-`.

    Python says None then, which nothing expects. Worse: the next file that is opened gets the number, the ledger for
    example, and whatever a C library complains of is written into it.
    """
    for number in range(3):
        if _is_closed(number):
            # The lowest number that is free is the one that it gets.
            os.set_inheritable(_null(), True)  # noqa: FBT003 - os' own
    # Never by their numbers: something may have been opened there before we came.
    if sys.stdin is None:
        sys.stdin = os.fdopen(_null(), "r", encoding="utf-8", closefd=False)
    if sys.stdout is None:
        sys.stdout = os.fdopen(_null(), "w", encoding="utf-8", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(_null(), "w", encoding="utf-8", closefd=False)


def _is_closed(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return True
    return False


def _null() -> int:
    return os.open(os.devnull, os.O_RDWR)
