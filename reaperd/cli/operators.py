"""`approve`, `hold` and `resume`: the breaker and the brake."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from reaperd.cli.asking import be_sure, who
from reaperd.cli.options import config_option, exits, fail, load_settings, reason_option, say, yes_option
from reaperd.cli.output import blank_paper, put
from reaperd.clock import SystemClock
from reaperd.errors import ConfigError, ExitCode

if TYPE_CHECKING:
    from reaperd.config import Settings
    from reaperd.core.model import Brake
    from reaperd.core.plans import RecordedPlan
    from reaperd.ledger.ledger import Ledger

NOT_ON = "THE BRAKE IS NOT ON; stop the service"
PATIENCE_SECONDS = 20.0
"""How long the brake waits for another writer: a look at 100,000 machines keeps the ledger for some four seconds, and
the brake is what must not fail for that."""
TOLD_AFTER_SECONDS = 2.0


@click.command()
@click.argument("digest")
@yes_option
@reason_option
@config_option
@exits
def approve(digest: str, reason: str, config: Path | None, *, yes: bool) -> None:
    """Let one recorded plan through the breaker, for one hour.

    DIGEST is the plan's name, as `once`, `plan` and the alert show it. Shows
    each machine, what it costs, the evidence, and what became of it since, and
    asks. The approval holds for exactly those machines that are still to go,
    and against the breaker alone: every other rule stands, and each machine is
    looked at again before it goes.

    \b
    Examples:
      reaperd approve sha256:91ea…
      reaperd approve sha256:91ea… --yes --reason "fleet B was shut down"

    \b
    Exit codes: 0 approved; 1 no recorded plan has this digest, none of its
    machines is still to go, or you said no; 2 nobody could be asked; 78 bad
    configuration.
    """
    from reaperd.ledger.ledger import APPROVAL_LASTS  # noqa: PLC0415 - heavy
    from reaperd.report.parts import many  # noqa: PLC0415

    settings, now = load_settings(config), SystemClock().now()
    with _existing(settings, now) as ledger:
        plan = _recorded(settings, digest)
        if plan is None:
            _unknown(settings, digest)
        _show_plan(plan, settings, now)
        machines = plan.to_go
        if not machines:
            _all_done(plan, settings)
        number = many(len(machines), "machine")
        be_sure(f"Let {number} through the breaker for one hour?", yes=yes)
        # An hour from the answer, not from the question.
        approval = ledger.approve(digest, machines, who(), reason, SystemClock().now())
        brake = ledger.brake()
    hours = f"{APPROVAL_LASTS.total_seconds() / 3600:g} hour"
    these = f"these {number}" if len(machines) > 1 else "this machine"
    put(f"Approved by {who()} for {hours}, until {_time(approval.expires_at)}: exactly {these}.\n")
    if not settings.enforcing:
        say('mode is "dry-run", so nothing will be terminated all the same')
    if brake is not None:
        say(f"the brake is on ({brake.by}: {brake.reason}), so nothing is terminated before `reaperd resume`")


@click.command()
@click.option("--reason", help="Why. It is shown with every refusal until `resume`.  [required]")
@config_option
@exits
def hold(reason: str | None, config: Path | None) -> None:
    """Put the brake on: nothing is terminated until `resume`.

    Works at once, across restarts, for every process that uses this ledger.
    Looking, alerting and metrics go on. If the brake cannot be written, this
    says so in capitals: then stop the service.

    \b
    Example:
      reaperd hold --reason "the registry is being moved"

    \b
    Exit codes: 0 the brake is on; THE BRAKE IS NOT ON: 1 it could not be
    written, 2 no reason was given, 78 bad configuration.
    """
    if reason is None or not reason.strip():
        click.echo(NOT_ON, err=True)
        msg = "Missing option '--reason'."
        raise click.UsageError(msg, ctx=click.get_current_context())
    try:
        put_on = _put_on(config, reason)
    except ConfigError as error:
        say(str(error))
        _not_on(ExitCode.CONFIG)
    except Exception as error:  # noqa: BLE001 - whatever it was, the one thing that counts is that it is not on
        say(str(error) or repr(error))
        _not_on(ExitCode.ERROR)
    _tell(put_on)


@click.command()
@reason_option
@config_option
@exits
def resume(reason: str, config: Path | None) -> None:
    """Take the brake off: terminations go on with the next pass.

    \b
    Examples:
      reaperd resume
      reaperd resume --reason "the registry is back"

    \b
    Exit codes: 0 the brake is off; 1 there is no ledger, or it cannot be
    written; 78 bad configuration.
    """
    settings, now = load_settings(config), SystemClock().now()
    with _existing(settings, now) as ledger:
        brake = ledger.brake()
        ledger.resume(who(), reason, now)
    if brake is None:
        put("The brake was not on.\n")
        return
    paper = blank_paper()
    paper.line(f"The brake is off. {brake.by} had put it on at {_time(brake.since)}: {brake.reason}")
    put(paper.text())


# ---------------------------------------------------------------- approve


def _existing(settings: Settings, now: datetime) -> Ledger:
    from reaperd.ledger.existing import open_existing  # noqa: PLC0415 - heavy

    owner = settings.tag_keys.owner
    return open_existing(settings.ledger_path, deployment=settings.deployment, owner_tag=owner, now=now)


def _unknown(settings: Settings, digest: str) -> NoReturn:
    newest = _recorded(settings, None)
    if newest is None:
        hint = "No recorded pass had a plan yet. `reaperd once --dry-run` records one; `reaperd plan` does not."
    else:
        at = _time(newest.told.at)
        hint = f"The newest recorded plan is {newest.digest} ({at}). `reaperd plan` records none; `once` does."
    fail(f"no recorded pass had the plan {digest}. {hint}", ExitCode.ERROR)


def _all_done(plan: RecordedPlan, settings: Settings) -> NoReturn:
    from reaperd.report.plan import fates_told  # noqa: PLC0415 - heavy

    text = f"nothing was approved: no machine of this plan is still to go ({fates_told(plan)})."
    newest = _recorded(settings, None)
    if newest is not None and newest.digest != plan.digest:
        text += f" The newest recorded plan is {newest.digest} ({_time(newest.told.at)})."
    fail(text, ExitCode.ERROR)


def _recorded(settings: Settings, digest: str | None) -> RecordedPlan | None:
    """Return a recorded plan; without a digest, the newest."""
    from reaperd.ledger.history import LedgerFile  # noqa: PLC0415 - heavy
    from reaperd.ledger.plans import recorded_plan  # noqa: PLC0415

    owner = settings.tag_keys.owner
    ledger = LedgerFile(path=settings.ledger_path, deployment=settings.deployment, owner_tag=owner)
    return recorded_plan(ledger, digest)


def _show_plan(plan: RecordedPlan, settings: Settings, now: datetime) -> None:
    from reaperd.report.plan import draw_plan  # noqa: PLC0415 - heavy

    paper = blank_paper()
    draw_plan(plan, settings.prices, paper, now)
    put(paper.text())


# ---------------------------------------------------------------- hold


@dataclass(frozen=True, slots=True, kw_only=True)
class _PutOn:
    """The brake that is on now."""

    brake: Brake
    already: bool
    new_ledger: Path | None


def _put_on(config: Path | None, reason: str) -> _PutOn:
    from reaperd.core.model import Brake  # noqa: PLC0415 - heavy
    from reaperd.ledger.ledger import open_ledger  # noqa: PLC0415

    settings, now = _settings_for_the_brake(config), SystemClock().now()
    path = settings.ledger_path
    new = not path.exists()
    owner = settings.tag_keys.owner
    with (
        _telling_that_it_waits(),
        open_ledger(
            path, deployment=settings.deployment, owner_tag=owner, now=now, patience=PATIENCE_SECONDS
        ) as ledger,
    ):
        before = ledger.brake()
        ledger.hold(Brake(since=now, by=who(), reason=reason))
        brake = ledger.brake()
    if brake is None:
        msg = f"{path} took the brake and does not have it"
        raise RuntimeError(msg)
    return _PutOn(brake=brake, already=before is not None, new_ledger=path if new else None)


@contextmanager
def _telling_that_it_waits() -> Iterator[None]:
    """Say so when the brake takes long: it is not on yet."""
    text = f"somebody else writes the ledger; trying for up to {PATIENCE_SECONDS:g} s"
    waiting = threading.Timer(TOLD_AFTER_SECONDS, say, [text])
    waiting.daemon = True
    waiting.start()
    try:
        yield
    finally:
        waiting.cancel()


def _settings_for_the_brake(config: Path | None) -> Settings:
    """Return the settings; of a file that is wrong, what the brake needs, if there is a ledger to put it on in.

    A daemon that runs on its old settings must not be out of reach because of a key that was misspelt since.
    """
    from reaperd.config import config_path, load_for_the_brake  # noqa: PLC0415 - heavy

    try:
        return load_settings(config)
    except ConfigError as error:
        settings = load_for_the_brake(config_path(config, os.environ), os.environ)
        if not settings.ledger_path.exists():
            raise
        say(f"{error}\nThe brake needs none of that. It is put on in {settings.ledger_path}.")
        return settings


def _tell(put_on: _PutOn) -> None:
    brake = put_on.brake
    paper = blank_paper()
    paper.line("The brake is on. Nothing is terminated until `reaperd resume`.")
    if put_on.already:
        paper.line(f"It was on already: {brake.by} put it on at {_time(brake.since)}: {brake.reason}")
    put(paper.text())
    if put_on.new_ledger is not None:
        say(f"there was no ledger, so {put_on.new_ledger} was made. A running daemon uses another: check state_dir")


def _not_on(code: ExitCode) -> NoReturn:
    click.echo(NOT_ON, err=True)
    raise click.exceptions.Exit(code)


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC")
