"""What deserves an alert, and what is said about it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType

Datum = str | int | float | bool | None
NO_DATA: Mapping[str, Datum] = MappingProxyType({})


class Severity(StrEnum):
    """How soon somebody should look."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """Return its place in the order, from 0."""
        return tuple(Severity).index(self)

    @property
    def raised(self) -> Severity:
        """Return the next severity; the highest stays."""
        return tuple(Severity)[min(self.rank + 1, len(Severity) - 1)]


class Cause(StrEnum):
    """The closed set of causes; each is the first part of an alert's key."""

    LEAK = "leak"
    TERMINATION_FAILED = "termination_failed"
    TERMINATION_PROTECTED = "termination_protected"
    TERMINATION_DENIED = "termination_denied"
    TERMINATION_STUCK = "termination_stuck"
    INVALID_ID = "invalid_id"
    MANAGED_ORPHAN = "managed_orphan"
    PROTECTED_ORPHAN = "protected_orphan"
    AMBIGUOUS_WORKER = "ambiguous_worker"
    FOREIGN_REGISTRY = "foreign_registry"
    FOREIGN_ACCOUNT = "foreign_account"
    ROW_VANISHED = "row_vanished"
    OWNED_OUT_OF_SCOPE = "owned_out_of_scope"
    HEARTBEATS_STOPPED = "heartbeats_stopped"
    BREAKER_OPEN = "breaker_open"
    REGISTRY_UNUSABLE = "registry_unusable"
    REGISTRY_IDENTITY = "registry_identity"
    REGISTRY_MISMATCH = "registry_mismatch"
    WRONG_ACCOUNT = "wrong_account"
    LISTING_INCOMPLETE = "listing_incomplete"
    LEDGER_UNUSABLE = "ledger_unusable"
    CLOCK = "clock"
    DEADLINE = "deadline"
    BLIND = "blind"
    LATE = "late"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """Something that holds now and that a person should know of."""

    cause: Cause
    subject: str = ""
    """`provider/region/instance_id`, or empty when the cause is about the whole."""
    severity: Severity
    data: Mapping[str, Datum] = field(default_factory=lambda: NO_DATA, hash=False)

    @property
    def key(self) -> str:
        """Return the identity that alerts are deduplicated by."""
        return f"{self.cause}/{self.subject}" if self.subject else str(self.cause)

    @property
    def scope(self) -> str:
        """Return `provider/region`; empty when the cause is about the whole."""
        return "/".join(self.subject.split("/", 2)[:2])


class Kind(StrEnum):
    """What a notification says."""

    FIRING = "firing"
    REMINDER = "reminder"
    ESCALATED = "escalated"
    RESOLVED = "resolved"
    DIGEST = "digest"
    """Many of one of the first four, as one."""
    TEST = "test"
    """Nothing is wrong: somebody tries a channel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One thing to say about one alert."""

    id: str
    """The same when it is sent once more: a receiver drops what it has seen."""
    kind: Kind
    at: datetime
    """When it was due."""
    condition: Condition
    """With the severity that the alert has now. Of one that is resolved: as it was last seen."""
    since: datetime
    """When the alert was first seen, in this episode."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How many alerts of one cause and place a digest stands for."""

    cause: Cause
    scope: str
    """`provider/region`, or empty when the cause is about the whole."""
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """More notices of one kind than anybody reads, as one."""

    id: str
    of: Kind
    at: datetime
    severity: Severity
    """The highest of all."""
    tallies: tuple[Tally, ...]
    first: tuple[Notice, ...]
    """The most severe ones; the others are only counted."""

    @property
    def kind(self) -> Kind:
        """Return what it is, as of any notification."""
        return Kind.DIGEST

    @property
    def total(self) -> int:
        """Return for how many alerts it stands."""
        return sum(tally.count for tally in self.tallies)


Notification = Notice | Digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """An alert as a channel is told of it that is told of all of them, again and again."""

    condition: Condition
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """Everything that holds after a look, and what no longer does."""

    at: datetime
    until: datetime
    """What is not told again by then counts as resolved."""
    standing: tuple[Standing, ...] = ()
    ended: tuple[Standing, ...] = ()
