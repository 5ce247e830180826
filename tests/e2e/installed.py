"""A machine on which reaperd was installed as docs/install.md says, line by line."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.machine import Machine, booted, bring_packages
from tests.packaging.conftest import committed_files
from tests.support.processes import ROOT

PAGE = "docs/install.md"
ARCHIVE = "reaperd.tar.gz"
ARRIVES = "/srv/arrived"
"""Where the archive comes to lie."""


def lines_of(block: str, page: str = PAGE) -> list[str]:
    """Return the commands of one block of the page, by the name in the comment above it."""
    text = (ROOT / page).read_text(encoding="utf-8")
    (found,) = re.findall(
        rf"<!-- typed by \S+: {block} -->\n\n *```console\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE
    )
    return [line.strip().removeprefix("$ ") for line in found.splitlines()]


@contextmanager
def installed(folder: Path) -> Iterator[Machine]:
    """Build in a copy of the checkout, boot a machine, bring the archive there and install it."""
    archive = _built(folder / "checkout")
    with booted(folder) as made:
        there = made.files / ARRIVES.lstrip("/")
        there.mkdir()
        shutil.copy(archive, there)
        for line in lines_of("installing"):
            made.types(line, ARRIVES)
            if "-m venv" in line:
                (wheel,) = (there / "dist").glob("*.whl")
                bring_packages(made, wheel)
        made.run("useradd", "--system", "--no-create-home", "fleet")
        yield made


def _built(checkout: Path) -> Path:
    """Type what builds, and return the archive. There is no network for pip: what it needs is shown to it."""
    for path in committed_files():
        target = checkout / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PIP_NO_INDEX": "1",
        "PIP_QUIET": "1",
        # pip reads this the other way round: no isolation.
        "PIP_NO_BUILD_ISOLATION": "0",
    }
    for line in lines_of("building"):
        if line.startswith("scp "):
            continue
        done = subprocess.run(
            ["sh", "-c", line], cwd=checkout, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
        if "-m venv" in line:
            (packages,) = (checkout.parent / "build" / "lib").glob("python3.*/site-packages")
            (packages / "shown.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    return checkout.parent / ARCHIVE
