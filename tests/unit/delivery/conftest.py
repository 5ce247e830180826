"""A ledger with the lease, channels in memory, and a clock that is moved by hand or runs."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from alerts.fake import FakeChannel, FakeLevelChannel
from alerts.lifecycle import Audience, Policy
from alerts.looks import Domain, Look
from alerts.model import Cause, Condition, Severity
from reaperd.clock import ManualClock, SystemClock
from reaperd.core.telling import Telling, Watch
from reaperd.delivery.line import LevelLine, Line
from reaperd.delivery.postman import Post
from reaperd.ledger.alarms import Announced
from reaperd.ledger.lease import Lease
from reaperd.ledger.ledger import Ledger, open_ledger
from reaperd.process import current
from reaperd.report.logs import build_logger
from reaperd.report.series import Delivery

START = datetime(2026, 1, 10, 12, 0, tzinfo=UTC)
SCOPE = "aws/us-east-1"


@dataclass
class Mail:
    """Everything that deliveries need."""

    path: Path
    clock: Any
    log: io.StringIO = field(default_factory=io.StringIO)
    counts: list[tuple[str, str]] = field(default_factory=list)
    lease: Lease | None = None

    def open(self) -> Ledger:
        return open_ledger(self.path, deployment="prod-a", owner_tag="reaperd:owner", now=self.clock.now())

    def lead(self) -> None:
        with self.open() as ledger:
            taken = ledger.take_lease(current(), timedelta(days=3), self.clock.now())
        assert isinstance(taken, Lease)
        self.lease = taken

    def alerted(self, channel: str, outcome: Delivery) -> None:
        self.counts.append((channel, str(outcome)))

    @property
    def post(self) -> Post:
        logger = build_logger(as_json=True, now=self.clock.now, stream=self.log)
        return Post(open_ledger=self.open, lease=lambda: self.lease, clock=self.clock, log=logger, counted=self)

    def leaks(self, *ids: str, channels: Iterable[str] = ("hook",)) -> Announced:
        """Tell of these leaks, as a sweep would."""
        found = tuple(
            Condition(cause=Cause.LEAK, subject=f"{SCOPE}/{i}", severity=Severity.WARNING, data={"name": i})
            for i in ids
        )
        look = Look(domain=Domain.AUDIT, at=self.clock.now(), scopes=frozenset({SCOPE}), complete=True)
        policy = Policy(audiences=tuple(Audience(name=name) for name in channels))
        watch = Watch(policy=policy, providers=frozenset({"aws"}), scopes=frozenset())
        assert self.lease is not None
        with self.open() as ledger:
            announced = ledger.alarms.tell(
                Telling(conditions=found, look=look), watch, lease=self.lease, now=self.clock.now()
            )
        assert announced is not None
        return announced

    def waiting(self) -> int:
        with self.open() as ledger:
            return len(ledger.alarms.kept().waiting)

    def events(self, name: str) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self.log.getvalue().splitlines()]
        return [event for event in lines if event["event"] == name]


def line(channel: FakeChannel) -> Line:
    return Line(audience=Audience(name=channel.name), make=lambda: channel)


def level_line(channel: FakeLevelChannel) -> LevelLine:
    return LevelLine(audience=Audience(name=channel.name), make=lambda: channel)


@pytest.fixture
def mail(tmp_path: Path) -> Mail:
    made = Mail(tmp_path / "ledger.db", ManualClock(START))
    made.lead()
    return made


@pytest.fixture
def running(tmp_path: Path) -> Mail:
    made = Mail(tmp_path / "ledger.db", SystemClock())
    made.lead()
    return made
