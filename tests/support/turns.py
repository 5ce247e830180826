"""Lets a daemon's passes and sweeps happen one at a time, so that a test can look in between."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.daemon import Daemon
from tests.support.ec2 import ApiRequest
from tests.support.processes import PATIENCE
from tests.support.site import EAST, Site

_MANY = 1000
"""More than a daemon that is about to be killed will ask for."""


class Turns:
    """Holds the first page of every listing of one region until the test gives it its turn."""

    def __init__(self) -> None:
        self._passes, self._sweeps = threading.Semaphore(0), threading.Semaphore(0)

    def reconcile(self, running: Daemon) -> None:
        """Let one pass happen, and wait for its end."""
        ended = len(running.passes())
        self._passes.release()
        running.until(lambda: len(running.passes()) > ended)

    def audit(self, running: Daemon) -> None:
        """Let one sweep happen, and wait for its end."""
        ended = len(running.events("sweep_finished"))
        self._sweeps.release()
        running.until(lambda: len(running.events("sweep_finished")) > ended)

    def hold(self, request: ApiRequest) -> None:
        """Hold a request that begins a listing; in the thread of the server that answers it."""
        if request.region != EAST or "MaxResults" not in request.params or "NextToken" in request.params:
            return
        # A pass asks for what carries our tag, a sweep for all that there is.
        turn = self._passes if request.filters() else self._sweeps
        turn.acquire(timeout=PATIENCE)

    def end(self) -> None:
        """Hold nothing any more."""
        self._passes.release(_MANY)
        self._sweeps.release(_MANY)


@contextmanager
def turns(site: Site) -> Iterator[Turns]:
    """Hold the daemons of a site from their first listing on, until the block ends."""
    made = Turns()
    site.cloud.on("DescribeInstances", made.hold)
    try:
        yield made
    finally:
        made.end()
