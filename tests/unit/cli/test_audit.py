"""What a person, a spreadsheet and a log read of a sweep."""

from __future__ import annotations

import csv
import io
import json
import time
from datetime import date, timedelta

import pytest
from rich.cells import cell_len

from providers.events import ProviderEvent, Unheard
from providers.model import AuditedInstance, AuditSweep, InstanceState, Scope, TagKeys
from reaperd.cli.exits import code_of_audit
from reaperd.clock import ManualClock
from reaperd.core.ignoring import IgnoreRule
from reaperd.core.leaks import AuditPolicy
from reaperd.core.model import PassOutcome
from reaperd.passes.audit import Auditor
from reaperd.report.audit_table import draw_audit
from reaperd.report.document import audit_document
from reaperd.report.events import TOLD, log_audit
from reaperd.report.logs import build_logger
from reaperd.report.paper import Paper
from reaperd.report.sheet import LEAK_COLUMNS, audit_sheet
from reaperd.report.trail import KEPT_EVENTS, record_of_sweep
from tests.support.worlds import DEPLOYMENT, EAST, GCP, HOUR, MINUTE, NOW, SCOPES, WEST, broken, ref, whole
from tests.unit.cli.golden import assert_golden


class Seen:
    """A cloud that was looked at already."""

    name = "seen"

    def __init__(self, sweep):
        self._sweep = sweep

    def audit_instances(self):
        return self._sweep


def foreign(instance_id, *, at=EAST, hours=100, **other):
    launched = None if hours is None else NOW - hours * HOUR
    facts = {"state": InstanceState.RUNNING, "instance_type": "g5.xlarge"} | other
    return AuditedInstance(ref=ref(instance_id, at), launched_at=launched, **facts)


def swept(*instances, coverage=None, **other):
    """Return the report of a sweep; its id is always the same."""
    sweep = AuditSweep(instances=instances, coverage=coverage or tuple(whole(scope) for scope in SCOPES), **other)
    wishes = AuditPolicy(
        deployment=DEPLOYMENT,
        tags=TagKeys(),
        max_age=timedelta(hours=24),
        ignore=(
            IgnoreRule(reason="the bastions", patterns={"name": "bastion-*"}),
            IgnoreRule(reason="the fair in Hanover", patterns={"name": "*"}, until=date(2025, 4, 4)),
            IgnoreRule(reason="the lab's, which moved to another cloud long ago", tags={"team": "lab"}),
        ),
        scopes=frozenset({EAST}),
    )
    return Auditor(
        auditor=Seen(sweep),
        policy=wishes,
        clock=ManualClock(NOW),
        deadline=timedelta(minutes=4),
        stopping=lambda: False,
        pass_id="0" * 32,
    ).run()


def announced(instance_id, code, *, place=EAST, ends=False, at=None):
    return ProviderEvent(ref=ref(instance_id, place), fault_code=code, marked_for_termination=ends, termination_time=at)


def drawn(report, *, everything=False):
    paper = Paper()
    draw_audit(report, paper, everything=everything)
    return paper.text()


MIXED = (
    foreign("i-0aa11111111111111", name="training, do not touch", cost_per_hour_usd=1.006),
    foreign("i-0bb22222222222222", at=WEST, hours=None),
    foreign("i-0ab77777777777777", hours=200, state=InstanceState.STOPPED, cost_per_hour_usd=3.0, name="old"),
    foreign("i-0cc33333333333333", hours=900, cost_per_hour_usd=32.7726, instance_type="p4d.24xlarge"),
    foreign("i-0dd44444444444444", name="bastion-1"),
    foreign("i-0ee55555555555555", hours=1, tags={"Reaperd:Owner": "prod-a "}),
    foreign("i-0ff66666666666666", at=WEST, owner=DEPLOYMENT),
    foreign("8423946125473651234", at=GCP, hours=1),
)
ANNOUNCED = (
    announced("i-0aa11111111111111", "marked-for-termination", ends=True, at=NOW + 2 * MINUTE),
    announced("i-0ab77777777777777", "instance-retirement", at=NOW + 48 * HOUR),
    announced("i-0cd88888888888888", "instance-terminated-no-capacity", ends=True, at=NOW - HOUR),
    announced("i-0ff66666666666666", "marked-for-stop", place=WEST),
)
UNHEARD = (
    Unheard(scope=EAST, error_code="UnauthorizedOperation", detail="scheduled events: You are not authorized"),
    Unheard(scope=WEST, error_code="deadline", detail="no answer within 30 s"),
)
BROKEN = (whole(EAST), broken(WEST, detail="AWS was not able to validate the provided access credentials"), whole(GCP))


@pytest.mark.parametrize(
    ("name", "report"),
    [
        ("audit_mixed", swept(*MIXED, skipped=("lab",))),
        ("audit_incomplete", swept(*MIXED, coverage=BROKEN)),
        ("audit_clean", swept()),
        ("audit_blind", swept(coverage=(broken(EAST),))),
        ("audit_announced", swept(*MIXED, events=ANNOUNCED, unheard=UNHEARD)),
    ],
)
def test_a_sweep_is_drawn_as_agreed(name, report):
    text = drawn(report)

    assert_golden(name, text)
    assert all(cell_len(line) <= 80 for line in text.splitlines())


def test_many_leaks_are_counted_and_the_oldest_shown():
    report = swept(*(foreign(f"i-{number:05}", hours=100 + number) for number in range(5000)))

    text = drawn(report)

    assert "LEAKS: 5,000 machines that nobody owns" in text
    assert text.index("i-04999") < text.index("i-04980")
    assert "i-04979" not in text
    assert "… 4,980 more: --all or --format json" in text
    assert drawn(report, everything=True).count("g5.xlarge") == 5000


def test_a_machine_of_unknown_age_is_told_and_is_no_leak():
    report = swept(foreign("i-1", hours=None))

    assert code_of_audit(report) == 0
    assert "AGE UNKNOWN (1)" in drawn(report)


def test_a_long_name_is_cut_off_and_the_page_stays_short():
    text = drawn(swept(foreign("i-1", name="x" * 10_000, tags={"reaperd:owner" + " " * 10_000: "prod-a"})))

    assert len(text.splitlines()) < 60
    assert "…" in text


def test_under_a_wrong_clock_nothing_is_to_be_believed():
    report = swept(foreign("i-1"), coverage=(whole(EAST, clock_skew=timedelta(hours=2)),))

    assert (report.outcome, report.reason) == (PassOutcome.REFUSED, "clock")
    assert code_of_audit(report) == 5
    assert drawn(report).startswith("NOT TO BE BELIEVED: the clock is wrong")
    assert report.seen_whole == frozenset()


@pytest.mark.parametrize(
    ("report", "code"),
    [
        (swept(), 0),
        (swept(foreign("i-1", hours=1)), 0),
        (swept(foreign("i-1")), 3),
        (swept(foreign("i-1"), coverage=BROKEN), 4),
        (swept(coverage=BROKEN), 4),
        (swept(foreign("i-1", owner=DEPLOYMENT)), 0),
    ],
    ids=["nothing", "young", "leak", "leak_and_incomplete", "incomplete", "ours"],
)
def test_a_sweep_has_its_exit_code(report, code):
    assert code_of_audit(report) == code


def test_text_of_strangers_cannot_command_the_terminal():
    evil = "\x1b[2J[red]x[/red]\nno leaks\u202e"
    report = swept(
        foreign(f"i-1{evil}", name=evil, instance_type=evil, tags={"reaperd:owner ": "PROD-A\x1b"}),
        coverage=(broken(EAST, error_code=evil, detail=evil),),
        skipped=(evil,),
    )

    text = drawn(report)

    assert all(char == "\n" or char.isprintable() for char in text)
    assert "\nno leaks" not in text


def test_each_leak_is_one_line_and_no_formula():
    report = swept(foreign("i-1", name='=HYPERLINK("http://evil")\n'), foreign("i-2", hours=1))

    text = audit_sheet(report)

    assert text.splitlines()[0] == ",".join(LEAK_COLUMNS)
    (line,) = csv.DictReader(io.StringIO(text))
    assert line["name"] == '\'=HYPERLINK("http://evil")\\n'
    assert (line["instance_id"], line["age_seconds"]) == ("i-1", "360000")


def test_what_was_found_is_logged():
    stream = io.StringIO()
    log_audit(build_logger(as_json=True, now=lambda: NOW, stream=stream), swept(*MIXED, coverage=BROKEN))

    events = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [event["event"] for event in events] == [
        "scope_incomplete",
        *["condition_holds"] * 4,
        "near_miss_tag_found",
        "age_unknown",
        "ignore_rule_expired",
        "sweep_finished",
    ]
    assert {event["cause"] for event in events if "cause" in event} == {"leak", "owned_out_of_scope"}
    assert [event["scope"] for event in events if event["event"] == "scope_incomplete"] == ["aws/eu-west-1"]
    assert (events[-1]["event"], events[-1]["leaks"], events[-1]["owned"]) == ("sweep_finished", 3, 1)


def test_of_thousands_of_leaks_the_log_tells_the_oldest_and_counts_all():
    stream = io.StringIO()
    crowd = (foreign(f"i-{number:05}", hours=100 + number) for number in range(3000))
    log_audit(build_logger(as_json=True, now=lambda: NOW, stream=stream), swept(*crowd))

    events = [json.loads(line) for line in stream.getvalue().splitlines()]
    told = [event["instance"] for event in events if event["event"] == "condition_holds"]
    assert len(told) == TOLD
    assert "aws/us-east-1/i-02999" in told
    assert events[-1]["leaks"] == 3000


def test_the_document_tells_everything_that_was_found():
    document = audit_document(swept(*MIXED, skipped=("lab",)))

    assert [(leak["instance_id"], leak["state"]) for leak in document["leaks"]] == [
        ("i-0aa11111111111111", "running"),
        ("i-0ab77777777777777", "stopped"),
        ("i-0cc33333333333333", "running"),
    ]
    assert [leak["instance_id"] for leak in document["unknown_age"]] == ["i-0bb22222222222222"]
    assert [leak["instance_id"] for leak in document["near_misses"]] == ["i-0ee55555555555555"]
    assert [each["instance_id"] for each in document["out_of_scope"]] == ["i-0ff66666666666666"]
    assert document["skipped"] == ["lab"]
    assert [(rule["number"], rule["matched"], rule["state"]) for rule in document["rules"]] == [
        (1, 1, "in_force"),
        (2, 7, "expired"),
        (3, 0, "unmatched"),
    ]
    json.dumps(document)


def test_the_document_tells_what_is_announced_and_where_that_could_not_be_had():
    document = audit_document(swept(*MIXED, events=ANNOUNCED, unheard=UNHEARD))

    assert document["leaks"][0]["event"] == {
        "code": "marked-for-termination",
        "ends": True,
        "at": "2026-01-10T12:02:00Z",
    }
    assert document["leaks"][2]["event"] is None
    assert [(event["instance_id"], event["code"], event["at"]) for event in document["events"]][2:] == [
        ("i-0cd88888888888888", "instance-terminated-no-capacity", "2026-01-10T11:00:00Z"),
        ("i-0ff66666666666666", "marked-for-stop", None),
    ]
    assert document["unheard"][1] == {
        "scope": "aws/eu-west-1",
        "error_code": "deadline",
        "detail": "no answer within 30 s",
    }
    assert document["outcome"] == "complete"
    json.dumps(document)


def test_each_leak_has_its_announcement_in_the_sheet():
    lines = list(csv.DictReader(io.StringIO(audit_sheet(swept(*MIXED, events=ANNOUNCED)))))

    assert [(line["event_code"], line["event_at"]) for line in lines] == [
        ("marked-for-termination", "2026-01-10T12:02:00Z"),
        ("instance-retirement", "2026-01-12T12:00:00Z"),
        ("", ""),
    ]


def test_what_could_not_be_heard_is_logged_and_the_sweep_is_complete():
    stream = io.StringIO()
    log_audit(build_logger(as_json=True, now=lambda: NOW, stream=stream), swept(events=ANNOUNCED, unheard=UNHEARD))

    events = [json.loads(line) for line in stream.getvalue().splitlines()]
    silent = [event for event in events if event["event"] == "announcements_unheard"]
    assert [(event["level"], event["scope"], event["error_code"]) for event in silent] == [
        ("warning", "aws/us-east-1", "UnauthorizedOperation"),
        ("warning", "aws/eu-west-1", "deadline"),
    ]
    assert (events[-1]["outcome"], events[-1]["events"], events[-1]["unheard"]) == ("complete", 4, 2)


def test_of_many_places_that_could_not_be_heard_some_are_named_and_all_counted():
    text = drawn(swept(unheard=[Unheard(scope=Scope("aws", f"r-{number}"), error_code="x") for number in range(17)]))

    assert "aws/r-4 (x), and 12 more" in " ".join(text.split())


def test_of_many_announcements_the_newest_are_kept_and_all_counted():
    many = [
        announced(f"i-{number:05}", "marked-for-stop\x1b" + "x" * 1000, at=NOW - number * MINUTE)
        for number in range(KEPT_EVENTS + 5)
    ]

    record = json.loads(record_of_sweep(swept(events=[*many, announced("i-soon", "marked-for-stop")])).record)

    kept = [event["instance_id"] for event in record["events"]]
    assert kept[:3] == ["i-soon", "i-00000", "i-00001"]
    assert (len(kept), record["events_total"]) == (KEPT_EVENTS, KEPT_EVENTS + 6)
    assert all(len(event["code"]) < 500 for event in record["events"])


def test_an_incomplete_sweep_says_of_no_rule_that_it_matches_nothing():
    states = [str(state) for _, state in swept(*MIXED, coverage=BROKEN).idle_rules]

    assert states == ["expired"]


def test_three_thousand_leaks_at_once_take_no_time_and_are_all_told():
    crowd = [
        foreign(f"i-{number:05}", name="<script>alert(1)</script>", hours=100 + number, tags={"team": "x" * 256})
        for number in range(3000)
    ]
    began = time.thread_time()

    report = swept(*crowd)
    text, document, lines = drawn(report), audit_document(report), audit_sheet(report).splitlines()
    record = record_of_sweep(report).record

    assert time.thread_time() - began < 5
    assert len(text.splitlines()) < 60
    assert len(document["leaks"]) == len(lines) - 1 == 3000
    assert len(record) < 40_000


def test_a_machine_named_like_a_script_is_told_as_it_is_named():
    report = swept(foreign("i-1", name="<script>"))

    assert "<script>" in drawn(report)
    assert [leak["name"] for leak in audit_document(report)["leaks"]] == ["<script>"]
    assert "<script>" in audit_sheet(report)
