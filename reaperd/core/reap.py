"""The decision: an observation and a policy give a plan or a refusal. Pure, and the heart of the program."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from typing import Self

from providers.identity import loosely
from providers.model import InstanceRef, OwnedInstance
from reaperd.core import guards
from reaperd.core.evidence import told_by_rows
from reaperd.core.model import (
    Intent,
    Keep,
    KeepReason,
    Observation,
    OutcomeKind,
    Plan,
    ReapPolicy,
    Refusal,
    RefusalReason,
    Sighting,
    SparedReason,
    Terminate,
    TerminateReason,
    Verdict,
)
from reaperd.core.prices import price_of
from reaperd.core.sightings import advance, age
from reaperd.core.tracking import Ambiguous, Rows, Tracked, Tracking, Untracked, classify, heartbeats_work, index
from registry.model import RegistryRows, RegistrySnapshot, Worker

_KEPT = {reason: Keep(reason) for reason in KeepReason}

Name = tuple[str, str, str]
"""Provider, region and instance id."""

_HOLD_OF_OUTCOME: Mapping[OutcomeKind | None, KeepReason] = {
    None: KeepReason.ALREADY_REQUESTED,
    OutcomeKind.REQUESTED: KeepReason.ALREADY_REQUESTED,
    OutcomeKind.UNKNOWN: KeepReason.ALREADY_REQUESTED,
    OutcomeKind.ALREADY_GONE: KeepReason.ALREADY_REQUESTED,
    OutcomeKind.PROTECTED: KeepReason.PROTECTED,
    OutcomeKind.DENIED: KeepReason.DENIED,
    OutcomeKind.INVALID_ID: KeepReason.INVALID_ID,
    OutcomeKind.FAILED: KeepReason.FAILED,
}


def decide(seen: Observation, policy: ReapPolicy) -> Plan | Refusal:
    """Return what to do about what was seen: a verdict for every owned machine, or one refusal for all."""
    return decide_on(Picture(seen, policy))


def owned(instances: Iterable[OwnedInstance], policy: ReapPolicy) -> tuple[OwnedInstance, ...]:
    """Return the machines that are ours, exactly (rule 8), whatever the cloud's filter let through."""
    return tuple(instance for instance in instances if instance.owner == policy.deployment)


def judge(seen: Observation, policy: ReapPolicy) -> tuple[tuple[Verdict, Sighting], ...]:
    """Return each of our machines' verdict, and what is known of it after this look. Gone ones get neither."""
    return tuple((each.verdict, each.sighting) for each in judgements(seen, policy))


def judgements(seen: Observation, policy: ReapPolicy) -> tuple[Judgement, ...]:
    """Return the judgement of each of our machines that is not gone."""
    return Picture(seen, policy).judgements


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """One machine's verdict with everything that led to it."""

    verdict: Verdict
    sighting: Sighting
    """What is known of it after this look."""
    tracking: Tracking
    holds: tuple[KeepReason, ...]
    """Every reason to keep it, in the order of rule 14; empty when it goes."""
    again: bool
    """An open request for it was answered, or may have been: to go once more it would be a retry or a re-send."""


@dataclass(frozen=True, eq=False)
class Picture:
    """What one look comes to. Whoever decides, learns, counts and tells shares it: each part is worked out once."""

    seen: Observation
    policy: ReapPolicy

    @cached_property
    def ours(self) -> tuple[OwnedInstance, ...]:
        """Return the machines that are ours."""
        return owned(self.seen.instances, self.policy)

    @cached_property
    def objections(self) -> tuple[guards.Objection, ...]:
        """Return every reason to stand down but the breaker's."""
        return guards.objections(self.seen, self.policy, self.ours)

    @property
    def registry(self) -> RegistrySnapshot | None:
        """Return the registry; None when there is none to judge by."""
        return self.seen.registry if isinstance(self.seen.registry, RegistrySnapshot) else None

    @property
    def sound_registry(self) -> RegistrySnapshot | None:
        """Return the registry; None when this look can be judged by nothing: it teaches nothing, and counts nothing."""
        return self.registry if guards.picture_is_good(self.objections) else None

    @cached_property
    def judgements(self) -> tuple[Judgement, ...]:
        """Return the judgement of each of our machines that is not gone, in the order of their names."""
        if self.registry is None:
            return ()
        listing = {instance.ref: instance for instance in self.ours}
        rows = index(self.registry.workers, self.policy, self.seen.now)
        case = _Case(self.seen, self.policy, rows, listing)
        return tuple(case.judged(each) for each in sorted(listing.values(), key=by_name) if not each.state.is_gone)

    @cached_property
    def claimed(self) -> frozenset[Name]:
        """Return the machines that live rows name."""
        workers = self.registry.workers if self.registry is not None else ()
        return frozenset(
            (row.provider, row.region, row.instance_id) for row in workers if row.instance_id and row.state.is_live
        )

    @cached_property
    def missing(self) -> tuple[Worker, ...]:
        """Return the live rows whose machine a complete listing of its scope does not have."""
        coverage = self.seen.coverage
        if self.registry is None or not all(entry.ok for entry in coverage):
            return ()
        absent = self.claimed - {by_name(instance) for instance in self.ours if not instance.state.is_gone}
        looked_at = {(entry.scope.provider, entry.scope.region) for entry in coverage}
        return tuple(
            row
            for row in (self.registry.workers if absent else ())
            if row.state.is_live
            and (row.provider, row.region, row.instance_id) in absent
            and (row.provider, row.region) in looked_at
        )


def decide_on(picture: Picture) -> Plan | Refusal:
    """Return what to do about a picture."""
    seen, policy, standing = picture.seen, picture.policy, picture.objections
    verdicts: tuple[Verdict, ...] = ()
    digest = None
    breaker = None
    if guards.picture_is_good(standing):
        verdicts = tuple(each.verdict for each in picture.judgements)
        digest = digest_of(policy.deployment, (v.ref for v in verdicts if v.terminates))
        breaker = guards.read_breaker(verdicts, seen, policy.breaker)
        if breaker.tripped:
            standing = (*standing, (RefusalReason.BREAKER_OPEN, breaker.tripped))
    if not standing:
        return Plan(verdicts=verdicts, digest=digest)
    reason, detail = standing[0]
    refusal = Refusal(reason=reason, also=tuple(r for r, _ in standing[1:]), detail=detail)
    if reason in {RefusalReason.REAP_HOLD, RefusalReason.BREAKER_OPEN}:
        return replace(refusal, verdicts=verdicts, digest=digest, breaker=breaker)
    return refusal


def by_name(instance: OwnedInstance) -> Name:
    """Return what a machine is called, as plain text: it sorts and compares faster than its ref."""
    ref = instance.ref
    return (ref.provider, ref.region, ref.instance_id)


def recheck(verdict: Verdict, found: RegistryRows, seen: Observation, policy: ReapPolicy) -> SparedReason | None:
    """Say why a planned termination must not be sent, the rows having been looked up again; None: it may."""
    return Recheck.of(seen, policy).reason(verdict, found)


@dataclass(frozen=True, slots=True)
class Recheck:
    """The recheck of many terminations of one plan: what they share is worked out once."""

    seen: Observation
    policy: ReapPolicy
    listing: Mapping[InstanceRef, OwnedInstance]
    heartbeats_worked: bool | None
    """Whether heartbeats worked when the plan was made; None when there was no registry."""

    @classmethod
    def of(cls, seen: Observation, policy: ReapPolicy) -> Self:
        """Return the recheck of whatever is planned on this observation."""
        listing = {instance.ref: instance for instance in owned(seen.instances, policy)}
        if not isinstance(seen.registry, RegistrySnapshot):
            return cls(seen, policy, listing, None)
        return cls(seen, policy, listing, heartbeats_work(seen.registry.workers, policy, seen.now))

    def reason(self, verdict: Verdict, found: RegistryRows) -> SparedReason | None:
        """Say why it must not be sent; None: it may. `found` are the rows about this machine, and no others."""
        if self.heartbeats_worked is None:
            return SparedReason.CHANGED
        current = index(found.workers, self.policy, self.seen.now)
        rows = replace(current, heartbeats_work=self.heartbeats_worked or current.heartbeats_work)
        tracking = classify(verdict.instance, rows, self.listing, self.policy, self.seen.now)
        if isinstance(tracking, Tracked):
            return SparedReason.TRACKED_NOW
        same = isinstance(tracking, Untracked) and tracking.reason is verdict.orphan
        return None if same else SparedReason.CHANGED


def digest_of(deployment: str, refs: Iterable[InstanceRef]) -> str | None:
    """Return the name of a plan; None when it terminates nothing. No ages in it, so that two hosts agree."""
    lines = sorted(f"{ref}\n" for ref in refs)
    if not lines:
        return None
    text = f"{deployment}\n" + "".join(lines)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def _repeats(intent: Intent | None, prior: Sighting | None) -> bool:
    """Say whether a termination would repeat one that was decided before.

    One that was tracked since is another case: it is a candidate of the breaker like any other.
    """
    if intent is None or _hold_of(intent) is None:
        return False
    return prior is None or prior.tracked_at is None or prior.tracked_at <= intent.requested_at


@dataclass(frozen=True, slots=True)
class _Case:
    """What the judgement of every single machine needs."""

    seen: Observation
    policy: ReapPolicy
    rows: Rows
    listing: Mapping[InstanceRef, OwnedInstance]

    def judged(self, instance: OwnedInstance) -> Judgement:
        """Return one machine's verdict, with its next sighting."""
        now, policy, memory = self.seen.now, self.policy, self.seen.memory
        prior, intent = memory.sightings.get(instance.ref), memory.intents.get(instance.ref)
        tracking = classify(instance, self.rows, self.listing, policy, now)
        sighting = advance(prior, tracking, now, policy.look_spacing)
        old = age(instance, prior, now)
        unripe = self._unripe(old, sighting)
        again = _repeats(intent, prior)
        holds = (*self._holds(instance, tracking), *self._answered(intent), *unripe)
        orphan = tracking.reason if isinstance(tracking, Untracked) else None
        verdict = Verdict(
            instance=instance,
            call=_call(orphan, holds, again=again),
            age=old,
            confirmations=sighting.confirmations,
            orphan=orphan,
            ripe=orphan is not None and not unripe,
            row_vanished=sighting.vanished_at is not None,
            detail=told_by_rows(tracking),
            first_seen_at=sighting.first_seen_at,
            tracked_at=sighting.tracked_at,
            cost_per_hour_usd=price_of(instance.ref, instance.instance_type, policy.prices),
        )
        name = verdict.name
        return Judgement(
            verdict=verdict,
            sighting=sighting if sighting.verdict == name else replace(sighting, verdict=name),
            tracking=tracking,
            holds=holds,
            again=again,
        )

    def _holds(self, instance: OwnedInstance, tracking: Tracking) -> list[KeepReason]:
        """Return what holds a machine whatever its age, in the order of rule 14."""
        return [
            reason
            for reason, holds in (
                (KeepReason.FOREIGN_ACCOUNT, instance.foreign_account),
                (KeepReason.IN_TRANSITION, instance.state.in_transition),
                (KeepReason.TRACKED, isinstance(tracking, Tracked)),
                (KeepReason.AMBIGUOUS_WORKER, isinstance(tracking, Ambiguous)),
                (KeepReason.FOREIGN_REGISTRY, self._of_another_registry(instance)),
                (KeepReason.NEVER_LIST, loosely(instance.ref.instance_id) in self.policy.never),
                (KeepReason.PROTECT_TAG, instance.protect),
                (KeepReason.MANAGED, instance.managed_by is not None),
            )
            if holds
        ]

    def _answered(self, intent: Intent | None) -> Iterator[KeepReason]:
        """Yield what the cloud answered last time, until it is time to ask again."""
        answer = _hold_of(intent)
        if answer is not None and not self._may_ask_again(intent):
            yield answer

    def _unripe(self, old: timedelta | None, sighting: Sighting) -> list[KeepReason]:
        """Return what only time can settle."""
        policy = self.policy
        found: list[KeepReason] = []
        if old is None or not old > policy.launch_grace:
            found.append(KeepReason.LAUNCH_GRACE)
        if sighting.confirmations < policy.confirm_passes and not policy.confirmation_given:
            found.append(KeepReason.UNCONFIRMED)
        if sighting.vanished_at is not None and self.seen.now - sighting.vanished_at < policy.vanish_grace:
            found.append(KeepReason.ROW_VANISHED)
        return found

    def _of_another_registry(self, instance: OwnedInstance) -> bool:
        registry = self.seen.registry
        mine = registry.identity.registry_id if isinstance(registry, RegistrySnapshot) else None
        return instance.registry_id is not None and instance.registry_id != mine

    def _may_ask_again(self, intent: Intent | None) -> bool:
        return intent is not None and _since(intent, self.seen) >= self.policy.stuck_after


def _call(orphan: TerminateReason | None, holds: tuple[KeepReason, ...], *, again: bool) -> Keep | Terminate:
    if holds or orphan is None:
        return _KEPT[holds[0] if holds else KeepReason.AMBIGUOUS_WORKER]
    return Terminate(orphan, again=again)


def _since(intent: Intent, seen: Observation) -> timedelta:
    return max(seen.now - intent.requested_at, timedelta(0))


def _hold_of(intent: Intent | None) -> KeepReason | None:
    return _HOLD_OF_OUTCOME.get(intent.outcome) if intent is not None else None
