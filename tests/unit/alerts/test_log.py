"""Alerts in the log are events with fields."""

import pytest

from alerts.conformance import digest, firing
from alerts.errors import DeliveryError
from alerts.log import LogChannel


class Log:
    closed = "I/O operation on closed file."

    def __init__(self, room=100):
        self.events = []
        self.room = room

    def log(self, level, event, **fields):
        if len(self.events) == self.room:
            raise ValueError(self.closed)
        self.events.append((level, event, fields))


def test_an_alert_is_one_event_at_the_level_of_its_severity():
    log = Log()

    LogChannel(log).send([firing(), digest(3)])

    (level, event, fields), (digest_level, digest_event, digest_fields) = log.events
    assert (level, event, digest_level, digest_event) == (30, "alert_firing", 40, "alert_digest")
    assert fields == {
        "alert_id": "id-1",
        "key": "leak/aws/us-east-1/i-1",
        "cause": "leak",
        "severity": "warning",
        "summary": "a machine that nobody owns runs for too long",
        "data": {"name": "web-1", "age_seconds": 90_000, "near_miss_tag": None},
        "since": "2026-01-10T12:00:00Z",
    }
    assert (digest_fields["total"], digest_fields["counts"]) == (3, {"leak aws/us-east-1": 3})


def test_a_log_that_is_closed_tells_what_was_written_before():
    with pytest.raises(DeliveryError) as caught:
        LogChannel(Log(room=2)).send([firing(1), firing(2), firing(3)])

    assert str(caught.value) == "the log cannot be written: I/O operation on closed file."
    assert caught.value.delivered == ("id-1", "id-2")
