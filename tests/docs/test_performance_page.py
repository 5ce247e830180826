"""docs/performance.md tells of every candidate and every measurement, and its tables are those of `bench/`."""

from __future__ import annotations

import re
from itertools import pairwise

from bench import candidates, table, targets
from bench.page import GROWTH_HEADINGS
from bench.run import OTHERS
from tests.docs.markdown import read

PAGE = read("docs/performance.md")
LAST = re.search(r"<!-- made by `make bench-full` -->\n(.*?)<!-- end -->", PAGE, re.DOTALL)


def test_the_page_tells_of_every_candidate():
    described = PAGE.partition("## The last figures")[0]

    assert [each.name for each in candidates.ALL if f"| {each.name} |" not in described.replace("`", "")] == []


def test_the_page_tells_of_every_other_measurement():
    assert [name for name in OTHERS if f"`python -m bench.{name}`" not in PAGE] == []


def test_the_tables_of_the_last_run_have_the_columns_of_today():
    assert LAST is not None
    lines = LAST[1].splitlines()

    heads = {head for head, rule in pairwise(lines) if rule.startswith("| ---")}

    shown = {f"| {' | '.join(head)} |" for head in (table.headings(), targets.HEADINGS, GROWTH_HEADINGS)}
    assert heads == shown
