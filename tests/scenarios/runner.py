"""Plays a case: the production wiring over real adapters, real files and a clock that moves by hand."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from providers.instrumented import Operation, RequestResult
from reaperd.config import Settings, load
from reaperd.config.durations import parse_duration
from reaperd.core.leaks import AuditReport
from reaperd.core.model import PassKind, PassReport
from reaperd.daemon.standing import Standing
from reaperd.daemon.work import Turn
from reaperd.errors import ConfigError, ExitCode
from reaperd.ledger.lease import Lease
from reaperd.process import current
from reaperd.report.events import log_audit, log_pass
from reaperd.report.logs import build_logger
from reaperd.report.metrics import Metrics
from reaperd.wiring.passes import Machinery, Surroundings, daemon_sweep, ledger_of, recorded_pass
from reaperd.wiring.policy import named_scopes
from tests.scenarios.case import Variant, start
from tests.scenarios.evidence import Evidence, Pass, Seen
from tests.scenarios.host import host
from tests.scenarios.scraped import Scrape
from tests.scenarios.stage import SharedClock, Stage

ATTEMPTS = 2
"""The SDK sleeps in real time between two attempts of one request."""

_played: dict[str, Evidence] = {}


def play(variant: Variant) -> Evidence:
    """Return what comes of a variant. Each is played once in a process."""
    if variant.test_id not in _played:
        _played[variant.test_id] = play_anew(variant)
    return _played[variant.test_id]


def play_anew(variant: Variant) -> Evidence:
    """Build the world, take the steps and return what was seen."""
    with ExitStack() as stack:
        stack.enter_context(host(variant.world.get("host", {})))
        folder = stack.enter_context(TemporaryDirectory(prefix="reaperd-"))
        stage = stack.enter_context(Stage(variant, Path(folder)))
        evidence = _Play(stage).run()
        if stage.errors:
            msg = "the world itself failed"
            raise ExceptionGroup(msg, stage.errors)
    return evidence


class _Play:
    """One case on its stage."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._passes: list[Pass] = []
        self._scrapes: list[Scrape] = []

    def run(self) -> Evidence:
        """Take every step, unless the process ends by itself."""
        steps = list(self._stage.variant.world["steps"])
        file = self._stage.settings_file()
        owner = str(self._stage.variant.world.get("settings", {}).get("deployment", "prod-a"))
        try:
            process = _Process(self._stage, load(file, {}))
        except ConfigError:
            return Evidence(
                owner=owner,
                rehearsing=False,
                ended_with=ExitCode.CONFIG.name,
                steps_left=len(steps),
                began_at=start(),
            )
        while steps:
            process = self._take(steps.pop(0), process)
        return Evidence(
            owner=owner,
            rehearsing=not process.settings.enforcing,
            passes=tuple(self._passes),
            scrapes=tuple(self._scrapes),
            moments=tuple(self._stage.moments),
            true_ages=self._stage.true_ages(),
            sent=self._stage.sent(),
            began_at=start(),
        )

    def _take(self, step: Any, process: _Process) -> _Process:
        match step:
            case "reap":
                self._passes.append(self._observed(process, process.reap))
            case "audit":
                self._passes.append(self._observed(process, process.audit))
            case "scrape":
                self._scrapes.append(process.scrape())
            case {"advance": duration}:
                process.clock.advance(parse_duration(duration))
            case {"do": changes}:
                self._stage.change(changes)
            case "start" | "restart":
                # Nothing lives on but the files and the cloud.
                return _Process(self._stage, load(self._stage.settings_file(), {}))
            case _:
                raise ValueError(step)
        return process

    def _observed(self, process: _Process, run: Callable[[], PassReport | AuditReport]) -> Pass:
        cloud = self._stage.cloud
        shown = process.scrape()
        before, asked, accepted = self._seen(), len(cloud.requests()), len(cloud.terminated_ids())
        written = self._stage.registry.written
        report = run()
        return Pass(
            report=report,
            before=before,
            after=self._seen(),
            asked=tuple(cloud.requests()[asked:]),
            accepted=tuple(cloud.terminated_ids()[accepted:]),
            disturbed=self._stage.registry.written != written or self._stage.registry.locked,
            scraped=(shown, process.scrape()),
            events=process.events(),
            unready=process.standing.readiness(standby=False),
        )

    def _seen(self) -> Seen:
        stage = self._stage
        return Seen(
            machines=tuple(stage.cloud.instances()),
            rows=stage.registry.rows(),
            files=stage.registry.files(),
            intents=stage.intents(),
            first_seen=stage.first_seen(),
        )


class _Process:
    """One life of the program: its passes, and what is told of them, as the daemon tells it."""

    def __init__(self, stage: Stage, settings: Settings) -> None:
        self.settings = settings
        self.clock: SharedClock = stage.clock()
        self.warnings: list[str] = []
        self.standing = Standing()
        self.metrics = _metrics(settings, self.clock)
        self._log = io.StringIO()
        self._logger = build_logger(as_json=True, now=self.clock.now, stream=self._log)
        self._around = Surroundings(
            clock=self.clock,
            stopping=lambda: False,
            warn=self.warnings.append,
            attempts=ATTEMPTS,
            observer=self,
        )

        self._machinery = Machinery(settings, self._around, own_id=lambda: None)

    def reap(self) -> PassReport:
        self.metrics.attempted(PassKind.RECONCILE, self.clock.now())
        report = recorded_pass(self.settings, self._around, rehearse=not self.settings.enforcing)
        self.standing.passed(report)
        self.metrics.passed(report)
        log_pass(self._logger, report)
        return report

    def audit(self) -> AuditReport:
        self.metrics.attempted(PassKind.AUDIT, self.clock.now())
        report = daemon_sweep(self._machinery, Turn(lease=self._lease()))
        self.standing.swept(report)
        self.metrics.swept(report)
        log_audit(self._logger, report)
        return report

    def _lease(self) -> Lease | None:
        """Take the lease, as the daemon has it when it sweeps; what `recorded_pass` takes is given back."""
        with ledger_of(self.settings, self.clock) as ledger:
            taken = ledger.take_lease(current(), self.settings.lease.ttl, self.clock.now())
        return taken if isinstance(taken, Lease) else None

    def observed(self, *, provider: str, operation: Operation, result: RequestResult, seconds: float) -> None:
        self.metrics.requested(provider, str(operation), str(result))

    def scrape(self) -> Scrape:
        return Scrape(self.clock.now(), self.metrics.page("")[0].decode())

    def events(self) -> tuple[Mapping[str, Any], ...]:
        """Return what was logged since this was asked last."""
        told = self._log.getvalue()
        self._log.seek(0)
        self._log.truncate()
        return tuple(json.loads(line) for line in told.splitlines())


def _metrics(settings: Settings, clock: SharedClock) -> Metrics:
    """Return the metrics of a process that begins. An hour ago all was well, so that "unchanged" says something."""
    metrics = Metrics(version="1", clock=clock)
    metrics.configured(
        mode=str(settings.mode),
        providers=[table.name for table in settings.providers],
        scopes=named_scopes(settings),
        intervals={PassKind.RECONCILE: settings.reconcile.interval, PassKind.AUDIT: settings.audit.interval},
    )
    then = start() - timedelta(hours=1)
    for kind in PassKind:
        metrics.restored(kind, attempt=then, look=then, complete=then)
    return metrics
