"""A test cloud as a process: `python -m tests.support.ec2 --port 0 --fleet fleet.json`."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from tests.support.ec2.cloud import FaultyEc2


@click.command()
@click.option("--port", default=0, help="0 takes a free one; the first line printed is the URL.")
@click.option("--fleet", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="JSON; see the README.")
@click.option("--moto", is_flag=True, help="moto behind the faults instead of the cloud of our own.")
def main(port: int, fleet: Path | None, *, moto: bool) -> None:
    """Serve on 127.0.0.1 until interrupted."""
    plan = json.loads(fleet.read_text(encoding="utf-8")) if fleet else {}
    # Half a second that only --moto should pay.
    kind = import_module("tests.support.ec2.layer").MotoCloud if moto else FaultyEc2
    with kind(port=port, **plan.get("cloud", {})) as cloud:
        apply_commands(cloud, plan)
        click.echo(cloud.url)
        try:
            cloud.server.join()
        except KeyboardInterrupt:
            return


def apply_commands(cloud: Any, plan: dict[str, Any]) -> None:
    """Do what the file says: its `instances`, its `faults`, then its `commands` as for /_control."""
    for instance in plan.get("instances", []):
        cloud.add_instance(**instance)
    for fault in plan.get("faults", []):
        cloud.fault(**fault)
    for command in plan.get("commands", []):
        cloud.control(command)


if __name__ == "__main__":
    main()
