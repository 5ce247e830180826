"""docs/going-live.md holds together. tests/e2e/test_going_live.py types it."""

from __future__ import annotations

import shlex
from pathlib import Path

import click
import pytest

from reaperd.cli import main
from reaperd.config import load
from tests.docs.going_live import FIRST, PAGE, File, Typed, steps
from tests.docs.markdown import blocks, read

STEPS = list(steps(read(PAGE)))
FILES = [step for step in STEPS if isinstance(step, File)]
COMMANDS = [step.command for step in STEPS if isinstance(step, Typed)]


def test_nothing_on_the_page_is_left_out():
    page = read(PAGE)
    rows = [line for line in page.splitlines() if line.startswith("| `")]

    assert len(rows) + len(blocks(page, "console")) == len(COMMANDS)
    assert len(blocks(page, "toml")) == len(FILES)
    assert page.count("| Type |") == page.count(FIRST)


@pytest.mark.parametrize(
    "command", sorted({line for line in COMMANDS if "reaperd " in line and "systemctl" not in line})
)
def test_every_command_is_one(command: str):
    words = shlex.split(command.partition("reaperd ")[2]) if not command.startswith(("install", "export")) else ["run"]

    name, *rest = words
    group = main
    while isinstance(found := group.get_command(click.Context(group), name), click.Group):
        group, (name, *rest) = found, rest

    assert found is not None
    found.make_context(name, rest)


def test_it_begins_as_a_rehearsal_enforces_narrowly_and_widens(tmp_path: Path):
    loaded = []
    for number, file in enumerate(FILES):
        path = tmp_path / f"{number}.toml"
        path.write_text(file.text, encoding="utf-8")
        loaded.append(load(path, {}))

    rehearsal, narrow, wide = loaded
    assert [each.enforcing for each in loaded] == [False, True, True]
    assert rehearsal.model_copy(update={"mode": narrow.mode}) == narrow
    assert narrow.reconcile.breaker.max_per_pass < wide.reconcile.breaker.max_per_pass
    assert set(narrow.providers[0].regions) < set(wide.providers[0].regions)
