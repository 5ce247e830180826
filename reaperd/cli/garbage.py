"""How often the interpreter looks for garbage that refers to itself."""

from __future__ import annotations

import gc

_THRESHOLDS = (50_000, 20, 20)
"""Python's own, (700, 10, 10), suit a script: a page of machines is thousands of new objects at once, none of them
garbage, and looking at all of them again and again took a seventh of a listing's time. What refers to itself here is
little, and comes from libraries."""


def collect_rarely() -> None:
    """Look for it rarely, in the whole process and from now on."""
    gc.set_threshold(*_THRESHOLDS)
