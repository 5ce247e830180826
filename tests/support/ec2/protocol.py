"""The Query protocol that boto3 speaks to EC2 and STS: a form in, XML out."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from urllib.parse import parse_qsl, urlencode
from xml.sax.saxutils import escape

EC2_NAMESPACE = "http://ec2.amazonaws.com/doc/2016-11-15/"
STS_NAMESPACE = "https://sts.amazonaws.com/doc/2011-06-15/"
REQUEST_ID = "8f7724cf-496f-496e-8fe3-0123456789ab"
XML_TYPE = "text/xml;charset=UTF-8"
HTML_TYPE = "text/html; charset=utf-8"

JSON_TYPE = "application/x-amz-json-1.1"

ORGANIZATIONS_ACTIONS = frozenset({"ListAccounts"})
"""They are asked and answered in JSON."""
STS_ACTIONS = frozenset({"GetCallerIdentity", "AssumeRole", "GetSessionToken", "AssumeRoleWithWebIdentity"})

_CREDENTIAL_SCOPE = re.compile(r"Credential=([^/,]+)/\d{8}/([a-z0-9-]+)/([a-z0-9-]+)/")
_READING_VERBS = ("Describe", "Get", "List", "AssumeRole")
_STATUS_OF_CODE = {
    "AccessDenied": 403,
    "AuthFailure": 401,
    "DryRunOperation": 412,
    "ExpiredToken": 403,
    "InsufficientInstanceCapacity": 500,
    "InternalError": 500,
    "InternalFailure": 500,
    "OptInRequired": 401,
    "RequestLimitExceeded": 503,
    "ServiceUnavailable": 503,
    "Throttling": 400,
    "Unavailable": 503,
    "UnauthorizedOperation": 403,
}


class ApiError(Exception):
    """The cloud answers with an error document."""

    def __init__(self, message: str, *, code: str, status: int | None = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message or f"The test cloud answers {code}."
        self.status = status or _STATUS_OF_CODE.get(code, 400)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """What came over the wire."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    """Looked up without regard to case."""
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRequest:
    """One call as it came in."""

    number: int
    """Counts from 1 over all requests of the server."""
    at: datetime
    """On the cloud's clock."""
    region: str
    access_key: str
    account: str
    """Whose credentials they are; decided by the access key."""
    action: str
    params: Mapping[str, str]
    page: int = 1
    """Of a listing, from 1; the page that a token leads to."""
    http: HttpRequest = field(repr=False)

    @property
    def dry_run(self) -> bool:
        """Whether EC2 is only asked if it would."""
        return self.params.get("DryRun", "").lower() == "true"

    @property
    def mutating(self) -> bool:
        """Whether the action changes the cloud; a DryRun counts as one, `dry_run` tells."""
        return bool(self.action) and not self.action.startswith(_READING_VERBS)

    def listed(self, prefix: str) -> list[str]:
        """Return the values of Prefix.1, Prefix.2 and so on."""
        values: list[str] = []
        while (value := self.params.get(f"{prefix}.{len(values) + 1}")) is not None:
            values.append(value)
        return values

    def filters(self) -> list[tuple[str, list[str]]]:
        """Return the names and values of Filter.N."""
        found: list[tuple[str, list[str]]] = []
        while name := self.params.get(f"Filter.{len(found) + 1}.Name"):
            found.append((name, self.listed(f"Filter.{len(found) + 1}.Value")))
        return found

    def names(self, resource_id: str) -> bool:
        """Whether the id stands anywhere in the request."""
        return resource_id in self.params.values()

    def with_token(self, token: str | None) -> ApiRequest:
        """Return the same request for another page."""
        params = {name: value for name, value in self.params.items() if name != "NextToken"}
        return replace(self, params=params if token is None else params | {"NextToken": token})

    def with_param(self, name: str, value: str) -> ApiRequest:
        """Return the same request with another value."""
        return replace(self, params=dict(self.params) | {name: value})

    def form(self) -> bytes:
        """Return the body that says the same; other protocols than Query keep theirs."""
        return urlencode(self.params).encode() if self.params else self.http.body


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What goes back."""

    body: bytes
    status: int = 200
    content_type: str = XML_TYPE
    headers: Mapping[str, str] = field(default_factory=dict)
    """Others than those of length, type and date."""
    error_code: str | None = None


def credential_scope(authorization: str) -> tuple[str, str]:
    """Return access key and region of an Authorization header; unsigned requests are for us-east-1."""
    found = _CREDENTIAL_SCOPE.search(authorization)
    return (found[1], found[2]) if found else ("", "us-east-1")


def parse_form(http: HttpRequest) -> dict[str, str]:
    """Return the parameters of a Query request; none of one that speaks JSON."""
    if "json" in http.headers.get("Content-Type", ""):
        return {}
    return dict(parse_qsl(http.body.decode(errors="replace") or http.query, keep_blank_values=True))


def action_of(http: HttpRequest, params: Mapping[str, str]) -> str:
    """Return what is to be done, in Query's or JSON's way of saying it; empty when it is no API call."""
    return params.get("Action") or http.headers.get("X-Amz-Target", "").rpartition(".")[2]


def content_type(action: str) -> str:
    """Return what the service of the action calls its answers."""
    return JSON_TYPE if action in ORGANIZATIONS_ACTIONS else XML_TYPE


def envelope(action: str, content: str) -> Answer:
    """Wrap the content as the service of the action does."""
    if action in ORGANIZATIONS_ACTIONS:
        return Answer(body=content.encode(), content_type=JSON_TYPE)
    if action in STS_ACTIONS:
        text = (
            f'<{action}Response xmlns="{STS_NAMESPACE}"><{action}Result>{content}</{action}Result>'
            f"<ResponseMetadata><RequestId>{REQUEST_ID}</RequestId></ResponseMetadata></{action}Response>"
        )
        return Answer(body=text.encode())
    text = (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<{action}Response xmlns="{EC2_NAMESPACE}">'
        f"<requestId>{REQUEST_ID}</requestId>{content}</{action}Response>"
    )
    return Answer(body=text.encode())


def error_answer(action: str, error: ApiError) -> Answer:
    """Render an error as the service of the action does."""
    if action in ORGANIZATIONS_ACTIONS:
        said = json.dumps({"__type": error.code, "message": error.message})
        return Answer(body=said.encode(), status=400, content_type=JSON_TYPE, error_code=error.code)
    what = f"<Code>{escape(error.code)}</Code><Message>{escape(error.message)}</Message>"
    if action in STS_ACTIONS:
        text = (
            f'<ErrorResponse xmlns="{STS_NAMESPACE}"><Error><Type>Sender</Type>{what}</Error>'
            f"<RequestId>{REQUEST_ID}</RequestId></ErrorResponse>"
        )
    else:
        text = (
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            f"<Response><Errors><Error>{what}</Error></Errors><RequestID>{REQUEST_ID}</RequestID></Response>"
        )
    return Answer(body=text.encode(), status=error.status, error_code=error.code)
