"""The token buckets in which AWS counts terminations, as it documents them. On the cloud's clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

REQUESTS, MACHINES = "requests", "machines"
AWS: Mapping[str, tuple[float, float]] = {REQUESTS: (100, 5), MACHINES: (1000, 20)}
"""Of TerminateInstances, an account and region: how many at once, and how many more each second."""


@dataclass(slots=True)
class Buckets:
    """Full at first."""

    levels: dict[tuple[str, str, str], tuple[float, datetime]] = field(default_factory=dict)

    def take(self, account: str, region: str, kind: str, *, amount: int, now: datetime) -> bool:
        """Take tokens out; False, and none is taken, when there are too few."""
        most, per_second = AWS[kind]
        held, since = self.levels.get((account, region, kind), (most, now))
        held = min(most, held + (now - since).total_seconds() * per_second)
        enough = held >= amount
        self.levels[account, region, kind] = (held - amount if enough else held, now)
        return enough
