"""The manual page: `python -m reaperd.cli.manual > docs/man/reaperd.1` renders it for `man reaperd`."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator

import click

from reaperd import __version__
from reaperd.cli import main
from reaperd.cli.page import MEANINGS, commands, parameters
from reaperd.errors import ExitCode

_HEAD = r""".\" Generated from reaperd/cli by `make docs`. Edit the commands, not this page.
.TH REAPERD 1 "" "reaperd {version}" "User Commands"
.SH NAME
reaperd \- {what}
.SH SYNOPSIS
\fBreaperd\fR \fICOMMAND\fR [\fIOPTION\fR]... [\fIARGUMENT\fR]...
.br
\fBreaperd\fR [\fICOMMAND\fR] \fB\-\-help\fR
.SH DESCRIPTION
"""
_TAIL = r"""Data goes to stdout, logs and warnings go to stderr.
.SH ENVIRONMENT
.TP
\fBREAPERD_CONFIG\fR
The configuration, where \fB\-\-config\fR does not name it.
.TP
\fBREAPERD_\fISECTION\fB__\fIKEY\fR
Stands in for a key of the configuration, such as \fBREAPERD_LOG__FORMAT\fR.
None can switch enforcing on.
.TP
\fBCOLUMNS\fR, \fBNO_COLOR\fR
How wide a table is where there is no terminal; no colours.
.SH FILES
.TP
\fI/etc/reaperd/reaperd.toml\fR
The configuration.
.TP
\fI/var/lib/reaperd\fR
The ledger: reaperd's own memory, in which the brake is, too.
.SH SHELL COMPLETION
For bash (\fBzsh_source\fR and \fBfish_source\fR for the others):
.PP
.in +4n
.EX
eval "$(_REAPERD_COMPLETE=bash_source reaperd)"
.EE
.in
"""
_WHAT_GROFF_CHANGES = {"\\": r"\e", "-": r"\-", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti"}
_OPTION = re.compile(r"(?<![\w-])--?[a-z][\w-]*|(?<=`)[^`]+(?=`)")


def document() -> str:
    """Return the page, in the language of groff."""
    what, _, about = inspect.cleandoc(main.help or "").partition("\n\n")
    lines = [_HEAD.format(version=__version__, what=_prose(what[0].lower() + what[1:].rstrip(".")))]
    lines += _help(about)
    lines += [".SH COMMANDS\n"]
    for path, command in commands(main):
        lines += _command(path, command)
    lines += [".SH EXIT STATUS\n"]
    lines += [_entry(rf"\fB{code:d}\fR", MEANINGS[code]) for code in ExitCode]
    return "".join([*lines, ".PP\n", _TAIL])


def _command(path: tuple[str, ...], command: click.Command) -> Iterator[str]:
    context = click.Context(command)
    pieces = [] if isinstance(command, click.Group) else command.collect_usage_pieces(context)
    usage = "".join(
        " [\\fIOPTION\\fR]..." if piece == "[OPTIONS]" else rf" \fI{_literal(piece)}\fR" for piece in pieces
    )
    yield f".SS reaperd {_literal(' '.join(path))}{usage}\n"
    yield from _help(inspect.cleandoc(command.help or ""))
    if not isinstance(command, click.Group):
        yield from (_entry(rf"\fB{_literal(name)}\fR", meaning) for name, meaning in parameters(command))


def _help(text: str) -> Iterator[str]:
    """Yield the paragraphs of a help text; what click must not fold is kept as it is."""
    for paragraph in filter(None, text.split("\n\n")):
        lines = paragraph.removeprefix("\b\n").splitlines()
        if not paragraph.startswith("\b") or lines[0].startswith("Exit codes"):
            yield f".PP\n{_prose(' '.join(lines))}\n"
            continue
        shown = "".join(f"{_literal(line.removeprefix('  '))}\n" for line in lines[1:])
        yield f".PP\n{_prose(lines[0])}\n.PP\n.in +4n\n.EX\n{shown}.EE\n.in\n"


def _entry(term: str, meaning: str) -> str:
    return f".TP\n{term}\n{_prose(meaning)}\n"


def _prose(text: str) -> str:
    """Return a paragraph; a hyphen may be one, but for those of options and of what stands between back quotes."""
    parts: list[str] = []
    at = 0
    for found in _OPTION.finditer(text):
        parts += [_escaped(text[at : found.start()], hyphens=False), _escaped(found[0], hyphens=True)]
        at = found.end()
    return _line("".join([*parts, _escaped(text[at:], hyphens=False)]))


def _literal(text: str) -> str:
    """Return what is typed, so that it can be copied."""
    return _line(_escaped(text, hyphens=True))


def _escaped(text: str, *, hyphens: bool) -> str:
    changed = {sign: by for sign, by in _WHAT_GROFF_CHANGES.items() if hyphens or sign != "-"}
    return "".join(changed.get(sign, sign) for sign in text)


def _line(text: str) -> str:
    # A full stop at the beginning of a line is a request to groff.
    return rf"\&{text}" if text.startswith(".") else text


if __name__ == "__main__":
    sys.stdout.write(document())
