"""What a fault is: a card that is played, for a few passes, on the daemon's surroundings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from tests.soak.fleet import Fleet, Row
from tests.soak.stage import REGIONS, Stage
from tests.soak.victim import Victim

FAST = 40.0
"""So many seconds of the daemon's go into a real one while something is slow: its deadline comes in half a second."""
BRISK = 8.0
"""While requests are repeated: the pauses in between become shorter."""
EASY = 2.0
"""At other times: a busy machine must not look like a slow cloud."""


@dataclass(slots=True)
class Hand:
    """What a card may lay hands on."""

    stage: Stage
    fleet: Fleet
    victim: Victim
    old_rows: dict[str, Row] = field(default_factory=dict)
    """What the registry said when the backup was made."""

    @property
    def backup(self) -> Path:
        return self.stage.folder / "backup.db"

    def back_up(self) -> None:
        """Make a backup of the registry. Something is written after it, so that it is older than what is seen next."""
        self.stage.copy_registry(self.backup)
        self.old_rows = self.fleet.remembered_rows()
        worker = self.fleet.worker_name()
        self.fleet.add_row(worker, REGIONS[0], None)
        self.fleet.remove_row(self.fleet.rows[worker])


Play = Callable[[Hand], Iterator[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One fault."""

    name: str
    play: Play
    """Begins it, yields, ends it."""
    passes: int = 2
    """How many passes it lasts, at most."""
    stands_down: frozenset[str] = frozenset()
    """Every pass is refused for one of these reasons, and asks for nothing. Empty: it may go on."""
    rate: float = EASY
    cloud: bool = True
    """Whether machines come and go meanwhile."""
    registry: bool = True
    """Whether the control plane can write."""
    wrong_by: timedelta = timedelta()
    """How wrong the daemon's wall clock is."""
    at_the_door: Callable[[Hand, str], bool] | None = None
    """Done while the first request is under way; returns False when there was nothing to do it to."""
    stops_at_the_door: bool = False
    """What is done there lets no other request through."""
    rare: bool = False
    """It takes long."""
