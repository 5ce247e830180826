"""Registries of the first schema, without zones: read, written in what they have room for, and brought up to date."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from registry.conformance import FULL, LAUNCHING
from registry.errors import RegistryWriteError
from registry.model import SCHEMA_VERSION, RegistryFault, Worker, WorkerState
from registry.sqlite.admin import backup, migrate
from registry.sqlite.reader import verify
from registry.sqlite.schema import TABLES
from registry.sqlite.writer import SqliteRegistryWriter
from tests.unit.registry.files import connected, files, reader, run
from tests.unit.registry.test_broken_files import refusal

DUMP = Path(__file__).with_name("data") / "schema_1.sql"
"""As the last release of the first schema made it: `registry init`, three workers, and sqlite3's dump of it."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "registry.db"
    with connected(made) as connection:
        connection.executescript(DUMP.read_text(encoding="utf-8"))
        connection.execute("PRAGMA journal_mode = wal")
    return made


def writer(path: Path) -> SqliteRegistryWriter:
    return SqliteRegistryWriter(path, "prod")


def row(path: Path, worker_id: str) -> Worker:
    found = writer(path).find(worker_id)
    assert found is not None
    return found


def test_it_is_read_whole_and_knows_no_zone(path):
    snapshot = reader(path).snapshot()

    assert snapshot.identity.schema_version == 1
    assert [(each.worker_id, each.instance_id, each.state, each.zone) for each in snapshot.workers] == [
        ("w-1", "i-0a1b2c3d4e5f60718", WorkerState.RUNNING, None),
        ("w-2", None, WorkerState.LAUNCHING, None),
        ("w-3", "i-08172635445362718", WorkerState.COMPLETED, None),
    ]
    assert (snapshot.workers[0].model, snapshot.nonce is not None) == ("llama", True)
    assert verify(path) == snapshot
    assert [each.worker_id for each in reader(path).lookup("i-0a1b2c3d4e5f60718", None).workers] == ["w-1"]


def test_it_is_written_without_the_zone_that_it_has_no_room_for(path):
    writer(path).add(replace(FULL, worker_id="w-4"))
    writer(path).set_place("w-2", "aws", "eu-north-1", zone="eu-north-1a")
    writer(path).set_instance("w-2", "i-2")

    assert row(path, "w-4") == replace(FULL, worker_id="w-4", zone=None)
    assert (row(path, "w-2").region, row(path, "w-2").instance_id, row(path, "w-2").zone) == ("eu-north-1", "i-2", None)
    assert reader(path).snapshot().identity.schema_version == 1


def test_a_zone_that_names_none_is_refused_there_too(path):
    with pytest.raises(RegistryWriteError):
        writer(path).set_place("w-2", "aws", "eu-north-1", zone=" ")


def test_it_is_copied_as_it_is(path, tmp_path):
    backup(path, tmp_path / "copy.db")

    assert reader(tmp_path / "copy.db").snapshot() == reader(path).snapshot()


def test_a_migration_adds_the_zone_and_changes_no_row_and_no_epoch(path):
    before = reader(path).snapshot()

    assert migrate(path) == ("0002_zone",)

    after = reader(path).snapshot(remembered_epoch=before.identity.epoch)
    assert after.workers == before.workers
    assert after.identity == replace(before.identity, schema_version=SCHEMA_VERSION)
    assert (after.nonce, after.remembered_nonce) == (before.nonce, before.nonce)
    assert migrate(path) == ()


def test_once_migrated_it_keeps_zones(path):
    migrate(path)

    writer(path).add(replace(LAUNCHING, worker_id="w-4", zone="us-east-1a"))
    writer(path).set_place("w-2", "aws", "eu-north-1", zone="eu-north-1a")

    assert (row(path, "w-4").zone, row(path, "w-2").zone, row(path, "w-1").zone) == ("us-east-1a", "eu-north-1a", None)


def test_one_that_another_language_made_is_adopted(path):
    run(path, "DROP TABLE _sqlite_migrations")

    assert migrate(path) == ("0001_tables", "0002_zone")
    assert reader(path).snapshot().identity.schema_version == SCHEMA_VERSION


def test_a_control_plane_that_knows_no_zones_goes_on_writing_it(path):
    migrate(path)
    with connected(path) as connection:
        connection.execute(
            "INSERT INTO workers (worker_id, provider, region, state, created_at, updated_at)"
            " VALUES ('w-9', 'aws', 'eu-west-1', 'launching', '2026-01-10T12:00:00Z', '2026-01-10T12:00:00Z')"
        )

    assert row(path, "w-9").zone is None


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE workers ADD COLUMN zone TEXT",
        "UPDATE meta SET schema_version = 2",
    ],
    ids=["the first with zones", "the second without"],
)
def test_a_schema_that_is_neither_the_one_nor_the_other_is_refused_and_can_be_brought_up_to_date(path, change):
    run(path, change)

    error = refusal(path)
    assert error.fault is RegistryFault.OTHER_SCHEMA
    assert "zone" in error.detail
    assert "reaperd registry migrate" in error.remedy

    assert migrate(path) == ("0002_zone",)
    assert reader(path).snapshot().identity.schema_version == SCHEMA_VERSION


def test_what_cannot_become_whole_is_left_as_it_is(path):
    run(path, "ALTER TABLE workers DROP COLUMN model")
    before = files(path)

    with pytest.raises(RegistryWriteError):
        migrate(path)

    assert files(path) == before


@pytest.mark.parametrize("zone", ["", "  "])
def test_a_zone_that_is_empty_is_not_known(path, zone):
    migrate(path)
    run(path, f"UPDATE workers SET zone = '{zone}' WHERE worker_id = 'w-1'")

    assert row(path, "w-1").zone is None


@pytest.mark.parametrize("zone", [" eu-west-1a", "eu-west-1a\n", "eu\u200bwest-1a"])
def test_a_zone_that_only_looks_like_one_makes_the_registry_unusable_like_every_such_name(path, zone):
    migrate(path)
    run(path, f"UPDATE workers SET zone = '{zone}' WHERE worker_id = 'w-1'")

    error = refusal(path)

    assert error.fault is RegistryFault.BAD_ROW
    assert "zone" in error.detail


def test_the_column_comes_last_so_that_who_inserts_by_position_meets_an_error_and_no_other_column():
    columns = TABLES["workers"].partition("(")[2]

    assert columns.rstrip().removesuffix(") STRICT").split(",")[-1].split() == ["zone", "TEXT"]
