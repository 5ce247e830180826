"""The measurements run, and everybody who looks at the fleet finds exactly what is there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from bench import candidates
from bench.table import COLUMNS
from tests.docs.pages import ROOT


def test_everybody_finds_exactly_the_right_machines(tmp_path: Path):
    result = tmp_path / "figures.json"
    command = [sys.executable, "-m", "bench.run", "--check", "--json", str(result)]

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    (told,) = json.loads(result.read_text(encoding="utf-8"))["workloads"]
    found = {row["candidate"]: row["result"] for row in told["rows"]}
    assert set(found) == {each.name for each in candidates.OURS}
    assert all(text == "right" or text.startswith("not there") for text in found.values()), found
    assert found[candidates.PLAN.name] == found[candidates.DAEMON.name] == "right"
    assert all(list(row) == list(COLUMNS) for row in told["rows"])
