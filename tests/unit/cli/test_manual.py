"""The manual page, as it is before groff reads it. tests/e2e/test_shells.py shows what `man` makes of it."""

from __future__ import annotations

import re

import click
import pytest

from reaperd import __version__
from reaperd.cli.manual import _literal, _prose, document
from reaperd.errors import ExitCode
from tests.unit.cli.test_page import EVERY

PAGE = document()


def section(title: str) -> str:
    return PAGE.partition(f".SH {title}\n")[2].partition("\n.SH ")[0]


def test_it_says_which_version_it_is_and_what_the_program_does():
    assert f'"reaperd {__version__}"' in PAGE
    assert "reaperd \\- find cloud machines that nobody tracks, and end them" in section("NAME")


@pytest.mark.parametrize("words", EVERY)
def test_every_command_and_option_is_in_it(words):
    _, _, told = PAGE.partition(f".SS reaperd {words.replace('-', chr(92) + '-')}")
    told, _, _ = told.partition("\n.SS ")

    assert told
    if isinstance(EVERY[words], click.Group):
        return
    for parameter in EVERY[words].params:
        assert all(option.replace("-", "\\-") in told for option in parameter.opts if option.startswith("-"))


def test_every_exit_code_is_in_it():
    assert re.findall(r"\\fB(\d+)\\fR", section("EXIT STATUS")) == [str(int(code)) for code in ExitCode]


def test_what_is_typed_can_be_copied():
    # A plain hyphen may become another sign on its way to the terminal.
    typed = "".join(re.findall(r"^\.EX\n(.*?)^\.EE$", PAGE, re.DOTALL | re.MULTILINE))

    assert "reaperd hold \\-\\-reason" in typed
    assert re.search(r"(?<!\\)-", typed) is None


def test_no_line_is_taken_for_a_request_that_is_none():
    requests = {line.split()[0] for line in PAGE.splitlines() if line.startswith((".", "'"))}

    assert requests <= {'.\\"', ".TH", ".SH", ".SS", ".PP", ".TP", ".EX", ".EE", ".in", ".br"}


def test_what_begins_with_a_full_stop_is_text():
    assert _literal(".env") == r"\&.env"
    assert _prose(".env and more") == r"\&.env and more"
