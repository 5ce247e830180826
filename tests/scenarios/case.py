"""The cases as values: read from the files, with their variants unfolded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
STEPS = frozenset({"start", "reap", "audit", "restart", "advance", "do", "scrape"})
"""What the runner can do. A case with another step waits for the part of the program that it is about."""

Tree = dict[str, Any]
Leaf = str
"""The path of one expectation, such as `metrics > registry_up`; one of a variant begins with `@NAME > `."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One world and what is expected of it."""

    case_id: str
    name: str
    """Empty for a case without variants."""
    world: Tree
    """Everything of the case but its expectations."""
    expect: Tree
    origin: Mapping[tuple[str, ...], Leaf]
    """Of each leaf of `expect`: where it stands in the file."""

    @property
    def test_id(self) -> str:
        """Return what pytest calls it."""
        return f"{self.case_id}-{self.name.replace(' ', '_')}" if self.name else self.case_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One file."""

    id: str
    title: str
    sources: tuple[str, ...]
    variants: tuple[Variant, ...]
    leaves: tuple[Leaf, ...]
    """All that the file expects."""
    is_played: bool


def base() -> Tree:
    """Return what holds in every case."""
    return deepcopy(_read(HERE / "base.yaml"))


@cache
def cases() -> tuple[Case, ...]:
    """Return all cases, in order."""
    return tuple(_case(_read(path)) for path in sorted((HERE / "cases").glob("*.yaml")))


def leaves(tree: Tree, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the paths and values of a tree's leaves. A list is one leaf."""
    for key, value in tree.items():
        path = (*above, str(key))
        if isinstance(value, dict) and value:
            yield from leaves(value, path)
        else:
            yield path, value


def named(path: tuple[str, ...], variant: str = "") -> Leaf:
    """Return the path as the list spells it."""
    return " > ".join((f"@{variant}", *path) if variant else path)


def start() -> datetime:
    """Return when every case begins."""
    return datetime.fromisoformat(base()["now"])


def _read(path: Path) -> Tree:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def _case(file: Tree) -> Case:
    variants = file.pop("variants", None) or {"": {}}
    expect = file.pop("expect", {})
    own = [named(path) for path, _ in leaves(expect)]
    for name, change in variants.items():
        own += [named(path, name) for path, _ in leaves(change.get("expect", {}))]
    unfolded = tuple(_variant(file, expect, name, deepcopy(change)) for name, change in variants.items())
    return Case(
        id=file["id"],
        title=file["title"],
        sources=tuple(file["sources"]),
        variants=unfolded,
        leaves=tuple(own),
        is_played=all(_verb(step) in STEPS for variant in unfolded for step in variant.world["steps"]),
    )


def _variant(file: Tree, expect: Tree, name: str, change: Tree) -> Variant:
    special = change.pop("expect", {})
    origin = {path: named(path) for path, _ in leaves(expect)}
    origin |= {path: named(path, name) for path, _ in leaves(special)}
    return Variant(
        case_id=file["id"],
        name=name,
        world=_laid_over(file, change),
        expect=_laid_over(expect, special),
        origin=origin,
    )


def _laid_over(under: Tree, over: Tree) -> Tree:
    """Return both, tables merged, everything else replaced."""
    merged = deepcopy(under)
    for key, value in over.items():
        below = merged.get(key)
        both = isinstance(value, dict) and isinstance(below, dict)
        merged[key] = _laid_over(below, value) if both else deepcopy(value)
    return merged


def _verb(step: object) -> str:
    return next(iter(step)) if isinstance(step, dict) else str(step)
