"""How a registry file comes to the current schema. Run by `reaperd registry init` and `migrate`, never by a reader.

A released migration is never edited. Every one must also run on a file that a control plane in another language made
from `TABLES` and `TRIGGERS`, where none was recorded.
"""

from __future__ import annotations

from sqlite_utils import Database, Migrations

from registry.sqlite.schema import NEXT_EPOCH, TABLES, TRIGGERS, damaged_triggers

migrations = Migrations("registry")


@migrations(name="0001_tables")
def _tables(db: Database) -> None:
    for sql in TABLES.values():
        db.execute(_unless_it_exists(sql))


@migrations(name="0002_zone")
def _zone(db: Database) -> None:
    # A file that is being made has it already, and no meta row yet.
    if "zone" not in db.table("workers").columns_dict:
        db.execute("ALTER TABLE workers ADD COLUMN zone TEXT")
    db.execute("UPDATE meta SET schema_version = 2 WHERE schema_version = 1")


def restore(db: Database) -> tuple[str, ...]:
    """Put back what makes the epoch prove something, and return the names of what was missing.

    What was written meanwhile left no trace, so the epoch is raised. Never puts back `workers` or `meta`: those hold
    what cannot be known.
    """
    damaged = damaged_triggers(db.conn)
    restored = list(damaged)
    if not db.table("epochs").exists():
        db.execute(_unless_it_exists(TABLES["epochs"]))
        restored.append("epochs")
    for name in damaged:
        db.execute(f"DROP TRIGGER IF EXISTS {name}")
        db.execute(TRIGGERS[name])
    marks = db.execute("SELECT count(*) FROM meta JOIN epochs USING (epoch) WHERE nonce <> ''").fetchone()[0]
    if not marks:
        restored.append("mark")
    if restored:
        for sql in NEXT_EPOCH:
            db.execute(sql)
    return tuple(restored)


def _unless_it_exists(create_table: str) -> str:
    return create_table.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS", 1)
