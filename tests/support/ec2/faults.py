"""What can go wrong, where and how often."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from types import TracebackType
from typing import Any, Self

from tests.support.ec2.protocol import ApiRequest


class FaultKind(StrEnum):
    """The shape of a fault."""

    ERROR = "error"
    """An error document with `code` and `http`."""
    HTML = "html"
    """A web page with status `http`, 200 unless given: a captive portal, a proxy."""
    BODY = "body"
    """`body` as it is, with status `http`, 200 unless given."""
    MISSING_SET = "missing_set"
    """The answer lacks its container, such as reservationSet."""
    MALFORMED = "malformed"
    """Half of the document, delivered whole."""
    TRUNCATED = "truncated"
    """The whole length announced, half of it sent, connection closed."""
    DRIPPING = "dripping"
    """A byte every `drip_s` seconds."""
    HANG = "hang"
    """No answer until the client or the server gives up."""
    DROP = "drop"
    """Connection closed without an answer."""
    LOST_REPLY = "lost_reply"
    """The request is applied, the connection closed without an answer."""
    EMPTY_PAGE = "empty_page"
    """A page with nothing on it and a token that leads to the page that was asked for."""
    LOST_TOKEN = "lost_token"
    """The page does not say that there are more."""
    REPEATED_TOKEN = "repeated_token"
    """The page leads to itself. Strikes from page 2 on; page 1 has no token to repeat."""
    DUPLICATE = "duplicate"
    """The page repeats a reservation: the last one of the page before, or its own first."""
    STALE = "stale"
    """Answered from the state of the cloud when the fault was added."""
    IGNORED = "ignored"
    """A terminate is accepted and nothing happens."""
    SLOW = "slow"
    """The right answer, after `delay_s` or with a `date_skew_s`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A rule: which requests, which of them, and what happens to those. None matches anything."""

    kind: FaultKind
    region: str | None = None
    action: str | None = None
    account: str | None = None
    page: int | None = None
    """Of a listing, from 1."""
    instance_id: str | None = None
    """Any id that the request names."""
    mutating: bool | None = None
    params: Mapping[str, str] = field(default_factory=dict)
    """Parameter -> pattern with * and ?, of the request as it is on the wire."""
    after: int = 0
    """So many matching requests go well first."""
    times: int | None = None
    """How often it strikes; None never ends."""
    code: str = "InternalError"
    message: str = ""
    http: int | None = None
    body: str = ""
    applied: bool = False
    """Whether an error, hang or drop comes after the cloud did what was asked."""
    delay_s: float = 0.0
    """Real seconds before it is answered."""
    drip_s: float = 0.05
    date_skew_s: float | None = None
    """Added to the Date header of this answer."""

    def matches(self, request: ApiRequest) -> bool:
        """Whether the rule is about this request."""
        return (
            self.region in {None, request.region}
            and self.action in {None, request.action}
            and self.account in {None, request.account}
            and self.page in {None, request.page}
            and self.mutating in {None, request.mutating}
            and (self.instance_id is None or request.names(self.instance_id))
            and all(fnmatchcase(request.params.get(name, ""), wanted) for name, wanted in self.params.items())
            and (self.kind is not FaultKind.REPEATED_TOKEN or "NextToken" in request.params)
        )


def make_fault(kind: FaultKind | str | None = None, *, call: int | None = None, **fields: Any) -> Fault:
    """Build a fault; `code` alone means an error, `call=n` the n-th matching request only."""
    if kind is None:
        kind = FaultKind.ERROR if "code" in fields else FaultKind.SLOW
    if call is not None:
        fields |= {"after": call - 1, "times": 1}
    return Fault(kind=FaultKind(kind), **fields)


class Rule:
    """A fault in force. Leaving its `with` block ends it."""

    def __init__(self, book: FaultBook, number: int, fault: Fault, snapshot: Any = None) -> None:
        self.number = number
        self.fault = fault
        self.snapshot = snapshot
        self.seen = 0
        """Requests that matched."""
        self.strikes = 0
        """Requests that it hit."""
        self._book = book

    def remove(self) -> None:
        """End it; twice is harmless."""
        self._book.remove(self.number)

    def due(self) -> bool:
        """Whether the request that was just counted is one that it hits."""
        return self.seen > self.fault.after and (self.fault.times is None or self.strikes < self.fault.times)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.remove()


class FaultBook:
    """The rules in force, first come first served. Safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rules: dict[int, Rule] = {}
        self._added = 0

    def add(self, fault: Fault, snapshot: Any = None) -> Rule:
        """Put a rule in force."""
        with self._lock:
            self._added += 1
            rule = self._rules[self._added] = Rule(self, self._added, fault, snapshot)
        return rule

    def remove(self, number: int) -> None:
        """End a rule."""
        with self._lock:
            self._rules.pop(number, None)

    def clear(self) -> None:
        """End all rules."""
        with self._lock:
            self._rules.clear()

    def strike(self, request: ApiRequest) -> Rule | None:
        """Return the rule that hits this request. All rules that match count it."""
        with self._lock:
            matching = [rule for rule in self._rules.values() if rule.fault.matches(request)]
            for rule in matching:
                rule.seen += 1
            hit = next((rule for rule in matching if rule.due()), None)
            if hit:
                hit.strikes += 1
            return hit
