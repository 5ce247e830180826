"""What is checked of a case, here and elsewhere, and what is known not to be."""

from __future__ import annotations

from functools import cache

import yaml

from tests.scenarios.case import HERE, Case, Leaf, leaves
from tests.scenarios.judging import judge
from tests.scenarios.runner import play

Listed = dict[str, dict[str, list[Leaf]]]
"""Expectations by case, and by the test that shows them or the part of the program that will let them be shown."""


@cache
def gaps() -> Listed:
    """Return what nobody shows yet, by the part of the program that will let it be shown."""
    return _read("unasserted.yaml")


@cache
def elsewhere() -> Listed:
    """Return what only a running daemon can show, by the test that does."""
    return _read("elsewhere.yaml")


def listed(of: Listed, case_id: str) -> list[Leaf]:
    """Return the expectations of one case that a list names."""
    return [leaf for leaves in of.get(case_id, {}).values() for leaf in leaves]


def asserted(case: Case) -> set[Leaf]:
    """Return what was really compared, in every variant in which it is in force."""
    if not case.is_played:
        return set()
    in_force: set[Leaf] = set()
    missed: set[Leaf] = set()
    for variant in case.variants:
        expected = {variant.origin[path] for path, _ in leaves(variant.expect)}
        in_force |= expected
        missed |= expected - {check.leaf for check in judge(variant, play(variant))}
    return in_force - missed


def _read(name: str) -> Listed:
    return yaml.safe_load((HERE / name).read_text(encoding="utf-8"))
