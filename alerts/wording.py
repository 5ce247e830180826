"""What people read: a title, what it means, and what to do next. For chats, mails and the annotations of others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import isfinite

from alerts.model import Cause, Condition, Datum, Digest, Kind, Notice, Notification
from alerts.text import plain

LONGEST_BODY = 1_800
"""Characters. The tightest of the common chats takes 2,000."""
TALLIES = 10
"""So many causes and places are listed in a digest."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a cause says in one line, and what a person does about it."""

    summary: str
    next: str


MEANINGS: Mapping[Cause, Meaning] = {
    Cause.LEAK: Meaning(
        "a machine that nobody owns runs for too long",
        "find its owner and end it, or list it under [[audit.ignore]] with the reason",
    ),
    Cause.TERMINATION_FAILED: Meaning(
        "an orphan could not be terminated", "read the error; it is tried again after reconcile.stuck_after"
    ),
    Cause.TERMINATION_PROTECTED: Meaning(
        "an orphan has termination protection", "switch the protection off, or end the machine by hand"
    ),
    Cause.TERMINATION_DENIED: Meaning(
        "the cloud forbids to terminate an orphan", "give reaperd's role the permission; see docs/safety.md"
    ),
    Cause.TERMINATION_STUCK: Meaning(
        "a machine that was asked to end is still there, or not proved to be gone",
        "look at it in the cloud's console; with our tag it is asked again, without it a person has to end it",
    ),
    Cause.INVALID_ID: Meaning("the cloud does not know the id of an orphan", "look the machine up, and report this"),
    Cause.MANAGED_ORPHAN: Meaning(
        "an orphan belongs to something that would launch it again", "end it there: shrink or delete the group"
    ),
    Cause.PROTECTED_ORPHAN: Meaning(
        "an orphan carries the protect tag", "remove the tag, or give the machine a row in the registry"
    ),
    Cause.AMBIGUOUS_WORKER: Meaning(
        "two machines claim one worker", "correct the row in the registry; neither is terminated until then"
    ),
    Cause.FOREIGN_REGISTRY: Meaning(
        "a machine with our tag belongs to another registry", "give the two fleets different deployment names"
    ),
    Cause.FOREIGN_ACCOUNT: Meaning(
        "a machine with our tag is in another account", "compare the credentials with providers.account"
    ),
    Cause.ROW_VANISHED: Meaning(
        "the registry's row of a machine disappeared",
        "put the row back within registry.vanish_grace if the machine is needed; `reaperd hold` gives time",
    ),
    Cause.OWNED_OUT_OF_SCOPE: Meaning(
        "a machine with our tag is where the reaper does not look", "add its region to providers.regions"
    ),
    Cause.HEARTBEATS_STOPPED: Meaning("no worker sends heartbeats", "see why; no machine expires until they are back"),
    Cause.BREAKER_OPEN: Meaning(
        "more machines would be terminated than is allowed, so none is",
        "read `reaperd plan`; then repair the registry, or `reaperd approve` that plan",
    ),
    Cause.REGISTRY_UNUSABLE: Meaning("the registry cannot be read", "run `reaperd registry verify`"),
    Cause.REGISTRY_IDENTITY: Meaning(
        "the registry is another one, or an older copy", "run `reaperd registry verify`, then `reaperd registry trust`"
    ),
    Cause.REGISTRY_MISMATCH: Meaning(
        "the registry is of another deployment", "compare registry.path and deployment in the configuration"
    ),
    Cause.WRONG_ACCOUNT: Meaning("the credentials are of another account", "compare them with providers.account"),
    Cause.LISTING_INCOMPLETE: Meaning(
        "a cloud could not be listed whole, so nothing is terminated", "read the scope and the error in `reaperd plan`"
    ),
    Cause.LEDGER_UNUSABLE: Meaning(
        "the ledger cannot be written, so nothing is terminated", "look at the disk and the rights of state_dir"
    ),
    Cause.CLOCK: Meaning("the clock is not to be relied on", "look at the time service of this host"),
    Cause.DEADLINE: Meaning("passes take longer than reconcile.deadline", "see which scope is slow, or allow more"),
    Cause.BLIND: Meaning(
        "many machines that the registry names as live are not seen", "compare the ownership tag, account and regions"
    ),
    Cause.LATE: Meaning("no pass has ended for five intervals", "read reaperd's log; `reaperd plan` looks at once"),
}

_SAID: Mapping[Kind, str] = {
    Kind.FIRING: "",
    Kind.REMINDER: "still: ",
    Kind.ESCALATED: "raised: ",
    Kind.RESOLVED: "resolved: ",
    Kind.TEST: "a test, nothing is wrong: ",
}
_MANY: Mapping[Kind, str] = {
    Kind.FIRING: "new alerts",
    Kind.REMINDER: "alerts that still hold",
    Kind.ESCALATED: "raised alerts",
    Kind.RESOLVED: "resolved alerts",
}


def title(notification: Notification, deployment: str) -> str:
    """Return the one line that may be all that is read."""
    if isinstance(notification, Digest):
        level, said = notification.severity, f"{notification.total} {_MANY[notification.of]}"
        return f"reaperd {plain(deployment)}: {level}: {said}"
    condition = notification.condition
    place = f" ({plain(condition.subject)})" if condition.subject else ""
    said = f"{_SAID[notification.kind]}{MEANINGS[condition.cause].summary}{place}"
    return f"reaperd {plain(deployment)}: {condition.severity}: {said}"


def body(notification: Notification) -> str:
    """Return the lines below the title."""
    lines = _digest(notification) if isinstance(notification, Digest) else _notice(notification)
    return _fitted(lines)


def summary(condition: Condition) -> str:
    """Return what the condition means, in one line, with the place."""
    place = f": {plain(condition.subject)}" if condition.subject else ""
    return f"{MEANINGS[condition.cause].summary}{place}"


def description(condition: Condition) -> str:
    """Return what is known of the condition, and what to do, in one paragraph."""
    facts = "; ".join(_facts(condition))
    return f"{facts}. Next: {_next(condition)}." if facts else f"Next: {_next(condition)}."


def shown_data(condition: Condition, show: Callable[[str], str]) -> Mapping[str, Datum]:
    """Return the data of a condition for a machine that reads it: texts made harmless, figures as they are."""
    return {show(name): _shown(value, show) for name, value in condition.data.items()}


def moment(time: datetime) -> str:
    """Return a time as people and machines read it."""
    return time.isoformat(timespec="seconds").replace("+00:00", "Z")


def _notice(notice: Notice) -> Iterator[str]:
    yield f"key: {plain(notice.condition.key)}"
    yield f"since: {moment(notice.since)}"
    if notice.kind is Kind.RESOLVED:
        yield f"resolved at: {moment(notice.at)}"
    yield from _facts(notice.condition)
    if notice.kind is not Kind.RESOLVED:
        yield f"next: {_next(notice.condition)}"


def _digest(digest: Digest) -> Iterator[str]:
    most = sorted(digest.tallies, key=lambda tally: (-tally.count, tally.cause, tally.scope))
    for tally in most[:TALLIES]:
        place = f" in {plain(tally.scope)}" if tally.scope else ""
        yield f"{tally.count} × {tally.cause}{place}"  # noqa: RUF001 - a multiplication
    if len(most) > TALLIES:
        yield f"and {len(most) - TALLIES} more causes and places"
    yield f"the first {len(digest.first)}:"
    for notice in digest.first:
        yield f"- {notice.condition.severity}: {plain(notice.condition.key, 80)}"
    yield "all of them: reaperd alerts list"


def _facts(condition: Condition) -> Iterator[str]:
    for name, value in condition.data.items():
        if name == "age_seconds":
            yield f"age: {'unknown' if value is None else _span(value)}"
        elif value is not None and value != "":
            yield f"{plain(name.replace('_', ' '))}: {plain(str(value))}"


def _shown(value: Datum, show: Callable[[str], str]) -> Datum:
    if isinstance(value, float) and not isfinite(value):
        return str(value)  # JSON has no such number.
    return show(value) if isinstance(value, str) else value


def _next(condition: Condition) -> str:
    return MEANINGS[condition.cause].next


def _span(seconds: Datum) -> str:
    if not isinstance(seconds, int | float) or not isfinite(seconds):
        return plain(str(seconds))
    hours, rest = divmod(int(timedelta(seconds=seconds).total_seconds()), 3600)
    return f"{hours // 24}d{hours % 24}h" if hours >= 48 else f"{hours}h{rest // 60}m"  # noqa: PLR2004 - two days


def _fitted(lines: Iterator[str]) -> str:
    """Return as many whole lines as there is room for."""
    kept: list[str] = []
    room = LONGEST_BODY
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            kept.append("…")
            break
        kept.append(line)
    return "\n".join(kept)
