"""Every case is played, and every expectation of it is checked."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.scenarios.case import Case, Variant, cases
from tests.scenarios.checked import asserted, elsewhere, shown_elsewhere
from tests.scenarios.judging import breaches, judge
from tests.scenarios.runner import play
from tests.support.collected import exists

PLAYED = [variant for case in cases() if case.is_played for variant in case.variants]


def test_there_are_thirty_cases() -> None:
    assert [case.id for case in cases()] == [f"A{number:02d}" for number in range(1, 31)]


@pytest.mark.parametrize("variant", PLAYED, ids=lambda variant: variant.test_id)
def test_what_is_expected_comes(variant: Variant) -> None:
    evidence = play(variant)

    wrong = [check for check in judge(variant, evidence) if not check.holds]

    assert not wrong
    assert not breaches(evidence)


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.id)
def test_every_expectation_is_checked_here_or_elsewhere(case: Case) -> None:
    found = [*asserted(case), *shown_elsewhere(case.id)]

    assert [leaf for leaf, times in Counter(found).items() if times > 1] == []
    assert set(found) == set(case.leaves)


def test_the_list_names_cases_that_exist() -> None:
    assert set(elsewhere()) <= {case.id for case in cases()}


def test_what_is_shown_elsewhere_is_shown_by_tests_that_exist() -> None:
    named = [test for tests in elsewhere().values() for test in tests]

    assert [test for test in named if not exists(test)] == []


def test_the_cases_that_only_a_running_daemon_can_show_are_these() -> None:
    assert [case.id for case in cases() if not case.is_played] == ["A03", "A25", "A28", "A29", "A30"]
