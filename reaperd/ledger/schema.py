"""The tables of the ledger. Migrated by the ledger itself; a newer schema is refused."""

from __future__ import annotations

from sqlite_utils import Database, Migrations

SCHEMA_VERSION = 5

migrations = Migrations("reaperd-ledger")

_TABLES = (
    """CREATE TABLE meta (id INTEGER PRIMARY KEY CHECK (id = 1), deployment TEXT NOT NULL, owner_tag TEXT NOT NULL,
                           schema_version INTEGER NOT NULL, created_at TEXT NOT NULL) STRICT""",
    """CREATE TABLE sightings (provider TEXT NOT NULL, region TEXT NOT NULL, instance_id TEXT NOT NULL,
                                first_seen_at TEXT NOT NULL, last_seen_at TEXT NOT NULL,
                                confirmations INTEGER NOT NULL, counted_at TEXT, tracked_at TEXT,
                                tracked_by TEXT, vanished_at TEXT,
                                verdict TEXT NOT NULL, PRIMARY KEY (provider, region, instance_id)) STRICT""",
    """CREATE TABLE intents (intent_id INTEGER PRIMARY KEY AUTOINCREMENT, pass_id TEXT NOT NULL,
                              provider TEXT NOT NULL, region TEXT NOT NULL, instance_id TEXT NOT NULL, worker_id TEXT,
                              reason TEXT NOT NULL, again INTEGER NOT NULL, approved INTEGER NOT NULL,
                              generation INTEGER NOT NULL, requested_at TEXT NOT NULL,
                              outcome TEXT, error_code TEXT, detail TEXT, answered_at TEXT,
                              closed_at TEXT, closed_as TEXT) STRICT""",
    "CREATE INDEX intents_open ON intents (provider, region, instance_id) WHERE closed_at IS NULL",
    "CREATE INDEX intents_requested ON intents (requested_at)",
    """CREATE TABLE passes (seq INTEGER PRIMARY KEY AUTOINCREMENT, pass_id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL,
                             mode TEXT NOT NULL, started_at TEXT NOT NULL, finished_at TEXT NOT NULL,
                             outcome TEXT NOT NULL, reason TEXT, plan_digest TEXT, scopes TEXT NOT NULL,
                             record TEXT NOT NULL,
                             previous_hash TEXT NOT NULL, hash TEXT NOT NULL) STRICT""",
    "CREATE INDEX passes_started ON passes (started_at)",
    "CREATE INDEX passes_digest ON passes (plan_digest) WHERE plan_digest IS NOT NULL",
    """CREATE TABLE lease (id INTEGER PRIMARY KEY CHECK (id = 1), generation INTEGER NOT NULL, host TEXT NOT NULL,
                            boot_id TEXT NOT NULL, pid_namespace TEXT NOT NULL, pid INTEGER NOT NULL,
                            started TEXT NOT NULL, expires_at TEXT NOT NULL) STRICT""",
    """CREATE TABLE registry_pin (id INTEGER PRIMARY KEY CHECK (id = 1), registry_id TEXT NOT NULL,
                                   epoch INTEGER NOT NULL, nonce TEXT, mismatch_accepted INTEGER NOT NULL) STRICT""",
    """CREATE TABLE listed (provider TEXT NOT NULL, region TEXT NOT NULL, instance_id TEXT NOT NULL,
                             PRIMARY KEY (provider, region, instance_id)) STRICT""",
    """CREATE TABLE last_look (id INTEGER PRIMARY KEY CHECK (id = 1), at TEXT NOT NULL, instances TEXT NOT NULL,
                                coverage TEXT NOT NULL) STRICT""",
    "CREATE TABLE scopes (provider TEXT NOT NULL, region TEXT NOT NULL, PRIMARY KEY (provider, region)) STRICT",
    """CREATE TABLE brake (id INTEGER PRIMARY KEY CHECK (id = 1), since TEXT NOT NULL, held_by TEXT NOT NULL,
                            reason TEXT NOT NULL) STRICT""",
    """CREATE TABLE approvals (digest TEXT PRIMARY KEY, refs TEXT NOT NULL, approved_at TEXT NOT NULL,
                                expires_at TEXT NOT NULL) STRICT""",
    """CREATE TABLE operator_acts (seq INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT NOT NULL, act TEXT NOT NULL,
                                    by_whom TEXT NOT NULL, reason TEXT NOT NULL, data TEXT NOT NULL,
                                    previous_hash TEXT NOT NULL, hash TEXT NOT NULL) STRICT""",
)


@migrations()
def m001_first(db: Database) -> None:
    """Create everything."""
    for statement in _TABLES:
        db.execute(statement)


@migrations()
def m002_self_test(db: Database) -> None:
    """Make room for what is written and read back at each start."""
    db.execute(
        "CREATE TABLE self_test (id INTEGER PRIMARY KEY CHECK (id = 1), at TEXT NOT NULL, text TEXT NOT NULL) STRICT"
    )
    db.execute("UPDATE meta SET schema_version = 2")


_ALERTS = (
    # Every alert that is not over, as alerts.records writes it.
    "CREATE TABLE alerts (key TEXT PRIMARY KEY, record TEXT NOT NULL) STRICT",
    # What is still to be delivered. A row goes when its channel took it, or when trying again will not help.
    """CREATE TABLE outbox (seq INTEGER PRIMARY KEY AUTOINCREMENT, channel TEXT NOT NULL, notification_id TEXT NOT NULL,
                            record TEXT NOT NULL, due_at TEXT NOT NULL, attempts INTEGER NOT NULL,
                            next_try_at TEXT NOT NULL, last_error TEXT,
                            UNIQUE (channel, notification_id)) STRICT""",
    """CREATE TABLE mutes (pattern TEXT PRIMARY KEY, until TEXT NOT NULL, reason TEXT NOT NULL, muted_by TEXT NOT NULL,
                           muted_at TEXT NOT NULL) STRICT""",
    # The earliest that a machine of anybody's was known to run (rule 27), until a sweep shows that it is gone.
    """CREATE TABLE audited (provider TEXT NOT NULL, region TEXT NOT NULL, instance_id TEXT NOT NULL,
                             started_at TEXT NOT NULL, PRIMARY KEY (provider, region, instance_id)) STRICT""",
)


@migrations()
def m003_alerts(db: Database) -> None:
    """Make room for alerts, what is to be delivered, mutes, and how long machines are known to run."""
    for statement in _ALERTS:
        db.execute(statement)
    db.execute("UPDATE meta SET schema_version = 3")


@migrations()
def m004_identity(db: Database) -> None:
    """Give the ledger an identity, and the lease a secret: two files that were made alike are not one."""
    db.execute("ALTER TABLE meta ADD COLUMN ledger_id TEXT NOT NULL DEFAULT ''")
    db.execute("UPDATE meta SET ledger_id = lower(hex(randomblob(16)))")
    db.execute("ALTER TABLE lease ADD COLUMN nonce TEXT NOT NULL DEFAULT ''")
    db.execute("UPDATE meta SET schema_version = 4")


_ONLY_CHANGES = (
    # The look that last wrote sightings: the time that an empty one in them stands for.
    "CREATE TABLE sighted (id INTEGER PRIMARY KEY CHECK (id = 1), at TEXT NOT NULL) STRICT",
    # What the last complete look listed of ours.
    """CREATE TABLE last_listed (provider TEXT NOT NULL, region TEXT NOT NULL, instance_id TEXT NOT NULL,
                                 state TEXT NOT NULL, owner TEXT NOT NULL, worker_id TEXT, registry_id TEXT,
                                 protect INTEGER NOT NULL, managed_by TEXT, launched_at TEXT, account TEXT,
                                 foreign_account INTEGER NOT NULL, instance_type TEXT,
                                 PRIMARY KEY (provider, region, instance_id)) STRICT, WITHOUT ROWID""",
    """INSERT INTO last_listed SELECT
           json_extract(value, '$.ref[0]'), json_extract(value, '$.ref[1]'), json_extract(value, '$.ref[2]'),
           json_extract(value, '$.state'), json_extract(value, '$.owner'), json_extract(value, '$.worker_id'),
           json_extract(value, '$.registry_id'), json_extract(value, '$.protect'), json_extract(value, '$.managed_by'),
           json_extract(value, '$.launched_at'), json_extract(value, '$.account'),
           json_extract(value, '$.foreign_account'), json_extract(value, '$.instance_type')
       FROM last_look, json_each(last_look.instances)""",
    "ALTER TABLE last_look DROP COLUMN instances",
)


@migrations()
def m005_only_changes(db: Database) -> None:
    """Keep of each machine a row of its own: a look then writes those that have changed."""
    for statement in _ONLY_CHANGES:
        db.execute(statement)
    db.execute("UPDATE meta SET schema_version = 5")
