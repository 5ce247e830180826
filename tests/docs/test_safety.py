"""docs/safety.md tells all thirty rules and every reason, and what it refers to exists."""

import re
from functools import cache

import pytest

from reaperd.core.model import DeferReason, KeepReason, OutcomeKind, RefusalReason, SparedReason, TerminateReason
from tests.docs import reasons
from tests.docs.markdown import read
from tests.docs.pages import ROOT

PAGE = read("docs/safety.md")
RULES = range(1, 31)

TOLD = {
    KeepReason: reasons.KEEP,
    TerminateReason: reasons.TERMINATE,
    RefusalReason: reasons.REFUSE,
    DeferReason: reasons.DEFER,
    SparedReason: reasons.SPARE,
    OutcomeKind: reasons.OUTCOME,
}


@pytest.mark.parametrize("kind", TOLD, ids=lambda kind: kind.__name__)
def test_every_reason_is_told_in_the_order_of_the_code(kind):
    assert list(TOLD[kind]) == list(kind)


@pytest.mark.parametrize("member", [member for kind in TOLD for member in kind], ids=repr)
def test_every_reason_has_a_line_on_the_page(member):
    assert f"\n| `{member}` | [" in PAGE


def test_the_rules_are_told_in_their_order():
    assert re.findall(r"^### Rule (\d+)$", PAGE, re.MULTILINE) == [str(number) for number in RULES]


@pytest.mark.parametrize("number", RULES)
def test_every_rule_says_what_one_sees_and_does_where_it_is_and_whether_it_is_there(number):
    points = [line.split(":")[0] for line in rule(number).splitlines() if line.startswith("* ")]
    status = rule(number).partition("\n* Status: ")[2]

    assert rule(number).count("Do: ") == 1
    assert [point for point in points if point in ("* See", "* Code", "* Shown by", "* Status")] == [
        "* See",
        "* Code",
        "* Shown by",
        "* Status",
    ]
    assert re.search(r"\bnow\b|with the (daemon|alerts|metrics)", status)


@pytest.mark.parametrize("number", RULES)
def test_every_file_and_test_that_a_rule_names_exists(number):
    named = re.findall(r"`([\w/]+\.py)(?:::(\w+))?`", rule(number))

    assert [path for path, _ in named if not (ROOT / path).exists()] == []
    assert [f"{path}::{test}" for path, test in named if test and not holds(path, test)] == []
    assert [test for test in re.findall(r"`(test_\w+)`", rule(number)) if not holds(named[-1][0], test)] == []


@pytest.mark.parametrize("number", RULES)
def test_every_case_that_a_rule_names_exists(number):
    cases = {path.stem for path in (ROOT / "tests" / "scenarios" / "cases").glob("*.yaml")}

    assert set(re.findall(r"\bA\d\d\b", rule(number))) <= cases


def test_every_case_is_named_by_a_rule():
    cases = {path.stem for path in (ROOT / "tests" / "scenarios" / "cases").glob("*.yaml")}

    assert cases - set(re.findall(r"\bA\d\d\b", PAGE)) == set()


@cache
def rule(number: int) -> str:
    """Return the text of one rule."""
    return PAGE.partition(f"\n### Rule {number}\n")[2].partition("\n#")[0]


def holds(path: str, test: str) -> bool:
    return f"def {test}(" in (ROOT / path).read_text(encoding="utf-8")
