"""What is checked of a case, here and elsewhere."""

from __future__ import annotations

from functools import cache

import yaml

from tests.scenarios.case import HERE, Case, Leaf, leaves
from tests.scenarios.judging import judge
from tests.scenarios.runner import play

Listed = dict[str, dict[str, list[Leaf]]]
"""Expectations by case, and by the test that shows them."""


@cache
def elsewhere() -> Listed:
    """Return what the player of the cases cannot show, by the test that does."""
    return yaml.safe_load((HERE / "elsewhere.yaml").read_text(encoding="utf-8"))


def shown_elsewhere(case_id: str) -> list[Leaf]:
    """Return the expectations of one case that are shown elsewhere."""
    return [leaf for leaves in elsewhere().get(case_id, {}).values() for leaf in leaves]


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
