"""Deliveries of a command that ends: what waits is brought under a lease of its own, for so long and no longer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

from alerts.errors import ChannelSetupError, DeliveryError
from alerts.lifecycle import level_of
from alerts.model import Level
from alerts.trial import trial_level, trial_notice
from providers.base import Clock
from reaperd.clock import SystemClock
from reaperd.config import Settings
from reaperd.core.model import PassOutcome, PassReport
from reaperd.delivery.line import AnyLine, LevelLine, Line
from reaperd.delivery.office import HELD_FOR
from reaperd.delivery.pinger import pinged
from reaperd.delivery.postman import Counting, Post, Postman, held, sent
from reaperd.errors import LedgerUnusableError
from reaperd.ledger.alarms import Announced
from reaperd.ledger.keeper import LeaseKeeper
from reaperd.ledger.lease import Lease
from reaperd.ledger.ledger import Ledger
from reaperd.passes.aside import Aside
from reaperd.process import ProcessIdentity, current
from reaperd.report.logs import Logger
from reaperd.report.series import Delivery
from reaperd.wiring.alerting import build_lines, build_ping
from reaperd.wiring.passes import ledger_of

AFTER_A_PASS = timedelta(seconds=10)
"""How long `once` goes on for its alerts; what is not taken by then is tried by the next process."""


class _Uncounted(Counting):
    """Counts nothing: nobody scrapes a command that ends."""

    def alerted(self, channel: str, outcome: Delivery) -> None:
        """Forget it."""


@dataclass(slots=True)
class Errands:
    """What a command that ends does for its channels."""

    settings: Settings
    clock: SystemClock
    log: Logger
    """Where it is told what became of messages."""
    lines: tuple[AnyLine, ...]
    _announced: list[Announced] = field(default_factory=list)

    def announced(self, told: Announced) -> None:
        """Note what a pass told through the ledger."""
        self._announced.append(told)

    def after(self, report: PassReport, stopping: Callable[[], bool]) -> None:
        """Tell people of a pass, for ten seconds at most. Whatever goes wrong is logged and changes nothing."""
        calls: list[Aside[object]] = []
        if report.outcome is PassOutcome.COMPLETE and (ping := build_ping(self.settings, self.clock)) is not None:
            calls.append(Aside(partial(self._pinged, ping)))
        if self._announced and self.lines:
            calls.append(Aside(partial(self._after, stopping)))
        run_beside(calls, self.clock, AFTER_A_PASS, stopping)

    def _pinged(self, ping: Callable[[], None]) -> None:
        if trouble := pinged(ping):
            self.log.warning("ping_failed", detail=trouble)

    def _after(self, stopping: Callable[[], bool]) -> None:
        try:
            self.bring(AFTER_A_PASS, stopping)
        except LedgerUnusableError as error:
            self.log.warning("alerts_not_delivered", detail=str(error))

    def bring(self, patience: timedelta, stopping: Callable[[], bool]) -> ProcessIdentity | None:
        """Bring what is due, for so long; return who holds the lease instead, and then nothing was brought.

        Raises:
            LedgerUnusableError: if the ledger cannot be used.
        """
        opened = partial(ledger_of, self.settings, self.clock)
        with ExitStack() as stack:
            ledger = stack.enter_context(opened())
            taken = ledger.take_lease(current(), self.settings.lease.ttl, self.clock.now())
            if not isinstance(taken, Lease):
                return taken
            stack.callback(self._give_back, ledger, taken)
            stack.enter_context(LeaseKeeper(opened, taken, self.settings.lease.ttl, self.clock))
            post = Post(open_ledger=opened, lease=lambda: taken, clock=self.clock, log=self.log, counted=_Uncounted())
            ends_at = self.clock.monotonic() + patience.total_seconds()

            def over() -> bool:
                return stopping() or self.clock.monotonic() >= ends_at

            calls: list[Aside[object]] = [Aside(partial(self._bring, line, post, over)) for line in self.lines]
            run_beside(calls, self.clock, patience, stopping)
        return None

    def _give_back(self, ledger: Ledger, lease: Lease) -> None:
        try:
            ledger.release_lease(lease, self.clock.now())
        except LedgerUnusableError as error:
            # It runs out by itself.
            self.log.warning("lease_not_given_back", detail=str(error))

    def _bring(self, line: AnyLine, post: Post, over: Callable[[], bool]) -> None:
        if isinstance(line, LevelLine):
            if self._announced:
                self._hold(line, post)
            return
        try:
            with post.open_ledger() as ledger:
                Postman(line, post).deliver(ledger, over)
        except LedgerUnusableError as error:
            post.log.warning("alerts_not_delivered", channel=line.name, detail=str(error))

    def _hold(self, line: LevelLine, post: Post) -> None:
        trouble = held(line, self._level(line))
        if trouble is None:
            post.taken(line.name)
        else:
            post.refused(line.name, trouble)

    def _level(self, line: LevelLine) -> Level:
        told = self._announced[-1]
        until = told.at + HELD_FOR * self.settings.reconcile.interval
        return level_of(told.step, line.audience, at=told.at, until=until)


def build_errands(settings: Settings, clock: SystemClock, log: Logger, channel_log: Logger) -> Errands:
    """Return the errands. `channel_log` is where a channel of type `log` writes.

    Raises:
        ConfigError: if a channel can never work as it is configured.
    """
    return Errands(settings, clock, log, build_lines(settings, clock, channel_log))


def tried(lines: Sequence[AnyLine], clock: Clock) -> dict[str, str]:
    """Send a test through each of these channels at once; return what went wrong by name, empty where nothing did."""
    calls = {line.name: Aside(partial(_trial, line, clock)) for line in lines}
    for name, call in calls.items():
        call.start(f"alerts-{name}")
    for call in calls.values():
        while not call.wait():
            pass
    return {name: call.result() for name, call in calls.items()}


def run_beside(calls: Sequence[Aside[object]], clock: Clock, patience: timedelta, stopping: Callable[[], bool]) -> None:
    """Let all of them run at once, for so long at most; what hangs is left behind."""
    ends_at = clock.monotonic() + patience.total_seconds()
    for number, call in enumerate(calls):
        call.start(f"alerts-{number}")
    for call in calls:
        while not call.wait() and clock.monotonic() < ends_at and not stopping():
            pass


def _trial(line: AnyLine, clock: Clock) -> str:
    now = clock.now()
    error = sent(line, trial_notice(now)) if isinstance(line, Line) else held(line, trial_level(now))
    if error is None:
        return ""
    known = isinstance(error, DeliveryError | ChannelSetupError)
    return str(error) if known else f"an error that nobody expected: {type(error).__name__}"
