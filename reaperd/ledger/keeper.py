"""Keeping the lease while a pass runs: a thread renews it, on a connection of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from types import TracebackType
from typing import Self

from providers.base import Clock
from reaperd.errors import LedgerUnusableError
from reaperd.ledger.lease import Lease
from reaperd.ledger.ledger import Ledger

_RENEWALS_PER_TTL = 3


class LeaseKeeper:
    """Renews a lease until it is left, or lost. A process that is frozen does not renew, and so loses it."""

    def __init__(self, open_ledger: Callable[[], Ledger], lease: Lease, ttl: timedelta, clock: Clock) -> None:
        """Nothing starts before the `with`."""
        self._open = open_ledger
        self._lease = lease
        self._ttl = ttl
        self._clock = clock
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            with self._open() as ledger:
                while not self._done.wait(self._ttl.total_seconds() / _RENEWALS_PER_TTL):
                    if not ledger.renew_lease(self._lease, self._ttl, self._clock.now()):
                        return
        except LedgerUnusableError:
            # Not renewed is lost: the door reads the lease in the transaction of its intent, and stays shut.
            return
