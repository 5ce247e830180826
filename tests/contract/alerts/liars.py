"""Channels that break one promise each, as programs do."""

from __future__ import annotations

import http.client
import json
import urllib.request
from urllib.parse import urlsplit

from alerts.errors import DeliveryError
from alerts.model import Digest, Level
from alerts.web import Address, Web
from alerts.wording import body, title
from reaperd.clock import SystemClock
from tests.contract.alerts.harnesses import AlertmanagerHarness, AppriseHarness, WebhookHarness

TIMEOUT_SECONDS = WebhookHarness.timeout.total_seconds()


class Through:
    """A channel around an honest one."""

    made = WebhookHarness

    def __init__(self, inner, harness):
        self.inner = inner
        self.harness = harness

    @property
    def name(self):
        return self.inner.name

    def send(self, notifications):
        self.inner.send(notifications)


class Nameless(Through):
    name = ""


class SpeaksOfNothing(Through):
    def send(self, notifications):
        self.inner.send(notifications or [Digest(**_EMPTY)])


class SendsTheFirst(Through):
    def send(self, notifications):
        self.inner.send(notifications[:1])


class SendsTwice(Through):
    def send(self, notifications):
        self.inner.send([*notifications, *notifications])


class SendsTheLastFirst(Through):
    def send(self, notifications):
        self.inner.send(notifications[::-1])


class ForgetsDigests(Through):
    def send(self, notifications):
        self.inner.send([n for n in notifications if not isinstance(n, Digest)])


class CapsTheStorm(Through):
    def send(self, notifications):
        self.inner.send(notifications[:100])


class Swallows(Through):
    def send(self, notifications):
        try:
            self.inner.send(notifications)
        except DeliveryError:
            return


class GivesUpForGood(Through):
    def send(self, notifications):
        try:
            self.inner.send(notifications)
        except DeliveryError as error:
            raise DeliveryError(str(error), permanent=True) from None


class NeverGivesUp(Through):
    def send(self, notifications):
        try:
            self.inner.send(notifications)
        except DeliveryError as error:
            raise DeliveryError(str(error), retry_after=error.retry_after, delivered=error.delivered) from None


class ForgetsWhatWasTaken(Through):
    def send(self, notifications):
        try:
            self.inner.send(notifications)
        except DeliveryError as error:
            raise DeliveryError(str(error), permanent=error.permanent, retry_after=error.retry_after) from None


class ClaimsAll(Through):
    def send(self, notifications):
        try:
            self.inner.send(notifications)
        except DeliveryError as error:
            raise DeliveryError(str(error), delivered=tuple(n.id for n in notifications)) from None


class NamesTheAddress(Through):
    def send(self, notifications):
        try:
            self.inner.send(notifications)
        except DeliveryError as error:
            message = f"{self.harness.url('/T0K3N-of-the-hook').url}: {error}"
            raise DeliveryError(message) from error


class WaitsForEachByte(Through):
    """As a plain http.client does: its timeout starts anew with each byte."""

    def send(self, notifications):
        place = urlsplit(self.harness.receiver.url)
        for _ in notifications:
            connection = http.client.HTTPConnection(place.hostname, place.port, timeout=TIMEOUT_SECONDS)
            try:
                connection.request("POST", "/", b"{}")
                connection.getresponse().read()
            except (OSError, http.client.HTTPException) as error:
                raise DeliveryError(str(error)) from error
            finally:
                connection.close()


class FollowsRedirects(Through):
    def send(self, notifications):
        for notification in notifications:
            try:
                urllib.request.urlopen(self.harness.receiver.url, json.dumps(notification.id).encode(), 0.3).close()
            except OSError as error:
                raise DeliveryError(str(error)) from error


class SendsMarkup(Through):
    """As a template does that trusts its values."""

    def send(self, notifications):
        web = Web(clock=SystemClock())
        for notification in notifications:
            text = {"text": f"*{title(notification, 'd')}*\n{notification.condition.data}\n{body(notification)}"}
            web.post(Address(self.harness.receiver.url), json.dumps(text).encode(), {})


class HoldsThrough:
    made = AlertmanagerHarness

    def __init__(self, inner, harness):
        self.inner = inner
        self.harness = harness

    name = "level"

    def hold(self, level):
        self.inner.hold(level)


class HoldsTheFirst(HoldsThrough):
    def hold(self, level):
        self.inner.hold(Level(at=level.at, until=level.until, standing=level.standing[:500]))


class HoldsWhatIsNew(HoldsThrough):
    told: frozenset = frozenset()

    def hold(self, level):
        new = tuple(s for s in level.standing if s.condition.key not in type(self).told)
        type(self).told |= {s.condition.key for s in new}
        self.inner.hold(Level(at=level.at, until=level.until, standing=new))


class HoldsNothingAloud(HoldsThrough):
    def hold(self, level):
        self.inner.hold(level)
        if not level.standing:
            Web(clock=SystemClock()).post(Address(self.harness.receiver.url), b"[{}]", {})


class RaisesItsLibrarysErrors(Through):
    made = AppriseHarness

    def send(self, notifications):
        if self.harness.broken:
            raise RuntimeError
        self.inner.send(notifications)


def lying(liar):
    """Return a harness whose channel lies."""

    class Lying(liar.made):
        def channel(self):
            return liar(super().channel(), self)

    return Lying()


_EMPTY = {
    "id": "id-0",
    "of": "firing",
    "at": SystemClock().now(),
    "severity": "info",
    "tallies": (),
    "first": (),
}
