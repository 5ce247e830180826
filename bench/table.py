"""Rows of figures: for a terminal, for a page, as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

MEGA = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What a candidate took at its best, in one workload."""

    candidate: str
    wall_seconds: float | None = None
    """Of the whole program, from its start to its end."""
    cpu_seconds: float | None = None
    look_wall_seconds: float | None = None
    """Of one more look in the same process."""
    look_cpu_seconds: float | None = None
    peak_mb: float | None = None
    machines_per_second: float | None = None
    """Of ours, by the wall time of the whole program."""
    calls: int | None = None
    received_mb: float | None = None
    """Bodies, as they came over the line."""
    wall_over_plan: float | None = None
    cpu_over_raw: float | None = None
    """Of a look where there is one, of the whole program where not."""
    result: str
    """`right`, `WRONG` and in what way, or why it was not run."""

    @property
    def is_wrong(self) -> bool:
        """Return whether it ran, and found something else than what is there."""
        return self.result.startswith("WRONG")


COLUMNS = {
    "candidate": "candidate",
    "wall_seconds": "wall s",
    "cpu_seconds": "CPU s",
    "look_wall_seconds": "look, wall s",
    "look_cpu_seconds": "look, CPU s",
    "peak_mb": "peak MB",
    "machines_per_second": "machines/s",
    "calls": "calls",
    "received_mb": "MB received",
    "wall_over_plan": "wall ÷ plan",
    "cpu_over_raw": "CPU ÷ raw",
    "result": "found",
}
"""The fields of a row in their order, and what they are called. JSON has the fields, the page the names."""


def json_row(row: Row) -> dict[str, object]:
    """Return a row for JSON."""
    return asdict(row)


def headings() -> list[str]:
    """Return the names of the columns."""
    return list(COLUMNS.values())


def cells(row: Row) -> list[str]:
    """Return a row as it is shown."""
    values = asdict(row)
    return [shown(values[name]) for name in COLUMNS]


def plain(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a table for a terminal."""
    table = [head, *lines]
    widths = [max(len(line[place]) for line in table) for place in range(len(head))]
    return "\n".join(_padded(line, widths).rstrip() for line in table)


def markdown(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a table for a page; all but the first column and the last are figures."""
    rules = ["---", *["---:" for _ in head[1:-1]], "---"]
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, rules, *lines))


def _padded(line: Sequence[str], widths: list[int]) -> str:
    ends = (0, len(line) - 1)
    return "  ".join(
        text.ljust(width) if place in ends else text.rjust(width)
        for place, (text, width) in enumerate(zip(line, widths, strict=True))
    )


def shown(value: object) -> str:
    """Return one figure, with as many digits as count."""
    match value:
        case None:
            return "-"
        case float() if value < 10:  # noqa: PLR2004 - two digits that count, or all of them
            return f"{value:.2f}"
        case float():
            return f"{value:,.0f}"
        case int():
            return f"{value:,}"
        case _:
            return str(value)
