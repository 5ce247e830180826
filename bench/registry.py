"""What a pass costs at 1,000,000 rows of the registry, over reading these rows with a bare cursor.

    python -m bench.registry [--rows 1000000] [--machines 50000] [--rounds 3] [--check] [--json FILE]

The pass is the daemon's: it proves and reads the registry, recalls the ledger, decides, writes what it learned and
what it decided, and tells it. Only the listing is not counted: it is there at once. One machine in a hundred has no
live row. Counted is a pass after which nothing is new, as nearly all are; the very first is told beside it.

The bare cursor is `list(connection.execute("SELECT worker_id, … FROM workers"))`: all columns of all rows, kept until
the last is there. What it takes to throw each row away at once is told beside it. Both read the same file, in turn
with the passes, in the same process, which looks for garbage as rarely as the program; the least of the rounds counts.

Then another process writes while the registry is read once, beside a -wal and with a rollback journal, and tells how
long it was kept from committing.

Exit 1: something was decided that is not so; the pass took more than the limit; or a writer waited for most of a
reading. With `--check` it is small, and only what was decided counts.
"""

# ruff: noqa: T201, S603, TID251 - it prints, runs itself as the writer, and counts real seconds

from __future__ import annotations

import argparse
import json
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import TypeVar

from bench.targets import Target, finish
from bench.workers import COLUMNS, POLICY, World, world
from reaperd.cli.garbage import collect_rarely
from registry.model import Interest
from registry.sqlite import SqliteRegistry

ROOT = Path(__file__).parent.parent
LIMIT = 4.0
HELD_UP = 0.5
"""Of the time that a registry is read, a writer may be kept from committing so much at the most."""
CHECKED_ROWS = 10_000
MACHINES_OF = 20
"""One row of so many is that of a machine that is there, unless something else is asked for."""

SELECT = f"SELECT {', '.join(COLUMNS)} FROM workers"  # noqa: S608 - constants
T = TypeVar("T")


@dataclass(slots=True)
class Figures:
    """The least of several rounds, in seconds of processor and of wall."""

    cpu: float = float("inf")
    wall: float = float("inf")

    def run(self, work: Callable[[], T]) -> T:
        """Do it once more."""
        cpu, wall = time.process_time(), time.perf_counter()
        result = work()
        self.cpu = min(self.cpu, time.process_time() - cpu)
        self.wall = min(self.wall, time.perf_counter() - wall)
        return result


# ---------------------------------------------------------------- a pass, beside the bare cursor


def kept(path: Path) -> int:
    """Read all rows with a bare cursor, and keep them."""
    with closing(sqlite3.connect(path)) as connection:
        return len(list(connection.execute(SELECT)))


def thrown_away(path: Path) -> int:
    """Read all rows with a bare cursor, and keep none."""
    number = 0
    with closing(sqlite3.connect(path)) as connection:
        for _ in connection.execute(SELECT):
            number += 1
    return number


def compared(at: World, rounds: int) -> list[Target]:
    """Measure in turn, print, and return what is to be reached."""
    first, every, rows_kept, rows_thrown = Figures(), Figures(), Figures(), Figures()
    faults = [*at.faults(first.run(at.next_pass().run), confirmed=False)]
    for _ in range(POLICY.confirm_passes):
        at.next_pass().run()
    # From now on nothing is new any more.
    for _ in range(rounds):
        for read, figures in ((kept, rows_kept), (thrown_away, rows_thrown)):
            if figures.run(partial(read, at.registry)) != at.rows:
                faults.append("the bare cursor misses rows")
        faults += at.faults(every.run(at.next_pass().run), confirmed=True)
    told(
        {"a pass": every, "the very first": first, "rows, kept": rows_kept, "rows, thrown away": rows_thrown},
        rows_kept,
        rows_thrown,
    )
    for fault in faults:
        print(f"WRONG: {fault}")
    name = f"a pass over {at.rows:,} rows and {at.machines:,} machines"
    return [
        Target(name=f"{name}: wrong", value=len(faults), limit=0),
        Target(name=f"CPU of {name}, over reading the rows", value=every.cpu / rows_kept.cpu, limit=LIMIT),
    ]


def told(all_of_them: Mapping[str, Figures], rows_kept: Figures, rows_thrown: Figures) -> None:
    """Print a line for each."""
    for name, each in all_of_them.items():
        over = f"{each.cpu / rows_kept.cpu:5.2f} x kept, {each.cpu / rows_thrown.cpu:5.2f} x thrown away"
        print(f"{name:<18} CPU {each.cpu:7.3f} s, wall {each.wall:7.3f} s: {over}", flush=True)


# ---------------------------------------------------------------- who writes meanwhile


def held_up(path: Path, journal: str) -> Target:
    """Read a registry once while another process writes heartbeats; return how long that was kept from a commit."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA journal_mode = {journal}")
    command = [sys.executable, "-m", "bench.registry", "--writer", str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as writer:
        if writer.stdout is None or writer.stdout.readline() != "writing\n":
            sys.exit("the writer does not write")
        began = time.monotonic()
        SqliteRegistry(path, timedelta(minutes=1)).snapshot(interest=Interest(names=frozenset()))
        ended = time.monotonic()
        commits, _ = writer.communicate("")
    # From its beginning, so that one that waits for the whole reading counts.
    waits = [took for at, took in json.loads(commits) if at < ended and at + took > began]
    reading, longest = ended - began, max(waits)
    print(f"{journal:<18} read in {reading:.3f} s; {len(waits)} commits meanwhile, the longest {longest:.3f} s")
    return Target(
        name=f"longest wait of a writer ({journal}), over the reading", value=longest / reading, limit=HELD_UP
    )


def write(path: Path) -> None:
    """Write one heartbeat after the other until nobody wants more; then tell when each began, and how long it took."""
    enough = threading.Event()
    threading.Thread(target=lambda: enough.set() if not sys.stdin.read() else None, daemon=True).start()
    took: list[tuple[float, float]] = []
    with closing(sqlite3.connect(path, isolation_level=None, timeout=600)) as connection:
        ids = connection.execute("SELECT worker_id FROM workers WHERE state = 'running' LIMIT 1000").fetchall()
        for worker_id in cycle(ids):
            began = time.monotonic()
            connection.execute("UPDATE workers SET heartbeat_at = updated_at WHERE worker_id = ?", worker_id)
            took.append((began, time.monotonic() - began))
            if len(took) == 1:
                print("writing", flush=True)
            if enough.wait(0.005):
                break
    print(json.dumps(took))


def main() -> int:
    """Measure, or be the writer."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--machines", type=int, help=f"one for {MACHINES_OF} rows, unless said otherwise")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--check", action="store_true", help="a small registry: the results are judged, not the times")
    parser.add_argument("--json", type=Path, help="write what is to be reached there")
    parser.add_argument("--writer", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.writer is not None:
        write(asked.writer)
        return 0
    collect_rarely()
    number_of_rows = CHECKED_ROWS if asked.check else asked.rows
    machines = number_of_rows // MACHINES_OF if asked.machines is None else asked.machines
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        with world(Path(folder), number_of_rows, machines) as at:
            targets = compared(at, 1 if asked.check else asked.rounds)
        targets += [held_up(Path(folder) / "registry.db", journal) for journal in ("wal", "delete")]
    return finish([target for target in targets if target.limit == 0 or not asked.check], asked.json)


if __name__ == "__main__":
    raise SystemExit(main())
