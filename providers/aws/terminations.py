"""The steps of many terminations in one request: look again at all, ask, understand the answer machine by machine.

What is out of the ordinary is handed back, to go alone: a persistent spot request, another zone than the first one's,
an answer or a refusal that does not say which machine it is about. In one zone AWS ends all that a request names, or
none; all the same, whatever is not a plain yes is followed by a look before anything is said of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from providers.aws.answers import Answer, answer_of
from providers.aws.errors import (
    CALL_ERRORS,
    BrokenAnswerError,
    error_code,
    error_text,
    is_throttle,
    named_in,
    outcome_of,
    outcome_of_look,
)
from providers.aws.fleets import harmless_fleets
from providers.aws.options import AwsOptions
from providers.aws.region import shows_managed
from providers.aws.session import AwsSession
from providers.aws.spot import without_sequel
from providers.aws.termination import ENDING, PAUSES_SECONDS, RELOOK_FAILED, nothing_sent, state_after
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
from providers.base import BatchPermission, Clock
from providers.errors import (
    CredentialsExpiredError,
    GoesAloneError,
    InstanceChangedError,
    InstanceNotFoundError,
    InvalidInstanceIdError,
    SpoiledBatchError,
    TerminateError,
    TerminateRejectedError,
    TerminationWithdrawnError,
    ThrottledError,
    UnknownResultError,
)
from providers.model import InstanceRef, OwnedInstance

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import DescribeInstancesRequestTypeDef

Answers = dict[InstanceRef, TerminateError | None]

UNCONFIRMED = "unconfirmed"
"""AWS accepted, and does not say that the machine is ending."""

_NO_SUCH = (InstanceNotFoundError, InvalidInstanceIdError)


class Terminations:
    """Those of some machines of one region, from a session whose account is proved."""

    def __init__(
        self,
        seen: Sequence[OwnedInstance],
        options: AwsOptions,
        session: AwsSession,
        *,
        clock: Clock,
        started: float,
        stopping: Callable[[], bool],
    ) -> None:
        """Keep what is to be ended, at least one; `started` is when it was asked for, by the monotonic clock."""
        region = seen[0].ref.region
        self._options = options
        self._vantage = Vantage(provider=options.name, region=region, keys=options.tags, account=options.account)
        self._reading = session.ec2(region)
        # Without the SDK's own repetitions, which would hide a lost answer behind a later refusal.
        self._asking = session.ec2_asking_once(region).client
        self._clock = clock
        self._started = self._looked_at = started
        self._stopping = stopping
        self._open = {instance.ref: instance for instance in seen}
        """What has no answer yet, as the plan saw it."""
        self._answers: Answers = {}
        self._doubts: dict[InstanceRef, UnknownResultError] = {}
        """What was asked for, and nobody knows whether it was accepted. No later refusal makes that certain."""
        self._released: frozenset[str] = frozenset()
        """Fleets that are known to launch nothing again."""

    def run(self, permitted: BatchPermission) -> Answers:
        """Return an answer for every machine. See the port.

        A throttle and a lost answer are repeated as for one machine, each time after a new look and with new leave.
        """
        for pause in (*PAUSES_SECONDS, None):
            going = self._with_leave(self._fit(), permitted)
            again = self._ask(going) if going else None
            if again is None:
                break
            if pause is None or self._left() <= pause or self._stopping():
                self._give_up(again)
                break
            self._clock.sleep(pause)
        return self._answers

    # ------------------------------------------------------------ look

    def _fit(self) -> list[InstanceRef]:
        """Look again; return those that may be asked for, in one zone. The others have their answer, or go alone."""
        fit = [now for ref, now in self._look_again().items() if self._is_fit(ref, now)]
        zone = fit[0].zone if fit else None
        ordinary = without_sequel(self._reading.client, {now.spot_request_id for now in fit if now.spot_request_id})
        for now in fit:
            if now.zone is None or now.zone != zone:
                self._settle(now.ref, GoesAloneError(now.ref, f"it is in {now.zone}, not in {zone}"))
            elif now.spot_request_id is not None and now.spot_request_id not in ordinary:
                self._settle(now.ref, GoesAloneError(now.ref, f"{now.spot_request_id} may launch it again"))
        return [now.ref for now in fit if now.ref in self._open]

    def _is_fit(self, ref: InstanceRef, now: OwnedInstance) -> bool:
        if ref in self._doubts and now.state in ENDING:
            # It was asked for, and it is ending: that answer got lost on the way.
            self._settle(ref, None)
        elif now.state.is_gone:
            self._settle(ref, InstanceNotFoundError(ref, "it is terminated"))
        elif (reason := changed(now, deployment=self._options.deployment, seen=self._open[ref])) is not None:
            self._settle(ref, InstanceChangedError(ref, reason))
        return ref in self._open

    def _look_again(self) -> dict[InstanceRef, OwnedInstance]:
        """Return what is open as it is now. What cannot be seen has its answer: nothing was sent for it."""
        while self._open:
            asked = {ref.instance_id: ref for ref in self._open}
            self._looked_at = self._clock.monotonic()
            try:
                return self._read(self._describe(list(asked)), asked)
            except MalformedAnswerError as error:
                self._settle_all([*self._open], GoesAloneError, str(error))
            except (*CALL_ERRORS, BrokenAnswerError) as error:
                self._not_seen(asked, error)
        return {}

    def _describe(self, instance_ids: list[str]) -> Answer:
        request: DescribeInstancesRequestTypeDef = {"InstanceIds": instance_ids}
        if shows_managed(self._reading):
            request["IncludeManagedResources"] = True
        return answer_of(lambda: self._reading.client.describe_instances(**request))

    def _read(self, answer: Answer, asked: Mapping[str, InstanceRef]) -> dict[InstanceRef, OwnedInstance]:
        """Return the machines that were asked for; the answer must hold each of them, once, and nothing else."""
        found = list(raw_instances(answer))
        if sorted(raw.instance_id for raw in found) != sorted(asked) or next_token(answer) is not None:
            msg = f"asked for {len(asked)} machines, got {len(found)}, and not the same"
            raise MalformedAnswerError(msg)
        machines = [owned_instance(raw, self._vantage) for raw in found]
        fleets = {fleet for machine in machines if (fleet := managing_fleet(machine)) is not None}
        if fleets - self._released:
            self._released |= harmless_fleets(self._reading.client, fleets - self._released)
        released = {machine.ref: machine for machine in release_fleets(machines, self._released)}
        # In the order in which they were given: the oldest decides which zone goes.
        return {ref: released[ref] for ref in asked.values()}

    def _not_seen(self, asked: Mapping[str, InstanceRef], error: Exception) -> None:
        """Answer for those that a failed look is about: the ones that it names, or all of them."""
        if not issubclass(outcome_of_look(error), _NO_SUCH):
            for ref in asked.values():
                self._settle(ref, nothing_sent(ref, error))
            return
        named = named_in(error, asked)
        for instance_id in named:
            self._settle(asked[instance_id], nothing_sent(asked[instance_id], error))
        if not named:
            self._settle_all(asked.values(), GoesAloneError, error_text(error), error_code(error))

    # ------------------------------------------------------------ ask

    def _with_leave(self, fit: list[InstanceRef], permitted: BatchPermission) -> list[InstanceRef]:
        """Return those that may be named now: the look at them is fresh, before their leave is asked for and after."""
        if self._are_too_old(fit):
            return []
        # The last thing before the request: nothing that takes time may come between them.
        granted = frozenset(permitted(tuple(fit))) if fit else frozenset()
        refused = [ref for ref in fit if ref not in granted]
        self._settle_all(refused, TerminationWithdrawnError, "it is not to be ended any more")
        going = [ref for ref in fit if ref in granted]
        return [] if self._are_too_old(going) else going

    def _are_too_old(self, refs: list[InstanceRef]) -> bool:
        """Say whether what was seen of these can no longer be relied on; then they have their answer."""
        old = self._clock.monotonic() - self._looked_at >= self._options.terminate_timeout.total_seconds()
        if old:
            detail = f"the second look and the leave took longer than {self._options.terminate_timeout}"
            self._settle_all(refs, TerminateRejectedError, detail, f"{RELOOK_FAILED}:deadline")
        return old

    def _ask(self, going: list[InstanceRef]) -> Exception | None:
        """Send the request. Return what makes it worth repeating; None: each of them has its answer."""
        ids = [ref.instance_id for ref in going]
        try:
            answer = answer_of(lambda: self._asking.terminate_instances(InstanceIds=ids), attempts=1)
        except (*CALL_ERRORS, BrokenAnswerError) as error:
            return self._not_accepted(going, error)
        for ref in going:
            state = state_after(answer, ref.instance_id)
            if state in ENDING:
                self._settle(ref, None)
            else:
                self._doubt(ref, f"AWS accepted, and says that it is {state}", UNCONFIRMED)
        return BrokenAnswerError(UNCONFIRMED) if self._open else None

    def _not_accepted(self, going: list[InstanceRef], error: Exception) -> Exception | None:
        kind, text, code = outcome_of(error), error_text(error), error_code(error)
        if kind is ThrottledError:
            return error
        if kind is UnknownResultError:
            for ref in going:
                self._doubt(ref, text, code)
            return error
        if kind is CredentialsExpiredError or len(going) == 1:
            self._settle_all(going, kind, text, code)
        else:
            self._refused(going, kind, error)
        return None

    def _refused(self, going: list[InstanceRef], kind: type[TerminateError], error: Exception) -> None:
        """Find out who was refused: what the error names, unless a new look shows that it is ending all the same."""
        text, code = error_text(error), error_code(error)
        named = named_in(error, [ref.instance_id for ref in going])
        if issubclass(kind, _NO_SUCH):
            self._settle_all([ref for ref in going if ref.instance_id in named], kind, text, code)
        certain = [ref for ref in self._open if ref not in self._doubts]
        for ref in certain:
            # Until it was seen: nothing but a look shows that a refusal was one for all of them.
            self._doubt(ref, f"refused, and not seen since: {text}", code)
        for ref, now in self._look_again().items():
            if now.state in ENDING:
                self._settle(ref, None)
                continue
            if ref in certain:
                del self._doubts[ref]
            if ref.instance_id in named:
                self._settle(ref, kind(ref, text, error_code=code))
            else:
                self._settle(ref, (SpoiledBatchError if named else GoesAloneError)(ref, text, error_code=code))

    def _give_up(self, error: Exception) -> None:
        """Answer for what is open: nothing is repeated any more."""
        if is_throttle(error):
            certain = [ref for ref in self._open if ref not in self._doubts]
            self._settle_all(certain, ThrottledError, error_text(error), error_code(error))
        for ref, now in self._look_again().items():
            self._settle(ref, None if now.state in ENDING else self._doubts[ref])

    # ------------------------------------------------------------ answers

    def _doubt(self, ref: InstanceRef, detail: str, code: str) -> None:
        self._doubts[ref] = UnknownResultError(ref, detail, error_code=code)

    def _settle_all(
        self, refs: Iterable[InstanceRef], kind: type[TerminateError], detail: str, code: str | None = None
    ) -> None:
        for ref in refs:
            self._settle(ref, kind(ref, detail, error_code=code))

    def _settle(self, ref: InstanceRef, error: TerminateError | None) -> None:
        del self._open[ref]
        self._answers[ref] = None if error is None else self._doubts.get(ref, error)

    def _left(self) -> float:
        return self._started + self._options.terminate_timeout.total_seconds() - self._clock.monotonic()
