"""All channels of the process: takes in what was told, and lets each channel's thread bring it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

from alerts.lifecycle import Book, Policy, level_of, step
from reaperd.core.model import DeferReason, PassReport
from reaperd.core.telling import told_of_the_ledger
from reaperd.delivery.line import AnyLine, Line
from reaperd.delivery.postman import Post
from reaperd.delivery.worker import LevelWorker, OutboxWorker
from reaperd.ledger.alarms import Announced

LAST_WORD = timedelta(seconds=2)
"""How long a stop waits for the deliveries that are under way; what was not taken is sent after the next start."""

HELD_FOR = 3
"""Intervals for which a channel that keeps track itself is told that something holds."""

AnyWorker = OutboxWorker | LevelWorker


class Office:
    """Wakes the channels. Nothing here waits for one of them, so whoever tells is never delayed."""

    def __init__(self, post: Post) -> None:
        """Nothing starts before `take_over`."""
        self._post = post
        self._workers: Mapping[str, AnyWorker] = {}
        self._interval = timedelta(minutes=1)
        self._policy = Policy(audiences=())
        self._open: int | None = None
        self._ends_at = 0.0
        self._unrecorded: Book = {}
        """What is told of the ledger itself, which cannot be kept in it."""

    def take_over(self, lines: Sequence[AnyLine], policy: Policy, interval: timedelta) -> None:
        """Serve these channels from now on. `interval` is the time from one reconcile pass to the next."""
        self._interval, self._policy = interval, policy
        before, after = self._workers, dict[str, AnyWorker]()
        for line in lines:
            worker = before.get(line.name)
            if worker is None or not worker.takes(line):
                worker = _worker(line, self._post)
                worker.start()
            after[line.name] = worker
        # Replaced whole: passes go through it in threads of their own.
        self._workers = after
        for name, worker in before.items():
            if after.get(name) is not worker:
                worker.stop()

    def announced(self, told: Announced) -> None:
        """Bring what was told through the ledger."""
        self._open = len(told.step.book)
        for channel, number in told.dropped.items():
            self._post.log.error("alerts_dropped", channel=channel, messages=number)
        for worker in self._workers.values():
            if isinstance(worker, LevelWorker):
                until = told.at + HELD_FOR * self._interval
                worker.hold(level_of(told.step, worker.line.audience, at=told.at, until=until))
            else:
                worker.wake()

    def passed(self, report: PassReport) -> None:
        """Tell directly when a pass could not use the ledger, and when one can again."""
        telling = told_of_the_ledger(report)
        cut_short = report.reason == DeferReason.STOPPING and not report.coverage
        if cut_short or not (telling.conditions or self._unrecorded):
            return
        done = step(self._unrecorded, telling.conditions, telling.look, self._policy)
        self._unrecorded = done.book
        for name, worker in self._workers.items():
            if isinstance(worker, LevelWorker):
                until = telling.look.at + HELD_FOR * self._interval
                worker.directly(level_of(done, worker.line.audience, at=telling.look.at, until=until))
            else:
                worker.directly(due.notification for due in done.due if due.channel == name)

    def standing(self) -> Mapping[str, object]:
        """Return how it stands, as JSON data: alerts that are open (None before the first look), channels that fail."""
        failing = {name: worker.trouble for name, worker in self._workers.items() if worker.trouble}
        return {"open": self._open, "channels": len(self._workers), "failing": failing}

    def wake(self) -> None:
        """Let every channel see what there is for it: the lease may just have become ours."""
        for worker in self._workers.values():
            worker.wake()

    def stop(self) -> None:
        """Begin no further delivery. Returns at once."""
        self._ends_at = self._post.clock.monotonic() + LAST_WORD.total_seconds()
        for worker in self._workers.values():
            worker.stop()

    def join(self) -> None:
        """Wait for the deliveries under way, until a moment after the stop."""
        for worker in self._workers.values():
            worker.join(max(self._ends_at - self._post.clock.monotonic(), 0))


def _worker(line: AnyLine, post: Post) -> AnyWorker:
    return OutboxWorker(line, post) if isinstance(line, Line) else LevelWorker(line, post)
