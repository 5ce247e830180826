"""Which registry file a command is about, and what opens it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reaperd.cli.options import load_settings

if TYPE_CHECKING:
    from reaperd.config import Settings
    from reaperd.config.tables import AwsProviderTable, PluginProviderTable
    from registry.model import RegistryIdentity
    from registry.sqlite.writer import SqliteRegistryWriter

BUSY_TIMEOUT = timedelta(seconds=5)

path_option = click.option(
    "--path",
    metavar="FILE",
    type=click.Path(path_type=Path),
    default=None,
    help="The registry.  [default: registry.path of the configuration]",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One registry file."""

    path: Path
    deployment: str | None = None
    """Whose it has to be; None: whoever the file says."""
    busy_timeout: timedelta = BUSY_TIMEOUT
    settings: Settings | None = None
    """None when no configuration was read."""

    @property
    def regions(self) -> Mapping[str, tuple[str, ...] | None] | None:
        """Return where machines are looked for: the regions of each cloud that has a name; None when none was read.

        A cloud's own None: those that it calls enabled, or what its plug-in knows.
        """
        if self.settings is None:
            return None
        return {table.name: _listed(table) for table in self.settings.providers}

    def identity(self) -> RegistryIdentity:
        """Return whose the file is, whatever its rows are: a bad row must not keep anybody from correcting it.

        Raises:
            RegistryUnusableError: if it is no registry of our schema.
        """
        from registry.sqlite.reader import read_identity  # noqa: PLC0415 - heavy
        from registry.sqlite.remedies import unusable  # noqa: PLC0415
        from registry.sqlite.schema import prove_schema  # noqa: PLC0415
        from registry.sqlite_readonly import ReadOnlyOpenError, read_whole  # noqa: PLC0415

        try:
            read_whole(self.path, self.busy_timeout, prove_schema)
            return read_whole(self.path, self.busy_timeout, read_identity)
        except ReadOnlyOpenError as error:
            raise unusable(self.path, error) from error

    def has(self, worker_id: str) -> bool:
        """Say whether a worker has a row."""
        from registry.sqlite import SqliteRegistry  # noqa: PLC0415 - heavy

        workers = SqliteRegistry(self.path, self.busy_timeout).snapshot().workers
        return any(worker.worker_id == worker_id for worker in workers)

    def writer(self) -> SqliteRegistryWriter:
        """Return what writes to it."""
        from registry.sqlite.writer import SqliteRegistryWriter  # noqa: PLC0415 - heavy

        deployment = self.deployment or self.identity().deployment
        return SqliteRegistryWriter(self.path, deployment, busy_timeout=self.busy_timeout)


def _listed(table: AwsProviderTable | PluginProviderTable) -> tuple[str, ...] | None:
    # A plug-in's keys are its own, whatever they are called.
    regions: object = getattr(table, "regions", None) if table.type == "aws" else None
    return regions if isinstance(regions, tuple) else None


def target(path: Path | None, config: Path | None) -> Target:
    """Return the file that was named; without a name, or with a configuration, the configured one."""
    if path is not None and config is None:
        return Target(path=path)
    settings = load_settings(config)
    return Target(
        path=path or settings.registry.path,
        deployment=settings.deployment,
        busy_timeout=settings.registry.busy_timeout,
        settings=settings,
    )
