"""A stand-in for EC2 that is much faster than what is measured with it.

    python -m bench.stub_ec2 --machines 50000 --regions 17 [--port 5655] [--throttled] [--latency-ms 150 --item-us 1000]
    AWS_ENDPOINT_URL=http://127.0.0.1:5655 AWS_ACCESS_KEY_ID=AKIAEXAMPLE AWS_SECRET_ACCESS_KEY=EXAMPLE  a-program

One address serves every region: which one is meant stands in the credential scope of the Authorization header, whose
signature nobody checks. Answers are compressed for whoever accepts it. The first line printed is the address.

Control, JSON over the same port:

    GET  /stub/stats      calls, errors, items, bytes and the most at once, by region and action
    GET  /stub/truth      a line for each machine: id, region, whose, orphan, state
    POST /stub/reset      every machine runs, no faults, no statistics, full buckets
    POST /stub/settings   {"latency_ms": 150, "item_us": 1000, "throttled": true}
    POST /stub/faults     [{"kind": "cut", "region": "eu-west-1", "action": "DescribeInstances", "page": 2, "times": 1}]
"""

# ruff: noqa: T201, TID251 - a program that prints its address and counts real seconds

from __future__ import annotations

import argparse
import asyncio
import gc
import gzip
import json
import re
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from email.utils import formatdate
from http import HTTPStatus
from typing import cast
from urllib.parse import parse_qsl

from bench.buckets import AWS, Buckets
from bench.faults import Faults
from bench.fleet import REGIONS, Recipe
from bench.stub_api import Answer, Api, ApiError

_SCOPE = re.compile(rb"Credential=[^/,]+/\d{8}/([a-z0-9-]+)/[a-z0-9-]+/")
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_ACCEPTS_GZIP = re.compile(rb"\r\naccept-encoding:[^\r]*\bgzip\b", re.IGNORECASE)
_JSON = "application/json"
_XML = "text/xml;charset=UTF-8"


@dataclass(slots=True)
class Settings:
    """What can be changed while it runs."""

    latency_ms: float = 0.0
    """Of every call."""
    item_us: float = 0.0
    """For each machine on a page, on top."""
    throttled: bool = False


@dataclass(slots=True)
class Count:
    """What was asked of one region by one action."""

    calls: int = 0
    errors: int = 0
    items: int = 0
    bytes: int = 0
    """Of bodies, as they were sent."""
    at_once: int = 0


@dataclass(slots=True)
class Reply:
    """What is about to be sent."""

    status: HTTPStatus
    body: bytes
    key: tuple[object, ...] | None = None
    kind: str = _XML
    compressed: bool = False
    fault: str | None = None


class Stub:
    """The fleet, with everything that can be told about it and done to it."""

    def __init__(self, recipe: Recipe, settings: Settings, ending_seconds: float) -> None:
        """Make the fleet."""
        self.settings = settings
        self.counts: dict[str, Count] = {}
        self.busy = 0
        self._ending_seconds = ending_seconds
        self._faults = Faults()
        self._buckets = Buckets(time.monotonic)
        self._throttle()
        self._api = Api(recipe, self._buckets)
        self._compressed: dict[tuple[object, ...], bytes] = {}

    def called(self, region: str, params: Mapping[str, str]) -> tuple[Reply, float]:
        """Return the reply to one call, and after how many seconds it is sent."""
        action = params.get("Action", "")
        count = self.counts.setdefault(f"{region} {action}", Count())
        try:
            answer = self._api.answer(action, region, params)
            reply = Reply(HTTPStatus.OK, answer.body, answer.key)
        except ApiError as error:
            answer = Answer(body=b"")
            reply = Reply(error.status, error.body)
        if action == "TerminateInstances":
            asyncio.get_running_loop().call_later(self._ending_seconds, self._api.finish)
        reply.fault = self._faults.strike(region, action, answer.page)
        if reply.fault is not None:
            self._faults.spoil(reply, params.get("NextToken", ""))
        self.busy += 1
        count.calls += 1
        count.errors += reply.status != HTTPStatus.OK
        count.items += answer.items
        count.at_once = max(count.at_once, self.busy)
        return reply, self.settings.latency_ms / 1e3 + answer.items * self.settings.item_us / 1e6

    def compress(self, reply: Reply) -> None:
        """Compress a body; a page that comes again is compressed once."""
        found = self._compressed.get(reply.key) if reply.key is not None else None
        if found is None:
            found = gzip.compress(reply.body, 6)
            if reply.key is not None:
                self._compressed[reply.key] = found
        reply.body, reply.compressed = found, True

    def control(self, what: str, body: bytes) -> bytes:
        """Do or tell something. Raises ValueError."""
        match what:
            case "stats":
                return json.dumps({key: asdict(count) for key, count in sorted(self.counts.items())}).encode()
            case "truth":
                return b"".join(self._truth())
            case "reset":
                self.counts.clear()
                self._faults = Faults()
                self._api.reset()
                self._throttle()
            case "settings":
                for name, value in json.loads(body).items():
                    setattr(self.settings, name, value)
                self._throttle()
            case "faults":
                self._faults = Faults(json.loads(body))
            case _:
                raise ValueError(what)
        return b"{}"

    def _throttle(self) -> None:
        self._buckets.fill(AWS if self.settings.throttled else {})

    def _truth(self) -> list[bytes]:
        return [
            json.dumps(
                {
                    "instance_id": machine.instance_id,
                    "region": machine.region,
                    "zone": machine.zone,
                    "owned": machine.owned,
                    "orphan": machine.orphan,
                    "guarded": machine.guarded,
                    "state": state,
                }
            ).encode()
            + b"\n"
            for machine, state in self._api.states()
        ]


class Line(asyncio.Protocol):
    """One connection, whose requests are answered one after the other."""

    def __init__(self, stub: Stub) -> None:
        """Keep whom to ask."""
        self._stub = stub
        self._read = bytearray()
        self._answering = False
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Take what came."""
        self._read += data
        self._next()

    def _next(self) -> None:
        """Answer the next request, once it is here and none is being answered."""
        end = self._read.find(b"\r\n\r\n")
        if self._answering or end < 0:
            return
        head = bytes(self._read[:end])
        length = _LENGTH.search(head)
        whole = end + 4 + (int(length[1]) if length else 0)
        if len(self._read) < whole:
            return
        body = bytes(self._read[end + 4 : whole])
        del self._read[:whole]
        self._answering = True
        _, target, _ = head.split(b"\r\n", 1)[0].split(b" ", 2)
        path, _, query = target.partition(b"?")
        if path.startswith(b"/stub/"):
            self._send(self._controlled(path.decode(), body))
        else:
            self._answer(head, (body or query).decode())

    def _controlled(self, path: str, body: bytes) -> Reply:
        try:
            return Reply(HTTPStatus.OK, self._stub.control(path.removeprefix("/stub/"), body), kind=_JSON)
        except (ValueError, AttributeError, TypeError) as error:
            return Reply(HTTPStatus.BAD_REQUEST, json.dumps({"error": str(error)}).encode(), kind=_JSON)

    def _answer(self, head: bytes, asked: str) -> None:
        scope = _SCOPE.search(head)
        region = scope[1].decode() if scope else REGIONS[0]
        params = dict(parse_qsl(asked, keep_blank_values=True))
        reply, seconds = self._stub.called(region, params)
        if _ACCEPTS_GZIP.search(head):
            self._stub.compress(reply)
        self._stub.counts[f"{region} {params.get('Action', '')}"].bytes += len(reply.body)
        if seconds > 0:
            asyncio.get_running_loop().call_later(seconds, self._reply, reply)
        else:
            self._reply(reply)

    def _reply(self, reply: Reply) -> None:
        self._stub.busy -= 1
        if self._transport.is_closing() or reply.fault == "hung":
            return
        if reply.fault == "dropped":
            self._transport.abort()
            return
        self._send(reply)

    def _send(self, reply: Reply) -> None:
        length = len(reply.body)
        # Half of what was announced, and then the end.
        body = reply.body[: length // 2] if reply.fault == "cut" else reply.body
        encoding = "Content-Encoding: gzip\r\n" if reply.compressed else ""
        head = (
            f"HTTP/1.1 {reply.status.value} {reply.status.phrase}\r\nDate: {formatdate(usegmt=True)}\r\n"
            f"Content-Type: {reply.kind}\r\nContent-Length: {length}\r\n{encoding}\r\n"
        )
        self._transport.writelines([head.encode(), body])
        if reply.fault == "cut":
            self._transport.close()
            return
        self._answering = False
        if self._read:
            asyncio.get_running_loop().call_soon(self._next)


async def _serve(stub: Stub, port: int) -> None:
    server = await asyncio.get_running_loop().create_server(lambda: Line(stub), "127.0.0.1", port, backlog=256)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    async with server:
        await server.serve_forever()


def main() -> None:
    """Serve until it is stopped."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--machines", type=int, default=10_000)
    parser.add_argument("--regions", type=int, default=4, choices=range(1, len(REGIONS) + 1), metavar="N")
    parser.add_argument("--stranger-every", type=int, default=10)
    parser.add_argument("--orphan-every", type=int, default=100)
    parser.add_argument("--spot-every", type=int, default=2)
    parser.add_argument("--guarded-every", type=int, default=0)
    parser.add_argument("--port", type=int, default=0, help="0: any that is free")
    parser.add_argument("--latency-ms", type=float, default=0.0)
    parser.add_argument("--item-us", type=float, default=0.0)
    parser.add_argument("--throttled", action="store_true", help="refuse what exceeds AWS's documented rates")
    parser.add_argument("--ending-seconds", type=float, default=30.0, help="from shutting-down to terminated")
    asked = parser.parse_args()
    recipe = Recipe(
        machines=asked.machines,
        regions=asked.regions,
        stranger_every=asked.stranger_every,
        orphan_every=asked.orphan_every,
        spot_every=asked.spot_every,
        guarded_every=asked.guarded_every,
    )
    settings = Settings(latency_ms=asked.latency_ms, item_us=asked.item_us, throttled=asked.throttled)
    # A fleet of this size is not to be looked through for garbage, while it is made or ever after.
    gc.disable()
    stub = Stub(recipe, settings, asked.ending_seconds)
    gc.freeze()
    gc.enable()
    try:
        asyncio.run(_serve(stub, asked.port))
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()
