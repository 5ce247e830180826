"""The life of the process: start, rhythm, watch, reload, stop.

The main thread does nothing but watch. Passes run in the rhythm's threads, the lease is kept by one of its own, HTTP is
answered by others; none of them waits for a lock that a cloud call could hold.
"""

from __future__ import annotations

import math
import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from alerts.model import Condition
from reaperd.core.model import PassKind, PassOutcome
from reaperd.core.telling import told_of_the_pace
from reaperd.daemon.desk import Desk
from reaperd.daemon.leadership import Leadership
from reaperd.daemon.notify import Notifier
from reaperd.daemon.pace import PaceWatch
from reaperd.daemon.pulse import Pulse
from reaperd.daemon.room import give_back
from reaperd.daemon.standing import Standing
from reaperd.daemon.work import LastingClock, Turn, Work
from reaperd.delivery.office import Office
from reaperd.delivery.pinger import Pinger
from reaperd.errors import ConfigError, Problem
from reaperd.http.server import HttpServer
from reaperd.passes.aside import Aside
from reaperd.report.events import log_audit, log_pass
from reaperd.report.logs import Logger, log_context
from reaperd.report.metrics import Metrics
from reaperd.scheduler import Rhythm

TICK = timedelta(milliseconds=250)
"""How often the main thread looks up."""

LAST_ACT = timedelta(seconds=7)
"""How long a stop waits for what is under way; the whole has ten seconds (rule 25)."""

SAMPLES = timedelta(seconds=1)
"""How often the figures of the process are taken."""

READS_WITHIN = timedelta(seconds=10)
"""How long a reload may take to read the configuration, before that is told."""

FEEDS = 4
"""How often the watchdog is fed in the time that it waits."""

SURE = timedelta(seconds=1)
"""How long a run has to be overdue before it is started by hand: after a suspend the scheduler may be about to."""


@dataclass(frozen=True, slots=True)
class Signals:
    """What the outside asks of the process. Set by signal handlers, or by a test."""

    stop: threading.Event
    reload: threading.Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Equipment:
    """The parts that last as long as the process."""

    clock: LastingClock
    log: Logger
    metrics: Metrics
    standing: Standing
    leadership: Leadership
    notifier: Notifier
    office: Office
    """Brings alerts to their channels."""
    pinger: Pinger
    serve: Callable[[Desk], HttpServer | None]
    """Makes the HTTP server, not started; None when it is switched off."""
    reload: Callable[[], Work]
    """Reads the configuration anew. Raises ConfigError, and then nothing has changed."""


class Daemon:
    """A reconciler that is left alone for months."""

    def __init__(self, work: Work, equipment: Equipment, signals: Signals) -> None:
        """Nothing starts before `run`."""
        self._work = work
        self._with = equipment
        self._signals = signals
        self._bases: dict[PassKind, timedelta] = {}
        self._told = ""
        self._leads: bool | None = None
        self._sampled = -math.inf
        self._reading: Aside[Work] | None = None
        self._read_since = 0.0
        self._coming: Work | None = None
        born = self._fed = equipment.clock.monotonic()
        self._pulses: Mapping[PassKind, Pulse] = {kind: Pulse(tempo, born) for kind, tempo in work.tempos.items()}
        reconciling = self._pulses[PassKind.RECONCILE]
        self._pace = PaceWatch(reconciling, equipment.clock, tell=self._tell_pace, log=equipment.log)
        self._rhythm = Rhythm(equipment.clock, missed=lambda name: self._missed(PassKind(name)))
        self._desk = Desk(
            metrics_page=equipment.metrics,
            standing=equipment.standing,
            leadership=equipment.leadership,
            pulses=self._pulses,
            clock=equipment.clock,
            office=equipment.office,
            work=lambda: self._work,
        )

    def run(self) -> bool:
        """Live until asked to stop; return whether everything came to its end in time.

        Raises:
            HttpError: if the port cannot be had. Nothing was started.
        """
        # Before anybody can ask: a counter that is not there yet begins, for Prometheus, with what it counts first.
        self._tell_settings()
        server = self._with.serve(self._desk)
        if server is not None:
            server.start()
        self._begin()
        while not self._signals.stop.wait(TICK.total_seconds()):
            self._look_after()
        return self._end(server)

    # ------------------------------------------------------------ start

    def _begin(self) -> None:
        self._with.leadership.start(changed=self._led)
        self._with.pinger.start()
        self._pace.start()
        jobs = {PassKind.RECONCILE: self.reconcile, PassKind.AUDIT: self.audit}
        for kind, job in jobs.items():
            self._rhythm.every(self._work.tempos[kind].interval, str(kind), job)
        self._rhythm.start()
        self._with.log.info("started", mode=str(self._work.mode), deployment=self._work.deployment)
        self._with.notifier.ready(self._desk.sentence())

    def _tell_settings(self) -> None:
        work = self._work
        intervals = {kind: tempo.interval for kind, tempo in work.tempos.items()}
        self._with.metrics.configured(
            mode=str(work.mode),
            providers=work.providers,
            scopes=work.scopes,
            intervals=intervals,
            channels=tuple(line.name for line in work.alerting.lines),
        )
        self._with.pinger.call = work.alerting.ping
        self._with.office.take_over(work.alerting.lines, work.alerting.policy, intervals[PassKind.RECONCILE])

    def _led(self, leads: bool) -> None:  # noqa: FBT001 - the shape of the callback
        holder = self._with.leadership.holder
        who = {} if holder is None else {"holder_host": holder.host, "holder_pid": holder.pid}
        self._with.log.info("lease_taken" if leads else "standing_by", **who)
        self._with.office.wake()

    def _tell_pace(self, found: tuple[Condition, ...]) -> bool:
        lease = self._with.leadership.lease
        if lease is None:
            return False
        return self._work.alerting.tell(told_of_the_pace(found, self._with.clock.now()), lease)

    # ------------------------------------------------------------ watch

    def _look_after(self) -> None:
        now = self._with.clock.monotonic()
        for kind, pulse in self._pulses.items():
            if pulse.overdue(now, SURE):
                # The wall clock was set back: the scheduler waits for a time that is far away.
                self._missed(kind)
                self._rhythm.now(str(kind))
                pulse.nudged(now)
        self._tell_manager(now)
        self._tell_metrics(now)
        self._reload(now)

    def _tell_metrics(self, now: float) -> None:
        leads = self._desk.leads
        if leads is not self._leads:
            # What the lease's thread says may be late, or its last: the gauge says what is.
            self._leads = leads
            self._with.metrics.leading(leads)
        if now - self._sampled >= SAMPLES.total_seconds():
            self._sampled = now
            self._with.metrics.sample()

    def _tell_manager(self, now: float) -> None:
        notifier = self._with.notifier
        sentence = self._desk.sentence()
        if sentence != self._told:
            self._told = sentence
            notifier.status(sentence)
        watchdog = notifier.watchdog_interval
        if watchdog is None or now - self._fed < watchdog.total_seconds() / FEEDS:
            return
        # The manager restarts a process that does not progress. What a cloud answers is no part of that.
        if self._desk.health().ok:
            self._fed = now
            notifier.alive()

    def _missed(self, kind: PassKind) -> None:
        self._with.metrics.missed(kind)
        self._with.log.warning("run_missed", kind=str(kind))

    def _reload(self, now: float) -> None:
        """Read the configuration when asked to, and take it over once no pass goes by the old one any more.

        It is read beside: a file may hang. A pass that is under way is asked to end, so that what was switched off is
        off when the log says so.
        """
        if self._reading is None and self._coming is None and self._signals.reload.is_set():
            self._signals.reload.clear()
            self._with.notifier.reloading(int(now * 1_000_000))
            self._reading, self._read_since = Aside(self._with.reload), now
            self._reading.start("reload")
        if self._reading is not None:
            self._await_configuration(self._reading, now)
        if self._coming is not None and not self._pulses[PassKind.RECONCILE].running:
            self._take_over(self._coming)
            self._coming = None

    def _await_configuration(self, reading: Aside[Work], now: float) -> None:
        if not reading.wait():
            if now - self._read_since > READS_WITHIN.total_seconds():
                self._read_since = now
                self._rejected(ConfigError((Problem("", "it cannot be read: the file hangs"),)))
            return
        self._reading = None
        try:
            self._coming = reading.result()
        except ConfigError as error:
            self._rejected(error)
        except Exception:
            # Whatever is wrong with a new configuration, the old one goes on.
            self._with.log.exception("config_reload_failed")
            self._rejected(ConfigError((Problem("", "reading it ended with an error: see the line before"),)))
        else:
            self._work.retire()

    def _rejected(self, error: ConfigError) -> None:
        self._with.metrics.reloaded(successful=False, at=self._with.clock.now())
        self._with.standing.reload_refused = "; ".join(map(str, error.problems))
        for problem in error.problems:
            self._with.log.error("config_rejected", key=problem.path, detail=problem.message, source=error.source)
        self._with.notifier.ready(self._desk.sentence())

    def _take_over(self, work: Work) -> None:
        before, self._work = self._work, work
        self._with.leadership.ttl = work.lease_ttl
        for kind, tempo in work.tempos.items():
            self._pulses[kind].tempo = tempo
            if tempo.interval != before.tempos[kind].interval:
                self._rhythm.change(tempo.interval, str(kind))
                self._pace.begin_anew()
        self._tell_settings()
        self._with.standing.reload_refused = ""
        self._with.metrics.reloaded(successful=True, at=self._with.clock.now())
        self._with.log.info("config_reloaded", mode=str(work.mode))
        self._with.notifier.ready(self._desk.sentence())

    # ------------------------------------------------------------ the jobs

    def reconcile(self) -> None:
        """Run one reconcile pass and tell what came of it: the job that the rhythm runs. Never raises."""

        def work(pass_id: str) -> None:
            report = self._work.reconcile(self._turn(PassKind.RECONCILE, pass_id))
            self._with.standing.passed(report)
            self._with.metrics.passed(report)
            log_pass(self._with.log, report)
            self._with.office.passed(report)
            if report.outcome is PassOutcome.COMPLETE:
                self._with.pinger.ping()

        self._run(PassKind.RECONCILE, work)

    def audit(self) -> None:
        """Run one audit sweep and tell what came of it: the job that the rhythm runs. Never raises."""

        def work(pass_id: str) -> None:
            report = self._work.audit(self._turn(PassKind.AUDIT, pass_id))
            self._with.standing.swept(report)
            self._with.metrics.swept(report)
            log_audit(self._with.log, report)

        self._run(PassKind.AUDIT, work)

    def _run(self, kind: PassKind, work: Callable[[str], None]) -> None:
        clock, pulse = self._with.clock, self._pulses[kind]
        began = clock.monotonic()
        pulse.begin(began)
        pass_id = uuid.uuid4().hex
        with log_context(kind=str(kind), pass_id=pass_id):
            try:
                self._with.metrics.attempted(kind, clock.now())
                work(pass_id)
            except Exception:
                # One bad pass must not end the rhythm: it is counted, told, and tried again.
                self._with.metrics.failed(kind, clock.monotonic() - began)
                self._with.standing.failed(kind, clock.now())
                self._with.log.exception("pass_failed")
            finally:
                pulse.end(clock.monotonic())
        give_back()

    def _turn(self, kind: PassKind, pass_id: str) -> Turn:
        """Return what this pass gets. The first of its kind has no clock step: there is nothing to compare with."""
        clock = self._with.clock
        base = timedelta(seconds=clock.now().timestamp()) - clock.since_boot()
        step = base - self._bases[kind] if kind in self._bases else None
        self._bases[kind] = base
        return Turn(pass_id=pass_id, lease=self._with.leadership.lease, clock_step=step)

    # ------------------------------------------------------------ stop

    def _end(self, server: HttpServer | None) -> bool:
        """Start nothing more, wait for what is under way, give the lease back."""
        clock, log = self._with.clock, self._with.log
        self._with.notifier.stopping("stopping")
        log.info("stopping")
        self._rhythm.stop()
        self._pace.stop()
        self._with.pinger.stop()
        self._with.office.stop()
        ends_at = clock.monotonic() + LAST_ACT.total_seconds()
        while self._busy() and clock.monotonic() < ends_at:
            clock.sleep(TICK.total_seconds() / 5)
        still = self._busy()
        # Before the lease is given back: what is being told is told by us.
        self._with.office.join()
        if not still:
            # A pass that hangs keeps the lease until it runs out, so that nobody acts beside it.
            self._with.leadership.stop()
        if server is not None:
            server.stop()
        log.info("stopped", unfinished=still)
        return not still

    def _busy(self) -> list[str]:
        return [str(kind) for kind, pulse in self._pulses.items() if pulse.running]
