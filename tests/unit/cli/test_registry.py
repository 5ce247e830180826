"""The registry from a shell."""

from __future__ import annotations

import csv
import io
import json
import shutil
import sqlite3
from datetime import UTC, datetime

import pytest

from reaperd.core.history import Look
from reaperd.core.memory import Learned
from reaperd.core.model import RegistryPin, Sighting
from registry.model import WorkerState
from registry.sqlite import SqliteRegistry
from tests.support.worlds import EAST, NOW, WEST, machine, ref, row
from tests.unit.cli.running import person, run


def workers(place):
    return {worker.worker_id: worker for worker in SqliteRegistry(place.registry).snapshot().workers}


def registry(place, command, *words):
    return run("registry", command, *words, "--path", place.registry)


# ---------------------------------------------------------------- init


def test_init_makes_the_configured_registry(place):
    result = run("registry", "init", "--config", place.config)

    assert result.exit_code == 0
    assert SqliteRegistry(place.registry).snapshot().identity.deployment == "prod-a"
    assert "of deployment prod-a, with no workers" in result.stdout


def test_init_needs_no_configuration_when_it_is_told_everything(place):
    place.config.unlink()

    result = registry(place, "init", "--deployment", "staging-b")

    assert result.exit_code == 0
    assert SqliteRegistry(place.registry).snapshot().identity.deployment == "staging-b"


def test_init_never_overwrites(place):
    place.make_registry(rows=1)

    result = registry(place, "init", "--deployment", "prod-a")

    assert result.exit_code == 1
    assert "never overwritten" in result.stderr
    assert len(workers(place)) == 1


def test_init_refuses_a_name_that_is_no_deployment(place):
    result = registry(place, "init", "--deployment", "Prod A")

    assert result.exit_code == 1
    assert not place.registry.exists()


# ---------------------------------------------------------------- rows


def test_the_life_of_a_worker(place):
    place.make_registry()
    place.config.unlink()  # none of this needs one

    assert registry(place, "add", "w-1", "--provider", "aws", "--region", "us-east-1", "--model", "m").exit_code == 0
    assert workers(place)["w-1"].state is WorkerState.LAUNCHING
    assert registry(place, "set-instance", "w-1", "i-1").exit_code == 0
    assert (workers(place)["w-1"].instance_id, workers(place)["w-1"].state) == ("i-1", WorkerState.RUNNING)
    assert registry(place, "heartbeat", "w-1").exit_code == 0
    assert workers(place)["w-1"].heartbeat_at is not None
    assert registry(place, "set-state", "w-1", "completed").exit_code == 0
    assert workers(place)["w-1"].state is WorkerState.COMPLETED
    assert registry(place, "remove", "w-1").exit_code == 0
    assert workers(place) == {}


def test_add_takes_every_column(place):
    place.make_registry()

    result = registry(
        place,
        *("add", "w-1", "--provider", "aws", "--region", "r", "--zone", "r-a"),
        *("--instance-id", "i-1", "--state", "running"),
    )

    assert result.stdout == "added w-1 (running) in aws/r: i-1\n"
    assert (workers(place)["w-1"].instance_id, workers(place)["w-1"].zone) == ("i-1", "r-a")


def added(place, provider, *words):
    return run("registry", "add", "w-1", "--provider", provider, "--region", "us-east-1", *words)


def test_add_warns_of_a_provider_that_the_configuration_does_not_know(place):
    place.make_registry()

    result = added(place, "awz", "--config", place.config)

    assert (result.exit_code, result.stdout) == (0, "added w-1 (launching) in awz/us-east-1\n")
    told = " ".join(result.stderr.split())
    assert "warning: no [[providers]] table is called 'awz', so no machine is looked for there; there is aws" in told
    assert list(workers(place)) == ["w-1"]


def test_add_warns_of_nothing_where_the_provider_is_known_or_nothing_is(place):
    place.make_registry()

    known = added(place, "aws", "--config", place.config)
    registry(place, "remove", "w-1")
    unknown = added(place, "awz", "--path", place.registry)

    assert (known.exit_code, known.stderr) == (0, "")
    assert (unknown.exit_code, unknown.stderr) == (0, "")


def test_add_warns_of_a_region_that_the_provider_does_not_look_into(place):
    place.make_registry()

    result = run(
        *("registry", "add", "w-1", "--provider", "aws", "--region", "us-esat-1", "--config", place.config),
    )

    told = " ".join(result.stderr.split())
    assert (result.exit_code, list(workers(place))) == (0, ["w-1"])
    assert "warning: the [[providers]] table 'aws' does not list the region 'us-esat-1'" in told
    assert "it lists us-east-1" in told
    assert "`reaperd registry set-place w-1 --provider aws --region REGION`" in told


def test_set_place_corrects_a_launch_and_warns_as_add_does(place):
    place.make_registry()
    added(place, "aws", "--path", place.registry)

    def placed(region, *zone):
        return run(
            *("registry", "set-place", "w-1", "--provider", "aws", "--region", region, *zone, "--config", place.config)
        )

    good = placed("us-east-1", "--zone", "us-east-1a")
    found = workers(place)["w-1"]
    bad = placed("us-wets-1")

    assert (good.exit_code, good.stdout, good.stderr) == (0, "w-1 is launched in aws/us-east-1\n", "")
    assert (found.region, found.zone, found.state) == ("us-east-1", "us-east-1a", WorkerState.LAUNCHING)
    assert bad.exit_code == 0
    assert "does not list the region 'us-wets-1'" in " ".join(bad.stderr.split())


def test_a_row_that_names_a_machine_is_corrected_by_another_row(place):
    place.make_registry(rows=1)

    elsewhere = registry(place, "set-place", "w-0", "--provider", "aws", "--region", "eu-west-1")
    other = registry(place, "set-instance", "w-0", "i-9")

    for refused in (elsewhere, other):
        assert refused.exit_code == 1
        told = " ".join(refused.stderr.split())
        assert "a row of its own, under another worker id, and only then remove this one" in told
    assert (workers(place)["w-0"].region, workers(place)["w-0"].instance_id) == ("us-east-1", "i-0")


def test_remove_says_what_becomes_of_the_machine(place):
    place.make_registry(rows=2)

    configured = run("registry", "remove", "w-0", "--config", place.config)
    unknown = registry(place, "remove", "w-1")

    assert configured.stdout == "removed w-0; a machine that a look found by it is held for 1h, and is an orphan then\n"
    assert "is held for registry.vanish_grace, and" in unknown.stdout


def test_add_does_not_warn_of_a_row_that_was_not_added(place):
    place.make_registry()
    added(place, "aws", "--config", place.config)

    result = added(place, "awz", "--config", place.config)

    assert result.exit_code == 1
    assert "warning" not in result.stderr


def test_the_configuration_says_where_the_registry_is(place):
    place.make_registry()

    result = run("registry", "add", "w-1", "--provider", "aws", "--region", "r", "--config", place.config)

    assert result.exit_code == 0
    assert list(workers(place)) == ["w-1"]


def test_a_registry_of_another_deployment_is_not_written_under_a_configuration(place):
    place.make_registry("staging-b")

    result = run("registry", "add", "w-1", "--provider", "aws", "--region", "r", "--config", place.config)

    assert result.exit_code == 1
    assert "is the registry of deployment 'staging-b', not of 'prod-a'" in result.stderr
    assert workers(place) == {}


def test_a_worker_cannot_be_added_twice(place):
    place.make_registry(rows=1)

    result = registry(place, "add", "w-0", "--provider", "aws", "--region", "elsewhere")

    assert result.exit_code == 1
    assert result.stderr == "reaperd: worker 'w-0' stands in the registry already; nothing was changed\n"
    assert workers(place)["w-0"].region == "us-east-1"


def test_a_name_that_would_protect_nothing_is_refused(place):
    place.make_registry()

    result = registry(place, "add", " w-1", "--provider", "aws", "--region", "r")

    assert result.exit_code == 1
    assert "has blanks around it" in result.stderr


@pytest.mark.parametrize(
    "words", [("set-instance", "w-9", "i-1"), ("set-state", "w-9", "failed"), ("heartbeat", "w-9"), ("remove", "w-9")]
)
def test_an_unknown_worker_is_an_error(place, words):
    place.make_registry(rows=1)

    result = registry(place, *words)

    assert result.exit_code == 1
    assert "no worker 'w-9'" in result.stderr


@pytest.mark.parametrize("words", [("set-state", "w-1", "odd"), ("add", "w-1"), ("add",)])
def test_wrong_words_are_usage_errors(place, words):
    assert registry(place, *words).exit_code == 2


@pytest.mark.parametrize(
    "words",
    [
        ("add", "w-1", "--provider", "aws", "--region", "r"),
        ("set-instance", "w-1", "i-1"),
        ("set-state", "w-1", "failed"),
        ("heartbeat", "w-1"),
        ("remove", "w-1"),
        ("list",),
        ("verify",),
        ("migrate",),
        ("backup", "/nowhere/else.db"),
    ],
    ids=lambda words: words[0],
)
def test_without_a_registry_every_command_says_so_and_makes_none(place, words):
    result = registry(place, *words)

    assert result.exit_code == 1
    assert "there is no such file" in result.stderr
    assert "reaperd registry init" in result.stderr
    assert not place.registry.exists()


def test_a_row_that_cannot_be_read_can_be_taken_out(place):
    place.make_registry(rows=1)
    with sqlite3.connect(place.registry) as connection:
        connection.execute("UPDATE workers SET provider = ' '")
    connection.close()

    assert registry(place, "verify").exit_code == 1
    assert registry(place, "remove", "w-0").exit_code == 0
    assert registry(place, "verify").exit_code == 0


# ---------------------------------------------------------------- list


def test_list_is_a_table(place):
    writer = place.make_registry()
    writer.add(row("w-1", None, state=WorkerState.LAUNCHING, model="whisper"))
    writer.add(row("w-2", "i-0123456789abcdef0"))

    lines = registry(place, "list").stdout.splitlines()

    assert lines[0] == "registry r-1 of deployment prod-a, epoch 3: 2 rows, 2 live"
    assert lines[2:] == [
        "  WORKER  STATE      PLACE          INSTANCE             MODEL    HEARTBEAT",
        "  w-1     launching  aws/us-east-1  -                    whisper  -",
        "  w-2     running    aws/us-east-1  i-0123456789abcdef0  -        -",
    ]


def test_list_tells_the_heartbeat_by_its_age(place):
    place.make_registry(rows=1)
    registry(place, "heartbeat", "w-0")

    assert registry(place, "list").stdout.splitlines()[-1].endswith("s ago")


def test_list_of_an_empty_registry_is_its_identity(place):
    place.make_registry()

    assert registry(place, "list").stdout == "registry r-1 of deployment prod-a, epoch 1: 0 rows, 0 live\n"


def test_list_filters_by_state(place):
    place.make_registry(rows=3)
    registry(place, "set-state", "w-1", "draining")
    registry(place, "set-state", "w-2", "failed")

    result = registry(place, "list", "--state", "draining", "--state", "failed", "--format", "csv")

    assert [line["worker_id"] for line in csv.DictReader(io.StringIO(result.stdout))] == ["w-1", "w-2"]


def test_list_as_json_carries_the_identity_and_every_column(place):
    place.make_registry(rows=1)

    document = json.loads(registry(place, "list", "--format", "json").stdout)

    (worker,) = document.pop("workers")
    assert {key: document[key] for key in ("kind", "registry_id", "deployment", "epoch")} == {
        "kind": "registry",
        "registry_id": "r-1",
        "deployment": "prod-a",
        "epoch": 2,
    }
    assert worker["instance_id"] == "i-0"
    assert worker["created_at"] == "2026-01-10T10:00:00.000000Z"
    assert worker["heartbeat_at"] is None
    assert worker["zone"] is None


def test_a_zone_is_in_every_list_but_the_table(place):
    place.make_registry()
    registry(place, "add", "w-1", "--provider", "aws", "--region", "r", "--zone", "r-a")

    (told,) = json.loads(registry(place, "list", "--format", "json").stdout)["workers"]
    (line,) = csv.DictReader(io.StringIO(registry(place, "list", "--format", "csv").stdout))

    assert (told["zone"], line["zone"]) == ("r-a", "r-a")


def test_list_shows_what_strangers_wrote_harmlessly(place):
    place.make_registry(rows=1)
    with sqlite3.connect(place.registry) as connection:
        connection.execute("UPDATE workers SET model = '=1+1' || char(27) || '[2J'")
    connection.close()

    assert r"=1+1\x1b[2J" in registry(place, "list").stdout
    assert r",'=1+1\x1b[2J," in registry(place, "list", "--format", "csv").stdout


# ---------------------------------------------------------------- verify, migrate, backup


def test_verify_tells_what_it_accepted(place):
    place.make_registry(rows=2)

    result = registry(place, "verify")

    assert result.exit_code == 0
    assert result.stdout == f"OK {place.registry}: registry r-1 of deployment prod-a, epoch 3: 2 rows, 2 live\n"


def test_verify_names_the_fault_and_the_remedy(place):
    place.registry.write_text("")

    result = registry(place, "verify")

    assert result.exit_code == 1
    assert result.stdout == ""
    assert f"reaperd: {place.registry}: empty_file\n" in result.stderr
    assert "reaperd registry trust" in result.stderr


def test_verify_compares_the_deployment_with_the_configuration(place):
    place.make_registry("staging-b")

    assert registry(place, "verify").exit_code == 0
    result = run("registry", "verify", "--config", place.config)
    assert result.exit_code == 1
    assert "it belongs to 'staging-b', and the configuration says 'prod-a'" in result.stderr


def test_verify_tells_times_that_cannot_be_read(place):
    place.make_registry(rows=1)
    with sqlite3.connect(place.registry) as connection:
        connection.execute("UPDATE workers SET launched_at = 'yesterday'")
    connection.close()

    result = registry(place, "verify")

    assert result.exit_code == 0
    assert "worker w-0: launched_at cannot be read as a time" in result.stderr


def test_migrate_puts_back_what_is_missing(place):
    place.make_registry()
    with sqlite3.connect(place.registry) as connection:
        connection.execute("DROP TRIGGER workers_deleted")
    connection.close()
    assert registry(place, "verify").exit_code == 1

    result = registry(place, "migrate")

    assert result.exit_code == 0
    assert "workers_deleted" in result.stdout
    assert registry(place, "verify").exit_code == 0
    assert "nothing to do" in registry(place, "migrate").stdout


def test_backup_copies_and_never_overwrites(place):
    place.make_registry(rows=1)
    copy = place.folder / "copy.db"

    assert registry(place, "backup", copy).exit_code == 0
    assert len(SqliteRegistry(copy).snapshot().workers) == 1
    assert registry(place, "backup", copy).exit_code == 1


# ---------------------------------------------------------------- trust


def know(place, **changes):
    """Let the ledger know the registry as it is now, or a changed one."""
    found = SqliteRegistry(place.registry).snapshot()
    facts = {"registry_id": found.identity.registry_id, "epoch": found.identity.epoch, "nonce": found.nonce}
    with place.open() as ledger:
        ledger.pin(RegistryPin(**(facts | changes)))


def pin(place):
    with place.open() as ledger:
        return ledger.recall(datetime.now(UTC)).pin


def trust(place, *words, stdin=None):
    return run("registry", "trust", "--config", place.config, *words, stdin=stdin)


def test_trust_takes_another_registry_for_the_right_one(place, me):
    place.make_registry(rows=2)
    know(place, registry_id="r-0", epoch=40)

    result = trust(place, "--yes", "--reason", "it was replaced")

    assert result.exit_code == 0
    assert "  known here   r-0          40  prod-a\n  in the file  r-1           3  prod-a\n" in result.stdout
    assert "It is another registry." in result.stdout
    assert "look at: reaperd plan" in result.stdout
    known = pin(place)
    assert (known.registry_id, known.epoch, known.mismatch_accepted) == ("r-1", 3, True)
    assert known.nonce == SqliteRegistry(place.registry).snapshot().nonce
    assert place.acts() == [("trust", me, "it was replaced")]


def looked(place, *tracked):
    """Let a complete look find these machines tracked, each by a row of its own."""
    sightings = {
        ref(f"i-{number}"): Sighting(first_seen_at=NOW, last_seen_at=NOW, tracked_at=NOW, tracked_by=f"w-{number}")
        for number in tracked
    }
    known_here = pin(place)
    lesson = Learned(
        sightings=sightings,
        forgotten=frozenset(),
        confirmed_gone=(),
        pin=known_here,
        listed=frozenset(sightings),
        scopes=frozenset({EAST}),
        look=Look(at=NOW, instances=tuple(machine(f"i-{n}", worker=f"w-{n}") for n in tracked), coverage=()),
    )
    with place.open() as ledger:
        ledger.learn(lesson, NOW)


def test_trust_tells_which_machines_the_file_leaves_without_a_row(place):
    place.make_registry(rows=1)
    know(place, registry_id="r-0")
    looked(place, 0, 1, 2)

    told = trust(place, "--yes").stdout

    assert "Held by a row at the last look, 2026-01-10 12:00:00 UTC: 3 machines.\n" in told
    assert "Orphans by this file, which go once every guard agrees: 2.\n" in told
    assert "  INSTANCE           WAS HELD BY  BECAUSE\n  aws/us-east-1/i-1  w-1          unregistered\n" in told


def test_trust_tells_of_an_empty_file_how_many_it_leaves(place):
    place.make_registry()
    know(place, registry_id="r-0")
    looked(place, *range(1, 13))

    told = trust(place, "--yes").stdout

    assert "go once every guard agrees: 12.\n" in told
    assert told.count("aws/us-east-1/i-") == 10
    assert "  and 2 more\n" in told


def test_trust_tells_when_the_file_has_every_machine(place):
    place.make_registry(rows=2)
    know(place, registry_id="r-0")
    looked(place, 0, 1)

    told = trust(place, "--yes").stdout

    assert "Held by a row at the last look, 2026-01-10 12:00:00 UTC: 2 machines.\n" in told
    assert "No machine that was held is an orphan by this file." in told
    assert "launch" not in told


def test_trust_of_a_copy_that_was_made_during_a_launch_tells_that_it_protects_for_a_while(place):
    writer = place.make_registry()
    writer.add(row("w-0", None, state=WorkerState.LAUNCHING, created_at=datetime.now(UTC)))
    writer.add(row("w-1", "i-1", at=WEST))
    know(place, registry_id="r-0")
    looked(place, 0, 1)

    told = trust(place, "--yes").stdout

    assert "By a launch that names no machine, and held for 1h at the most: 1.\n" in told
    assert "In doubt by this file, and held until it is corrected: 1.\n" in told


def test_trust_tells_that_no_look_is_on_record(place):
    place.make_registry()
    know(place, registry_id="r-0")

    assert "No look is on record, so nobody knows here which machines this concerns." in trust(place, "--yes").stdout


def test_trust_tells_an_older_copy(place):
    place.make_registry(rows=1)
    know(place, epoch=40)

    assert "Its epoch fell by 38: it is an older copy" in trust(place, "--yes").stdout


def test_trust_tells_a_copy_that_has_moved_on(place):
    place.make_registry(rows=1)
    shutil.copy(place.registry, place.folder / "old.db")
    registry(place, "set-state", "w-0", "draining")
    know(place)
    shutil.copy(place.folder / "old.db", place.registry)
    registry(place, "set-state", "w-0", "failed")

    assert "Its epoch 3 is not the one that was seen here" in trust(place, "--yes").stdout


def test_trust_tells_when_it_is_the_known_registry(place):
    place.make_registry(rows=1)
    know(place)

    assert "It is the registry that is known here." in trust(place, "--yes").stdout


def test_trust_accepts_a_registry_when_none_is_known(place):
    place.make_registry(rows=1)
    place.make_ledger()

    result = trust(place, "--yes")

    assert "No registry is known here yet." in result.stdout
    assert pin(place).mismatch_accepted


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 1), ("", 1)])
def test_trust_asks(place, answer, code):
    place.make_registry()
    know(place, registry_id="r-0")

    result = trust(place, stdin=person(answer))

    assert result.exit_code == code
    assert (pin(place).registry_id == "r-1") == (code == 0)


def test_trust_asks_nobody_where_nobody_is(place):
    place.make_registry()
    know(place, registry_id="r-0")

    assert trust(place).exit_code == 2
    assert pin(place).registry_id == "r-0"


def test_trust_cannot_make_another_deployments_registry_ours(place):
    place.make_registry("staging-b")
    know(place, registry_id="r-0")

    result = trust(place, "--yes")

    assert result.exit_code == 1
    assert "in the file  r-1           1  staging-b" in result.stdout
    assert "Trust cannot make another deployment's registry ours" in result.stderr
    assert pin(place).registry_id == "r-0"


def test_trust_of_a_registry_that_cannot_be_read_changes_nothing(place):
    place.make_registry()
    know(place, registry_id="r-0")
    place.registry.write_text("garbage")

    result = trust(place, "--yes")

    assert result.exit_code == 1
    assert pin(place).registry_id == "r-0"


def test_trust_without_a_ledger_has_nothing_to_trust(place):
    place.make_registry()

    result = trust(place, "--yes")

    assert result.exit_code == 1
    assert "there is nothing to trust" in result.stderr
    assert not place.ledger.parent.exists()
