"""What operators did, kept for good and chained by hashes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from datetime import datetime

from reaperd.ledger.chain import link, newest_hash, text_of_act
from reaperd.ledger.connection import text_of


def keep_act(
    connection: sqlite3.Connection, at: datetime, act: str, by: str, reason: str, data: Mapping[str, object]
) -> None:
    """Write one act. To be called inside a write transaction: that of what it tells."""
    told = (text_of(at), act, by, reason, json.dumps(data, sort_keys=True))
    previous = newest_hash(connection, "operator_acts")
    connection.execute(
        "INSERT INTO operator_acts (at, act, by_whom, reason, data, previous_hash, hash) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (*told, previous, link(previous, text_of_act(*told))),
    )
