"""Every rule has words, tests, metrics and a place on the page; every word and every metric has a rule."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from itertools import chain

import pytest

from alerts.model import Cause
from providers.model import InstanceState, ScopeFailure
from reaperd.core.model import (
    DeferReason,
    KeepReason,
    Mode,
    OutcomeKind,
    PassKind,
    RefusalReason,
    SparedReason,
    TerminateReason,
)
from reaperd.report.series import ALL
from registry.model import RegistryFault, WorkerState
from tests.docs import reasons
from tests.docs.markdown import anchors, read
from tests.docs.rules import OF_NO_RULE, RULES
from tests.support.collected import exists

PAGE = read("docs/safety.md")
METRICS = frozenset(series.name for series in ALL)
WORDS = (
    KeepReason,
    TerminateReason,
    RefusalReason,
    DeferReason,
    SparedReason,
    OutcomeKind,
    Cause,
    ScopeFailure,
    RegistryFault,
    InstanceState,
    WorkerState,
    Mode,
    PassKind,
)
by_rule = pytest.mark.parametrize("number", RULES)


def test_there_are_thirty_rules():
    assert list(RULES) == list(range(1, 31))


@by_rule
def test_every_rule_has_its_place_on_the_page(number: int):
    assert f"rule-{number}" in anchors(PAGE)
    assert len(re.findall(rf"^\| \[{number}\]\(#rule-{number}\) \| ", PAGE, re.MULTILINE)) == 1


# ---------------------------------------------------------------- words


@by_rule
def test_every_rule_has_a_word_in_the_code_or_says_why_it_has_none(number: int):
    evidence = RULES[number]

    assert bool(evidence.members) != bool(evidence.no_member)


@pytest.mark.parametrize("kind", WORDS, ids=lambda kind: kind.__name__)
def test_every_word_belongs_to_exactly_one_rule(kind: type[StrEnum]):
    of_kind = [member for evidence in RULES.values() for member in evidence.members if type(member) is kind]

    assert sorted(of_kind) == sorted(kind)


def test_the_tables_of_reasons_give_each_word_to_the_same_rule():
    here = {(type(m), str(m)): number for number, evidence in RULES.items() for m in evidence.members}

    assert {word: rule for word, rule in told_by_the_tables() if here[word] != rule} == {}


def told_by_the_tables() -> Iterator[tuple[tuple[type[StrEnum], str], int]]:
    # With its type, because members of two enumerations may be equal.
    for member, rule in chain(reasons.REFUSE.items(), reasons.DEFER.items()):
        yield (type(member), str(member)), rule
    for table in (reasons.KEEP, reasons.TERMINATE, reasons.SPARE, reasons.OUTCOME):
        for member, (rule, _) in table.items():
            yield (type(member), str(member)), rule


# ---------------------------------------------------------------- tests


@by_rule
def test_every_rule_is_shown_by_tests_that_exist(number: int):
    tests = RULES[number].tests

    assert tests
    assert [name for name in tests if not exists(name)] == []


@by_rule
def test_the_page_and_the_table_name_the_same_cases(number: int):
    rule = PAGE.partition(f"\n### Rule {number}\n")[2].partition("\n#")[0]

    assert sorted(set(re.findall(r"\bA\d\d\b", rule))) == sorted(RULES[number].cases)


@pytest.mark.parametrize(
    "name",
    [
        "tests/unit/core/test_guards.py::test_that_nobody_wrote",
        "tests/unit/core/test_that_nobody_wrote.py::test_a_good_picture_is_refused_by_nobody",
        "tests/unit/core/test_guards.py",
        "tests/support/worlds.py::look",
        "providers/conformance/lister.py::test_the_lister_cannot_terminate",
    ],
)
def test_a_test_that_does_not_exist_is_found_out(name: str):
    assert not exists(name)


# ---------------------------------------------------------------- metrics


@by_rule
def test_every_rule_is_told_by_metrics_that_exist(number: int):
    metrics = RULES[number].metrics

    assert metrics
    assert set(metrics) - METRICS == set()


def test_every_metric_tells_of_a_rule_or_of_none():
    of_rules = {metric for evidence in RULES.values() for metric in evidence.metrics}

    assert METRICS - of_rules == OF_NO_RULE
