"""`history`: what is shown of the past, as a table, as JSON lines and as CSV; and as it is typed."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from reaperd.core.history import (
    Finding,
    Told,
    ToldAct,
    ToldAnnouncement,
    ToldFinding,
    ToldOutcome,
    ToldPass,
    ToldVerdict,
)
from reaperd.core.model import Brake, Mode, PassReport, RefusalReason
from reaperd.report.history import COLUMNS, draw_history, history_lines, history_sheet
from reaperd.report.paper import Paper
from reaperd.report.trail import record_of
from tests.support.worlds import HOUR, MINUTE, NOW, WEST, ref
from tests.unit.cli import reports
from tests.unit.cli.golden import assert_golden
from tests.unit.cli.running import run

EVIL = "\x1b[2J[red]x[/red]\r\n2026-01-10 12:00:00  complete\u202e\x7f"


def verdict(name: str, instance_id: str = "i-0bb22222222222222", worker: str | None = "w-2") -> ToldVerdict:
    return ToldVerdict(
        ref=ref(instance_id),
        worker_id=worker,
        state="running",
        name=name,
        age_seconds=7200,
        confirmations=3,
        confirmations_needed=3,
    )


def outcome(kind: str, instance_id: str = "i-0bb22222222222222", code: str | None = None) -> ToldOutcome:
    return ToldOutcome(ref=ref(instance_id), kind=kind, reason=None, error_code=code, detail="")


def told(minutes: int = 0, **other: object) -> ToldPass:
    at = NOW + minutes * MINUTE
    made = ToldPass(
        at=at,
        finished_at=at + timedelta(seconds=2),
        pass_id=f"{minutes:032x}",
        kind="reconcile",
        mode="enforce",
        outcome="complete",
        reason=None,
        record=json.dumps({"pass_id": f"{minutes:032x}"}),
    )
    return replace(made, **other)


HOLD = ToldAct(at=NOW + 30 * MINUTE, act="hold", by="ann@ops-1", reason="the registry is being moved", data={})
APPROVE = ToldAct(at=NOW, act="approve", by="bob@ops-1", reason="", data={"digest": "sha256:91ea", "machines": 6})
NIGHT: tuple[Told, ...] = (
    told(40, outcome="refused", reason="reap_hold", also=("breaker_open",), detail="held by ann@ops-1: the registry"),
    HOLD,
    told(29, passes=1_440, since=NOW - 24 * HOUR),
    told(
        3,
        verdicts=(
            verdict("keep/tracked", "i-0cc33333333333333"),
            verdict("keep/protect_tag", "i-0dd44444444444444", None),
            verdict("terminate/unregistered"),
        ),
        outcomes=(outcome("denied", code="UnauthorizedOperation"), outcome("confirmed_gone", "i-0old999999999999")),
    ),
    told(2, mode="dry-run", verdicts=(verdict("terminate/unregistered"),), outcomes=(outcome("would_terminate"),)),
    told(1, kind="audit", outcome="error"),
    APPROVE,
)


def drawn(newest_first: tuple[Told, ...], *, more: bool = False, **paper: int) -> str:
    page = Paper(**paper)
    draw_history(newest_first, page, more=more)
    return page.text()


# ---------------------------------------------------------------- the table


def finding(number: int, kind: Finding = Finding.LEAK, name: str | None = "train-7") -> ToldFinding:
    at = ref(f"i-0cc3333333333333{number}", WEST)
    return ToldFinding(ref=at, finding=kind, name=name, instance_type="p4d.24xlarge", age_seconds=3 * 86_400)


SWEEPS: tuple[Told, ...] = (
    told(45, kind="audit", mode="", passes=3, since=NOW + 15 * MINUTE),
    told(30, kind="audit", mode="", leaks=61, findings=tuple(map(finding, range(10)))),
    told(15, kind="audit", mode="", findings=(finding(1, Finding.NEAR_MISS, name=None),)),
    told(
        1, kind="audit", mode="", outcome="refused", reason="listing_incomplete", detail="aws/eu-west-1 (AuthFailure)"
    ),
)


def test_sweeps_are_told_with_their_findings():
    text = drawn(SWEEPS)

    assert_golden("history_sweeps", text)
    assert all(len(line) <= 80 for line in text.splitlines())


def announcement(code: str = "marked-for-termination", *, ends: bool = True) -> ToldAnnouncement:
    return ToldAnnouncement(ref=ref("i-0dd44444444444444"), code=code, ends=ends, at=NOW + 2 * MINUTE)


def test_what_clouds_announce_is_told_with_the_sweep_that_heard_it():
    text = drawn((told(kind="audit", mode="", announcements=(announcement(),)),))

    assert "i-0dd44444444444444  announced" in text
    assert "marked-for-termination" in text


def test_each_announcement_of_a_sweep_is_a_line_of_csv():
    heard = (announcement(), announcement("marked-for-stop", ends=False))

    rows = list(csv.DictReader(io.StringIO(history_sheet((told(kind="audit", mode="", announcements=heard),)))))

    assert [(row["instance_id"], row["finding"], row["detail"]) for row in rows] == [
        (
            "i-0dd44444444444444",
            "announced",
            "marked-for-termination: the cloud ends it at about 2026-01-10 12:02 UTC",
        ),
        ("i-0dd44444444444444", "announced", "marked-for-stop: the cloud stops it at about 2026-01-10 12:02 UTC"),
    ]


def test_each_finding_of_a_sweep_is_a_line_of_csv():
    rows = list(csv.DictReader(io.StringIO(history_sheet(SWEEPS[2:]))))

    assert [(row["kind"], row["finding"], row["instance_id"], row["age_seconds"]) for row in rows] == [
        ("audit", "", "", ""),
        ("audit", "near_miss", "i-0cc33333333333331", "259200"),
    ]


def test_a_name_of_a_stranger_cannot_command_the_terminal():
    text = drawn((told(kind="audit", mode="", leaks=1, findings=(finding(1, name=EVIL),)),))

    assert all(line.isprintable() for line in text.splitlines())


def test_a_night_is_told_with_the_newest_first():
    assert_golden("history_night", drawn(NIGHT, more=True))


def test_nothing_is_said_to_be_nothing():
    assert drawn(()) == "Nothing of the kind is recorded.\n"


def test_of_a_pass_with_many_machines_those_that_go_are_shown_and_the_rest_is_counted():
    crowd = told(verdicts=(*(verdict("keep/tracked", f"i-{n:02}") for n in range(20)), verdict("terminate/retired")))

    page = drawn((crowd,))

    assert page.splitlines()[2].startswith("  i-0bb22222222222222  terminate/retired  -  aws/us-east-1")
    assert "… 11 machines more: --format json, or --instance ID" in page
    assert page.count("keep/tracked") == 9


@pytest.mark.parametrize("width", [40, 80])
def test_text_of_strangers_is_spelled_out(width: int):
    evil = told(
        detail=EVIL,
        verdicts=(verdict("terminate/unregistered", EVIL, EVIL),),
        outcomes=(outcome("failed", EVIL, EVIL),),
    )

    page = drawn((evil, replace(HOLD, by=EVIL, reason=EVIL)), width=width)

    assert page.replace("\n", "").isprintable()
    assert not any(line.startswith("2026-01-10 12:00:00  complete\\") for line in page.splitlines())


# ---------------------------------------------------------------- JSON lines and CSV


def test_every_line_is_one_object_and_the_oldest_comes_first():
    lines = history_lines(NIGHT).splitlines()

    assert len(lines) == len(NIGHT)
    assert json.loads(lines[0]) == {
        "kind": "act",
        "at": "2026-01-10T12:00:00Z",
        "act": "approve",
        "by": "bob@ops-1",
        "reason": "",
        "data": {"digest": "sha256:91ea", "machines": 6},
    }
    assert json.loads(lines[1]) == {"pass_id": f"{1:032x}"}


def test_json_lines_are_safe_on_a_terminal():
    text = history_lines((replace(HOLD, reason=EVIL), told(record='{"a":"\x7f"}')))

    assert text.isascii()
    assert text.replace("\n", "").isprintable()
    assert json.loads(text.splitlines()[0]) == {"a": "\x7f"}


def test_every_machine_of_a_pass_every_other_pass_and_every_act_is_a_line_of_csv():
    rows = list(csv.DictReader(io.StringIO(history_sheet(NIGHT))))

    assert list(rows[0]) == list(COLUMNS)
    assert [row["outcome"] for row in rows] == ["approve", "error", *["complete"] * 6, "hold", "refused"]
    denied = next(row for row in rows if row["termination"] == "denied")
    assert {key: value for key, value in denied.items() if value} == {
        "at": "2026-01-10T12:03:00Z",
        "kind": "reconcile",
        "pass_id": f"{3:032x}",
        "mode": "enforce",
        "outcome": "complete",
        "provider": "aws",
        "region": "us-east-1",
        "instance_id": "i-0bb22222222222222",
        "worker_id": "w-2",
        "state": "running",
        "verdict": "terminate",
        "verdict_reason": "unregistered",
        "age_seconds": "7200",
        "confirmations": "3",
        "confirmations_needed": "3",
        "termination": "denied",
        "error_code": "UnauthorizedOperation",
    }
    assert rows[0]["by"] == "bob@ops-1"
    assert json.loads(rows[0]["detail"]) == {"digest": "sha256:91ea", "machines": 6}


def test_a_cell_is_never_a_formula_nor_two_lines():
    text = history_sheet((replace(HOLD, by="=cmd()", reason="a\nb"),))

    assert "'=cmd()" in text
    assert len(text.splitlines()) == 2


# ---------------------------------------------------------------- as it is typed


def at(ago: timedelta, report: PassReport, number: int) -> PassReport:
    when = datetime.now(UTC).replace(microsecond=0) - ago
    return replace(report, pass_id=f"{number:032x}", started_at=when, finished_at=when + timedelta(seconds=2))


@pytest.fixture
def night(place):
    """Return a place with three passes and an act."""
    with place.open() as ledger:
        for report in (
            at(3 * HOUR, reports.rehearsal(), 1),
            at(2 * HOUR, reports.refused(RefusalReason.BREAKER_OPEN), 2),
            at(MINUTE, reports.enforced(), 3),
        ):
            ledger.record(record_of(report, {}))
        ledger.hold(Brake(since=datetime.now(UTC), by="ann", reason="deploy"))
    return place


def asked(place, *words: object):
    return run("history", *words, "--config", place.config)


def kinds(result) -> list[str]:
    told = [json.loads(line) for line in result.stdout.splitlines()]
    return [entry.get("pass_id", entry.get("act")) for entry in told]


def test_the_table_tells_passes_and_acts(night):
    result = asked(night)

    assert result.exit_code == 0
    first = result.stdout.splitlines()[0]
    assert first.endswith("HOLD by ann: deploy")
    assert "refused: breaker_open, dry-run" in result.stdout


def test_json_has_every_pass_as_it_was_recorded_the_newest_last(night):
    result = asked(night, "--format", "json")

    documents = [json.loads(line) for line in result.stdout.splitlines()]
    assert kinds(result) == [f"{1:032x}", f"{2:032x}", f"{3:032x}", "hold"]
    assert documents[2]["mode"] == Mode.ENFORCE
    assert {"verdicts", "outcomes", "coverage", "plan_digest"} <= documents[0].keys()


def test_csv_has_one_line_for_every_machine(night):
    rows = list(csv.DictReader(io.StringIO(asked(night, "--format", "csv", "--kind", "reconcile").stdout)))

    assert {row["pass_id"] for row in rows} == {f"{number:032x}" for number in (1, 2, 3)}
    assert {row["termination"] for row in rows} >= {"would_terminate", "requested", "denied"}


@pytest.mark.parametrize(
    ("words", "numbers"),
    [
        (("--since", "150m"), [2, 3]),
        (("--until", "30m"), [1, 2]),
        (("--since", "2h30m", "--until", "1h"), [2]),
        (("--outcome", "refused"), [2]),
        (("--outcome", "refused", "--outcome", "requested"), [2, 3]),
        (("--reason", "breaker_open"), [2]),
        (("--instance", "i-0old999999999999"), [3]),
        (("--instance", "w-6"), [1, 2, 3]),
        (("--scope", str(WEST)), [1, 2, 3]),
        (("--scope", "azure"), []),
        (("--pass", f"{2:032x}"), [2]),
        (("--limit", "1"), [3]),
    ],
)
def test_each_option_chooses(night, words, numbers):
    result = asked(night, *words, "--kind", "reconcile", "--format", "json")

    assert (result.exit_code, kinds(result)) == (0, [f"{number:032x}" for number in numbers])


def test_a_time_is_read_as_utc_and_a_day_begins_at_midnight(night):
    today = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S")

    assert kinds(asked(night, "--since", "2020-01-01", "--until", today, "--format", "json"))[:3] == [
        f"{number:032x}" for number in (1, 2, 3)
    ]
    assert kinds(asked(night, "--until", "2020-01-01T00:00+01:00", "--format", "json")) == []


def test_what_is_no_time_is_wrong_usage(night):
    result = asked(night, "--since", "yesterday")

    assert result.exit_code == 2
    assert "neither a duration before now (90s, 2h, 7d) nor a time" in result.stderr


@pytest.mark.parametrize("format_", ["json", "csv"])
def test_whoever_reads_a_part_is_told_so(night, format_):
    part, whole = (asked(night, "--limit", limit, "--format", format_) for limit in (2, 0))

    assert part.stderr == "reaperd: only the newest 2 are shown; --limit 0 shows all\n"
    assert whole.stderr == ""


def test_the_table_says_how_to_go_on(night):
    assert "--limit 0 shows all" in asked(night, "--limit", "1").stdout


def test_without_a_ledger_it_says_so_and_makes_none(place):
    result = asked(place)

    assert result.exit_code == 1
    assert "there is no ledger" in result.stderr
    assert not place.ledger.parent.exists()


def test_another_deployments_ledger_is_not_told(night):
    night.configure(deployment="prod-z")

    result = asked(night)

    assert result.exit_code == 1
    assert "belongs to" in result.stderr
    assert result.stdout == ""


def test_what_is_unchanged_is_proved(night):
    result = asked(night, "--verify")

    assert result.exit_code == 0
    assert result.stdout.startswith("OK: 3 passes since ")
    assert len(result.stdout.splitlines()[1].removeprefix("newest hash ")) == 64


@pytest.mark.parametrize("format_", ["table", "json"])
def test_what_was_changed_is_named_and_answered_with_1(night, format_):
    with closing(sqlite3.connect(night.ledger)) as connection, connection:
        connection.execute("UPDATE passes SET record = replace(record, 'unregistered', 'retired') WHERE seq = 2")

    result = asked(night, "--verify", "--format", format_)

    assert result.exit_code == 1
    assert "pass number 2: its text is not the one that was recorded" in result.stderr
    if format_ == "json":
        assert json.loads(result.stdout)["ok"] is False
    else:
        assert result.stdout == ""


def test_an_empty_ledger_is_proved_too(place):
    place.make_ledger()

    result = asked(place, "--verify", "--format", "json")

    assert json.loads(result.stdout) == {
        "kind": "verification",
        "ok": True,
        "passes": 0,
        "acts": 0,
        "since": None,
        "newest_hash": None,
        "broken": [],
    }
    assert asked(place, "--verify").stdout == "OK: 0 passes since - and 0 acts are as recorded.\n"
