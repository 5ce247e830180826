"""`audit`: one sweep over everything that runs."""

from __future__ import annotations

from pathlib import Path

import click

from reaperd.cli.options import Format, config_option, everything_option, exits, format_option, load_settings
from reaperd.cli.output import logger, show_audit
from reaperd.cli.surroundings import onlooking


@click.command()
@config_option
@format_option
@everything_option
@exits
def audit(config: Path | None, format_: Format, *, everything: bool) -> None:
    """Show the machines that nobody owns and that run too long.

    Looks at everything that runs in the configured accounts, in every enabled
    region. Terminates nothing: it holds nothing that could. Leaves no trace.
    Tells too what the clouds announce: ends of spot machines, hosts that go.

    \b
    Examples:
      reaperd audit
      reaperd audit --format csv > leaks.csv

    \b
    Exit codes: 0 no leaks; 3 leaks; 4 not everything could be looked at (what
    was seen is shown, leaks or not); 5 a wrong clock; 78 bad configuration.
    """
    from reaperd.cli.exits import code_of_audit  # noqa: PLC0415 - heavy
    from reaperd.report.events import log_audit  # noqa: PLC0415
    from reaperd.wiring.passes import audit_sweep  # noqa: PLC0415

    settings = load_settings(config)
    with onlooking() as around:
        report = audit_sweep(settings, around)
    if (log := logger(settings, format_, beside_table=False)) is not None:
        log_audit(log, report)
    show_audit(report, format_, everything=everything)
    raise click.exceptions.Exit(code_of_audit(report))
