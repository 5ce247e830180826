"""The daemon, put together: settings in, a process out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from providers.aws import own_instance_id
from providers.aws.markup import available_parser
from providers.errors import ProviderSetupError
from providers.instrumented import Operation, RequestResult
from reaperd import __version__
from reaperd.clock import SystemClock
from reaperd.config import Settings, needs_restart
from reaperd.core.model import PassKind
from reaperd.daemon.daemon import Daemon, Equipment, Signals
from reaperd.daemon.desk import Desk
from reaperd.daemon.leadership import Leadership
from reaperd.daemon.notify import Notifier
from reaperd.daemon.pulse import Tempo
from reaperd.daemon.standing import Standing
from reaperd.daemon.work import Alerting, Work
from reaperd.delivery.office import Office
from reaperd.delivery.pinger import Pinger
from reaperd.delivery.postman import Post
from reaperd.errors import ConfigError, Problem
from reaperd.http.server import HttpServer
from reaperd.ledger.ledger import Ledger
from reaperd.process import current
from reaperd.report.logs import Logger
from reaperd.report.metrics import Metrics
from reaperd.wiring.alerting import build_lines, build_ping, build_watch
from reaperd.wiring.passes import Machinery, Surroundings, daemon_pass, daemon_sweep, ledger_of, open_ledger_of, tell
from reaperd.wiring.policy import named_scopes

_EAGER = 10
"""So many passes ask for the own id each: ten minutes, by the default interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What the command line gives the daemon."""

    load: Callable[[], Settings]
    """Reads the configuration. Raises ConfigError."""
    log: Logger
    clock: SystemClock
    signals: Signals
    environ: Mapping[str, str]


def build_daemon(given: Given) -> Daemon:
    """Return the daemon, with its ledger proved writable. Neither a cloud nor the registry is asked.

    Raises:
        ConfigError: if the settings cannot be used.
        ProviderSetupError: if a provider cannot be built.
        LedgerUnusableError: if the ledger cannot be opened, written and read.
    """
    settings = given.load()
    metrics = Metrics(version=__version__, clock=given.clock, log=given.log, parser=available_parser())
    standing = Standing()
    now = given.clock.now()
    with _ledger_at_start(settings, given.clock, given.log) as ledger:
        ledger_id = ledger.identity
        ledger.self_test(now)
        remembered = ledger.standing(now)
    metrics.ledger_created(remembered.created_at)
    metrics.braked(remembered.brake is not None)
    standing.brake = remembered.brake
    for kind in PassKind:
        runs = remembered.runs[kind]
        metrics.restored(kind, attempt=runs.attempted_at, look=runs.looked_at, complete=runs.completed_at)
        standing.restored(kind, look=runs.looked_at, complete=runs.completed_at)
    around = Surroundings(
        clock=given.clock,
        stopping=given.signals.stop.is_set,
        warn=lambda text: given.log.warning("pass_warning", detail=text),
        observer=_Counted(metrics),
        # From now on this one and no other: what is made in its place would know of no brake and no request.
        ledger_id=ledger_id,
        announced=lambda announced: office.announced(announced),  # noqa: PLW0108 - it is made below
    )
    workshop = _Workshop(around, OwnId(own_instance_id, given.log), given.log)
    opened = partial(open_ledger_of, settings, around)
    leadership = Leadership(
        opened,
        current(),
        ttl=settings.lease.ttl,
        clock=given.clock,
        warn=lambda text: given.log.error("lease_trouble", detail=text),
    )
    office = Office(
        Post(
            open_ledger=opened,
            lease=lambda: leadership.lease,
            clock=given.clock,
            log=given.log,
            counted=metrics,
        )
    )
    equipment = Equipment(
        clock=given.clock,
        log=given.log,
        metrics=metrics,
        standing=standing,
        leadership=leadership,
        notifier=Notifier.from_environment(given.environ),
        office=office,
        pinger=Pinger(given.log),
        serve=partial(_server, settings, given.log),
        reload=_Reload(settings, given.load, workshop),
    )
    return Daemon(workshop.work(settings), equipment, given.signals)


class _Workshop:
    """Makes the daemon's work out of settings."""

    def __init__(self, around: Surroundings, own_id: OwnId, log: Logger) -> None:
        self._around = around
        self._own_id = own_id
        self._log = log

    def work(self, settings: Settings) -> Work:
        """Return what these settings make the daemon do.

        Raises:
            ProviderSetupError: if a provider cannot be built.
            ConfigError: if an alert channel cannot be built.
        """
        lines = build_lines(settings, self._around.clock, self._log)
        retired = threading.Event()
        stopping = self._around.stopping
        around = replace(self._around, stopping=lambda: retired.is_set() or stopping())
        reconciling, auditing = self._machinery(settings, around), self._machinery(settings, around)
        deadline = settings.reconcile.deadline
        return Work(
            deployment=settings.deployment,
            mode=settings.mode,
            providers=tuple(table.name for table in settings.providers),
            scopes=tuple(sorted(named_scopes(settings))),
            tempos={
                PassKind.RECONCILE: Tempo(interval=settings.reconcile.interval, deadline=deadline),
                PassKind.AUDIT: Tempo(interval=settings.audit.interval, deadline=deadline),
            },
            lease_ttl=settings.lease.ttl,
            retire=retired.set,
            reconcile=partial(daemon_pass, reconciling),
            audit=partial(daemon_sweep, auditing),
            alerting=Alerting(
                lines=lines,
                policy=build_watch(settings).policy,
                ping=build_ping(settings, self._around.clock),
                tell=partial(tell, reconciling),
            ),
        )

    def _machinery(self, settings: Settings, around: Surroundings) -> Machinery:
        made = Machinery(settings, around, own_id=self._own_id)
        made.prepare()
        return made


class OwnId:
    """The id of the machine that this runs on. It does not change, so it is asked for until it is known.

    The metadata service may be late at a boot. Where there is none each try may cost a second, so the tries become
    rare: at the first passes, and then at every doubling of their number.
    """

    def __init__(self, ask: Callable[[], str | None], log: Logger) -> None:
        """Nothing is asked yet."""
        self._ask = ask
        self._log = log
        self._found: str | None = None
        self._passes = 0

    def __call__(self) -> str | None:
        """Return the id; None while it is not known. Called once for each pass."""
        if self._found is not None:
            return self._found
        self._passes += 1
        if self._passes <= _EAGER or self._passes & (self._passes - 1) == 0:
            self._found = self._ask()
            if self._found is not None:
                self._log.info("own_instance_found", instance_id=self._found)
            elif self._passes == 1:
                self._log.info("own_instance_unknown", detail="not EC2, or its metadata service does not answer yet")
        return self._found


@dataclass(slots=True)
class _Reload:
    """Reads the configuration anew, and takes over what can be taken over."""

    settings: Settings
    load: Callable[[], Settings]
    workshop: _Workshop

    def __call__(self) -> Work:
        """Return the new work.

        Raises:
            ConfigError: if the new settings are wrong, or change what needs a restart. The old ones stay.
        """
        new = self.load()
        fixed = needs_restart(self.settings, new)
        if fixed:
            text = "it cannot change while the daemon runs: restart it (systemctl restart reaperd)"
            raise ConfigError(tuple(Problem(key, text) for key in fixed))
        try:
            work = self.workshop.work(new)
        except ProviderSetupError as error:
            raise ConfigError((Problem("providers", str(error)),)) from error
        self.settings = new
        return work


@dataclass(frozen=True, slots=True)
class _Counted:
    """Hands each operation on a provider to the metrics."""

    metrics: Metrics

    def observed(self, *, provider: str, operation: Operation, result: RequestResult, seconds: float) -> None:
        """See RequestObserver."""
        self.metrics.requested(provider, str(operation), str(result))


def _ledger_at_start(settings: Settings, clock: SystemClock, log: Logger) -> Ledger:
    """Open the ledger; one that was not there is made, which is told: it knows of no brake and no request."""
    new = not settings.ledger_path.exists()
    ledger = ledger_of(settings, clock)
    if new:
        log.warning("ledger_created", path=str(settings.ledger_path), detail="it remembers nothing that was before")
    return ledger


def _server(settings: Settings, log: Logger, desk: Desk) -> HttpServer | None:
    if not settings.http.listen:
        return None
    return HttpServer(settings.http.listen, desk, settings.http.web_config_file, log)
