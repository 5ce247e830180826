"""Taking over the workers of another book, from a shell."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

from registry.model import WorkerState
from registry.sqlite import SqliteRegistry
from tests.unit.cli.golden import assert_golden
from tests.unit.cli.running import person, run

ROW = {"worker_id": "w-1", "provider": "aws", "region": "us-east-1", "instance_id": "i-1", "state": "running"}


@pytest.fixture
def book(place):
    place.make_registry()

    def write(*rows: dict[str, object]) -> str:
        (place.folder / "book.json").write_text(json.dumps(rows))
        return str(place.folder / "book.json")

    return write


@pytest.fixture
def database(place):
    """A database as a Cedana client leaves it."""
    place.make_registry()
    path = place.folder / "cedana.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "CREATE TABLE instances (id integer PRIMARY KEY, created_at datetime, updated_at datetime, "
            "deleted_at datetime, cedana_id text, allocated_id text, provider text, instance_type text, "
            "gp_us text, region text, availability_zone text, price real, state text, tag text)"
        )
        rows = [
            ("c-1", "i-1", "running", None, '{"Gpus":[]}'),
            ("c-2", "i-2", "running", "2024-03-02 10:00:00+00:00", ""),
            ("c-3", "i-1", "terminated", None, "{"),
            ("c-4", "i-4\x1b", "running", None, ""),
        ]
        connection.executemany(
            "INSERT INTO instances (cedana_id, allocated_id, state, deleted_at, gp_us, provider, region, created_at) "
            "VALUES (?, ?, ?, ?, ?, 'aws', 'us-east-1', '2024-03-01 10:00:00+00:00')",
            rows,
        )
    return path


def rows(place):
    return {row.worker_id: row for row in SqliteRegistry(place.registry).snapshot().workers}


def take_over(place, *words, stdin=None):
    return run("registry", "import", *words, "--config", place.config, stdin=stdin)


def shown(place, result) -> str:
    return result.stdout.replace(str(place.folder), "DIR")


def test_what_would_be_written_is_shown_and_asked_about(place, book):
    file = book(ROW, ROW | {"worker_id": "w-2", "instance_id": None, "state": "completed"})

    result = take_over(place, "--from", "json", file, stdin=person("n"))

    assert result.exit_code == 1
    assert "Write 2 workers into" in result.stderr
    assert rows(place) == {}
    assert_golden("import_asked", shown(place, result))


@pytest.mark.parametrize("answer", [{"stdin": person("y")}, {}])
def test_a_yes_writes_all_of_it(place, book, answer):
    words = () if answer else ("--yes",)

    result = take_over(place, "--from", "json", book(ROW), *words, **answer)

    assert result.exit_code == 0, result.stderr
    assert rows(place)["w-1"].instance_id == "i-1"
    assert "wrote 1 worker" in result.stdout


def test_where_nobody_can_be_asked_nothing_is_written(place, book):
    result = take_over(place, "--from", "json", book(ROW))

    assert result.exit_code == 2
    assert rows(place) == {}


def test_what_registry_list_prints_can_be_taken_over(place, book):
    place.registry.unlink()
    place.make_registry(rows=3)
    before = rows(place)
    printed = {
        how: run("registry", "list", "--format", how, "--config", place.config).stdout for how in ("csv", "json")
    }
    for how, text in printed.items():
        (place.folder / "book").write_text(text)
        place.registry.unlink()
        place.make_registry()

        result = take_over(place, "--from", how, place.folder / "book", "--yes")

        assert result.exit_code == 0, result.stderr
        assert rows(place) == before


def test_a_worker_that_stands_already_is_left_as_it_is(place, book):
    take_over(place, "--from", "json", book(ROW, ROW | {"worker_id": "w-2", "instance_id": "i-2"}), "--yes")

    changed = book(ROW | {"state": "failed"}, ROW | {"worker_id": "w-2", "instance_id": "i-2"})
    result = take_over(place, "--from", "json", changed)

    assert result.exit_code == 0
    assert rows(place)["w-1"].state is WorkerState.RUNNING
    assert_golden("import_standing", shown(place, result))


def test_a_deleted_instance_of_cedana_is_not_live(place, database):
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE instances SET allocated_id = 'i-4' WHERE cedana_id = 'c-4'")
    before = database.read_bytes()

    result = take_over(place, "--from", "cedana", database, "--provider", "aws=aws-prod", "--yes")

    assert result.exit_code == 0, result.stderr
    assert {name: (str(row.state), row.instance_id, row.provider) for name, row in rows(place).items()} == {
        "c-1": ("running", "i-1", "aws-prod"),
        "c-2": ("terminated", "i-2", "aws-prod"),
        "c-3": ("terminated", "i-1", "aws-prod"),
        "c-4": ("running", "i-4", "aws-prod"),
    }
    assert database.read_bytes() == before
    assert_golden("import_cedana", shown(place, result))


def test_one_row_that_cannot_be_used_refuses_the_book(place, database):
    result = take_over(place, "--from", "cedana", database, "--yes")

    assert result.exit_code == 1
    assert "instance 4: its instance_id" in result.stderr
    assert "\x1b" not in result.stderr
    assert rows(place) == {}


@pytest.mark.parametrize(
    ("book_", "content", "told"),
    [
        ("json", b"\xff", "no text in UTF-8"),
        ("json", b"[", "no JSON"),
        ("csv", b"worker_id\n", "the column provider is missing"),
        ("cedana", b"SQLite format 3\0" + b"x" * 600, "nothing was written"),
        ("cedana", b"[7]", "neither a list of rows"),
    ],
)
def test_a_file_that_is_something_else_is_refused(place, book_, content, told):
    place.make_registry()
    (place.folder / "book").write_bytes(content)

    result = take_over(place, "--from", book_, place.folder / "book", "--yes")

    assert result.exit_code == 1
    assert told in result.stderr


def test_a_file_that_is_not_there_is_named(place):
    place.make_registry()

    result = take_over(place, "--from", "csv", place.folder / "none.csv", "--yes")

    assert result.exit_code == 1
    assert "none.csv" in result.stderr


def test_a_provider_is_renamed_by_two_names(place, book):
    assert take_over(place, "--from", "json", book(ROW), "--provider", "aws", "--yes").exit_code == 2


def test_places_in_which_no_machine_is_looked_for_are_told(place, book):
    name = book(
        ROW | {"worker_id": "w-1", "region": "us-esat-1"},
        ROW | {"worker_id": "w-2", "instance_id": "i-2", "region": "us-esat-1"},
        ROW | {"worker_id": "w-3", "instance_id": "i-3", "provider": "awz"},
        ROW | {"worker_id": "w-4", "instance_id": "i-4", "provider": "awz", "region": "us-west-2"},
    )

    told = " ".join(take_over(place, name, "--from", "json", "--yes").output.split())

    assert told.count("does not list the region us-esat-1: no machine is looked for there.") == 1
    assert told.count("No [[providers]] table is called awz") == 1
