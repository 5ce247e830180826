"""An answer that is read for no longer than it may take, and to no larger size than it may have.

The SDK's read timeout counts between two bytes: an answer that drips is waited for as long as it drips, with its
thread, its socket and its memory. Here the whole of it has a time of its own, and a size.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from botocore.awsrequest import AWSResponse
from botocore.exceptions import ConnectionClosedError, HTTPClientError, ReadTimeoutError
from urllib3.exceptions import HTTPError, ProtocolError
from urllib3.exceptions import ReadTimeoutError as SilentError

from providers.aws.errors import LargeAnswerError, SlowAnswerError
from providers.aws.gzipped import MAX_BYTES
from providers.base import Clock

if TYPE_CHECKING:
    from botocore.awsrequest import AWSPreparedRequest
    from botocore.client import BaseClient

_PIECE = 256 * 1024


def bound_answers(client: BaseClient, clock: Clock, timeout: timedelta, *, limit: int = MAX_BYTES) -> None:
    """Let each attempt of this client, from its sending to the last byte of its answer, take no longer than that.

    A SlowAnswerError is what an answer ends as that does, and a LargeAnswerError what has more bytes than the limit
    on the wire; the SDK does not ask again.
    """
    # There is no public place for it: an event could only send in the SDK's stead, and every other listener of that
    # event, a simulator for one, would then no longer be asked first.
    endpoint: Any = client._endpoint  # type: ignore[attr-defined]  # noqa: SLF001
    endpoint.http_session = _Bounded(endpoint.http_session, clock, timeout, limit)


class _Bounded:
    """An HTTP session of the SDK that reads bodies in pieces."""

    def __init__(self, inner: Any, clock: Clock, timeout: timedelta, limit: int) -> None:  # noqa: ANN401 - botocore has no types
        self._inner = inner
        self._clock = clock
        self._timeout = timeout
        self._limit = limit

    def send(self, request: AWSPreparedRequest) -> AWSResponse:
        over_at = self._clock.monotonic() + self._timeout.total_seconds()
        # Else the SDK reads it all before it returns.
        request.stream_output = True
        answer = self._inner.send(request)
        try:
            body = b"".join(self._pieces(answer.raw, over_at))
        except SilentError as error:
            raise ReadTimeoutError(endpoint_url=request.url, error=error) from error
        except ProtocolError as error:
            raise ConnectionClosedError(endpoint_url=request.url, error=error, request=request) from error
        except (HTTPError, OSError) as error:
            raise HTTPClientError(error=error) from error
        return AWSResponse(answer.url, answer.status_code, answer.headers, _Read(body))

    def close(self) -> None:
        self._inner.close()

    def _pieces(self, raw: Any, over_at: float) -> Iterator[bytes]:  # noqa: ANN401
        size = 0
        # Not `read`, which waits until the whole piece is there.
        while piece := raw.read1(_PIECE):
            yield piece
            size += len(piece)
            if size > self._limit:
                raw.close()
                raise LargeAnswerError(limit=self._limit)
            if self._clock.monotonic() >= over_at:
                # Or the connection would be kept, to drip on.
                raw.close()
                raise SlowAnswerError(seconds=round(self._timeout.total_seconds()))
        raw.release_conn()


class _Read:
    """A body that is there already."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def stream(self) -> Iterator[bytes]:
        yield self._body
