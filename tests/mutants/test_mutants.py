"""The engine itself: each mutant can be applied, a fault is noticed, and what is no fault is not."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.mutants.catalogue import MUTANTS, Mutant
from tests.mutants.run import EXAMPLES, LAWS, NOTHING_BROKEN, ROOT, Fate, Lane, suites_for


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_applies_at_exactly_one_place_and_is_python(mutant: Mutant):
    text = (ROOT / mutant.path).read_text()

    assert text.count(mutant.old) == 1
    broken = text.replace(mutant.old, mutant.new)
    assert ast.dump(ast.parse(broken)) != ast.dump(ast.parse(text))


def test_mutants_are_many_and_each_has_its_own_name():
    names = [mutant.name for mutant in MUTANTS]

    assert len(names) >= 25
    assert len(set(names)) == len(names)


@pytest.fixture(scope="module")
def lane(tmp_path_factory) -> Iterator[Lane]:
    with Lane(tmp_path_factory.mktemp("mutants") / "lane") as made:
        yield made


SUITE = f"{EXAMPLES}/test_sightings.py"
COMMENT = Mutant("a comment", 0, "reaperd/core/sightings.py", "FORGET_AFTER = ", "# No fault.\nFORGET_AFTER = ")
TYPO = Mutant("a typing error", 0, "reaperd/core/sightings.py", "FORGET_AFTER = ", "FORGET_AFTER = = ")
LOST = Mutant("not there", 0, "reaperd/core/sightings.py", "no such text", "")
FAULT = next(mutant for mutant in MUTANTS if mutant.name == "no reset when absent")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mutant", "fate"),
    [
        (NOTHING_BROKEN, Fate.SURVIVED),
        (COMMENT, Fate.SURVIVED),
        (LOST, Fate.NOT_APPLIED),
        (TYPO, Fate.BROKEN),
        (FAULT, Fate.KILLED),
    ],
    ids=["nothing", "a comment", "a text that is not there", "a typing error", "a fault"],
)
def test_the_engine_tells_what_became_of(lane: Lane, mutant: Mutant, fate: Fate):
    before = (lane.folder / mutant.path).read_text()

    result = lane.try_out(mutant, [(SUITE,)])

    assert result.fate is fate
    assert (lane.folder / mutant.path).read_text() == before
    if fate is Fate.KILLED:
        assert "absent" in result.by


def test_the_suites_that_judge_a_mutant_are_there():
    suites = {name for mutant in MUTANTS for suite in suites_for(mutant, laws_only=False) for name in suite}
    suites = {name.removeprefix("--ignore=") for name in suites}

    assert {EXAMPLES, LAWS} < suites
    assert [name for name in sorted(suites) if not (ROOT / name).exists()] == []
