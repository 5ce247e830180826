"""`alerts list`, `alerts test` and `alerts flush`: who was told what, and whether the channels work."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reaperd.cli.lazy import LazyGroup
from reaperd.cli.options import Format, config_option, everything_option, exits, fail, format_option, load_settings, say
from reaperd.cli.output import blank_paper, put, put_json, troubles
from reaperd.cli.surroundings import patience
from reaperd.clock import SystemClock
from reaperd.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from reaperd.config import Settings
    from reaperd.core.telling import Alarmed
    from reaperd.process import ProcessIdentity

COMMANDS = {
    "list": "reaperd.cli.alarms:list_",
    "test": "reaperd.cli.alarms:test",
    "flush": "reaperd.cli.alarms:flush",
}

FLUSH_PATIENCE = timedelta(seconds=60)
"""How long a flush goes on itself."""
DAEMON_PATIENCE = timedelta(seconds=30)
"""How long a flush waits for the daemon that holds the lease: it looks every five seconds, and each try takes ten."""
_GLANCE_SECONDS = 0.2


@click.group(cls=LazyGroup, lazy=COMMANDS)
def alerts() -> None:
    """Show open alerts, and try the channels.

    \b
    Examples:
      reaperd alerts list          what is open, and who was told?
      reaperd alerts test          does every channel work?
      reaperd alerts flush         try now what could not be delivered
    """


@click.command("list")
@config_option
@format_option
@everything_option
@exits
def list_(config: Path | None, format_: Format, *, everything: bool) -> None:
    """Show what is open, who was told, and what waits for its channel.

    Reads the ledger alone, and leaves no trace. CSV has the alerts only.

    \b
    Examples:
      reaperd alerts list
      reaperd alerts list --format json | jq '.waiting[].last_error'

    \b
    Exit codes: 0 shown, alerts or not; 1 there is no ledger, or it cannot be
    read; 78 bad configuration.
    """
    from reaperd.report.alarms import alarms_document, alarms_sheet, draw_alarms  # noqa: PLC0415 - heavy

    kept, now = _kept(load_settings(config)), SystemClock().now()
    match format_:
        case Format.JSON:
            put_json(alarms_document(kept, now))
        case Format.CSV:
            put(alarms_sheet(kept, now))
        case Format.TABLE:
            paper = blank_paper()
            draw_alarms(kept, paper, now, everything=everything)
            put(paper.text())


@click.command()
@click.option("--channel", "names", metavar="NAME", multiple=True, help="Only this one; may be given again.")
@config_option
@exits
def test(names: tuple[str, ...], config: Path | None) -> None:
    """Send a test through every channel, and say which took it.

    The message says that it is a test and that nothing is wrong. It goes out
    at once, beside a running daemon too, and is kept nowhere. In Alertmanager
    it is an alert of severity info that ends after five minutes.

    \b
    Examples:
      reaperd alerts test
      reaperd alerts test --channel on-call

    \b
    Exit codes: 0 every channel took it; 1 one did not, or there is none;
    2 there is no channel of that name; 78 bad configuration.
    """
    from reaperd.wiring.alerting import build_lines  # noqa: PLC0415 - heavy
    from reaperd.wiring.delivering import tried  # noqa: PLC0415

    settings, clock = load_settings(config), SystemClock()
    lines = build_lines(settings, clock, troubles(least="info"))
    if not lines:
        fail("no channel is configured: see [[alerts.channels]] in docs/alerting.md", ExitCode.ERROR)
    known = {line.name for line in lines}
    if unknown := [name for name in names if name not in known]:
        msg = f"there is no channel {unknown[0]!r}; there are: {', '.join(sorted(known))}"
        raise click.BadParameter(msg, param_hint="'--channel'")
    results = tried([line for line in lines if not names or line.name in names], clock)
    paper = blank_paper()
    for name, trouble in results.items():
        paper.line(f"{name}: {f'FAILED: {trouble}' if trouble else 'took it'}", "bold red" if trouble else "green")
    put(paper.text())
    if any(results.values()):
        raise click.exceptions.Exit(ExitCode.ERROR)


@click.command()
@config_option
@exits
def flush(config: Path | None) -> None:
    """Try at once everything that waits for its channel.

    Whatever the next try is set to, and whatever quiet a receiver asked for.
    While a daemon runs, it does the sending, so that nothing is sent twice:
    this waits and says what came of it. Otherwise this takes the lease.

    \b
    Example:
      reaperd alerts flush

    \b
    Exit codes: 0 nothing waits any more; 1 something does, or there is no
    ledger; 78 bad configuration.
    """
    from reaperd.ledger.existing import open_existing  # noqa: PLC0415 - heavy
    from reaperd.report.alarms import draw_alarms  # noqa: PLC0415
    from reaperd.wiring.delivering import build_errands  # noqa: PLC0415

    settings, clock = load_settings(config), SystemClock()
    log = troubles()
    errands = build_errands(settings, clock, log, troubles(least="info"))
    owner = settings.tag_keys.owner
    with open_existing(
        settings.ledger_path, deployment=settings.deployment, owner_tag=owner, now=clock.now()
    ) as ledger:
        waiting = ledger.alarms.make_due(clock.now())
    if not waiting:
        put("Nothing waits.\n")
        return
    with patience() as asked:
        holder = errands.bring(FLUSH_PATIENCE, asked.is_set)
        if holder is not None:
            _wait_for(holder, settings, clock, asked.is_set)
    kept = _kept(settings)
    put(f"{waiting - len(kept.waiting):,} of {waiting:,} delivered\n" if len(kept.waiting) <= waiting else "")
    if kept.waiting:
        paper = blank_paper()
        draw_alarms(kept, paper, clock.now(), everything=False)
        put(paper.text())
        raise click.exceptions.Exit(ExitCode.ERROR)


def _wait_for(holder: ProcessIdentity, settings: Settings, clock: SystemClock, stopping: Callable[[], bool]) -> None:
    """Wait until another process has tried everything."""
    say(f"process {holder.pid} on {holder.host} holds the lease and does the sending: waiting for it")
    ends_at = clock.monotonic() + DAEMON_PATIENCE.total_seconds()
    while clock.monotonic() < ends_at and not stopping():
        waiting = _kept(settings).waiting
        if all(each.next_try_at > clock.now() for each in waiting):
            # Delivered, or tried in vain and put off.
            return
        clock.sleep(_GLANCE_SECONDS)


def _kept(settings: Settings) -> Alarmed:
    from reaperd.ledger.existing import kept_alarms  # noqa: PLC0415 - heavy

    owner = settings.tag_keys.owner
    return kept_alarms(settings.ledger_path, deployment=settings.deployment, owner_tag=owner)
