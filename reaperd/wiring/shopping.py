"""The clouds from the side of whoever launches: behind the operator's gates, and together."""

from __future__ import annotations

from pathlib import Path

from providers.aws import AwsLaunchOptions, aws_provider, aws_type_lister
from providers.base import Clock, InstanceTypeLister, Log, Provider
from providers.errors import GateFileError, ProviderSetupError
from providers.gated import gated
from providers.gatefile import FileGate
from providers.multicloud import MultiCloudProvider
from reaperd.config import AwsProviderTable, ProviderTable, Settings
from reaperd.wiring.clouds import aws_options, plugin


def gate_path(settings: Settings) -> Path:
    """Return where the gates of this deployment stand."""
    return settings.state_dir / "gate.json"


def open_gate(settings: Settings) -> FileGate:
    """Return the gates of this deployment. Without a file every cloud is off."""
    return FileGate(gate_path(settings))


def writable_gate(settings: Settings) -> FileGate:
    """Return the gates, with a folder for their file.

    Raises:
        GateFileError: if there can be none.
    """
    path = gate_path(settings)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        msg = f"{path}: the gate was not changed: {error}"
        raise GateFileError(msg) from error
    return FileGate(path)


def build_shop(settings: Settings, clock: Clock, log: Log, *, registry_id: str | None = None) -> MultiCloudProvider:
    """Return what quotes and launches on every configured cloud whose gate is open. It is no part of a pass.

    `registry_id` becomes a tag of what is launched. A plug-in without that ability is left out, and the log is told.

    Raises:
        ProviderSetupError: if a provider cannot be built, or none can launch.
    """
    gate = open_gate(settings)
    children: list[Provider] = []
    for table in settings.providers:
        made = _made(settings, table, clock, registry_id)
        if made is None:
            log.warning("provider_cannot_launch", provider=table.name, detail=_serves_the_reaper(table))
            continue
        children.append(gated(table.name, made, gate, log))
    if not children:
        raise ProviderSetupError(" ".join(map(_serves_the_reaper, settings.providers)))
    return MultiCloudProvider("clouds", *children, clock=clock, timeout=settings.reconcile.deadline)


def build_type_listers(settings: Settings, clock: Clock) -> tuple[tuple[InstanceTypeLister, ...], tuple[str, ...]]:
    """Return who has a list of types, and the names of the providers that have none.

    No gate is asked: a price list is no offer.

    Raises:
        ProviderSetupError: if a provider cannot be built.
    """
    made = [(table.name, _type_lister(settings, table, clock)) for table in settings.providers]
    listers = tuple(lister for _, lister in made if lister is not None)
    return listers, tuple(name for name, lister in made if lister is None)


def _type_lister(settings: Settings, table: ProviderTable, clock: Clock) -> InstanceTypeLister | None:
    if isinstance(table, AwsProviderTable):
        return aws_type_lister(aws_options(settings, table), clock=clock)
    made = plugin(settings, table)
    return made if isinstance(made, InstanceTypeLister) else None


def build_provider(
    settings: Settings, table: ProviderTable, clock: Clock, *, registry_id: str | None = None
) -> Provider:
    """Return the whole of one provider, without a gate.

    Raises:
        ProviderSetupError: if it cannot be built, or cannot launch.
    """
    made = _made(settings, table, clock, registry_id)
    if made is None:
        raise ProviderSetupError(_serves_the_reaper(table))
    return made


def _made(settings: Settings, table: ProviderTable, clock: Clock, registry_id: str | None) -> Provider | None:
    """Return the whole of one provider; None for a plug-in that is none."""
    if isinstance(table, AwsProviderTable):
        return aws_provider(aws_options(settings, table), clock=clock, how=AwsLaunchOptions(registry_id=registry_id))
    made = plugin(settings, table)
    return made if isinstance(made, Provider) else None


def _serves_the_reaper(table: ProviderTable) -> str:
    return f"provider {table.name!r} of type {table.type!r} cannot quote and launch: it serves the reaper alone."
