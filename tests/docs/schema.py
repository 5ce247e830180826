"""The schema of the registry, for control planes in other languages."""

from __future__ import annotations

from collections.abc import Iterable

from registry.sqlite.schema import TABLES, TRIGGERS


def tables() -> str:
    """Return the tables as SQL."""
    return _block(TABLES.values())


def triggers() -> str:
    """Return the triggers as SQL."""
    return _block(TRIGGERS.values())


def _block(statements: Iterable[str]) -> str:
    return "```sql\n" + "\n\n".join(f"{statement};" for statement in statements) + "\n```\n"
