"""What can go wrong with an answer on purpose."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any, Protocol

from bench.rendering import error_answer

KINDS = frozenset(
    {"throttled", "failed", "html", "denied", "dropped", "hung", "cut", "garbled", "emptied", "same_token", "no_token"}
)
"""`cut` ends below its length, `garbled` is half a document, `emptied` is a page without its machines."""

_ROWS = re.compile(rb"<reservationSet>.*</reservationSet>", re.DOTALL)
_TOKEN = re.compile(rb"<nextToken>.*?</nextToken>")

_INSTEAD = {
    "throttled": (503, error_answer("RequestLimitExceeded", "Request limit exceeded.")),
    "failed": (500, error_answer("InternalError", "An internal error has occurred")),
    "denied": (403, error_answer("UnauthorizedOperation", "You are not authorized to perform this operation.")),
    "html": (503, b"<html><body>Service Unavailable</body></html>"),
}
_CHANGED: Mapping[str, Callable[[bytes, bytes], bytes]] = {
    "garbled": lambda body, _token: body[: len(body) // 2],
    "emptied": lambda body, _token: _ROWS.sub(b"<reservationSet/>", body),
    "same_token": lambda body, token: _TOKEN.sub(b"<nextToken>" + token + b"</nextToken>", body),
    "no_token": lambda body, _token: _TOKEN.sub(b"", body),
}


class Spoilt(Protocol):
    """A reply that can still be changed."""

    status: HTTPStatus
    body: bytes
    key: tuple[object, ...] | None
    fault: str | None


class Faults:
    """The rules in force, each with what it strikes: everything that it does not name."""

    def __init__(self, rules: Iterable[dict[str, Any]] = ()) -> None:
        """Keep them. Raises ValueError."""
        self._rules = [dict(rule) for rule in rules]
        for rule in self._rules:
            if rule.get("kind") not in KINDS or rule.keys() - {"kind", "region", "action", "page", "times"}:
                msg = f"no such fault: {rule}"
                raise ValueError(msg)

    def strike(self, region: str, action: str, page: int) -> str | None:
        """Return what befalls this answer, if anything does, and count it."""
        asked = {"region": region, "action": action, "page": page}
        for rule in self._rules:
            if all(rule.get(name, value) == value for name, value in asked.items()) and rule.get("times", 1) > 0:
                if "times" in rule:
                    rule["times"] -= 1
                return str(rule["kind"])
        return None

    def spoil(self, reply: Spoilt, token: str) -> None:
        """Change a reply as its fault wants. What concerns the connection is left to whoever sends it."""
        reply.key = None
        fault = reply.fault or ""
        if fault in _INSTEAD:
            status, reply.body = _INSTEAD[fault]
            reply.status = HTTPStatus(status)
        elif fault in _CHANGED:
            reply.body = _CHANGED[fault](reply.body, token.encode())
