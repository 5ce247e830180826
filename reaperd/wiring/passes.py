"""Passes, put together: recorded ones that hold the lease, and one that leaves no trace."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

from providers.aws import own_instance_id
from providers.base import Progress, Terminator
from providers.instrumented import RequestObserver
from providers.model import Scope
from providers.multicloud import MultiCloud
from reaperd.clock import SystemClock
from reaperd.config import Settings
from reaperd.core.leaks import AuditReport
from reaperd.core.model import Memory, Mode, PassReport, ReapPolicy, RefusalReason
from reaperd.core.starts import NO_STARTS, Starts
from reaperd.core.telling import Telling, told_of_sweep
from reaperd.daemon.work import Turn
from reaperd.errors import LedgerUnusableError
from reaperd.ledger.alarms import Announced, Bell
from reaperd.ledger.keeper import LeaseKeeper
from reaperd.ledger.lease import Lease
from reaperd.ledger.ledger import Ledger, open_ledger
from reaperd.ledger.notebooks import BrokenNotebook, LeasedNotebook, TracelessNotebook, peek, peek_starts
from reaperd.passes.act import Enforcer, Rehearsal
from reaperd.passes.audit import Auditor
from reaperd.passes.pacer import Pacer
from reaperd.passes.ports import Notebook, Stopping
from reaperd.passes.reconcile import Reconciler
from reaperd.process import current
from reaperd.report.trail import record_of_sweep
from reaperd.wiring.alerting import build_watch
from reaperd.wiring.clouds import build_lister, build_terminator
from reaperd.wiring.policy import build_audit_policy, build_policy
from registry.base import RegistryReader
from registry.sqlite import SqliteRegistry

PEEK_TIMEOUT = timedelta(seconds=5)


def unheard(_announced: Announced) -> None:
    """Leave it in the ledger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a pass gets from the process that runs it."""

    clock: SystemClock
    stopping: Stopping
    progress: Progress | None = None
    warn: Callable[[str], None]
    """Tells a person something that changes no decision."""
    attempts: int | None = None
    """How often one request is sent to a cloud before it has failed. None: as the adapter thinks best."""
    observer: RequestObserver | None = None
    """Told of every operation on a provider."""
    ledger_id: str | None = None
    """The ledger that this process began with, and no other. None: whichever is there."""
    announced: Callable[[Announced], None] = unheard
    """Told what a pass told through the ledger."""


class Machinery:
    """What the passes of one configuration share: clients are made once, and the own id is asked for once.

    A lister remembers each region that it ever saw, and opens a session with fresh credentials for every listing.
    """

    def __init__(self, settings: Settings, around: Surroundings, *, own_id: Callable[[], str | None]) -> None:
        """Nothing is built before a pass needs it."""
        self.settings = settings
        self.around = around
        self._own_id = own_id
        self._lister: MultiCloud | None = None
        self._terminator: Terminator | None = None
        self.pacer = Pacer(share=settings.reconcile.terminate_pace)
        """Remembers from pass to pass what was sent."""

    def prepare(self) -> None:
        """Build everything that a pass needs; nothing is sent.

        Raises:
            ProviderSetupError: if a provider cannot be built.
        """
        self.lister(_peeked(self.settings, self.around).scopes)
        if self.settings.enforcing:
            self.terminator()

    def lister(self, known: Iterable[Scope]) -> MultiCloud:
        """Return what sees every configured cloud. `known` are the scopes that the ledger remembers."""
        if self._lister is None:
            around = self.around
            self._lister = build_lister(
                self.settings,
                around.clock,
                progress=around.progress,
                known=known,
                attempts=around.attempts,
                observer=around.observer,
            )
        return self._lister

    def terminator(self) -> Terminator:
        """Return what can terminate: for the door alone."""
        if self._terminator is None:
            around = self.around
            self._terminator = build_terminator(
                self.settings,
                around.clock,
                attempts=around.attempts,
                stopping=around.stopping,
                observer=around.observer,
            )
        return self._terminator

    def policy(self, *, confirmation_given: bool) -> ReapPolicy:
        """Return the operator's wishes, the machine that we run on among them."""
        return build_policy(self.settings, own_instance_id=self._own_id(), confirmation_given=confirmation_given)


def build_registry(settings: Settings) -> RegistryReader:
    """Return the reader of the control plane's registry. Nothing is opened yet."""
    return SqliteRegistry(settings.registry.path, settings.registry.busy_timeout)


def recorded_pass(settings: Settings, around: Surroundings, *, rehearse: bool) -> PassReport:
    """Run one pass that takes the lease, remembers what it saw and keeps its report.

    Raises:
        ProviderSetupError: if a provider cannot be built.
    """
    opened = partial(open_ledger_of, settings, around)
    machinery = Machinery(settings, around, own_id=own_instance_id)
    with ExitStack() as stack:
        try:
            ledger = stack.enter_context(opened())
            lease = _taken(ledger, settings, around)
        except LedgerUnusableError as error:
            return _without_ledger(machinery, error, Turn(), rehearse=rehearse)
        if lease is not None:
            stack.callback(_given_back, ledger, lease, around)
            stack.enter_context(LeaseKeeper(opened, lease, settings.lease.ttl, around.clock))
        return _with_ledger(machinery, ledger, Turn(lease=lease), rehearse=rehearse)


def daemon_pass(machinery: Machinery, turn: Turn) -> PassReport:
    """Run one recorded pass under a lease that somebody else keeps.

    Raises:
        ProviderSetupError: if a provider cannot be built.
    """
    rehearse = not machinery.settings.enforcing
    with ExitStack() as stack:
        try:
            ledger = stack.enter_context(open_ledger_of(machinery.settings, machinery.around))
        except LedgerUnusableError as error:
            return _without_ledger(machinery, error, turn, rehearse=rehearse)
        return _with_ledger(machinery, ledger, turn, rehearse=rehearse)


def traceless_pass(settings: Settings, around: Surroundings) -> PassReport:
    """Run one look that writes nothing anywhere: no lease, no sightings, no ledger. Confirmation is taken as given.

    Raises:
        ProviderSetupError: if a provider cannot be built.
    """
    memory = _peeked(settings, around)
    machinery = Machinery(settings, around, own_id=own_instance_id)
    return _pass(machinery, TracelessNotebook(memory), memory, None, confirmation_given=True).run()


def audit_sweep(settings: Settings, around: Surroundings) -> AuditReport:
    """Run one sweep over everything that runs. It writes nothing anywhere, and can terminate nothing.

    Raises:
        ProviderSetupError: if a provider cannot be built.
    """
    return sweep(Machinery(settings, around, own_id=own_instance_id), Turn())


def sweep(machinery: Machinery, turn: Turn) -> AuditReport:
    """Run one sweep with clients that stay, judged with what earlier ones saw. It writes nothing.

    Raises:
        ProviderSetupError: if a provider cannot be built.
    """
    settings, around = machinery.settings, machinery.around
    lister = machinery.lister(_peeked(settings, around).scopes)
    return Auditor(
        auditor=lister,
        policy=build_audit_policy(settings),
        clock=around.clock,
        deadline=settings.reconcile.deadline,
        stopping=around.stopping,
        pass_id=turn.pass_id,
        remembered=_remembered_starts(settings, around),
        clock_step=turn.clock_step,
    ).run()


def daemon_sweep(machinery: Machinery, turn: Turn) -> AuditReport:
    """Run one sweep, and keep its record and what it taught if we lead: of two daemons on one ledger, one tells.

    Raises:
        ProviderSetupError: if a provider cannot be built.
    """
    report = sweep(machinery, turn)
    if turn.lease is None:
        return report
    clock = machinery.around.clock
    announced: Announced | None = None
    try:
        with open_ledger_of(machinery.settings, machinery.around) as ledger, ledger.transaction():
            # A sweep takes minutes: who leads now may be somebody else.
            if ledger.holds_lease(turn.lease, clock.now()):
                ledger.record(record_of_sweep(report))
                ledger.remember_audited(report.learned)
                announced = _told(machinery, turn, ledger, report)
    except LedgerUnusableError as error:
        # A sweep decides nothing, so what it saw is told all the same; the next pass says that the ledger is unusable.
        machinery.around.warn(f"the sweep could not be recorded: {error}")
        return report
    if announced is not None:
        machinery.around.announced(announced)
    return report


def tell(machinery: Machinery, telling: Telling, lease: Lease) -> bool:
    """Tell something through the ledger that no pass has found; say whether that could be."""
    clock = machinery.around.clock
    try:
        with open_ledger_of(machinery.settings, machinery.around) as ledger:
            announced = ledger.alarms.tell(telling, build_watch(machinery.settings), lease=lease, now=clock.now())
    except LedgerUnusableError:
        # The next pass says so, directly.
        return False
    if announced is not None:
        machinery.around.announced(announced)
    return announced is not None


def open_ledger_of(settings: Settings, around: Surroundings) -> Ledger:
    """Open the ledger of these settings; migrate it if need be, and create it unless a certain one is meant.

    Raises:
        LedgerUnusableError: if it cannot be used, or is not the one that the process began with.
    """
    return ledger_of(settings, around.clock, around.ledger_id)


def ledger_of(settings: Settings, clock: SystemClock, ledger_id: str | None = None) -> Ledger:
    """Open the ledger of these settings, for a process that runs once; as open_ledger_of."""
    return open_ledger(
        settings.ledger_path,
        deployment=settings.deployment,
        owner_tag=settings.tag_keys.owner,
        now=clock.now(),
        ledger_id=ledger_id,
    )


def _with_ledger(machinery: Machinery, ledger: Ledger, turn: Turn, *, rehearse: bool) -> PassReport:
    settings, around = machinery.settings, machinery.around
    try:
        memory = ledger.recall(around.clock.now())
    except LedgerUnusableError as error:
        return _without_ledger(machinery, error, turn, rehearse=rehearse)
    bell = Bell(watch=build_watch(settings), clock=around.clock, announced=around.announced)
    notebook = LeasedNotebook(ledger, turn.lease, bell)
    door = None if rehearse else notebook
    report = _taking(turn, _pass(machinery, notebook, memory, door)).run()
    if RefusalReason.CLOCK not in {report.reason, *report.also}:
        # By a clock that is far ahead, everything would be old.
        _forget(ledger, settings, around)
    return report


def _told(machinery: Machinery, turn: Turn, ledger: Ledger, report: AuditReport) -> Announced | None:
    if turn.lease is None:
        return None
    watch, now = build_watch(machinery.settings), machinery.around.clock.now()
    return ledger.alarms.tell(told_of_sweep(report), watch, lease=turn.lease, now=now)


def _without_ledger(machinery: Machinery, error: LedgerUnusableError, turn: Turn, *, rehearse: bool) -> PassReport:
    broken = _taking(turn, _pass(machinery, BrokenNotebook(error), Memory(), None))
    return replace(broken, mode=Mode.DRY_RUN if rehearse else Mode.ENFORCE).run()


def _taking(turn: Turn, reconciler: Reconciler) -> Reconciler:
    return replace(reconciler, clock_step=turn.clock_step, pass_id=turn.pass_id)


def _pass(
    machinery: Machinery,
    notebook: Notebook,
    memory: Memory,
    door: LeasedNotebook | None,
    *,
    confirmation_given: bool = False,
) -> Reconciler:
    """Return a pass. Without a door it is a rehearsal: there is no terminator anywhere in it."""
    settings, around = machinery.settings, machinery.around
    return Reconciler(
        lister=machinery.lister(memory.scopes),
        registry=build_registry(settings),
        notebook=notebook,
        hands=_enforcer(machinery, door) if door is not None else Rehearsal(),
        policy=machinery.policy(confirmation_given=confirmation_given),
        mode=Mode.DRY_RUN if door is None else Mode.ENFORCE,
        clock=around.clock,
        deadline=settings.reconcile.deadline,
        stopping=around.stopping,
    )


def _enforcer(machinery: Machinery, door: LeasedNotebook) -> Enforcer:
    return Enforcer(
        terminator=machinery.terminator(),
        registry=build_registry(machinery.settings),
        intents=door,
        clock=machinery.around.clock,
        stopping=machinery.around.stopping,
        pacer=machinery.pacer,
    )


def _taken(ledger: Ledger, settings: Settings, around: Surroundings) -> Lease | None:
    taken = ledger.take_lease(current(), settings.lease.ttl, around.clock.now())
    if isinstance(taken, Lease):
        return taken
    around.warn(f"process {taken.pid} on {taken.host} holds the lease: looking only")
    return None


def _forget(ledger: Ledger, settings: Settings, around: Surroundings) -> None:
    try:
        ledger.forget(settings.ledger.keep, around.clock.now())
    except LedgerUnusableError as error:
        # The pass is over and its report stands; the next one will say that the ledger is unusable.
        around.warn(f"old records could not be dropped: {error}")


def _given_back(ledger: Ledger, lease: Lease, around: Surroundings) -> None:
    try:
        ledger.release_lease(lease, around.clock.now())
    except LedgerUnusableError as error:
        # It runs out by itself; the pass is over and its report stands.
        around.warn(f"the lease could not be given back: {error}")


def _remembered_starts(settings: Settings, around: Surroundings) -> Starts:
    try:
        return peek_starts(
            settings.ledger_path,
            deployment=settings.deployment,
            owner_tag=settings.tag_keys.owner,
            busy_timeout=PEEK_TIMEOUT,
        )
    except LedgerUnusableError as error:
        around.warn(f"looking without knowing since when machines run: {error}")
        return NO_STARTS


def _peeked(settings: Settings, around: Surroundings) -> Memory:
    try:
        memory = peek(
            settings.ledger_path,
            deployment=settings.deployment,
            owner_tag=settings.tag_keys.owner,
            busy_timeout=PEEK_TIMEOUT,
            now=around.clock.now(),
        )
    except LedgerUnusableError as error:
        around.warn(f"planning without the ledger's memory: {error}")
        return Memory()
    return memory
