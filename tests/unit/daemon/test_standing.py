"""How things stand, as the status tells it."""

from datetime import UTC, datetime

from alerts.model import Cause, Condition, Severity
from reaperd.daemon.standing import SHOWN_CONDITIONS, Standing

NOW = datetime(2026, 1, 10, 12, tzinfo=UTC)


def test_what_is_severe_comes_first_and_is_never_cut_off_by_what_is_not():
    doubts = [
        Condition(cause=Cause.AMBIGUOUS_WORKER, subject=f"aws/r/i-{number:03}", severity=Severity.WARNING)
        for number in range(SHOWN_CONDITIONS + 10)
    ]
    blind = Condition(cause=Cause.BLIND, severity=Severity.CRITICAL)

    told = Standing(conditions=(*doubts, blind)).document(NOW)

    keys = [each["key"] for each in told["conditions"]]
    assert keys == ["blind", *(f"ambiguous_worker/aws/r/i-{number:03}" for number in range(SHOWN_CONDITIONS - 1))]
    assert told["conditions_total"] == SHOWN_CONDITIONS + 11
