BEGIN TRANSACTION;
CREATE TABLE "_sqlite_migrations" (
   "id" INTEGER PRIMARY KEY,
   "migration_set" TEXT,
   "name" TEXT,
   "applied_at" TEXT
);
INSERT INTO "_sqlite_migrations" VALUES(1,'registry','0001_tables','2026-11-30 10:22:46.019796+00:00');
CREATE TABLE epochs (epoch INTEGER PRIMARY KEY, nonce TEXT NOT NULL) STRICT;
INSERT INTO "epochs" VALUES(1,'408e12aa66a60793f296eb091658438c');
INSERT INTO "epochs" VALUES(2,'803dcf87128ec0ff69dd6b45dfbaa9e5');
INSERT INTO "epochs" VALUES(3,'c7a08cf23b51002a820e2242c4abd7a5');
INSERT INTO "epochs" VALUES(4,'dc34ac234ca3b084cf3c66dd4732b184');
INSERT INTO "epochs" VALUES(5,'caf3965a9bd7d0c653138c6b336081fa');
CREATE TABLE meta (
    id INTEGER PRIMARY KEY CHECK (id = 1), registry_id TEXT NOT NULL, deployment TEXT NOT NULL,
    schema_version INTEGER NOT NULL, epoch INTEGER NOT NULL, updated_at TEXT NOT NULL
) STRICT;
INSERT INTO "meta" VALUES(1,'r-1','prod',1,5,'2026-11-30T10:22:46.122Z');
CREATE TABLE workers (
    worker_id TEXT PRIMARY KEY NOT NULL, provider TEXT NOT NULL, region TEXT NOT NULL, instance_id TEXT,
    state TEXT NOT NULL CHECK (state IN ('launching','running','draining','completed','failed','terminated')),
    model TEXT, created_at TEXT NOT NULL, launched_at TEXT, heartbeat_at TEXT, updated_at TEXT NOT NULL
) STRICT;
INSERT INTO "workers" VALUES('w-1','aws','eu-west-1','i-0a1b2c3d4e5f60718','running','llama','2026-01-10T12:00:00.000000Z','2026-01-10T12:00:00.000000Z','2026-01-10T12:00:00.000000Z','2026-01-10T12:00:00.000000Z');
INSERT INTO "workers" VALUES('w-2','aws','eu-west-1',NULL,'launching',NULL,'2026-01-10T12:00:00.000000Z',NULL,NULL,'2026-01-10T12:00:00.000000Z');
INSERT INTO "workers" VALUES('w-3','aws','us-east-1','i-08172635445362718','completed',NULL,'2026-01-10T12:00:00.000000Z',NULL,NULL,'2026-01-10T12:00:00.000000Z');
CREATE UNIQUE INDEX "idx__sqlite_migrations_migration_set_name"
    ON "_sqlite_migrations" ("migration_set", "name");
CREATE TRIGGER workers_inserted AFTER INSERT ON workers BEGIN
    UPDATE meta SET epoch = epoch + 1, updated_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE id = 1;
    DELETE FROM epochs WHERE epoch >= (SELECT epoch FROM meta WHERE id = 1);
    DELETE FROM epochs WHERE epoch <= (SELECT epoch FROM meta WHERE id = 1) - 10000;
    INSERT INTO epochs (epoch, nonce) SELECT epoch, lower(hex(randomblob(16))) FROM meta WHERE id = 1;
END;
CREATE TRIGGER workers_deleted AFTER DELETE ON workers BEGIN
    UPDATE meta SET epoch = epoch + 1, updated_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE id = 1;
    DELETE FROM epochs WHERE epoch >= (SELECT epoch FROM meta WHERE id = 1);
    DELETE FROM epochs WHERE epoch <= (SELECT epoch FROM meta WHERE id = 1) - 10000;
    INSERT INTO epochs (epoch, nonce) SELECT epoch, lower(hex(randomblob(16))) FROM meta WHERE id = 1;
END;
CREATE TRIGGER workers_changed AFTER UPDATE ON workers WHEN old.worker_id IS NOT new.worker_id OR old.provider IS NOT new.provider OR old.region IS NOT new.region OR old.instance_id IS NOT new.instance_id OR old.state IS NOT new.state BEGIN
    UPDATE meta SET epoch = epoch + 1, updated_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE id = 1;
    DELETE FROM epochs WHERE epoch >= (SELECT epoch FROM meta WHERE id = 1);
    DELETE FROM epochs WHERE epoch <= (SELECT epoch FROM meta WHERE id = 1) - 10000;
    INSERT INTO epochs (epoch, nonce) SELECT epoch, lower(hex(randomblob(16))) FROM meta WHERE id = 1;
END;
CREATE TRIGGER workers_written AFTER UPDATE ON workers BEGIN
    UPDATE meta SET updated_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE id = 1;
END;
COMMIT;
