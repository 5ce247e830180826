"""Break the core in many ways and show that its tests notice each.

Works on copies of the tree; the tree itself is never touched. Exit 0: every mutant was killed by a test. Exit 1: one
survived, could not be applied, or did not even import, which proves nothing about the tests.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Self

from tests.mutants.catalogue import (
    CENSUS,
    CONDITIONS,
    GUARDS,
    IGNORING,
    LANES,
    LEAKS,
    LEAVE,
    MEMORY,
    MUTANTS,
    PACER,
    PACING,
    PARCELS,
    REAP,
    SIGHTINGS,
    STARTS,
    TERMINATIONS,
    TRACKING,
    WHEREABOUTS,
    Mutant,
)

ROOT = Path(__file__).resolve().parents[2]
NURSERY = Path(__file__).with_name("nursery.py")
COPIED = (
    *("reaperd", "providers", "registry", "alerts", "tests/property", "tests/support"),
    *("tests/unit/core", "tests/unit/passes", "tests/unit/providers"),
)
COPIED_FILES = ("pyproject.toml", "tests/__init__.py", "tests/conftest.py", "tests/unit/__init__.py")
EXAMPLES, LAWS = "tests/unit/core", "tests/property"
NOT_OF_THE_CORE = ("--ignore=tests/property/test_pages.py",)
"""Laws that no mutant can break, and that take half of the time."""
DOOR = (LANES, LEAVE, PACER, PARCELS)
ELSEWHERE = dict.fromkeys(DOOR, "tests/unit/passes") | {TERMINATIONS: "tests/unit/providers/aws"}
"""Where the examples are of what is no part of the core. They have laws of their own among them."""
NEAREST = dict.fromkeys(DOOR, ("test_lanes", "test_lanes_laws")) | {
    PACING: ("test_pacing",),
    TERMINATIONS: ("test_terminations",),
    "registry/model.py": ("test_tracking",),
    TRACKING: ("test_tracking", "test_recheck"),
    SIGHTINGS: ("test_sightings",),
    REAP: ("test_holds", "test_decide", "test_recheck", "test_breaker"),
    GUARDS: ("test_guards", "test_breaker"),
    MEMORY: ("test_memory",),
    WHEREABOUTS: ("test_whereabouts", "test_memory"),
    CONDITIONS: ("test_conditions",),
    CENSUS: ("test_census",),
    LEAKS: ("test_leaks", "test_census"),
    STARTS: ("test_starts",),
    IGNORING: ("test_ignoring",),
}
"""Which examples are likely to notice first. All others are run when they do not."""

SIDE_BY_SIDE = 3
TIMEOUT_SECONDS = 300
QUICKLY = ("-x", "-q", "--tb=no", "-m", "not slow", "-p", "no:xdist", "-p", "no:cov")
NOTHING_BROKEN = Mutant("(nothing broken)", 0, "reaperd/core/reap.py", "", "")


class Fate(StrEnum):
    """What became of one mutant."""

    KILLED = "killed"
    SURVIVED = "SURVIVED"
    NOT_APPLIED = "NOT APPLIED"
    BROKEN = "BROKEN"
    """Nothing could be collected or it hung: no test noticed it, Python did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One mutant's fate, and the first test that noticed."""

    mutant: Mutant
    fate: Fate
    by: str = ""


class Lane:
    """One copy of the tree, broken in one way at a time. What runs its tests ends with the block."""

    def __init__(self, folder: Path, root: Path = ROOT) -> None:
        self.folder = folder
        without = shutil.ignore_patterns("__pycache__")
        for name in COPIED:
            shutil.copytree(root / name, folder / name, ignore=without)
        for name in COPIED_FILES:
            shutil.copy(root / name, folder / name)
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("COV", "PYTEST", "HYPOTHESIS"))}
        self._nursery = subprocess.Popen(
            [sys.executable, NURSERY],
            cwd=folder,
            env=kept | {"PYTHONPATH": str(folder), "HYPOTHESIS_PROFILE": "mutants"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        """Nothing more to do: it runs."""
        return self

    def __exit__(self, *raised: object) -> None:
        """End what runs the tests."""
        with self._nursery:
            self._nursery.kill()

    def try_out(self, mutant: Mutant, suites: Sequence[Sequence[str]]) -> Result:
        """Apply the mutant, run the suites one after the other until one fails, and mend the copy."""
        path = self.folder / mutant.path
        whole = path.read_text()
        if mutant is not NOTHING_BROKEN and whole.count(mutant.old) != 1:
            return Result(mutant=mutant, fate=Fate.NOT_APPLIED, by=f"{whole.count(mutant.old)} places in {mutant.path}")
        try:
            self._write(path, whole.replace(mutant.old, mutant.new) if mutant.old else whole)
            return self._first_failure(mutant, suites)
        finally:
            self._write(path, whole)

    def _write(self, path: Path, text: str) -> None:
        path.write_text(text)
        # Bytecode is matched by second and size only, and a mutant may change neither.
        for stale in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            stale.unlink()

    def _first_failure(self, mutant: Mutant, suites: Sequence[Sequence[str]]) -> Result:
        for suite in suites:
            code, output = self._pytest(suite)
            if code is None:
                return Result(mutant=mutant, fate=Fate.BROKEN, by=f"{' '.join(suite)} hung")
            if code == 1:
                return Result(mutant=mutant, fate=Fate.KILLED, by=_first_failed(output))
            if code != 0:
                last = output.strip().splitlines()[-1:]
                return Result(mutant=mutant, fate=Fate.BROKEN, by=" ".join((f"exit {code}", *last)))
        return Result(mutant=mutant, fate=Fate.SURVIVED)

    def _pytest(self, suite: Sequence[str]) -> tuple[int | None, str]:
        """Return pytest's exit code, None when it hung, and what it printed."""
        assert self._nursery.stdin is not None
        assert self._nursery.stdout is not None
        asked = {"arguments": [*suite, *QUICKLY], "timeout": TIMEOUT_SECONDS}
        print(json.dumps(asked), file=self._nursery.stdin, flush=True)
        ran = json.loads(self._nursery.stdout.readline())
        return ran["code"], ran["output"]


def suites_for(mutant: Mutant, *, laws_only: bool) -> tuple[tuple[str, ...], ...]:
    """Return what is run against a mutant, the quickest to notice it first."""
    if laws_only:
        return ((LAWS, *NOT_OF_THE_CORE),)
    folder = ELSEWHERE.get(mutant.path, EXAMPLES)
    near = tuple(f"{folder}/{name}.py" for name in NEAREST[mutant.path])
    if folder != EXAMPLES:
        return (near,)
    laws = (LAWS, *NOT_OF_THE_CORE)
    return ((EXAMPLES,), laws) if mutant is NOTHING_BROKEN else (near, (EXAMPLES,), laws)


def try_all(mutants: Iterable[Mutant], *, laws_only: bool = False, lanes: int = SIDE_BY_SIDE) -> Iterator[Result]:
    """Yield the fate of each mutant, in order."""
    free: queue.Queue[Lane] = queue.Queue()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="mutants-"))
        for number in range(lanes):
            free.put(stack.enter_context(Lane(Path(folder) / str(number))))
        pool = stack.enter_context(ThreadPoolExecutor(lanes))

        def one(mutant: Mutant) -> Result:
            lane = free.get()
            try:
                return lane.try_out(mutant, suites_for(mutant, laws_only=laws_only))
            finally:
                free.put(lane)

        yield from pool.map(one, mutants)


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the catalogue and tell the fates as a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__.splitlines()[0])
    parser.add_argument("--laws", action="store_true", help="let the laws alone notice, without the examples")
    parser.add_argument("names", nargs="*", help="only the mutants whose name holds one of these words")
    asked = parser.parse_args(arguments)
    chosen = [each for each in MUTANTS if not asked.names or any(name in each.name for name in asked.names)]
    results = list(_told(try_all([NOTHING_BROKEN, *chosen], laws_only=asked.laws)))
    sound, broken = results[0].fate is Fate.SURVIVED, [r for r in results[1:] if r.fate is not Fate.KILLED]
    sys.stdout.write(f"\n{len(chosen) - len(broken)} of {len(chosen)} mutants killed\n")
    if not sound:
        sys.stdout.write(f"the tests fail although nothing is broken: {results[0].by}\n")
    return 0 if sound and not broken else 1


def _told(results: Iterable[Result]) -> Iterator[Result]:
    for result in results:
        told = "sound" if result.mutant is NOTHING_BROKEN and result.fate is Fate.SURVIVED else result.fate
        rule = f"rule {result.mutant.rule}" if result.mutant.rule else ""
        sys.stdout.write(f"{told:<12} {rule:<8} {result.mutant.name:<54} {result.by}\n")
        sys.stdout.flush()
        yield result


def _first_failed(output: str) -> str:
    """Return the first test of pytest's short summary, as `file::test`."""
    failed = next((line for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))), "")
    return failed.partition(" ")[2].partition(" - ")[0].removeprefix("tests/")
