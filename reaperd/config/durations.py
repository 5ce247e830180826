"""Durations as people write them: "90s", "15m", "1h30m", "2d"."""

from __future__ import annotations

import re
from datetime import timedelta

LONGEST = timedelta(days=3650)
"""A bound that keeps `now - duration` inside what a datetime can hold."""

_FORM = re.compile(r"(?:(?P<d>[0-9]{1,9})d)?(?:(?P<h>[0-9]{1,9})h)?(?:(?P<m>[0-9]{1,9})m)?(?:(?P<s>[0-9]{1,9})s)?")
_SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}


def parse_duration(text: str) -> timedelta:
    """Return what the text says.

    Raises:
        ValueError: if it is anything but whole numbers with units, the larger unit first.
    """
    found = _FORM.fullmatch(text)
    if not text or found is None:
        msg = 'is not a duration: write whole numbers with units, like "90s", "15m", "1h30m" or "2d"'
        raise ValueError(msg)
    seconds = sum(int(number) * _SECONDS[unit] for unit, number in found.groupdict(default="0").items())
    if seconds > LONGEST.total_seconds():
        msg = f'is too long: at most "{format_duration(LONGEST)}"'
        raise ValueError(msg)
    return timedelta(seconds=seconds)


def format_duration(duration: timedelta) -> str:
    """Return the shortest text that parses back to the same whole seconds."""
    rest = int(duration.total_seconds())
    parts: list[str] = []
    for unit, size in _SECONDS.items():
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"
