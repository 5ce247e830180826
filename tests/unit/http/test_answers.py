"""What is answered to whom."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from types import MappingProxyType

import pytest

from reaperd.http import Probe
from reaperd.http.landing import landing_page
from tests.unit.http.conftest import HOST, SOON, HTTPConnection, Running, reply_of

PATHS = ("/", "/metrics", "/healthz", "/readyz", "/api/v1/status")


def test_metrics_are_answered_as_the_desk_gives_them(site: Running):
    reply = site.ask("/metrics", Accept="application/openmetrics-text")

    assert (reply.status, reply.body) == (200, "reaperd_leader 1.0\n")
    assert reply.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert site.desk.accepts == ["application/openmetrics-text"]


@pytest.mark.parametrize(("ok", "status"), [(True, 200), (False, 503)])
def test_a_probe_is_one_line_with_the_status_that_a_kubelet_reads(site: Running, ok, status):
    site.desk.alive = site.desk.ready = Probe(ok=ok, text="no look\nyet")

    for path in ("/healthz", "/readyz"):
        reply = site.ask(path)
        assert (reply.status, reply.body) == (status, "no look\\nyet\n")
        assert reply.headers["Content-Type"] == "text/plain; charset=utf-8"


def test_the_status_is_json_whatever_is_in_it(site: Running):
    site.desk.state = {
        "at": datetime(2026, 1, 10, 12, tzinfo=UTC),
        "last": MappingProxyType({"pass_id": "p"}),
        "odd": frozenset({1}),
    }

    reply = site.ask("/api/v1/status")

    assert json.loads(reply.body) == {
        "at": "2026-01-10T12:00:00Z",
        "last": {"pass_id": "p"},
        "odd": "frozenset({1})",
    }
    assert reply.headers["Content-Type"] == "application/json"


def test_the_landing_page_links_to_the_others_and_says_how_things_stand(site: Running):
    site.desk.state = {
        "version": "1.2.3",
        "mode": "enforce",
        "leader": False,
        "readiness": "standing by",
        "last_look": {"reconcile": "2026-01-10T12:00:00Z", "audit": None},
    }

    page = site.ask("/").body

    for path in PATHS[1:]:
        assert f'<a href="{path}">' in page
    for told in ("reaperd 1.2.3", "enforce", ">no<", "standing by", "reconcile: 2026-01-10T12:00:00Z", "not known"):
        assert told in page


def test_a_page_before_the_first_look_says_so():
    assert "none yet" in landing_page({"last_look": {}})


@pytest.mark.parametrize("key", ["version", "mode", "deployment", "readiness", "last_look"])
def test_text_of_strangers_is_escaped_and_made_visible(key):
    evil = '<script>alert("1")</script>\x1b[2J'

    page = landing_page({key: {evil: evil} if key == "last_look" else evil})

    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "\x1b" not in page


def test_the_landing_page_has_no_script_and_loads_nothing(site: Running):
    reply = site.ask("/")

    assert "<script" not in reply.body
    assert "src=" not in reply.body
    assert "default-src 'none'" in reply.headers["Content-Security-Policy"]


@pytest.mark.parametrize("path", [*PATHS, "/nothing"])
def test_every_answer_is_protected_and_never_kept(site: Running, path):
    headers = site.ask(path).headers

    assert headers["Cache-Control"] == "no-store"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert "Server" not in headers


@pytest.mark.parametrize("path", PATHS)
def test_head_is_answered_like_get_without_the_body(site: Running, path):
    whole, head = site.ask(path), site.ask(path, "HEAD")

    assert (head.status, head.body) == (whole.status, "")
    assert head.headers["Content-Length"] == str(len(whole.body))


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get", "REAP"])
def test_nothing_can_be_changed_over_http(site: Running, method):
    reply = site.ask("/metrics", method)

    assert (reply.status, reply.headers["Allow"]) == (405, "GET, HEAD")
    assert site.desk.accepts == []


@pytest.mark.parametrize("path", ["/nothing", "/metrics/", "/metrics2", "/../etc/passwd", "/%2e%2e/x"])
def test_what_is_not_there_is_not_found_and_not_repeated(site: Running, path):
    reply = site.ask(path)

    assert reply.status == 404
    assert path not in reply.body.replace('href="/"', "")


def test_a_query_changes_nothing(site: Running):
    assert site.ask("/metrics?name[]=x").status == 200


def test_an_answer_that_fails_costs_only_itself_and_is_told(site: Running):
    def fail() -> None:
        msg = "a bug"
        raise RuntimeError(msg)

    site.desk.before = fail

    reply = site.ask("/metrics")

    assert (reply.status, reply.body) == (500, "internal server error\n")
    assert [event["event"] for event in site.events if event["level"] == "error"] == ["http_answer_failed"]
    assert site.ask("/healthz").status == 200


def test_one_connection_serves_many_scrapes(site: Running):
    connection = HTTPConnection(HOST, site.port, timeout=SOON)
    connection.connect()
    sock = connection.sock

    for _ in range(3):
        connection.request("GET", "/metrics")
        assert reply_of(connection.getresponse()).status == 200
        assert connection.sock is sock
    connection.close()


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET\r\n\r\n", 400),
        (b"GET / HTTP/9.9\r\n\r\n", 505),
        (b"GET / SPDY/1\r\n\r\n", 400),
        (b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n", 414),
        (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 200 + b"\r\n", 431),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * 70_000 + b"\r\n\r\n", 431),
    ],
    ids=["no path", "version", "protocol", "long path", "many headers", "long header"],
)
def test_a_bad_request_is_refused_in_our_own_words(site: Running, request_, status):
    answer = site.raw(request_)

    assert answer.startswith(f"HTTP/1.1 {status} ".encode())
    assert b"Python" not in answer
    assert b"aaa" not in answer


@pytest.mark.parametrize(
    "header",
    [
        b"Content-Length : 40",
        b"Transfer-Encoding : chunked",
        b"Content-Length: 40\r\nContent-Length: 0",
        b"Content-Length: 0\r\nContent-Length: 40",
        b"Content-Length: 0\r\ncontent-length: 0",
        b"Content-Length: 0, 0",
        b"Content-Length: +0",
        b"Content-Length: -1",
        b"Content-Length: x",
        b"Content-Length:",
        b"Content-Length: \xb2",
        b"Content-Length: 0\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        b"X: a\r\n Content-Length: 40",
        b" X: a",
        b"X: a\rContent-Length: 40",
        b"X: a\0b",
        b"X\xe4: a",
        b"nothing",
        b": nothing",
        b"From me",
    ],
)
def test_a_header_that_others_may_read_otherwise_is_refused(site: Running, header):
    hidden = b"GET /api/v1/status HTTP/1.1\r\nHost: x\r\n\r\n"

    answer = site.raw(b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + header + b"\r\nAccept: x\r\n\r\n" + hidden)

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"Connection: close" in answer


@pytest.mark.parametrize(
    "header", [b"X:", b"X:a", b"X: \t a \t", b"!#$%&'*+-.^_`|~09aZ: b\xe4r", b"Content-Length: 00"]
)
def test_an_odd_header_is_none_of_them(site: Running, header):
    answer = site.raw(b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + header + b"\r\nConnection: close\r\n\r\n")

    assert answer.startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("header", [b"Content-Length: 40", b"Transfer-Encoding: chunked"])
def test_a_body_is_not_taken_for_the_next_request(site: Running, header):
    hidden = b"GET /api/v1/status HTTP/1.1\r\nHost: x\r\n\r\n"

    answer = site.raw(b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + header + b"\r\n\r\n" + hidden)

    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"Connection: close" in answer


def test_nobody_is_asked_for_a_body(site: Running):
    answer = site.raw(b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n")

    assert answer.startswith(b"HTTP/1.1 405 ")


def test_an_old_client_is_answered_and_let_go(site: Running):
    answer = site.raw(b"GET /healthz HTTP/1.0\r\n\r\n")

    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(b"ok\n")
