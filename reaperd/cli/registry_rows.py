"""`registry add`, `set-place`, `set-instance`, `set-state`, `heartbeat` and `remove`: one row each."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import click

from reaperd.cli.options import config_option, exits, fail, say
from reaperd.cli.output import put
from reaperd.cli.registry_target import Target, path_option, target
from reaperd.errors import ExitCode
from reaperd.report.visible import visible
from registry.errors import RegistryWriteError
from registry.model import Worker, WorkerState

_states = click.Choice([str(state) for state in WorkerState])


@click.command()
@click.argument("worker")
@click.option("--provider", required=True, help="The name of a [[providers]] table, exactly.")
@click.option("--region", required=True, help="The region, as the cloud spells it.")
@click.option("--zone", default=None, help="Where in the region it is launched; a launch that goes on begins there.")
@click.option("--instance-id", default=None, help="The machine, when it is known already.")
@click.option("--state", type=_states, default=str(WorkerState.LAUNCHING), show_default=True, help="Its state.")
@click.option("--model", default=None, help="What it serves; only shown.")
@path_option
@config_option
@exits
def add(  # noqa: PLR0913 - one option a column
    worker: str,
    *,
    provider: str,
    region: str,
    zone: str | None,
    instance_id: str | None,
    state: str,
    model: str | None,
    path: Path | None,
    config: Path | None,
) -> None:
    """Add a worker, before its machine is launched.

    WORKER is the id that the machine will carry in its worker tag. A
    launching row without an instance id protects any machine with that tag
    for registry.launching_ttl.

    \b
    Examples:
      reaperd registry add w-17 --provider aws --region us-east-1
      reaperd registry add w-17 --provider aws --region us-east-1 \\
        --instance-id i-0123456789abcdef0 --state running

    \b
    Exit codes: 0 added; 1 the worker is there already, or the file cannot be
    written; nothing was changed then.
    """
    row = Worker(
        worker_id=worker,
        provider=provider,
        region=region,
        instance_id=instance_id,
        state=WorkerState(state),
        zone=zone,
        model=model,
    )
    about = target(path, config)
    try:
        about.writer().add(row)
    except RegistryWriteError:
        if about.has(worker):
            fail(f"worker {worker!r} stands in the registry already; nothing was changed", ExitCode.ERROR)
        raise
    _done(f"added {worker} ({state}) in {provider}/{region}" + (f": {instance_id}" if instance_id else ""))
    _warn_of_place(about, worker, provider, region)


@click.command("set-place")
@click.argument("worker")
@click.option("--provider", required=True, help="The name of a [[providers]] table, exactly.")
@click.option("--region", required=True, help="The region, as the cloud spells it.")
@click.option("--zone", default=None, help="Where in the region it is launched.")
@path_option
@config_option
@exits
def set_place(
    worker: str, *, provider: str, region: str, zone: str | None, path: Path | None, config: Path | None
) -> None:
    """Say where a launching worker is launched.

    Only before it has a machine; the time to get one begins anew.

    \b
    Example:
      reaperd registry set-place w-17 --provider aws --region us-east-1

    \b
    Exit codes: 0 done; 1 no such worker, it has a machine or is not launching
    any more, or the file cannot be written; nothing was changed then.
    """
    about = target(path, config)
    about.writer().set_place(worker, provider, region, zone=zone)
    _done(f"{worker} is launched in {provider}/{region}")
    _warn_of_place(about, worker, provider, region)


def _warn_of_place(about: Target, worker: str, provider: str, region: str) -> None:
    """Say so when no machine is looked for in a place: a row that misspells it protects nothing there."""
    known = about.regions
    if known is None:
        return
    if provider not in known:
        there = f"there is {', '.join(known)}"
        say(f"warning: no [[providers]] table is called {provider!r}, so no machine is looked for there; {there}")
    elif (looked_at := known[provider]) is not None and region not in looked_at:
        say(
            f"warning: the [[providers]] table {provider!r} does not list the region {region!r}, so no machine is "
            f"looked for there; it lists {', '.join(looked_at)}. A slip of the pen is corrected by "
            f"`reaperd registry set-place {worker} --provider {provider} --region REGION` while no machine is named"
        )


@click.command("set-instance")
@click.argument("worker")
@click.argument("instance_id")
@path_option
@config_option
@exits
def set_instance(worker: str, instance_id: str, path: Path | None, config: Path | None) -> None:
    """Fill in the machine that the launch brought.

    A launching worker becomes running.

    \b
    Example:
      reaperd registry set-instance w-17 i-0123456789abcdef0

    \b
    Exit codes: 0 done; 1 no such worker, it has another machine, or the file
    cannot be written; nothing was changed then.
    """
    target(path, config).writer().set_instance(worker, instance_id)
    _done(f"{worker} has {instance_id}")


@click.command("set-state")
@click.argument("worker")
@click.argument("state", type=_states)
@path_option
@config_option
@exits
def set_state(worker: str, state: str, path: Path | None, config: Path | None) -> None:
    """Change the state of a worker.

    launching, running and draining protect its machine. completed, failed and
    terminated do not: the machine becomes an orphan (`retired`).

    \b
    Example:
      reaperd registry set-state w-17 completed

    \b
    Exit codes: 0 done; 1 no such worker, or the file cannot be written.
    """
    target(path, config).writer().set_state(worker, WorkerState(state))
    _done(f"{worker} is {state}")


@click.command()
@click.argument("worker")
@path_option
@config_option
@exits
def heartbeat(worker: str, path: Path | None, config: Path | None) -> None:
    """Record that a worker is alive.

    Matters only with registry.heartbeat_ttl.

    \b
    Example:
      reaperd registry heartbeat w-17

    \b
    Exit codes: 0 done; 1 no such worker, or the file cannot be written.
    """
    target(path, config).writer().heartbeat(worker)
    _done(f"{worker} is alive")


@click.command()
@click.argument("worker")
@path_option
@config_option
@exits
def remove(worker: str, path: Path | None, config: Path | None) -> None:
    """Delete the row of a worker.

    A machine that a look found by this row is held for registry.vanish_grace
    and then terminated; one that no look knew goes without it. To retire a
    worker, set its state instead.

    \b
    Example:
      reaperd registry remove w-17

    \b
    Exit codes: 0 done; 1 no such worker, or the file cannot be written.
    """
    about = target(path, config)
    about.writer().remove(worker)
    grace = "registry.vanish_grace" if about.settings is None else _spelt(about.settings.registry.vanish_grace)
    _done(f"removed {worker}; a machine that a look found by it is held for {grace}, and is an orphan then")


def _spelt(duration: timedelta) -> str:
    from reaperd.config.durations import format_duration  # noqa: PLC0415 - heavy

    return format_duration(duration)


def _done(text: str) -> None:
    put(f"{visible(text)}\n")
