"""Run a program and tell what it took. Measures alone: of a child, Linux counts what its parent held when it forked.

    python -m bench.measured RESULT.json SECONDS PROGRAM ARGUMENTS...

Writes wall and processor seconds (of the program and all its children), the largest memory of any of them, and the exit
code; None: it was not done in that many seconds.
"""

# ruff: noqa: S603, TID251 - it runs what it is told to, and counts real seconds

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

STARTED = "BENCH_STARTED"
"""The variable with the moment at which the program was started, on the monotonic clock."""


def measured(command: list[str], seconds: float) -> dict[str, float | int | None]:
    """Run it to its end, or to the end of the time."""
    began = time.monotonic()
    with subprocess.Popen(command, env={**os.environ, STARTED: repr(began)}) as process:
        timer = threading.Timer(seconds, process.kill)
        timer.daemon = True
        timer.start()
        _, status, used = os.wait4(process.pid, 0)
        wall = time.monotonic() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        timer.cancel()
    return {
        "wall": wall,
        "cpu": used.ru_utime + used.ru_stime,
        "peak_bytes": used.ru_maxrss * 1024,
        "code": None if wall >= seconds else process.returncode,
    }


if __name__ == "__main__":
    result, limit, *program = sys.argv[1:]
    Path(result).write_text(json.dumps(measured(program, float(limit))), encoding="utf-8")
