"""What is hung into every client: the allow-list of requests, and the comparison of the cloud's clock with ours."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from providers.aws.errors import MutatingRequestError
from providers.base import Clock

if TYPE_CHECKING:
    from botocore.client import BaseClient
    from botocore.model import OperationModel

READ_ONLY = frozenset(
    {
        "ec2:DescribeAvailabilityZones",
        "ec2:DescribeFleets",
        "ec2:DescribeInstanceStatus",
        "ec2:DescribeInstances",
        "ec2:DescribeRegions",
        "ec2:DescribeSpotFleetRequests",
        "ec2:DescribeSpotInstanceRequests",
        "sts:AssumeRole",
        "sts:GetCallerIdentity",
    }
)
TERMINATING = READ_ONLY | {"ec2:CancelSpotInstanceRequests", "ec2:TerminateInstances"}
"""All that a terminator may send: no ModifyInstanceAttribute, no tag is ever written or removed."""
QUOTING = frozenset(
    {
        "ec2:DescribeInstanceTypeOfferings",
        "ec2:DescribeInstanceTypes",
        "ec2:DescribeRegions",
        "ec2:DescribeSpotPriceHistory",
        "sts:AssumeRole",
        "sts:GetCallerIdentity",
    }
)
"""All that is needed to ask for types and prices."""
LAUNCHING = frozenset(
    {
        "ec2:DescribeImages",
        "ec2:DescribeInstances",
        "ec2:DescribeRegions",
        "ec2:DescribeSecurityGroups",
        "ec2:DescribeSubnets",
        "ec2:RunInstances",
        "sts:AssumeRole",
        "sts:GetCallerIdentity",
    }
)
"""All that a launcher may send: it ends nothing, and writes no tag but those of a launch."""
ASKING_ORGANIZATIONS = frozenset({"organizations:ListAccounts", "sts:AssumeRole"})
"""All that is needed to ask which accounts there are."""
QUESTIONS = frozenset({"ec2:CancelSpotInstanceRequests", "ec2:TerminateInstances"})
"""What an examiner may ask about: sent with DryRun, or not at all."""

_RESOLUTION = timedelta(seconds=1)
"""A Date is cut to whole seconds."""
_NO_SKEW = timedelta(0)


class AllowList:
    """Refuses every request that is not on a list, before it is signed."""

    def __init__(self, allowed: frozenset[str], questions: frozenset[str] = frozenset()) -> None:
        """Keep the requests, as `service:Operation`. `questions` may leave with DryRun only, whatever is allowed."""
        self._allowed = allowed
        self._questions = questions

    def attach(self, client: BaseClient) -> None:
        """Guard this client."""
        client.meta.events.register_first("before-call", self._check)

    def _check(self, *, model: OperationModel, params: Mapping[str, object], **_: object) -> None:
        request = f"{model.service_model.service_name}:{model.name}"
        if request in self._questions:
            _require_dry_run(request, params.get("body"))
        elif request not in self._allowed:
            msg = f"{request} is not among the requests that this session may send"
            raise MutatingRequestError(msg)


def _require_dry_run(request: str, body: object) -> None:
    """Raise MutatingRequestError unless this is a question. By the parameters as they go onto the wire."""
    if not isinstance(body, Mapping) or body.get("DryRun") != "true":
        msg = f"{request} without DryRun is not among the requests that this session may send"
        raise MutatingRequestError(msg)


class DateMeter(threading.local):
    """Measures how far the Date of each answer lies outside the time in which it was asked and received.

    Per thread, because clients are shared between threads. Each attempt is measured by itself: the time that the SDK
    waits between two attempts would otherwise hide a wrong clock.
    """

    def __init__(self) -> None:
        """Start in a thread, with nothing measured."""
        self._clock: Clock | None = None
        self._sent: datetime | None = None
        self.worst: timedelta | None = None
        """None until an answer with a date came."""

    def attach(self, client: BaseClient) -> None:
        """Measure the answers of this client."""
        client.meta.events.register("before-send", self._on_send)
        client.meta.events.register("before-parse", self._on_answer)

    def start(self, clock: Clock) -> None:
        """Measure by this clock from now on, in this thread."""
        self._clock = clock
        self._sent = None
        self.worst = None

    def _on_send(self, **_: object) -> None:
        self._sent = None if self._clock is None else self._clock.now()

    def _on_answer(self, *, response_dict: Mapping[str, Mapping[str, str]], **_: object) -> None:
        dated = _parsed(response_dict["headers"].get("Date"))
        if dated is None or self._sent is None or self._clock is None:
            return
        outside = max(self._sent - (dated + _RESOLUTION), dated - self._clock.now(), _NO_SKEW)
        self.worst = max(self.worst or _NO_SKEW, outside)


def _parsed(date: str | None) -> datetime | None:
    """Return the time of a Date header; None when there is none that can be read."""
    if not date:
        return None
    try:
        moment = parsedate_to_datetime(date)
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
