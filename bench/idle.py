"""The memory of an idle daemon of 17 regions, beside that of a script with the same libraries and the same clients.

    python -m bench.idle [--json FILE]

Exit 1: the ratio is above the limit. Both are processes of their own; the daemon has made its passes and its sweep.
"""

# ruff: noqa: S603, T201 - it runs both, and prints

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.site import ROOT, Site, Workload, site
from bench.table import MEGA
from bench.targets import Target, finish

LIMIT = 1.3
_PASSES = 3
"""After which nothing is made any more that stays."""
_FLEET = Workload(name="idle", machines=340, regions=17)


def resident(pid: int) -> float:
    """Return the resident memory of a process in bytes."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    msg = f"process {pid} has no memory"
    raise RuntimeError(msg)


@contextmanager
def script(at: Site) -> Iterator[int]:
    """Have the script there, with its clients; yields its process id."""
    command = [sys.executable, "-m", "bench.clients", at.endpoint, *at.regions]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, env=at.environment(), stdin=pipe, stdout=pipe, text=True) as process:
        if not (process.stdout and process.stdout.readline()):
            sys.exit("the script ended")
        yield process.pid
        process.communicate("")


@contextmanager
def daemon(at: Site) -> Iterator[int]:
    """Have the daemon there, idle; yields its process id."""
    command = [sys.executable, "-m", "reaperd", "run", "--config", str(at.config)]
    with subprocess.Popen(command, cwd=ROOT, env=at.environment(), stderr=subprocess.PIPE, text=True) as process:
        try:
            passes, swept = 0, False
            for line in process.stderr or ():
                event = json.loads(line)["event"]
                passes += event == "pass_finished"
                swept |= event == "sweep_finished"
                if swept and passes >= _PASSES:
                    break
            else:
                sys.exit("the daemon ended")
            yield process.pid
        finally:
            process.terminate()


def main() -> int:
    """Measure both, print them, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the targets there")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, site(_FLEET, Path(folder)) as at:
        with script(at) as pid:
            least = resident(pid)
        with daemon(at) as pid:
            held = resident(pid)
    print(f"the script {least / MEGA:.0f} MB, the daemon {held / MEGA:.0f} MB")
    target = Target(
        name="memory of an idle daemon over a script with its libraries and clients", value=held / least, limit=LIMIT
    )
    return finish([target], asked.json)


if __name__ == "__main__":
    raise SystemExit(main())
