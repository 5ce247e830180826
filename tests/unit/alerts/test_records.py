"""What is stored is read as it was written, or not at all."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from alerts.conformance import HOSTILE, NOW, digest, every_kind, firing
from alerts.errors import RecordError
from alerts.lifecycle import Alert, Told
from alerts.model import Severity
from alerts.records import alert_record, notification_record, read_alert, read_notification

ALERT = Alert(
    condition=firing().condition,
    since=NOW,
    severity=Severity.CRITICAL,
    severe_at=NOW - timedelta(hours=1),
    ripe=True,
    told={"chat": Told(at=NOW, severity=Severity.WARNING)},
)


@pytest.mark.parametrize("notification", [*every_kind(), digest(0), *(firing(name=name) for name in HOSTILE)], ids=str)
def test_a_notification_survives_the_disk(notification):
    stored = json.dumps(notification_record(notification))

    assert read_notification(json.loads(stored)) == notification


def test_an_alert_survives_the_disk():
    stored = json.dumps(alert_record(ALERT))

    assert read_alert(json.loads(stored)) == ALERT
    assert read_alert(json.loads(stored)).condition.data == ALERT.condition.data


@pytest.mark.parametrize(
    ("told", "severe_at"),
    [({}, NOW), ({"chat": Told(at=NOW + timedelta(hours=9), severity=Severity.WARNING)}, NOW + timedelta(hours=9))],
)
def test_an_alert_of_an_older_version_was_severe_when_it_was_told_last(told, severe_at):
    alert = replace(ALERT, told=told)
    stored = damaged(alert_record(alert), ["severe_at"], ...)

    assert read_alert(stored) == replace(alert, severe_at=severe_at)


def damaged(record, path, value):
    copy = json.loads(json.dumps(record))
    place = copy
    for step in path[:-1]:
        place = place[step]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return copy


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["since"], ...),
        (["since"], "2026-01-10T12:00:00"),
        (["since"], 5),
        (["ripe"], 1),
        (["severity"], "fatal"),
        (["severe_at"], "yesterday"),
        (["told"], []),
        (["told", "chat"], None),
        (["condition", "cause"], "nothing"),
        (["condition", "data", "name"], ["a list"]),
        (["condition", "subject"], None),
    ],
)
def test_a_damaged_alert_is_an_error(path, value):
    with pytest.raises(RecordError, match="a stored alert cannot be read"):
        read_alert(damaged(alert_record(ALERT), path, value))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["of"], "digest"),
        (["tallies", 0, "count"], True),
        (["first"], {}),
        (["kind"], "other"),
        (["first", 0, "kind"], "digest"),
    ],
)
def test_a_damaged_digest_is_an_error(path, value):
    with pytest.raises(RecordError, match="a stored notification cannot be read"):
        read_notification(damaged(notification_record(digest(3)), path, value))


def test_what_is_no_record_at_all_is_an_error():
    for record in (None, [], "text", 5):
        with pytest.raises(RecordError):
            read_alert(record)


def test_the_data_of_a_condition_counts():
    other = replace(ALERT, condition=replace(ALERT.condition, data={"name": "other"}))

    assert read_alert(alert_record(other)).condition.data == {"name": "other"}
