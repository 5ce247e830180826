"""reaperd beside what people would use instead, on one fleet, in one run.

    python -m bench.run                            10,000 machines in 4 regions, one round
    python -m bench.run --workload M --rounds 3    50,000 in 17
    python -m bench.run --check                    a small fleet, for CI: the results, not the times
    python -m bench.run --small                    10,000 machines, and the other measurements, as small as they come
    python -m bench.run --full                     everything: what docs/performance.md holds

Every candidate runs in a fresh process, in turn with the others, so many rounds; the best of its figures count. Each
has to find exactly the right ids: what found others is WRONG, and the exit code is 1. A target that is not reached is
no error: it is told.
"""

# ruff: noqa: T201 - it prints

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from bench import candidates, table, targets
from bench.candidates import Candidate, Took, outputs
from bench.machine import Machine, this_machine
from bench.page import write_page
from bench.site import ROOT, Site, Workload, site
from bench.table import MEGA, Row
from bench.targets import Target

CHECK = Workload(name="check", machines=1_000, regions=4)
WORKLOADS = {
    each.name: each
    for each in (
        Workload(name="XS", machines=1_000, regions=17),
        Workload(name="S", machines=10_000, regions=4),
        Workload(name="M", machines=50_000, regions=17),
        Workload(name="L", machines=100_000, regions=17),
        Workload(name="slow-region", machines=20_000, regions=1, latency_ms=150.0, item_us=1_000.0),
    )
}
GROWTH = (
    WORKLOADS["XS"],
    Workload(name="10k", machines=10_000, regions=17),
    WORKLOADS["M"],
    WORKLOADS["L"],
)
"""How the cost grows: the same regions, more machines."""
OTHERS: Mapping[str, Sequence[str]] = {
    "scrape": (),
    "idle": (),
    "registry": ("--rows", "100000"),
    "terminate": ("--machines", "500"),
}
"""Measurements of their own, each a module, with what makes it small. `--json FILE` has it write its targets there."""

CHECKED = ("registry", "terminate")
"""Those of them that judge what becomes of machines and rows, and not the time alone: with `--check` only that."""

_SECONDS = 3_600.0
"""Of one candidate in one round, at the most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What one run found out."""

    machine: Machine
    workloads: Sequence[tuple[Workload, Sequence[Row]]]
    targets: Sequence[Target]

    def document(self) -> dict[str, object]:
        """Return it for JSON."""
        return {
            "machine": asdict(self.machine),
            "workloads": [
                {"workload": asdict(workload), "rows": [table.json_row(row) for row in rows]}
                for workload, rows in self.workloads
            ],
            "targets": [asdict(target) | {"reached": target.reached} for target in self.targets],
        }


# ---------------------------------------------------------------- one workload


def compared(workload: Workload, field: Iterable[Candidate], rounds: int) -> list[Row]:
    """Return a row for each candidate, and print them."""
    print(f"\n{workload.name}: {workload}, best of {rounds}", flush=True)
    absent = {each.name: reason for each in field if (reason := each.missing())}
    runners = [each for each in field if each.name not in absent]
    runs: dict[str, list[Row]] = {each.name: [] for each in runners}
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-"))
        at = stack.enter_context(site(workload, Path(folder)))
        for _ in range(rounds):
            for each in runners:
                runs[each.name].append(ran(each, at))
    rows = [_best(runs[each.name]) if each in runners else _not_there(each, absent[each.name]) for each in field]
    rows = _with_ratios(rows)
    print(table.plain(table.headings(), map(table.cells, rows)), flush=True)
    return rows


def ran(candidate: Candidate, at: Site) -> Row:
    """Run it once in a fresh process, and judge what it found."""
    result = at.folder / "measured.json"
    command = [sys.executable, "-m", "bench.measured", str(result), str(_SECONDS), *candidate.command(at)]
    at.asked_for()
    stdout, stderr = outputs(at)
    with stdout.open("wb") as out, stderr.open("wb") as err:
        subprocess.run(command, cwd=ROOT, env=at.environment(), stdout=out, stderr=err, check=True)  # noqa: S603
    told = json.loads(result.read_text(encoding="utf-8"))
    calls, received = at.asked_for()
    if told["code"] is None:
        return Row(candidate=candidate.name, result=f"not done within {_SECONDS:.0f} s")
    took = Took(wall=told["wall"], cpu=told["cpu"], peak_bytes=told["peak_bytes"])
    try:
        took = candidate.read(at, took)
    except (OSError, ValueError, KeyError) as error:
        last = stderr.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
        return Row(candidate=candidate.name, result=f"WRONG: it ended with {told['code']}: {last or error}")
    return Row(
        candidate=candidate.name,
        wall_seconds=took.wall,
        cpu_seconds=took.cpu,
        look_wall_seconds=took.look_wall,
        look_cpu_seconds=took.look_cpu,
        peak_mb=took.peak_bytes / MEGA,
        machines_per_second=len(at.owned) / took.wall,
        calls=calls,
        received_mb=received / MEGA,
        result=judged(took.found, candidate.expected(at)),
    )


def judged(found: frozenset[str], expected: frozenset[str]) -> str:
    """Return whether the ids are the right ones, every one and no other."""
    if found == expected:
        return "right"
    return f"WRONG: {len(expected - found):,} missing, {len(found - expected):,} too many"


def _best(runs: Sequence[Row]) -> Row:
    """Return the least of each figure; of the memory, the most. One run that was wrong makes all of them wrong."""
    failed = next((run for run in runs if run.result != "right"), None)
    if failed is not None:
        return failed
    quickest = min(runs, key=lambda run: run.wall_seconds or 0.0)
    least = {
        name: min(getattr(run, name) for run in runs)
        for name in ("cpu_seconds", "look_wall_seconds", "look_cpu_seconds")
        if getattr(quickest, name) is not None
    }
    return replace(quickest, peak_mb=max(run.peak_mb or 0.0 for run in runs), **least)


def _not_there(candidate: Candidate, reason: str) -> Row:
    return Row(candidate=candidate.name, result=f"not there: {reason}")


def _with_ratios(rows: Sequence[Row]) -> list[Row]:
    by_name = {row.candidate: row for row in rows}
    plan = by_name[candidates.PLAN.name].wall_seconds if candidates.PLAN.name in by_name else None
    raw = _look_cpu(by_name[candidates.RAW.name]) if candidates.RAW.name in by_name else None
    return [
        replace(row, wall_over_plan=_over(row.wall_seconds, plan), cpu_over_raw=_over(_look_cpu(row), raw))
        for row in rows
    ]


def _look_cpu(row: Row) -> float | None:
    return row.cpu_seconds if row.look_cpu_seconds is None else row.look_cpu_seconds


def _over(one: float | None, other: float | None) -> float | None:
    return one / other if one is not None and other else None


# ---------------------------------------------------------------- everything


def full(rounds: int) -> tuple[list[tuple[Workload, list[Row]]], list[Target]]:
    """Run every workload and every other measurement."""
    small = (candidates.PLAN, candidates.DAEMON, candidates.LISTING, candidates.RAW)
    fields = {workload.name: small for workload in GROWTH} | {"M": candidates.ALL}
    done = [(workload, compared(workload, fields[workload.name], rounds)) for workload in GROWTH]
    slow = WORKLOADS["slow-region"]
    by_name = {workload.name: rows for workload, rows in done}
    done.append((slow, compared(slow, (*candidates.OURS, candidates.CLOUD_CUSTODIAN), 1)))
    plans = {name: rows[0] for name, rows in by_name.items()}
    found = [*targets.beside_peers(by_name["M"]), *targets.growth(plans["10k"], plans["L"])]
    return done, [*found, *others(small=False)]


def others(*, small: bool) -> list[Target]:
    """Run all other measurements, and return their targets."""
    return [target for name, options in OTHERS.items() for target in other(name, options if small else ())]


def other(name: str, options: Sequence[str]) -> list[Target]:
    """Run another measurement, and return its targets: one that is not reached if it broke off."""
    print(f"\nbench.{name}", flush=True)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        result = Path(folder) / "targets.json"
        command = [sys.executable, "-m", f"bench.{name}", *options, "--json", str(result)]
        done = subprocess.run(command, cwd=ROOT, check=False)  # noqa: S603 - one of OTHERS
        if not result.exists():
            # By a signal it is below zero; an end without targets is none, whatever it says.
            return [Target(name=f"bench.{name}: exit code", value=abs(done.returncode) or 1, limit=0)]
        return [Target(**told) for told in json.loads(result.read_text(encoding="utf-8"))]


def main() -> int:
    """Measure, print, and write what was asked for."""
    asked = _arguments()
    done, reached = _measured(asked)
    figures = Figures(machine=this_machine(), workloads=done, targets=reached)
    if reached:
        print("\n" + table.plain(targets.HEADINGS, map(targets.cells, reached)))
    if asked.json is not None:
        asked.json.parent.mkdir(parents=True, exist_ok=True)
        asked.json.write_text(json.dumps(figures.document(), indent=1), encoding="utf-8")
    if asked.write is not None:
        write_page(asked.write, figures)
    wrong = any(row.is_wrong for _, rows in done for row in rows) or any(target.is_wrong for target in reached)
    return int(wrong or (asked.check and not all(target.reached for target in reached)))


def _measured(asked: argparse.Namespace) -> tuple[list[tuple[Workload, list[Row]]], list[Target]]:
    if asked.full:
        return full(asked.rounds)
    if asked.check:
        rows = compared(CHECK, candidates.OURS, asked.rounds)
        return [(CHECK, rows)], [target for name in CHECKED for target in other(name, ("--check",))]
    workload = WORKLOADS[asked.workload]
    rows = compared(workload, candidates.ALL, asked.rounds)
    more = others(small=True) if asked.small else []
    return [(workload, rows)], [*targets.beside_peers(rows), *more]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workload", choices=WORKLOADS, default="S")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument(
        "--check", action="store_true", help="a small fleet: only whether everybody finds the right ids"
    )
    parser.add_argument("--small", action="store_true", help="the other measurements too, as small as they come")
    parser.add_argument("--full", action="store_true", help="every workload and every other measurement")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there, as JSON")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the figures into this page")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
