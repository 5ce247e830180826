"""Calls, and the proof that what came back is an answer of AWS."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from providers.aws.errors import MALFORMED, UNREADABLE, BrokenAnswerError, error_text

if TYPE_CHECKING:
    from mypy_boto3_sts import STSClient

Answer = Mapping[str, object]

_OK = 200


def answer_of(ask: Callable[[], Answer], *, attempts: int = 2, is_xml: bool = True) -> Answer:
    """Return what was answered, once it is proved to be an answer. A cut or garbled body is asked for again.

    A service that speaks JSON is no XML: what is not JSON the SDK cannot read, while a page of HTML looks to it like an
    empty answer in XML.

    Raises:
        BrokenAnswerError: if it is none: another status than 200, a body that cannot be read, or no XML where it is.
        Exception: anything in CALL_ERRORS.
    """
    text = ""
    for _ in range(attempts):
        try:
            answer = ask()
        except UNREADABLE as error:
            text = error_text(error)
        else:
            _require(answer, is_xml=is_xml)
            return answer
    # Raised out here, so that the SDK's error, with the whole body in its text, is not chained into a log.
    raise BrokenAnswerError(MALFORMED, text)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who STS says that we are."""

    account: str
    arn: str | None
    """None when it does not say. Shown, never judged by."""


def caller(sts: STSClient) -> Caller:
    """Return who the caller is. Needs no permission.

    Raises:
        BrokenAnswerError: if the answer names no account.
        Exception: anything in CALL_ERRORS.
    """
    answer = answer_of(sts.get_caller_identity)
    account, arn = answer.get("Account"), answer.get("Arn")
    if not isinstance(account, str) or not account:
        raise BrokenAnswerError(MALFORMED, "GetCallerIdentity named no account")
    return Caller(account, arn if isinstance(arn, str) and arn else None)


def caller_account(sts: STSClient) -> str:
    """Return the account of the caller. See caller."""
    return caller(sts).account


def _require(answer: Answer, *, is_xml: bool) -> None:
    metadata = answer.get("ResponseMetadata")
    if not isinstance(metadata, Mapping):
        raise BrokenAnswerError(MALFORMED, "no metadata")
    status = metadata.get("HTTPStatusCode")
    if status != _OK:
        code = f"http_{status}"
        raise BrokenAnswerError(code, "an answer with another status than 200")
    headers = metadata.get("HTTPHeaders")
    content_type = headers.get("content-type") if isinstance(headers, Mapping) else None
    if is_xml and content_type and "xml" not in content_type.lower():
        raise BrokenAnswerError(MALFORMED, f"content-type {content_type}")
