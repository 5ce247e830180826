"""The chain of hashes over what was recorded: passes, and what operators did."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

Table = Literal["passes", "operator_acts"]

_NEWEST = {
    "passes": "SELECT hash FROM passes ORDER BY seq DESC LIMIT 1",
    "operator_acts": "SELECT hash FROM operator_acts ORDER BY seq DESC LIMIT 1",
}
_COPIED = ("pass_id", "kind", "mode", "outcome", "reason", "plan_digest")
"""Columns of a pass that repeat its record, so that it can be found. The chain is over the record."""


def newest_hash(connection: sqlite3.Connection, table: Table) -> str:
    """Return what the next link is chained to; empty at the beginning."""
    row = connection.execute(_NEWEST[table]).fetchone()
    return "" if row is None else str(row[0])


def link(previous: str, text: str) -> str:
    """Return the hash of a record and of all that came before it."""
    return hashlib.sha256(f"{previous}\n{text}".encode()).hexdigest()


def scopes_of(record: Mapping[str, Any]) -> str:
    """Return which scopes a pass listed whole, and which not, so that a month of passes can be counted at once."""
    found: dict[str, list[str]] = {"whole": [], "failed": []}
    for entry in record.get("coverage", ()):
        found["whole" if entry["ok"] else "failed"].append(entry["scope"])
    return json.dumps({kind: sorted(scopes) for kind, scopes in found.items()}, separators=(",", ":"))


def text_of_act(at: str, act: str, by: str, reason: str, data: str) -> str:
    """Return what is hashed of an operator's act."""
    return json.dumps([at, act, by, reason, data])


def broken_passes(connection: sqlite3.Connection) -> Iterator[tuple[int, str]]:
    """Yield, oldest first, the number of every pass that is not as it was recorded, and what is wrong.

    The oldest one that is kept may be chained to one that was dropped since.
    """
    rows = connection.execute(
        "SELECT seq, previous_hash, hash, record, pass_id, kind, mode, outcome, reason, plan_digest, scopes,"
        " started_at, finished_at FROM passes ORDER BY seq"
    )
    before: str | None = None
    for seq, previous, digest, record, *columns in rows:
        trouble = _unlinked(before, previous, digest, record) or _contradicted(record, columns)
        if trouble:
            yield seq, trouble
        before = digest


def broken_acts(connection: sqlite3.Connection) -> Iterator[tuple[int, str]]:
    """Yield, oldest first, the number of every act that is not as it was recorded, and what is wrong."""
    rows = connection.execute(
        "SELECT seq, previous_hash, hash, at, act, by_whom, reason, data FROM operator_acts ORDER BY seq"
    )
    # None is ever dropped, so the first one follows nothing.
    before: str | None = ""
    for seq, previous, digest, *told in rows:
        trouble = _unlinked(before, previous, digest, text_of_act(*told))
        if trouble:
            yield seq, trouble
        before = digest


def _unlinked(before: str | None, previous: str, digest: str, text: str) -> str:
    if link(previous, text) != digest:
        return "its text is not the one that was recorded"
    if before is not None and previous != before:
        return "it does not follow the one before: something was taken out, put in or changed there"
    return ""


def _contradicted(record: str, columns: Iterable[str | None]) -> str:
    """Say which column is not what the record says. A record that does not say it contradicts nothing."""
    *copied, scopes, started_at, finished_at = columns
    try:
        told = json.loads(record)
        scopes_told = scopes_of(told)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return f"its record cannot be read: {error!r}"
    facts = dict(zip(_COPIED, copied, strict=True))
    facts |= {"started_at": _seconds(started_at), "finished_at": _seconds(finished_at)}
    wrong = [name for name, value in facts.items() if told.get(name, value) != value]
    wrong += ["scopes"] if scopes_told != scopes else []
    return f"its record says something else of {', '.join(wrong)} than its row" if wrong else ""


def _seconds(text: str | None) -> str:
    # 2026-01-10T12:00:00.000000Z, and the record has whole seconds.
    return f"{text or ''}"[:19] + "Z"
