"""Help, the reference page and completion."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from reaperd import __version__
from reaperd.cli import main
from reaperd.cli.page import MEANINGS, commands, document
from reaperd.errors import ExitCode
from tests.unit.cli.running import run

_ROOT = Path(__file__).parents[3]
EVERY = {" ".join(words): command for words, command in commands(main)}


def test_the_committed_page_is_the_generated_one():
    assert (_ROOT / "docs" / "cli.md").read_text(encoding="utf-8") == document(), (
        "run: python -m reaperd.cli.page > docs/cli.md"
    )


def test_every_exit_code_is_on_the_page():
    assert set(MEANINGS) == set(ExitCode)
    assert all(f"\n| {code:d} | {MEANINGS[code]} |\n" in document() for code in ExitCode)


@pytest.mark.parametrize("words", EVERY)
def test_every_command_and_option_is_on_the_page(words):
    _, _, section = document().partition(f"# `reaperd {words}`\n")
    section, _, _ = section.partition("\n## ")
    section, _, _ = section.partition("\n### ")

    assert section
    for parameter in EVERY[words].params:
        assert all(option in section for option in parameter.opts if option.startswith("-"))


@pytest.mark.parametrize("words", EVERY)
def test_every_help_fits_80_columns_and_shows_an_example(words, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")

    text = run(*words.split(), "--help").stdout

    assert max(map(len, text.splitlines())) <= 80
    assert f"reaperd {words}" in text.partition("\n")[2]
    if not isinstance(EVERY[words], click.Group):
        assert "Exit codes: 0 " in text


@pytest.mark.parametrize("words", ["", "registry"])
def test_every_command_is_told_in_one_whole_line(words, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")

    _, _, listed = run(*words.split(), "--help").stdout.partition("Commands:\n")

    assert listed
    assert "..." not in listed


@pytest.mark.parametrize("words", EVERY)
def test_every_command_answers_with_the_codes_of_its_help_only(words):
    told = re.sub(r"\s+", " ", (EVERY[words].help or "").partition("Exit codes:")[2])

    codes = {int(code) for code in re.findall(r"(?:^|; ) ?(\d+) ", told)}
    assert codes <= set(ExitCode)


def test_the_version_is_told():
    assert run("--version").stdout == f"reaperd, version {__version__}\n"


def test_without_a_command_the_help_is_shown():
    result = run()

    assert result.exit_code in {0, 2}
    assert "Usage: reaperd" in result.output


def test_an_unknown_command_is_wrong_usage():
    result = run("terminate-everything")

    assert result.exit_code == 2
    assert "No such command" in result.stderr


def test_help_imports_nothing_heavy():
    program = (
        "import sys; from reaperd.cli import main\n"
        "try: main(['--help'])\n"
        "finally: print([name for name in sys.argv[1:] if name in sys.modules], file=sys.stderr)"
    )
    heavy = ["boto3", "botocore", "pydantic", "sqlite_utils", "structlog", "rich", "concurrent.futures"]

    done = subprocess.run(
        [sys.executable, "-c", program, *heavy], cwd=_ROOT, capture_output=True, text=True, check=True
    )

    assert done.stderr == "[]\n"


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("reaperd pl", "plain,plan"),
        ("reaperd registry set-state w-1 dr", "plain,draining"),
        ("reaperd plan --fo", "plain,--format"),
    ],
)
def test_the_shell_completes(typed, offered):
    words = typed.split()
    environment = {
        **os.environ,
        "_REAPERD_COMPLETE": "bash_complete",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(words) - 1),
    }
    program = "from reaperd.cli import main; main(prog_name='reaperd')"

    done = subprocess.run(
        [sys.executable, "-c", program], cwd=_ROOT, env=environment, capture_output=True, text=True, check=False
    )

    assert offered in done.stdout.splitlines()
