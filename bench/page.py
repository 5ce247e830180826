"""The figures of a run, for docs/performance.md."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from bench import candidates, table, targets

if TYPE_CHECKING:
    from bench.run import Figures
    from bench.site import Workload
    from bench.table import Row

_BLOCK = re.compile(r"(<!-- made by `make bench-full` -->\n).*?(<!-- end -->)", re.DOTALL)

GROWTH_HEADINGS = (
    "machines",
    "`plan`, wall s",
    "CPU s",
    "peak MB",
    "a pass of the daemon, wall s",
    "CPU s",
    "limit, CPU s",
)


def write_page(page: Path, figures: Figures) -> None:
    """Put the figures into the page, between its two marks."""
    block = "\n\n".join(blocks(figures))
    text = page.read_text(encoding="utf-8")
    page.write_text(_BLOCK.sub(lambda found: f"{found[1]}\n{block}\n\n{found[2]}", text), encoding="utf-8")


def blocks(figures: Figures) -> Iterator[str]:
    """Yield the paragraphs and tables."""
    machine = figures.machine
    yield (
        f"Measured on {machine.processors} with {machine.memory_gb} GB, Python {machine.python}, {machine.libraries};"
        f" the load was {machine.load_average:g} at the end."
    )
    yield "### What is to be reached"
    yield table.markdown(targets.HEADINGS, map(targets.cells, figures.targets))
    for workload, rows in figures.workloads:
        yield f"### {workload.name}: {workload}"
        yield table.markdown(table.headings(), map(table.cells, rows))
    yield "### How the cost grows"
    yield table.markdown(GROWTH_HEADINGS, growth_cells(figures.workloads))


def growth_cells(workloads: Iterable[tuple[Workload, Iterable[Row]]]) -> Iterator[list[str]]:
    """Yield a line for each workload without latency: how many machines, and what they cost."""
    for workload, rows in workloads:
        by_name = {row.candidate: row for row in rows}
        if workload.latency_ms or candidates.PLAN.name not in by_name:
            continue
        plan, daemon, raw = (by_name.get(each.name) for each in (candidates.PLAN, candidates.DAEMON, candidates.RAW))
        figures = [
            *(getattr(plan, name, None) for name in ("wall_seconds", "cpu_seconds", "peak_mb")),
            *(getattr(daemon, name, None) for name in ("look_wall_seconds", "look_cpu_seconds")),
            getattr(raw, "look_cpu_seconds", None),
        ]
        yield [f"{workload.machines:,}", *map(table.shown, figures)]
