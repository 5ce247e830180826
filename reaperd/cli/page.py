"""The reference page of the command line: `python -m reaperd.cli.page > docs/cli.md` renders it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping

import click

from reaperd.cli import main
from reaperd.errors import ExitCode

_INTRODUCTION = """\
# The command line

<!-- Generated from reaperd/cli by `python -m reaperd.cli.page`. Edit the commands, not this page. -->

Data goes to stdout, logs and warnings go to stderr. `--format json` prints JSON with exit codes 3, 4 and 5 too.

A table is as wide as the terminal. Where there is none, it is `$COLUMNS` or 80 wide, and plain; `NO_COLOR` switches the
colours off. Text that comes from a cloud is shown with its control characters spelled out (`\\x1b`), and a CSV cell
that a spreadsheet would take for a formula has a `'` in front.

`once` logs what it did on stderr, as `[log] format` says, unless the table goes to a person at a terminal. `plan` logs
beside JSON and CSV only.

Shell completion, for bash (`zsh_source` and `fish_source` for the others):

    eval "$(_REAPERD_COMPLETE=bash_source reaperd)"

## Exit codes

| Code | Meaning |
| --- | --- |
"""

MEANINGS: Mapping[ExitCode, str] = {
    ExitCode.OK: "Done; nothing found where finding is the point. `once` that terminated what it should.",
    ExitCode.ERROR: "An error; a deferred pass; any termination that failed, was denied or protected, had an invalid "
    "id or an unknown result; something unknown was approved or explained; `registry verify` failed.",
    ExitCode.USAGE: "Wrong usage. Also: somebody would have to be asked, and stdin is no terminal (`--yes`).",
    ExitCode.FINDINGS: "Findings: `plan` would terminate something; `audit` found leaks. `once` never answers 3.",
    ExitCode.INCOMPLETE: "A listing was incomplete: `once` and `plan` refused; `audit` reports what it saw, leaks or "
    "not.",
    ExitCode.SAFETY_STOP: "A safety stop: any other refusal. The output names the command that resolves it.",
    ExitCode.NOT_LEADER: "Another process holds the lease.",
    ExitCode.CONFIG: "Bad configuration, a missing file included. systemd must not restart on it.",
}


def document() -> str:
    """Return the page."""
    codes = "\n".join(f"| {code:d} | {MEANINGS[code]} |" for code in ExitCode)
    return _INTRODUCTION + codes + "\n\n" + "\n".join(_sections(main, ("reaperd",)))


def commands(group: click.Group, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command below a group with the words that call it."""
    context = click.Context(group, info_name="reaperd")
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None:
            continue
        yield (*above, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*above, name))


def _sections(group: click.Group, words: tuple[str, ...]) -> Iterator[str]:
    for path, command in commands(group):
        depth = "##" if len(path) == 1 else "###"
        yield f"{depth} `{' '.join((*words, *path))}`\n"
        yield from _help(command)
        if not isinstance(command, click.Group):
            yield from _table(command)


def _help(command: click.Command) -> Iterator[str]:
    """Yield the help text: paragraphs as they are, what click must not fold as code, exit codes as a sentence."""
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        literal = paragraph.startswith("\b")
        lines = paragraph.removeprefix("\b\n").splitlines()
        if not literal or lines[0].startswith("Exit codes"):
            yield "\n".join(lines) + "\n"
            continue
        yield lines[0] + "\n"
        yield "\n".join(f"    {line.removeprefix('  ')}" for line in lines[1:]) + "\n"


def parameters(command: click.Command) -> Iterator[tuple[str, str]]:
    """Yield how each argument and option is typed, and what it means."""
    context = click.Context(command)
    yield from (_argument(each) for each in command.params if isinstance(each, click.Argument))
    options = [each for each in command.params if isinstance(each, click.Option)]
    records = [record for each in options if (record := each.get_help_record(context)) is not None]
    yield from ((name, meaning.replace("  [", " [")) for name, meaning in records)


def _table(command: click.Command) -> Iterator[str]:
    yield "| Parameter | Meaning |"
    yield "| --- | --- |"
    for name, meaning in parameters(command):
        yield f"| `{name.replace('|', chr(92) + '|')}` | {meaning.replace('|', chr(92) + '|')} |"
    yield ""


def _argument(argument: click.Argument) -> tuple[str, str]:
    choices = argument.type.choices if isinstance(argument.type, click.Choice) else ()
    return argument.human_readable_name, " | ".join(map(str, choices)) or "required"


if __name__ == "__main__":
    sys.stdout.write(document())
