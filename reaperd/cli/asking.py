"""Who asks for something, and whether they mean it."""

from __future__ import annotations

import getpass
import os
import socket
import sys

import click

from reaperd.cli.options import fail
from reaperd.errors import ExitCode


def who() -> str:
    """Return `user@host`: whoever called sudo rather than root."""
    return f"{os.environ.get('SUDO_USER') or _user()}@{socket.gethostname()}"


def be_sure(question: str, *, yes: bool) -> None:
    """Return only if a person, or `--yes`, agrees to what was shown before."""
    if yes:
        return
    if not sys.stdin.isatty():
        msg = "nobody can be asked here: stdin is no terminal. If what it shows is right, add --yes."
        raise click.UsageError(msg, ctx=click.get_current_context())
    if not click.confirm(question, err=True):
        fail("nothing was changed", ExitCode.ERROR)


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        # In a container a user may have a number and no name.
        return f"uid{os.getuid()}"
