"""Times as a registry writes them. Pure: the time zone of the host changes nothing.

Read strictly: a date, `T` or a blank, a time with seconds, an optional fraction, an optional offset. Without an offset
it is UTC. Whatever else Python would take for a time (`20260110`, a week date, a date alone) is no time here, because
it is more likely a mistake than a time, and an unreadable time protects its machine.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?"
    r"(?:Z|[+-][0-9]{2}(?::?[0-5][0-9])?)?"
)

_DIGITS = bytes.maketrans(b"123456789", b"0" * 9)
_SHAPES = frozenset(
    f"0000-00-00{blank}00:00:00{'.' if digits else ''}{'0' * digits}Z".encode()
    for blank in "T "
    for digits in range(10)
)
"""What is left of a time in UTC when every digit is made a 0."""
_WIDTHS = (21, *range(23, 32))
"""How long the line of a time may be, with its newline: without a fraction of a second, and with one to nine digits."""


def parse_time(text: str) -> datetime | None:
    """Return the time in UTC, or None for text that is no time. Digits beyond microseconds are cut off."""
    if _TIME.fullmatch(text) is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):  # the 31st of April; an offset of a day; a time before the year 1
        return None


def parse_times(texts: Sequence[str]) -> list[datetime] | None:
    """Return what `parse_time` would of each, at a fraction of its price; None if one of them does not say to be UTC.

    None too if one is no time. It says to be UTC with `Z` or with `+00:00`.
    """
    try:
        # Each with a newline behind it. One inside a text makes it no ISO time.
        lines = "\n".join((*texts, ""))
    except TypeError:  # one of them is no text
        return None
    if not (_are_spelled_alike(lines, len(texts)) or _have_shapes(lines)):
        return None
    try:
        return list(map(datetime.fromisoformat, texts))
    except ValueError:
        return None


def _are_spelled_alike(lines: str, number: int) -> bool:
    """Say of many lines whether all are as long, and punctuated as RFC 3339 has it. Digits are for who parses them."""
    width = len(lines) // number if number else 0
    if width * number != len(lines) or width not in _WIDTHS or "T24" in lines:
        return False
    marks = {4: "-", 7: "-", 10: "T", 13: ":", 16: ":", 19: "." if width > _WIDTHS[0] else "Z", -2: "Z", -1: "\n"}
    return all(lines[place % width :: width] == mark * number for place, mark in marks.items())


def _have_shapes(lines: str) -> bool:
    """Say of any lines whether each is a time in UTC but for its digits."""
    # Later Pythons know an hour of 24.
    if "T24:" in lines or " 24:" in lines:
        return False
    shapes = lines.replace("+00:00\n", "Z\n").encode("utf-8", "replace").translate(_DIGITS)
    return _SHAPES.issuperset(shapes.splitlines())


def format_time(moment: datetime) -> str:
    """Return the one spelling that we write: UTC, microseconds, `Z`. Sorts as text in the order of time.

    Raises:
        ValueError: for a naive time, or one that is out of range in UTC.
    """
    if moment.tzinfo is None:
        msg = f"a time without a time zone cannot be written: {moment}"
        raise ValueError(msg)
    try:
        return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
    except OverflowError as error:
        msg = f"a time that is out of range in UTC cannot be written: {moment}"
        raise ValueError(msg) from error
