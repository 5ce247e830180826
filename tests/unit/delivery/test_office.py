"""All channels: none waits for another, and nobody waits for any of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from alerts.errors import DeliveryError
from alerts.fake import FakeChannel, FakeLevelChannel
from alerts.lifecycle import Policy
from alerts.model import Cause, Condition, Severity
from reaperd.core.model import Mode, PassOutcome, PassReport
from reaperd.delivery.line import AnyLine, Line
from reaperd.delivery.office import Office
from reaperd.delivery.pinger import Pinger
from tests.support.processes import until
from tests.support.worlds import EAST, whole
from tests.unit.delivery.conftest import Mail, level_line, line

MINUTE = timedelta(minutes=1)


class Hanging(FakeChannel):
    """Takes nothing and says nothing."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.asked, self.let_go = threading.Event(), threading.Event()

    def send(self, notifications):
        self.asked.set()
        self.let_go.wait(30)
        message = "it did not answer"
        raise DeliveryError(message)


@pytest.fixture
def office(running: Mail) -> Iterator[Office]:
    made = Office(running.post)
    yield made
    made.stop()
    made.join()


def serve(office: Office, *lines: AnyLine) -> None:
    policy = Policy(audiences=tuple(each.audience for each in lines if isinstance(each, Line)))
    office.take_over(lines, policy, MINUTE)


def report(mail: Mail, *causes: Cause, **other: Any) -> PassReport:
    now = mail.clock.now()
    found = tuple(Condition(cause=cause, severity=Severity.CRITICAL) for cause in causes)
    facts: dict[str, Any] = {"outcome": PassOutcome.REFUSED if causes else PassOutcome.COMPLETE, "reason": None}
    told = {"conditions": found, "coverage": (whole(EAST),), "started_at": now, "finished_at": now, **facts, **other}
    return PassReport(pass_id="p", mode=Mode.ENFORCE, **told)


def kinds(channel: FakeChannel) -> list[str]:
    return [str(sent.kind) for sent in channel.sent]


def test_a_channel_that_hangs_delays_no_other_and_not_the_end(running: Mail, office: Office):
    hanging, good = Hanging("slow"), FakeChannel("hook")
    serve(office, line(hanging), line(good))

    office.announced(running.leaks("i-1", channels=("slow", "hook")))
    until(lambda: good.sent and hanging.asked.is_set(), 10)
    began = time.monotonic()
    office.stop()
    office.join()

    assert time.monotonic() - began < 3
    hanging.let_go.set()


def test_what_was_told_before_the_start_is_brought(running: Mail, office: Office):
    running.leaks("i-1")
    good = FakeChannel("hook")

    serve(office, line(good))

    until(lambda: good.sent, 10)


def test_a_reload_serves_the_channels_that_are_configured_now(running: Mail, office: Office):
    old, new, gone = FakeChannel("hook"), FakeChannel("hook"), FakeChannel("gone")
    serve(office, line(old), line(gone))
    serve(office, line(new))

    office.announced(running.leaks("i-1"))

    until(lambda: new.sent, 10)
    assert (old.sent, gone.sent) == ([], [])


def test_a_channel_that_keeps_track_is_told_all_that_holds_for_three_intervals(running: Mail, office: Office):
    channel = FakeLevelChannel("alertmanager")
    serve(office, level_line(channel))

    office.announced(running.leaks("i-1", "i-2"))
    until(lambda: channel.levels, 10)
    office.announced(running.leaks("i-2"))
    until(lambda: len(channel.levels) > 1, 10)

    first, second = channel.levels
    assert first.until - first.at == 3 * MINUTE
    assert len(first.standing) == 2
    assert [standing.condition.subject for standing in second.ended] == ["aws/us-east-1/i-1"]


def test_a_channel_that_keeps_track_is_told_nothing_without_the_lease(running: Mail, office: Office):
    channel, other = FakeLevelChannel("alertmanager"), FakeLevelChannel("second")
    serve(office, level_line(channel))
    announced = running.leaks("i-1")
    lease, running.lease = running.lease, None
    office.announced(announced)
    until(lambda: not office._workers["alertmanager"]._level, 10)  # type: ignore[union-attr]
    running.lease = lease

    serve(office, level_line(other))
    office.announced(announced)

    until(lambda: other.levels, 10)
    assert channel.levels == []


def test_that_the_ledger_cannot_be_used_is_told_without_it_and_without_the_lease(running: Mail, office: Office):
    good, levels = FakeChannel("hook"), FakeLevelChannel("alertmanager")
    serve(office, line(good), level_line(levels))
    running.lease = None
    running.path.unlink()
    running.path.mkdir()

    for _ in range(3):
        office.passed(report(running, Cause.LEDGER_UNUSABLE))
    until(lambda: good.sent and levels.levels, 10)
    office.passed(report(running))

    until(lambda: len(good.sent) > 1 and levels.levels[-1].ended, 10)
    assert kinds(good) == ["firing", "resolved"]
    assert {str(sent.condition.cause) for sent in good.sent} == {"ledger_unusable"}  # type: ignore[union-attr]


def test_what_is_told_directly_is_tried_again(running: Mail, office: Office, monkeypatch: pytest.MonkeyPatch):
    good = FakeChannel("hook")
    good.failure = DeliveryError("it answers 500")
    serve(office, line(good))
    monkeypatch.setattr(type(running.post), "again_at", lambda post, *_: post.clock.now())

    office.passed(report(running, Cause.LEDGER_UNUSABLE))
    until(lambda: running.counts, 10)
    good.failure = None
    office.wake()

    until(lambda: kinds(good) == ["firing"], 10)


def test_only_the_ledger_is_told_of_directly(running: Mail, office: Office):
    good = FakeChannel("hook")
    serve(office, line(good))

    office.passed(report(running, Cause.BREAKER_OPEN))
    office.passed(report(running, Cause.LEDGER_UNUSABLE))

    until(lambda: good.sent, 10)
    assert [str(sent.condition.cause) for sent in good.sent] == ["ledger_unusable"]  # type: ignore[union-attr]


def test_a_pass_that_was_cut_short_does_not_say_that_the_ledger_can_be_used_again(running: Mail, office: Office):
    good = FakeChannel("hook")
    serve(office, line(good))
    office.passed(report(running, Cause.LEDGER_UNUSABLE))
    until(lambda: good.sent, 10)

    office.passed(report(running, outcome=PassOutcome.DEFERRED, reason="stopping", coverage=()))
    office.passed(report(running, Cause.LEDGER_UNUSABLE))
    office.passed(report(running))

    until(lambda: len(good.sent) > 1, 10)
    assert kinds(good) == ["firing", "resolved"]


def test_a_round_that_fails_in_a_way_that_nobody_expected_is_told_and_the_next_one_runs(
    running: Mail, monkeypatch: pytest.MonkeyPatch
):
    good, fails = FakeChannel("hook"), [True]
    opened = running.open

    def open_or_fail():
        if fails:
            fails.clear()
            raise RuntimeError
        return opened()

    running.leaks("i-1")
    monkeypatch.setattr(running, "open", open_or_fail)
    office = Office(running.post)
    serve(office, line(good))
    until(lambda: running.events("delivery_failed"), 10)
    office.wake()

    until(lambda: good.sent, 10)
    office.stop()


# ---------------------------------------------------------------- the dead man's switch


def test_the_switch_is_called_from_a_thread_of_its_own_and_once_for_what_came_meanwhile(running: Mail):
    calls, let_go = [], threading.Event()

    def call() -> None:
        calls.append(threading.current_thread())
        let_go.wait(30)

    pinger = Pinger(running.post.log)
    pinger.call = call
    pinger.start()
    pinger.ping()
    until(lambda: calls, 10)
    for _ in range(5):
        pinger.ping()
    let_go.set()

    until(lambda: len(calls) == 2, 10)
    pinger.stop()
    assert threading.current_thread() not in calls


def test_a_call_that_fails_is_told_once_and_that_it_works_again(running: Mail):
    fails = [True]
    calls = []

    def call() -> None:
        calls.append(1)
        if fails:
            message = "nobody there"
            raise DeliveryError(message)

    pinger = Pinger(running.post.log)
    pinger.call = call
    pinger.start()
    _ping(pinger, calls, 3)
    fails.clear()
    _ping(pinger, calls, 1)

    until(lambda: running.events("ping_works_again"), 10)
    pinger.stop()
    assert len(running.events("ping_failed")) == 1


def _ping(pinger: Pinger, calls: list[int], times: int) -> None:
    for _ in range(times):
        wanted = len(calls) + 1
        pinger.ping()
        until(_at_least(calls, wanted), 10)


def _at_least(calls: list[int], wanted: int) -> Callable[[], bool]:
    return lambda: len(calls) >= wanted
