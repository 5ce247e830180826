"""The life of the process, with work that a test gives it."""

from __future__ import annotations

import io
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from providers.model import Scope
from reaperd.clock import SystemClock
from reaperd.core.leaks import AuditFindings, AuditReport
from reaperd.core.model import Mode, PassKind, PassOutcome, PassReport
from reaperd.daemon.daemon import Daemon, Equipment, Signals
from reaperd.daemon.desk import Desk
from reaperd.daemon.leadership import Leadership
from reaperd.daemon.notify import Notifier
from reaperd.daemon.pulse import Tempo
from reaperd.daemon.standing import Standing
from reaperd.daemon.work import Turn, Work
from reaperd.delivery.office import Office
from reaperd.delivery.pinger import Pinger
from reaperd.delivery.postman import Post
from reaperd.errors import ConfigError, Problem
from reaperd.ledger.ledger import Ledger, open_ledger
from reaperd.process import current
from reaperd.report.logs import build_logger
from reaperd.report.metrics import Metrics

PATIENCE = 30.0
NOTHING = AuditFindings(leaks=(), ignored=(), near_misses=(), instances=0, owned=0, conditions=())


def report(turn: Turn, clock: SystemClock) -> PassReport:
    now = clock.now()
    return PassReport(
        pass_id=turn.pass_id,
        mode=Mode.DRY_RUN,
        started_at=now,
        finished_at=now,
        outcome=PassOutcome.COMPLETE,
        reason=None,
    )


@dataclass
class Stage:
    """A daemon in a thread, and everything around it."""

    folder: Path
    clock: SystemClock = field(default_factory=SystemClock)
    signals: Signals = field(default_factory=lambda: Signals(stop=threading.Event(), reload=threading.Event()))
    log: io.StringIO = field(default_factory=io.StringIO)
    turns: list[Turn] = field(default_factory=list)
    audits: list[Turn] = field(default_factory=list)
    reloads: list[Callable[[], Work]] = field(default_factory=list)
    retired: list[bool] = field(default_factory=list)
    desk: Desk | None = None
    ended: list[bool] = field(default_factory=list)

    def work(self, reconcile: Callable[[Turn], PassReport] | None = None, interval: float = 0.2) -> Work:
        def noted(turn: Turn) -> PassReport:
            self.turns.append(turn)
            return (reconcile or (lambda t: report(t, self.clock)))(turn)

        tempo = Tempo(interval=timedelta(seconds=interval), deadline=timedelta(seconds=5))
        return Work(
            deployment="prod-a",
            mode=Mode.DRY_RUN,
            providers=("aws",),
            scopes=(Scope("aws", "us-east-1"),),
            tempos={PassKind.RECONCILE: tempo, PassKind.AUDIT: replace(tempo, interval=timedelta(hours=1))},
            lease_ttl=timedelta(seconds=30),
            retire=lambda: self.retired.append(True),
            reconcile=noted,
            audit=self._swept,
        )

    def _swept(self, turn: Turn) -> AuditReport:
        self.audits.append(turn)
        return AuditReport(
            pass_id=turn.pass_id,
            started_at=self.clock.now(),
            finished_at=self.clock.now(),
            outcome=PassOutcome.COMPLETE,
            reason=None,
            findings=NOTHING,
        )

    def start(self, work: Work) -> None:
        logger = build_logger(as_json=True, now=self.clock.now, stream=self.log)
        self.metrics = Metrics(version="1", clock=self.clock, log=logger)
        path = self.folder / "ledger.db"

        def opened() -> Ledger:
            return open_ledger(path, deployment="prod-a", owner_tag="reaperd:owner", now=self.clock.now())

        leadership = Leadership(opened, current(), ttl=work.lease_ttl, clock=self.clock)
        post = Post(
            open_ledger=opened,
            lease=lambda: leadership.lease,
            clock=self.clock,
            log=logger,
            counted=self.metrics,
        )
        equipment = Equipment(
            clock=self.clock,
            log=logger,
            metrics=self.metrics,
            standing=Standing(),
            leadership=leadership,
            notifier=Notifier(),
            office=Office(post),
            pinger=Pinger(logger),
            serve=self._keep,
            reload=lambda: self.reloads.pop(0)(),
        )
        self.daemon = Daemon(work, equipment, self.signals)
        self.thread = threading.Thread(target=lambda: self.ended.append(self.daemon.run()), daemon=True)
        self.thread.start()

    def _keep(self, desk: Desk) -> None:
        self.desk = desk
        self.first_page = desk.metrics("")[0].decode()

    def until(self, happened: Callable[[], Any]) -> None:
        ends_at = time.monotonic() + PATIENCE
        while not happened():
            assert time.monotonic() < ends_at, self.log.getvalue()
            assert self.thread.is_alive() or self.ended, self.log.getvalue()
            threading.Event().wait(0.01)

    def events(self, name: str) -> list[dict[str, Any]]:
        lines = self.log.getvalue().split("\n")[:-1]
        return [event for event in map(json.loads, lines) if event["event"] == name]

    def page(self) -> str:
        return self.metrics.page("text/plain")[0].decode()

    def stop(self) -> bool:
        self.signals.stop.set()
        self.thread.join(PATIENCE)
        return self.ended[0]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path)
    yield made
    made.signals.stop.set()
    made.thread.join(PATIENCE)


def test_an_error_nobody_expected_is_counted_and_told_and_the_next_pass_runs(stage: Stage):
    def fails_once(turn: Turn) -> PassReport:
        if len(stage.turns) == 1:
            msg = "nobody expected this"
            raise RuntimeError(msg)
        return report(turn, stage.clock)

    stage.start(stage.work(fails_once))
    stage.until(lambda: len(stage.turns) >= 3)

    assert 'reaperd_passes_total{kind="reconcile",outcome="error"} 1.0' in stage.page()
    (event,) = stage.events("pass_failed")
    assert event["pass_id"] == stage.turns[0].pass_id
    assert "nobody expected this" in json.dumps(event)
    assert stage.stop()


def test_every_counter_is_there_before_anybody_can_ask(stage: Stage):
    stage.start(stage.work())
    stage.until(lambda: stage.turns)

    assert 'reaperd_terminations_total{outcome="requested",provider="aws"} 0.0' in stage.first_page


def test_every_pass_gets_the_lease_and_from_the_second_on_how_far_the_clock_moved(stage: Stage):
    stage.start(stage.work())
    stage.until(lambda: len(stage.turns) >= 3)

    first, second, *_ = stage.turns
    assert first.lease is not None
    assert first.lease == second.lease
    assert first.clock_step is None
    assert second.clock_step is not None
    assert abs(second.clock_step) < timedelta(seconds=5)
    assert len({turn.pass_id for turn in stage.turns}) == len(stage.turns)


def test_a_sweep_is_told_how_far_the_clock_moved_since_the_sweep_before(stage: Stage):
    work = stage.work()
    often = replace(work.tempos[PassKind.AUDIT], interval=timedelta(seconds=0.2))
    stage.start(replace(work, tempos={**work.tempos, PassKind.AUDIT: often}))
    stage.until(lambda: len(stage.audits) >= 2 and len(stage.turns) >= 2)

    first, second, *_ = stage.audits
    assert first.lease is not None
    assert first.clock_step is None
    assert second.clock_step is not None
    assert abs(second.clock_step) < timedelta(seconds=5)


def test_a_pass_that_never_ends_does_not_keep_the_process_and_keeps_the_lease(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
):
    let_go = threading.Event()
    monkeypatch.setattr("reaperd.daemon.daemon.LAST_ACT", timedelta(seconds=0.5))

    def hangs(turn: Turn) -> PassReport:
        let_go.wait(PATIENCE)
        return report(turn, stage.clock)

    stage.start(stage.work(hangs))
    stage.until(lambda: stage.turns)
    finished = stage.stop()
    let_go.set()

    assert not finished
    assert stage.events("stopped")[0]["unfinished"] == ["reconcile"]


def test_a_reload_takes_over_interval_and_mode(stage: Stage):
    stage.start(stage.work(interval=3600))
    stage.until(lambda: len(stage.turns) == 1)
    stage.reloads.append(lambda: replace(stage.work(interval=0.2), mode=Mode.ENFORCE))
    stage.signals.reload.set()
    stage.until(lambda: len(stage.turns) >= 3)

    assert 'reaperd_mode{mode="enforce"} 1.0' in stage.page()
    assert 'reaperd_pass_interval_seconds{kind="reconcile"} 0.2' in stage.page()
    assert stage.desk is not None
    assert stage.desk.status()["mode"] == "enforce"


def test_a_reload_that_is_refused_changes_nothing_and_names_each_key(stage: Stage):
    def refused() -> Work:
        raise ConfigError((Problem("reconcile.interval", "is no duration"), Problem("tags.owner", "is empty")), "file")

    stage.start(stage.work())
    stage.reloads.append(refused)
    stage.signals.reload.set()
    stage.until(lambda: len(stage.events("config_rejected")) == 2)
    turns = len(stage.turns)
    stage.until(lambda: len(stage.turns) > turns + 1)

    assert [event["key"] for event in stage.events("config_rejected")] == ["reconcile.interval", "tags.owner"]
    assert "reaperd_config_last_reload_successful 0.0" in stage.page()


def test_it_is_not_ready_before_its_first_look_and_lives_all_the_same(stage: Stage):
    let_go = threading.Event()

    def slow(turn: Turn) -> PassReport:
        let_go.wait(PATIENCE)
        return report(turn, stage.clock)

    stage.start(stage.work(slow))
    stage.until(lambda: stage.turns)
    assert stage.desk is not None
    health, readiness = stage.desk.health(), stage.desk.readiness()
    let_go.set()

    assert health.ok
    assert (readiness.ok, readiness.text) == (False, "no complete look yet")


def test_a_reload_asks_the_pass_under_way_to_end_and_is_told_when_it_has(stage: Stage):
    let_go = threading.Event()

    def slow(turn: Turn) -> PassReport:
        let_go.wait(PATIENCE)
        return report(turn, stage.clock)

    stage.start(stage.work(slow))
    stage.until(lambda: stage.turns)
    stage.reloads.append(lambda: replace(stage.work(), mode=Mode.ENFORCE))
    stage.signals.reload.set()
    stage.until(lambda: stage.retired)
    assert stage.desk is not None
    meanwhile = stage.desk.status()["mode"], stage.events("config_reloaded")
    let_go.set()
    stage.until(lambda: stage.events("config_reloaded"))

    assert meanwhile == ("dry-run", [])
    assert stage.desk.status()["mode"] == "enforce"


def test_a_configuration_that_cannot_be_read_keeps_nobody_from_being_stopped(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
):
    let_go = threading.Event()
    monkeypatch.setattr("reaperd.daemon.daemon.READS_WITHIN", timedelta(seconds=0.3))

    def hangs() -> Work:
        let_go.wait(PATIENCE)
        raise ConfigError(())

    stage.start(stage.work())
    stage.reloads.append(hangs)
    stage.signals.reload.set()
    stage.until(lambda: stage.events("config_rejected"))

    assert stage.stop()
    let_go.set()


def test_a_reload_that_breaks_is_told_and_ends_nothing(stage: Stage):
    def breaks() -> Work:
        msg = "nobody expected this"
        raise RuntimeError(msg)

    stage.start(stage.work())
    stage.reloads.append(breaks)
    stage.signals.reload.set()
    stage.until(lambda: stage.events("config_rejected"))
    turns = len(stage.turns)
    stage.until(lambda: len(stage.turns) > turns + 1)

    assert len(stage.events("config_reload_failed")) == 1


def test_a_daemon_whose_passes_end_in_errors_is_not_ready(stage: Stage):
    def fails(_turn: Turn) -> PassReport:
        msg = "nobody expected this"
        raise RuntimeError(msg)

    stage.start(stage.work(fails))
    stage.until(lambda: stage.events("pass_failed"))

    assert stage.desk is not None
    assert not stage.desk.readiness().ok
    assert stage.desk.health().ok
