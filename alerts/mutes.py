"""What an operator does not want to be told for a while. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

ANY = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mute:
    """Keys that are tracked and not told. It always has an end and a reason."""

    pattern: str
    """A key, or the beginning of keys followed by `*`. Nothing else in it is special."""
    until: datetime
    """From then on it hides nothing."""
    reason: str

    def hides(self, key: str, now: datetime) -> bool:
        """Say whether an alert with this key is not to be told now."""
        if now >= self.until:
            return False
        if self.pattern.endswith(ANY):
            return key.startswith(self.pattern.removesuffix(ANY))
        return key == self.pattern


def is_muted(key: str, mutes: Iterable[Mute], now: datetime) -> bool:
    """Say whether any of the mutes hides the key."""
    return any(mute.hides(key, now) for mute in mutes)
