"""What a receiver of the webhook gets, and how it knows whom it is from."""

# ruff: noqa: RUF001 - characters that look like others are meant

import hashlib
import hmac
import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alerts import secrets
from alerts.conformance import digest, firing
from alerts.errors import DeliveryError
from alerts.web import Address, Web
from alerts.webhook import SIGNATURE, WebhookChannel, event, signature, verified
from reaperd.clock import ManualClock
from tests.support.receiver import Receiver

SECRET = b"0123456789abcdef"
NOW = datetime(2026, 1, 10, 12, tzinfo=UTC)


def test_a_firing_alert_is_a_cloud_event():
    told = event(firing(), "prod-eu")

    assert told == {
        "specversion": "1.0",
        "id": "id-1",
        "type": "io.reaperd.alert.firing",
        "source": "/reaperd/prod-eu",
        "subject": "leak/aws/us-east-1/i-1",
        "time": "2026-01-10T12:00:00Z",
        "datacontenttype": "application/json",
        "data": {
            "deployment": "prod-eu",
            "title": "reaperd prod-eu: warning: a machine that nobody owns runs for too long (aws/us-east-1/i-1)",
            "text": told["data"]["text"],
            "since": "2026-01-10T12:00:00Z",
            "key": "leak/aws/us-east-1/i-1",
            "cause": "leak",
            "severity": "warning",
            "summary": "a machine that nobody owns runs for too long",
            "data": {"name": "web-1", "age_seconds": 90_000, "near_miss_tag": None},
        },
    }


def test_a_digest_is_one_event_with_figures():
    told = event(digest(3_000), "prod-eu")

    assert (told["type"], told["subject"]) == ("io.reaperd.alert.digest", "digest")
    assert told["data"]["total"] == 3_000
    assert told["data"]["tallies"] == [{"cause": "leak", "scope": "aws/us-east-1", "count": 3_000}]
    assert len(told["data"]["first"]) == 10


def test_the_signature_is_what_the_documentation_says():
    expected = hmac.new(SECRET, b'1768046400.{"id": 1}', hashlib.sha256).hexdigest()

    assert signature(SECRET, b'{"id": 1}', 1_768_046_400) == f"t=1768046400,v1={expected}"


def test_a_request_is_signed_over_exactly_its_body():
    with Receiver() as receiver:
        web = Web(clock=ManualClock(NOW))
        WebhookChannel(Address(receiver.url), web, deployment="prod-eu", secret=lambda: SECRET).send([firing()])
        (request,) = receiver.requests

    assert verified(SECRET, request.body, request.headers[SIGNATURE.lower()], NOW.timestamp())
    assert request.headers["content-type"] == "application/cloudevents+json; charset=utf-8"
    assert json.loads(request.body)["id"] == "id-1"


def test_without_a_secret_nothing_is_signed():
    with Receiver() as receiver:
        WebhookChannel(Address(receiver.url), Web(clock=ManualClock(NOW)), deployment="prod-eu").send([firing()])

        assert SIGNATURE.lower() not in receiver.requests[0].headers


@pytest.mark.parametrize(
    "header",
    [
        "",
        "v1=00",
        "t=,v1=00",
        "t=now,v1=00",
        "t=１７６８,v1=00",
        "t=1768046400",
        "t=1768046400,v1=é",
        "t=1768046400,v1=",
        f"t=1768046400,v1={'0' * 64}",
    ],
)
def test_what_is_not_signed_by_us_is_refused(header):
    assert not verified(SECRET, b"{}", header, 1_768_046_400)


@given(st.binary(max_size=40), st.binary(max_size=40), st.integers(-900, 900))
def test_only_the_same_body_and_secret_of_the_last_minutes_is_accepted(text, other, apart):
    header = signature(SECRET, text, 1_768_046_400)

    assert verified(SECRET, text, header, 1_768_046_400 + apart) == (abs(apart) <= 300)
    assert verified(SECRET, other, header, 1_768_046_400) == (other == text)
    assert not verified(SECRET + b"x", text, header, 1_768_046_400)


def test_a_secret_is_read_anew_each_time(tmp_path):
    path = tmp_path / "secret"
    read = secrets.from_file(path)
    with pytest.raises(DeliveryError, match="No such file"):
        read()
    path.write_text(" first\n")
    before = read()
    path.write_text("second\n")

    assert (before, read()) == (b"first", b"second")


@pytest.mark.parametrize("content", [b"", b" \n", b"x" * 5_000])
def test_what_is_no_secret_is_refused_without_being_shown(tmp_path, content):
    (tmp_path / "secret").write_bytes(content)

    with pytest.raises(DeliveryError) as caught:
        secrets.from_file(tmp_path / "secret")()

    assert str(caught.value) == f"{tmp_path / 'secret'} holds no secret of 1 to 4096 bytes"


def test_a_secret_may_stand_in_the_environment():
    assert secrets.from_environment("HOOK", {"HOOK": "abc "})() == b"abc"
    with pytest.raises(DeliveryError, match="the variable HOOK holds no secret"):
        secrets.from_environment("HOOK", {})()


def test_a_missing_secret_sends_nothing_unsigned(tmp_path):
    with Receiver() as receiver:
        web = Web(clock=ManualClock(NOW), timeout=timedelta(seconds=1))
        secret = secrets.from_file(tmp_path / "gone")
        channel = WebhookChannel(Address(receiver.url), web, deployment="prod-eu", secret=secret)

        with pytest.raises(DeliveryError):
            channel.send([firing()])

        assert receiver.requests == []
