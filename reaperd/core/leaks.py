"""What an audit finds: machines that nobody owns and that run too long, or cost too much. Pure.

A leak is alerted, never terminated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from alerts.model import Cause, Condition, Datum, Severity
from providers.events import ProviderEvent, Unheard
from providers.identity import loosely
from providers.model import AuditedInstance, Coverage, InstanceRef, InstanceState, Scope, TagKeys
from reaperd.core.ignoring import IgnoreRule, RuleState, RuleUse, match_rules
from reaperd.core.model import PassOutcome, RefusalReason
from reaperd.core.prices import NO_PRICES, Prices, price_of
from reaperd.core.starts import NO_STARTS, LearnedStarts, Starts, started, told_start


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPolicy:
    """What counts as a leak."""

    deployment: str
    tags: TagKeys
    max_age: timedelta
    """An unowned machine that runs longer is a leak."""
    max_cost_per_hour: float | None = None
    """… or one that costs more than this, in US dollars, and is older than min_age. None: cost says nothing."""
    min_age: timedelta = timedelta(hours=1)
    ignore: tuple[IgnoreRule, ...] = ()
    scopes: frozenset[Scope] | None = None
    """Where the reaper looks; owned machines elsewhere are told. None: it looks everywhere."""
    discovering: frozenset[str] = frozenset()
    """Providers that find their scopes themselves: the reaper looks wherever the audit does."""
    prices: Prices = field(default_factory=lambda: NO_PRICES, hash=False)
    """What machines cost an hour, as far as the operator says. The cloud's own word holds before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leak:
    """One machine that nobody owns and that somebody should look at."""

    instance: AuditedInstance
    first_seen_at: datetime | None
    """The earliest that earlier sweeps knew it to run; None when this is the first look."""
    age: timedelta | None
    """None: nobody says when it started, and we have not seen it for long enough. It is told as such, never as 0."""
    near_miss: str | None = None
    """A tag that is almost our ownership tag; None without one."""
    event: ProviderEvent | None = None
    """What its cloud announces for it. It is told, and nothing is judged by it: until it is gone, it costs."""

    @property
    def stopped(self) -> bool:
        """True for one that bills its disks, not its hours."""
        return self.instance.state is InstanceState.STOPPED


@dataclass(frozen=True, slots=True)
class Ignored:
    """A leak that a rule leaves out, with the reason."""

    leak: Leak
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFindings:
    """What one sweep found."""

    leaks: tuple[Leak, ...]
    """Running and stopped ones."""
    ignored: tuple[Ignored, ...]
    near_misses: tuple[Leak, ...]
    """Every machine with a tag that is almost ours, old or young."""
    unknown_age: tuple[Leak, ...] = ()
    """Machines of whose age nobody can say anything yet: neither leaks nor none."""
    out_of_scope: tuple[InstanceRef, ...] = ()
    """Our own machines where the reaper does not look."""
    rules: tuple[RuleUse, ...] = ()
    """Every rule of the file, with what it was good for."""
    instances: int
    owned: int
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """The one record of a sweep."""

    pass_id: str
    started_at: datetime
    finished_at: datetime
    outcome: PassOutcome
    """Complete, or refused when a scope or the clock failed: what was seen is told all the same."""
    reason: str | None
    detail: str = ""
    coverage: tuple[Coverage, ...] = ()
    skipped: tuple[str, ...] = ()
    """Providers that cannot audit."""
    events: tuple[ProviderEvent, ...] = ()
    """Whatever clouds announce, or have carried out: for our machines too, and for those that are gone."""
    unheard: tuple[Unheard, ...] = ()
    """Where that could not be had. The sweep is no less whole for it."""
    findings: AuditFindings
    learned: LearnedStarts = field(default_factory=LearnedStarts)
    """Since when machines run, as far as that is news. For the ledger alone."""

    @property
    def seen_whole(self) -> frozenset[Scope]:
        """Return the scopes of which this sweep may raise, resolve and count something (rule 26).

        None under a clock that cannot be believed (rule 16): by one that is a day ahead, everything is a day older.
        """
        if self.reason == RefusalReason.CLOCK:
            return frozenset()
        return frozenset(entry.scope for entry in self.coverage if entry.ok)

    @property
    def idle_rules(self) -> tuple[tuple[RuleUse, RuleState], ...]:
        """Return the rules that somebody should take out of the file."""
        complete = self.outcome is PassOutcome.COMPLETE
        stated = ((use, use.state(complete=complete)) for use in self.findings.rules)
        return tuple((use, state) for use, state in stated if state is not RuleState.IN_FORCE)


def find_leaks(
    instances: Iterable[AuditedInstance],
    policy: AuditPolicy,
    now: datetime,
    remembered: Starts = NO_STARTS,
    events: Iterable[ProviderEvent] = (),
) -> AuditFindings:
    """Sort what a sweep saw into owned, leaks, ignored and the rest. `events` are told beside whom they concern."""
    seen = sorted((_priced(i, policy) for i in instances if not i.state.is_gone), key=lambda i: i.ref)
    strange = [i for i in seen if i.owner != policy.deployment]
    announced = {event.ref: event for event in events}
    looked_at = [
        replace(_looked_at(each, policy, now, remembered.get(each.ref)), event=announced.get(each.ref))
        for each in strange
    ]
    rules = match_rules(policy.ignore, strange, now)
    told = [leak for leak in looked_at if leak.instance.ref not in rules.by_ref]
    leaks = tuple(leak for leak in told if _is_leak(leak, policy))
    astray = tuple(i.ref for i in seen if i.owner == policy.deployment and not _is_looked_at(i.ref, policy))
    return AuditFindings(
        leaks=leaks,
        ignored=tuple(
            Ignored(leak, rules.by_ref[leak.instance.ref].reason)
            for leak in looked_at
            if leak.instance.ref in rules.by_ref and _is_leak(leak, policy)
        ),
        near_misses=tuple(leak for leak in looked_at if leak.near_miss is not None),
        unknown_age=tuple(leak for leak in told if leak.age is None and not leak.instance.state.in_transition),
        out_of_scope=astray,
        rules=rules.uses,
        instances=len(seen),
        owned=len(seen) - len(strange),
        conditions=(*map(_condition, leaks), *map(_out_of_scope, astray)),
    )


def oldest_first(leaks: Iterable[Leak]) -> list[Leak]:
    """Return them by age. One of unknown age may be the oldest."""
    return sorted(leaks, key=lambda leak: (timedelta.min if leak.age is None else -leak.age, leak.instance.ref))


def near_miss(tags: Mapping[str, str], keys: TagKeys, deployment: str) -> str | None:
    """Return a tag that is ours but for case or blanks, as `key=value`; None without one."""
    for key, value in sorted(tags.items()):
        exact = key == keys.owner and value == deployment
        if not exact and (loosely(key), loosely(value)) == (loosely(keys.owner), loosely(deployment)):
            return f"{key}={value}"
    return None


def _priced(instance: AuditedInstance, policy: AuditPolicy) -> AuditedInstance:
    if instance.cost_per_hour_usd is not None:
        return instance
    price = price_of(instance.ref, instance.instance_type, policy.prices)
    return instance if price is None else replace(instance, cost_per_hour_usd=price)


def _looked_at(instance: AuditedInstance, policy: AuditPolicy, now: datetime, remembered: datetime | None) -> Leak:
    return Leak(
        instance=instance,
        first_seen_at=remembered,
        age=_age(instance, policy, now, remembered),
        near_miss=near_miss(instance.tags, policy.tags, policy.deployment),
    )


def _age(
    instance: AuditedInstance, policy: AuditPolicy, now: datetime, remembered: datetime | None
) -> timedelta | None:
    """Return how long a machine has run; None while nobody can say.

    Of one that nobody gives a start to, we know how long we have seen it. That counts once it is long enough for a
    leak; until then it says nothing, since the machine may have run for years before.
    """
    since = started(instance, now, remembered)
    if since is None:
        return None
    seen_for = now - since
    unsaid = told_start(instance, now) is None and seen_for <= _limit(instance, policy)
    return None if unsaid else seen_for


def _is_leak(leak: Leak, policy: AuditPolicy) -> bool:
    """Say whether somebody should look. A stopped machine still bills its disks."""
    if leak.age is None or leak.instance.state.in_transition:
        return False
    return leak.age > _limit(leak.instance, policy)


def _limit(instance: AuditedInstance, policy: AuditPolicy) -> timedelta:
    """Return how old a machine may become. One that is stopped does not cost its price."""
    cost = None if instance.state is InstanceState.STOPPED else instance.cost_per_hour_usd
    dear = policy.max_cost_per_hour is not None and cost is not None and cost > policy.max_cost_per_hour
    return min(policy.min_age, policy.max_age) if dear else policy.max_age


def _condition(leak: Leak) -> Condition:
    instance = leak.instance
    data: dict[str, Datum] = {
        "name": instance.name,
        "instance_type": instance.instance_type,
        "state": str(instance.state),
        "age_seconds": None if leak.age is None else int(leak.age.total_seconds()),
        "near_miss_tag": leak.near_miss,
    }
    # A stopped machine costs cents an hour, and somebody meant it to stop: nobody is to be woken for it. The alerts
    # make it a warning when it is still there after `escalate_after`.
    severity = Severity.INFO if leak.stopped else Severity.WARNING
    return Condition(cause=Cause.LEAK, subject=str(instance.ref), severity=severity, data=data)


def _out_of_scope(ref: InstanceRef) -> Condition:
    """Return the condition of a machine of ours where the reaper does not look: it would never find it orphaned."""
    data: Mapping[str, Datum] = {"scope": str(ref.scope)}
    return Condition(cause=Cause.OWNED_OUT_OF_SCOPE, subject=str(ref), severity=Severity.WARNING, data=data)


def _is_looked_at(ref: InstanceRef, policy: AuditPolicy) -> bool:
    return policy.scopes is None or ref.scope in policy.scopes or ref.provider in policy.discovering
