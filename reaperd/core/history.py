"""What the ledger keeps of the past, as values; and how what was told many times in a row is told once. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from providers.model import Coverage, InstanceRef, OwnedInstance
from reaperd.core.model import Memory, OutcomeKind, Sighting


class EntryKind(StrEnum):
    """What the history holds."""

    RECONCILE = "reconcile"
    AUDIT = "audit"
    ACT = "act"
    """Something that an operator did."""


# ---------------------------------------------------------------- passes and acts


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldVerdict:
    """What one pass said of one machine."""

    ref: InstanceRef
    worker_id: str | None
    state: str
    name: str
    """`keep/REASON` or `terminate/REASON`."""
    age_seconds: int | None
    confirmations: int
    confirmations_needed: int
    instance_type: str | None = None
    cost_per_hour_usd: float | None = None
    first_seen_at: datetime | None = None
    """None, like the others here, in a record that is older than this evidence."""
    last_tracked_at: datetime | None = None
    detail: str = ""
    """What the registry said of it."""

    @property
    def terminates(self) -> bool:
        """True when the machine was to go."""
        return self.name.startswith("terminate/")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldOutcome:
    """What became of one termination."""

    ref: InstanceRef
    kind: str
    reason: str | None
    error_code: str | None
    detail: str


class Finding(StrEnum):
    """What a sweep has to say of a machine that is not ours."""

    LEAK = "leak"
    NEAR_MISS = "near_miss"
    """Its tag is almost ours, and it is no leak yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldFinding:
    """What one sweep said of one machine."""

    ref: InstanceRef
    finding: Finding
    name: str | None
    instance_type: str | None
    age_seconds: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldAnnouncement:
    """What one sweep heard that a cloud announces for a machine."""

    ref: InstanceRef
    code: str
    """The cloud's own word."""
    ends: bool
    """True when the machine ends by it."""
    at: datetime | None
    """When it goes, as far as the cloud says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldPass:
    """One recorded pass or sweep, or several of a kind in a row that said the same."""

    at: datetime
    """When it started; of several, the newest."""
    finished_at: datetime
    pass_id: str
    kind: str
    mode: str
    """Empty for a sweep."""
    outcome: str
    reason: str | None
    also: tuple[str, ...] = ()
    detail: str = ""
    scopes: frozenset[str] = frozenset()
    """Those that were asked, whole or not."""
    verdicts: tuple[ToldVerdict, ...] = ()
    outcomes: tuple[ToldOutcome, ...] = ()
    findings: tuple[ToldFinding, ...] = ()
    """Of a sweep: the oldest, if there were too many to keep."""
    leaks: int = 0
    """How many leaks a sweep found in all."""
    announcements: tuple[ToldAnnouncement, ...] = ()
    """Of a sweep: the newest, if there were too many to keep."""
    plan_digest: str | None = None
    """The name of its plan; None when it had none."""
    record: str = ""
    """The contract's JSON, as it was written."""
    passes: int = 1
    since: datetime | None = None
    """Of several, when the oldest started."""

    def says_the_same_as(self, other: ToldPass) -> bool:
        """Say whether nothing but times and figures differs."""
        return self._gist() == other._gist()

    def _gist(self) -> tuple[object, ...]:
        return (
            *(self.kind, self.mode, self.outcome, self.reason, self.also, self.leaks),
            frozenset((verdict.ref, verdict.name) for verdict in self.verdicts),
            frozenset((outcome.ref, outcome.kind, outcome.reason, outcome.error_code) for outcome in self.outcomes),
            frozenset((found.ref, found.finding) for found in self.findings),
            frozenset((told.ref, told.code) for told in self.announcements),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldAct:
    """Something that an operator did: hold, resume, approve, trust, mute, unmute, gate_on, gate_off."""

    at: datetime
    act: str
    by: str
    reason: str
    data: Mapping[str, object] = field(hash=False)


Told = ToldPass | ToldAct
_Case = ToldVerdict | ToldOutcome | ToldFinding | ToldAnnouncement


def in_runs(newest_first: Iterable[Told]) -> Iterator[Told]:
    """Yield what was told, passes of a kind in a row that said the same as one; an act stands between two rows."""
    waiting: deque[_Run] = deque()
    growing: dict[str, _Run] = {}
    for told in newest_first:
        if isinstance(told, ToldAct):
            growing.clear()
            waiting.append(_Run(told))
        elif told.kind in growing and growing[told.kind].takes(told):
            continue
        else:
            growing[told.kind] = _Run(told)
            waiting.append(growing[told.kind])
        # In the order of their newest: one that may still grow keeps those behind it waiting.
        while waiting and not any(waiting[0] is run for run in growing.values()):
            yield waiting.popleft().told
    yield from (run.told for run in waiting)


@dataclass(slots=True)
class _Run:
    told: Told

    def takes(self, older: ToldPass) -> bool:
        """Take an older pass in, if it said the same."""
        if not (isinstance(self.told, ToldPass) and older.says_the_same_as(self.told)):
            return False
        self.told = replace(self.told, passes=self.told.passes + 1, since=older.at)
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which part of the history somebody asked for. Empty: everything. Several of a kind: any of them."""

    since: datetime | None = None
    until: datetime | None = None
    kinds: frozenset[str] = frozenset()
    outcomes: frozenset[str] = frozenset()
    """Of passes (`refused`) and of terminations (`requested`)."""
    reasons: frozenset[str] = frozenset()
    """Of passes, of verdicts and of terminations."""
    machines: frozenset[str] = frozenset()
    """Instance ids, worker ids, or `provider/region/instance_id`."""
    scopes: frozenset[str] = frozenset()
    """`provider/region`, or a whole `provider`."""
    pass_id: str = ""
    """How the pass's id begins."""

    @property
    def acts(self) -> bool:
        """True when operators' acts belong to it: an act has no outcome, no scope and no pass."""
        asked = self.outcomes or self.reasons or self.scopes or self.pass_id
        return not asked and (not self.kinds or EntryKind.ACT in self.kinds)

    @property
    def passes(self) -> bool:
        """True when passes belong to it."""
        return not self.kinds or bool(self.kinds - {EntryKind.ACT})

    def wants(self, told: ToldPass) -> bool:
        """Say whether a pass belongs to it, but for its time, kind and id."""
        return (
            (not self.outcomes or not self.outcomes.isdisjoint(_outcomes(told)))
            and (not self.reasons or not self.reasons.isdisjoint(_reasons(told)))
            and (not self.machines or any(self._about(each) for each in _cases(told)))
            and (not self.scopes or any(self._within(scope) for scope in (*told.scopes, *_places(told))))
        )

    def narrowed(self, told: ToldPass) -> ToldPass:
        """Return the pass with what it said of the machines and scopes that were asked for."""
        verdicts = tuple(each for each in told.verdicts if self._here(each) and self._about(each))
        # An outcome knows no worker: the verdict does.
        shown = {verdict.ref for verdict in verdicts}
        outcomes = (each for each in told.outcomes if self._here(each) and (each.ref in shown or self._about(each)))
        findings = (each for each in told.findings if self._here(each) and self._about(each))
        announced = (each for each in told.announcements if self._here(each) and self._about(each))
        return replace(
            told,
            verdicts=verdicts,
            outcomes=tuple(outcomes),
            findings=tuple(findings),
            announcements=tuple(announced),
        )

    def _here(self, told: _Case) -> bool:
        return not self.scopes or self._within(str(told.ref.scope))

    def _about(self, told: _Case) -> bool:
        worker = told.worker_id if isinstance(told, ToldVerdict) else None
        return not self.machines or not self.machines.isdisjoint({told.ref.instance_id, str(told.ref), worker})

    def _within(self, scope: str) -> bool:
        return any(scope == wanted or scope.startswith(f"{wanted}/") for wanted in self.scopes)


def _outcomes(told: ToldPass) -> Iterator[str]:
    yield told.outcome
    yield from (outcome.kind for outcome in told.outcomes)


def _reasons(told: ToldPass) -> Iterator[str | None]:
    yield told.reason
    yield from told.also
    yield from (verdict.name.partition("/")[2] for verdict in told.verdicts)
    yield from (outcome.reason for outcome in told.outcomes)


def _places(told: ToldPass) -> Iterator[str]:
    yield from (str(each.ref.scope) for each in _cases(told))


def _cases(told: ToldPass) -> tuple[_Case, ...]:
    return (*told.verdicts, *told.outcomes, *told.findings, *told.announcements)


# ---------------------------------------------------------------- one machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The last complete look: what it listed of ours, and where it looked."""

    at: datetime
    instances: tuple[OwnedInstance, ...]
    coverage: tuple[Coverage, ...]


class EventKind(StrEnum):
    """What happened to a machine."""

    VERDICT = "verdict"
    """The verdict changed."""
    OUTCOME = "outcome"
    """Something became of its termination."""
    ACT = "act"
    """An operator approved a plan that it is in."""
    ANNOUNCED = "announced"
    """An audit heard that its cloud takes it away, or took it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened to a machine."""

    at: datetime
    kind: EventKind
    name: str
    """A verdict, an outcome or an act."""
    mode: str | None = None
    pass_id: str | None = None
    verdict: ToldVerdict | None = None
    """The evidence of a verdict."""
    detail: str = ""
    """Of an outcome: why. Of an act: by whom, and why. Of an announcement: what comes, and when."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """What the ledger has of one machine."""

    ref: InstanceRef
    worker_id: str | None = None
    """The newest that was recorded."""
    sighting: Sighting | None = None
    """None when it was never listed, or is forgotten."""
    events: tuple[Event, ...] = ()
    """Oldest first."""
    announced: ToldAnnouncement | None = None
    """The newest announcement that an audit heard; None when none was recorded."""
    announced_at: datetime | None = None
    """When the last audit that heard it was made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeRecord:
    """How often one scope was listed in the time that was asked about."""

    scope: str
    whole: int = 0
    first_whole_at: datetime | None = None
    last_whole_at: datetime | None = None
    failed: int = 0
    last_failed_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recollection:
    """Everything of the ledger that concerns what somebody asked about."""

    memory: Memory
    look: Look | None = None
    """None when no look was ever complete."""
    newest: ToldPass | None = None
    traces: tuple[Trace, ...] = ()
    scopes: tuple[ScopeRecord, ...] = ()


def events(ref: InstanceRef, oldest_first: Iterable[Told]) -> Iterator[Event]:
    """Yield what happened to one machine.

    That is each change of its verdict, what became of its terminations, and each thing that its cloud announced.
    """
    newest = {EventKind.VERDICT: "", EventKind.ANNOUNCED: ""}
    for told in oldest_first:
        if isinstance(told, ToldAct):
            yield Event(at=told.at, kind=EventKind.ACT, name=told.act, detail=_who(told))
            continue
        for event in _of_pass(ref, told):
            if newest.get(event.kind) == event.name:
                continue
            if event.kind in newest:
                newest[event.kind] = event.name
            yield event


def newest_announcement(
    ref: InstanceRef, oldest_first: Iterable[Told]
) -> tuple[ToldAnnouncement | None, datetime | None]:
    """Return what was announced for one machine last, and when that was last heard."""
    found: tuple[ToldAnnouncement | None, datetime | None] = (None, None)
    for told in oldest_first:
        if isinstance(told, ToldPass):
            for heard in told.announcements:
                if heard.ref == ref:
                    found = (heard, told.at)
    return found


def what_comes(heard: ToldAnnouncement) -> str:
    """Return what becomes of the machine, in words."""
    when = "" if heard.at is None else f" at about {heard.at:%Y-%m-%d %H:%M} UTC"
    return f"the cloud {'ends' if heard.ends else 'stops'} it{when}"


def _of_pass(ref: InstanceRef, told: ToldPass) -> Iterator[Event]:
    for verdict in told.verdicts:
        if verdict.ref == ref:
            yield replace(_event(told, EventKind.VERDICT, verdict.name), verdict=verdict)
    for outcome in told.outcomes:
        if outcome.ref == ref and outcome.kind != OutcomeKind.WOULD_TERMINATE:
            yield replace(_event(told, EventKind.OUTCOME, outcome.kind), detail=_why(outcome))
    for heard in told.announcements:
        if heard.ref == ref:
            yield replace(_event(told, EventKind.ANNOUNCED, heard.code), detail=what_comes(heard))


def _event(told: ToldPass, kind: EventKind, name: str) -> Event:
    return Event(at=told.at, kind=kind, name=name, mode=told.mode or None, pass_id=told.pass_id)


def _who(act: ToldAct) -> str:
    return f"by {act.by}: {act.reason}" if act.reason else f"by {act.by}"


def _why(outcome: ToldOutcome) -> str:
    parts = dict.fromkeys(part for part in (outcome.reason, outcome.error_code, outcome.detail) if part)
    return ": ".join(parts)
