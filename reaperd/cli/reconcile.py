"""`once` and `plan`: one reconcile pass, recorded or without a trace."""

from __future__ import annotations

from pathlib import Path

import click

from reaperd.cli.options import Format, config_option, everything_option, exits, format_option, load_settings
from reaperd.cli.output import logger, show_pass, troubles, whereabouts
from reaperd.cli.surroundings import patience, surroundings
from reaperd.clock import SystemClock


@click.command()
@config_option
@format_option
@everything_option
@click.option("--dry-run", is_flag=True, help="Rehearse, whatever the configured mode is.")
@exits
def once(config: Path | None, format_: Format, *, everything: bool, dry_run: bool) -> None:
    """Run one recorded pass in the configured mode.

    Takes the lease, writes what it saw into the ledger and, with
    mode = "enforce", terminates the orphans. People are told last: whatever a
    channel does not take within 10 s is tried by the next run.

    Data goes to stdout. What happened is logged on stderr too, unless a
    person sits there who reads the table.

    \b
    Examples:
      reaperd once --dry-run        rehearse; a plan it records can be approved
      reaperd once --format json    for cron: JSON on stdout, log on stderr

    \b
    Exit codes: 0 done; 1 deferred, or a termination went wrong; 4 a listing
    was incomplete; 5 another refusal; 75 another process holds the lease;
    78 bad configuration.
    """
    from reaperd.cli.exits import code_of_once  # noqa: PLC0415 - heavy
    from reaperd.report.events import log_pass  # noqa: PLC0415
    from reaperd.wiring.delivering import build_errands  # noqa: PLC0415
    from reaperd.wiring.passes import recorded_pass  # noqa: PLC0415

    settings = load_settings(config)
    log = logger(settings, format_, beside_table=True)
    errands = build_errands(settings, SystemClock(), log or troubles(), log or troubles(least="info"))
    with surroundings(errands.announced) as around:
        report = recorded_pass(settings, around, rehearse=dry_run or not settings.enforcing)
    if log is not None:
        log_pass(log, report)
    show_pass(report, format_, whereabouts(config, settings, recorded=True), everything=everything)
    # Last: a person has the result by now, and nothing waits for a channel but the exit.
    with patience() as asked:
        errands.after(report, asked.is_set)
    raise click.exceptions.Exit(code_of_once(report))


@click.command()
@config_option
@format_option
@everything_option
@exits
def plan(config: Path | None, format_: Format, *, everything: bool) -> None:
    """Show what would be terminated, what is held, and why.

    Leaves no trace: no lease, no ledger, no request that changes anything.
    Describe-only credentials are enough. Confirmation over several passes is
    taken as given.

    \b
    Examples:
      reaperd plan
      reaperd plan --format json | jq .plan_digest
      reaperd plan --all --format csv > plan.csv

    \b
    Exit codes: 0 nothing to terminate; 3 something would be terminated;
    4 a listing was incomplete; 5 another refusal; 78 bad configuration.
    """
    from reaperd.cli.exits import code_of_plan  # noqa: PLC0415 - heavy
    from reaperd.report.events import log_pass  # noqa: PLC0415
    from reaperd.wiring.passes import traceless_pass  # noqa: PLC0415

    settings = load_settings(config)
    with surroundings() as around:
        report = traceless_pass(settings, around)
    if (log := logger(settings, format_, beside_table=False)) is not None:
        log_pass(log, report)
    show_pass(report, format_, whereabouts(config, settings, recorded=False), everything=everything)
    raise click.exceptions.Exit(code_of_plan(report))
