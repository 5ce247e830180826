"""A short soak and a few kills, in processes of their own. `make soak` runs long ones."""

from __future__ import annotations

import secrets
import subprocess
import sys
from pathlib import Path

import pytest

from tests.soak.oracle import all_named, named
from tests.support.processes import ROOT, environment

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_two_hundred_passes_with_every_fault_terminate_nothing_that_is_needed_and_leave_no_orphan(tmp_path: Path):
    ended = soaked(tmp_path, "--passes", "200", "--kills", "0")

    assert ended.returncode == 0, told(ended)
    assert "Machines terminated that must not be: 0" in ended.stdout


def test_forty_kills_lose_no_intent_and_leave_no_request_without_one(tmp_path: Path):
    ended = soaked(tmp_path, "--passes", "0", "--kills", "40")

    assert ended.returncode == 0, told(ended)
    assert "Processes killed: 40" in ended.stdout


def test_every_machine_that_a_request_names_is_judged():
    params = {"Action": "TerminateInstances", "InstanceId.10": "i-c", "InstanceId.1": "i-a", "InstanceId.2": "i-b"}

    assert named({"params": params}) == ("i-a", "i-b", "i-c")
    assert all_named([{"params": params}, {"params": {"InstanceId.1": "i-d"}}]) == {"i-a", "i-b", "i-c", "i-d"}


def soaked(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run `python -m tests.soak` with a seed of its own, which a failure tells."""
    command = [sys.executable, "-m", "tests.soak", "--seed", str(secrets.randbelow(1_000_000)), *words]
    env = environment(TMPDIR=str(folder))
    return subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, check=False)


def told(ended: subprocess.CompletedProcess[str]) -> str:
    """Return what a person needs to see of a run that failed."""
    # The promise that was broken stands before the last words of the daemon.
    promise, _, words = ended.stderr.partition("\n{")
    return f"{ended.stdout}\n{promise[-3000:]}\n{{{words[-6000:]}"
