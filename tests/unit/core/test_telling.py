"""What a pass tells, and how far it says that it looked."""

from __future__ import annotations

from typing import Any

import pytest

from alerts.model import Cause, Condition, Severity
from reaperd.core.model import Census, Mode, PassOutcome, PassReport
from reaperd.core.telling import told_of_pass, told_of_the_ledger
from tests.support.worlds import EAST, NOW, WEST, broken, whole

CENSUS = Census(at=NOW, scopes={}, held={}, workers={}, epoch=1)


def condition(cause: Cause) -> Condition:
    return Condition(cause=cause, severity=Severity.CRITICAL)


def report(**other: Any) -> PassReport:
    facts: dict[str, Any] = {"outcome": PassOutcome.COMPLETE, "reason": None, "coverage": (whole(EAST),)}
    return PassReport(pass_id="p", mode=Mode.ENFORCE, started_at=NOW, finished_at=NOW, **(facts | other))


def test_what_is_wrong_with_the_ledger_goes_through_no_ledger():
    told = report(conditions=(condition(Cause.LEDGER_UNUSABLE), condition(Cause.CLOCK)))

    assert [c.cause for c in told_of_pass(told).conditions] == [Cause.CLOCK]
    assert [c.cause for c in told_of_the_ledger(told).conditions] == [Cause.LEDGER_UNUSABLE]


def test_only_a_complete_look_can_say_that_something_is_over():
    assert told_of_pass(report(census=CENSUS)).look.complete
    assert not told_of_pass(report(census=None)).look.complete


def test_a_scope_that_failed_was_not_looked_at():
    look = told_of_pass(report(coverage=(whole(EAST), broken(WEST)))).look

    assert look.scopes == {str(EAST)}


@pytest.mark.parametrize(
    ("outcome", "reason", "judged"),
    [
        (PassOutcome.COMPLETE, None, True),
        (PassOutcome.DEFERRED, "throttled", True),
        (PassOutcome.REFUSED, "breaker_open", True),
        (PassOutcome.REFUSED, "reap_hold", True),
        (PassOutcome.REFUSED, "registry_mismatch", False),
        (PassOutcome.REFUSED, "ledger_unusable", False),
    ],
)
def test_the_breaker_was_asked_by_whoever_had_a_plan(outcome: PassOutcome, reason: str | None, judged: bool):
    assert told_of_pass(report(outcome=outcome, reason=reason)).look.judged is judged
