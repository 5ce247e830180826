"""The only object of this package that can send a mutating request."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from providers.allowance import Allowance, Rate, require_batch
from providers.aws.account import WRONG_ACCOUNT, enabled_regions
from providers.aws.answers import caller_account
from providers.aws.errors import CALL_ERRORS, BrokenAnswerError
from providers.aws.options import AwsOptions
from providers.aws.session import AwsSession, AwsSessions
from providers.aws.termination import Termination, nothing_sent
from providers.aws.terminations import Terminations
from providers.base import BatchPermission, Clock, Permission
from providers.errors import CredentialsExpiredError, ProviderSetupError, TerminateError, TerminateRejectedError
from providers.model import UNPROVEN, InstanceRef, OwnedInstance, Scope

ALLOWANCE = Allowance(together=100, requests=Rate(100, 5), machines=Rate(1000, 20))
"""Of TerminateInstances, an account and region: what AWS documents for requests and for the instances in them.

A request may name a thousand. A hundred is what AWS advises, keeps the look at them short, and spoils fewer.
"""

SESSION_LIFE_SECONDS = 60.0
"""How long a session is used. Its credentials are frozen: what was proved of them stays true, they only grow old."""


class AwsTerminator:
    """Terminates machines of one account, alone or some of a region together. Safe to use from several threads."""

    def __init__(
        self,
        options: AwsOptions,
        sessions: AwsSessions,
        *,
        clock: Clock,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        """Keep the options; nothing is sent. No request is repeated once it is `stopping`.

        Raises:
            ProviderSetupError: if no account is pinned.
        """
        if options.account is None:
            msg = f"provider {options.name!r}: account: must be set, or nothing can be terminated"
            raise ProviderSetupError(msg)
        self._options = options
        self._clock = clock
        self._stopping = stopping
        self._sessions = sessions
        self._lock = threading.Lock()
        self._proved: _Proved | None = None

    @property
    def name(self) -> str:
        """Return the routing key, the same as the lister's."""
        return self._options.name

    def terminate(
        self, ref: InstanceRef, *, seen: OwnedInstance | None = None, permitted: Permission | None = None
    ) -> None:
        """Ask for the end of this machine after a second look at it; return once AWS said that it is ending.

        `permitted` is asked before the cancellation of a spot request, and again before the terminate.

        Before the request, an error that has no class of its own is a TerminateRejectedError with the code
        `relook_failed:CODE` (or `unproven:CODE`, `wrong_account`, `unknown_provider`, `unknown_region`). After it,
        whatever is not a certain refusal is an UnknownResultError.

        Raises:
            TerminateError: one of its subclasses. See the port.
        """
        started = self._clock.monotonic()
        try:
            self._termination(ref, self._covering(ref), started).run(seen, permitted)
        except CredentialsExpiredError:
            self._forget()
            raise

    def allowance(self, scope: Scope) -> Allowance | None:
        """Return what AWS documents of TerminateInstances: 100 ids are the batch that it recommends."""
        covered = self._options.regions is None or scope.region in self._options.regions
        return ALLOWANCE if scope.provider == self.name and scope.region and covered else None

    def terminate_many(
        self, seen: Sequence[OwnedInstance], *, permitted: BatchPermission
    ) -> Mapping[InstanceRef, TerminateError | None]:
        """Ask for the end of these machines after a second look at all of them; return what came of each. See the port.

        The errors are those of `terminate`, machine by machine.
        """
        require_batch(seen, ALLOWANCE.together)
        if not seen:
            return {}
        started = self._clock.monotonic()
        try:
            answers = self._terminations(seen, started).run(permitted)
        except TerminateError as error:
            # Before anything was sent, and about all of them: the account, the region, the credentials.
            answers = {each.ref: error.about(each.ref) for each in seen}
        if any(isinstance(error, CredentialsExpiredError) for error in answers.values()):
            self._forget()
        return answers

    def _covering(self, ref: InstanceRef) -> _Proved:
        """Return a proved session that covers the place of this machine."""
        if ref.provider != self.name:
            raise TerminateRejectedError(ref, f"this is {self.name}", error_code="unknown_provider")
        proved = self._session(ref)
        if ref.region not in proved.regions:
            detail = f"covers {', '.join(sorted(proved.regions))}"
            raise TerminateRejectedError(ref, detail, error_code="unknown_region")
        return proved

    def _session(self, ref: InstanceRef) -> _Proved:
        """Return a session that STS said is the pinned account's."""
        with self._lock:
            now = self._clock.monotonic()
            if self._proved is None or now - self._proved.since > SESSION_LIFE_SECONDS:
                self._proved = None
                self._proved = self._prove(ref, now)
            return self._proved

    def _prove(self, ref: InstanceRef, now: float) -> _Proved:
        self._sessions.forget()
        try:
            session = self._sessions.open()
            account = caller_account(session.sts())
        except (*CALL_ERRORS, BrokenAnswerError) as error:
            raise nothing_sent(ref, error, UNPROVEN) from error
        if account != self._options.account:
            detail = f"the credentials belong to {account}, not to {self._options.account}"
            raise TerminateRejectedError(ref, detail, error_code=WRONG_ACCOUNT)
        return _Proved(session, self._regions(ref, session), now)

    def _regions(self, ref: InstanceRef, session: AwsSession) -> frozenset[str]:
        if self._options.regions is not None:
            return frozenset(self._options.regions)
        try:
            return enabled_regions(session.ec2(session.home_region).client)
        except (*CALL_ERRORS, BrokenAnswerError) as error:
            raise nothing_sent(ref, error) from error

    def _termination(self, ref: InstanceRef, proved: _Proved, started: float) -> Termination:
        try:
            return Termination(
                ref, self._options, proved.session, clock=self._clock, started=started, stopping=self._stopping
            )
        except CALL_ERRORS as error:
            raise nothing_sent(ref, error) from error

    def _terminations(self, seen: Sequence[OwnedInstance], started: float) -> Terminations:
        ref = seen[0].ref
        proved = self._covering(ref)
        try:
            return Terminations(
                seen, self._options, proved.session, clock=self._clock, started=started, stopping=self._stopping
            )
        except CALL_ERRORS as error:
            raise nothing_sent(ref, error) from error

    def _forget(self) -> None:
        with self._lock:
            self._proved = None


@dataclass(frozen=True, slots=True)
class _Proved:
    """A session of the pinned account, and the regions that it may terminate in."""

    session: AwsSession
    regions: frozenset[str]
    since: float
