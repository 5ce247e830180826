"""A fleet that exists on paper only: which machines there are, whose they are, and which of them are orphans.

All of it follows from the recipe, so whoever measures knows the right answer without asking anybody.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import blake2b

ACCOUNT = "123456789012"
DEPLOYMENT = "bench"
OWNER_TAG = "reaperd:owner"
WORKER_TAG = "reaperd:worker-id"
REGIONS = (
    *("us-east-1", "us-east-2", "us-west-1", "us-west-2", "ca-central-1", "sa-east-1"),
    *("eu-west-1", "eu-west-2", "eu-west-3", "eu-central-1", "eu-north-1"),
    *("ap-south-1", "ap-southeast-1", "ap-southeast-2", "ap-northeast-1", "ap-northeast-2", "ap-northeast-3"),
)
"""Those that every account has enabled."""
ZONES = "abc"

_LAST_LAUNCH = datetime(2026, 1, 1, tzinfo=UTC)
_MINUTES = 60 * 24 * 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What a fleet is made from. An `..._every` of 0 means none."""

    machines: int
    regions: int = 1
    stranger_every: int = 10
    """Every so many-th machine of a region carries no tag of ours."""
    orphan_every: int = 100
    """Every so many-th of our own has no row in the registry."""
    spot_every: int = 2
    """Every so many-th machine came from a spot request, of the kind that launches once."""
    guarded_every: int = 0
    """Every so many-th machine has the cloud's own protection against termination."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One machine, as it was launched."""

    number: int
    instance_id: str
    region: str
    zone: str
    owned: bool
    orphan: bool
    guarded: bool
    spot: bool
    launched_at: datetime

    @property
    def worker_id(self) -> str:
        """Return what its worker tag says, if it is ours."""
        return f"w-{self.number:07d}"

    def tags(self) -> tuple[tuple[str, str], ...]:
        """Return its eight tags."""
        ours = ((OWNER_TAG, DEPLOYMENT), (WORKER_TAG, self.worker_id))
        somebodys = (("contact", "build@example.org"), ("lifetime", "until <Friday>"))
        return (
            ("Name", f"worker {self.number}"),
            ("team", "vision & speech"),
            ("stage", "production"),
            ("billing", f"unit-{self.number % 24:02d}"),
            ("aws:ec2launchtemplate:id", "lt-07f3c1d2e4a5b6978"),
            ("aws:ec2launchtemplate:version", "4"),
            *(ours if self.owned else somebodys),
        )


def fleet(recipe: Recipe) -> tuple[Machine, ...]:
    """Return all machines, the regions in turn."""
    return tuple(_machine(number, recipe) for number in range(recipe.machines))


def regions(recipe: Recipe) -> tuple[str, ...]:
    """Return the regions that are enabled."""
    return REGIONS[: recipe.regions]


def owned(machines: tuple[Machine, ...]) -> frozenset[str]:
    """Return the ids of what carries our tag: what every candidate that lists must find."""
    return frozenset(machine.instance_id for machine in machines if machine.owned)


def orphans(machines: tuple[Machine, ...]) -> frozenset[str]:
    """Return the ids of what is ours and has no row: what a plan must want to end."""
    return frozenset(machine.instance_id for machine in machines if machine.orphan)


def _machine(number: int, recipe: Recipe) -> Machine:
    place = number // recipe.regions
    region = REGIONS[number % recipe.regions]
    owned = not _is_nth(place, recipe.stranger_every)
    return Machine(
        number=number,
        instance_id=f"i-0{_scrambled(number)}",
        region=region,
        zone=region + ZONES[place % len(ZONES)],
        owned=owned,
        # Not the last of a hundred, which may be the last of ten too, and then a stranger.
        orphan=owned and _is_nth(place + 1, recipe.orphan_every),
        guarded=_is_nth(place, recipe.guarded_every),
        spot=_is_nth(place, recipe.spot_every),
        launched_at=_LAST_LAUNCH - timedelta(minutes=number * 7919 % _MINUTES),
    )


def _is_nth(place: int, every: int) -> bool:
    return every > 0 and (place + 1) % every == 0


def _scrambled(number: int) -> str:
    return blake2b(number.to_bytes(8, "big"), digest_size=8).hexdigest()
