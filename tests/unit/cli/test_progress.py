"""The line that moves while a long listing runs: on a terminal, and nowhere else."""

import os
import pty
import sys
from pathlib import Path

from providers.model import Scope
from reaperd.cli.progress import progress_line
from tests.support.terminals import everything_from

EAST, WEST = Scope("aws", "us-east-1"), Scope("aws", "us-west-2")


def test_on_a_terminal_the_line_tells_the_sums_of_all_scopes(monkeypatch):
    master, slave = pty.openpty()
    with os.fdopen(slave, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setenv("TERM", "xterm")
        with progress_line() as told:
            assert told is not None
            told(EAST, pages=1, instances=1000)
            told(WEST, pages=3, instances=2500)
        terminal.flush()
    shown = everything_from(master)

    assert "listed 3500 instances in 2 scopes (now aws/us-west-2, page 3)" in shown.decode()


def test_where_nobody_watches_there_is_no_line(monkeypatch):
    with Path(os.devnull).open("w") as nowhere:
        monkeypatch.setattr(sys, "stderr", nowhere)
        with progress_line() as told:
            assert told is None
