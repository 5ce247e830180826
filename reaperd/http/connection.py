"""One client, from its first byte to its last. Every wait for it has an end."""

from __future__ import annotations

import io
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any

from reaperd.http.answers import WITHOUT_AUTH, Answer, answer_to, encoded, in_words
from reaperd.http.basic_auth import Admission, BasicAuth
from reaperd.http.desk import Desk
from reaperd.http.head import Head
from reaperd.http.web_config import WebConfigFile
from reaperd.report.logs import Logger

HANDSHAKE_SECONDS = 5.0
REQUEST_SECONDS = 10.0
"""From the first wait for a request to its last byte."""
IDLE_SECONDS = 120.0
"""Between two requests: Prometheus asks once a minute by default, on one connection."""
WRITE_SECONDS = 10.0

_TOLD_PATH = 200

_TLS_HANDSHAKE = 0x16
"""The first byte of a client that speaks TLS."""

_UNAUTHORIZED = in_words(
    HTTPStatus.UNAUTHORIZED, headers={"WWW-Authenticate": 'Basic realm="reaperd", charset="UTF-8"'}
)
_BUSY = in_words(HTTPStatus.TOO_MANY_REQUESTS, headers={"Retry-After": "1"})
_NOT_ALLOWED = in_words(HTTPStatus.METHOD_NOT_ALLOWED, headers={"Allow": "GET, HEAD"})
_SPEAKS_TLS = in_words(HTTPStatus.BAD_REQUEST, "this port speaks TLS: use https")


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """What every connection needs."""

    desk: Desk
    web: WebConfigFile
    auth: BasicAuth
    log: Logger
    monotonic: Callable[[], float]


@dataclass(eq=False, slots=True)
class Guest:
    """One client's socket. Whoever needs its place may show it out while it only keeps us waiting."""

    sock: socket.socket
    since: float
    """Since when we wait for it, on the monotonic clock: it came in, its request began, or its answer was made."""
    busy: bool = False
    """True while its answer is made."""
    _shown_out: bool = field(default=False, init=False)

    def show_out(self) -> None:
        """End the connection, in whatever thread it is being waited for."""
        self._shown_out = True
        with suppress(OSError):
            # Not SSLSocket.shutdown: it takes the session away from the thread that is reading from it.
            socket.socket.shutdown(self.sock, socket.SHUT_RDWR)

    @property
    def may_be_shown_out(self) -> bool:
        """True when it is waited for and was not shown out before."""
        return not self.busy and not self._shown_out


def attend(guest: Guest, house: House) -> None:
    """Serve one client until it, or our patience, comes to an end. Raises OSError when the client is at fault."""
    if isinstance(guest.sock, ssl.SSLSocket):
        guest.sock.settimeout(HANDSHAKE_SECONDS)
        # Looked at, not taken: a client that speaks plain HTTP gets an answer that it can read.
        if socket.socket.recv(guest.sock, 1, socket.MSG_PEEK) != bytes([_TLS_HANDSHAKE]):
            _say_in_the_open(guest.sock)
            return
        guest.sock.do_handshake()
    _Conversation(guest, house)


def _say_in_the_open(sock: socket.socket) -> None:
    words = encoded(_SPEAKS_TLS, {}, body=True, close=True, date="")
    socket.socket.sendall(sock, words)


class _Patience(io.RawIOBase):
    """Reads from a socket up to a point in time, not for a while per byte: a slow client cannot stretch it."""

    def __init__(self, sock: socket.socket, monotonic: Callable[[], float]) -> None:
        self._sock = sock
        self._monotonic = monotonic
        self._ends_at = 0.0

    def wait_until(self, ends_at: float) -> None:
        """Set the end of our patience, on the monotonic clock."""
        self._ends_at = ends_at

    def readable(self) -> bool:
        """Say that one can read."""
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - any writable buffer
        """Read what is there, or wait for it. Raises TimeoutError."""
        left = self._ends_at - self._monotonic()
        if left <= 0:
            raise TimeoutError
        self._sock.settimeout(left)
        return self._sock.recv_into(buffer)


class _Conversation(BaseHTTPRequestHandler):
    """The requests of one client, one after the other."""

    protocol_version = "HTTP/1.1"

    def __init__(self, guest: Guest, house: House) -> None:
        self._guest = guest
        self._house = house
        self._patience = _Patience(guest.sock, house.monotonic)
        super().__init__(guest.sock, ("", 0), None)  # type: ignore[arg-type] # nothing here asks for the server

    def setup(self) -> None:
        """Get ready to read; nothing is written but whole answers."""
        self.connection = self._guest.sock
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)  # noqa: FBT003 - setsockopt's own
        self.rfile = io.BufferedReader(self._patience)
        self.wfile = io.BytesIO()

    def finish(self) -> None:
        """Leave the socket to whoever accepted it."""

    def handle(self) -> None:
        """Answer one request after the other."""
        self._await(REQUEST_SECONDS)
        self.handle_one_request()
        while not self.close_connection:
            # We wait for it since its answer was made, not since this thread has its turn again: under load that is
            # late, and a client that was answered later would be shown out in its stead.
            self._patience.wait_until(self._house.monotonic() + IDLE_SECONDS)
            if not self.rfile.peek(1):  # type: ignore[attr-defined] # it is a BufferedReader
                return
            self._await(REQUEST_SECONDS)
            self.handle_one_request()

    def _await(self, seconds: float) -> None:
        self._guest.since = self._house.monotonic()
        self._patience.wait_until(self._guest.since + seconds)

    def parse_request(self) -> bool:
        """Read the head of a request; one that somebody else may read otherwise is refused."""
        source, head = self.rfile, Head(self.rfile)
        self.rfile = head  # type: ignore[assignment] # all that is asked of it here is lines
        try:
            is_read = super().parse_request()
        finally:
            self.rfile = source
        if is_read and not head.is_sound():
            self.send_error(HTTPStatus.BAD_REQUEST)
            return False
        return is_read

    def do_GET(self) -> None:
        """Answer."""
        self._answer(body=True)

    def do_HEAD(self) -> None:
        """Answer, without the body."""
        self._answer(body=False)

    def handle_expect_100(self) -> bool:
        """Ask for no body: none is read."""
        return True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Log no request: a scrape each few seconds is no event."""

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Say what is wrong with a request, in our own words, and end the conversation."""
        unknown_method = code == HTTPStatus.NOT_IMPLEMENTED
        answer = _NOT_ALLOWED if unknown_method else in_words(HTTPStatus(code))
        self.close_connection = True
        self._write(answer, body=True)

    def _answer(self, *, body: bool) -> None:
        if int(self.headers.get("Content-Length", "0")) or "Transfer-Encoding" in self.headers:
            # What follows is a body that nobody reads, not the next request.
            self.close_connection = True
        path = self.path.partition("?")[0]
        self._write(self._barred(path) or self._made(path), body=body)

    def _barred(self, path: str) -> Answer | None:
        """Return what is said to somebody who may not come in."""
        users = self._house.web.current().users
        if not users or path in WITHOUT_AUTH:
            return None
        match self._house.auth.admits(self.headers.get("Authorization", ""), users):
            case Admission.ADMITTED:
                return None
            case Admission.REFUSED:
                return _UNAUTHORIZED
            case Admission.BUSY:
                return _BUSY

    def _made(self, path: str) -> Answer:
        self._guest.busy = True
        try:
            return answer_to(path, self.headers.get("Accept", ""), self._house.desk)
        except Exception:
            # One bad answer must not end the server: it is told, and the client gets a 500.
            self._house.log.exception("http_answer_failed", path=path[:_TOLD_PATH])
            return in_words(HTTPStatus.INTERNAL_SERVER_ERROR)
        finally:
            # It has not kept us waiting meanwhile: it must not be shown out for that before it has its answer.
            self._guest.since = self._house.monotonic()
            self._guest.busy = False

    def _write(self, answer: Answer, *, body: bool) -> None:
        self.connection.settimeout(WRITE_SECONDS)
        self.connection.sendall(
            encoded(
                answer,
                self._house.web.current().headers,
                body=body,
                close=self.close_connection,
                date=self.date_time_string(),
            )
        )
