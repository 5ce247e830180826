"""Many notices as one: a storm is told once, with figures. Pure."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from alerts.model import Digest, Kind, Notice, Notification, Tally

FIRST = 10
"""So many alerts are named in a digest."""
_ORDER = (Kind.FIRING, Kind.ESCALATED, Kind.REMINDER, Kind.RESOLVED)


def gathered(notices: Iterable[Notice], above: int, now: datetime) -> Iterator[Notification]:
    """Yield what one channel is told of one look: of each kind either its notices, or one digest if there are more."""
    told = sorted(notices, key=_most_severe_first)
    for kind in _ORDER:
        alike = [notice for notice in told if notice.kind is kind]
        if len(alike) > above:
            yield _digest(kind, alike, now)
        else:
            yield from alike


def notice_id(kind: Kind, key: str, since: datetime, now: datetime) -> str:
    """Return the id of a notice: the same for the same thing said at the same time about the same episode."""
    return _hashed(str(kind), key, since.isoformat(), now.isoformat())


def _digest(kind: Kind, notices: Sequence[Notice], now: datetime) -> Digest:
    counted = Counter((notice.condition.cause, notice.condition.scope) for notice in notices)
    return Digest(
        id=_hashed(str(Kind.DIGEST), *(notice.id for notice in notices)),
        of=kind,
        at=now,
        severity=notices[0].condition.severity,
        tallies=tuple(Tally(cause=cause, scope=scope, count=counted[cause, scope]) for cause, scope in sorted(counted)),
        first=tuple(notices[:FIRST]),
    )


def _most_severe_first(notice: Notice) -> tuple[int, bool, str]:
    """Return its place: by severity, and what is about the whole before what is about one machine."""
    return -notice.condition.severity.rank, bool(notice.condition.subject), notice.condition.key


def _hashed(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]
