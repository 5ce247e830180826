"""What is kept of a pass for auditors: enough to answer, and no more at a million rows than at a hundred."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from alerts.model import Cause, Condition, Severity
from reaperd.core.model import PassReport
from reaperd.report.trail import KEPT, record_of
from tests.support.worlds import MINUTE, NOW, look, machine, policy, row, sighting
from tests.unit.cli import reports

FLEET = [machine(f"i-{number:03}", worker=f"w-{number:03}") for number in range(120)]
ROWS = [row(f"w-{number:03}", f"i-{number:03}") for number in range(2, 120)]
"""Of the first two machines there is none: they go."""


def a_report(**changes: Any) -> PassReport:
    return replace(reports.report(look(FLEET, ROWS), policy()), **changes)


def recorded(report: PassReport, before: Any = None) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(record_of(report, before or {}).record)
    return document


def as_remembered(report: PassReport) -> dict[Any, Any]:
    return {verdict.ref: sighting(verdict=verdict.name) for verdict in report.verdicts}


def test_the_first_pass_tells_every_verdict():
    report = a_report()

    assert len(recorded(report)["verdicts"]) == len(report.verdicts) == 120


def test_a_pass_after_which_nothing_changed_tells_the_terminations_only():
    report = a_report()

    told = recorded(report, as_remembered(report))["verdicts"]

    assert [each["instance_id"] for each in told] == ["i-000", "i-001"]
    assert {each["verdict"] for each in told} == {"terminate"}


def test_every_change_of_a_verdict_is_told_once():
    before = as_remembered(a_report())
    later = reports.report(look(FLEET, [*ROWS[1:], row("w-000", "i-000")], now=NOW + MINUTE), policy())

    told = recorded(later, before)["verdicts"]

    assert [(each["instance_id"], each["verdict"]) for each in told] == [
        ("i-000", "keep"),
        ("i-001", "terminate"),
        ("i-002", "terminate"),
    ]


def test_of_what_is_missing_so_many_are_kept_and_all_are_counted():
    few, many = (tuple(row(f"w-9{number:03}", f"i-9{number:03}") for number in range(n)) for n in (KEPT, 10 * KEPT))

    assert len(recorded(a_report(missing=few))["missing"]) == KEPT
    assert "missing_total" not in recorded(a_report(missing=few))
    assert len(recorded(a_report(missing=many))["missing"]) == KEPT
    assert recorded(a_report(missing=many))["missing_total"] == 10 * KEPT


def test_of_conditions_the_most_severe_are_kept_and_all_are_counted():
    mild = [
        Condition(cause=Cause.AMBIGUOUS_WORKER, subject=f"aws/r/i-{n:03}", severity=Severity.WARNING, data={})
        for n in range(2 * KEPT)
    ]
    grave = Condition(cause=Cause.WRONG_ACCOUNT, severity=Severity.CRITICAL, data={})

    document = recorded(a_report(conditions=(*mild, grave)))

    keys = [each["key"] for each in document["conditions"]]
    assert len(keys) == KEPT
    assert keys == sorted(keys)
    assert "wrong_account" in keys
    assert document["conditions_total"] == 2 * KEPT + 1


def test_the_record_of_a_big_quiet_fleet_is_as_long_as_that_of_a_small_one():
    def length(machines: int) -> int:
        fleet = [machine(f"i-{number:05}", worker=f"w-{number:05}") for number in range(machines)]
        rows = [row(f"w-{number:05}", f"i-{number:05}") for number in range(machines + 1000)]
        report = reports.report(look(fleet, rows), policy())
        return len(record_of(report, as_remembered(report)).record)

    # Their numbers of rows differ by a digit, twice.
    assert abs(length(10) - length(2000)) <= 2
