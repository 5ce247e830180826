"""`doctor`: everything that a pass needs, each line with its remedy."""

from __future__ import annotations

import os
from pathlib import Path

import click

from reaperd.cli.check import require_plugins
from reaperd.cli.options import Format, config_option, exits, format_option, load_settings
from reaperd.cli.output import show_findings, whereabouts
from reaperd.cli.surroundings import onlooking


@click.command()
@config_option
@format_option
@exits
def doctor(config: Path | None, format_: Format) -> None:
    """Look over everything that a pass needs.

    After the file: the host, the ledger, the HTTP server, the credentials, each
    account and region, the permissions, the clocks and the registry; and
    whether the organization has accounts without a table, where a role may ask
    (iam-policy --organization). Each line is ok, a warning or a failure, with
    what to do about it.

    Changes nothing: whether machines could be terminated, and their spot
    requests cancelled, is asked with DryRun, of the 20 oldest of ours in each
    region, by an object that can send nothing else. The daemon's address is
    listened at for a moment. Run it as the user of the daemon; with our units
    that is what reaperd-doctor.service does.

    \b
    Examples:
      reaperd doctor
      reaperd doctor --format json
      systemctl start reaperd-doctor    its lines are in the journal

    \b
    Exit codes: 0 nothing failed, warnings or not; 1 something failed;
    78 bad configuration.
    """
    from reaperd.cli.exits import code_of_doctor  # noqa: PLC0415 - heavy
    from reaperd.config import config_path  # noqa: PLC0415
    from reaperd.wiring.doctor import examined  # noqa: PLC0415

    settings = load_settings(config)
    require_plugins(settings, config)
    with onlooking() as around:
        findings = examined(settings, config_path(config, os.environ), around.clock)
    show_findings(findings, format_, whereabouts(config, settings, recorded=True))
    raise click.exceptions.Exit(code_of_doctor(findings))
