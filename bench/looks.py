"""What the candidates that are our own programs have in common: they look once or more, and write down what they found.

The first look is what the program does in all, from its start; the quickest of those after it is what a process that
goes on does each time.
"""

# ruff: noqa: TID251 - real seconds are what it is about

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from bench.measured import STARTED

Look = Callable[[], Iterable[str]]


@dataclass(frozen=True, slots=True)
class Asked:
    """The command line of a candidate."""

    endpoint: str
    regions: tuple[str, ...]
    config: Path
    result: Path
    looks: int


def asked() -> Asked:
    """Read the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--endpoint", required=True)
    parser.add_argument("--regions", required=True)
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--result", type=Path, required=True)
    parser.add_argument("--looks", type=int, default=1)
    read = parser.parse_args()
    return Asked(read.endpoint, tuple(read.regions.split(",")), read.config, read.result, read.looks)


def take(look: Look, options: Asked) -> None:
    """Look, and write down the ids and the seconds."""
    found = sorted(look())
    started = float(os.environ[STARTED])
    told = {"found": found, "wall": time.monotonic() - started, "cpu": time.process_time()}
    again = [_timed(look, found) for _ in range(options.looks - 1)]
    if again:
        told |= {"look_wall": min(wall for wall, _ in again), "look_cpu": min(cpu for _, cpu in again)}
    options.result.write_text(json.dumps(told), encoding="utf-8")


def _timed(look: Look, expected: list[str]) -> tuple[float, float]:
    began, used = time.perf_counter(), time.process_time()
    found = look()
    took = time.perf_counter() - began, time.process_time() - used
    if sorted(found) != expected:
        msg = "another look found something else"
        raise SystemExit(msg)
    return took
