"""Alerts and notifications as JSON data, for whoever stores them. Pure.

Times are ISO 8601 with their offset. Reading is strict: what cannot be understood whole is a `RecordError`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import TypeVar

from alerts.errors import RecordError
from alerts.lifecycle import Alert, Told
from alerts.model import Cause, Condition, Datum, Digest, Kind, Notice, Notification, Severity, Tally

Record = dict[str, object]
Value = TypeVar("Value")


def alert_record(alert: Alert) -> Record:
    """Return an alert as JSON data."""
    told = {name: {"at": known.at.isoformat(), "severity": str(known.severity)} for name, known in alert.told.items()}
    return {
        "condition": condition_record(alert.condition),
        "since": alert.since.isoformat(),
        "severity": str(alert.severity),
        "severe_at": alert.severe_at.isoformat(),
        "ripe": alert.ripe,
        "told": told,
    }


def read_alert(record: object) -> Alert:
    """Return the alert that was written.

    Raises:
        RecordError: if it is none.
    """
    return _read("alert", record, _alert)


def notification_record(notification: Notification) -> Record:
    """Return a notification as JSON data."""
    if isinstance(notification, Digest):
        return _digest_record(notification)
    return _notice_record(notification)


def read_notification(record: object) -> Notification:
    """Return the notification that was written.

    Raises:
        RecordError: if it is none.
    """
    return _read("notification", record, _notification)


def condition_record(condition: Condition) -> Record:
    """Return a condition as JSON data."""
    return {
        "key": condition.key,
        "cause": str(condition.cause),
        "subject": condition.subject,
        "severity": str(condition.severity),
        "data": dict(condition.data),
    }


# ---------------------------------------------------------------- writing


def _notice_record(notice: Notice) -> Record:
    return {
        "id": notice.id,
        "kind": str(notice.kind),
        "at": notice.at.isoformat(),
        "condition": condition_record(notice.condition),
        "since": notice.since.isoformat(),
    }


def _digest_record(digest: Digest) -> Record:
    return {
        "id": digest.id,
        "kind": str(digest.kind),
        "of": str(digest.of),
        "at": digest.at.isoformat(),
        "severity": str(digest.severity),
        "tallies": [{"cause": str(t.cause), "scope": t.scope, "count": t.count} for t in digest.tallies],
        "first": [_notice_record(notice) for notice in digest.first],
    }


# ---------------------------------------------------------------- reading


def _read(what: str, record: object, reader: Callable[[object], Value]) -> Value:
    try:
        return reader(record)
    except (KeyError, TypeError, ValueError) as error:
        message = f"a stored {what} cannot be read: {type(error).__name__}: {error}"
        raise RecordError(message) from error


def _alert(record: object) -> Alert:
    fields = _mapping(record)
    told = {
        _text(name): Told(at=_moment(_mapping(known)["at"]), severity=Severity(_text(_mapping(known)["severity"])))
        for name, known in _mapping(fields["told"]).items()
    }
    since, heard = _moment(fields["since"]), [known.at for known in told.values()]
    return Alert(
        condition=_condition(fields["condition"]),
        since=since,
        severity=Severity(_text(fields["severity"])),
        # Older versions did not write it: what was told last was told of an alert that was seen.
        severe_at=_moment(fields["severe_at"]) if "severe_at" in fields else max(heard, default=since),
        ripe=_flag(fields["ripe"]),
        told=MappingProxyType(told),
    )


def _notification(record: object) -> Notification:
    fields = _mapping(record)
    if Kind(_text(fields["kind"])) is Kind.DIGEST:
        return _digest(fields)
    return _notice(fields)


def _notice(record: object) -> Notice:
    fields = _mapping(record)
    return Notice(
        id=_text(fields["id"]),
        kind=_single(fields["kind"]),
        at=_moment(fields["at"]),
        condition=_condition(fields["condition"]),
        since=_moment(fields["since"]),
    )


def _digest(fields: Mapping[str, object]) -> Digest:
    return Digest(
        id=_text(fields["id"]),
        of=_single(fields["of"]),
        at=_moment(fields["at"]),
        severity=Severity(_text(fields["severity"])),
        tallies=tuple(_tally(_mapping(tally)) for tally in _list(fields["tallies"])),
        first=tuple(_notice(notice) for notice in _list(fields["first"])),
    )


def _tally(fields: Mapping[str, object]) -> Tally:
    count = fields["count"]
    if not isinstance(count, int) or isinstance(count, bool):
        raise TypeError(count)
    return Tally(cause=Cause(_text(fields["cause"])), scope=_text(fields["scope"]), count=count)


def _condition(record: object) -> Condition:
    fields = _mapping(record)
    data = {_text(name): _datum(value) for name, value in _mapping(fields["data"]).items()}
    return Condition(
        cause=Cause(_text(fields["cause"])),
        subject=_text(fields["subject"]),
        severity=Severity(_text(fields["severity"])),
        data=MappingProxyType(data),
    )


def _single(value: object) -> Kind:
    kind = Kind(_text(value))
    if kind is Kind.DIGEST:
        message = "a digest where one alert belongs"
        raise ValueError(message)
    return kind


def _moment(value: object) -> datetime:
    moment = datetime.fromisoformat(_text(value))
    if moment.utcoffset() is None:
        message = f"{value} has no offset"
        raise ValueError(message)
    return moment


def _mapping(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise TypeError(value)
    return value


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise TypeError(value)
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(value)
    return value


def _datum(value: object) -> Datum:
    if value is not None and not isinstance(value, str | int | float):
        raise TypeError(value)
    return value
