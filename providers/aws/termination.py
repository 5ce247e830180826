"""The steps of one termination: look again, cancel what would relaunch, ask, understand the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from providers.aws.answers import Answer, answer_of
from providers.aws.errors import (
    CALL_ERRORS,
    MALFORMED,
    BrokenAnswerError,
    error_code,
    error_text,
    outcome_of,
    outcome_of_look,
)
from providers.aws.fleets import harmless_fleets
from providers.aws.options import AwsOptions
from providers.aws.region import shows_managed
from providers.aws.session import AwsSession
from providers.aws.spot import cancel_persistent
from providers.aws.translate import (
    MalformedAnswerError,
    Vantage,
    changed,
    managing_fleet,
    next_token,
    owned_instance,
    raw_instances,
    release_fleets,
)
from providers.base import Clock, Permission
from providers.errors import (
    InstanceChangedError,
    InstanceNotFoundError,
    SpotRequestNotCancelledError,
    TerminateError,
    TerminateRejectedError,
    TerminationWithdrawnError,
    ThrottledError,
    UnknownResultError,
)
from providers.model import InstanceRef, OwnedInstance

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import DescribeInstancesRequestTypeDef

RELOOK_FAILED = "relook_failed"

ENDING = frozenset({"shutting-down", "terminated"})
PAUSES_SECONDS = (1.0, 2.0)
"""Between attempts of the one request that is worth repeating: it ends the same machine, however often it is sent."""


class Termination:
    """One machine's, from a session whose account is proved."""

    def __init__(
        self,
        ref: InstanceRef,
        options: AwsOptions,
        session: AwsSession,
        *,
        clock: Clock,
        started: float,
        stopping: Callable[[], bool],
    ) -> None:
        """Keep what is to be ended; `started` is when it was asked for, by the monotonic clock."""
        self._ref = ref
        self._options = options
        self._reading = session.ec2(ref.region)
        # Without the SDK's own repetitions, which would hide a lost answer behind a later refusal.
        self._asking = session.ec2_asking_once(ref.region).client
        self._clock = clock
        self._started = started
        self._stopping = stopping

    def run(self, seen: OwnedInstance | None, permitted: Permission | None = None) -> None:
        """Return once the machine is ending. See the port for `permitted`.

        Raises:
            TerminateError: one of its subclasses.
        """
        now = self._look_again()
        if now.state.is_gone:
            raise InstanceNotFoundError(self._ref, "it is terminated")
        reason = changed(now, deployment=self._options.deployment, seen=seen)
        if reason is not None:
            raise InstanceChangedError(self._ref, reason)
        self._require_in_time()
        ask = _asking(self._ref, permitted)
        if now.spot_request_id is not None and self._cancel(now.spot_request_id, ask):
            ask = _asking(self._ref, permitted, "; its spot request is cancelled already")
        self._ask_until_known(ask)

    def _look_again(self) -> OwnedInstance:
        request: DescribeInstancesRequestTypeDef = {"InstanceIds": [self._ref.instance_id]}
        if shows_managed(self._reading):
            request["IncludeManagedResources"] = True
        try:
            return self._only(answer_of(lambda: self._reading.client.describe_instances(**request)))
        except MalformedAnswerError as error:
            raise nothing_sent(self._ref, BrokenAnswerError(MALFORMED, str(error))) from error
        except (*CALL_ERRORS, BrokenAnswerError) as error:
            raise nothing_sent(self._ref, error) from error

    def _only(self, answer: Answer) -> OwnedInstance:
        """Return the machine that was asked for; the answer must hold it and nothing else."""
        options = self._options
        found = list(raw_instances(answer))
        if [raw.instance_id for raw in found] != [self._ref.instance_id] or next_token(answer) is not None:
            msg = f"asked for one machine, got {[raw.instance_id for raw in found]}"
            raise MalformedAnswerError(msg)
        vantage = Vantage(provider=options.name, region=self._ref.region, keys=options.tags, account=options.account)
        instance = owned_instance(found[0], vantage)
        fleet = managing_fleet(instance)
        if fleet is None:
            return instance
        return release_fleets([instance], harmless_fleets(self._reading.client, [fleet]))[0]

    def _cancel(self, request_id: str, ask: Callable[[], None]) -> bool:
        try:
            # Whoever needs the machine after all needs its spot request too.
            return cancel_persistent(self._reading.client, request_id, before=ask)
        except (*CALL_ERRORS, BrokenAnswerError) as error:
            raise SpotRequestNotCancelledError(self._ref, error_text(error), error_code=error_code(error)) from error

    def _ask_until_known(self, ask: Callable[[], None]) -> None:
        """Send the request, again after a throttle or a lost answer, as long as the second look is fresh.

        Not again once the process is to end.
        Once an answer was lost, no later refusal makes it certain that nothing was accepted.
        """
        self._require_in_time()
        lost: UnknownResultError | None = None
        for pause in (*PAUSES_SECONDS, None):
            error = self._error_of_asking(ask)
            if error is None:
                return
            if isinstance(error, UnknownResultError):
                lost = error
            is_worth_repeating = isinstance(error, (UnknownResultError, ThrottledError))
            if pause is None or not is_worth_repeating or self._left() <= pause or self._stopping():
                raise lost or error
            self._clock.sleep(pause)

    def _error_of_asking(self, ask: Callable[[], None]) -> TerminateError | None:
        try:
            # The last thing before the request: nothing that takes time may come between them.
            ask()
            self._require_in_time()
            self._ask()
        except TerminateError as error:
            return error
        return None

    def _ask(self) -> None:
        try:
            answer = answer_of(
                lambda: self._asking.terminate_instances(InstanceIds=[self._ref.instance_id]), attempts=1
            )
        except (*CALL_ERRORS, BrokenAnswerError) as error:
            raise outcome_of(error)(self._ref, error_text(error), error_code=error_code(error)) from error
        state = state_after(answer, self._ref.instance_id)
        if state not in ENDING:
            detail = f"AWS accepted, and says that it is {state}"
            raise UnknownResultError(self._ref, detail, error_code="unconfirmed")

    def _require_in_time(self) -> None:
        if self._left() <= 0:
            detail = f"the second look and the leave took longer than {self._options.terminate_timeout}"
            raise TerminateRejectedError(self._ref, detail, error_code=f"{RELOOK_FAILED}:deadline")

    def _left(self) -> float:
        return self._started + self._options.terminate_timeout.total_seconds() - self._clock.monotonic()


def _asking(ref: InstanceRef, permitted: Permission | None, besides: str = "") -> Callable[[], None]:
    """Return what raises TerminationWithdrawnError unless the machine may still be ended."""

    def ask() -> None:
        if permitted is not None and not permitted():
            raise TerminationWithdrawnError(ref, f"it is not to be ended any more{besides}")

    return ask


def nothing_sent(ref: InstanceRef, error: Exception, stage: str = RELOOK_FAILED) -> TerminateError:
    """Return what an error before the request is to the caller."""
    kind = outcome_of_look(error)
    code = error_code(error)
    return kind(ref, error_text(error), error_code=f"{stage}:{code}" if kind is TerminateRejectedError else code)


def state_after(answer: Answer, instance_id: str) -> object:
    """Return the state that a TerminateInstances says the machine is in now; None when it does not say."""
    rows = answer.get("TerminatingInstances")
    for row in rows if isinstance(rows, list) else []:
        if isinstance(row, Mapping) and row.get("InstanceId") == instance_id:
            state = row.get("CurrentState")
            return state.get("Name") if isinstance(state, Mapping) else None
    return None
