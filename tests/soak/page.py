"""The figures of a run, for a terminal and for docs/soak.md."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.soak.gauges import MEBIBYTE, Gauges, Reading
from tests.soak.kills import Toll
from tests.soak.run import Figures

_BLOCK = re.compile(r"(<!-- made by `make soak` -->\n).*?(<!-- end -->)", re.DOTALL)
Row = tuple[str, str]


def lines_of_soak(figures: Figures) -> list[Row]:
    """Return the figures of a soak, each with its name."""
    return [*_course(figures), *_process(figures.gauges)]


def lines_of_kills(toll: Toll) -> list[Row]:
    """Return the figures of the kills, each with its name."""
    return [
        ("Processes killed", f"{toll.kills:,}, in {toll.seconds:.0f} s"),
        ("In the middle of what", _told(toll.moments)),
        ("Orphans launched", f"{toll.orphans:,}"),
        ("Intents written, requests received", f"{toll.intents:,}, {toll.requests:,}"),
        ("Ledgers damaged, intents lost, requests without an intent", "0, 0, 0"),
    ]


def _course(figures: Figures) -> Iterator[Row]:
    yield "Passes", f"{figures.passes:,}, in {figures.seconds:.0f} s"
    yield "Faults", f"{figures.faults.total():,}, of {len(figures.faults)} kinds"
    yield "Machines launched", f"{figures.launched:,}"
    yield "Requests received, accepted", f"{figures.requests:,}, {figures.accepted:,}"
    yield "Machines terminated that must not be", "0"
    yield "Passes until no orphan was left", f"{figures.last_passes} after the last fault"
    yield "Plans that the operator let through the breaker", f"{figures.approvals:,}"
    yield "Changes while a request was under way", f"{figures.at_the_door.total():,}"
    yield "How passes ended", _told(figures.outcomes)
    yield "How sweeps ended", _told(figures.audits)


def _process(gauges: Gauges) -> Iterator[Row]:
    assert gauges.warm is not None
    assert gauges.cold is not None
    yield "Memory after the warm-up, at the end", f"{_memory(gauges.warm)}, {_memory(gauges.cold)}"
    yield "Threads", _three(gauges.warm.threads, gauges.most_threads, gauges.cold.threads)
    yield "File descriptors", _three(gauges.warm.descriptors, gauges.most_descriptors, gauges.cold.descriptors)
    yield "Series on every page", f"{len(gauges.series):,}"
    half = f"{gauges.ledger_by_half / MEBIBYTE:.1f} MiB in the first half"
    yield "The ledger at its largest", f"{half}, {gauges.most_ledger / MEBIBYTE:.1f} MiB in all"
    yield "The oldest decision in it, at the end", f"{gauges.oldest_decision.total_seconds() / 3600:.1f} h"


def _memory(reading: Reading) -> str:
    return f"{reading.resident / MEBIBYTE:.1f} MiB"


def _three(warm: int, most: int, cold: int) -> str:
    return f"{warm} after the warm-up, {most} at most, {cold} at the end"


def _told(counted: Counter[str]) -> str:
    return "; ".join(f"{name} {number:,}" for name, number in counted.most_common())


def write(page: Path, title: str, rows: Iterable[Row]) -> None:
    """Put the figures into the page."""
    table = "\n".join([f"| {title} | |", "| --- | --- |", *(f"| {name} | {value} |" for name, value in rows)])
    text = page.read_text(encoding="utf-8")
    page.write_text(_BLOCK.sub(lambda found: f"{found[1]}\n{table}\n\n{found[2]}", text), encoding="utf-8")
