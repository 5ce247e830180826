"""Open alerts, what waits for its channel, and mutes: for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from alerts.lifecycle import Alert
from alerts.model import Digest, Severity
from alerts.text import identity
from reaperd.core.telling import Alarmed, KeptMute, Waiting
from reaperd.report.document import Document, moment
from reaperd.report.paper import Paper
from reaperd.report.parts import draw_more, many, span, told_time
from reaperd.report.sheet import sheet

SHOWN = 20
"""So many of each are shown unless all are asked for."""

COLUMNS = ("key", "severity", "since", "muted", "waits", "told")
TRIED = ("channel", "type", "took_it", "detail")


# ---------------------------------------------------------------- a table


def draw_alarms(kept: Alarmed, paper: Paper, now: datetime, *, everything: bool) -> None:
    """Draw the open alerts, the most severe first, then what waits and what is muted."""
    limit = None if everything else SHOWN
    alerts = _most_severe_first(kept)
    style = "bold red" if any(alert.severity is Severity.CRITICAL for alert in alerts) else ""
    paper.line(f"{many(len(alerts), 'alert')} open" if alerts else "No alert is open.", style)
    if alerts:
        rows = [_row(alert, kept, now) for alert in alerts[:limit]]
        paper.rows(("ALERT", "SEVERITY", "FOR", "TOLD TO"), rows)
        draw_more(len(alerts), limit, paper)
    _draw_waiting(kept.waiting, paper, now, limit)
    _draw_mutes([kept_mute for kept_mute in kept.mutes if kept_mute.mute.until > now], paper, limit)


def _row(alert: Alert, kept: Alarmed, now: datetime) -> tuple[str, ...]:
    told = ", ".join(sorted(alert.told)) or ("nobody" if alert.ripe else "nobody yet: it waits")
    muted = "muted" if kept.is_muted(alert.condition.key, now) else ""
    return (identity(alert.condition.key), str(alert.severity), span(now - alert.since), muted or told)


def _draw_waiting(waiting: Sequence[Waiting], paper: Paper, now: datetime, limit: int | None) -> None:
    if not waiting:
        return
    paper.line()
    paper.line(f"{many(len(waiting), 'message')} not delivered yet; `reaperd alerts flush` tries now", "bold yellow")
    rows = [(_what(each), each.channel, str(each.attempts), _next(each, now)) for each in waiting[:limit]]
    paper.rows(("MESSAGE", "CHANNEL", "TRIES", "NEXT TRY"), rows, right=(2,))
    draw_more(len(waiting), limit, paper)
    errors = {each.channel: each.last_error for each in waiting if each.last_error}
    for channel, error in sorted(errors.items()):
        paper.line(f"{channel}: {error}", "red", indent=2)


def _draw_mutes(mutes: Sequence[KeptMute], paper: Paper, limit: int | None) -> None:
    if not mutes:
        return
    paper.line()
    paper.line(f"{many(len(mutes), 'mute')}; `reaperd unmute KEY` ends one", "bold")
    paper.rows(
        ("MUTED", "UNTIL", "BY", "REASON"),
        [(each.mute.pattern, told_time(each.mute.until), each.by, each.mute.reason) for each in mutes[:limit]],
    )
    draw_more(len(mutes), limit, paper)


def _what(waiting: Waiting) -> str:
    told = waiting.notification
    if told is None:
        return "cannot be read"
    if isinstance(told, Digest):
        return f"digest of {told.total:,} {told.of}"
    return f"{told.kind} {identity(told.condition.key)}"


def _next(waiting: Waiting, now: datetime) -> str:
    return "now" if waiting.next_try_at <= now else f"in {span(waiting.next_try_at - now)}"


# ---------------------------------------------------------------- JSON and CSV


def alarms_document(kept: Alarmed, now: datetime) -> Document:
    """Return all of it as JSON data."""
    return {
        "kind": "alerts",
        "now": moment(now),
        "alerts": [_alert(alert, kept, now) for alert in _most_severe_first(kept)],
        "waiting": [_message(each) for each in kept.waiting],
        "mutes": [
            {
                "key": each.mute.pattern,
                "until": moment(each.mute.until),
                "reason": each.mute.reason,
                "by": each.by,
                "at": moment(each.at),
            }
            for each in kept.mutes
            if each.mute.until > now
        ],
    }


def alarms_sheet(kept: Alarmed, now: datetime) -> str:
    """Return one line for every open alert."""
    return sheet(COLUMNS, list(_lines(kept, now)))


def _lines(kept: Alarmed, now: datetime) -> Iterator[Mapping[str, object]]:
    for alert in _most_severe_first(kept):
        yield {**_alert(alert, kept, now), "told": " ".join(sorted(alert.told))}


def _alert(alert: Alert, kept: Alarmed, now: datetime) -> Document:
    condition = alert.condition
    return {
        "key": condition.key,
        "cause": str(condition.cause),
        "subject": condition.subject,
        "severity": str(alert.severity),
        "since": moment(alert.since),
        "muted": kept.is_muted(condition.key, now),
        "waits": not alert.ripe,
        "told": {name: moment(known.at) for name, known in sorted(alert.told.items())},
        "data": dict(condition.data),
    }


def _message(waiting: Waiting) -> Document:
    told = waiting.notification
    return {
        "channel": waiting.channel,
        "id": None if told is None else told.id,
        "kind": None if told is None else str(told.kind),
        "key": None if told is None or isinstance(told, Digest) else told.condition.key,
        "due_at": moment(waiting.due_at),
        "attempts": waiting.attempts,
        "next_try_at": moment(waiting.next_try_at),
        "last_error": waiting.last_error or None,
    }


def _most_severe_first(kept: Alarmed) -> list[Alert]:
    return sorted(kept.book.values(), key=lambda alert: (-alert.severity.rank, alert.since, alert.condition.key))
