"""Asking a running daemon over HTTP, as `reaperd status` and `reaperd health` do."""

from __future__ import annotations

import base64
import http.client
import ipaddress
import ssl
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from reaperd.errors import DaemonUnreachableError

TIMEOUT_SECONDS = 5.0
_SCHEMES = frozenset({"http", "https"})
_LONGEST = 4_000_000
"""Bytes of an answer that are read at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Where the daemon listens, and how to be let in."""

    url: str
    """`http://127.0.0.1:9745`, or https."""
    user: str = ""
    password: str = ""
    ca_file: Path | None = None
    """Whom to believe; None: the system's authorities, and on this machine itself anybody."""

    def ask(self, path: str) -> tuple[int, bytes]:
        """Return status and body of the answer to a GET.

        Raises:
            DaemonUnreachableError: if there is no answer.
        """
        headers = {"Accept": "application/json"}
        if self.user:
            told = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
            headers["Authorization"] = f"Basic {told}"
        try:
            place = urlsplit(self.url)
            if place.scheme not in _SCHEMES or not place.hostname:
                raise DaemonUnreachableError(self.url, "an address is written like http://127.0.0.1:9745")
            connection = self._connection(place.scheme, place.hostname, place.port)
            try:
                connection.request("GET", place.path.rstrip("/") + path, headers=headers)
                answer = connection.getresponse()
                return answer.status, answer.read(_LONGEST)
            finally:
                connection.close()
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise DaemonUnreachableError(self.url, str(error) or type(error).__name__) from error

    def _connection(self, scheme: str, host: str, port: int | None) -> http.client.HTTPConnection:
        if scheme != "https":
            return http.client.HTTPConnection(host, port, timeout=TIMEOUT_SECONDS)
        return http.client.HTTPSConnection(host, port, timeout=TIMEOUT_SECONDS, context=self._trust(host))

    def _trust(self, host: str) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=None if self.ca_file is None else str(self.ca_file))
        if self.ca_file is None and _is_here(host):
            # A certificate is for the name that others use. What answers on the loopback is on this machine.
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


def url_of(host: str, port: int, *, tls: bool) -> str:
    """Return the address under which what listens there is reached from this machine."""
    reached = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - read, not bound
    shown = f"[{reached}]" if ":" in reached else reached
    return f"{'https' if tls else 'http'}://{shown}:{port}"


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
