"""Pages as they were recorded: from moto, from the test cloud, and from the bench, whose machines are of full size."""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path(__file__).parent / "pages"

RECORDED = {path.stem.replace("_", " "): path.read_bytes() for path in sorted(_FOLDER.glob("*.xml"))}
