"""The life of an alert: from what holds now and what was told before, to what is to be told. Pure.

    nothing ─ seen ─► waiting ─ ripe, not muted ─► told ─ gone, on a look that would have shown it ─► nothing
                         └───────────── gone: nobody is told ──────────────────────────────────────────┘

Whoever keeps the book stores the new one and puts what is due into an outbox, in one transaction. Then a notification
is neither lost nor made twice, wherever the process dies; and nothing here needs to know that there was a restart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import MappingProxyType

from alerts.digests import gathered, notice_id
from alerts.looks import Look, counts, is_ripe, resolves
from alerts.model import Condition, Kind, Level, Notice, Notification, Severity, Standing
from alerts.mutes import Mute, is_muted


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What one channel knows of one alert."""

    at: datetime
    """When it was last told."""
    severity: Severity
    """The highest that it was told since the alert was less severe for long enough."""


NOBODY: Mapping[str, Told] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One condition that holds, from when it was first seen until a look finds it gone: one episode."""

    condition: Condition
    """As it was last seen."""
    since: datetime
    """When it was first seen."""
    severity: Severity
    """The condition's own, or one step more for an alert that is old. It falls slowly (`_severity`)."""
    severe_at: datetime
    """When it was last seen with that severity."""
    ripe: bool
    """It was time to tell. It stays so."""
    told: Mapping[str, Told] = field(default_factory=lambda: NOBODY, hash=False)
    """What each channel was told. A channel that is not in here was told nothing."""

    @property
    def shown(self) -> Condition:
        """Return the condition with the severity of the alert."""
        return replace(self.condition, severity=self.severity)


Book = Mapping[str, Alert]
"""Every alert that is not over, by its key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audience:
    """A channel, as far as it matters for what it is told."""

    name: str
    min_severity: Severity = Severity.WARNING


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Who is told, and how often."""

    audiences: tuple[Audience, ...]
    """The channels that take notifications; those that are told levels are not among them."""
    realert_after: timedelta = timedelta(hours=24)
    escalate_after: timedelta = timedelta(hours=72)
    digest_above: int = 20
    mutes: tuple[Mute, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A notification for one channel."""

    channel: str
    notification: Notification


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What follows from one look."""

    book: Book
    due: tuple[Due, ...]
    standing: tuple[Standing, ...]
    """Everything that holds, as far as is known, and is neither waiting nor muted."""
    ended: tuple[Standing, ...]
    """What no longer holds, or no longer with this severity."""


def step(book: Book, conditions: Iterable[Condition], look: Look, policy: Policy) -> Step:
    """Return the new book, and what is to be told of the look.

    Only what the look shows is told, reminded of or raised, and only what it would have shown is over: the alerts of a
    scope that failed stay exactly as they were.
    """
    seen = _by_key(condition for condition in conditions if counts(look, condition))
    gone = frozenset(key for key, alert in book.items() if key not in seen and resolves(look, alert.condition))
    after = {key: alert for key, alert in book.items() if key not in gone}
    notices: dict[str, list[Notice]] = {audience.name: [] for audience in policy.audiences}
    for key, condition in seen.items():
        alert = _seen_again(book.get(key), condition, look, policy)
        told = _told_now(alert, look.at, policy)
        for name, notice in told.items():
            notices[name].append(notice)
        after[key] = replace(alert, told=_remembered(alert, told))
    for name, notice in _farewells(book, gone, look.at):
        if name in notices:
            notices[name].append(notice)
    return Step(
        book=after,
        due=_due(notices, policy, look.at),
        standing=_standing(after, policy, look.at),
        ended=(*_standings(book[key] for key in sorted(gone)), *_reclassified(book, after)),
    )


def withdraw(book: Book, scopes: frozenset[str], policy: Policy, now: datetime) -> Step:
    """Take back the alerts of scopes that are no longer looked at, since an operator dropped them: no look would.

    Who was told of them is told so. That they ended is not said.
    """
    gone = frozenset(key for key, alert in book.items() if alert.condition.scope in scopes)
    after = {key: alert for key, alert in book.items() if key not in gone}
    unwatched = {key: _unwatched(book[key]) for key in gone}
    notices: dict[str, list[Notice]] = {audience.name: [] for audience in policy.audiences}
    for name, notice in _farewells(unwatched, gone, now):
        if name in notices:
            notices[name].append(notice)
    return Step(
        book=after,
        due=_due(notices, policy, now),
        standing=_standing(after, policy, now),
        ended=_standings(book[key] for key in sorted(gone)),
    )


def level_of(done: Step, audience: Audience, *, at: datetime, until: datetime) -> Level:
    """Return what a channel is to hold after a step: what is severe enough for it."""
    severe = audience.min_severity.rank
    return Level(
        at=at,
        until=until,
        standing=tuple(standing for standing in done.standing if standing.condition.severity.rank >= severe),
        ended=tuple(ended for ended in done.ended if ended.condition.severity.rank >= severe),
    )


# ---------------------------------------------------------------- what is seen


def _by_key(conditions: Iterable[Condition]) -> Mapping[str, Condition]:
    """Return one condition a key, the most severe, whatever their order."""
    found: dict[str, Condition] = {}
    for condition in conditions:
        other = found.get(condition.key)
        if other is None or _weight(condition) > _weight(other):
            found[condition.key] = condition
    return found


def _weight(condition: Condition) -> tuple[int, str]:
    return condition.severity.rank, repr(sorted(condition.data.items()))


def _seen_again(before: Alert | None, condition: Condition, look: Look, policy: Policy) -> Alert:
    since = look.at if before is None else before.since
    severity, severe_at = _severity(before, condition, look, policy)
    return Alert(
        condition=condition,
        since=since,
        severity=severity,
        severe_at=severe_at,
        ripe=(before is not None and before.ripe) or is_ripe(look, condition, since),
        told=NOBODY if before is None else _still_known(before.told, severity, look.at),
    )


def _severity(before: Alert | None, condition: Condition, look: Look, policy: Policy) -> tuple[Severity, datetime]:
    """Return the severity of an alert that is seen, and when it was last seen with it.

    It rises at once and falls slowly: the alert of a machine that is stopped every night would else end every evening
    for those who hear of the severe only, and begin anew every morning.
    """
    if before is None:
        return condition.severity, look.at
    old = look.at - before.since >= policy.escalate_after
    now = condition.severity.raised if old else condition.severity
    severe_at = min(before.severe_at, look.at)
    if now.rank >= before.severity.rank or look.at - severe_at >= policy.realert_after:
        return now, look.at
    return before.severity, severe_at


def _still_known(told: Mapping[str, Told], severity: Severity, now: datetime) -> Mapping[str, Told]:
    """Return what the channels know.

    A clock that once ran ahead must not silence the reminders for years. And where the severity fell, what rises above
    it once more is news.
    """
    return {
        name: Told(at=min(known.at, now), severity=min(known.severity, severity, key=lambda each: each.rank))
        for name, known in told.items()
    }


# ---------------------------------------------------------------- what is told


def _told_now(alert: Alert, now: datetime, policy: Policy) -> dict[str, Notice]:
    """Return what each channel is to be told of an alert that was seen."""
    if not alert.ripe or is_muted(alert.condition.key, policy.mutes, now):
        return {}
    kinds = {audience.name: _kind(alert, audience, now, policy) for audience in policy.audiences}
    return {name: _notice(kind, alert, now) for name, kind in kinds.items() if kind is not None}


def _kind(alert: Alert, audience: Audience, now: datetime, policy: Policy) -> Kind | None:
    """Return what the channel is to be told; None: it knows enough."""
    if alert.severity.rank < audience.min_severity.rank:
        return None
    told = alert.told.get(audience.name)
    if told is None:
        return Kind.FIRING
    if alert.severity.rank > told.severity.rank:
        return Kind.ESCALATED
    return Kind.REMINDER if now - told.at >= policy.realert_after else None


def _remembered(alert: Alert, now_told: Mapping[str, Notice]) -> Mapping[str, Told]:
    """Return what the channels know after they were told."""
    told = dict(alert.told)
    for name, notice in now_told.items():
        known = told.get(name)
        severity = alert.severity if known is None else max(alert.severity, known.severity, key=lambda s: s.rank)
        told[name] = Told(at=notice.at, severity=severity)
    return MappingProxyType(told)


def _farewells(book: Book, gone: Iterable[str], now: datetime) -> Iterator[tuple[str, Notice]]:
    """Yield for every channel what it was told of and is over. No mute hides that."""
    for key in gone:
        alert = book[key]
        for name in alert.told:
            yield name, _notice(Kind.RESOLVED, alert, now)


def _notice(kind: Kind, alert: Alert, now: datetime) -> Notice:
    told = alert.shown
    return Notice(id=notice_id(kind, told.key, alert.since, now), kind=kind, at=now, condition=told, since=alert.since)


def _due(notices: Mapping[str, list[Notice]], policy: Policy, now: datetime) -> tuple[Due, ...]:
    return tuple(
        Due(channel=name, notification=notification)
        for name, told in notices.items()
        for notification in gathered(told, policy.digest_above, now)
    )


def _unwatched(alert: Alert) -> Alert:
    data = {**alert.condition.data, "ended": "its scope is no longer looked at"}
    return replace(alert, condition=replace(alert.condition, data=data))


# ---------------------------------------------------------------- levels


def _standing(book: Book, policy: Policy, now: datetime) -> tuple[Standing, ...]:
    return _standings(book[key] for key in sorted(book) if not is_muted(key, policy.mutes, now))


def _standings(alerts: Iterable[Alert]) -> tuple[Standing, ...]:
    return tuple(Standing(condition=alert.shown, since=alert.since) for alert in alerts if alert.ripe)


def _reclassified(before: Book, after: Book) -> tuple[Standing, ...]:
    """Return what stands with another severity now: for a receiver that is another alert."""
    changed = (key for key in sorted(before) if key in after and before[key].severity is not after[key].severity)
    return _standings(before[key] for key in changed)
