"""Alerts as CloudEvents 1.0 over HTTP, signed, one request each.

A receiver answers 2xx once it has kept the event, and drops an event whose `id` it has seen. With a secret, every
request carries `X-Reaperd-Signature: t=<unix seconds>,v1=<hex>`: HMAC-SHA256 over the decimal `t`, a full stop and the
body as it came. `verified` is how a receiver checks it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

from alerts.errors import DeliveryError
from alerts.model import Condition, Digest, Notification
from alerts.text import identity, plain
from alerts.web import Address, Web
from alerts.wording import MEANINGS, body, moment, shown_data, title

SIGNATURE = "X-Reaperd-Signature"
TYPE = "io.reaperd.alert"
CONTENT_TYPE = "application/cloudevents+json; charset=utf-8"
TOLERANCE = timedelta(minutes=5)


class WebhookChannel:
    """Posts each notification as one event."""

    def __init__(
        self,
        address: Address,
        web: Web,
        *,
        deployment: str,
        secret: Callable[[], bytes] | None = None,
        name: str = "webhook",
    ) -> None:
        """Keep where to post to. `secret` is asked for each time, so that a new one needs no restart."""
        self._address = address
        self._web = web
        self._deployment = deployment
        self._secret = secret
        self._name = name

    @property
    def name(self) -> str:
        """Return the name that metrics and logs use."""
        return self._name

    def send(self, notifications: Sequence[Notification]) -> None:
        """Post each of them, in this order.

        Raises:
            DeliveryError: as soon as one is not taken.
        """
        delivered: list[str] = []
        for notification in notifications:
            text = json.dumps(event(notification, self._deployment), allow_nan=False).encode("ascii")
            try:
                self._web.post(self._address, text, {"Content-Type": CONTENT_TYPE, **self._signed(text)})
            except DeliveryError as error:
                error.delivered = tuple(delivered)
                raise
            delivered.append(notification.id)

    def _signed(self, text: bytes) -> Mapping[str, str]:
        if self._secret is None:
            return {}
        return {SIGNATURE: signature(self._secret(), text, int(self._web.clock.now().timestamp()))}


def event(notification: Notification, deployment: str) -> Mapping[str, object]:
    """Return the notification as a CloudEvent."""
    return {
        "specversion": "1.0",
        "id": notification.id,
        "type": f"{TYPE}.{notification.kind}",
        "source": f"/reaperd/{deployment}",
        "subject": "digest" if isinstance(notification, Digest) else identity(notification.condition.key),
        "time": moment(notification.at),
        "datacontenttype": "application/json",
        "data": _data(notification, deployment),
    }


def signature(secret: bytes, text: bytes, at_seconds: int) -> str:
    """Return the value of the signature's header."""
    digest = hmac.new(secret, f"{at_seconds}.".encode() + text, hashlib.sha256).hexdigest()
    return f"t={at_seconds},v1={digest}"


def verified(secret: bytes, text: bytes, header: str, now_seconds: float) -> bool:
    """Say whether a request is ours and of the last five minutes."""
    parts = dict(part.split("=", 1) for part in header.split(",") if "=" in part)
    told = parts.get("t", "")
    if not (told.isascii() and told.isdigit()) or abs(now_seconds - int(told)) > TOLERANCE.total_seconds():
        return False
    return hmac.compare_digest(signature(secret, text, int(told)).encode(), f"t={told},v1={parts.get('v1')}".encode())


def _data(notification: Notification, deployment: str) -> Mapping[str, object]:
    told = {"deployment": deployment, "title": title(notification, deployment), "text": body(notification)}
    if isinstance(notification, Digest):
        tallies = [{"cause": str(t.cause), "scope": plain(t.scope), "count": t.count} for t in notification.tallies]
        return {
            **told,
            "of": str(notification.of),
            "severity": str(notification.severity),
            "total": notification.total,
            "tallies": tallies,
            "first": [_condition(notice.condition) for notice in notification.first],
        }
    return {**told, "since": moment(notification.since), **_condition(notification.condition)}


def _condition(condition: Condition) -> Mapping[str, object]:
    return {
        "key": identity(condition.key),
        "cause": str(condition.cause),
        "severity": str(condition.severity),
        "summary": MEANINGS[condition.cause].summary,
        "data": dict(shown_data(condition, plain)),
    }
