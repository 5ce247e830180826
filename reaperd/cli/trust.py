"""`registry trust`: take another registry for the right one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reaperd.cli.asking import be_sure, who
from reaperd.cli.options import config_option, exits, fail, load_settings, reason_option, yes_option
from reaperd.cli.output import blank_paper, put
from reaperd.clock import SystemClock
from reaperd.errors import ExitCode

if TYPE_CHECKING:
    from datetime import datetime

    from reaperd.config import Settings
    from reaperd.core.history import Look
    from reaperd.core.model import Memory, RegistryPin
    from reaperd.report.paper import Paper
    from registry.model import RegistrySnapshot

_SHOWN = 10
"""Enough to know the machines by; `reaperd plan` shows all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """What the ledger has."""

    memory: Memory
    look: Look | None
    at: datetime


@click.command()
@yes_option
@reason_option
@config_option
@exits
def trust(reason: str, config: Path | None, *, yes: bool) -> None:
    """Accept a registry that is not the one known here.

    For the configured registry, when it was replaced or restored on purpose.
    Shows what the ledger knows and what the file says, and which machines that a row held at
    the last look are orphans by the file; and asks. Look at `reaperd plan` next.

    \b
    Examples:
      reaperd registry trust
      reaperd registry trust --yes --reason "restored from last night"

    \b
    Exit codes: 0 trusted; 1 there is no ledger, the registry cannot be used or
    is of another deployment, or you said no; 2 nobody could be asked;
    78 bad configuration.
    """
    from reaperd.core.model import RegistryPin  # noqa: PLC0415 - heavy
    from reaperd.ledger.existing import open_existing  # noqa: PLC0415
    from registry.sqlite import SqliteRegistry  # noqa: PLC0415

    settings, now = load_settings(config), SystemClock().now()
    if not settings.ledger_path.exists():
        fail(
            f"{settings.ledger_path}: there is no ledger, so no registry is known here and there is nothing to trust. "
            "The first pass takes the configured one",
            ExitCode.ERROR,
        )
    owner = settings.tag_keys.owner
    with open_existing(settings.ledger_path, deployment=settings.deployment, owner_tag=owner, now=now) as ledger:
        known = _Known(memory=ledger.recall(now), look=ledger.last_look(), at=now)
        pin = known.memory.pin
        registry = SqliteRegistry(settings.registry.path, settings.registry.busy_timeout)
        found = registry.snapshot(remembered_epoch=None if pin is None else pin.epoch)
        _show(settings, known, found)
        _require_ours(settings, found)
        be_sure("Trust the registry in the file from now on?", yes=yes)
        identity = found.identity
        accepted = RegistryPin(
            registry_id=identity.registry_id, epoch=identity.epoch, nonce=found.nonce, mismatch_accepted=True
        )
        ledger.trust(accepted, who(), reason, SystemClock().now())
    put(f"Trusted by {who()}. Before the next pass acts, look at: reaperd plan\n")


def _require_ours(settings: Settings, found: RegistrySnapshot) -> None:
    theirs, ours = found.identity.deployment, settings.deployment
    if theirs != ours:
        fail(
            f"{settings.registry.path} is the registry of deployment {theirs!r}, and this is {ours!r}. Trust cannot "
            "make another deployment's registry ours: its rows say nothing about machines tagged "
            f"{ours!r}. Correct registry.path, or deployment",
            ExitCode.ERROR,
        )


def _show(settings: Settings, known_here: _Known, found: RegistrySnapshot) -> None:
    pin, identity = known_here.memory.pin, found.identity
    live = sum(1 for worker in found.workers if worker.state.is_live)
    known = ("-", "-") if pin is None else (pin.registry_id, str(pin.epoch))
    paper = blank_paper()
    paper.command(f"ledger: {settings.ledger_path}", indent=0)
    paper.command(f"file:   {settings.registry.path}, {len(found.workers):,} rows, {live:,} of them live", indent=0)
    paper.line()
    paper.rows(
        ("", "REGISTRY", "EPOCH", "DEPLOYMENT"),
        [
            ("known here", *known, settings.deployment),
            ("in the file", identity.registry_id, str(identity.epoch), identity.deployment),
        ],
        right=(2,),
    )
    paper.line()
    for text in _changes(pin, found):
        paper.line(text)
    paper.line()
    _show_machines(settings, known_here, found, paper)
    put(paper.text())


def _show_machines(settings: Settings, known: _Known, found: RegistrySnapshot, paper: Paper) -> None:
    """Say which machines are orphans by the file, as far as the last look knows."""
    from reaperd.config.durations import format_duration  # noqa: PLC0415 - heavy
    from reaperd.core.trusting import succession  # noqa: PLC0415
    from reaperd.report.parts import many, told_time  # noqa: PLC0415
    from reaperd.wiring.policy import build_policy  # noqa: PLC0415

    if known.look is None:
        paper.line("No look is on record, so nobody knows here which machines this concerns.")
        paper.line()
        return
    policy = build_policy(settings, own_instance_id=None)
    then = succession(known.look, known.memory, found.workers, policy, known.at)
    paper.line(f"Held by a row at the last look, {told_time(known.look.at)}: {many(then.held, 'machine')}.")
    if then.doubtful:
        paper.line(f"In doubt by this file, and held until it is corrected: {then.doubtful:,}.")
    if then.launching:
        paper.line(
            f"By a launch that names no machine, and held for {format_duration(policy.launching_ttl)} at the most: "
            f"{then.launching:,}."
        )
    if then.held and not then.left:
        paper.line("No machine that was held is an orphan by this file.")
    if then.left:
        paper.line(f"Orphans by this file, which go once every guard agrees: {len(then.left):,}.")
        shown = [(str(left.ref), left.worker_id or "-", str(left.reason)) for left in then.left[:_SHOWN]]
        paper.rows(("INSTANCE", "WAS HELD BY", "BECAUSE"), shown)
    if len(then.left) > _SHOWN:
        paper.line(f"and {len(then.left) - _SHOWN:,} more", indent=2)
    paper.line()


def _changes(pin: RegistryPin | None, found: RegistrySnapshot) -> Iterator[str]:
    identity = found.identity
    if pin is None:
        yield "No registry is known here yet."
    elif identity.registry_id != pin.registry_id:
        yield "It is another registry."
    elif identity.epoch < pin.epoch:
        yield f"Its epoch fell by {pin.epoch - identity.epoch:,}: it is an older copy, and lacks what came since."
    elif _moved_on(pin, found):
        yield f"Its epoch {pin.epoch:,} is not the one that was seen here: an older copy that has moved on since."
    else:
        yield "It is the registry that is known here."
    yield "Once trusted, its rows need not match what the clouds list (registry_mismatch), until they do."


def _moved_on(pin: RegistryPin, found: RegistrySnapshot) -> bool:
    forgotten = found.oldest_epoch is not None and pin.epoch < found.oldest_epoch
    return pin.nonce is not None and found.remembered_nonce != pin.nonce and not forgotten
