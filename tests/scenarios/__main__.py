"""`python -m tests.scenarios [ID ...]`: play the cases; show how much is checked of each, here and elsewhere."""

from __future__ import annotations

import sys

import click

from tests.scenarios.case import Case, cases
from tests.scenarios.checked import asserted, shown_elsewhere
from tests.scenarios.judging import breaches, judge
from tests.scenarios.runner import play


def main(wanted: list[str]) -> int:
    """Print the table; answer 1 when a case came otherwise than expected."""
    chosen = [case for case in cases() if not wanted or case.id in wanted]
    click.echo(f"{'case':5}{'here':>5}{'elsewhere':>10}  {'result':12}what it is about")
    wrong = [complaint for case in chosen for complaint in _line(case)]
    for complaint in wrong:
        click.echo(complaint, err=True)
    return 1 if wrong else 0


def _line(case: Case) -> list[str]:
    complaints = _complaints(case)
    here, there = len(asserted(case)), len(shown_elsewhere(case.id))
    result = ("WRONG" if complaints else "as told") if case.is_played else "not played"
    click.echo(f"{case.id:5}{here:5}{there:10}  {result:12}{case.title}")
    return complaints


def _complaints(case: Case) -> list[str]:
    found: list[str] = []
    for variant in case.variants if case.is_played else ():
        evidence = play(variant)
        checks = [check for check in judge(variant, evidence) if not check.holds]
        found += [f"{variant.test_id}: {c.leaf}: expected {c.expected!r}, saw {c.seen!r}" for c in checks]
        found += [f"{variant.test_id}: {breach}" for breach in breaches(evidence)]
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
