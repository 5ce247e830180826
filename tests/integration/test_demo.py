"""The demo, whole: it tells what it does, and nothing of it stays."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_demo_tells_all_its_scenes_and_leaves_nothing_behind(tmp_path: Path):
    folder, home = tmp_path / "tmp", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "REAPERD_"))}
    environment = {**kept, "TMPDIR": str(folder), "HOME": str(home), "PYTHONPATH": str(ROOT)}

    done = subprocess.run(
        [sys.executable, "-m", "reaperd", "demo"],
        cwd=home,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    commands = [line for line in done.stdout.splitlines() if line.startswith("$ ")]
    assert commands == [
        "$ reaperd registry list",
        "$ reaperd plan",
        *["$ reaperd once"] * 5,
        "$ reaperd audit",
    ]
    assert "2 terminations requested" in done.stdout
    assert "REFUSED: listing_incomplete" in done.stdout
    assert "REFUSED: registry_identity" in done.stdout
    assert "image-builder-tmp" in done.stdout
    assert max(len(line) for line in done.stdout.splitlines()) <= 80
    assert list(folder.iterdir()) == []
    assert list(home.iterdir()) == []
