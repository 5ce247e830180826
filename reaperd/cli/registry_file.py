"""`registry init`, `list`, `verify`, `migrate` and `backup`: the file as a whole."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from reaperd.cli.options import Format, config_option, exits, format_option, load_settings, say
from reaperd.cli.output import blank_paper, put, put_json
from reaperd.cli.registry_target import Target, path_option, target
from reaperd.clock import SystemClock
from reaperd.errors import ExitCode, LedgerUnusableError
from reaperd.report.visible import visible
from registry.model import WorkerState

if TYPE_CHECKING:
    from reaperd.config import Settings
    from reaperd.core.model import RefusalReason
    from registry.errors import RegistryUnusableError
    from registry.model import RegistrySnapshot, Worker

_COLUMNS = (
    "worker_id",
    "provider",
    "region",
    "instance_id",
    "state",
    "zone",
    "model",
    "created_at",
    "launched_at",
    "heartbeat_at",
    "updated_at",
)


@click.command()
@click.option("--deployment", default=None, help="Whose it is.  [default: deployment of the configuration]")
@path_option
@config_option
@exits
def init(deployment: str | None, path: Path | None, config: Path | None) -> None:
    """Make a new, empty registry. Never overwrites anything.

    \b
    Examples:
      reaperd registry init
      reaperd registry init --path /var/lib/fleet/registry.db --deployment prod-eu

    \b
    Exit codes: 0 made; 1 something stands there already, or it cannot be
    written; 78 bad configuration.
    """
    from registry.sqlite.admin import create  # noqa: PLC0415 - heavy

    if path is None or deployment is None:
        settings = load_settings(config)
        path, deployment = path or settings.registry.path, deployment or settings.deployment
    made = create(path, deployment)
    put(f"{visible(str(path))}: registry {made.registry_id} of deployment {deployment}, with no workers\n")


@click.command("list")
@click.option(
    "--state",
    "states",
    type=click.Choice([str(state) for state in WorkerState]),
    multiple=True,
    help="Only workers in this state; may be given again.",
)
@path_option
@format_option
@config_option
@exits
def list_(states: tuple[str, ...], path: Path | None, format_: Format, config: Path | None) -> None:
    """List the workers, all of them.

    \b
    Examples:
      reaperd registry list --state running --state draining
      reaperd registry list --path registry.db --format csv

    \b
    Exit codes: 0 listed; 1 the registry cannot be used.
    """
    snapshot = _read(target(path, config))
    workers = [worker for worker in snapshot.workers if not states or str(worker.state) in states]
    match format_:
        case Format.JSON:
            put_json({**_identity(snapshot), "workers": [_row(worker) for worker in workers]})
        case Format.CSV:
            from reaperd.report.sheet import sheet  # noqa: PLC0415 - heavy

            put(sheet(_COLUMNS, map(_row, workers)))
        case Format.TABLE:
            put(_table(snapshot, workers))


@click.command()
@path_option
@config_option
@exits
def verify(path: Path | None, config: Path | None) -> None:
    """Say whether the daemon would accept the registry.

    Reads the whole file as the daemon does and changes nothing. With a
    configuration it also checks that the file is of this deployment, is the one
    that the ledger knows and is not silent for too long. No cloud is asked.

    \b
    Examples:
      reaperd registry verify
      reaperd registry verify --path /var/lib/fleet/registry.db

    \b
    Exit codes: 0 it would be accepted; 1 it would not, with the fault and what
    to do; 78 bad configuration.
    """
    from registry.errors import RegistryUnusableError  # noqa: PLC0415 - heavy
    from registry.sqlite import verify as prove  # noqa: PLC0415

    about = target(path, config)
    try:
        snapshot = prove(about.path, about.busy_timeout)
    except RegistryUnusableError as error:
        _reject(about, str(error.fault), error.detail, f"{_remedy(error, about, config)}.")
    found = snapshot.identity.deployment
    if about.deployment not in {None, found}:
        advice = "Correct registry.path, or deployment: another deployment's registry cannot be trusted."
        told = f"it belongs to {found!r}, and the configuration says {about.deployment!r}: one is wrong"
        _reject(about, "another deployment", told, advice)
    _compare(about, config)
    put(f"OK {visible(str(about.path))}: {_summary(snapshot)}\n")
    for worker in snapshot.workers:
        if worker.unreadable:
            say(f"worker {worker.worker_id}: {', '.join(worker.unreadable)} cannot be read as a time; the row protects")


@click.command()
@path_option
@config_option
@exits
def migrate(path: Path | None, config: Path | None) -> None:
    """Bring the registry to the current schema.

    Puts back what is missing of it, triggers and marks included.

    \b
    Example:
      reaperd registry migrate --path /var/lib/fleet/registry.db

    \b
    Exit codes: 0 done, or nothing to do; 1 it is no registry, is newer, or
    cannot be written; nothing was changed then.
    """
    from registry.sqlite.admin import migrate as bring_up_to_date  # noqa: PLC0415 - heavy

    about = target(path, config)
    done = bring_up_to_date(about.path, busy_timeout=about.busy_timeout)
    put(f"{visible(str(about.path))}: {', '.join(done) or 'nothing to do'}\n")


@click.command()
@click.argument("to", type=click.Path(path_type=Path))
@path_option
@config_option
@exits
def backup(to: Path, path: Path | None, config: Path | None) -> None:
    """Copy the whole registry to a new file, while writers go on.

    A backup that is put back is an older copy: the daemon refuses it until
    `reaperd registry trust`.

    \b
    Example:
      reaperd registry backup /backup/registry-2026-01-10.db

    \b
    Exit codes: 0 copied; 1 the registry cannot be used, or something stands
    there already.
    """
    from registry.sqlite.admin import backup as copy  # noqa: PLC0415 - heavy

    about = target(path, config)
    copy(about.path, to, busy_timeout=about.busy_timeout)
    put(f"copied to {visible(str(to))}\n")


# ---------------------------------------------------------------- what is told of a bad one


_SILENT = (
    "Start the control plane, or set the clock that is wrong (`timedatectl status`): its next write ends this. If it "
    "has nothing to write, let it send heartbeats, or raise registry.max_silence."
)


def _remedy(error: RegistryUnusableError, about: Target, config: Path | None) -> str:
    from reaperd.cli.output import whereabouts  # noqa: PLC0415 - heavy
    from reaperd.report.remedies import naming_its_configuration  # noqa: PLC0415

    if about.settings is None:
        return error.remedy
    return naming_its_configuration(error.remedy, whereabouts(config, about.settings, recorded=True))


def _compare(about: Target, config: Path | None) -> None:
    """Hold the registry to what the configuration and the ledger say of it."""
    from reaperd.wiring.registry_check import doubts  # noqa: PLC0415 - heavy

    if about.settings is None:
        return
    try:
        found = doubts(about.settings, about.path, SystemClock())
    except LedgerUnusableError as error:
        say(f"not compared with what the ledger knows: {error}")
        return
    for reason, detail in found:
        _reject(about, str(reason), detail, *_ways_out(reason, about.settings, config))


def _ways_out(reason: RefusalReason, settings: Settings, config: Path | None) -> tuple[str, ...]:
    from reaperd.cli.output import whereabouts  # noqa: PLC0415 - heavy
    from reaperd.core.model import RefusalReason  # noqa: PLC0415
    from reaperd.report.remedies import REFUSED  # noqa: PLC0415

    if reason is RefusalReason.REGISTRY_UNUSABLE:
        return (_SILENT,)
    remedy = REFUSED[reason]
    _, *next_ones = remedy.typed(whereabouts(config, settings, recorded=True), None)
    return (remedy.advice, *(f"`{command}`" for command in next_ones))


def _reject(about: Target, fault: str, *told: str) -> NoReturn:
    """Say what is wrong with the file and what to do, and end the command."""
    paper = blank_paper()
    paper.command(f"reaperd: {about.path}: {fault}", indent=0)
    for text in told:
        paper.line(text, indent=2)
    click.echo(paper.text(), err=True, nl=False)
    raise click.exceptions.Exit(ExitCode.ERROR)


# ---------------------------------------------------------------- what is shown


def _read(about: Target) -> RegistrySnapshot:
    from registry.sqlite import SqliteRegistry  # noqa: PLC0415 - heavy

    return SqliteRegistry(about.path, about.busy_timeout).snapshot()


def _summary(snapshot: RegistrySnapshot) -> str:
    known = snapshot.identity
    live = sum(1 for worker in snapshot.workers if worker.state.is_live)
    rows = f"{len(snapshot.workers):,} row{'' if len(snapshot.workers) == 1 else 's'}, {live:,} live"
    return visible(f"registry {known.registry_id} of deployment {known.deployment}, epoch {known.epoch}: {rows}")


def _table(snapshot: RegistrySnapshot, workers: Iterable[Worker]) -> str:
    from reaperd.report.parts import span  # noqa: PLC0415 - heavy

    now = SystemClock().now()
    paper = blank_paper()
    paper.line(_summary(snapshot))
    rows = [
        (
            worker.worker_id,
            str(worker.state),
            f"{worker.provider}/{worker.region}",
            worker.instance_id or "-",
            worker.model or "-",
            f"{span(now - worker.heartbeat_at)} ago" if worker.heartbeat_at else "-",
        )
        for worker in workers
    ]
    if rows:
        paper.line()
        paper.rows(("WORKER", "STATE", "PLACE", "INSTANCE", "MODEL", "HEARTBEAT"), rows)
    return paper.text()


def _identity(snapshot: RegistrySnapshot) -> dict[str, object]:
    from registry.times import format_time  # noqa: PLC0415 - heavy

    known = snapshot.identity
    return {
        "kind": "registry",
        "registry_id": known.registry_id,
        "deployment": known.deployment,
        "schema_version": known.schema_version,
        "epoch": known.epoch,
        "updated_at": None if known.updated_at is None else format_time(known.updated_at),
    }


def _row(worker: Worker) -> dict[str, object]:
    from registry.times import format_time  # noqa: PLC0415 - heavy

    times = {name: getattr(worker, name) for name in ("created_at", "launched_at", "heartbeat_at", "updated_at")}
    return {
        "worker_id": worker.worker_id,
        "provider": worker.provider,
        "region": worker.region,
        "instance_id": worker.instance_id,
        "state": str(worker.state),
        "zone": worker.zone,
        "model": worker.model,
        **{name: None if moment is None else format_time(moment) for name, moment in times.items()},
        "unreadable": list(worker.unreadable),
    }
