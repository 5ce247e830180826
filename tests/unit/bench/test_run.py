"""A comparison is only worth what its judgement is: who found what, and which of the runs counts."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import pytest

from bench import candidates, run
from bench.machine import this_machine
from bench.measured import measured
from bench.page import GROWTH_HEADINGS, blocks, write_page
from bench.run import Figures, _best, _with_ratios, judged
from bench.site import Workload
from bench.table import COLUMNS, Row, cells, headings, json_row, markdown, plain
from bench.targets import Target, beside_peers, finish, growth
from bench.targets import cells as target_cells

SOME = frozenset({"i-1", "i-2"})
HOUR = 3_600.0


def row(candidate: candidates.Candidate = candidates.PLAN, wall: float = 2.0, **more: object) -> Row:
    given = {"cpu_seconds": wall, "peak_mb": 100.0, "result": "right"} | more
    return Row(candidate=candidate.name, wall_seconds=wall, **given)


def test_only_exactly_the_right_ids_are_right():
    assert judged(SOME, SOME) == "right"
    assert judged(SOME - {"i-1"}, SOME) == "WRONG: 1 missing, 0 too many"
    assert judged(SOME | {"i-3"}, SOME) == "WRONG: 0 missing, 1 too many"
    assert judged(frozenset(), SOME) == "WRONG: 2 missing, 0 too many"


def test_of_several_runs_the_least_of_each_figure_counts_and_the_most_memory():
    best = _best([row(wall=2.0, cpu_seconds=1.5, peak_mb=90.0), row(wall=1.0, cpu_seconds=1.7, peak_mb=80.0)])

    assert (best.wall_seconds, best.cpu_seconds, best.peak_mb) == (1.0, 1.5, 90.0)
    assert best.look_cpu_seconds is None


def test_one_run_that_was_wrong_makes_the_candidate_wrong():
    best = _best([row(wall=2.0), row(wall=1.0, result="WRONG: 1 missing, 0 too many"), row(wall=3.0)])

    assert best.is_wrong


def test_ratios_are_over_the_plan_and_over_the_limit():
    rows = [row(wall=2.0), row(candidates.RAW, wall=1.0, look_cpu_seconds=0.5), row(candidates.AWS_NUKE, wall=10.0)]

    told = _with_ratios(rows)

    assert [each.wall_over_plan for each in told] == [1.0, 0.5, 5.0]
    assert [each.cpu_over_raw for each in told] == [4.0, 1.0, 20.0]


def test_what_is_wrong_reaches_no_target():
    plan, nuke = row(), row(candidates.AWS_NUKE, wall=12.0, peak_mb=2_000.0)
    wrong = row(candidates.CLOUD_CUSTODIAN, wall=100.0, result="WRONG: 1 missing, 0 too many")

    told = {target.name: target for target in beside_peers([plan, nuke, wrong])}

    assert {name: (target.value, target.reached) for name, target in told.items()} == {
        "aws-nuke over `reaperd plan`, wall": (6.0, True),
        "aws-nuke over `reaperd plan`, peak memory": (20.0, True),
    }


def test_the_memory_of_a_plan_may_grow_fourfold():
    (target,) = growth(row(), row(peak_mb=401.0))

    assert (target.value, target.reached) == (4.01, False)
    assert growth(None, row()) == []


def test_only_a_count_of_faults_is_wrong():
    slow, right = Target(name="slow", value=9.0, limit=2), Target(name="right", value=0, limit=0)
    faulty = Target(name="faults", value=3, limit=0)

    assert [target.is_wrong for target in (slow, right, faulty)] == [False, False, True]


@pytest.mark.parametrize("program", ["raise SystemExit(3)", "import os; os.kill(os.getpid(), 9)", ""])
def test_a_measurement_that_breaks_off_is_wrong(program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "broken.py").write_text(program, encoding="utf-8")
    monkeypatch.setattr(run, "ROOT", tmp_path)

    (target,) = run.other("broken", ())

    assert target.is_wrong


def test_a_target_that_is_missed_ends_its_measurement_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    reached, missed = Target(name="a", value=1.0, limit=2), Target(name="b", value=1.0, limit=2, at_least=True)

    assert finish([reached], tmp_path / "one.json") == 0
    assert finish([reached, missed], None) == 1

    assert [Target(**told) for told in json.loads((tmp_path / "one.json").read_text())] == [reached]
    assert "NOT REACHED" in capsys.readouterr().out


def test_what_a_program_took_is_its_own():
    took = measured(["sh", "-c", "exit 3"], HOUR)

    assert took["code"] == 3
    assert set(took) == {"wall", "cpu", "peak_bytes", "code"}


def test_a_program_that_takes_too_long_is_ended():
    assert measured(["sleep", "3600"], 0.2)["code"] is None


def test_the_table_and_the_json_have_the_same_columns():
    assert list(COLUMNS) == [field.name for field in fields(Row)]
    assert list(json_row(row())) == list(COLUMNS)
    assert len(cells(row())) == len(headings())


def test_a_table_is_as_wide_as_it_has_to_be():
    assert plain(["a", "n", "z"], [["long", "1", "x"], ["b", "1,000", ""]]).splitlines() == [
        "a         n  z",
        "long      1  x",
        "b     1,000",
    ]
    assert markdown(["a", "n", "z"], [["1", "2", "3"]]) == "| a | n | z |\n| --- | ---: | --- |\n| 1 | 2 | 3 |"


def some_figures() -> Figures:
    workload = Workload(name="M", machines=50_000, regions=17)
    rows = [row(), row(candidates.DAEMON, look_wall_seconds=1.0, look_cpu_seconds=0.75), row(candidates.RAW)]
    slow = Workload(name="slow", machines=20_000, regions=1, latency_ms=150.0, item_us=1_000.0)
    target = Target(name="a", value=1.234, limit=2)
    return Figures(machine=this_machine(), workloads=[(workload, rows), (slow, rows)], targets=[target])


def test_the_page_holds_the_figures_between_its_marks(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- made by `make bench-full` -->\nold\n<!-- end -->\nafter\n", encoding="utf-8")

    write_page(page, some_figures())

    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n<!-- made by")
    assert text.endswith("<!-- end -->\nafter\n")
    assert "old" not in text
    assert "### M: 50,000 machines in 17 regions\n" in text
    assert "### slow: 20,000 machines in 1 region, 150 ms a call and 1 ms a machine\n" in text
    assert f"| {' | '.join(target_cells(some_figures().targets[0]))} |" in text


def test_the_growth_leaves_out_what_is_far_away():
    *_, table = blocks(some_figures())

    assert table.splitlines()[0] == f"| {' | '.join(GROWTH_HEADINGS)} |"
    assert table.splitlines()[2:] == ["| 50,000 | 2.00 | 2.00 | 100 | 1.00 | 0.75 | - |"]
