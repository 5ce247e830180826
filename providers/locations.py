"""Where one machine is that was asked for by its id, as frozen values. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from providers.model import InstanceState


@dataclass(frozen=True, slots=True)
class There:
    """The cloud has this machine, whatever tags it carries."""

    state: InstanceState
    """Never terminated: that is Gone."""
    owner: str | None = None
    """The value of our ownership tag as it stands on the machine; None without one."""

    def __post_init__(self) -> None:
        if self.state.is_gone:
            msg = f"a machine that is {self.state} is not there: say Gone"
            raise ValueError(msg)


@dataclass(frozen=True, slots=True)
class Gone:
    """The cloud itself says so: it has no machine of this id in this place, or has it as terminated."""


@dataclass(frozen=True, slots=True)
class NotKnown:
    """Nobody can say: an error, silence, another account, a place that is not covered. Proves nothing."""

    detail: str
    """Why not, in words."""


@dataclass(frozen=True, slots=True)
class OnlyListed:
    """The provider cannot look for a machine by its id: its complete listing is all that it can prove with."""


Location: TypeAlias = There | Gone | NotKnown | OnlyListed
