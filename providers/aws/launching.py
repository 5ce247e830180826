"""The steps of one launch: look for the worker's machine, ask, ask again while the answer is lost, read it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from providers.aws.answers import Answer, answer_of
from providers.aws.capacity_errors import error_before_launch, launch_error
from providers.aws.errors import CALL_ERRORS, MALFORMED, BrokenAnswerError
from providers.aws.options import AwsOptions
from providers.aws.rows import all_rows
from providers.aws.run_request import Order, differences
from providers.aws.session import Ec2
from providers.aws.translate import MalformedAnswerError, RawInstance, Vantage, owned_instance, raw_instances
from providers.base import Clock
from providers.capacity import WorkerHandle
from providers.errors import (
    LaunchDeferredError,
    LaunchEndedError,
    LaunchError,
    LaunchMismatchError,
    UnknownLaunchError,
    UntaggedLaunchError,
)
from providers.model import OwnedInstance

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_ec2.type_defs import DescribeInstancesRequestTypeDef, FilterTypeDef, RunInstancesRequestTypeDef

_PAUSES_SECONDS = (1.0, 2.0)
"""Between attempts: with the same token it is the same machine, however often it is sent."""


@dataclass(frozen=True, slots=True)
class _Machine:
    """A machine, as it came and as we read it."""

    raw: RawInstance
    owned: OwnedInstance


class Launching:
    """One machine's, from a session whose account is proved."""

    def __init__(self, order: Order, options: AwsOptions, ec2: Ec2, asking: EC2Client, *, clock: Clock) -> None:
        """Keep what is to be launched.

        `asking` repeats nothing by itself: behind the SDK's own repetitions a lost answer would hide, and it would ask
        again where there is no capacity, because that comes as a server's error.
        """
        self._order = order
        self._options = options
        self._reading = ec2.client
        self._asking = asking
        self._clock = clock
        self._vantage = Vantage(
            provider=options.name, region=order.offer.region, keys=options.tags, account=options.account
        )

    def found(self) -> WorkerHandle | None:
        """Return the handle of the machine that the worker has; None when none is to be seen.

        Raises:
            LaunchError: if it has one that is not what was asked for, or is over; or the look failed.
        """
        try:
            machines = self._machines()
        except (*CALL_ERRORS, BrokenAnswerError) as error:
            raise error_before_launch(error, self._order.worker_id, self._order.offer, "look") from error
        return self._handle_of_one(machines) if machines else None

    def run(self, request: RunInstancesRequestTypeDef, *, until: float) -> WorkerHandle:
        """Return the handle once AWS accepted. Sends nothing again after `until`, by the monotonic clock.

        Once an answer was lost, no later refusal makes it certain that there is no machine; only seeing it does.

        Raises:
            LaunchError: one of its subclasses.
        """
        lost: UnknownLaunchError | None = None
        for pause in (*_PAUSES_SECONDS, None):
            answer = self._answer_or_error(request)
            if isinstance(answer, WorkerHandle):
                return answer
            if isinstance(answer, UnknownLaunchError):
                lost = answer
            is_worth_repeating = isinstance(answer, (UnknownLaunchError, LaunchDeferredError))
            if pause is None or not is_worth_repeating or until - self._clock.monotonic() <= pause:
                return self._seen_after(lost, answer)
            self._clock.sleep(pause)
        raise AssertionError

    def _seen_after(self, lost: UnknownLaunchError | None, last: LaunchError) -> WorkerHandle:
        """Return the handle of the machine of a launch whose answer was lost, if it is to be seen.

        Raises:
            LaunchError: in any other case.
        """
        if lost is None:
            raise self._explained(last)
        try:
            seen = self.found()
        except LaunchDeferredError:
            seen = None
        if seen is None:
            raise lost
        return seen

    def _answer_or_error(self, request: RunInstancesRequestTypeDef) -> WorkerHandle | LaunchError:
        try:
            answer = answer_of(lambda: self._asking.run_instances(**request), attempts=1)
            return self._read(answer)
        except (*CALL_ERRORS, BrokenAnswerError) as error:
            return launch_error(error, self._order.worker_id, self._order.offer)

    def _read(self, answer: Answer) -> WorkerHandle:
        """Return the handle of the machine in an answer.

        Raises:
            BrokenAnswerError: if there is not one machine of ours in it: then nobody knows what was launched.
            LaunchError: if the machine is over, or will not be seen by a reaper.
        """
        machines = self._read_machines([answer])
        if len(machines) != 1 or machines[0].owned.foreign_account:
            raise BrokenAnswerError(MALFORMED, f"asked for one machine, got {len(machines)}")
        machine = machines[0]
        if not self._is_tagged(machine.owned):
            self._require_tagged(machine.owned)
        return self._handle(machine.owned)

    def _require_tagged(self, launched: OwnedInstance) -> None:
        """Return if a look shows the tags that the answer did not: no reaper would ever see a machine without.

        Raises:
            UntaggedLaunchError: if they are not there.
            BrokenAnswerError: if that cannot be known.
            Exception: anything in CALL_ERRORS.
        """
        looked = self._described({"InstanceIds": [launched.ref.instance_id]})
        if any(self._is_tagged(machine.owned) for machine in looked):
            return
        remedy = f"aws ec2 terminate-instances --region {launched.ref.region} --instance-ids {launched.ref.instance_id}"
        raise UntaggedLaunchError(
            launched.ref, f"{self._order.place}: {launched.ref} runs without our tags, so nothing will end it: {remedy}"
        )

    def _explained(self, error: LaunchError) -> LaunchError:
        """Return the error; of a token that was used before, with what is different about the machine of then."""
        if not isinstance(error, LaunchMismatchError):
            return error
        try:
            machines = self._machines()
        except (*CALL_ERRORS, BrokenAnswerError):
            machines = []
        shown = "; ".join(self._reasons(machines)) or "in what a machine does not show: its network, user data or tags"
        return LaunchMismatchError(f"{error.message}. It differs: {shown}", error_code=error.error_code)

    def _reasons(self, machines: Iterable[_Machine]) -> list[str]:
        found = ((each.owned.ref, differences(self._order, each.raw)) for each in machines)
        return [f"{ref}: {reason}" for ref, reason in found if reason]

    def _handle_of_one(self, machines: Sequence[_Machine]) -> WorkerHandle:
        """Return the handle of the one machine that exists, if it is what was asked for."""
        existing = [each for each in machines if each.owned.state.exists]
        if not existing:
            ended = ", ".join(f"{each.owned.ref} is {each.owned.state}" for each in machines)
            msg = f"{self._order.place}: the worker id was used before, and {ended}: take a new one"
            raise LaunchEndedError(msg, error_code="ended")
        reasons = self._reasons(existing) if len(existing) == 1 else [str(each.owned.ref) for each in existing]
        if reasons:
            msg = f"{self._order.place}: the worker has a machine already, and it is not that: {'; '.join(reasons)}"
            raise LaunchMismatchError(msg, error_code="other_machine")
        return self._handle(existing[0].owned)

    def _handle(self, owned: OwnedInstance) -> WorkerHandle:
        if not owned.state.exists:
            msg = (
                f"{self._order.place}: the worker id was used before, and {owned.ref} is {owned.state}: take a new one"
            )
            raise LaunchEndedError(msg, error_code="ended")
        return WorkerHandle(
            worker_id=self._order.worker_id,
            instance_id=owned.ref.instance_id,
            offer=replace(self._order.offer, zone=owned.zone or self._order.offer.zone),
            spec=self._order.spec,
            launched_at=owned.launched_at or self._clock.now(),
        )

    def _machines(self) -> list[_Machine]:
        """Return every machine of this worker that the region shows, those that ended a while ago included."""
        keys = self._options.tags
        wanted = {keys.owner: self._options.deployment, keys.worker: self._order.worker_id}
        filters: list[FilterTypeDef] = [{"Name": f"tag:{key}", "Values": [value]} for key, value in wanted.items()]
        return [each for each in self._described({"Filters": filters}) if self._is_tagged(each.owned)]

    def _described(self, request: DescribeInstancesRequestTypeDef) -> list[_Machine]:
        def ask(token: str | None) -> Answer:
            asked: DescribeInstancesRequestTypeDef = {**request}
            if token is not None:
                asked["NextToken"] = token
            return self._reading.describe_instances(**asked)

        return self._read_machines(all_rows(ask, "Reservations"))

    def _read_machines(self, reservations: Iterable[Answer]) -> list[_Machine]:
        try:
            raws = list(raw_instances({"Reservations": list(reservations)}))
            return [_Machine(raw, owned_instance(raw, self._vantage)) for raw in raws]
        except MalformedAnswerError as error:
            raise BrokenAnswerError(MALFORMED, str(error)) from error

    def _is_tagged(self, owned: OwnedInstance) -> bool:
        return owned.owner == self._options.deployment and owned.worker_id == self._order.worker_id
