"""What a test needs that PyPI or this machine may not give: it is skipped, or in CI it fails."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from typing import NoReturn

import pytest

INSISTING = "REAPERD_E2E_ALL"
"""With this variable set to 1 nothing may be skipped: what is missing fails."""


def missing(what: str, remedy: str) -> NoReturn:
    """End the test: skipped, or failed where everything is asked for."""
    reason = f"{what}: {remedy}"
    if os.environ.get(INSISTING) == "1":
        pytest.fail(reason)
    pytest.skip(f"{reason} ({INSISTING}=1 makes this a failure)")


def programs(*names: str, packages: str) -> None:
    """Go on only if all these programs are there."""
    if absent := [name for name in names if shutil.which(name) is None]:
        missing(f"{', '.join(absent)} not installed", f"apt-get install --no-install-recommends {packages}")


def root() -> None:
    """Go on only as root."""
    if os.geteuid() != 0:
        missing("not root", "building and running an image in here takes root")


def run(
    command: Sequence[str | os.PathLike[str]], *, given: bytes = b"", seconds: float = 300, fails: bool = False
) -> str:
    """Run a tool to its end and return what it said on stdout; with `fails`, on both, and it has to fail."""
    done = subprocess.run(command, input=given, capture_output=True, check=False, timeout=seconds)
    said = (done.stdout + done.stderr).decode()
    assert (done.returncode != 0) is fails, f"{' '.join(map(str, command))}\nended with {done.returncode}\n{said}"
    return said if fails else done.stdout.decode()
