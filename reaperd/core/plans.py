"""A recorded plan, and what has become of its machines since. Pure.

From the record alone: what a cloud or the registry would say at this moment is for the pass to find out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType

from providers.model import InstanceRef, InstanceState, Scope
from reaperd.core.history import ToldOutcome, ToldPass, ToldVerdict
from reaperd.core.model import KeepReason, OutcomeKind, SparedReason


class Fate(StrEnum):
    """What has become of one machine of a plan."""

    TO_GO = "to go"
    """Nothing is known that would keep it: it is a candidate still."""
    REQUESTED = "requested"
    """Its end was asked for, or may have been, and is not confirmed."""
    GONE = "gone"
    NOT_LISTED = "not listed"
    """A later complete look does not have it: it is gone, or it lost our tag."""
    TRACKED = "tracked"
    """A live row accounts for it again."""
    KEPT = "kept"
    """Something else holds it now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Became:
    """What has become of one machine, and how that is known."""

    fate: Fate
    at: datetime | None = None
    """When that was found out; None when nothing was since."""
    why: str = ""
    """A reason or an answer of the cloud, where the fate does not say it all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The newest termination of one machine that was begun since the plan."""

    requested_at: datetime
    outcome: OutcomeKind | None
    """None: the process died before the answer. Counts as unknown."""
    closed_as: OutcomeKind | None
    """None while it is open."""
    closed_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedPlan:
    """The newest recorded pass that had a certain plan, and what the ledger has of the time since."""

    digest: str
    told: ToldPass
    looked_at: datetime | None = None
    """When the last complete look was made; None when there was none."""
    scopes: frozenset[Scope] = frozenset()
    """What it listed whole."""
    listed: Mapping[InstanceRef, InstanceState] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    """What it listed of ours."""
    verdicts: Mapping[InstanceRef, str] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    """What was decided on that: `keep/REASON` or `terminate/REASON`."""
    outcomes: Mapping[InstanceRef, ToldOutcome] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    """What became of terminations in the pass of that look."""
    requests: Mapping[InstanceRef, Request] = field(default_factory=lambda: MappingProxyType({}), hash=False)

    @property
    def machines(self) -> tuple[ToldVerdict, ...]:
        """Return what the plan would terminate."""
        return tuple(verdict for verdict in self.told.verdicts if verdict.terminates)

    @property
    def looked_since(self) -> bool:
        """True when a complete look was made after the plan's own."""
        return self.looked_at is not None and self.looked_at > self.told.at

    @property
    def to_go(self) -> tuple[InstanceRef, ...]:
        """Return the machines that are candidates still."""
        return tuple(machine.ref for machine in self.machines if self.became(machine.ref).fate is Fate.TO_GO)

    def became(self, ref: InstanceRef) -> Became:
        """Return what has become of one machine, by the newest that is known of it."""
        return next(self._known(ref), _TO_GO)

    def _known(self, ref: InstanceRef) -> Iterator[Became]:
        """Yield what is known, the strongest first."""
        request = self.requests.get(ref)
        seen = self._seen(ref) if self.looked_since else _TO_GO
        if request is not None and request.closed_as is OutcomeKind.CONFIRMED_GONE:
            yield Became(fate=Fate.GONE, at=request.closed_at)
        if seen.fate in {Fate.GONE, Fate.TRACKED}:
            yield seen
        # Before a listing without it: that alone does not prove that it is gone.
        if request is not None and request.closed_as is None:
            yield _by_answer(request)
        if seen.fate is not Fate.TO_GO:
            yield seen
        yield from self._by_outcome(ref)

    def _seen(self, ref: InstanceRef) -> Became:
        """Return what the last look says."""
        if ref not in self.listed:
            if ref.scope in self.scopes:
                return Became(fate=Fate.NOT_LISTED, at=self.looked_at, why="it is gone, or it lost our tag")
            return Became(fate=Fate.KEPT, at=self.looked_at, why="its scope is not looked at any more")
        if self.listed[ref].is_gone:
            return Became(fate=Fate.GONE, at=self.looked_at)
        call, _, reason = self.verdicts.get(ref, "").partition("/")
        if reason == KeepReason.TRACKED:
            return Became(fate=Fate.TRACKED, at=self.looked_at)
        return Became(fate=Fate.KEPT, at=self.looked_at, why=reason) if call == "keep" else _TO_GO

    def _by_outcome(self, ref: InstanceRef) -> Iterator[Became]:
        """Yield why the pass of the last look did not send what it had decided."""
        outcome = self.outcomes.get(ref)
        if outcome is None or outcome.kind != OutcomeKind.SPARED:
            return
        if outcome.reason == SparedReason.TRACKED_NOW:
            yield Became(fate=Fate.TRACKED, at=self.looked_at)
        elif outcome.reason == SparedReason.CHANGED:
            yield Became(fate=Fate.KEPT, at=self.looked_at, why=outcome.reason)


_TO_GO = Became(fate=Fate.TO_GO)
_MAY_BE_ENDING = frozenset({None, OutcomeKind.REQUESTED, OutcomeKind.UNKNOWN, OutcomeKind.ALREADY_GONE})


def _by_answer(request: Request) -> Became:
    if request.outcome in _MAY_BE_ENDING:
        why = "" if request.outcome is OutcomeKind.REQUESTED else str(request.outcome or OutcomeKind.UNKNOWN)
        return Became(fate=Fate.REQUESTED, at=request.requested_at, why=why)
    return Became(fate=Fate.KEPT, at=request.requested_at, why=str(request.outcome))
