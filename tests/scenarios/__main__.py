"""`python -m tests.scenarios [ID ...]`: play the cases; show what is checked of each, here, elsewhere and not yet."""

from __future__ import annotations

import sys

import click

from tests.scenarios.case import Case, cases
from tests.scenarios.gaps import asserted, elsewhere, gaps, listed
from tests.scenarios.judging import breaches, judge
from tests.scenarios.runner import play


def main(wanted: list[str]) -> int:
    """Print the table; answer 1 when a case came otherwise than expected."""
    chosen = [case for case in cases() if not wanted or case.id in wanted]
    click.echo(f"{'case':5}{'here':>5}{'elsewhere':>10}{'not yet':>8}  {'result':12}{'waits for':26}what it is about")
    wrong = [complaint for case in chosen for complaint in _line(case)]
    for complaint in wrong:
        click.echo(complaint, err=True)
    return 1 if wrong else 0


def _line(case: Case) -> list[str]:
    complaints = _complaints(case)
    here, there, nowhere = len(asserted(case)), len(listed(elsewhere(), case.id)), len(listed(gaps(), case.id))
    result = ("WRONG" if complaints else "as told") if case.is_played else "not played"
    waits = ", ".join(sorted(gaps().get(case.id, {})))
    click.echo(f"{case.id:5}{here:5}{there:10}{nowhere:8}  {result:12}{waits:26}{case.title}")
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
