"""What the HTTP server asks of the daemon. No answer may wait for a pass, a cloud or the registry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Probe:
    """The answer to a probe."""

    ok: bool
    text: str
    """One line for a person."""


class Desk(Protocol):
    """Answers at once, from any thread, with what is known already."""

    def metrics(self, accept: str) -> tuple[bytes, str]:
        """Return the page of metrics and its content type."""
        ...

    def health(self) -> Probe:
        """Say whether the scheduler progresses."""
        ...

    def readiness(self) -> Probe:
        """Say whether the daemon does its work."""
        ...

    def status(self) -> Mapping[str, object]:
        """Return how things stand, as JSON data.

        The landing page shows `deployment`, `mode`, `leader`, `readiness` and `last_look`, whichever are there.
        """
        ...
