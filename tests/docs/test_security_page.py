"""Every claim of docs/security.md names the tests that show it, and they are there."""

from __future__ import annotations

import re

import pytest

from tests.docs.markdown import read
from tests.support.collected import exists

PAGE = read("docs/security.md")
THREATS = ("Stolen credentials", "A forged registry", "Hostile instance names", "A hostile metrics client")
HEAD = "| What stands in the way | Shown by |\n| --- | --- |\n"


def section(threat: str) -> str:
    return PAGE.partition(f"\n## {threat}\n")[2].partition("\n## ")[0]


def claims(threat: str) -> list[tuple[str, list[str]]]:
    """Return each claim about a threat, with its tests."""
    table = section(threat).partition(HEAD)[2].partition("\n\n")[0]
    rows = [re.fullmatch(r"\| (.+) \| (.+) \|", line) for line in table.splitlines()]
    return [(row[1], re.findall(r"`([^`]+)`", row[2])) for row in rows if row is not None]


def test_these_are_the_threats():
    assert tuple(re.findall(r"^## (.+)$", PAGE, re.MULTILINE))[1:] == THREATS


@pytest.mark.parametrize("threat", THREATS)
def test_every_claim_names_a_test_and_what_is_left_is_said(threat: str):
    lines = section(threat).partition(HEAD)[2].partition("\n\n")[0].splitlines()

    assert len(claims(threat)) == len(lines) > 5
    assert [claim for claim, tests in claims(threat) if not tests] == []
    assert section(threat).count("*What is left.*") == 1


@pytest.mark.parametrize("threat", THREATS)
def test_every_test_that_is_named_is_there(threat: str):
    assert [name for _, tests in claims(threat) for name in tests if not exists(name)] == []
