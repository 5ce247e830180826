"""Whether the pages of a registry file hold what was written into them.

What makes a damaged file deadly is that it can read as a shorter one without any error. SQLite's `integrity_check`
finds that, because it looks up every row in every index; that takes longer than to read the rows. Where the workers
have no index but that of their ids, `quick_check` and one reading of that index prove the same of them.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator
from operator import lt

from registry.model import RegistryFault
from registry.sqlite.reading import Reading, quick_text, seal_of
from registry.sqlite_readonly import ReadOnlyOpenError

_INDEX = "sqlite_autoindex_workers_1"
_CHUNK = 500
_BROKEN_RULE = re.compile(r"\S+ value in workers\.")
"""NULL, or no text. (Of a state that does not exist nothing is found here: CHECK is no part of a read-only opening.)"""


def has_one_index(connection: sqlite3.Connection) -> bool:
    """Say whether the workers have no index but that of their ids, and whether it is in the order of Python's text."""
    (encoding,) = connection.execute("PRAGMA encoding").fetchone()
    indexes = connection.execute("SELECT name FROM sqlite_master WHERE type = 'index' AND lower(tbl_name) = 'workers'")
    if indexes.fetchall() != [(_INDEX,)] or encoding != "UTF-8":
        return False
    # Whoever made the table may have let its ids be ordered without regard to case.
    orders = connection.execute("SELECT coll FROM pragma_index_xinfo(?) WHERE key", (_INDEX,))
    return orders.fetchall() == [("BINARY",)]


def prove_pages(connection: sqlite3.Connection, damages_named: int, *, but_the_index: bool) -> tuple[str, ...]:
    """Return the rules of the workers table that some row breaks; which row, is said by the reading of the rows.

    `but_the_index` leaves out whether the index of the worker ids agrees with the table.

    Raises:
        ReadOnlyOpenError: naming so many damages.
    """
    checks = [f"integrity_check({damages_named})"]
    if but_the_index:
        checks = ["quick_check(1)", *(f"integrity_check({table})" for table in _other_tables_with_an_index(connection))]
    found = [str(row[0]) for check in checks for row in connection.execute(f"PRAGMA {check}")]
    broken_rules = tuple(damage for damage in found if _BROKEN_RULE.match(damage))
    require_none(damage for damage in found if damage not in ("ok", *broken_rules))
    return broken_rules


def _other_tables_with_an_index(connection: sqlite3.Connection) -> list[str]:
    """Return their names, quoted."""
    rows = connection.execute(
        "SELECT DISTINCT tbl_name FROM sqlite_master WHERE type = 'index' AND lower(tbl_name) != 'workers'"
    )
    return ["'" + str(name).replace("'", "''") + "'" for (name,) in rows]


def prove_index(connection: sqlite3.Connection, reading: Reading) -> None:
    """Return only if the index of the worker ids has every row that was read, no other one, and none twice.

    Raises:
        ReadOnlyOpenError: when the table or the index is not what it was.
    """
    rows, seal, before = 0, 0, ""
    for entries in _entries(connection):
        ids, _ = zip(*entries, strict=True)
        if not all(map(lt, (before, *ids), ids)):
            require_none(("the worker ids in its index are not in order, or one stands there twice",))
        rows, seal, before = rows + len(entries), seal + seal_of(entries), ids[-1]
    if (rows, seal) != (reading.rows, reading.seal):
        require_none((f"its table has {reading.rows} workers, and the index of their ids has {rows} or other ones",))


def _entries(connection: sqlite3.Connection) -> Iterator[list[tuple[str, int]]]:
    with quick_text(connection):
        cursor = connection.execute(
            f"SELECT worker_id, rowid FROM workers INDEXED BY {_INDEX} ORDER BY worker_id"  # noqa: S608  # a constant
        )
        while entries := cursor.fetchmany(_CHUNK):
            yield entries


def require_none(damages: Iterable[str]) -> None:
    """Raise ReadOnlyOpenError if there are any."""
    told = "; ".join(damages)
    if told:
        raise ReadOnlyOpenError(RegistryFault.DAMAGED, told)
