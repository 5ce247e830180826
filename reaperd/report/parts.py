"""What the tables of a pass and of a sweep have in common."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from providers.model import Coverage
from reaperd.report.paper import Paper

SHOWN_SCOPES = 10
"""So many whole scopes are shown unless all are asked for; those that failed are shown in any case."""


def draw_coverage(coverage: Sequence[Coverage], paper: Paper, limit: int | None, whose: str = "of ours") -> None:
    """Draw what was listed, what failed first."""
    if not coverage:
        paper.labelled("scopes", "none was listed")
        return
    failed = [entry for entry in coverage if not entry.ok]
    whole = sorted((entry for entry in coverage if entry.ok), key=lambda entry: (-entry.instances, entry.scope))
    listed = many(sum(entry.instances for entry in whole), "instance")
    text = f"{len(whole)} of {len(coverage)} listed whole, {listed} {whose}"
    paper.labelled("scopes", text, "bold red" if failed else "")
    for entry in failed:
        why = ": ".join(part for part in (entry.error_code or str(entry.failure), entry.detail) if part)
        paper.line(f"FAILED {entry.scope}: {why}", "red", indent=2)
    if whole:
        header = ("LISTED WHOLE", "ACCOUNT", "INSTANCES", "PAGES", "SECONDS")
        paper.rows(header, [_scope(entry) for entry in whole[:limit]], right=(2, 3, 4))
        draw_more(len(whole), limit, paper)


def _scope(entry: Coverage) -> tuple[str, ...]:
    took = f"{entry.duration.total_seconds():.1f}"
    return (str(entry.scope), entry.account or "-", f"{entry.instances:,}", f"{entry.pages:,}", took)


def draw_more(number: int, limit: int | None, paper: Paper) -> None:
    """Say how many were left out, and how to see them."""
    if limit is not None and number > limit:
        paper.line(f"… {number - limit:,} more: --all or --format json", indent=2)


def counts(names: Iterable[str]) -> str:
    """Return how often each name stands there, the most frequent first."""
    found = sorted(Counter(names).items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name} {number:,}" for name, number in found)


def span(duration: timedelta | None) -> str:
    """Return a duration in two units at most: `3d 4h`, `2h 10m`, `45s`, never below 0; `unknown` for None."""
    if duration is None:
        return "unknown"
    seconds = max(int(duration.total_seconds()), 0)
    days, hours, minutes = seconds // 86400, seconds % 86400 // 3600, seconds % 3600 // 60
    if days:
        return f"{days}d {hours}h"
    if hours:
        return f"{hours}h {minutes}m"
    return f"{minutes}m {seconds % 60}s" if minutes else f"{seconds}s"


def hourly(costs: Iterable[float]) -> str:
    """Return what several cost together."""
    return f"${dollars(math.fsum(costs))} an hour"


def dollars(amount: float) -> str:
    """Return an amount with two to four decimals."""
    whole, _, cents = f"{amount:,.4f}".partition(".")
    return f"{whole}.{cents.rstrip('0').ljust(2, '0')}"


def told_time(moment: datetime) -> str:
    """Return a time for a person."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def many(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
