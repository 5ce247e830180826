"""docs/quickstart.md, typed by a machine: `python -m tests.docs.quickstart` puts what its commands print onto the page.

A console block holds commands (`$ …`, continued by `> …`), each followed by what it prints. The first block is a
terminal of its own. What differs from run to run (times, ages, random names) stays on the page as it was.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.docs.markdown import read
from tests.docs.pages import ROOT

PAGE = "docs/quickstart.md"
FOLDER = "/srv/reaperd"
"""What the page calls the folder in which it is played."""

_NEXT = "---- next ----"
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)

_VARIES = (
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?: UTC)?", "TIME"),
    (r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UUID"),
    (r"\b[0-9a-f]{32}\b", "PASS"),
    (r"\b\d+[dhms](?: \d+[hms])?\b", "AGE"),
    (r"\b\d+\.\d+\b", "SECONDS"),
    (r"\b[\w.-]+@[\w.-]+", "WHO"),
)


@dataclass(frozen=True, slots=True)
class Step:
    """One command, and what it prints."""

    typed: str
    """As it stands on the page, prompts included."""
    printed: str

    @property
    def command(self) -> str:
        """Return what a shell gets."""
        return "\n".join(re.sub(r"^[$>] ?", "", line) for line in self.typed.splitlines())


def steps(text: str) -> tuple[tuple[Step, ...], ...]:
    """Return the commands of each console block."""
    return tuple(tuple(_steps(found[1])) for found in _BLOCK.finditer(text))


def play(text: str) -> tuple[tuple[Step, ...], ...]:
    """Type the commands of a page in a new folder, and return them with what they print now."""
    (first,), *others = steps(text)
    with tempfile.TemporaryDirectory(prefix="qs-") as name, _terminal(Path(name)) as (folder, environment):
        with _served(first, folder, environment) as served:
            printed = iter(_typed([step for block in others for step in block], folder, environment))
        return ((served,), *(tuple(Step(step.typed, next(printed)) for step in block) for block in others))


def written(text: str, played: Sequence[Sequence[Step]]) -> str:
    """Return the page with what was printed, but for what differs from run to run anyway."""
    blocks = iter(zip(steps(text), played, strict=True))

    def block(_: re.Match[str]) -> str:
        before, after = next(blocks)
        kept = (old if alike(old.printed, new.printed) else new for old, new in zip(before, after, strict=True))
        return "```console\n" + "".join(f"{step.typed}\n{step.printed}" for step in kept) + "```"

    return _BLOCK.sub(block, text)


def alike(one: str, other: str) -> bool:
    """Say whether two outputs differ in nothing but times, random names and the width of a path."""
    return _settled(one) == _settled(other)


def _settled(printed: str) -> list[str]:
    for pattern, word in _VARIES:
        printed = re.sub(pattern, word, printed)
    return printed.split()


def _steps(block: str) -> Iterator[Step]:
    for part in re.split(r"^(?=\$ )", block, flags=re.MULTILINE)[1:]:
        lines = part.splitlines(keepends=True)
        count = 1 + next((n for n, line in enumerate(lines[1:]) if not line.startswith(">")), len(lines) - 1)
        yield Step("".join(lines[:count]).rstrip("\n"), "".join(lines[count:]))


@contextmanager
def _terminal(folder: Path) -> Iterator[tuple[Path, dict[str, str]]]:
    """Give a folder and an environment in which `reaperd` is this checkout's."""
    tools = folder / "bin"
    tools.mkdir()
    (tools / "reaperd").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m reaperd "$@"\n')
    (tools / "reaperd").chmod(0o755)
    own = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "REAPERD_"))}
    here = {"PATH": f"{tools}{os.pathsep}{own.get('PATH', os.defpath)}", "PYTHONPATH": str(ROOT), "COLUMNS": "80"}
    yield folder, {**own, **here, "LOGNAME": "you"}


@contextmanager
def _served(step: Step, folder: Path, environment: dict[str, str]) -> Iterator[Step]:
    """Run the first terminal's command until the end of the block."""
    server = subprocess.Popen(
        shlex.split(step.command),
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert server.stdout is not None
    try:
        lines = []
        # It says how to go on, and a blank line after it, once it is ready.
        while not (len(lines) > 1 and lines[-1] == "\n" and lines[-2].startswith("    ")):
            lines.append(server.stdout.readline())
            assert lines[-1], "".join(lines)
        yield Step(step.typed, "".join(lines))
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=30)


def _typed(typed: Sequence[Step], folder: Path, environment: dict[str, str]) -> list[str]:
    """Return what each command prints in one shell. The log is left out, as it is for a person at a terminal."""
    # In brackets: the exit code of each command is there for an `echo $?` after it.
    script = "".join(f"{step.command}\nwas=$?; echo '{_NEXT}'; (exit $was)\n" for step in typed)
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=240,
    )
    told = done.stdout.replace(str(folder.resolve()), FOLDER).replace(str(folder), FOLDER)
    told = told.replace(f"you@{socket.gethostname()}", "you@fleet")
    *printed, rest = told.split(f"{_NEXT}\n")
    assert (len(printed), rest) == (len(typed), ""), told
    return [re.sub(r'^\{"timestamp".*\n', "", each, flags=re.MULTILINE) for each in printed]


if __name__ == "__main__":
    before = read(PAGE)
    (ROOT / PAGE).write_text(written(before, play(before)), encoding="utf-8")
