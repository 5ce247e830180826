"""What a sweep may tell people of (rules 16, 26)."""

from __future__ import annotations

import pytest

from reaperd.core.leaks import AuditFindings, AuditReport
from reaperd.core.model import PassOutcome
from reaperd.core.telling import told_of_sweep
from tests.support.worlds import EAST, NOW, WEST, broken, whole

NOTHING = AuditFindings(leaks=(), ignored=(), near_misses=(), instances=0, owned=0, conditions=())


@pytest.mark.parametrize(
    ("reason", "scopes"),
    [("listing_incomplete", {"aws/us-east-1"}), ("clock", set())],
    ids=["a scope failed", "the clock is wrong"],
)
def test_a_sweep_raises_and_resolves_only_where_it_saw_the_whole_under_a_good_clock(reason, scopes):
    report = AuditReport(
        pass_id="p",
        started_at=NOW,
        finished_at=NOW,
        outcome=PassOutcome.REFUSED,
        reason=reason,
        coverage=(whole(EAST), broken(WEST)),
        findings=NOTHING,
    )

    look = told_of_sweep(report).look

    assert (look.scopes, look.complete) == (scopes, False)
