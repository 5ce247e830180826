"""What a look at the set-up of a provider found, as frozen values. Pure: no I/O, no clock."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from providers.model import Coverage, InstanceRef, OwnedInstance, Scope

WRONG_ACCOUNT = "wrong_account"
"""The code of a Trouble: the credentials work, and belong to another account than the pinned one."""
NO_ORGANIZATION = "no_organization"
"""The code of a Trouble: the account belongs to nothing that has more of them."""


class Answer(StrEnum):
    """What a cloud said when it was asked whether it would end a machine, without being asked to."""

    ALLOWED = "allowed"
    DENIED = "denied"
    PROTECTED = "protected"
    """Allowed, but for its termination protection."""
    GONE = "gone"
    """It went between the listing and the question."""
    UNCLEAR = "unclear"
    """An error that says neither yes nor no."""
    TAKEN = "taken"
    """It answered as if it had been asked to do it: the machine may be ending. It does not know DryRun."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Why something could not be looked at."""

    code: str
    """The cloud's own code, or ours in snake_case when the cloud gave none."""
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}" if self.detail else self.code


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One machine that was asked about."""

    ref: InstanceRef
    answer: Answer
    trouble: Trouble | None = None
    """What the cloud said instead of yes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortfall:
    """Something besides the termination itself that is needed on the way to it, and that the cloud does not give."""

    permission: str
    """As the cloud calls it."""
    without: str
    """What happens without it, in words."""
    trouble: Trouble
    """What the cloud said instead of yes."""
    is_vital: bool = True
    """True when machines stay that should go; False when they are only held."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeExamination:
    """One scope that every pass must list."""

    coverage: Coverage
    owned: tuple[OwnedInstance, ...] = ()
    """What carries our ownership tag; empty unless it was listed whole."""
    probes: tuple[Probe, ...] = ()
    """A bounded sample of them, oldest first."""
    trouble: Trouble | None = None
    """Why no machine, or no further one, was asked about."""
    shortfalls: tuple[Shortfall, ...] = ()
    """What else is missing to end them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A scope that the account has and the options do not name."""

    scope: Scope
    instances: int = 0
    """Machines of anybody that are not terminated."""
    owned: int = 0
    """Those of them that are ours."""
    trouble: Trouble | None = None
    """Why it could not be looked at whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """One provider, from its credentials to its machines."""

    name: str
    account: str | None = None
    """The account that the caller was proved to be; None when unproven, or when there are no accounts."""
    caller: str | None = None
    """Who the cloud says that we are."""
    trouble: Trouble | None = None
    """Why nothing else was looked at."""
    enabled: frozenset[str] | None = None
    """The regions that the account has; None when not known, or when there are no regions."""
    enabled_trouble: Trouble | None = None
    """Why they are not known."""
    scopes: tuple[ScopeExamination, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One account of an organization."""

    account: str
    name: str = ""
    """As people called it; empty when the cloud does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Organization:
    """What the owner of several accounts has."""

    members: tuple[Member, ...]
    """All accounts in which something can run, sorted; closed and suspended ones are not among them."""
