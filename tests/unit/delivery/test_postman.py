"""One channel's messages: in order, at least once, with patience, and under the lease alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from alerts.backoff import Backoff
from alerts.errors import ChannelSetupError, DeliveryError
from alerts.fake import FakeChannel
from alerts.lifecycle import Audience
from reaperd.delivery.line import Line
from reaperd.delivery.postman import Postman
from reaperd.errors import LedgerUnusableError
from reaperd.ledger.alarms import SET_ASIDE_AFTER
from tests.unit.delivery.conftest import START, Mail, line

SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)


def never() -> bool:
    return False


def keys(channel: FakeChannel) -> list[str]:
    return [sent.condition.subject.rpartition("/")[2] for sent in channel.sent]  # type: ignore[union-attr]


@pytest.fixture
def channel() -> FakeChannel:
    return FakeChannel("hook")


@pytest.fixture
def postman(mail: Mail, channel: FakeChannel) -> Postman:
    return Postman(line(channel), mail.post)


def test_what_waits_is_brought_once_and_counted(mail: Mail, channel: FakeChannel, postman: Postman):
    mail.leaks("i-1", "i-2")
    with mail.open() as ledger:
        assert postman.deliver(ledger, never) is None
        postman.deliver(ledger, never)

    assert keys(channel) == ["i-1", "i-2"]
    assert mail.counts == [("hook", "sent")] * 2
    assert mail.waiting() == 0


def test_without_the_lease_nothing_is_sent(mail: Mail, channel: FakeChannel, postman: Postman):
    mail.leaks("i-1")
    with mail.open() as ledger:
        assert mail.lease is not None
        ledger.release_lease(mail.lease, mail.clock.now())
        postman.deliver(ledger, never)

    assert (channel.sent, mail.waiting()) == ([], 1)


def test_the_lease_is_looked_at_before_each_message(mail: Mail, channel: FakeChannel):
    mail.leaks("i-1", "i-2")

    def frozen_after_the_first() -> FakeChannel:
        mail.clock.advance(timedelta(days=4))
        return channel

    postman = Postman(Line(audience=Audience(name="hook"), make=frozen_after_the_first), mail.post)
    with mail.open() as ledger:
        postman.deliver(ledger, never)

    assert (keys(channel), mail.waiting()) == (["i-1"], 1)


def test_nothing_more_is_begun_once_it_has_to_end(mail: Mail, channel: FakeChannel, postman: Postman):
    mail.leaks("i-1", "i-2")
    with mail.open() as ledger:
        postman.deliver(ledger, lambda: bool(channel.sent))

    assert keys(channel) == ["i-1"]


def test_a_receiver_that_fails_is_tried_again_with_growing_patience_and_after_a_restart_too(
    mail: Mail, channel: FakeChannel, postman: Postman
):
    mail.leaks("i-1", "i-2")
    channel.failure = DeliveryError("it answers 500")
    waits = []
    for tries in range(6):
        with mail.open() as ledger:
            again = (postman if tries % 2 else Postman(line(channel), mail.post)).deliver(ledger, never)
        assert again is not None
        waits.append((again - mail.clock.now()).total_seconds())
        mail.clock.advance(again - mail.clock.now())

    assert all(5 * 2**n / 2 <= wait <= 5 * 2**n for n, wait in enumerate(waits))
    assert mail.counts == [("hook", "failed")] * 6
    channel.failure = None
    with mail.open() as ledger:
        postman.deliver(ledger, never)
    assert keys(channel) == ["i-1", "i-2"]


def test_the_quiet_that_a_receiver_asks_for_is_kept(mail: Mail, channel: FakeChannel, postman: Postman):
    mail.leaks("i-1")
    channel.failure = DeliveryError("slow down", retry_after=HOUR)
    with mail.open() as ledger:
        assert postman.deliver(ledger, never) == START + HOUR


def test_what_a_receiver_refuses_for_good_is_given_up_and_told_and_the_others_go_on(
    mail: Mail, channel: FakeChannel, postman: Postman
):
    mail.leaks("i-1", "i-2")
    channel.failure = DeliveryError("it answers 404", permanent=True)
    with mail.open() as ledger:
        postman.deliver(ledger, never)

    assert mail.waiting() == 0
    assert [event["key"] for event in mail.events("alert_given_up")] == [
        "leak/aws/us-east-1/i-1",
        "leak/aws/us-east-1/i-2",
    ]


def test_one_message_that_a_receiver_chokes_on_stops_no_other(mail: Mail, channel: FakeChannel):
    mail.leaks("i-1", "i-2", "i-3")

    class Choking(FakeChannel):
        def send(self, notifications):
            if notifications[0].condition.subject.endswith("i-1"):
                msg = "it answers 500"
                raise DeliveryError(msg)
            super().send(notifications)

    choking = Choking("hook")
    postman = Postman(line(choking), mail.post)
    for _ in range(12):
        with mail.open() as ledger:
            postman.deliver(ledger, never)
        mail.clock.advance(20 * MINUTE)

    assert keys(choking) == ["i-2", "i-3"]
    with mail.open() as ledger:
        again = postman.deliver(ledger, never)
    assert again is not None
    assert again > mail.clock.now()
    mail.leaks("i-1", "i-2", "i-3", "i-4")
    with mail.open() as ledger:
        postman.deliver(ledger, never)
    assert keys(choking) == ["i-2", "i-3", "i-4"]


def test_one_that_was_set_aside_makes_nobody_more_patient_with_the_others(mail: Mail, channel: FakeChannel):
    mail.leaks("i-1")
    channel.failure = DeliveryError("it answers 500")
    for _ in range(SET_ASIDE_AFTER):
        with mail.open() as ledger:
            Postman(line(channel), mail.post).deliver(ledger, never)
        mail.clock.advance(20 * MINUTE)
    postman = Postman(line(channel), mail.post)
    with mail.open() as ledger:
        postman.deliver(ledger, never)
        mail.leaks("i-1", "i-2")
        postman.deliver(ledger, never)
        second = ledger.alarms.kept().waiting[-1]

    assert second.attempts == 1
    assert postman._pace.failures == 1


def test_no_more_is_sent_in_a_minute_than_a_receiver_likes(mail: Mail, channel: FakeChannel):
    mail.leaks(*(f"i-{number}" for number in range(10)))
    postman = Postman(line(channel), replace(mail.post, backoff=Backoff(per_minute=4)))
    with mail.open() as ledger:
        again = postman.deliver(ledger, never)

    assert (len(channel.sent), again) == (4, START + MINUTE)


@pytest.mark.parametrize("error", [ChannelSetupError("the URL is none"), RuntimeError("a bug with token=s3cret")])
def test_a_channel_that_cannot_be_made_is_tried_again_and_its_error_tells_no_secret(mail: Mail, error: Exception):
    mail.leaks("i-1")

    def broken() -> FakeChannel:
        raise error

    postman = Postman(Line(audience=Audience(name="hook"), make=broken), mail.post)
    with mail.open() as ledger:
        postman.deliver(ledger, never)
        (waiting,) = ledger.alarms.kept().waiting

    assert waiting.attempts == 1
    assert "s3cret" not in waiting.last_error + mail.log.getvalue()


def test_a_message_that_was_taken_but_not_written_off_is_sent_once_more_with_the_same_id(
    mail: Mail, channel: FakeChannel, postman: Postman
):
    mail.leaks("i-1")
    with mail.open() as ledger:
        ledger._connection.execute("CREATE TRIGGER dies BEFORE DELETE ON outbox BEGIN SELECT raise(ABORT, 'dead'); END")
        with pytest.raises(LedgerUnusableError):
            postman.deliver(ledger, never)
        ledger._connection.execute("DROP TRIGGER dies")
        postman.deliver(ledger, never)

    assert len(channel.sent) == 2
    assert len({sent.id for sent in channel.sent}) == 1


def test_a_record_that_cannot_be_read_is_given_up(mail: Mail, channel: FakeChannel, postman: Postman):
    mail.leaks("i-1", "i-2")
    with mail.open() as ledger:
        ledger._connection.execute("UPDATE outbox SET record = 'x' WHERE seq = 1")
        postman.deliver(ledger, never)

    assert keys(channel) == ["i-2"]
    assert len(mail.events("alert_given_up")) == 1
