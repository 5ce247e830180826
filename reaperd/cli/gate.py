"""`gate`: the switch in front of a cloud's launches."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reaperd.cli.asking import who
from reaperd.cli.options import Format, config_option, exits, format_option, load_settings, reason_option, say
from reaperd.cli.output import blank_paper, put, put_json
from reaperd.clock import SystemClock
from reaperd.errors import LedgerUnusableError
from reaperd.report.visible import visible

if TYPE_CHECKING:
    from providers.gatefile import Closure
    from reaperd.config import Settings


@click.group()
def gate() -> None:
    """Switch launches onto a cloud on and off.

    A gate is asked at every quote and every launch, so that it holds at once.
    Looking and ending are never gated: what is switched off is still cleaned
    up. Without the file of the gates, or if it cannot be read, every cloud is
    off.

    \b
    Examples:
      reaperd gate on aws
      reaperd gate off aws --reason "credentials leaked"
    """


@gate.command("on")
@click.argument("cloud")
@reason_option
@config_option
@exits
def on(cloud: str, reason: str, config: Path | None) -> None:
    """Let a cloud be launched onto.

    CLOUD is the name of a [[providers]] table. It stands in the history, if
    there is a ledger.

    \b
    Example:
      reaperd gate on aws --reason "the credentials are new"

    \b
    Exit codes: 0 it is on; 1 the gates cannot be read or written: it is off;
    2 no such cloud; 78 bad configuration.
    """
    from reaperd.wiring.shopping import writable_gate  # noqa: PLC0415 - heavy

    settings, now = _about(cloud, config), SystemClock().now()
    writable_gate(settings).turn_on(cloud)
    put(f"{visible(cloud)} is on\n")
    _keep(settings, cloud, reason, now, on=True)


@gate.command("off")
@click.argument("cloud")
@reason_option
@config_option
@exits
def off(cloud: str, reason: str, config: Path | None) -> None:
    """Stop every quote and launch of a cloud, now.

    CLOUD is the name of a [[providers]] table. Its machines stay; end them
    with `reaperd registry set-state`. It stands in the history, if there is a
    ledger.

    \b
    Example:
      reaperd gate off aws --reason "credentials leaked"

    \b
    Exit codes: 0 it is off; 1 THAT IS NOT SURE: the gates cannot be read or
    written; 2 no such cloud; 78 bad configuration.
    """
    from reaperd.wiring.shopping import writable_gate  # noqa: PLC0415 - heavy

    settings, now = _about(cloud, config), SystemClock().now()
    told = f"{reason} ({who()})" if reason else who()
    writable_gate(settings).turn_off(cloud, reason=told, at=now)
    put(f"{visible(cloud)} is off\n")
    _keep(settings, cloud, reason, now, on=False)


@gate.command("list")
@format_option
@config_option
@exits
def list_(format_: Format, config: Path | None) -> None:
    """List the clouds, and which of them are off.

    \b
    Example:
      reaperd gate list

    \b
    Exit codes: 0 listed; 1 the gates cannot be read: every cloud is off;
    78 bad configuration.
    """
    from reaperd.wiring.shopping import open_gate  # noqa: PLC0415 - heavy

    settings = load_settings(config)
    closed = open_gate(settings).closed()
    names = dict.fromkeys([*_clouds(settings), *sorted(closed)])
    rows = [_row(name, closed.get(name)) for name in names]
    match format_:
        case Format.JSON:
            put_json({"kind": "gates", "clouds": rows})
        case Format.CSV:
            from reaperd.report.sheet import sheet  # noqa: PLC0415 - heavy

            put(sheet(("cloud", "on", "since", "reason"), rows))
        case Format.TABLE:
            paper = blank_paper()
            shown = [(str(row["cloud"]), "on" if row["on"] else "off", *_why(row)) for row in rows]
            paper.rows(("CLOUD", "GATE", "SINCE", "REASON"), shown)
            put(paper.text())


def _keep(settings: Settings, cloud: str, reason: str, now: datetime, *, on: bool) -> None:
    """Write a switch that was made into the history. It does not depend on that: it works without a ledger."""
    from reaperd.ledger.connection import Wanted  # noqa: PLC0415 - heavy
    from reaperd.ledger.switches import Switch, keep_switch  # noqa: PLC0415

    wanted = Wanted(deployment=settings.deployment, owner_tag=settings.tag_keys.owner)
    try:
        keep_switch(settings.ledger_path, wanted, Switch(cloud=cloud, on=on, by=who(), reason=reason, at=now))
    except LedgerUnusableError as error:
        say(f"this is not in the history: {error}")


def _about(cloud: str, config: Path | None) -> Settings:
    settings = load_settings(config)
    if cloud not in _clouds(settings):
        msg = f"no [[providers]] table is called {cloud!r}; there is {', '.join(_clouds(settings))}"
        raise click.BadParameter(msg, param_hint="CLOUD")
    return settings


def _clouds(settings: Settings) -> tuple[str, ...]:
    return tuple(table.name for table in settings.providers)


def _row(cloud: str, closure: Closure | None) -> dict[str, object]:
    since = None if closure is None else closure.since.isoformat(timespec="seconds")
    return {"cloud": cloud, "on": closure is None, "since": since, "reason": closure.reason if closure else None}


def _why(row: dict[str, object]) -> tuple[str, str]:
    return (str(row["since"] or "-"), str(row["reason"] or "-"))
