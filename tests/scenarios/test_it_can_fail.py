"""A case that came out well proves something only if it could have come out badly."""

from __future__ import annotations

import re
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from tests.scenarios.case import Tree, Variant, cases
from tests.scenarios.judging import breaches, judge
from tests.scenarios.laws import EVERYWHERE, LAWS, Law
from tests.scenarios.runner import play, play_anew
from tests.scenarios.sins import SINS

VARIANTS = {variant.test_id: variant for case in cases() if case.is_played for variant in case.variants}
NAMED = [(variant, law) for variant in VARIANTS.values() for law in variant.expect.get("never", {}) if law in LAWS]
UNNAMED = [law for law in EVERYWHERE if law.__name__ not in {name for _, name in NAMED}]


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=lambda variant: variant.test_id)
def test_every_expectation_fails_when_it_expects_something_else(variant: Variant) -> None:
    evidence = play(variant)
    values = [check for check in judge(variant, evidence) if check.path[0] != "never"]

    blind = [
        (check.leaf, other)
        for check in values
        for other in _others(_at(variant.expect, check.path))
        if _holds(variant, check.path, other)
    ]

    assert values
    assert not blind


@pytest.mark.parametrize(("variant", "name"), NAMED, ids=[f"{variant.test_id}-{law}" for variant, law in NAMED])
def test_every_law_that_a_case_names_notices_a_sin_in_it(variant: Variant, name: str) -> None:
    evidence = play(variant)

    noticed = [sin.__name__ for sin in SINS if tuple(LAWS[name](sin(evidence)))]

    assert noticed


@pytest.mark.parametrize("law", UNNAMED, ids=lambda law: law.__name__)
def test_every_other_law_notices_a_sin_somewhere(law: Law) -> None:
    few = [VARIANTS[name] for name in ("A07", "A15", "A20")]

    assert any(tuple(law(sin(play(variant)))) for variant in few for sin in SINS)


def test_another_world_comes_out_otherwise() -> None:
    told = VARIANTS["A10"]
    world = deepcopy(told.world)
    for row in world["registry"]["rows"]:
        row["state"] = "running"

    checks = judge(told, play_anew(replace(told, world=world)))

    assert {check.leaf for check in checks if not check.holds} == {"terminate"}


def test_a_machine_that_nobody_expected_to_go_is_noticed() -> None:
    told = VARIANTS["A06"]
    world = deepcopy(told.world)
    world["machines"].append({"id": "i-2", "worker": "w-2"})

    evidence = play_anew(replace(told, world=world))

    assert not breaches(evidence)
    assert [check.seen for check in judge(told, evidence) if not check.holds] == [["i-1", "i-2"]]


def _others(value: Any) -> list[Any]:
    match value:
        case bool():
            return [not value]
        case int():
            return [value + 1]
        case str():
            # Where the words tell of a number, of another number, too.
            told = re.sub(r"\d+", lambda number: str(int(number[0]) + 1000), value)
            return [value + "!", None, *([told] if told != value else [])]
        case list():
            return [[*value, "another"], value[1:]] if value else [["another"]]
        case None:
            return ["something"]
        case _:
            raise TypeError(value)


def _holds(variant: Variant, path: tuple[str, ...], value: Any) -> bool:
    expect = deepcopy(variant.expect)
    branch = _at(expect, path[:-1])
    key = next(key for key in branch if str(key) == path[-1])
    branch[key] = value
    checks = {check.path: check for check in judge(variant, play(variant), expect)}
    return checks[path].holds


def _at(tree: Tree, path: tuple[str, ...]) -> Any:
    for name in path:
        tree = next(value for key, value in tree.items() if str(key) == name)
    return tree
