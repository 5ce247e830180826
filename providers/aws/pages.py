"""DescribeInstances, read by us instead of by the SDK, which takes ten times as long.

Signing, retries, errors and endpoints stay the SDK's. Only the body of an answer with status 200 is taken away before
the SDK parses it, through its public event `before-parse`, and the fields that are read here are put into its result.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from providers.aws.answers import Answer, answer_of
from providers.aws.errors import BrokenAnswerError, UnreadablePageError
from providers.aws.gzipped import unpacked
from providers.aws.markup import available_parser, tree
from providers.aws.reservations import ROOT, fields_of
from providers.parsers import Parser

if TYPE_CHECKING:
    from botocore.awsrequest import AWSPreparedRequest
    from botocore.client import BaseClient
    from botocore.model import OperationModel
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_ec2.type_defs import DescribeInstancesRequestTypeDef

READ_BY = "ReaperdReadBy"
"""The key of a page that says who read it. Without it the SDK no longer lets us: then nothing is proved."""
UNMARKED = "page_not_ours"

_OPERATION = "DescribeInstances"
_OK = 200


class _Readers:
    """Two threads for the whole process, whoever asks.

    An unpacked page and its tree take tens of megabytes, and a thread keeps for itself what it once had. A page that is
    read waits for nothing, so none of them is ever held up. A process that was forked has none of its parent's threads,
    and gets its own.
    """

    def __init__(self) -> None:
        self._start()
        os.register_at_fork(after_in_child=self._start)

    def _start(self) -> None:
        self._threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="providers-pages")

    def read(self, body: bytes, coding: str | None, parser: Parser, without: Collection[str]) -> dict[str, object]:
        return self._threads.submit(_read, body, coding, parser, without).result()


_READERS = _Readers()

_WITHOUT: ContextVar[Collection[str]] = ContextVar("fields_that_nobody_will_read", default=())
"""Of the call under way: the SDK tells a handler nothing of who asked."""


class PageReader:
    """Reads the pages of a client in the SDK's stead."""

    def __init__(self, parser: Parser | None = None) -> None:
        """Read by the faster parser that is installed, or by this one."""
        self._parser = parser or available_parser()

    def attach(self, client: BaseClient) -> None:
        """Read the pages of this client from now on."""
        client.meta.events.register(f"before-send.ec2.{_OPERATION}", _ask_for_gzip)
        # Last, so that whoever looks at the headers of an answer has seen them before this refuses its body.
        client.meta.events.register_last("before-parse", self._take)

    def _take(
        self,
        *,
        operation_model: OperationModel,
        response_dict: dict[str, Any],
        customized_response_dict: dict[str, Any],
        **_: object,
    ) -> None:
        if operation_model.name != _OPERATION:
            return
        body, coding = response_dict["body"], response_dict["headers"].get("Content-Encoding")
        if response_dict["status_code"] != _OK:
            response_dict["body"] = _unpacked_or_nothing(body, coding)
            return
        response_dict["body"] = b""
        fields = _READERS.read(body, coding, self._parser, _WITHOUT.get())
        response_dict["body"] = _rest(fields.pop("RequestId", ""))
        customized_response_dict.update(fields)
        customized_response_dict[READ_BY] = self._parser


FASTEST = PageReader()


def page_of(client: EC2Client, request: DescribeInstancesRequestTypeDef, *, without: Collection[str] = ()) -> Answer:
    """Return one answer of DescribeInstances, once it is proved to be one and to be read by us.

    `without` are elements of a machine that the caller will not read.

    Raises:
        BrokenAnswerError: as answer_of, or if the SDK read it (UNMARKED).
        Exception: anything in CALL_ERRORS.
    """
    asking = _WITHOUT.set(without)
    try:
        page = answer_of(lambda: client.describe_instances(**request))
    finally:
        _WITHOUT.reset(asking)
    if READ_BY not in page:
        raise BrokenAnswerError(UNMARKED, "the SDK read it: it no longer lets us")
    return page


def _read(body: bytes, coding: str | None, parser: Parser, without: Collection[str]) -> dict[str, object]:
    return dict(fields_of(tree(unpacked(body, coding), parser), without=without))


def _ask_for_gzip(*, request: AWSPreparedRequest, **_: object) -> None:
    # After signing: what stands between us and AWS may change this header.
    request.headers["Accept-Encoding"] = "gzip"


def _unpacked_or_nothing(body: bytes, coding: str | None) -> bytes:
    """Return the body of an error. One that cannot be unpacked is none: the status tells enough to ask again by."""
    try:
        return unpacked(body, coding)
    except UnreadablePageError:
        return b""


def _rest(request_id: object) -> bytes:
    """Return what is left for the SDK to parse. Not even the container: if this were all that came, it is no page."""
    return f"<{ROOT}><requestId>{escape(str(request_id))}</requestId></{ROOT}>".encode()
