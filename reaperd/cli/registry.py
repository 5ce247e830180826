"""`registry`: the worker registry from a shell, for control planes that are scripts, and for people."""

from __future__ import annotations

import click

from reaperd.cli.lazy import LazyGroup

COMMANDS = {
    "init": "reaperd.cli.registry_file:init",
    "add": "reaperd.cli.registry_rows:add",
    "set-place": "reaperd.cli.registry_rows:set_place",
    "set-instance": "reaperd.cli.registry_rows:set_instance",
    "set-state": "reaperd.cli.registry_rows:set_state",
    "heartbeat": "reaperd.cli.registry_rows:heartbeat",
    "remove": "reaperd.cli.registry_rows:remove",
    "list": "reaperd.cli.registry_file:list_",
    "verify": "reaperd.cli.registry_file:verify",
    "migrate": "reaperd.cli.registry_file:migrate",
    "backup": "reaperd.cli.registry_file:backup",
    "import": "reaperd.cli.registry_import:import_",
    "trust": "reaperd.cli.trust:trust",
}


@click.group(cls=LazyGroup, lazy=COMMANDS)
def registry() -> None:
    """Read and write the registry of workers.

    The registry is a SQLite file that belongs to the control plane; the
    daemon only reads it. With --path no configuration is needed.

    \b
    The life of a worker:
      reaperd registry add w-17 --provider aws --region us-east-1
      reaperd registry set-instance w-17 i-0123456789abcdef0
      reaperd registry heartbeat w-17
      reaperd registry set-state w-17 completed
    """
