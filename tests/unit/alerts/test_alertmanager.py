"""What Alertmanager tells alerts apart by."""

import json
from dataclasses import replace
from datetime import timedelta

from alerts.alertmanager import BATCH, AlertmanagerChannel, alert_name, labels
from alerts.conformance import NOW, level
from alerts.model import Cause, Condition, Severity, Standing
from alerts.web import Address, Web
from reaperd.clock import ManualClock
from tests.support.receiver import Receiver


def condition(subject="aws/us-east-1/i-1", **data):
    return Condition(cause=Cause.LEAK, subject=subject, severity=Severity.WARNING, data=data)


def test_every_cause_has_a_name_of_its_own():
    names = [alert_name(cause) for cause in Cause]

    assert len(set(names)) == len(Cause)
    assert alert_name(Cause.OWNED_OUT_OF_SCOPE) == "ReaperdOwnedOutOfScope"


def test_labels_do_not_change_with_the_data():
    assert labels(condition(age_seconds=1), "prod-eu") == labels(condition(age_seconds=2), "prod-eu")


def test_what_is_about_the_whole_has_no_label_of_a_place():
    whole = Condition(cause=Cause.BLIND, severity=Severity.CRITICAL)

    assert labels(whole, "prod-eu") == {
        "alertname": "ReaperdBlind",
        "cause": "blind",
        "severity": "critical",
        "deployment": "prod-eu",
        "key": "blind",
    }


def test_ids_that_differ_far_behind_are_two_alerts():
    one, other = (labels(condition(f"aws/r/{'x' * 5_000}{end}"), "prod-eu") for end in "ab")

    assert one != other


def test_what_stands_lasts_until_the_time_told_and_what_ended_until_now():
    ended = Standing(condition=condition("aws/us-east-1/i-9"), since=NOW - timedelta(hours=1))
    with Receiver() as receiver:
        channel = AlertmanagerChannel(Address(f"{receiver.url}/prefix/"), Web(clock=ManualClock(NOW)), deployment="d")
        channel.hold(replace(level(1), ended=(ended,)))
        (request,) = receiver.requests

    first, second = json.loads(request.body)
    assert request.path == "/prefix/api/v2/alerts"
    assert (first["startsAt"], first["endsAt"]) == ("2026-01-10T11:00:00+00:00", "2026-01-10T12:00:00+00:00")
    assert (second["startsAt"], second["endsAt"]) == ("2026-01-10T12:00:00+00:00", "2026-01-10T12:45:00+00:00")
    assert "runbook_url" not in first["annotations"]


def test_many_alerts_are_several_requests():
    with Receiver() as receiver:
        AlertmanagerChannel(Address(receiver.url), Web(clock=ManualClock(NOW)), deployment="d").hold(
            level(2 * BATCH + 1)
        )

        assert [len(json.loads(request.body)) for request in receiver.requests] == [BATCH, BATCH, 1]


def test_an_alert_never_ends_before_it_starts():
    later = Standing(condition=condition(), since=NOW + timedelta(days=1))
    with Receiver() as receiver:
        channel = AlertmanagerChannel(Address(receiver.url), Web(clock=ManualClock(NOW)), deployment="d")
        channel.hold(replace(level(0), standing=(later,)))
        (request,) = receiver.requests

    (alert,) = json.loads(request.body)
    assert alert["startsAt"] == alert["endsAt"] == "2026-01-10T12:45:00+00:00"
