"""Asking EC2 whether it would terminate a machine. What is sent can only be a question."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from providers.aws.answers import answer_of
from providers.aws.errors import CALL_ERRORS, BrokenAnswerError, error_code, error_text, outcome_of
from providers.errors import (
    InstanceNotFoundError,
    TerminateError,
    TerminationDeniedError,
    TerminationProtectedError,
)
from providers.examination import Answer, Probe, Shortfall, Trouble
from providers.model import InstanceRef

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

_YES = "DryRunOperation"
"""EC2's way of saying: I would have done it."""

_ANSWERS: Mapping[type[TerminateError], Answer] = {
    TerminationDeniedError: Answer.DENIED,
    TerminationProtectedError: Answer.PROTECTED,
    InstanceNotFoundError: Answer.GONE,
}


_NOT_CANCELLED = "a machine with a spot request is not terminated: it could come back"
_FLEET_UNKNOWN = "the machines of such a fleet are held as managed: whether it would relaunch them is not known"
_NO_SUCH_ACTION = "InvalidAction"
"""A cloud that never heard of fleets has none."""
_NO_SUCH_REQUEST = "InvalidSpotInstanceRequestID.NotFound"


class DryRunProber:
    """Asks, always with DryRun. Its client refuses to send a request that would change anything without."""

    def __init__(self, client: EC2Client) -> None:
        """Keep a client of a session whose list of requests has TerminateInstances as a question only."""
        self._client = client

    def unheeded(self) -> Trouble | None:
        """Return why no machine may be asked about; None when the cloud was seen to heed DryRun.

        A private or simulated cloud that does not know it would take the question for the request.
        """
        try:
            answer_of(lambda: self._client.describe_instances(DryRun=True, MaxResults=5), attempts=1)
        except (*CALL_ERRORS, BrokenAnswerError) as error:
            return None if _is_yes(error) else trouble_of(error)
        return Trouble(code="dry_run_unheeded", detail="DescribeInstances was carried out in spite of DryRun")

    def ask(self, ref: InstanceRef) -> Probe:
        """Ask whether this machine could be terminated."""
        try:
            answer_of(lambda: self._client.terminate_instances(InstanceIds=[ref.instance_id], DryRun=True), attempts=1)
        except (*CALL_ERRORS, BrokenAnswerError) as error:
            if _is_yes(error):
                return Probe(ref=ref, answer=Answer.ALLOWED)
            return Probe(ref=ref, answer=_ANSWERS.get(outcome_of(error), Answer.UNCLEAR), trouble=trouble_of(error))
        return Probe(ref=ref, answer=Answer.TAKEN)

    def shortfalls(self, spot_requests: Iterable[str]) -> Iterator[Shortfall]:
        """Yield what else a termination needs and would not get: the second look, and the end of spot requests.

        To be asked only of a cloud that heeds DryRun.
        """
        client = self._client
        looks = (
            ("ec2:DescribeSpotInstanceRequests", _NOT_CANCELLED, client.describe_spot_instance_requests, True),
            ("ec2:DescribeFleets", _FLEET_UNKNOWN, client.describe_fleets, False),
            ("ec2:DescribeSpotFleetRequests", _FLEET_UNKNOWN, client.describe_spot_fleet_requests, False),
        )
        for permission, without, ask, is_vital in looks:
            trouble = _trouble_with(partial(ask, DryRun=True))
            if trouble is not None and (is_vital or trouble.code != _NO_SUCH_ACTION):
                yield Shortfall(permission=permission, without=without, trouble=trouble, is_vital=is_vital)
        for request_id in spot_requests:
            cancel = partial(client.cancel_spot_instance_requests, SpotInstanceRequestIds=[request_id], DryRun=True)
            trouble = _trouble_with(cancel)
            if trouble is not None and trouble.code != _NO_SUCH_REQUEST:
                yield Shortfall(permission="ec2:CancelSpotInstanceRequests", without=_NOT_CANCELLED, trouble=trouble)
                return


def _trouble_with(ask: Callable[[], Mapping[str, object]]) -> Trouble | None:
    """Return what the cloud says instead of yes. One that answers a look in spite of DryRun has said yes, too."""
    try:
        answer_of(ask, attempts=1)
    except (*CALL_ERRORS, BrokenAnswerError) as error:
        return None if _is_yes(error) else trouble_of(error)
    return None


def _is_yes(error: Exception) -> bool:
    return isinstance(error, ClientError) and error_code(error) == _YES


def trouble_of(error: Exception) -> Trouble:
    """Return what a call raised, in our words."""
    return Trouble(code=error_code(error), detail=error_text(error))
