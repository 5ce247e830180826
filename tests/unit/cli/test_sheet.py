"""CSV that is safe to open."""

from __future__ import annotations

import csv
import io

import pytest

from reaperd.report.sheet import VERDICT_COLUMNS, reconcile_sheet, sheet
from reaperd.report.visible import cell
from registry.importing import read_csv
from tests.support.worlds import look, machine, policy
from tests.unit.cli import reports


def parsed(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_each_verdict_is_one_line():
    text = reconcile_sheet(reports.enforced())

    assert text.splitlines()[0] == ",".join(VERDICT_COLUMNS)
    rows = {row["instance_id"]: row for row in parsed(text)}
    assert len(rows) == len(text.splitlines()) - 1 == 7
    assert rows["i-0cc33333333333333"] == {
        "provider": "aws",
        "region": "us-east-1",
        "instance_id": "i-0cc33333333333333",
        "worker_id": "",
        "state": "running",
        "verdict": "terminate",
        "reason": "anonymous",
        "age_seconds": "10800",
        "confirmations": "1",
        "confirmations_needed": "3",
        "outcome": "denied",
        "outcome_reason": "",
        "error_code": "UnauthorizedOperation",
        "instance_type": "",
        "cost_per_hour_usd": "",
        "first_seen_at": "2026-01-10T12:00:00Z",
        "last_tracked_at": "",
        "detail": "no row, and no worker tag",
    }
    assert rows["i-0aa11111111111111"]["outcome"] == ""


def test_a_refused_pass_is_a_header_alone():
    text = reconcile_sheet(reports.refused(reports.RefusalReason.CLOCK))

    assert text == ",".join(VERDICT_COLUMNS) + "\n"


CSV_ROW = {"provider": "aws", "region": "us-east-1", "state": "running"}
FORMULAS = ("=1+1", "+1", "-1", "@SUM(A1)", " =1", "\t=1", "\r=1", "\n=1", "\ufeff=1", "\uff1dHYPERLINK(1)", "\uff20A")


@pytest.mark.parametrize("name", FORMULAS)
def test_no_cell_is_a_formula(name):
    text = reconcile_sheet(reports.report(look([machine("i-1", worker=name)]), policy()))

    (row,) = parsed(text)
    assert row["worker_id"].lstrip()[0] in "'\\"
    assert len(text.splitlines()) == 2


@pytest.mark.parametrize(
    "name", [*("=1+1", "+1", "-1", "@SUM(A1)", "\uff1dHYPERLINK(1)", "\uff20A"), *("'=1", "''-1", "' =1", "'a", "w-1")]
)
def test_a_cell_that_is_imported_again_is_what_it_was(name):
    written = sheet(("worker_id", "provider", "region", "state"), [CSV_ROW | {"worker_id": f"{name}x"}])

    (worker,) = read_csv(written).workers

    assert worker.worker_id == f"{name}x"


def test_no_cell_has_a_control_character():
    text = reconcile_sheet(reports.report(look([machine("i-1", worker="a\x1b[2J\nb\u202e")]), policy()))

    assert parsed(text)[0]["worker_id"] == r"a\x1b[2J\nb\u202e"


def test_a_number_is_no_formula_and_none_is_empty():
    assert cell(-5) == "-5"
    assert cell(None) == ""
    assert sheet(("a", "b"), [{"a": "x,y"}]) == 'a,b\n"x,y",\n'
