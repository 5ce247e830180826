"""What people are told is written with what it tells of: neither lost nor told twice, wherever the process dies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from alerts.lifecycle import Audience, Policy
from alerts.looks import Domain, Look
from alerts.model import Cause, Condition, Severity
from alerts.mutes import Mute
from providers.model import Scope
from reaperd.core.telling import Telling, Watch
from reaperd.errors import LedgerUnusableError
from reaperd.ledger import alarms
from reaperd.ledger.lease import Lease
from reaperd.ledger.ledger import Ledger
from reaperd.process import current
from tests.unit.ledger.conftest import NOW, open_at

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
EAST, WEST = Scope("aws", "us-east-1"), Scope("aws", "eu-west-1")
BOTH = frozenset({str(EAST), str(WEST)})


def watch(*names: str, **other: Any) -> Watch:
    policy = Policy(audiences=tuple(Audience(name=name) for name in names or ("hook",)))
    facts: dict[str, Any] = {"providers": frozenset({"aws"}), "scopes": frozenset({EAST, WEST})}
    return Watch(policy=policy, **(facts | other))


def leak(instance_id: str = "i-1", scope: Scope = EAST) -> Condition:
    return Condition(cause=Cause.LEAK, subject=f"{scope}/{instance_id}", severity=Severity.WARNING)


def stuck(scope: Scope = EAST) -> Condition:
    return Condition(cause=Cause.TERMINATION_STUCK, subject=f"{scope}/i-1", severity=Severity.WARNING)


def sweep(*found: Condition, after: timedelta = timedelta(0), scopes: Iterable[str] = BOTH) -> Telling:
    look = Look(domain=Domain.AUDIT, at=NOW + after, scopes=frozenset(scopes), complete=True)
    return Telling(conditions=found, look=look)


def passed(*found: Condition, after: timedelta = timedelta(0), complete: bool = True) -> Telling:
    look = Look(domain=Domain.RECONCILE, at=NOW + after, scopes=BOTH, complete=complete, judged=complete)
    return Telling(conditions=found, look=look)


class Book:
    """A ledger whose lease is ours, and what is asked of it."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        taken = ledger.take_lease(current(), 365 * DAY, NOW)
        assert isinstance(taken, Lease)
        self.lease = taken

    def tell(self, telling: Telling, who: Watch | None = None) -> alarms.Announced | None:
        return self.ledger.alarms.tell(telling, who or watch(), lease=self.lease, now=telling.look.at)

    def waiting(self) -> list[tuple[str, str, str]]:
        """Return channel, kind and key of what waits, oldest first."""
        kept = self.ledger.alarms.kept().waiting
        return [(w.channel, str(w.notification.kind), w.notification.condition.key) for w in kept]  # type: ignore[union-attr]

    def open(self) -> list[str]:
        return sorted(self.ledger.alarms.kept().book)


@pytest.fixture
def book(ledger: Ledger) -> Book:
    return Book(ledger)


def test_what_is_found_is_told_once_and_its_end_too(book: Book):
    key = "leak/aws/us-east-1/i-1"
    for minute in range(3):
        book.tell(sweep(leak(), after=minute * MINUTE))
    assert book.waiting() == [("hook", "firing", key)]
    assert book.open() == [key]

    book.tell(sweep(after=HOUR))

    assert book.waiting() == [("hook", "firing", key), ("hook", "resolved", key)]
    assert book.open() == []


def test_wherever_the_writing_breaks_off_nothing_is_told_and_the_next_look_tells_it_once(book: Book, path: Path):
    after = sweep(leak("i-2"), after=HOUR)
    book.tell(sweep(leak("i-1")))
    stood, broken_off = (book.waiting(), book.open()), 0
    for steps in range(1, 10_000, 13):
        left = iter(range(steps))
        # Another process, which dies at this step: whatever it does afterwards fails, too.
        with open_at(path) as dying:
            dying._connection.set_progress_handler(lambda left=left: next(left, None) is None, 1)  # type: ignore[misc]
            try:
                dying.alarms.tell(after, watch(), lease=book.lease, now=after.look.at)
            except LedgerUnusableError:
                broken_off += 1
                assert (book.waiting(), book.open()) == stood
            else:
                break

    assert broken_off > 20
    told = [("firing", "i-1"), ("firing", "i-2"), ("resolved", "i-1")]
    assert [(kind, key.rpartition("/")[2]) for _, kind, key in book.waiting()] == told
    assert book.open() == ["leak/aws/us-east-1/i-2"]


def test_without_the_lease_nothing_is_told(book: Book):
    book.ledger.release_lease(book.lease, NOW)

    assert book.tell(sweep(leak())) is None
    assert (book.waiting(), book.open()) == ([], [])


def test_who_has_no_channel_has_its_alerts_kept_all_the_same(book: Book):
    nobody = watch()
    book.tell(sweep(leak()), replace(nobody, policy=replace(nobody.policy, audiences=())))

    assert (book.waiting(), book.open()) == ([], ["leak/aws/us-east-1/i-1"])


def test_what_mostly_passes_by_itself_is_told_15_minutes_after_the_last_complete_look(book: Book):
    listing = Condition(cause=Cause.LISTING_INCOMPLETE, severity=Severity.WARNING)
    look = alarms.text_of(NOW - 10 * MINUTE)
    book.ledger._connection.execute("INSERT INTO last_look VALUES (1, ?, '[]')", (look,))

    book.tell(passed(listing, complete=False))
    assert book.waiting() == []
    book.tell(passed(listing, after=5 * MINUTE, complete=False))

    assert book.waiting() == [("hook", "firing", "listing_incomplete")]


# ---------------------------------------------------------------- what the configuration dropped


def test_the_alerts_of_a_region_that_was_dropped_are_taken_back_but_leaks_are_still_looked_for(book: Book):
    book.tell(passed(stuck(WEST)))
    book.tell(sweep(leak(scope=WEST)))

    book.tell(passed(after=MINUTE), watch(scopes=frozenset({EAST})))

    assert book.waiting()[2:] == [("hook", "resolved", "termination_stuck/aws/eu-west-1/i-1")]
    assert book.open() == ["leak/aws/eu-west-1/i-1"]


def test_a_provider_that_finds_its_regions_itself_keeps_its_alerts(book: Book):
    finds = watch(scopes=frozenset(), discovering=frozenset({"aws"}))
    book.tell(passed(stuck(WEST)), finds)

    book.tell(sweep(after=MINUTE), finds)

    assert book.open() == ["termination_stuck/aws/eu-west-1/i-1"]


def test_the_alerts_of_a_provider_that_was_dropped_are_taken_back(book: Book):
    book.tell(sweep(leak()))

    book.tell(passed(after=MINUTE), watch(providers=frozenset({"gcp"}), scopes=frozenset()))

    assert [kind for _, kind, _ in book.waiting()] == ["firing", "resolved"]
    assert book.open() == []


def test_messages_for_a_channel_that_was_dropped_are_dropped_and_that_is_said(book: Book):
    book.tell(sweep(leak()), watch("hook", "pager"))

    announced = book.tell(sweep(leak(), after=MINUTE), watch("hook"))

    assert announced is not None
    assert announced.dropped == {"pager": 1}
    assert [channel for channel, _, _ in book.waiting()] == ["hook"]


def test_a_channel_that_takes_nothing_for_years_costs_so_much_room_and_no_more(
    book: Book, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(alarms, "KEPT", 3)
    for day in range(5):
        announced = book.tell(sweep(leak(), after=day * DAY))

    assert announced is not None
    assert announced.dropped == {"hook": 1}
    assert [kind for _, kind, _ in book.waiting()] == ["reminder", "escalated", "reminder"]


def test_an_alert_that_cannot_be_read_is_told_anew_and_stops_no_pass(book: Book):
    book.tell(sweep(leak()))
    book.ledger._connection.execute("UPDATE alerts SET record = '{}'")

    book.tell(sweep(leak(), after=MINUTE))

    assert [kind for _, kind, _ in book.waiting()] == ["firing", "firing"]


# ---------------------------------------------------------------- deliveries


def test_messages_are_due_in_the_order_in_which_they_were_told(book: Book):
    book.tell(sweep(leak("i-2")))
    book.tell(sweep(leak("i-1"), after=MINUTE))
    due = []
    while (waiting := book.ledger.alarms.due("hook", NOW + HOUR)) is not None:
        due.append(waiting.seq)
        book.ledger.alarms.delivered(waiting)

    assert due == sorted(due)
    assert len(due) == 3
    assert book.waiting() == []


def test_one_that_fails_makes_its_channel_wait_and_no_other(book: Book):
    both = watch("hook", "pager")
    book.tell(sweep(leak()), both)
    first = book.ledger.alarms.due("hook", NOW)
    assert first is not None
    again = NOW + 10 * MINUTE

    book.ledger.alarms.failed(first, "nobody listens", next_try_at=again)
    book.tell(sweep(after=MINUTE), both)

    assert book.ledger.alarms.due("hook", again - MINUTE) is None
    assert book.ledger.alarms.next_due_at("hook") == again
    assert book.ledger.alarms.due("pager", NOW + MINUTE) is not None
    waiting = book.ledger.alarms.due("hook", again)
    assert waiting is not None
    assert (waiting.seq, waiting.attempts, waiting.last_error) == (first.seq, 1, "nobody listens")


def test_one_that_fails_again_and_again_lets_the_others_pass(book: Book):
    book.tell(sweep(leak("i-1"), leak("i-2")))
    now = NOW
    for _ in range(alarms.SET_ASIDE_AFTER):
        waiting = book.ledger.alarms.due("hook", now)
        assert waiting is not None
        assert waiting.seq == 1
        now += MINUTE
        book.ledger.alarms.failed(waiting, "no", next_try_at=now)

    waiting = book.ledger.alarms.due("hook", now)

    assert waiting is not None
    assert waiting.seq == 2


def test_a_time_that_a_clock_wrote_which_ran_ahead_silences_nobody(book: Book):
    book.tell(sweep(leak()))
    waiting = book.ledger.alarms.due("hook", NOW)
    assert waiting is not None

    book.ledger.alarms.failed(waiting, "no", next_try_at=NOW + 365 * DAY)

    assert book.ledger.alarms.due("hook", NOW) is not None


def test_everything_can_be_made_due(book: Book):
    book.tell(sweep(leak()))
    waiting = book.ledger.alarms.due("hook", NOW)
    assert waiting is not None
    book.ledger.alarms.failed(waiting, "no", next_try_at=NOW + HOUR)

    assert book.ledger.alarms.make_due(NOW + MINUTE) == 1

    assert book.ledger.alarms.due("hook", NOW + MINUTE) is not None


# ---------------------------------------------------------------- mutes


def test_what_is_muted_is_kept_and_told_once_the_mute_is_over(book: Book):
    book.ledger.alarms.mute(Mute(pattern="leak/*", until=NOW + HOUR, reason="a load test"), "ann@host", NOW)
    book.tell(sweep(leak()))
    assert (book.waiting(), len(book.open())) == ([], 1)

    book.tell(sweep(leak(), after=HOUR))

    assert [kind for _, kind, _ in book.waiting()] == ["firing"]
    assert book.ledger.alarms.kept().mutes == ()


def test_a_mute_can_be_ended_and_both_are_kept_as_acts(book: Book):
    book.ledger.alarms.mute(Mute(pattern="leak/*", until=NOW + HOUR, reason="a load test"), "ann@host", NOW)

    assert book.ledger.alarms.unmute("leak/*", "bob@host", "it is over", NOW + MINUTE)
    assert not book.ledger.alarms.unmute("leak/*", "bob@host", "", NOW + MINUTE)

    book.tell(sweep(leak(), after=2 * MINUTE))
    assert [kind for _, kind, _ in book.waiting()] == ["firing"]
    acts = book.ledger._connection.execute("SELECT act, by_whom, reason FROM operator_acts").fetchall()
    assert acts == [("mute", "ann@host", "a load test"), ("unmute", "bob@host", "it is over")]
