"""Persistent spot requests: what would bring a terminated machine back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from providers.aws.answers import Answer, answer_of
from providers.aws.errors import CALL_ERRORS, MALFORMED, BrokenAnswerError, error_code

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

_NO_REQUEST = "InvalidSpotInstanceRequestID.NotFound"
_ENDED = frozenset({"cancelled", "closed", "completed", "failed"})


def cancel_persistent(client: EC2Client, request_id: str, *, before: Callable[[], None]) -> bool:
    """Return once nothing of this spot request is left that would launch again: True if it had to be cancelled.

    `before` is called immediately before anything is cancelled.

    Raises:
        BrokenAnswerError: if AWS did not say so.
        Exception: anything in CALL_ERRORS.
    """
    try:
        found = answer_of(lambda: client.describe_spot_instance_requests(SpotInstanceRequestIds=[request_id]))
    except ClientError as error:
        if error_code(error) == _NO_REQUEST:
            return False
        raise
    request = _row(found, "SpotInstanceRequests", request_id)
    # Whatever is not certainly over or certainly for one launch is cancelled: cancelling ends no machine.
    if _launches_nothing(request):
        return False
    before()
    answer = answer_of(lambda: client.cancel_spot_instance_requests(SpotInstanceRequestIds=[request_id]))
    state = _row(answer, "CancelledSpotInstanceRequests", request_id).get("State")
    if state not in _ENDED:
        code = "not_cancelled"
        raise BrokenAnswerError(code, f"{request_id} is {state}")
    return True


def without_sequel(client: EC2Client, request_ids: Collection[str]) -> frozenset[str]:
    """Return those of these spot requests that certainly launch nothing again.

    None of them, where AWS does not say. Never raises for what it answers: who is not among them is asked about alone.
    """
    if not request_ids:
        return frozenset()
    try:
        found = answer_of(lambda: client.describe_spot_instance_requests(SpotInstanceRequestIds=sorted(request_ids)))
    except (*CALL_ERRORS, BrokenAnswerError):
        return frozenset()
    rows = found.get("SpotInstanceRequests")
    return frozenset(
        str(row.get("SpotInstanceRequestId"))
        for row in (rows if isinstance(rows, list) else [])
        if isinstance(row, Mapping) and _launches_nothing(row)
    )


def _launches_nothing(request: Answer) -> bool:
    return request.get("Type") == "one-time" or request.get("State") in _ENDED


def _row(answer: Answer, key: str, request_id: str) -> Answer:
    rows = answer.get(key)
    for row in rows if isinstance(rows, list) else []:
        if isinstance(row, Mapping) and row.get("SpotInstanceRequestId") == request_id:
            return row
    raise BrokenAnswerError(MALFORMED, f"{request_id} is not in {key}")
