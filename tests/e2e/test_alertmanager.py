"""What reaperd holds in a real Alertmanager fires once, is kept apart by its labels, and resolves by itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from alerts.alertmanager import AlertmanagerChannel
from alerts.conformance import HOSTILE
from alerts.model import Cause, Condition, Level, Severity, Standing
from alerts.trial import trial_level
from alerts.web import Address, Web
from reaperd.clock import SystemClock
from tests.e2e import alertmanager
from tests.e2e.alertmanager import until
from tests.support.receiver import Receiver

pytestmark = pytest.mark.skipif(
    alertmanager.program() is None, reason="needs the Debian package prometheus-alertmanager"
)
SECOND = timedelta(seconds=1)


@pytest.fixture
def real(tmp_path):
    with Receiver() as receiver, alertmanager.running(tmp_path, receiver) as started:
        yield started


@pytest.fixture
def channel(real):
    return AlertmanagerChannel(
        Address(real.url), Web(clock=SystemClock()), deployment="prod-eu", runbooks="https://example.org/alerting"
    )


def condition(instance_id="i-1", severity=Severity.WARNING, name="web-1"):
    subject = f"aws/eu-west-1/{instance_id}"
    return Condition(cause=Cause.LEAK, subject=subject, severity=severity, data={"name": name})


def level(*conditions, lasts=300 * SECOND, ended=()):
    now = SystemClock().now()
    standing = tuple(Standing(condition=c, since=now) for c in conditions)
    return Level(
        at=now, until=now + lasts, standing=standing, ended=tuple(Standing(condition=c, since=now) for c in ended)
    )


def test_an_alert_fires_with_its_labels_and_words(real, channel):
    channel.hold(level(condition()))

    (alert,) = until(real.alerts)
    assert alert["labels"] == {
        "alertname": "ReaperdLeak",
        "cause": "leak",
        "severity": "warning",
        "deployment": "prod-eu",
        "provider": "aws",
        "region": "eu-west-1",
        "instance_id": "i-1",
        "key": "leak/aws/eu-west-1/i-1",
    }
    assert alert["annotations"]["runbook_url"] == "https://example.org/alerting#leak"
    until(lambda: real.told() == [("firing", alert["labels"])])


def test_what_is_told_after_every_look_is_one_alert_and_one_message(real, channel):
    for _ in range(5):
        channel.hold(level(condition()))
    until(real.messages)

    channel.hold(level(condition(), condition("i-2")))

    until(lambda: any(labels["instance_id"] == "i-2" for _, labels in real.told()))
    assert len(real.alerts()) == 2
    assert real.messages() == 2


def test_what_is_not_told_again_resolves_by_itself(real, channel):
    channel.hold(level(condition(), lasts=3 * SECOND))

    until(lambda: [status for status, _ in real.told()] == ["firing", "resolved"])
    assert real.alerts() == []


def test_what_ended_resolves_at_once_and_the_rest_stays(real, channel):
    channel.hold(level(condition("i-1"), condition("i-2")))
    until(real.messages)

    channel.hold(level(condition("i-2"), ended=[condition("i-1")]))

    until(lambda: ("resolved", "i-1") in [(status, labels["instance_id"]) for status, labels in real.told()])
    assert [alert["labels"]["instance_id"] for alert in real.alerts()] == ["i-2"]


def test_a_raised_alert_replaces_the_one_before(real, channel):
    channel.hold(level(condition()))

    channel.hold(level(condition(severity=Severity.CRITICAL), ended=[condition()]))

    assert [alert["labels"]["severity"] for alert in until(real.alerts)] == ["critical"]


def test_a_storm_and_hostile_names_are_taken_whole(real, channel):
    hostile = [condition(f"i-{n}", name=name) for n, name in enumerate(HOSTILE)]
    strange = [condition(f"{name}-{n}") for n, name in enumerate(HOSTILE)]

    channel.hold(level(*hostile, *strange, *(condition(f"m-{n}") for n in range(3_000))))

    assert len(until(real.alerts)) == 3_000 + 2 * len(HOSTILE)


def test_a_trial_is_one_alert_beside_what_is_held(real, channel):
    channel.hold(level(condition()))

    channel.hold(trial_level(SystemClock().now()))

    until(lambda: sorted(alert["labels"]["severity"] for alert in real.alerts()) == ["info", "warning"])


def test_a_clock_that_was_set_back_does_not_get_the_batch_refused(real, channel):
    later = level(condition())
    started = replace(later.standing[0], since=later.until + 60 * SECOND)

    channel.hold(replace(later, standing=(started,)))

    assert len(until(real.alerts)) == 1
