"""Harnesses of every channel that ships, around receivers on the loopback or in memory."""

from __future__ import annotations

import json
from datetime import timedelta

from alerts.alertmanager import AlertmanagerChannel, labels
from alerts.apprise import AppriseChannel
from alerts.errors import DeliveryError
from alerts.fake import FakeChannel, FakeLevelChannel
from alerts.log import LogChannel
from alerts.web import Address, Web
from alerts.webhook import WebhookChannel
from alerts.wording import body, description, title
from reaperd.clock import SystemClock
from tests.support.receiver import Receiver

USER, PASSWORD, TOKEN, PARAMETER = "hooks-user", "pass-word-1", "T0K3N-of-the-hook", "query-key-2"
SIGNING = b"signing-secret"


class HttpHarness:
    """What harnesses around the receiver share."""

    timeout = timedelta(seconds=0.4)
    secrets = (USER, PASSWORD, TOKEN)

    def __init__(self):
        self.receiver = Receiver()
        self.web = Web(clock=SystemClock(), timeout=self.timeout)

    def url(self, path):
        host = self.receiver.url.removeprefix("http://")
        return Address(f"http://{USER}:{PASSWORD}@{host}{path}")

    def answer(self, status, *, headers=(), text="", after=0):
        self.receiver.answer(status, headers=headers, text=text, after=after)

    def fail(self):
        self.receiver.answer(500)

    def vanish(self):
        self.receiver.close()

    def hang(self):
        self.receiver.hang()

    def drip(self):
        self.receiver.drip()


class WebhookHarness(HttpHarness):
    """The webhook, signed."""

    secrets = (USER, PASSWORD, TOKEN, PARAMETER)

    def channel(self):
        address = self.url(f"/{TOKEN}?key={PARAMETER}")
        return WebhookChannel(address, self.web, deployment="prod-eu", secret=lambda: SIGNING)

    def received(self):
        return [json.dumps(json.loads(r.body), ensure_ascii=False) for r in self.receiver.requests]


class AlertmanagerHarness(HttpHarness):
    """Alertmanager's API, as far as a receiver of requests goes."""

    def channel(self):
        return AlertmanagerChannel(self.url(f"/{TOKEN}"), self.web, deployment="prod-eu")

    def received(self):
        alerts = [alert for request in self.receiver.requests for alert in json.loads(request.body)]
        return [json.dumps(alert, ensure_ascii=False) for alert in alerts]


class LogHarness:
    """A log in memory."""

    def __init__(self):
        self.lines: list[str] = []
        self.broken = False

    def log(self, level, event, **fields):
        if self.broken:
            raise OSError(28, "No space left on device")
        self.lines.append(json.dumps([level, event, fields], ensure_ascii=False))

    def channel(self):
        return LogChannel(self)

    def received(self):
        return self.lines

    def fail(self):
        self.broken = True


class AppriseHarness:
    """A notifier in memory, with Apprise's signature and results."""

    secrets = (TOKEN,)

    def __init__(self):
        self.messages: list[str] = []
        self.broken = False

    def add(self, servers):
        return True

    def notify(self, body, title="", *, notify_type, body_format, interpret_escapes, timeout):
        assert (body_format, interpret_escapes, timeout > 0) == ("text", False, True)
        if self.broken:
            raise RuntimeError(TOKEN)
        self.messages.append(f"{notify_type} {title}\n{body}")
        return True

    def channel(self):
        return AppriseChannel(self, deployment="prod-eu")

    def received(self):
        return self.messages

    def fail(self):
        self.broken = True

    vanish = fail


class FakeHarness:
    """The channel in memory, which can do what HTTP does, as far as a sender can tell."""

    def __init__(self):
        self.made = FakeChannel()

    def channel(self):
        return self.made

    def received(self):
        taken = [f"{title(n, 'prod-eu')}\n{body(n)}" for n in self.made.sent]
        return taken if self.made.failure is None else [*taken, "the one that failed"]

    def answer(self, status, *, headers=(), text="", after=0):
        asked = dict(headers).get("Retry-After")
        self.made.failure = DeliveryError(
            f"answers {status}",
            permanent=300 <= status < 500 and status not in {408, 429},
            retry_after=None if asked is None else timedelta(seconds=int(asked)),
        )
        self.made.takes = after

    def fail(self):
        self.made.failure = DeliveryError("it is full")

    vanish = fail


class FakeLevelHarness:
    """The same for levels."""

    def __init__(self):
        self.made = FakeLevelChannel()

    def channel(self):
        return self.made

    def received(self):
        told = [standing for level in self.made.levels for standing in (*level.ended, *level.standing)]
        return [f'"{labels(s.condition, "d").get("instance_id")}" {description(s.condition)}' for s in told]

    def fail(self):
        self.made.failure = DeliveryError("it is full")

    vanish = fail
