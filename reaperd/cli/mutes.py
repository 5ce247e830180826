"""`mute` and `unmute`: alerts that nobody wants to hear for a while."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reaperd.cli.asking import who
from reaperd.cli.options import config_option, exits, fail, load_settings, reason_option, say
from reaperd.cli.output import blank_paper, put
from reaperd.clock import SystemClock
from reaperd.errors import ExitCode

if TYPE_CHECKING:
    from reaperd.config import Settings
    from reaperd.ledger.ledger import Ledger

LONGEST_KEY = 500


def _duration(_ctx: click.Context, _param: click.Parameter, value: str) -> timedelta:
    from reaperd.config.durations import parse_duration  # noqa: PLC0415 - heavy

    try:
        duration = parse_duration(value)
    except ValueError as error:
        msg = f"{value!r} {error}"
        raise click.BadParameter(msg) from error
    if not duration:
        msg = "a mute of no length hides nothing: write 2h or 7d"
        raise click.BadParameter(msg)
    return duration


def _key(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    from alerts.model import Cause  # noqa: PLC0415 - heavy

    if not value.isprintable() or len(value) > LONGEST_KEY:
        msg = f"a key is printable and has at most {LONGEST_KEY} characters"
        raise click.BadParameter(msg)
    cause, slash, _ = value.removesuffix("*").partition("/")
    whole = slash or not value.endswith("*")
    if not any(known == cause if whole else known.startswith(cause) for known in Cause):
        msg = f"no key begins with {cause!r}; a key is a cause and a place, like leak/aws/us-east-1/i-0abc"
        raise click.BadParameter(msg)
    return value


def _reason(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    if not value.strip():
        msg = "say why: whoever wonders in a week is told it"
        raise click.BadParameter(msg)
    return value


@click.command()
@click.argument("key", callback=_key)
@click.option("--for", "duration", metavar="TIME", required=True, callback=_duration, help="How long: 2h, 7d.")
@click.option("--reason", required=True, callback=_reason, help="Why. It is kept with who and when.")
@config_option
@exits
def mute(key: str, duration: timedelta, reason: str, config: Path | None) -> None:
    """Hide alerts for a while.

    KEY is what the alert and `alerts list` show; a `*` at its end stands for
    anything. What is hidden is tracked all the same: what still holds at the
    end of the mute is told then. That something is over is never hidden.

    Alertmanager resolves what is muted; there, better use a silence. Machines
    that you want to keep belong into [[audit.ignore]].

    \b
    Examples:
      reaperd mute leak/aws/us-east-1/i-0abc --for 2d --reason "ends Friday"
      reaperd mute 'leak/aws/us-east-1/*' --for 7d --reason "a load test"

    \b
    Exit codes: 0 muted; 1 there is no ledger, or it cannot be written;
    2 wrong usage; 78 bad configuration.
    """
    from alerts.mutes import Mute  # noqa: PLC0415 - heavy

    settings, now = load_settings(config), SystemClock().now()
    wanted = Mute(pattern=key, until=now + duration, reason=reason)
    with _existing(settings, now) as ledger:
        ledger.alarms.mute(wanted, who(), now)
        hidden = [alert for alert in ledger.alarms.kept().book if wanted.hides(alert, now)]
    paper = blank_paper()
    paper.line(f"Muted until {_time(wanted.until)}: {key}")
    paper.line(f"It hides {len(hidden):,} of the alerts that are open now. `reaperd unmute` ends it.")
    put(paper.text())
    if key.endswith("*") and "/" not in key:
        say("this hides every alert of that kind, the critical ones too")


@click.command()
@click.argument("key")
@reason_option
@config_option
@exits
def unmute(key: str, reason: str, config: Path | None) -> None:
    """End a mute: what still holds is told with the next look.

    KEY is spelled as it was for `mute`; `alerts list` shows it.

    \b
    Example:
      reaperd unmute 'leak/aws/us-east-1/*'

    \b
    Exit codes: 0 it is over; 1 nothing was muted under this key, or there is no
    ledger; 78 bad configuration.
    """
    settings, now = load_settings(config), SystemClock().now()
    with _existing(settings, now) as ledger:
        ended = ledger.alarms.unmute(key, who(), reason, now)
    if not ended:
        fail(f"nothing is muted under {key}. `reaperd alerts list` shows the mutes", ExitCode.ERROR)
    paper = blank_paper()
    paper.line(f"No longer muted: {key}")
    put(paper.text())


def _existing(settings: Settings, now: datetime) -> Ledger:
    from reaperd.ledger.existing import open_existing  # noqa: PLC0415 - heavy

    owner = settings.tag_keys.owner
    return open_existing(settings.ledger_path, deployment=settings.deployment, owner_tag=owner, now=now)


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC")
