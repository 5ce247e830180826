"""The lease in its long-running form: taken when it is free, renewed by a thread of its own, given back at the end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime, timedelta

from providers.base import Clock
from reaperd.errors import LedgerUnusableError
from reaperd.ledger.lease import Lease
from reaperd.ledger.ledger import Ledger
from reaperd.process import ProcessIdentity

RENEWALS_PER_TTL = 3
"""Two may fail before the lease is lost."""

LAST_WORD = timedelta(seconds=2)
"""How long a stop waits for the lease to be given back; otherwise it runs out by itself."""


def _unheard(_text: str) -> None:
    """Have nobody to tell."""


class Leadership:
    """Holds the lease for as long as this process lives and can renew it; otherwise waits for it.

    What it says may be late: the door reads the lease itself, in the transaction of each intent.
    """

    def __init__(
        self,
        open_ledger: Callable[[], Ledger],
        who: ProcessIdentity,
        *,
        ttl: timedelta,
        clock: Clock,
        warn: Callable[[str], None] = _unheard,
    ) -> None:
        """Nothing is opened before `start`. `warn` is told of errors that nobody expected."""
        self._warn = warn
        self._open = open_ledger
        self._who = who
        self._clock = clock
        self._lease: Lease | None = None
        self._until: datetime | None = None
        self._changed: Callable[[bool], None] = _ignored
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)
        self.ttl = ttl
        self.holder: ProcessIdentity | None = None
        """Who has it, when it is not ours."""

    @property
    def lease(self) -> Lease | None:
        """Return the lease; None while another process has it, it has run out, or the ledger cannot be written."""
        if self._until is None or self._clock.now() >= self._until:
            return None
        return self._lease

    def start(self, *, changed: Callable[[bool], None]) -> None:
        """Try once to take it, then go on in a thread. `changed` is told whether we lead, now and at every change."""
        self._changed = changed
        changed(self.step())
        self._thread.start()

    def stop(self) -> None:
        """Give it back, if it is ours, and end the thread."""
        self._done.set()
        if self._thread.is_alive():
            self._thread.join(timeout=LAST_WORD.total_seconds())
        else:
            self._give_back()

    def step(self) -> bool:
        """Renew the lease, or try to take it; return whether it is ours.

        The ledger is opened anew each time: one that was put in its place meanwhile is the one that the passes use.
        """
        try:
            with self._open() as ledger:
                self._take_or_renew(ledger)
        except LedgerUnusableError:
            # The pass that finds the ledger unusable says so. A lease that could not be renewed this once is ours
            # until it runs out.
            return self.lease is not None
        return self.lease is not None

    def _take_or_renew(self, ledger: Ledger) -> None:
        now = self._clock.now()
        if self._lease is not None and ledger.renew_lease(self._lease, self.ttl, now):
            self._until = now + self.ttl
            return
        self._lease, self._until = None, None
        taken = ledger.take_lease(self._who, self.ttl, now)
        if isinstance(taken, Lease):
            self._lease, self._until, self.holder = taken, now + self.ttl, None
        else:
            self.holder = taken

    def _run(self) -> None:
        led = self.lease is not None
        while not self._done.wait(self.ttl.total_seconds() / RENEWALS_PER_TTL):
            leads = self._stepped()
            if leads is not led:
                self._changed(leads)
            led = leads
        self._give_back()

    def _stepped(self) -> bool:
        """Return `step`, and False for an error nobody expected: this thread must outlive it, or nobody ever leads."""
        try:
            return self.step()
        except Exception as error:  # noqa: BLE001 - told, and tried again
            self._warn(f"{type(error).__name__}: {error}")
            return self.lease is not None

    def _give_back(self) -> None:
        lease, self._lease, self._until = self.lease, None, None
        if lease is None:
            return
        try:
            with self._open() as ledger:
                ledger.release_lease(lease, self._clock.now())
        except LedgerUnusableError:
            # It runs out by itself.
            return


def _ignored(_leads: bool) -> None:  # noqa: FBT001 - the shape of the callback
    """Nobody is told before the start."""
