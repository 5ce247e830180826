"""What is to be reached, and whether it was."""

# ruff: noqa: T201 - it prints

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench import candidates, table
from bench.candidates import Candidate
from bench.table import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One figure with its limit."""

    name: str
    value: float
    limit: float
    at_least: bool = False
    """Whether the limit is the least that it may be, and not the most."""

    @property
    def reached(self) -> bool:
        """Return whether it is."""
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    @property
    def is_wrong(self) -> bool:
        """Return whether it counts faults, of which none is put up with on any machine, and there are some."""
        return not self.limit and not self.reached


HEADINGS = ("figure", "is", "to reach", "")


def cells(target: Target) -> Sequence[str]:
    """Return a target as it is shown."""
    sign = "≥" if target.at_least else "≤"
    return (
        target.name,
        f"{target.value:.2f}",
        f"{sign} {target.limit:g}",
        "reached" if target.reached else "NOT REACHED",
    )


def finish(targets: Sequence[Target], result: Path | None) -> int:
    """Print the targets of one measurement, write them down if asked to, and return its exit code."""
    print(table.plain(HEADINGS, map(cells, targets)))
    if result is not None:
        result.write_text(json.dumps([asdict(target) for target in targets]), encoding="utf-8")
    return int(not all(target.reached for target in targets))


def beside_peers(rows: Iterable[Row]) -> list[Target]:
    """Return what one workload says, as far as its candidates ran."""
    by_name = {row.candidate: row for row in rows}

    def ratio(one: Candidate, other: Candidate, field: str) -> float | None:
        above, below = (_figure(by_name, each, field) for each in (one, other))
        return above / below if above and below else None

    plan, listing, raw = candidates.PLAN, candidates.LISTING, candidates.RAW
    custodian, nuke = candidates.CLOUD_CUSTODIAN, candidates.AWS_NUKE
    wall, peak = "wall_seconds", "peak_mb"
    found = [
        ("CPU of reaperd's listing over http.client + lxml", ratio(listing, raw, "look_cpu_seconds"), 1.4, False),
        ("Cloud Custodian over `reaperd plan`, wall", ratio(custodian, plan, wall), 10, True),
        ("aws-nuke over `reaperd plan`, wall", ratio(nuke, plan, wall), 5, True),
        ("aws-nuke over `reaperd plan`, peak memory", ratio(nuke, plan, peak), 15, True),
        ("boto3's paginator over reaperd's listing, wall", ratio(candidates.PAGINATOR, listing, wall), 8, True),
    ]
    return [
        Target(name=name, value=value, limit=limit, at_least=at_least)
        for name, value, limit, at_least in found
        if value is not None
    ]


def growth(small: Row | None, large: Row | None) -> list[Target]:
    """Return how the memory of a plan grows from 10,000 machines to 100,000."""
    if small is None or large is None or small.peak_mb is None or large.peak_mb is None:
        return []
    name = "peak memory of `plan`, 100,000 machines over 10,000"
    return [Target(name=name, value=large.peak_mb / small.peak_mb, limit=4)]


def _figure(rows: Mapping[str, Row], candidate: Candidate, field: str) -> float | None:
    row = rows.get(candidate.name)
    value = None if row is None or row.is_wrong else getattr(row, field)
    return float(value) if value is not None else None
