"""What is answered to which path."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from types import MappingProxyType

from reaperd.http.desk import Desk, Probe
from reaperd.http.landing import landing_page
from reaperd.report.visible import visible

WITHOUT_AUTH = frozenset({"/healthz", "/readyz"})
"""A kubelet or a load balancer has no password."""

SECURITY_HEADERS: Mapping[str, str] = MappingProxyType(
    {
        "Cache-Control": "no-store",
        "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
    }
)

_PLAIN = "text/plain; charset=utf-8"
_HTML = "text/html; charset=utf-8"
_NONE: Mapping[str, str] = MappingProxyType({})

_NOT_FOUND = """\
<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>reaperd: not found</title></head>
<body><p>There is nothing here. <a href="/">What there is</a></p></body>
</html>
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One response, but for what is the same in all of them."""

    status: HTTPStatus = HTTPStatus.OK
    content_type: str = _PLAIN
    body: bytes
    headers: Mapping[str, str] = field(default_factory=lambda: _NONE)


def answer_to(path: str, accept: str, desk: Desk) -> Answer:
    """Return what the desk says to a path."""
    match path:
        case "/metrics":
            body, content_type = desk.metrics(accept)
            return Answer(content_type=content_type, body=body)
        case "/healthz":
            return _probed(desk.health())
        case "/readyz":
            return _probed(desk.readiness())
        case "/api/v1/status":
            return Answer(content_type="application/json", body=_json(desk.status()))
        case "/":
            return Answer(content_type=_HTML, body=landing_page(desk.status()).encode())
        case _:
            return Answer(status=HTTPStatus.NOT_FOUND, content_type=_HTML, body=_NOT_FOUND.encode())


def in_words(status: HTTPStatus, text: str = "", headers: Mapping[str, str] = _NONE) -> Answer:
    """Return one line about what went wrong. It repeats nothing that the client sent."""
    return Answer(status=status, body=f"{text or status.phrase.lower()}\n".encode(), headers=headers)


def encoded(answer: Answer, headers: Mapping[str, str], *, body: bool, close: bool, date: str) -> bytes:
    """Return the response as it goes over the wire."""
    told = {
        "Date": date,
        "Content-Type": answer.content_type,
        "Content-Length": str(len(answer.body)),
        **SECURITY_HEADERS,
        **headers,
        **answer.headers,
        **({"Connection": "close"} if close else {}),
    }
    lines = [f"HTTP/1.1 {answer.status.value} {answer.status.phrase}", *(f"{name}: {told[name]}" for name in told)]
    head = "\r\n".join(lines) + "\r\n\r\n"
    return head.encode("latin-1") + (answer.body if body else b"")


def _probed(probe: Probe) -> Answer:
    status = HTTPStatus.OK if probe.ok else HTTPStatus.SERVICE_UNAVAILABLE
    return Answer(status=status, body=f"{visible(probe.text)}\n".encode())


def _json(status: Mapping[str, object]) -> bytes:
    return (json.dumps(status, indent=2, default=_plain) + "\n").encode()


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, Mapping):
        return dict(value)
    return str(value)
