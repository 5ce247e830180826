"""The token buckets in which AWS counts requests, as it documents them: one of each kind for every region."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Size:
    """What one bucket holds, and how much runs into it each second."""

    most: float
    refill: float


AWS: Mapping[str, Size] = MappingProxyType(
    {
        "describe": Size(100, 20),
        "describe-everything": Size(50, 10),
        "TerminateInstances": Size(100, 5),
        "TerminateInstances/resources": Size(1000, 20),
    }
)
"""`describe-everything` is a look without a page size, a filter or ids."""


class Buckets:
    """All buckets of one account."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        """Have none: nothing is ever refused."""
        self._sizes: Mapping[str, Size] = {}
        self._monotonic = monotonic
        self._levels: dict[tuple[str, str], tuple[float, float]] = {}

    def fill(self, sizes: Mapping[str, Size]) -> None:
        """Have buckets of these sizes, all of them full."""
        self._sizes = sizes
        self._levels.clear()

    def take(self, name: str, region: str, amount: float = 1) -> bool:
        """Take something out, or nothing at all and return False."""
        size = self._sizes.get(name)
        if size is None:
            return True
        now = self._monotonic()
        level, since = self._levels.get((name, region), (size.most, now))
        level = min(size.most, level + (now - since) * size.refill)
        enough = level >= amount
        self._levels[name, region] = (level - amount if enough else level, now)
        return enough


def floor_seconds(requests: int, resources: int) -> float:
    """Return how long so many terminations of one region take at the least."""
    asked = {"TerminateInstances": requests, "TerminateInstances/resources": resources}
    return max(0.0, *((amount - AWS[name].most) / AWS[name].refill for name, amount in asked.items()))
