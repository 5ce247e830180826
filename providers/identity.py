"""What names a machine and a place, and what every value of the library is held to. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from unicodedata import category, normalize

NO_TAGS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, order=True)
class Scope:
    """What one listing covers: for AWS one account and region."""

    provider: str
    region: str

    def __str__(self) -> str:
        return f"{self.provider}/{self.region}"


@dataclass(frozen=True, slots=True, order=True)
class InstanceRef:
    """The identity of a machine, everywhere. Ids are strings everywhere."""

    provider: str
    region: str
    instance_id: str

    def __post_init__(self) -> None:
        if not self.instance_id:
            msg = f"an instance without an id cannot be addressed ({self.provider}/{self.region})"
            raise ValueError(msg)

    # Ids hardly ever occur in two places, and a look compares each machine's a dozen times.
    def __hash__(self) -> int:
        return hash(self.instance_id)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, InstanceRef):
            return NotImplemented
        return self.instance_id == other.instance_id and self.region == other.region and self.provider == other.provider

    @property
    def scope(self) -> Scope:
        """Return the scope that this machine is listed in."""
        return Scope(self.provider, self.region)

    def __str__(self) -> str:
        return f"{self.provider}/{self.region}/{self.instance_id}"


def require_aware(moment: datetime | None, what: str) -> None:
    """Raise ValueError when a datetime carries no time zone."""
    if moment is not None and moment.tzinfo is None:
        msg = f"{what} has no time zone"
        raise ValueError(msg)


def loosely(name: str) -> str:
    """Return a name without what people mistype and nobody sees: case, blanks, width, accents, the kind of a dash.

    Signs that show nothing are left out, too. Two names that are alike in this way and not equal are somebody's
    mistake. What follows of that always spares.
    """
    if name.isascii() and name.isprintable() and " " not in name:
        return name.lower()
    return "".join(map(_seen, normalize("NFKD", normalize("NFKD", name).casefold())))


_FILLERS = frozenset("\u115f\u1160\u2800\ufffd")
"""Letters and symbols that show nothing, and what stands for a sign that could not be read."""
_MINUS = "\u2212"


def _seen(sign: str) -> str:
    """Return what a person takes a sign for, by its general category (Unicode 14, table 4-4)."""
    kind = category(sign)
    if kind == "Pd" or sign == _MINUS:
        return "-"
    # Controls and the unassigned, blanks, marks upon another sign.
    return "" if kind[0] in "CZ" or kind in {"Mn", "Me"} or sign in _FILLERS else sign


def filled(text: str | None) -> str | None:
    """Return the value of a tag as it stands; None when it is missing or blank."""
    return text if text is not None and text.strip() else None
