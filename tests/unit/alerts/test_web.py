"""Requests end in time, whatever is at the other end, and tell no secret."""

from __future__ import annotations

import socket
import ssl
import time
import traceback
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from alerts.errors import ChannelSetupError, DeliveryError
from alerts.ping import Ping
from alerts.web import Address, Web
from reaperd.clock import ManualClock, SystemClock
from tests.support.receiver import Receiver
from tests.unit.http.conftest import authority

SHORT = Web(clock=SystemClock(), timeout=timedelta(seconds=0.4))


@pytest.fixture
def receiver():
    with Receiver() as started:
        yield started


def failure(receiver, web=SHORT, path="/hook"):
    with pytest.raises(DeliveryError) as caught:
        web.post(Address(receiver.url + path), b"{}", {})
    return caught.value


def test_a_request_carries_its_body_headers_path_and_login(receiver):
    host = receiver.url.removeprefix("http://")

    SHORT.post(Address(f"http://me:p%40ss@{host}/a/b?c=d"), b"body", {"Content-Type": "text/plain"})

    (request,) = receiver.requests
    assert (request.method, request.path, request.body) == ("POST", "/a/b?c=d", b"body")
    assert request.headers["content-type"] == "text/plain"
    assert request.headers["authorization"] == "Basic bWU6cEBzcw=="
    assert request.headers["host"] == host


def test_a_receiver_that_drips_is_given_up_in_time(receiver):
    receiver.drip()
    began = time.monotonic()

    error = failure(receiver)

    assert time.monotonic() - began < 1.5
    assert str(error) == f"{receiver.url} did not answer within 0.4 s"


@pytest.mark.parametrize("behaviour", ["drip", "flood"])
def test_what_follows_a_success_does_not_matter(receiver, behaviour):
    receiver.drip("body") if behaviour == "drip" else receiver.flood()
    began = time.monotonic()

    SHORT.post(Address(receiver.url), b"", {})

    assert time.monotonic() - began < 0.4


@pytest.mark.parametrize("behaviour", ["drip", "flood"])
def test_what_follows_a_refusal_is_bounded_and_the_status_counts(receiver, behaviour):
    receiver.answer(403)
    receiver.drip("body") if behaviour == "drip" else receiver.flood()
    began = time.monotonic()

    error = failure(receiver)

    assert time.monotonic() - began < 1.5
    assert str(error).startswith(f"{receiver.url} answers 403")
    assert error.permanent


def test_an_answer_that_is_no_http_is_worth_another_try(receiver):
    receiver.babble()

    error = failure(receiver)

    assert not error.permanent
    assert str(error) == f"{receiver.url} gave no answer that could be read: BadStatusLine"


def test_nobody_there_is_said_without_the_path(receiver):
    receiver.close()

    assert str(failure(receiver)) == f"{receiver.url} cannot be reached: Connection refused"


def test_a_refusal_without_end_is_read_to_a_limit_long_before_the_timeout(receiver):
    receiver.answer(500)
    receiver.flood()
    began = time.monotonic()

    error = failure(receiver, Web(clock=SystemClock(), timeout=timedelta(seconds=60)))

    assert time.monotonic() - began < 10
    assert "answers 500: xxx" in str(error)


@pytest.mark.parametrize(
    ("asked", "quiet"),
    [
        ("30", timedelta(seconds=30)),
        ("Sat, 10 Jan 2026 12:01:00 GMT", timedelta(minutes=1)),
        ("Sat, 10 Jan 2026 11:00:00 GMT", timedelta(0)),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("9" * 30, None),
        ("Sat, 10 Jan 2026 12:01:00 -0000", None),
    ],
)
def test_retry_after_is_understood_in_both_its_forms(receiver, asked, quiet):
    receiver.answer(503, headers=[("Retry-After", asked)])
    noon = ManualClock(datetime(2026, 1, 10, 12, tzinfo=UTC))

    assert failure(receiver, Web(clock=noon)).retry_after == quiet


def test_the_words_of_a_refusal_are_told_short_and_visible(receiver):
    receiver.answer(400, text="bad \x1b[2J label " + "x" * 500)

    assert str(failure(receiver)).startswith(f"{receiver.url} answers 400: bad \\x1b[2J label xxx")
    assert len(str(failure(receiver))) < 300


def test_a_redirect_names_the_host_that_it_leads_to(receiver):
    receiver.answer(301, headers=[("Location", "https://other.example:444/token?a=b")])

    error = failure(receiver)

    assert "a redirect to https://other.example:444, which" in str(error)
    assert len(receiver.requests) == 1


@pytest.mark.parametrize(
    "url",
    [
        "",
        "hook",
        "ftp://host/x",
        "https://",
        "https://host:port/",
        "http://h/a\n",
        "http://h/a b",
        "http://h/\u00e4",
        "http://[x/",
    ],
)
def test_what_is_no_address_is_refused_without_repeating_it(url):
    with pytest.raises(ChannelSetupError) as caught:
        Address(url)

    assert (
        str(caught.value) == "the URL of an alert channel must look like https://host/path, in ASCII and without blanks"
    )


def test_an_address_shows_nothing_but_its_host():
    address = Address("https://me:secret@hooks.example.org:8443/T000/B000?token=t0k3n")

    assert str(address) == "https://hooks.example.org:8443"
    assert repr(address) == "Address()"
    assert str(Address("http://[::1]:80/x")) == "http://[::1]:80"
    assert address.below("/api").parts.path == "/T000/B000/api"


@pytest.fixture
def secured(tmp_path):
    ca = authority(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*ca.issue("alerts.example"))
    with Receiver(tls=context) as started:
        yield started, ca.trust()


def test_a_certificate_that_nobody_vouches_for_is_refused(secured):
    receiver, _ = secured

    error = failure(receiver, path="/secret-path")

    assert str(error).startswith(f"the certificate of {receiver.url} is not to be trusted: ")
    assert "secret-path" not in "".join(traceback.format_exception(error))
    assert (error.permanent, receiver.requests) == (False, [])


def test_a_certificate_of_another_host_is_refused(secured):
    receiver, trust = secured
    other = Address(receiver.url.replace("127.0.0.1", "localhost"))

    with pytest.raises(DeliveryError, match="not to be trusted: Hostname mismatch"):
        Web(clock=SystemClock(), timeout=SHORT.timeout, trust=trust).post(other, b"{}", {})

    assert receiver.requests == []


def test_a_certificate_that_is_trusted_lets_the_request_through(secured):
    receiver, trust = secured

    Web(clock=SystemClock(), trust=trust).post(Address(receiver.url), b"{}", {})

    assert [request.body for request in receiver.requests] == [b"{}"]


def test_a_secured_receiver_that_drips_is_given_up_in_time(secured):
    receiver, trust = secured
    receiver.drip()
    began = time.monotonic()

    error = failure(receiver, Web(clock=SystemClock(), timeout=SHORT.timeout, trust=trust))

    assert time.monotonic() - began < 1.5
    assert "did not answer within" in str(error)


def test_a_server_that_never_shakes_hands_is_given_up_in_time():
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        port = listening.getsockname()[1]
        began = time.monotonic()

        with pytest.raises(DeliveryError, match="did not answer within"):
            SHORT.post(Address(f"https://127.0.0.1:{port}/"), b"{}", {})

        assert time.monotonic() - began < 1.5


def test_a_ping_is_a_get_and_one_with_a_note_a_post(receiver):
    ping = Ping(Address(f"{receiver.url}/uuid"), SHORT)

    ping()
    ping("pass 7\nof aws")

    assert [(r.method, r.path, r.body) for r in receiver.requests] == [
        ("GET", "/uuid", b""),
        ("POST", "/uuid", b"pass 7\\nof aws"),
    ]


def test_a_ping_that_is_not_answered_well_is_an_error(receiver):
    receiver.answer(404)

    with pytest.raises(DeliveryError, match="answers 404"):
        Ping(Address(receiver.url), SHORT)()
