"""Many looks at alerts that come and go: each episode is told once, and only who looked may say that it is over.

What is expected is computed from the bare history of looks, never from the book.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import event, given
from hypothesis import strategies as st

from alerts.lifecycle import Alert, Audience, Policy, Step, step
from alerts.looks import Domain, Look
from alerts.model import Cause, Condition, Digest, Kind, Notice, Severity
from alerts.mutes import Mute
from alerts.records import alert_record, notification_record, read_alert, read_notification

START = datetime(2026, 1, 10, 12, tzinfo=UTC)
EAST, WEST = "aws/us-east-1", "aws/eu-west-1"
SCOPES = frozenset({EAST, WEST})
LEAKS = tuple((Cause.LEAK, f"{scope}/i-{n}") for scope in sorted(SCOPES) for n in range(3))
ORPHANS = tuple((Cause.PROTECTED_ORPHAN, f"{scope}/i-{n}") for scope in sorted(SCOPES) for n in range(2))
WHOLE = ((Cause.BREAKER_OPEN, ""), (Cause.LISTING_INCOMPLETE, ""), (Cause.BLIND, ""))
WARNED, PAGED = Audience(name="chat"), Audience(name="pager", min_severity=Severity.CRITICAL)
NO_DIGEST = 1_000
HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class Moment:
    look: Look
    seen: tuple[Condition, ...]

    @property
    def keys(self) -> frozenset[str]:
        return frozenset(condition.key for condition in self.seen if self.counts(condition))

    def counts(self, condition: Condition) -> bool:
        return self.look.domain is Domain.RECONCILE or scope_of(condition.key) in self.look.scopes

    def would_show(self, key: str) -> bool:
        cause, scope = key.split("/", maxsplit=1)[0], scope_of(key)
        if cause == "leak":
            return self.look.domain is Domain.AUDIT and scope in self.look.scopes
        if self.look.domain is Domain.AUDIT or self.look.scopes != SCOPES:
            return False
        return self.look.judged if cause == "breaker_open" else True


def scope_of(key: str) -> str:
    return "/".join(key.split("/")[1:3])


@st.composite
def _moments(draw) -> tuple[Moment, ...]:
    at, found, whole = START, [], None
    for _ in range(draw(st.integers(1, 12))):
        at += draw(st.sampled_from([timedelta(minutes=1), timedelta(minutes=15), 9 * HOUR, 30 * HOUR]))
        domain = draw(st.sampled_from([Domain.AUDIT, Domain.RECONCILE]))
        scopes = draw(st.sampled_from([SCOPES, SCOPES, frozenset({EAST}), frozenset()]))
        complete = scopes == SCOPES
        possible = LEAKS if domain is Domain.AUDIT else ORPHANS + WHOLE
        seen = tuple(
            Condition(cause=cause, subject=subject, severity=draw(severities), data={"age_seconds": draw(ages)})
            for cause, subject in draw(st.lists(st.sampled_from(possible), unique=True))
        )
        if domain is Domain.RECONCILE and complete:
            whole = at
            seen = tuple(c for c in seen if c.cause is not Cause.LISTING_INCOMPLETE)
        judged = complete and draw(st.booleans())
        look = Look(domain=domain, at=at, scopes=scopes, complete=complete, judged=judged, last_complete=whole)
        found.append(Moment(look, seen))
    return tuple(found)


severities = st.sampled_from([Severity.INFO, Severity.WARNING, Severity.WARNING, Severity.CRITICAL])
ages = st.integers(0, 3)
moments = _moments()
mutes = st.lists(
    st.builds(
        Mute,
        pattern=st.sampled_from(["leak/*", f"leak/{EAST}/i-1", "breaker_open", "protected*", "*"]),
        until=st.sampled_from([START + HOUR, START + 40 * HOUR]),
        reason=st.just("known"),
    ),
    max_size=2,
).map(tuple)
policies = st.builds(
    Policy,
    audiences=st.just((WARNED, PAGED)),
    realert_after=st.sampled_from([10 * HOUR, 24 * HOUR]),
    escalate_after=st.just(72 * HOUR),
    digest_above=st.just(NO_DIGEST),
    mutes=mutes,
)


def live(history: tuple[Moment, ...], policy: Policy) -> Iterator[Step]:
    """Yield every step of a process that is started anew for each of them."""
    book: dict[str, Alert] = {}
    for moment in history:
        done = step(book, moment.seen, moment.look, policy)
        for due in done.due:
            assert read_notification(through_json(notification_record(due.notification))) == due.notification
        yield done
        book = {key: read_alert(through_json(alert_record(alert))) for key, alert in done.book.items()}
        assert book == done.book


def through_json(record):
    return json.loads(json.dumps(record))


@dataclass(frozen=True)
class Said:
    place: int
    kind: Kind
    notice: Notice


def said(history: tuple[Moment, ...], policy: Policy) -> dict[tuple[str, str], list[Said]]:
    """Return what each channel was told about each key, in order."""
    told: dict[tuple[str, str], list[Said]] = {}
    for place, done in enumerate(live(history, policy)):
        for due in done.due:
            assert isinstance(due.notification, Notice)
            key = due.notification.condition.key
            told.setdefault((due.channel, key), []).append(Said(place, due.notification.kind, due.notification))
    return told


def episodes(history: tuple[Moment, ...], key: str) -> Iterator[tuple[int, int]]:
    """Yield the place where each episode of a key begins, and the place where it ends."""
    began = None
    for place, moment in enumerate(history):
        if key in moment.keys:
            began = place if began is None else began
        elif began is not None and moment.would_show(key):
            yield began, place
            began = None
    if began is not None:
        yield began, len(history)


def keys_of(history: tuple[Moment, ...]) -> frozenset[str]:
    return frozenset(key for moment in history for key in moment.keys)


def own_severity(moment: Moment, key: str, since: datetime, policy: Policy) -> Severity:
    severity = max((c.severity for c in moment.seen if c.key == key), key=lambda s: s.rank)
    return severity.raised if moment.look.at - since >= policy.escalate_after else severity


def severity_at(history: tuple[Moment, ...], key: str, began: int, place: int, policy: Policy) -> Severity:
    """Return the severity of an episode at a look: it rises at once, and falls when it was lower for long enough."""
    since = history[began].look.at
    shown = [m for m in history[began : place + 1] if key in m.keys]
    severity, severe_at = Severity.INFO, since
    for moment in shown:
        own = own_severity(moment, key, since, policy)
        if own.rank >= severity.rank or moment.look.at - severe_at >= policy.realert_after:
            severity, severe_at = own, moment.look.at
    return severity


def tellable(history: tuple[Moment, ...], key: str, began: int, place: int, audience: Audience, policy: Policy) -> bool:
    """Say whether a look that shows a key is one on which the channel may be told."""
    at = history[place].look.at
    severity = severity_at(history, key, began, place, policy)
    if severity.rank < audience.min_severity.rank:
        return False
    if any(mute.hides(key, at) for mute in policy.mutes):
        return False
    last_complete = history[place].look.last_complete or history[began].look.at
    return key != "listing_incomplete" or at - last_complete >= timedelta(minutes=15)


@given(moments, policies)
def test_each_episode_is_told_once_on_each_channel_as_soon_as_it_may_be(history, policy):
    told = said(history, policy)

    for audience in policy.audiences:
        for key in keys_of(history):
            fired = [s.place for s in told.get((audience.name, key), []) if s.kind is Kind.FIRING]
            assert fired == list(_expected_firings(history, key, audience, policy))


def _expected_firings(history, key, audience, policy) -> Iterator[int]:
    for began, ended in episodes(history, key):
        ripe = False
        for place in range(began, ended):
            if key not in history[place].keys:
                continue
            loud = Audience(name="", min_severity=Severity.INFO)
            ripe = ripe or tellable(history, key, began, place, loud, replace(policy, mutes=()))
            waits = key == "listing_incomplete" and not ripe
            moment = history[place]
            heard = replace(moment, look=replace(moment.look, last_complete=START - 99 * HOUR))
            told = (*history[:place], heard, *history[place + 1 :])
            if not waits and tellable(told, key, began, place, audience, policy):
                yield place
                break


@given(moments, policies)
def test_a_resolution_follows_a_firing_and_a_look_that_would_have_shown_it(history, policy):
    told = said(history, policy)

    for (_, key), messages in told.items():
        assert messages[0].kind is Kind.FIRING
        for before, after in pairwise(messages):
            assert (after.kind is Kind.FIRING) == (before.kind is Kind.RESOLVED)
        for message in messages:
            if message.kind is Kind.RESOLVED:
                assert history[message.place].would_show(key)
                assert key not in history[message.place].keys


@given(moments, policies)
def test_whatever_was_told_is_told_to_be_over_muted_or_not(history, policy):
    told = said(history, policy)

    for (_, key), messages in told.items():
        for began, ended in episodes(history, key):
            inside = [m for m in messages if began <= m.place <= ended and m.notice.since == history[began].look.at]
            if inside and ended < len(history):
                event("an episode that was told ended")
                assert [m.place for m in inside if m.kind is Kind.RESOLVED] == [ended]


@given(moments, policies)
def test_reminders_keep_their_distance_and_escalations_raise(history, policy):
    told = said(history, policy)

    for (_, key), messages in told.items():
        for before, after in pairwise(messages):
            if after.kind is Kind.REMINDER:
                assert after.notice.at - before.notice.at >= policy.realert_after
            if after.kind is Kind.ESCALATED:
                event("escalated")
                began = next(n for n, moment in enumerate(history) if moment.look.at == after.notice.since)
                seen = [place for place in range(before.place, after.place) if key in history[place].keys]
                least = min(severity_at(history, key, began, place, policy).rank for place in seen)
                assert after.notice.condition.severity.rank > least


@given(moments, policies)
def test_nothing_that_still_holds_stays_untold_for_longer_than_the_reminder(history, policy):
    told = said(history, replace(policy, mutes=()))

    for audience in policy.audiences:
        for key in keys_of(history) - {"listing_incomplete"}:
            for began, ended in episodes(history, key):
                last = None
                for place in (p for p in range(began, ended) if key in history[p].keys):
                    now = [s for s in told.get((audience.name, key), []) if s.place == place]
                    last = history[place].look.at if now else last
                    if tellable(history, key, began, place, audience, replace(policy, mutes=())):
                        assert last is not None
                        assert history[place].look.at - last < policy.realert_after


@given(moments, policies, st.data())
def test_a_failed_scope_changes_nothing_about_its_alerts(history, policy, data):
    *_, before = live(history, policy)
    lost = data.draw(st.sampled_from(sorted(SCOPES)))
    look = Look(domain=Domain.AUDIT, at=history[-1].look.at + HOUR, scopes=SCOPES - {lost}, complete=False)
    ghost = Condition(cause=Cause.LEAK, subject=f"{lost}/i-99", severity=Severity.CRITICAL)

    after = step(before.book, [ghost], look, policy)

    assert {k: a for k, a in after.book.items() if scope_of(k) == lost} == {
        k: a for k, a in before.book.items() if scope_of(k) == lost
    }
    assert [d for d in after.due if scope_of(d.notification.condition.key) == lost] == []


@given(moments, policies, st.data())
def test_the_order_of_the_conditions_does_not_matter(history, policy, data):
    shuffled = tuple(replace(m, seen=tuple(data.draw(st.permutations(m.seen)))) for m in history)

    assert list(live(shuffled, policy)) == list(live(history, policy))


@given(moments, policies, st.data())
def test_a_death_before_the_commit_loses_nothing_and_tells_nothing_twice(history, policy, data):
    places = data.draw(st.sets(st.integers(0, len(history) - 1)))
    book: dict[str, Alert] = {}
    told = []
    for place, moment in enumerate(history):
        if place in places:
            step(book, moment.seen, moment.look, policy)
        done = step(book, moment.seen, moment.look, policy)
        book = dict(done.book)
        told.append(done)

    assert told == list(live(history, policy))


@given(moments, policies)
def test_every_notification_has_an_id_of_its_own_on_its_channel(history, policy):
    for audience in policy.audiences:
        ids = [d.notification.id for done in live(history, policy) for d in done.due if d.channel == audience.name]

        assert len(ids) == len(set(ids))


@given(moments, policies, st.integers(0, 4))
def test_a_digest_counts_what_it_stands_for_and_changes_nothing_else(history, policy, above):
    single, digested = list(live(history, policy)), list(live(history, replace(policy, digest_above=above)))

    for one, other in zip(single, digested, strict=True):
        assert (other.book, other.standing, other.ended) == (one.book, one.standing, one.ended)
        for audience in policy.audiences:
            alone = [d.notification for d in one.due if d.channel == audience.name]
            together = [d.notification for d in other.due if d.channel == audience.name]
            assert len(together) <= 4 * max(above, 1)
            for kind in set(Kind) - {Kind.DIGEST}:
                alike = [n for n in alone if n.kind is kind]
                digests = [n for n in together if isinstance(n, Digest) and n.of is kind]
                if len(alike) > above:
                    (digest,) = digests
                    assert digest.total == len(alike)
                    assert digest.severity == max((n.condition.severity for n in alike), key=lambda s: s.rank)
                    assert set(digest.first) <= set(alike)
                else:
                    assert [n for n in together if n.kind is kind] == alike
                    assert digests == []


@given(moments, policies)
def test_what_stands_is_every_open_episode_that_is_ripe_and_not_muted(history, policy):
    for place, done in enumerate(live(history, policy)):
        at = history[place].look.at
        open_now = {
            key
            for key in keys_of(history) - {"listing_incomplete"}
            if any(began <= place < ended for began, ended in episodes(history, key))
            and not any(mute.hides(key, at) for mute in policy.mutes)
        }

        assert {s.condition.key for s in done.standing} - {"listing_incomplete"} == open_now
