BEGIN TRANSACTION;
CREATE TABLE "_sqlite_migrations" (
   "id" INTEGER PRIMARY KEY,
   "migration_set" TEXT,
   "name" TEXT,
   "applied_at" TEXT
);
INSERT INTO "_sqlite_migrations" VALUES(1,'reaperd-ledger','m001_first','2026-01-10 12:00:00.000000+00:00');
CREATE TABLE approvals (digest TEXT PRIMARY KEY, refs TEXT NOT NULL, approved_at TEXT NOT NULL,
                                expires_at TEXT NOT NULL) STRICT;
INSERT INTO "approvals" VALUES('sha256:d','[["aws", "us-east-1", "i-1"]]','2026-01-10T12:00:00.000000Z','2026-01-10T13:00:00.000000Z');
CREATE TABLE brake (id INTEGER PRIMARY KEY CHECK (id = 1), since TEXT NOT NULL, held_by TEXT NOT NULL,
                            reason TEXT NOT NULL) STRICT;
INSERT INTO "brake" VALUES(1,'2026-01-10T12:00:00.000000Z','ann','deploy');
CREATE TABLE intents (intent_id INTEGER PRIMARY KEY AUTOINCREMENT, pass_id TEXT NOT NULL,
                              provider TEXT NOT NULL, region TEXT NOT NULL, instance_id TEXT NOT NULL, worker_id TEXT,
                              reason TEXT NOT NULL, again INTEGER NOT NULL, approved INTEGER NOT NULL,
                              generation INTEGER NOT NULL, requested_at TEXT NOT NULL,
                              outcome TEXT, error_code TEXT, detail TEXT, answered_at TEXT,
                              closed_at TEXT, closed_as TEXT) STRICT;
INSERT INTO "intents" VALUES(1,'p','aws','us-east-1','i-1','w-1','unregistered',0,0,1,'2026-01-10T12:00:00.000000Z','requested',NULL,'','2026-01-10T12:00:00.000000Z',NULL,NULL);
CREATE TABLE last_look (id INTEGER PRIMARY KEY CHECK (id = 1), at TEXT NOT NULL, instances TEXT NOT NULL,
                                coverage TEXT NOT NULL) STRICT;
CREATE TABLE lease (id INTEGER PRIMARY KEY CHECK (id = 1), generation INTEGER NOT NULL, host TEXT NOT NULL,
                            boot_id TEXT NOT NULL, pid_namespace TEXT NOT NULL, pid INTEGER NOT NULL,
                            started TEXT NOT NULL, expires_at TEXT NOT NULL) STRICT;
INSERT INTO "lease" VALUES(1,1,'host','boot','pid:[1]',1,'1','2026-01-10T12:00:30.000000Z');
CREATE TABLE listed (provider TEXT NOT NULL, region TEXT NOT NULL, instance_id TEXT NOT NULL,
                             PRIMARY KEY (provider, region, instance_id)) STRICT;
INSERT INTO "listed" VALUES('aws','us-east-1','i-1');
CREATE TABLE meta (id INTEGER PRIMARY KEY CHECK (id = 1), deployment TEXT NOT NULL, owner_tag TEXT NOT NULL,
                           schema_version INTEGER NOT NULL, created_at TEXT NOT NULL) STRICT;
INSERT INTO "meta" VALUES(1,'prod-a','reaperd:owner',1,'2026-01-10T12:00:00.000000Z');
CREATE TABLE operator_acts (seq INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT NOT NULL, act TEXT NOT NULL,
                                    by_whom TEXT NOT NULL, reason TEXT NOT NULL, data TEXT NOT NULL,
                                    previous_hash TEXT NOT NULL, hash TEXT NOT NULL) STRICT;
INSERT INTO "operator_acts" VALUES(1,'2026-01-10T12:00:00.000000Z','approve','ann','why','{"digest": "sha256:d", "machines": 1}','','d5c4de2e4481b31bdf6553632e352ead1fb0cd5fd0f3ea28f15d5c72986f0fdf');
INSERT INTO "operator_acts" VALUES(2,'2026-01-10T12:00:00.000000Z','hold','ann','deploy','{}','d5c4de2e4481b31bdf6553632e352ead1fb0cd5fd0f3ea28f15d5c72986f0fdf','cf193e8eab6fb17a41dfcbb0a3a48715e51bcddd7da38d6b7e24f11cc0603c35');
CREATE TABLE passes (seq INTEGER PRIMARY KEY AUTOINCREMENT, pass_id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL,
                             mode TEXT NOT NULL, started_at TEXT NOT NULL, finished_at TEXT NOT NULL,
                             outcome TEXT NOT NULL, reason TEXT, plan_digest TEXT, scopes TEXT NOT NULL,
                             record TEXT NOT NULL,
                             previous_hash TEXT NOT NULL, hash TEXT NOT NULL) STRICT;
INSERT INTO "passes" VALUES(1,'p-000','reconcile','dry-run','2026-01-10T12:00:00.000000Z','2026-01-10T12:00:02.000000Z','complete',NULL,NULL,'{"whole":["aws/eu-west-1","aws/us-east-1","gcp/us-east-1"],"failed":[]}','{"also":[],"conditions":[],"coverage":[{"account":null,"detail":"","error_code":null,"instances":0,"ok":true,"pages":0,"scope":"aws/us-east-1","seconds":0.0},{"account":null,"detail":"","error_code":null,"instances":0,"ok":true,"pages":0,"scope":"aws/eu-west-1","seconds":0.0},{"account":null,"detail":"","error_code":null,"instances":0,"ok":true,"pages":0,"scope":"gcp/us-east-1","seconds":0.0}],"detail":"","finished_at":"2026-01-10T12:00:02Z","kind":"reconcile","missing":[],"mode":"dry-run","outcome":"complete","outcomes":[],"pass_id":"p-000","plan_digest":null,"reason":null,"registry":{"epoch":7,"live":1,"registry_id":"r-1","rows":1},"started_at":"2026-01-10T12:00:00Z","verdicts":[]}','','551042e0d4f1358ba6ea1f1062035c0fd847dfe6870fb1382f19effc2fb3e89a');
INSERT INTO "passes" VALUES(2,'p-001','reconcile','dry-run','2026-01-10T12:01:00.000000Z','2026-01-10T12:01:02.000000Z','complete',NULL,'sha256:93f7b3571798652e3277f5ac2a0022c53c0c66b5d0d6cb0613e89a89ae9b970b','{"whole":["aws/eu-west-1","aws/us-east-1","gcp/us-east-1"],"failed":[]}','{"also":[],"conditions":[],"coverage":[{"account":null,"detail":"","error_code":null,"instances":0,"ok":true,"pages":0,"scope":"aws/us-east-1","seconds":0.0},{"account":null,"detail":"","error_code":null,"instances":0,"ok":true,"pages":0,"scope":"aws/eu-west-1","seconds":0.0},{"account":null,"detail":"","error_code":null,"instances":0,"ok":true,"pages":0,"scope":"gcp/us-east-1","seconds":0.0}],"detail":"","finished_at":"2026-01-10T12:01:02Z","kind":"reconcile","missing":[],"mode":"dry-run","outcome":"complete","outcomes":[{"detail":"","error_code":null,"instance_id":"i-1","outcome":"would_terminate","provider":"aws","reason":null,"region":"us-east-1"}],"pass_id":"p-001","plan_digest":"sha256:93f7b3571798652e3277f5ac2a0022c53c0c66b5d0d6cb0613e89a89ae9b970b","reason":null,"registry":{"epoch":7,"live":0,"registry_id":"r-1","rows":0},"started_at":"2026-01-10T12:01:00Z","verdicts":[{"age_seconds":3600,"confirmations":1,"confirmations_needed":3,"instance_id":"i-1","provider":"aws","reason":"unregistered","region":"us-east-1","state":"running","verdict":"terminate","worker_id":"w-i-1"}]}','551042e0d4f1358ba6ea1f1062035c0fd847dfe6870fb1382f19effc2fb3e89a','25023f09e24fdeab50659a4b07e3ad13a1acaa22d7b0f52af70a4e363cd9e46d');
CREATE TABLE registry_pin (id INTEGER PRIMARY KEY CHECK (id = 1), registry_id TEXT NOT NULL,
                                   epoch INTEGER NOT NULL, nonce TEXT, mismatch_accepted INTEGER NOT NULL) STRICT;
INSERT INTO "registry_pin" VALUES(1,'r-1',7,'aa',0);
CREATE TABLE scopes (provider TEXT NOT NULL, region TEXT NOT NULL, PRIMARY KEY (provider, region)) STRICT;
INSERT INTO "scopes" VALUES('aws','us-east-1');
CREATE TABLE sightings (provider TEXT NOT NULL, region TEXT NOT NULL, instance_id TEXT NOT NULL,
                                first_seen_at TEXT NOT NULL, last_seen_at TEXT NOT NULL,
                                confirmations INTEGER NOT NULL, counted_at TEXT, tracked_at TEXT,
                                tracked_by TEXT, vanished_at TEXT,
                                verdict TEXT NOT NULL, PRIMARY KEY (provider, region, instance_id)) STRICT;
INSERT INTO "sightings" VALUES('aws','us-east-1','i-1','2026-01-10T10:00:00.000000Z','2026-01-10T12:00:00.000000Z',2,'2026-01-10T12:00:00.000000Z','2026-01-10T11:00:00.000000Z',NULL,'2026-01-10T11:59:00.000000Z','keep/unconfirmed');
CREATE UNIQUE INDEX "idx__sqlite_migrations_migration_set_name"
    ON "_sqlite_migrations" ("migration_set", "name");
CREATE INDEX intents_open ON intents (provider, region, instance_id) WHERE closed_at IS NULL;
CREATE INDEX intents_requested ON intents (requested_at);
CREATE INDEX passes_started ON passes (started_at);
CREATE INDEX passes_digest ON passes (plan_digest) WHERE plan_digest IS NOT NULL;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('passes',2);
INSERT INTO "sqlite_sequence" VALUES('intents',1);
INSERT INTO "sqlite_sequence" VALUES('operator_acts',2);
COMMIT;
