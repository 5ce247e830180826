"""Every reason has a way out, and each command in it exists."""

from __future__ import annotations

import shlex

import click
import pytest

from reaperd.cli import main
from reaperd.core.model import DeferReason, KeepReason, RefusalReason
from reaperd.report.remedies import DEFERRED, ENDS_THE_HOLD, REFUSED, Remedy, Whereabouts, remedy_of

EVERY = {
    **{f"refused_{reason}": remedy for reason, remedy in REFUSED.items()},
    **{f"deferred_{reason}": remedy for reason, remedy in DEFERRED.items()},
}


def test_every_reason_has_a_remedy():
    assert set(REFUSED) == set(RefusalReason)
    assert set(DEFERRED) == set(DeferReason)
    assert set(ENDS_THE_HOLD) == set(KeepReason)


@pytest.mark.parametrize("reason", sorted({*map(str, RefusalReason), *map(str, DeferReason)}))
def test_a_reason_is_resolved_by_a_command(reason):
    remedy = remedy_of(reason)

    assert remedy is not None
    assert remedy.stands.endswith(".")
    assert remedy.commands


@pytest.mark.parametrize("remedy", EVERY.values(), ids=list(EVERY))
@pytest.mark.parametrize("config", [None, "/tmp/a b.toml"])
def test_each_command_of_ours_exists_with_its_options(remedy: Remedy, config):
    where = Whereabouts(config=config, recorded=False)

    for typed in remedy.typed(where, "sha256:0"):
        words = shlex.split(typed)
        if words[0] == "reaperd":
            _parse(main, words[1:])


def _parse(command: click.Command, words: list[str]) -> None:
    """Parse a command line as click would, without running it."""
    context = click.Context(command, info_name=command.name)
    if isinstance(command, click.Group):
        inner = command.get_command(context, words[0])
        assert inner is not None, words
        _parse(inner, words[1:])
        return
    command.make_context(command.name, words)


@pytest.mark.parametrize(
    ("recorded", "digest", "typed"),
    [
        (True, "sha256:0", ("reaperd approve sha256:0",)),
        (False, "sha256:0", ("reaperd once --dry-run", "reaperd approve sha256:0")),
        (True, None, ("reaperd once --dry-run",)),
        (False, None, ("reaperd once --dry-run",)),
    ],
)
def test_a_plan_is_named_only_when_it_is_known(recorded, digest, typed):
    remedy = REFUSED[RefusalReason.BREAKER_OPEN]

    assert remedy.typed(Whereabouts(recorded=recorded), digest) == typed


def test_an_unknown_reason_has_none():
    assert remedy_of("something_else") is None
