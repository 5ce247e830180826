"""What AWS and its SDK say, and what that means in our words. Tables and pure functions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from http.client import HTTPException

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    MetadataRetrievalError,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
    SSOError,
    TokenRetrievalError,
)
from botocore.parsers import ResponseParserError
from urllib3.exceptions import HTTPError

from providers.errors import (
    CredentialsExpiredError,
    InstanceNotFoundError,
    InvalidInstanceIdError,
    ProviderError,
    TerminateError,
    TerminateRejectedError,
    TerminationDeniedError,
    TerminationProtectedError,
    ThrottledError,
    UnknownResultError,
)

CALL_ERRORS = (
    BotoCoreError,
    ClientError,
    HTTPException,
    HTTPError,
    OSError,
    # What botocore's parser raises on well-formed XML that is not an answer: a launch time that is no time, an <Error>
    # without children, an error page nested a thousand deep. Let through, they would end the pass instead of the scope.
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)
"""All that a call through the SDK was seen to raise, or may. BotoCoreError is no ClientError, nor its parent."""

MALFORMED = "malformed_answer"
DEADLINE = "deadline"
"""Nothing is wrong but the time that it took."""
UNREADABLE = (ResponseParserError,)
"""A cut or garbled body. The SDK does not retry it."""

MAX_TEXT = 300
"""The text of a ResponseParserError holds the whole body: eleven megabytes of it, for one page."""
_MAX_CODE = 80
_WORD = re.compile(r"[\w-]+", re.ASCII)

_THROTTLES = frozenset(
    {
        "BandwidthLimitExceeded",
        "EC2ThrottledException",
        "LimitExceededException",
        "PriorRequestNotComplete",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "SlowDown",
        "TooManyRequestsException",
        "TransactionInProgressException",
        "http_429",
    }
)

_REFUSALS: Mapping[str, type[TerminateError]] = {
    "InvalidInstanceID.NotFound": InstanceNotFoundError,
    "InvalidInstanceID.Malformed": InvalidInstanceIdError,
    "InvalidInstanceId": InvalidInstanceIdError,
    "OperationNotPermitted": TerminationProtectedError,
    "UnauthorizedOperation": TerminationDeniedError,
    "AccessDenied": TerminationDeniedError,
    "AccessDeniedException": TerminationDeniedError,
    "AuthFailure": CredentialsExpiredError,
    "ExpiredToken": CredentialsExpiredError,
    "ExpiredTokenException": CredentialsExpiredError,
    "IncompleteSignature": CredentialsExpiredError,
    "InvalidAccessKeyId": CredentialsExpiredError,
    "InvalidClientTokenId": CredentialsExpiredError,
    "InvalidSignatureException": CredentialsExpiredError,
    "MissingAuthenticationToken": CredentialsExpiredError,
    "RequestExpired": CredentialsExpiredError,
    "SignatureDoesNotMatch": CredentialsExpiredError,
    "UnrecognizedClientException": CredentialsExpiredError,
}

_NO_CREDENTIALS = (
    NoCredentialsError,
    PartialCredentialsError,
    CredentialRetrievalError,
    MetadataRetrievalError,
    TokenRetrievalError,
    SSOError,
    ProfileNotFound,
)
"""Raised before anything is sent."""

_BAD_REQUEST, _REQUEST_TIMEOUT, _SERVER_ERROR = 400, 408, 500


class MutatingRequestError(ProviderError):
    """A request outside the allow-list of its session was about to be sent, and was not. Always a defect of ours."""


class SlowAnswerError(BotoCoreError):
    """An answer came, byte by byte, for longer than a whole one may take. The SDK raises it as it is."""

    fmt = "the answer was not there whole within {seconds} s"


class LargeAnswerError(BotoCoreError):
    """An answer that is larger than any may be. The SDK raises it as it is."""

    fmt = "the answer has more than {limit} bytes"


class UnreadablePageError(ResponseParserError):
    """A page of DescribeInstances that our own reader could not read. Its text holds nothing of the page."""


class BrokenAnswerError(Exception):
    """A call gave no answer that can be relied on. Stays inside this package."""

    def __init__(self, code: str, detail: str = "") -> None:
        """Keep AWS's code, or ours in snake_case."""
        self.code = code
        self.detail = detail
        super().__init__(f"{code}: {detail}")


def error_code(error: BaseException) -> str:
    """Return AWS's own code, or ours in snake_case when AWS gave none."""
    match error:
        case BrokenAnswerError(code=code):
            return code
        case SlowAnswerError():
            return DEADLINE
        case ClientError():
            return _aws_code(error)
        case ResponseParserError():
            return MALFORMED
        case BotoCoreError() | HTTPException() | HTTPError() | OSError():
            return _snake_case(type(error).__name__)
        case _:
            return MALFORMED


def error_text(error: BaseException) -> str:
    """Return what the error says, cut to a length that a log can bear."""
    return error.detail[:MAX_TEXT] if isinstance(error, BrokenAnswerError) else str(error)[:MAX_TEXT]


def named_in(error: BaseException, instance_ids: Iterable[str]) -> frozenset[str]:
    """Return which of these ids the error speaks of, each as a whole word; AWS has no other place for them."""
    if not isinstance(error, ClientError):
        return frozenset()
    message: object = error.response.get("Error", {}).get("Message")
    return frozenset(instance_ids) & frozenset(_WORD.findall(message if isinstance(message, str) else ""))


def is_credential_trouble(error: BaseException) -> bool:
    """Return whether new credentials may help."""
    return isinstance(error, _NO_CREDENTIALS) or _REFUSALS.get(error_code(error)) is CredentialsExpiredError


def is_throttle(error: BaseException) -> bool:
    """Return whether AWS said slow down; it says so before it does anything."""
    code = error_code(error)
    return isinstance(error, ClientError) and (code in _THROTTLES or code.startswith("Throttl"))


def is_refusal(error: BaseException) -> bool:
    """Return whether AWS certainly refused. An error of the server's, or of the way there, is none."""
    return isinstance(error, ClientError) and _refused(http_status(error))


def outcome_of(error: BaseException) -> type[TerminateError]:
    """Return what an error means for a TerminateInstances that was sent.

    Unknown unless AWS certainly refused. A connection that could not be made is unknown, too: whether a proxy or a
    kept-alive connection took the request along is more than the error tells.
    """
    if is_throttle(error):
        return ThrottledError
    if is_credential_trouble(error):
        return CredentialsExpiredError
    if not is_refusal(error):
        return UnknownResultError
    return _REFUSALS.get(error_code(error), TerminateRejectedError)


def outcome_of_look(error: BaseException) -> type[TerminateError]:
    """Return what an error means for a look before anything was sent."""
    if is_throttle(error):
        return ThrottledError
    if is_credential_trouble(error):
        return CredentialsExpiredError
    named = _REFUSALS.get(error_code(error), TerminateRejectedError)
    return named if issubclass(named, (InstanceNotFoundError, InvalidInstanceIdError)) else TerminateRejectedError


def http_status(error: ClientError) -> int:
    """Return the status of the answer, 0 when not known."""
    status: object = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    return status if isinstance(status, int) else 0


def _refused(status: int) -> bool:
    return _BAD_REQUEST <= status < _SERVER_ERROR and status != _REQUEST_TIMEOUT


def _aws_code(error: ClientError) -> str:
    code: object = error.response.get("Error", {}).get("Code")
    if isinstance(code, str) and code and code != "Unknown" and not code.isdigit():
        return code[:_MAX_CODE]
    return f"http_{http_status(error)}"


def _snake_case(name: str) -> str:
    stem = name.removesuffix("Error") or name
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", stem).lower()
