"""What a channel is sent by somebody who tries it. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

from alerts.digests import notice_id
from alerts.model import Cause, Condition, Kind, Level, Notice, Severity, Standing

HOLDS = timedelta(minutes=5)
"""So long a channel holds it that is told levels; then it resolves by itself."""

_CONDITION = Condition(
    cause=Cause.LEAK,
    subject="test/test/test",
    severity=Severity.INFO,
    data={"detail": "this is a test of the channel; there is no such machine"},
)


def trial_notice(now: datetime) -> Notice:
    """Return a notification that says that nothing is wrong."""
    key = _CONDITION.key
    return Notice(id=notice_id(Kind.TEST, key, now, now), kind=Kind.TEST, at=now, condition=_CONDITION, since=now)


def trial_level(now: datetime) -> Level:
    """Return one alert for a few minutes, and nothing else: what is held already stays."""
    return Level(at=now, until=now + HOLDS, standing=(Standing(condition=_CONDITION, since=now),))
