"""A test cloud in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_ROOT = Path(__file__).parents[3]


@contextmanager
def running(*arguments: str) -> Iterator[str]:
    """Run `python -m tests.support.ec2` with these arguments and yield its URL; `control` talks to it."""
    command = [sys.executable, "-m", "tests.support.ec2", *arguments]
    with subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            url = process.stdout.readline().strip()
            if not url:
                message = f"no test cloud: {command}"
                raise RuntimeError(message)
            yield url
        finally:
            process.terminate()
