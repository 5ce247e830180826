"""The manual page under `man`, and completion in real shells, at a terminal and with a tabulator."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.needs import programs
from tests.support.processes import ROOT

PAGE = ROOT / "docs" / "man" / "reaperd.1"
PATIENCE = 120.0
"""Seconds for what takes one on an idle machine: each completion starts a Python."""
SHELLS = {
    "bash": (("--noprofile", "--norc", "-i"), 'eval "$(_REAPERD_COMPLETE=bash_source reaperd)"'),
    "zsh": (
        ("-f", "-i"),
        'autoload -U compinit; compinit -u -D; eval "$(_REAPERD_COMPLETE=zsh_source reaperd)"',
    ),
    "fish": (("--no-config", "-i"), "_REAPERD_COMPLETE=fish_source reaperd | source"),
}
"""How each is started without anybody's own settings, and what its user has in them for us."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Give an empty home, and a folder of programs with nothing but ours in it."""
    program = tmp_path / "bin" / "reaperd"
    program.parent.mkdir()
    called = "from reaperd.cli import main; main(prog_name='reaperd')"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{called}" "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return tmp_path


def surroundings(home: Path) -> dict[str, str]:
    return {
        "PATH": f"{home / 'bin'}:/usr/bin:/bin",
        "PYTHONPATH": str(ROOT),
        "HOME": str(home),
        "TERM": "dumb",
        "LANG": "C.UTF-8",
    }


@dataclass(slots=True)
class Terminal:
    """A shell with a person in front of it."""

    master: int
    told: str = ""

    def types(self, text: str) -> None:
        os.write(self.master, text.encode())

    def reads(self, pattern: str) -> str:
        """Return what was shown up to this, once it was; in however many pieces it comes."""
        ends_at = time.monotonic() + PATIENCE
        while (found := re.search(pattern, self.told)) is None:
            ready, _, _ = select.select([self.master], [], [], max(ends_at - time.monotonic(), 0))
            assert ready, f"{pattern!r} never came: {self.told!r}"
            self.told += os.read(self.master, 100_000).decode(errors="replace")
        shown, self.told = self.told[: found.end()], self.told[found.end() :]
        return shown


@contextmanager
def at(shell: str, home: Path) -> Iterator[Terminal]:
    """Sit down in front of a shell; it ends with us."""
    master, slave = pty.openpty()
    started = subprocess.Popen(
        # At a terminal of its own, or fish does not start.
        ["setsid", "--ctty", shell, *SHELLS[shell][0]],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        cwd=home,
        env=surroundings(home),
    )
    os.close(slave)
    try:
        yield Terminal(master)
    finally:
        started.kill()
        started.wait()
        os.close(master)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_subcommand_is_completed_at_a_terminal(shell: str, home: Path):
    programs(shell, packages=shell)
    with at(shell, home) as terminal:
        # In pieces, so that the echo of what was typed is not what is waited for.
        terminal.types(SHELLS[shell][1] + "; echo rea''dy\n")
        terminal.reads("ready")

        terminal.types("reaperd registry ini\t--help\n")

        assert "No such command" not in terminal.reads("Usage: reaperd registry init")


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_takes_its_source(shell: str, home: Path):
    programs(shell, packages=shell)
    made = subprocess.run(
        ["reaperd"],
        env={**surroundings(home), "_REAPERD_COMPLETE": f"{shell}_source"},
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
        executable=home / "bin" / "reaperd",
    )

    (home / "source").write_text(made.stdout, encoding="utf-8")
    read = subprocess.run([shell, "-n", home / "source"], capture_output=True, text=True, check=False, timeout=PATIENCE)

    assert "_reaperd_completion" in made.stdout
    assert (made.stderr, read.returncode, read.stderr) == ("", 0, "")


@pytest.mark.parametrize("width", [60, 100])
def test_man_shows_the_manual_page_and_has_nothing_to_complain_of(width: int):
    programs("man", packages="man-db")
    shown = subprocess.run(
        ["man", "--warnings=w", "--local-file", PAGE],
        env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "MANWIDTH": str(width), "MANROFFOPT": "-c"},
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )

    plain = re.sub(".\b", "", shown.stdout)
    assert shown.stderr == ""
    assert "reaperd hold --reason TEXT   stop every termination, now" in plain
    assert "           reaperd registry set-state w-17 completed\n" in plain
    assert re.search(r"^   reaperd +registry +set-state +\[OPTION\]", plain, re.MULTILINE)
