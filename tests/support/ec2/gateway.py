"""Between the wire and a cloud: the log, the faults, and how an answer travels."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from typing import Protocol

from tests.support.ec2 import rewriting
from tests.support.ec2.clock import CloudClock
from tests.support.ec2.faults import Fault, FaultBook, FaultKind, Rule
from tests.support.ec2.journal import Exchange, Journal
from tests.support.ec2.protocol import (
    HTML_TYPE,
    Answer,
    ApiError,
    ApiRequest,
    HttpRequest,
    action_of,
    content_type,
    credential_scope,
    error_answer,
    parse_form,
)

PAGE_OF_HTML = b"<html><head><title>Sign in</title></head><body><p>Please accept the terms.</p></body></html>"
LISTINGS = {
    "DescribeInstances": "reservationSet",
    "DescribeSpotInstanceRequests": "spotInstanceRequestSet",
    "DescribeSpotPriceHistory": "spotPriceHistorySet",
    "DescribeFleets": "fleetSet",
    "DescribeTags": "tagSet",
    "DescribeImages": "imagesSet",
    "DescribeSubnets": "subnetSet",
    "DescribeSecurityGroups": "securityGroupInfo",
}
Observer = Callable[[ApiRequest], None]


class Backend(Protocol):
    """A cloud behind the gateway."""

    def account_of(self, access_key: str) -> str:
        """Return whose key it is."""
        ...

    def answer(self, request: ApiRequest, rule: Rule | None) -> Answer:
        """Do what is asked. The rule is one of those that a cloud has to play itself: stale, ignored."""
        ...


class Travel(StrEnum):
    """How an answer gets to the client."""

    WHOLE = "whole"
    TRUNCATED = "truncated"
    DRIPPING = "dripping"
    HUNG = "hung"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer and its travel."""

    answer: Answer
    date: str | None = None
    """The Date header; None sends none."""
    travel: Travel = Travel.WHOLE
    drip_s: float = 0.0


class Gateway:
    """Answers requests, one at a time for the backend, any number for the waiting."""

    def __init__(self, backend: Backend, clock: CloudClock) -> None:
        self.clock = clock
        self.faults = FaultBook()
        self.journal = Journal()
        self.lock = threading.RLock()
        self.stopping = threading.Event()
        self.date_skew_s: float | None = 0.0
        """Added to the Date header of all answers; None sends no such header."""
        self.observers: list[tuple[str | None, Observer]] = []
        self._backend = backend
        self._pages: dict[str, int] = {}
        """Token -> the page it leads to."""
        self._aliases: dict[str, str | None] = {}
        """Token that we made up -> the token of the page it stands before."""
        self._last: dict[tuple[str, str], bytes] = {}
        """(account, region) -> the last page of instances."""

    def reply(self, http: HttpRequest) -> Reply | None:
        """Return the reply to a request; None while the server stops."""
        request = self._understand(http)
        exchange = self.journal.open(request)
        rule = self.faults.strike(request)
        exchange.fault = rule.fault.kind if rule else None
        for action, observer in list(self.observers):
            if action in {None, request.action}:
                observer(request)
        return self._reply(request, rule, exchange)

    def _understand(self, http: HttpRequest) -> ApiRequest:
        params = parse_form(http)
        access_key, region = credential_scope(http.headers.get("Authorization", ""))
        return ApiRequest(
            number=self.journal.number(),
            at=self.clock.now(),
            region=region,
            access_key=access_key,
            account=self._backend.account_of(access_key),
            action=action_of(http, params),
            params=params,
            page=self._pages.get(params.get("NextToken", ""), 1),
            http=http,
        )

    def _reply(self, request: ApiRequest, rule: Rule | None, exchange: Exchange) -> Reply | None:
        if rule is None:
            answer = self._apply(request, None)
            if request.action == "DescribeInstances" and answer.status == 200:
                self._last[request.account, request.region] = answer.body
            return self._send(answer, exchange, None)
        if not rule.fault.applied and self.stopping.wait(rule.fault.delay_s):
            return None
        answer = self._faulty(request, rule)
        if rule.fault.applied and self.stopping.wait(rule.fault.delay_s):
            return None
        return self._send(answer, exchange, rule.fault)

    def _send(self, answer: Answer, exchange: Exchange, fault: Fault | None) -> Reply:
        travel = _TRAVELS.get(fault.kind, Travel.WHOLE) if fault else Travel.WHOLE
        if travel not in {Travel.HUNG, Travel.DROPPED}:
            exchange.status, exchange.error_code = answer.status, answer.error_code
        own_skew = fault.date_skew_s if fault else None
        return Reply(
            answer=answer,
            date=self._date(own_skew),
            travel=travel,
            drip_s=fault.drip_s if fault else 0.0,
        )

    def _date(self, own_skew: float | None) -> str | None:
        skew = self.date_skew_s if own_skew is None else own_skew
        if skew is None:
            return None
        return (self.clock.date() + timedelta(seconds=skew)).strftime("%a, %d %b %Y %H:%M:%S GMT")

    def _apply(self, request: ApiRequest, rule: Rule | None) -> Answer:
        token = request.params.get("NextToken")
        asked = request.with_token(self._aliases[token]) if token in self._aliases else request
        with self.lock:
            answer = self._backend.answer(asked, rule)
        listed = request.action in LISTINGS and answer.status == 200
        if listed and (following := rewriting.next_token(answer.body)):
            self._pages[following] = request.page + 1
        return answer

    def _faulty(self, request: ApiRequest, rule: Rule) -> Answer:
        fault = rule.fault
        if fault.kind in _INSTEAD:
            if fault.applied or fault.kind is FaultKind.LOST_REPLY:
                self._apply(request, None)
            return self._instead(request, fault)
        return self._rewritten(request, fault, self._apply(request, rule))

    def _instead(self, request: ApiRequest, fault: Fault) -> Answer:
        match fault.kind:
            case FaultKind.HTML:
                return Answer(body=PAGE_OF_HTML, status=fault.http or 200, content_type=HTML_TYPE)
            case FaultKind.BODY:
                return Answer(
                    body=fault.body.encode(), status=fault.http or 200, content_type=content_type(request.action)
                )
            case FaultKind.EMPTY_PAGE:
                return self._empty_page(request)
            case _:
                return error_answer(request.action, ApiError(fault.message, code=fault.code, status=fault.http))

    def _empty_page(self, request: ApiRequest) -> Answer:
        alias = f"empty-{request.number}"
        before = request.params.get("NextToken")
        self._aliases[alias] = self._aliases.get(before, before) if before else None
        self._pages[alias] = request.page + 1
        container = LISTINGS.get(request.action, "reservationSet")
        return Answer(body=rewriting.empty_page(request.action, container, alias))

    def _rewritten(self, request: ApiRequest, fault: Fault, answer: Answer) -> Answer:
        body = answer.body
        if answer.status != 200:
            return answer
        match fault.kind:
            case FaultKind.MISSING_SET:
                body = rewriting.without_container(body)
            case FaultKind.MALFORMED:
                body = body[: len(body) // 2]
            case FaultKind.LOST_TOKEN:
                body = rewriting.with_token(body, None)
            case FaultKind.REPEATED_TOKEN:
                body = rewriting.with_token(body, request.params["NextToken"])
            case FaultKind.DUPLICATE:
                body = rewriting.with_reservation(body, self._page_before(request))
            case _:
                pass
        return replace(answer, body=body)

    def _page_before(self, request: ApiRequest) -> bytes | None:
        body = self._last.get((request.account, request.region)) if request.page > 1 else None
        return rewriting.last_reservation(body) if body else None


_INSTEAD = frozenset(
    {
        FaultKind.ERROR,
        FaultKind.HTML,
        FaultKind.BODY,
        FaultKind.HANG,
        FaultKind.DROP,
        FaultKind.LOST_REPLY,
        FaultKind.EMPTY_PAGE,
    }
)
_TRAVELS = {
    FaultKind.TRUNCATED: Travel.TRUNCATED,
    FaultKind.DRIPPING: Travel.DRIPPING,
    FaultKind.HANG: Travel.HUNG,
    FaultKind.DROP: Travel.DROPPED,
    FaultKind.LOST_REPLY: Travel.DROPPED,
}
