"""What the process takes: memory, threads, descriptors, series, room on the disk."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

MEBIBYTE = 1024 * 1024
_PAGE = 4096
_COME_AND_GO = (
    "reaperd_oldest_orphan_first_seen_timestamp_seconds",
    "reaperd_unowned_oldest_launch_timestamp_seconds",
    "reaperd_leak_cost_dollars_per_hour",
    'reaperd_scope_up{kind="audit",provider="aws",region="*"}',
)
"""A scope without an orphan, a leak or a price has none, and the last one is there while no list of regions can be had.

Of what has to stay the same they are no part.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The process at one moment."""

    resident: int
    """In bytes."""
    threads: int
    descriptors: int


def read(pid: int) -> Reading:
    """Read a process's gauges."""
    proc = Path(f"/proc/{pid}")
    return Reading(
        resident=int((proc / "statm").read_text().split()[1]) * _PAGE,
        threads=sum(1 for _ in (proc / "task").iterdir()),
        descriptors=sum(1 for _ in (proc / "fd").iterdir()),
    )


@dataclass(slots=True, kw_only=True)
class Gauges:
    """What was read over a run."""

    warm: Reading | None = None
    """After the warm-up, everything settled."""
    cold: Reading | None = None
    """At the end, everything settled."""
    most_threads: int = 0
    most_descriptors: int = 0
    series: frozenset[str] = frozenset()
    """Those of the first page after the warm-up."""
    changed_series: set[str] = field(default_factory=set)
    """Those that were not on every page after it."""
    ledger_by_half: int = 0
    """The most room that the ledger took in the first half, in bytes."""
    most_ledger: int = 0
    """The most that it ever took."""
    oldest_decision: timedelta = timedelta()
    """How old the oldest decision is that the ledger has at the end."""

    def took(self, reading: Reading) -> None:
        """Take in one reading."""
        self.most_threads = max(self.most_threads, reading.threads)
        self.most_descriptors = max(self.most_descriptors, reading.descriptors)

    def scraped(self, series: list[str]) -> None:
        """Take in a page."""
        found = frozenset(one for one in series if not one.startswith(_COME_AND_GO))
        self.series = self.series or found
        self.changed_series |= self.series ^ found

    @property
    def grown(self) -> int:
        """Return by how many bytes the process grew."""
        assert self.warm is not None
        assert self.cold is not None
        return self.cold.resident - self.warm.resident
