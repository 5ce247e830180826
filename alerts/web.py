"""Requests to the receivers of alerts: bounded in time and size, no redirects, and no secret in an error.

A channel's address often is its password, so an error names the host alone. Proxy variables are not read: where alerts
go is decided by the configuration only.
"""

from __future__ import annotations

import base64
import http.client
import io
import re
import socket
import ssl
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import IO, cast
from urllib.parse import SplitResult, unquote, urlsplit

from alerts.base import Clock
from alerts.errors import ChannelSetupError, DeliveryError
from alerts.text import visible

TIMEOUT = timedelta(seconds=10)
LONGEST_ANSWER = 65_536
"""Bytes that are read of an answer at most."""
_QUOTED = 200
_TRY_AGAIN = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS})
_SHORTEST_SECRET = 4
_PLAIN = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True)
class Address:
    """Where requests go. What it prints tells nothing but scheme, host and port."""

    url: str = field(repr=False)

    def __post_init__(self) -> None:
        """Refuse what is no address. The error tells no part of it beyond the host."""
        parts = _split(self.url)
        if parts.scheme not in {"http", "https"} or not parts.hostname or not _PLAIN.fullmatch(self.url):
            message = "the URL of an alert channel must look like https://host/path, in ASCII and without blanks"
            raise ChannelSetupError(message)

    def __str__(self) -> str:
        """Return the address as anybody may see it."""
        return _place(_split(self.url))

    def below(self, path: str) -> Address:
        """Return the address of a path below this one."""
        parts = _split(self.url)
        return Address(parts._replace(path=parts.path.rstrip("/") + path).geturl())

    @property
    def parts(self) -> SplitResult:
        """Return the parts of the URL."""
        return _split(self.url)

    def without_secrets(self, text: str) -> str:
        """Return a text of the receiver without what it may have repeated of the URL."""
        parts = self.parts
        pieces = {parts.path, parts.query, parts.username or "", parts.password or "", *parts.path.split("/")}
        pieces |= {value for pair in parts.query.split("&") for value in pair.split("=")[1:]}
        known = {unquote(piece) for piece in pieces} | pieces
        for piece in sorted(known, key=len, reverse=True):
            if len(piece) >= _SHORTEST_SECRET:
                text = text.replace(piece, "…")
        return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Web:
    """Sends one request, and takes nothing but success for an answer."""

    clock: Clock
    timeout: timedelta = TIMEOUT
    """For the whole exchange, however slowly it drips. Only the look-up of a name takes its own time."""
    trust: ssl.SSLContext | None = None
    """Whose certificates are believed; None: the system's authorities."""

    def post(self, address: Address, body: bytes, headers: Mapping[str, str]) -> None:
        """Send a body.

        Raises:
            DeliveryError: unless the answer is a success.
        """
        self._exchange("POST", address, body, headers)

    def get(self, address: Address) -> None:
        """Call an address.

        Raises:
            DeliveryError: unless the answer is a success.
        """
        self._exchange("GET", address, None, {})

    def _exchange(self, method: str, address: Address, body: bytes | None, headers: Mapping[str, str]) -> None:
        deadline = self.clock.monotonic() + self.timeout.total_seconds()
        try:
            answer, told = self._answer(method, address, body, headers, deadline)
        except TimeoutError as error:
            message = f"{address} did not answer within {self.timeout.total_seconds():g} s"
            raise DeliveryError(message) from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise DeliveryError(_unreachable(address, error)) from error
        _judge(address, answer, told, self.clock.now())

    def _answer(
        self, method: str, address: Address, body: bytes | None, headers: Mapping[str, str], deadline: float
    ) -> tuple[http.client.HTTPResponse, bytes]:
        parts, left = address.parts, _Left(self.clock, deadline)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        with closing(self._socket(parts, left)) as made:
            connection = _Connection(parts.hostname or "", _port(parts))
            connection.sock = cast("socket.socket", _Bounded(made, left))
            connection.request(method, target, body=body, headers={**_headers(parts), **headers})
            answer = connection.getresponse()
            with answer:
                return answer, _words(answer)

    def _socket(self, parts: SplitResult, left: _Left) -> socket.socket:
        made = _connected(parts.hostname or "", _port(parts), left)
        if parts.scheme != "https":
            return made
        try:
            made.settimeout(left.seconds())
            context = self.trust or ssl.create_default_context()
            return context.wrap_socket(made, server_hostname=parts.hostname)
        except BaseException:
            made.close()
            raise


def _connected(host: str, port: int, left: _Left) -> socket.socket:
    """Return a connection to the first address of the host that takes one, all of them within what time is left."""
    failure = OSError(f"{host} has no address")
    for family, kind, protocol, _, place in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        made = socket.socket(family, kind, protocol)
        try:
            made.settimeout(left.seconds())
            made.connect(place)
        except OSError as error:
            made.close()
            failure = error
        else:
            return made
    raise failure


class _Connection(http.client.HTTPConnection):
    """A connection that is given its socket, and never opens another."""

    auto_open = 0


@dataclass(frozen=True, slots=True)
class _Left:
    """How much time there is."""

    clock: Clock
    deadline: float

    def seconds(self) -> float:
        left = self.deadline - self.clock.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


class _Bounded:
    """A socket on which each step may take only what is left of the whole.

    A timeout of a socket starts anew with each byte, and a receiver that drips one now and then would never meet it.
    """

    def __init__(self, inner: socket.socket, left: _Left) -> None:
        self._inner = inner
        self._left = left

    def sendall(self, data: bytes) -> None:
        self._inner.settimeout(self._left.seconds())
        self._inner.sendall(data)

    def makefile(self, mode: str, *_buffering: int) -> IO[bytes]:
        return io.BufferedReader(_Reading(self._inner, self._left))

    def close(self) -> None:
        """Leave it open: http.client lets go of it before it has read the answer."""


class _Reading(io.RawIOBase):
    """Its reading side."""

    def __init__(self, inner: socket.socket, left: _Left) -> None:
        self._inner = inner
        self._left = left

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        self._inner.settimeout(self._left.seconds())
        return self._inner.recv_into(buffer)


# ---------------------------------------------------------------- answers


def _words(answer: http.client.HTTPResponse) -> bytes:
    """Return what the receiver says to explain itself.

    Of a success nothing is read: it was taken, and must not be sent again for a body that is slow or cut short.
    """
    if _is_success(answer.status):
        return b""
    try:
        return answer.read(LONGEST_ANSWER)
    except (OSError, http.client.HTTPException):
        # The status alone says what to do.
        return b""


def _is_success(status: int) -> bool:
    return HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES


def _judge(address: Address, answer: http.client.HTTPResponse, told: bytes, now: datetime) -> None:
    status = answer.status
    if _is_success(status):
        return
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        there = visible(_place(_split(answer.headers.get("Location", ""))))
        message = (
            f"{address} answers {status}, a redirect to {there or 'nowhere'}, which is not followed: configure that"
        )
        raise DeliveryError(message, permanent=True)
    words = visible(address.without_secrets(told.decode("utf-8", "replace")), _QUOTED)
    message = f"{address} answers {status}{f': {words}' if words else ''}"
    client = HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR and status not in _TRY_AGAIN
    raise DeliveryError(message, permanent=client, retry_after=_retry_after(answer, now))


def _retry_after(answer: http.client.HTTPResponse, now: datetime) -> timedelta | None:
    """Return how long the receiver wants quiet: it says so in seconds or as a date."""
    asked = answer.headers.get("Retry-After", "").strip()
    try:
        wanted = (
            timedelta(seconds=int(asked)) if asked.isascii() and asked.isdigit() else parsedate_to_datetime(asked) - now
        )
    except (TypeError, ValueError, OverflowError):
        return None
    return max(wanted, timedelta(0))


def _unreachable(address: Address, error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate of {address} is not to be trusted: {error.verify_message}"
    if isinstance(error, OSError) and error.strerror:
        return f"{address} cannot be reached: {error.strerror}"
    return f"{address} gave no answer that could be read: {type(error).__name__}"


# ---------------------------------------------------------------- addresses


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return SplitResult("", "", "", "", "")
    return parts


def _place(parts: SplitResult) -> str:
    if not parts.hostname:
        return ""
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}{f':{parts.port}' if parts.port else ''}"


def _port(parts: SplitResult) -> int:
    return parts.port or (443 if parts.scheme == "https" else 80)


def _headers(parts: SplitResult) -> Mapping[str, str]:
    headers = {"User-Agent": "reaperd", "Connection": "close"}
    if parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Authorization"] = f"Basic {base64.b64encode(login.encode()).decode()}"
    return headers
