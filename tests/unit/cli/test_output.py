"""How data leaves: width, colour, encodings and readers that go away."""

from __future__ import annotations

import fcntl
import json
import os
import struct
import subprocess
import sys
import termios

import click
import pytest
from click.testing import CliRunner

from reaperd.cli.options import Format, format_option
from reaperd.cli.output import blank_paper, put, put_json, show_pass
from reaperd.core.model import RefusalReason
from reaperd.report.remedies import Whereabouts
from tests.support.terminals import everything_from
from tests.unit.cli import reports


def printed(report, format_):
    @click.command()
    @format_option
    def command(format_):
        show_pass(report, format_, Whereabouts(), everything=False)

    return CliRunner().invoke(command, ["--format", str(format_)]).stdout


def test_json_is_the_contract_and_nothing_else():
    document = json.loads(printed(reports.rehearsal(), Format.JSON))

    assert document["kind"] == "reconcile"
    assert document["plan_digest"] == reports.rehearsal().digest
    assert len(document["verdicts"]) == 7


def test_a_refused_pass_is_json_too():
    document = json.loads(printed(reports.refused(RefusalReason.REGISTRY_UNUSABLE), Format.JSON))

    assert (document["reason"], document["registry"], document["verdicts"]) == ("registry_unusable", None, [])


def test_csv_and_table_are_printed():
    assert printed(reports.rehearsal(), Format.CSV).startswith("provider,region,")
    assert printed(reports.rehearsal(), Format.TABLE).startswith("REHEARSAL")


def test_json_holds_no_control_character():
    @click.command()
    def command():
        put_json({"name": "\x7f\x1b\u202e"})

    text = CliRunner().invoke(command).stdout

    assert text == '{\n  "name": "\\u007f\\u001b\\u202e"\n}\n'


@pytest.mark.parametrize(("columns", "width"), [(None, 80), ("120", 120), ("", 80), ("-5", 80), ("x", 80), ("7", 40)])
def test_without_a_terminal_the_width_is_fixed_and_there_is_no_colour(columns, width, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)

    @click.command()
    def command():
        paper = blank_paper()
        click.echo(f"{paper.width} {paper.colour}")

    assert CliRunner().invoke(command).stdout == f"{width} False\n"


def test_a_locale_that_lacks_a_letter_is_no_error():
    program = "from reaperd.cli.output import put; put('… \\u4e16\\n')"

    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=True,
    )

    assert done.stdout == b"\\u2026 \\u4e16\n"


def test_a_reader_that_goes_away_is_no_error_and_changes_no_exit_code():
    program = "import sys; from reaperd.cli.output import put; put('x\\n' * 1000000); put('y\\n'); sys.exit(5)"
    reading, writing = os.pipe()
    with subprocess.Popen([sys.executable, "-c", program], stdout=writing, stderr=subprocess.PIPE) as process:
        os.close(writing)
        os.read(reading, 1)
        os.close(reading)
        said = process.stderr.read()

    assert said == b""
    assert process.returncode == 5


def test_nothing_is_lost_on_the_way():
    @click.command()
    def command():
        put("ü\n")

    assert CliRunner().invoke(command).stdout == "ü\n"


@pytest.mark.parametrize(
    ("environment", "told"), [({}, "99 True"), ({"NO_COLOR": "1"}, "99 False"), ({"TERM": "dumb"}, "99 False")]
)
def test_on_a_terminal_the_page_is_as_wide_and_coloured_unless_that_is_not_wanted(environment, told):
    program = "from reaperd.cli.output import blank_paper; paper = blank_paper(); print(paper.width, paper.colour)"
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 99, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "COLUMNS"}}

    subprocess.run(
        [sys.executable, "-c", program], env=kept | {"TERM": "xterm"} | environment, stdout=theirs, check=True
    )

    os.close(theirs)
    assert everything_from(ours).split() == [word.encode() for word in told.split()]


MESSAGE = """bad configuration:
  registry.path: there is nothing at /var/lib/fleet/registry.db, so nothing is compared; run `reaperd registry init`"""


def said(width: int | None) -> list[str]:
    """Return the lines that a person, or without a width a file, sees of the message on stderr."""
    program = f"from reaperd.cli.options import say; say({MESSAGE!r})"
    if width is None:
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
        return done.stderr.decode().splitlines()
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    subprocess.run([sys.executable, "-c", program], stderr=theirs, check=True)
    os.close(theirs)
    return everything_from(ours).decode().splitlines()


@pytest.mark.parametrize("width", [0, 80, 200])
def test_on_a_terminal_a_message_is_folded_between_words_and_keeps_its_indent(width):
    lines = said(width)

    assert [line.lstrip() for line in lines if not line.startswith("  ")] == ["reaperd: bad configuration:"]
    assert all(len(line) <= (width or 80) for line in lines)
    assert " ".join(" ".join(lines).split()) == " ".join(f"reaperd: {MESSAGE}".split())
    assert any("`reaperd registry init`" in line for line in lines)


def test_in_a_file_a_message_keeps_its_lines():
    assert said(None) == f"reaperd: {MESSAGE}".splitlines()
