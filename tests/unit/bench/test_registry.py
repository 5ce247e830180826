"""The measurement of a big registry: its world is the one that it says, and a wrong pass is noticed."""

from __future__ import annotations

import gc
import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from bench import registry, workers
from reaperd.core.model import TerminateReason


def test_there_is_a_row_for_each_worker_and_a_live_one_for_each_tracked_machine():
    rows = list(workers.rows(4000, 400))

    assert len({row[0] for row in rows}) == len(rows) == 4000
    states = Counter(row[4] for row in rows)
    assert states["running"] == 396
    assert set(states) == {"running", "completed", "failed", "terminated"}
    about = {row[3]: row[4] for row in rows}
    for number in range(400):
        named = about.get(workers.instance_id(number))
        assert (named is None) == (workers.fate(number) is TerminateReason.UNREGISTERED)
        assert (named == "running") == (workers.fate(number) is None)


def test_passes_over_it_decide_what_is_so(tmp_path: Path):
    with workers.world(tmp_path, 2000, 200) as at:
        assert at.faults(at.next_pass().run(), confirmed=False) == ()
        for _ in range(3):
            report = at.next_pass().run()
        assert at.faults(report, confirmed=True) == ()


def test_a_pass_that_is_wrong_is_noticed(tmp_path: Path):
    with workers.world(tmp_path, 2000, 200) as at:
        with closing(sqlite3.connect(at.registry)) as connection, connection:
            connection.execute("DELETE FROM workers WHERE instance_id = ?", (workers.instance_id(7),))

        faults = at.faults(at.next_pass().run(), confirmed=False)

    assert {fault.split(" (")[0] for fault in faults} == {"tracked", "orphans", "rows", "live rows"}


@pytest.fixture
def thresholds() -> Iterator[None]:
    """Let whoever sets how often garbage is looked for set it for himself."""
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@pytest.mark.usefixtures("thresholds")
def test_the_check_judges_the_results_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    result = tmp_path / "targets.json"
    monkeypatch.setattr("sys.argv", ["bench.registry", "--check", "--json", str(result)])

    assert registry.main() == 0
    assert [target["limit"] for target in json.loads(result.read_text())] == [0]
