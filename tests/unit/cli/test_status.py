"""`status` and `health`: whatever answers, the command says what that is."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.golden import assert_golden
from tests.unit.cli.running import Place, run

NOW = "2026-01-10T12:00:00Z"
STATUS: dict[str, Any] = {
    "now": NOW,
    "deployment": "prod",
    "mode": "dry-run",
    "leader": True,
    "holder": None,
    "healthy": True,
    "health": "ok",
    "ready": True,
    "readiness": "ok",
    "plan_digest": None,
    "last": {"reconcile": {"outcome": "complete", "reason": None, "detail": "", "finished_at": NOW}},
    "last_look": {"reconcile": NOW},
    "last_complete": {"reconcile": NOW},
    "held": {"launch_grace": 2},
    "scopes": [
        {"scope": "aws/us-east-1", "owned": 2, "orphans": 0, "would_terminate": 0, "terminating": 0, "missing": 0}
    ],
    "conditions": [{"key": "late", "severity": "warning", "data": {"kind": "audit"}}],
    "alerts": {"open": 1, "failing": {}},
}


@dataclass
class Stranger:
    """What listens at an address, and answers everything with the same."""

    url: str
    body: bytes = b"ok\n"
    code: int = 200


@pytest.fixture
def stranger() -> Iterator[Stranger]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(answering.code)
            self.send_header("Content-Length", str(len(answering.body)))
            self.end_headers()
            self.wfile.write(answering.body)

        def log_message(self, *_args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        answering = Stranger(f"http://127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield answering
        server.shutdown()
        thread.join()


@pytest.fixture
def asked(tmp_path: Path, stranger: Stranger) -> Callable[..., Any]:
    place = Place(tmp_path)
    place.configure()
    return lambda *words: run(*words, "--config", place.config, "--url", stranger.url)


def test_a_daemon_tells_how_it_is(asked, stranger: Stranger):
    stranger.body = json.dumps(STATUS).encode()

    result = asked("status")

    assert result.exit_code == 0
    assert "prod: REHEARSING" in result.stdout


GONE_WRONG: dict[str, Any] = {
    "mode": "enforce",
    "ready": False,
    "readiness": "refused: breaker_open",
    "reload_refused": "reaperd.toml: [reconcile] interval: must be longer than 0",
    "plan_digest": "sha256:0f3a5c7e9b1d2f4a6c8e0b2d4f6a8c0e2b4d6f8a0c2e4b6d8f0a2c4e6b8d0f2a",
    "last": {
        "reconcile": {
            "outcome": "refused",
            "reason": "breaker_open",
            "also": [],
            "detail": "40 of 52 machines would go; at most 5 may",
            "finished_at": "2026-01-10T11:59:40Z",
        },
        "audit": {"outcome": "incomplete", "reason": None, "detail": "", "finished_at": "2026-01-10T11:40:00Z"},
    },
    "last_complete": {"reconcile": "2026-01-10T11:59:40Z", "audit": None},
    "held": {"tracked": 9, "launch_grace": 2, "protected": 1},
    "scopes": [
        {
            "scope": "aws-production/ap-southeast-2",
            "owned": 1252,
            "orphans": 40,
            "would_terminate": 40,
            "terminating": 0,
            "missing": 3,
        }
    ],
    "conditions": [
        {
            "key": "termination_protected/aws-production/ap-southeast-2/i-0123456789abcdef0",
            "severity": "critical",
            "data": {"since": "2026-01-09T12:00:00Z", "worker_id": "gpu-worker-000017"},
        },
        {"key": "breaker_open", "severity": "critical", "data": {}},
        {"key": "heartbeats_stopped", "severity": "warning", "data": {}},
    ],
    "alerts": {"open": 3, "failing": {"pager": "HTTP 503"}},
}


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("status_well", {}),
        ("status_breaker_open", GONE_WRONG),
        ("status_standing_by", {"leader": False, "holder": {"pid": 17, "host": "ops-2"}, "alerts": {}}),
    ],
)
def test_the_page_is_the_golden_one_and_fits(asked, stranger: Stranger, name: str, changes: dict[str, Any]):
    stranger.body = json.dumps({**STATUS, **changes}).encode()

    page = asked("status").stdout

    assert_golden(name, re.sub(r"--config \S+", "--config reaperd.toml", page))
    # A command and an alert's key are there to be copied: one line each, however long.
    copied = ("reaperd approve", *(each["key"] for each in changes.get("conditions", ())))
    assert [line for line in page.splitlines() if len(line) > 80 and not any(text in line for text in copied)] == []
    assert [text for text in copied[1:] if text not in page] == []


@pytest.mark.parametrize("command", ["status", "health"])
def test_a_bad_configuration_says_how_the_daemon_is_asked_without_it(tmp_path: Path, stranger: Stranger, command: str):
    place = Place(tmp_path)
    place.configure(more="typo = 1\n")
    stranger.body = json.dumps(STATUS).encode()

    refused = run(command, "--config", place.config)
    asked = run(command, "--config", place.config, "--url", stranger.url)

    assert (refused.exit_code, asked.exit_code) == (78, 0)
    assert "typo" in refused.stderr
    assert refused.stderr.endswith("The daemon can be asked without the file: give --url http://HOST:PORT\n")


def test_of_very_many_places_the_first_are_shown_and_the_others_counted(asked, stranger: Stranger):
    (scope,) = STATUS["scopes"]
    places = [{**scope, "scope": f"aws/r-{number}"} for number in range(24)]
    stranger.body = json.dumps({**STATUS, "scopes": places}).encode()

    assert "  … 4 more: --format json\n" in asked("status").stdout


def test_of_very_many_conditions_it_is_told_how_many_are_in_no_answer(asked, stranger: Stranger):
    conditions = [{"key": f"late/{number}", "severity": "warning", "data": {}} for number in range(50)]
    stranger.body = json.dumps({**STATUS, "conditions": conditions, "conditions_total": 61}).encode()

    told = asked("status").stdout

    assert "  … 30 more: --format json\n" in told
    assert "  … and 11 less severe ones, which the daemon does not list: reaperd plan\n" in told


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"[]", b"null", b"3", b'"text"', b"\xff", b"[" * 100_000, b'{"a":' * 100_000, b"{} {}"],
    ids=["nothing", "html", "list", "null", "number", "text", "bytes", "deep", "deep table", "two"],
)
@pytest.mark.parametrize("format_", ["table", "json"])
def test_what_is_no_status_is_an_error_in_one_line(asked, stranger: Stranger, body: bytes, format_: str):
    stranger.body = body

    result = asked("status", "--format", format_)

    assert (result.exit_code, result.stdout) == (1, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"reaperd: what answers at {stranger.url} is not reaperd, or another version")


@pytest.mark.parametrize("key", sorted(set(STATUS) - {"holder", "last", "last_look", "last_complete"}))
@pytest.mark.parametrize("value", [None, "\x1b[2J", -1, [1], {"a": [{}]}, {"late": "x"}, [{"key": "x"}]], ids=repr)
def test_a_status_with_anything_in_it_never_costs_a_trace(asked, stranger: Stranger, key: str, value: object):
    stranger.body = json.dumps({**STATUS, key: value}).encode()

    result = asked("status")

    assert result.exit_code in {0, 1}
    assert "Traceback" not in result.output
    assert "\x1b" not in result.output


@pytest.mark.parametrize("key", ["now", "deployment", "mode", "leader", "healthy", "ready"])
def test_a_status_that_lacks_a_key_is_an_error_that_names_it(asked, stranger: Stranger, key: str):
    stranger.body = json.dumps({name: value for name, value in STATUS.items() if name != key}).encode()

    result = asked("status")

    assert (result.exit_code, result.stdout) == (1, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"reaperd: what answers at {stranger.url} is not reaperd")
    assert f"'{key}'" in line


@pytest.mark.parametrize("format_", ["table", "json"])
@pytest.mark.parametrize("depth", [200, 400, 900])
def test_a_status_however_deep_costs_no_trace(asked, stranger: Stranger, depth: int, format_: str):
    stranger.body = json.dumps(STATUS).replace('"late"', '{"a":' * depth + "1" + "}" * depth).encode()

    result = asked("status", "--format", format_)

    assert result.exit_code in {0, 1}
    assert "Traceback" not in result.output


@pytest.mark.parametrize("now", ["x", "2026-01-10", "", "9999-99-99T00:00:00Z"])
def test_a_status_of_no_time_is_an_error(asked, stranger: Stranger, now: str):
    stranger.body = json.dumps({**STATUS, "now": now}).encode()

    assert asked("status").exit_code == 1


@pytest.mark.parametrize("code", [200, 503])
def test_what_a_probe_answers_cannot_take_the_terminal(asked, stranger: Stranger, code: int):
    stranger.code, stranger.body = code, "ok\x1b[2J\x1b]0;taken\x07 \u202e\nreaperd: all is well\n".encode()

    result = asked("health")

    assert result.exit_code == (0 if code == 200 else 1)
    assert r"ok\x1b[2J\x1b]0;taken\x07 \u202e\nreaperd: all is well" in result.output
    assert result.output.count("\n") == 1


def test_an_endless_probe_is_cut(asked, stranger: Stranger):
    stranger.body = b"x" * 100_000

    assert len(asked("health").output) < 2_000


@pytest.mark.parametrize("command", ["status", "health"])
@pytest.mark.parametrize(
    ("url", "detail"),
    [
        ("127.0.0.1:9745", "an address is written like http://127.0.0.1:9745"),
        ("ftp://127.0.0.1", "an address is written like http://127.0.0.1:9745"),
        ("http://", "an address is written like http://127.0.0.1:9745"),
        ("http://[", "Invalid IPv6 URL"),
        ("http://127.0.0.1:x", "Port could not be cast"),
    ],
)
def test_an_address_that_is_none_is_told(tmp_path: Path, command: str, url: str, detail: str):
    place = Place(tmp_path)
    place.configure()

    result = run(command, "--config", place.config, "--url", url)

    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"reaperd: no daemon answers at {url}: {detail}")


@pytest.mark.parametrize("command", ["status", "health"])
@pytest.mark.parametrize("text", [None, "a: [", "- a", "a: 2020-13-45", "[" * 5_000])
def test_a_web_config_that_cannot_be_read_is_a_bad_configuration(tmp_path: Path, command: str, text: str | None):
    web = tmp_path / "web.yml"
    if text is not None:
        web.write_text(text)
    place = Place(tmp_path)
    place.configure(more=f'[http]\nweb_config_file = "{web}"')

    result = run(command, "--config", place.config)

    assert result.exit_code == 78
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"reaperd: http.web_config_file {web}: ")
