"""The plug-in of examples/provider-plugin, installed as far as Python can tell."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

HOME = Path(__file__).parents[2] / "examples" / "provider-plugin"


def install(folder: Path) -> str:
    """Put the module and its record into a folder that may stand on the path; return the folder."""
    declared = tomllib.loads((HOME / "pyproject.toml").read_text())["project"]
    record = folder / f"acme_reaperd-{declared['version']}.dist-info"
    record.mkdir(parents=True)
    (record / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {declared['name']}\nVersion: {declared['version']}\n"
    )
    groups = declared["entry-points"].items()
    lines = [f"[{group}]\n" + "\n".join(f"{k} = {v}" for k, v in entries.items()) for group, entries in groups]
    (record / "entry_points.txt").write_text("\n".join(lines) + "\n")
    shutil.copy(HOME / "acme_reaperd.py", folder)
    return str(folder)
