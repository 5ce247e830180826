"""Pages and tokens."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.support.ec2.protocol import ApiError, ApiRequest
from tests.support.ec2.rendering import leaf

_OPTIONS = ("MaxResults", "NextToken", "DryRun")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page of rows and where the next one begins."""

    rows: list[Any]
    token: str | None

    def next_token(self) -> str:
        """Render the token."""
        return leaf("nextToken", self.token)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """How a listing is cut."""

    matches: Callable[[Any], bool]
    position: Callable[[Any], int]
    """Of a row; rising, and the same as long as the row exists."""
    at_most: int = 1000
    smallest: int = 5
    plan: Sequence[int] = ()
    """Lengths of the first pages; the pages after them are as long as they may be."""
    before_filter: bool = False


def cut(request: ApiRequest, rows: list[Any], how: Cut) -> Page:
    """Return the page that the request is for."""
    after, number = _start(request)
    size = min(_size(request, how), how.at_most)
    if number < len(how.plan):
        size = how.plan[number]
    rest = (row for row in rows if how.position(row) > after)
    if how.before_filter:
        taken, last = _take(rest, size, how, after)
        taken = [row for row in taken if how.matches(row)]
    else:
        taken, last = _take((row for row in rest if how.matches(row)), size, how, after)
    token = None if last is None else _token(request, last, number + 1)
    return Page(rows=taken, token=token)


def _take(rows: Iterator[Any], size: int, how: Cut, after: int) -> tuple[list[Any], int | None]:
    """Return so many rows, and the position of the last one if there are more."""
    taken: list[Any] = []
    for row in rows:
        if len(taken) == size:
            return taken, how.position(taken[-1]) if taken else after
        taken.append(row)
    return taken, None


def _size(request: ApiRequest, how: Cut) -> int:
    text = request.params.get("MaxResults")
    if text is None:
        return how.at_most
    if not text.isdecimal() or not how.smallest <= int(text) <= 1000:
        message = f"Value ( {text} ) for parameter maxResults is invalid. Expecting a value greater than 5."
        raise ApiError(message, code="InvalidParameterValue")
    return int(text)


def _start(request: ApiRequest) -> tuple[int, int]:
    """Return the position after which to go on, and the number of the page from 0."""
    token = request.params.get("NextToken")
    if not token:
        return -1, 0
    try:
        digest, after, number = json.loads(base64.urlsafe_b64decode(token))
    except (binascii.Error, UnicodeDecodeError, ValueError, TypeError):
        digest, after, number = None, 0, 0
    if digest != _digest(request):
        message = "The token is not valid for this request"
        raise ApiError(message, code="InvalidNextToken")
    return int(after), int(number)


def _token(request: ApiRequest, position: int, number: int) -> str:
    return base64.urlsafe_b64encode(json.dumps([_digest(request), position, number]).encode()).decode()


def _digest(request: ApiRequest) -> str:
    """A token belongs to one question of one account in one region."""
    asked = sorted((k, v) for k, v in request.params.items() if k not in _OPTIONS)
    return hashlib.sha256(repr((request.account, request.region, asked)).encode()).hexdigest()[:16]
