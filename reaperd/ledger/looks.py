"""The last complete look, as it is kept for whoever asks later what was seen. No decision is made on it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from typing import Any

from providers.model import Coverage, InstanceRef, InstanceState, OwnedInstance, Scope
from reaperd.core.history import Look
from reaperd.ledger.connection import maybe_time, text_of, time_of

_KEY = ("provider", "region", "instance_id")
_FACTS = (
    *("state", "owner", "worker_id", "registry_id", "protect", "managed_by", "launched_at"),
    *("account", "foreign_account", "instance_type"),
)
_COLUMNS = (*_KEY, *_FACTS)

_LISTED = f"SELECT {', '.join(_COLUMNS)} FROM last_listed"  # noqa: S608 - constants


def keep_look(connection: sqlite3.Connection, look: Look) -> None:
    """Keep this look in place of the last. Tags are left out: what a decision needs of them has a name of its own."""
    connection.execute(
        "INSERT OR REPLACE INTO last_look (id, at, coverage) VALUES (1, ?, ?)", (text_of(look.at), _coverage(look))
    )
    # Most machines are listed as they were the last time, and then nothing is written.
    before, after = set(connection.execute(_LISTED)), {_row(each) for each in look.instances}
    changed = after - before
    if not changed and len(before) == len(after):
        return
    gone = {_name(row) for row in before - after} - {_name(row) for row in changed}
    connection.executemany("DELETE FROM last_listed WHERE provider = ? AND region = ? AND instance_id = ?", gone)
    connection.executemany(
        f"INSERT OR REPLACE INTO last_listed VALUES ({', '.join('?' * len(_COLUMNS))})",  # noqa: S608 - constants
        changed,
    )


def last_look(connection: sqlite3.Connection) -> Look | None:
    """Return the last complete look; None when there was none, or it is in a ledger that was not migrated yet."""
    row = connection.execute("SELECT at, coverage FROM last_look").fetchone()
    if row is None or not has_table(connection, "last_listed"):
        return None
    return Look(
        at=time_of(row[0]),
        instances=tuple(_instances(connection)),
        coverage=tuple(_covered(each) for each in json.loads(row[1])),
    )


def has_table(connection: sqlite3.Connection, name: str) -> bool:
    """Say whether a ledger has a table. Whoever only reads may meet one that the newer daemon has not migrated yet."""
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (name,)).fetchone() is not None


def _row(each: OwnedInstance) -> tuple[object, ...]:
    return (
        *(each.ref.provider, each.ref.region, each.ref.instance_id),
        *(each.state, each.owner, each.worker_id, each.registry_id, each.protect, each.managed_by),
        *(each.launched_at and each.launched_at.isoformat(), each.account, each.foreign_account, each.instance_type),
    )


def _name(row: tuple[object, ...]) -> tuple[object, ...]:
    return row[: len(_KEY)]


def _coverage(look: Look) -> str:
    coverage = [
        {
            "scope": [each.scope.provider, each.scope.region],
            "account": each.account,
            "instances": each.instances,
            "pages": each.pages,
        }
        for each in look.coverage
    ]
    return json.dumps(coverage, separators=(",", ":"))


def _instances(connection: sqlite3.Connection) -> Iterator[OwnedInstance]:
    for row in connection.execute(f"{_LISTED} ORDER BY {', '.join(_KEY)}"):
        told = dict(zip(_COLUMNS, row, strict=True))
        yield OwnedInstance(
            ref=InstanceRef(*row[: len(_KEY)]),
            state=InstanceState(told["state"]),
            owner=told["owner"],
            worker_id=told["worker_id"],
            registry_id=told["registry_id"],
            protect=bool(told["protect"]),
            managed_by=told["managed_by"],
            launched_at=maybe_time(told["launched_at"]),
            account=told["account"],
            foreign_account=bool(told["foreign_account"]),
            instance_type=told["instance_type"],
        )


def _covered(kept: dict[str, Any]) -> Coverage:
    return Coverage(scope=Scope(*kept.pop("scope")), **kept)
