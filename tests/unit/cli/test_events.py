"""What goes to the log of a pass."""

from __future__ import annotations

import io
import json

import pytest

from reaperd.core.model import PassOutcome, RefusalReason
from reaperd.report.events import events_of, log_pass
from reaperd.report.logs import build_logger
from tests.support.worlds import NOW, look, machine, policy
from tests.unit.cli import reports


def logged(report):
    stream = io.StringIO()
    log_pass(build_logger(as_json=True, now=lambda: NOW, stream=stream), report)
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def named(name, report):
    return [event for event in logged(report) if event["event"] == name]


def test_the_last_event_is_the_end_of_the_pass():
    last = logged(reports.enforced())[-1]

    assert last == {
        "event": "pass_finished",
        "level": "info",
        "timestamp": "2026-01-10T12:00:00.000Z",
        "pass_id": reports.PASS_ID,
        "mode": "enforce",
        "outcome": "complete",
        "reason": None,
        "scopes": 3,
        "verdicts": 7,
        "terminate": 2,
        "requested": 1,
        "missing": 1,
        "plan_digest": reports.enforced().digest,
        "seconds": 2.1,
    }


def test_each_termination_is_an_event_with_its_reason_and_its_answer():
    (sent,) = named("orphan_terminated", reports.enforced())
    (denied,) = named("termination_denied", reports.enforced())

    assert (sent["instance_id"], sent["reason"], sent["level"]) == ("i-0bb22222222222222", "unregistered", "info")
    assert (denied["error_code"], denied["level"]) == ("UnauthorizedOperation", "warning")


def test_a_hold_that_a_person_must_end_is_an_event():
    held = named("orphan_held", reports.rehearsal())

    assert {event["hold"] for event in held} == {"protect_tag", "managed", "foreign_account"}
    assert {event["cause"] for event in held} == {"protected_orphan", "managed_orphan", "foreign_account"}


def test_a_row_with_a_bad_time_is_an_event():
    (event,) = named("registry_row_bad_timestamp", reports.rehearsal())

    assert (event["worker_id"], event["unreadable"]) == ("w-9", ["created_at"])


def test_a_scope_that_failed_is_an_event():
    (event,) = named("scope_incomplete", reports.refused(RefusalReason.LISTING_INCOMPLETE))

    assert (event["scope"], event["error_code"]) == ("aws/eu-west-1", "AuthFailure")


@pytest.mark.parametrize("reason", RefusalReason)
def test_a_refusal_is_an_event_and_no_condition_too(reason):
    report = reports.refused(reason)
    (event,) = named("refused", report)

    assert event["reason"] == str(reason)
    assert event["level"] == "warning"
    assert not [e for e in logged(report) if e.get("cause") == str(reason)]


def test_a_pass_that_broke_is_an_error():
    report = reports.report(look(), policy(), outcome=PassOutcome.ERROR, detail="it broke")

    (event,) = named("error", report)
    assert event["level"] == "error"


def test_no_level_is_unknown_to_the_logger():
    every = [reports.rehearsal(), reports.enforced(), reports.deferred(), reports.spared()]

    assert {level for report in every for level, _, _ in events_of(report)} <= {"info", "warning", "error"}


def test_a_log_for_a_person_cannot_command_the_terminal():
    stream = io.StringIO()
    report = reports.report(look([machine("i-\x1b[2J", worker="w\n2")]), policy())
    log_pass(build_logger(as_json=False, now=lambda: NOW, stream=stream), report)

    assert "\x1b" not in stream.getvalue()
    assert "termination_would_terminate" in stream.getvalue()
    assert r"i-\x1b[2J" in stream.getvalue()
