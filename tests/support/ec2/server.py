"""HTTP on loopback, with answers that may break off, drip or never come."""

from __future__ import annotations

import gzip
import json
import select
import socket
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, ClassVar, Self

from tests.support.ec2.gateway import Gateway, Reply, Travel
from tests.support.ec2.protocol import HttpRequest

CONTROL_PATH = "/_control"
Control = Callable[[dict[str, Any]], Any]


class Server:
    """A gateway on a port of 127.0.0.1. Closing ends every connection and every thread."""

    def __init__(self, gateway: Gateway, control: Control, port: int = 0) -> None:
        self._gateway = gateway
        self._http = _HttpServer(("127.0.0.1", port), _Handler)
        self._http.gateway = gateway
        self._http.control = control
        self._thread = threading.Thread(target=self._serve, name="test-cloud", daemon=True)

    @property
    def port(self) -> int:
        """Return the port that it has."""
        return int(self._http.server_address[1])

    @property
    def url(self) -> str:
        """Return what goes into endpoint_url."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Serve from a thread of its own."""
        self._thread.start()

    def close(self) -> None:
        """Stop; hanging requests end. Twice is harmless."""
        if self._gateway.stopping.is_set():
            return
        self._gateway.stopping.set()
        if self._thread.is_alive():
            socket.create_connection(("127.0.0.1", self.port)).close()  # wakes the accept
            self._thread.join()
        self._http.hang_up()
        self._http.server_close()

    def join(self) -> None:
        """Wait until it is closed."""
        self._thread.join()

    def _serve(self) -> None:
        while not self._gateway.stopping.is_set():
            self._http.handle_request()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class _HttpServer(ThreadingHTTPServer):
    daemon_threads = False  # so that server_close() waits for them
    request_queue_size = 256
    gateway: Gateway
    control: Control

    def __init__(self, *args: Any) -> None:
        self._open: set[socket.socket] = set()
        self._guard = threading.Lock()
        super().__init__(*args)

    def server_bind(self) -> None:
        # HTTPServer would ask the name service for the host's name.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = "127.0.0.1", self.server_address[1]

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        with self._guard:
            self._open.add(connection)
        return connection, address

    def shutdown_request(self, request: Any) -> None:
        with self._guard:
            self._open.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        with self._guard:
            for connection in self._open:
                _shut(connection)


def _shut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # the client was first


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _HttpServer
    travels: ClassVar[dict[Travel, str]] = {
        Travel.WHOLE: "_whole",
        Travel.TRUNCATED: "_half",
        Travel.DRIPPING: "_dripping",
        Travel.HUNG: "_never",
        Travel.DROPPED: "_nothing",
    }

    def handle(self) -> None:
        try:
            super().handle()
        except ConnectionResetError:
            self.close_connection = True  # the client was killed between two requests

    def do_POST(self) -> None:
        try:
            self._respond()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the client gave up

    do_GET = do_PUT = do_POST  # noqa: N815  # the names are the base class's

    def _respond(self) -> None:
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if path == CONTROL_PATH:
            self._controlled(body)
            return
        http = HttpRequest(method=self.command, path=path, query=query, headers=self.headers, body=body)
        reply = self.server.gateway.reply(http)
        if reply is None:
            self.close_connection = True
            return
        getattr(self, self.travels[reply.travel])(reply)

    def _controlled(self, body: bytes) -> None:
        try:
            status, said = 200, {"result": self.server.control(json.loads(body or b"{}"))}
        except (AttributeError, KeyError, LookupError, TypeError, ValueError) as error:
            status, said = 400, {"error": f"{type(error).__name__}: {error}"}
        text = json.dumps(said).encode()
        self.wfile.write(_head(status, "application/json", len(text)) + text)

    def _whole(self, reply: Reply) -> None:
        head, body = self._packed(reply)
        self.wfile.write(head + body)

    def _half(self, reply: Reply) -> None:
        head, body = self._packed(reply)
        self.wfile.write(head + body[: len(body) // 2])
        self.close_connection = True

    def _dripping(self, reply: Reply) -> None:
        head, body = self._packed(reply)
        self.wfile.write(head)
        for byte in body:
            if self._gone(reply.drip_s):
                self.close_connection = True
                return
            self.wfile.write(bytes([byte]))

    def _never(self, reply: Reply) -> None:  # the others need it
        while not self._gone(0.02):
            pass
        self.close_connection = True

    def _nothing(self, reply: Reply) -> None:  # the others need it
        self.close_connection = True

    def _gone(self, seconds: float) -> bool:
        """Wait so long; whether the server stops or the client has hung up."""
        if self.server.gateway.stopping.wait(seconds):
            return True
        readable, _, _ = select.select([self.connection], [], [], 0)
        return bool(readable) and not self.connection.recv(1, socket.MSG_PEEK)

    def _packed(self, reply: Reply) -> tuple[bytes, bytes]:
        body, extra = reply.answer.body, dict(reply.answer.headers)
        if "gzip" in self.headers.get("Accept-Encoding", ""):
            body = gzip.compress(body, 1)
            extra["Content-Encoding"] = "gzip"
        if reply.date is not None:
            extra["Date"] = reply.date
        return _head(reply.answer.status, reply.answer.content_type, len(body), extra), body

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the name is the base class's
        """Say nothing: the journal knows more."""


def _head(status: int, content_type: str, length: int, extra: dict[str, str] | None = None) -> bytes:
    reason = HTTPStatus(status).phrase
    lines = [f"HTTP/1.1 {status} {reason}", f"Content-Type: {content_type}", f"Content-Length: {length}"]
    lines += [f"{name}: {value}" for name, value in {"Server": "AmazonEC2", **(extra or {})}.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()
