"""An AWS on loopback that answers with whatever it was told to, and keeps what it was asked."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self
from urllib.parse import parse_qsl

ACCOUNT = "123456789012"
NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
LAUNCHED = "2026-11-29T10:00:00.000Z"
OWNED = {"reaperd:owner": "prod", "reaperd:worker-id": "w-1"}


@dataclass(frozen=True)
class Reply:
    body: str | bytes
    status: int = 200
    content_type: str | None = "text/xml;charset=UTF-8"
    date: datetime | str | None = NOW
    cut: int = 0
    """So many bytes at the end of the body are announced and never sent."""
    hang: bool = False
    """Never answered."""
    packed: str | None = None
    """What the body is said to be packed by; it is packed by whoever makes it."""
    drip: bool = False
    """Sent so slowly that it never ends, a byte now and then."""
    before: Callable[[], None] = field(default=lambda: None)
    """Done while the caller waits."""


class CannedAws:
    """Answers each action with its replies in turn; the last one stays."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.stopping = threading.Event()
        self.reset()
        self._http = _Http(("127.0.0.1", 0), _Handler)
        self._http.aws = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)

    def reset(self) -> None:
        """Forget everything, let go of whoever hangs, and answer like an empty account."""
        self.stopping.set()
        with self._lock:
            self.stopping = threading.Event()
            self.requests: list[dict[str, str]] = []
            self.headers: list[dict[str, str]] = []
            self._replies: dict[str, list[Reply]] = {}
            self._by_parameter: tuple[str, dict[str, Reply]] = ("", {})
        self.will("GetCallerIdentity", Reply(identity()))
        self.will("DescribeInstances", Reply(page()))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def actions(self) -> list[str]:
        return [request["Action"] for request in self.requests]

    def will(self, action: str, *replies: Reply) -> None:
        self._replies[action] = list(replies)

    def by_parameter(self, name: str, replies: dict[str, Reply]) -> None:
        """Answer requests with these values of a parameter so, whatever their action."""
        self._by_parameter = (name, replies)

    def asked(self, action: str) -> list[dict[str, str]]:
        return [request for request in self.requests if request["Action"] == action]

    def reply_to(self, request: dict[str, str]) -> Reply:
        with self._lock:
            self.requests.append(request)
            name, by_value = self._by_parameter
            if request.get(name) in by_value:
                return by_value[request[name]]
            replies = self._replies.get(request["Action"])
            if not replies:
                return failure("InvalidAction")
            return replies.pop(0) if len(replies) > 1 else replies[0]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stopping.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


class _Http(ThreadingHTTPServer):
    daemon_threads = False
    aws: CannedAws

    def handle_error(self, request: object, client_address: object) -> None:
        """A caller that hung up is what many of these tests are about."""


class _Handler(BaseHTTPRequestHandler):
    server: _Http

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        stopping = self.server.aws.stopping
        self.server.aws.headers.append({name.lower(): value for name, value in self.headers.items()})
        reply = self.server.aws.reply_to(dict(parse_qsl(body, keep_blank_values=True)))
        reply.before()
        if reply.hang:
            stopping.wait()
            return
        self._send(reply, reply.body if isinstance(reply.body, bytes) else reply.body.encode())

    def _send(self, reply: Reply, body: bytes) -> None:
        self.send_response_only(reply.status)
        self.send_header("Connection", "close")
        self.send_header("Content-Length", str(len(body)))
        if reply.content_type is not None:
            self.send_header("Content-Type", reply.content_type)
        if reply.date is not None:
            date = reply.date if isinstance(reply.date, str) else format_datetime(reply.date, usegmt=True)
            self.send_header("Date", date)
        if reply.packed is not None:
            self.send_header("Content-Encoding", reply.packed)
        self.end_headers()
        if reply.drip:
            self._drip(body, self.server.aws.stopping)
            return
        self.wfile.write(body[: len(body) - reply.cut])

    def _drip(self, body: bytes, stopping: threading.Event) -> None:
        for byte in body:
            self.wfile.write(bytes([byte]))
            if stopping.wait(0.05):
                return

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


def identity(account: str = ACCOUNT) -> str:
    return (
        '<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>'
        f"<Arn>arn:aws:iam::{account}:user/reaperd</Arn><UserId>AIDA</UserId><Account>{account}</Account>"
        "</GetCallerIdentityResult><ResponseMetadata><RequestId>r</RequestId></ResponseMetadata>"
        "</GetCallerIdentityResponse>"
    )


def regions(*names: str, status: str = "opt-in-not-required") -> str:
    items = (f"<item><regionName>{name}</regionName><optInStatus>{status}</optInStatus></item>" for name in names)
    return answer("DescribeRegions", f"<regionInfo>{''.join(items)}</regionInfo>")


def instance(
    instance_id: str = "i-1",
    *,
    tags: dict[str, str] | None = None,
    state: str = "running",
    launched: str = LAUNCHED,
    more: str = "",
) -> str:
    pairs = OWNED if tags is None else tags
    items = "".join(f"<item><key>{key}</key><value>{value}</value></item>" for key, value in pairs.items())
    tag_set = f"<tagSet>{items}</tagSet>" if items else ""
    return (
        f"<item><instanceId>{instance_id}</instanceId><instanceState><code>16</code><name>{state}</name>"
        f"</instanceState><launchTime>{launched}</launchTime>{tag_set}{more}</item>"
    )


def reservation(*instances: str, owner: str = ACCOUNT) -> str:
    return (
        f"<item><reservationId>r-1</reservationId><ownerId>{owner}</ownerId>"
        f"<instancesSet>{''.join(instances)}</instancesSet></item>"
    )


def page(*reservations: str, token: str | None = None) -> str:
    after = "" if token is None else f"<nextToken>{token}</nextToken>"
    return answer("DescribeInstances", f"<reservationSet>{''.join(reservations)}</reservationSet>{after}")


def terminating(instance_id: str = "i-1", state: str = "shutting-down") -> str:
    return answer(
        "TerminateInstances",
        f"<instancesSet><item><instanceId>{instance_id}</instanceId><currentState><code>32</code>"
        f"<name>{state}</name></currentState><previousState><code>16</code><name>running</name></previousState>"
        "</item></instancesSet>",
    )


def spot_requests(kind: str = "persistent", state: str = "active", request_id: str = "sir-1") -> str:
    return answer(
        "DescribeSpotInstanceRequests",
        f"<spotInstanceRequestSet><item><spotInstanceRequestId>{request_id}</spotInstanceRequestId>"
        f"<type>{kind}</type><state>{state}</state></item></spotInstanceRequestSet>",
    )


def cancelled(state: str = "cancelled", request_id: str = "sir-1") -> str:
    return answer(
        "CancelSpotInstanceRequests",
        f"<spotInstanceRequestSet><item><spotInstanceRequestId>{request_id}</spotInstanceRequestId>"
        f"<state>{state}</state></item></spotInstanceRequestSet>",
    )


def fleets(**types: str) -> str:
    items = "".join(
        f"<item><fleetId>{fleet.replace('_', '-')}</fleetId><type>{kind}</type></item>" for fleet, kind in types.items()
    )
    return answer("DescribeFleets", f"<fleetSet>{items}</fleetSet>")


def spot_fleets(**types: str) -> str:
    items = "".join(
        f"<item><spotFleetRequestId>{fleet.replace('_', '-')}</spotFleetRequestId>"
        f"<spotFleetRequestConfig><type>{kind}</type></spotFleetRequestConfig></item>"
        for fleet, kind in types.items()
    )
    return answer("DescribeSpotFleetRequests", f"<spotFleetRequestConfigSet>{items}</spotFleetRequestConfigSet>")


def answer(action: str, content: str) -> str:
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        f'<{action}Response xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>r</requestId>'
        f"{content}</{action}Response>"
    )


def failure(code: str, status: int = 400, message: str = "no") -> Reply:
    return Reply(
        f"<Response><Errors><Error><Code>{code}</Code><Message>{message}</Message></Error></Errors>"
        "<RequestID>r</RequestID></Response>",
        status=status,
    )


def sts_failure(code: str, status: int = 403) -> Reply:
    return Reply(
        '<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type>'
        f"<Code>{code}</Code><Message>no</Message></Error><RequestId>r</RequestId></ErrorResponse>",
        status=status,
    )
