"""Which tests there are, without running any: for tables that name tests as evidence."""

from __future__ import annotations

import ast
from functools import cache

from tests.support.processes import ROOT


def exists(name: str) -> bool:
    """Say whether pytest would collect a test of this name: a function of a module, or a method of a class in it."""
    path, _, inside = name.partition("::")
    return inside.rpartition("::")[2].startswith("test_") and inside in _collected_from(path)


@cache
def _collected_from(path: str) -> frozenset[str]:
    if not (ROOT / path).is_file():
        return frozenset()
    module = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    classes = [node for node in module.body if isinstance(node, ast.ClassDef)]
    return frozenset(
        [node.name for node in module.body if isinstance(node, ast.FunctionDef)]
        + [f"{each.name}::{node.name}" for each in classes for node in each.body if isinstance(node, ast.FunctionDef)]
    )
