"""What would have to be true for one machine to be terminated now. Pure, and never of another opinion than `decide`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from providers.locations import Location, There
from providers.model import InstanceRef, OwnedInstance
from reaperd.core import guards
from reaperd.core.guards import Objection
from reaperd.core.history import ScopeRecord, ToldPass, Trace
from reaperd.core.model import (
    BreakerReading,
    Intent,
    KeepReason,
    Observation,
    ReapPolicy,
    RefusalReason,
    Terminate,
    TerminateReason,
    Verdict,
)
from reaperd.core.reap import Judgement, judgements, owned
from reaperd.core.sightings import EPOCH_OF_CLOUDS
from reaperd.core.whereabouts import is_proved_gone, locations
from registry.model import Worker

RESOLUTION = timedelta(microseconds=1)
"""Older than a time is at least so much older."""

LISTED = "listed"
"""The one condition that is no reason of a verdict: that there is anything to judge."""

BLIND = frozenset({RefusalReason.LISTING_INCOMPLETE, RefusalReason.DEADLINE, RefusalReason.WRONG_ACCOUNT})
"""Refusals under which nobody can say that a machine is not there."""

_ANSWERS = frozenset(
    {
        KeepReason.ALREADY_REQUESTED,
        KeepReason.PROTECTED,
        KeepReason.DENIED,
        KeepReason.INVALID_ID,
        KeepReason.FAILED,
    }
)


class Presence(StrEnum):
    """Where a machine is in the listing."""

    LISTED = "listed"
    GONE = "gone"
    """Listed, as terminated."""
    NOT_OURS = "not_ours"
    """Listed, and its ownership tag has another value."""
    ABSENT = "absent"
    """A complete listing does not have it."""
    UNLISTED = "unlisted"
    """A complete listing does not have it, its end was asked for, and its cloud says that it is still there."""
    UNPROVED = "unproved"
    """A complete listing does not have it, its end was asked for, and nothing proves that it is gone."""
    UNKNOWN = "unknown"
    """Its scope was not listed whole: that it is not there proves nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One thing that has to be so before the machine goes."""

    about: str
    """`listed`, or the reason that stands while it is not so: a KeepReason or a RefusalReason."""
    met: bool | None
    """None when it could not be judged."""
    settles_at: datetime | None = None
    """When it is met if nothing but time passes. None: it is met, or time alone does not settle it."""
    detail: str = ""
    """What a guard says; empty where the figures of the explanation say it all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """One machine, judged as by a pass at this moment, with every condition of its termination."""

    ref: InstanceRef
    now: datetime
    presence: Presence
    instance: OwnedInstance | None
    """As it was listed."""
    judgement: Judgement | None
    """None when there was nothing to judge, or no registry to judge by."""
    intent: Intent | None
    location: Location | None
    """Where it is, if its end was asked for and is not confirmed; else None: nobody asks for it by its id."""
    breaker: BreakerReading | None
    """The plan with this machine in it; None without a judgement."""
    requirements: tuple[Requirement, ...]

    @property
    def terminates(self) -> bool:
        """True when a pass at this moment that may act would terminate it."""
        return all(requirement.met for requirement in self.requirements)

    @property
    def in_the_way(self) -> tuple[Requirement, ...]:
        """Return what is not met, or could not be judged."""
        return tuple(requirement for requirement in self.requirements if not requirement.met)

    @property
    def settles_at(self) -> datetime | None:
        """Return when time alone will have settled all that is in the way; None when it will not."""
        return _latest(self.in_the_way)

    @property
    def not_before(self) -> datetime | None:
        """Return when time and further looks can have settled it at the earliest; None when more is needed."""
        waits = [each for each in self.in_the_way if each.about != KeepReason.UNCONFIRMED]
        if not waits:
            return self.now if self.in_the_way else None
        return _latest(waits)


def _latest(requirements: Iterable[Requirement]) -> datetime | None:
    times = [requirement.settles_at for requirement in requirements]
    known = [moment for moment in times if moment is not None]
    return max(known) if known and len(known) == len(times) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One machine: as judged now, as remembered, and the registry's rows that are about it."""

    explanation: Explanation
    trace: Trace
    rows: tuple[Worker, ...] = ()

    @property
    def seen(self) -> bool:
        """True when it was ever listed by us."""
        remembered = self.trace.sighting is not None or bool(self.trace.events)
        return remembered or self.explanation.instance is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dossier:
    """The answer to a question about one name."""

    asked: str
    now: datetime
    policy: ReapPolicy
    owner_tag: str
    enforcing: bool
    live: bool
    """True when the clouds were asked for it; False: judged on the last complete look of the record."""
    trouble: str = ""
    """Why a live look did not answer, so that the record had to."""
    registry_trouble: str = ""
    """Why there are no rows to tell of; empty: it was read."""
    looked_at: datetime | None
    """When the listing was made that it is judged on; None when none was ever complete."""
    newest: ToldPass | None
    """The newest pass in the record."""
    accounts: tuple[Account, ...] = ()
    rows: tuple[Worker, ...] = ()
    """What of the registry has this name."""
    scopes: tuple[ScopeRecord, ...] = ()

    @property
    def seen(self) -> bool:
        """True when a machine of that name was ever listed by us."""
        return any(account.seen for account in self.accounts)


def explain(seen: Observation, policy: ReapPolicy, ref: InstanceRef, standing: Sequence[Objection] = ()) -> Explanation:
    """Return what has to be true for a machine to be terminated, and whether it is.

    `standing` are objections of a later look, when what was seen is older than that. Without them every requirement
    is met if, and only if, `decide` would carry out a plan with this machine in it.
    """
    instance = next((each for each in seen.instances if each.ref == ref), None)
    judged = judgements(seen, policy)
    mine = next((each for each in judged if each.verdict.ref == ref), None)
    objections = _first((*guards.objections(seen, policy, owned(seen.instances, policy)), *standing))
    looked_at = {entry.scope for entry in seen.coverage if entry.ok}
    blind = not BLIND.isdisjoint(objections) or ref.scope not in looked_at
    location = locations(seen).get(ref)
    presence = Presence.UNKNOWN if blind and instance is None else _presence(instance, location, policy)
    breaker = guards.read_breaker(_with(mine, judged), seen, policy.breaker) if mine is not None else None
    intent = seen.memory.intents.get(ref)
    return Explanation(
        ref=ref,
        now=seen.now,
        presence=presence,
        instance=instance,
        judgement=mine,
        intent=intent,
        location=location,
        breaker=breaker,
        requirements=(
            Requirement(about=LISTED, met=None if presence is Presence.UNKNOWN else presence is Presence.LISTED),
            *_of_the_machine(mine, intent, policy),
            *_of_the_pass(objections, breaker),
        ),
    )


def _first(objections: Iterable[Objection]) -> Mapping[RefusalReason, str]:
    found: dict[RefusalReason, str] = {}
    for reason, text in objections:
        found.setdefault(reason, text)
    return found


def _presence(instance: OwnedInstance | None, location: Location | None, policy: ReapPolicy) -> Presence:
    """Return where a machine is by a complete listing, and by what was asked about it alone."""
    if instance is None:
        if location is None or is_proved_gone(location):
            return Presence.ABSENT
        return Presence.UNLISTED if isinstance(location, There) else Presence.UNPROVED
    if instance.owner != policy.deployment:
        return Presence.NOT_OURS
    return Presence.GONE if instance.state.is_gone else Presence.LISTED


def _with(mine: Judgement, judged: Iterable[Judgement]) -> tuple[Verdict, ...]:
    """Return all verdicts as they would be if this machine went too: the breaker judges the plan with it."""
    call = Terminate(mine.verdict.orphan or TerminateReason.UNREGISTERED, again=mine.again)
    going = replace(mine.verdict, call=call, orphan=call.reason)
    return tuple(going if each is mine else each.verdict for each in judged)


# ---------------------------------------------------------------- the conditions


def _of_the_machine(mine: Judgement | None, intent: Intent | None, policy: ReapPolicy) -> Iterator[Requirement]:
    for reason in KeepReason:
        if mine is None:
            yield Requirement(about=str(reason), met=None)
        elif reason in mine.holds:
            settles_at = _settles_at(reason, mine, intent, policy)
            yield Requirement(about=str(reason), met=False, settles_at=settles_at)
        else:
            yield Requirement(about=str(reason), met=True)


def _settles_at(reason: KeepReason, mine: Judgement, intent: Intent | None, policy: ReapPolicy) -> datetime | None:
    """Return when a hold ends if nothing but time passes; None when that does not end it."""
    if reason is KeepReason.LAUNCH_GRACE:
        return _start(mine) + policy.launch_grace + RESOLUTION
    since = mine.sighting.vanished_at
    if reason is KeepReason.ROW_VANISHED and since is not None:
        return since + policy.vanish_grace
    if reason in _ANSWERS and intent is not None:
        return intent.requested_at + policy.stuck_after
    return None


def _start(mine: Judgement) -> datetime:
    """Return from when the machine's age counts, once its launch lies in the past."""
    launched, seen = mine.verdict.instance.launched_at, mine.sighting.first_seen_at
    return seen if launched is None or launched < EPOCH_OF_CLOUDS else min(launched, seen)


def _of_the_pass(objections: Mapping[RefusalReason, str], breaker: BreakerReading | None) -> Iterator[Requirement]:
    for reason in RefusalReason:
        if reason is RefusalReason.BREAKER_OPEN:
            met = None if breaker is None else not breaker.tripped
            yield Requirement(about=str(reason), met=met, detail=breaker.tripped if breaker else "")
        else:
            yield Requirement(about=str(reason), met=reason not in objections, detail=objections.get(reason, ""))
