"""One pass of the running daemon, which has everything imported and every client made.

The first pass, from the start of the process, and then the first one that had no sweep beside it.
"""

# ruff: noqa: S603, TID251 - it runs the program, and counts real seconds

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bench.looks import asked
from bench.measured import STARTED

_PASSES = 100
"""In which the first sweep must have come to its end."""
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class Pass:
    """One pass, as the daemon's log tells it."""

    seconds: float
    done_at: float
    cpu: float
    """Of the process, from its start to the end of the pass."""
    found: list[str]
    swept: bool
    """Whether the first sweep was over by then."""


@dataclass(slots=True)
class _Reading:
    swept: bool = False
    found: list[str] = field(default_factory=list)


def cpu_of(pid: int) -> float:
    """Return the processor seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def passes(daemon: subprocess.Popen[str]) -> Iterator[Pass]:
    """Yield the passes, each once it is over."""
    reading, count = _Reading(), 0
    for line in daemon.stderr or ():
        event = json.loads(line) if line.startswith("{") else {}
        match event.get("event"):
            case "termination_would_terminate":
                reading.found.append(event["instance_id"])
            case "sweep_finished":
                reading.swept = True
            case "pass_finished":
                found, reading.found = reading.found, []
                if event["outcome"] != "complete":
                    sys.exit(line)
                count += 1
                if count > _PASSES and not reading.swept:
                    sys.exit(f"no sweep was over after {count} passes")
                yield Pass(event["seconds"], time.monotonic(), cpu_of(daemon.pid), found, reading.swept)
            case _:
                continue


def main() -> None:
    """Run the daemon until two passes are known."""
    options = asked()
    command = [sys.executable, "-m", "reaperd", "run", "--config", str(options.config)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as daemon:
        try:
            course = passes(daemon)
            first = next(course)
            before = first if first.swept else next(each for each in course if each.swept)
            # The one that is over now was beside the sweep, or began while it went on.
            last = next(course)
        finally:
            daemon.terminate()
    told = {
        "found": last.found,
        "wall": first.done_at - float(os.environ[STARTED]),
        "cpu": first.cpu,
        "look_wall": last.seconds,
        "look_cpu": last.cpu - before.cpu,
    }
    options.result.write_text(json.dumps(told), encoding="utf-8")


if __name__ == "__main__":
    main()
