"""What an examination comes to: one line each, graded, with what to do about it. Values only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from reaperd.core.model import RefusalReason


class Grade(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"
    """It works, and somebody should know."""
    FAILURE = "failure"
    """A pass would be refused, or would not do what the configuration asks for."""


class Subject(StrEnum):
    """What was looked at."""

    SETTINGS = "settings"
    HOST = "host"
    ACCOUNT = "account"
    REGIONS = "regions"
    LISTING = "listing"
    CLOCK = "clock"
    PERMISSIONS = "permissions"
    REGISTRY = "registry"
    LEDGER = "ledger"
    HTTP = "http"
    BRAKE = "brake"
    DAEMON = "daemon"


CONFIG = "{config}"
"""Stands in a command for the option that names the configuration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of an examination."""

    subject: Subject
    grade: Grade
    text: str
    scope: str = ""
    """Where: a provider, a scope, or a path. Empty for the whole."""
    remedy: str = ""
    """What to do about it, in words."""
    commands: tuple[str, ...] = ()
    """What to type, in order; `{config}` is the option that names the configuration."""
    reason: RefusalReason | None = None
    """What every pass is refused with while this stands. Its own remedy is told when there is no nearer one."""


def counted(findings: Iterable[Finding]) -> Counter[Grade]:
    """Return how many there are of each grade."""
    return Counter(finding.grade for finding in findings)


def many(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
