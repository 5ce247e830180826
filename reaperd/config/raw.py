"""What a TOML reader gives, narrowed: any value may be of any type until a model has judged it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

Plain = Mapping[str, object]
"""A table as the file gives it."""


def table_or_none(value: object) -> Plain | None:
    """Return the value when it is a table."""
    return cast("Plain", value) if isinstance(value, Mapping) else None


def list_or_none(value: object) -> Sequence[object] | None:
    """Return the value when it is an array."""
    return cast("Sequence[Any]", value) if isinstance(value, list | tuple) else None
