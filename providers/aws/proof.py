"""Sessions whose caller was proved to be the pinned account, for whoever shops and launches."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from providers.aws.account import WRONG_ACCOUNT, enabled_regions
from providers.aws.answers import caller_account
from providers.aws.errors import CALL_ERRORS, BrokenAnswerError
from providers.aws.options import AwsOptions
from providers.aws.session import AwsSession, AwsSessions
from providers.base import Clock

SESSION_LIFE_SECONDS = 60.0
"""How long a session is used, as the terminator's is."""


@dataclass(frozen=True, slots=True)
class Proved:
    """A session, the account that it is of, and the regions that it may be used in."""

    session: AwsSession
    account: str
    regions: frozenset[str]
    since: float


class ProvedSessions:
    """Opens a session a minute at most, and proves each. Safe to use from several threads."""

    def __init__(self, options: AwsOptions, sessions: AwsSessions, *, clock: Clock) -> None:
        """Keep the options; nothing is sent."""
        self._options = options
        self._sessions = sessions
        self._clock = clock
        self._lock = threading.Lock()
        self._proved: Proved | None = None

    def current(self) -> Proved:
        """Return a session that STS said is the pinned account's, or anybody's when none is pinned.

        Raises:
            BrokenAnswerError: if it is another account's (`wrong_account`), or the answer proves nothing.
            Exception: anything in CALL_ERRORS.
        """
        with self._lock:
            now = self._clock.monotonic()
            if self._proved is None or now - self._proved.since > SESSION_LIFE_SECONDS:
                self._proved = None
                self._proved = self._prove(now)
            return self._proved

    def forget(self) -> None:
        """Prove a new session next time, with credentials that are read anew."""
        with self._lock:
            self._proved = None
            self._sessions.forget()

    def _prove(self, now: float) -> Proved:
        try:
            session = self._sessions.open()
            return Proved(session, self._account(session), self._regions(session), now)
        except (*CALL_ERRORS, BrokenAnswerError):
            self._sessions.forget()
            raise

    def _account(self, session: AwsSession) -> str:
        account = caller_account(session.sts())
        if self._options.account not in (None, account):
            detail = f"the credentials belong to {account}, not to {self._options.account}"
            raise BrokenAnswerError(WRONG_ACCOUNT, detail)
        return account

    def _regions(self, session: AwsSession) -> frozenset[str]:
        if self._options.regions is not None:
            return frozenset(self._options.regions)
        return enabled_regions(session.ec2(session.home_region).client)
