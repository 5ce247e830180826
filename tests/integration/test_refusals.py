"""What stops a whole pass: each with its reason and exit code, and never with a request that changes anything."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from reaperd.ledger.lease import Lease
from reaperd.ledger.ledger import open_ledger
from reaperd.process import current
from registry.sqlite.admin import create
from tests.integration.judging import complete, harmless, reasons, refused
from tests.support.ec2 import FaultyEc2
from tests.support.processes import Crew
from tests.support.site import EAST, EXTERNAL_ID, WEST, Site, tree

pytestmark = pytest.mark.timeout(300)  # on a busy machine; most take a second

LISTING = "DescribeInstances"
A_FEW = 5
"""Seconds between a deadline and the end of its pass, on a busy machine."""


@pytest.fixture
def site(site: Site) -> Iterator[Site]:
    """Hold every test of this module to it: no mutating request, not even with DryRun."""
    yield site
    assert site.mutations() == []


@pytest.fixture
def moto_site(moto_site: Site) -> Iterator[Site]:
    """Hold the tests on moto to it, too."""
    yield moto_site
    assert moto_site.mutations() == []


# ---------------------------------------------------------------- the listing


@pytest.mark.parametrize(
    ("fault", "error_code"),
    [
        ({"code": "UnauthorizedOperation"}, "UnauthorizedOperation"),
        ({"code": "AuthFailure"}, "AuthFailure"),
        ({"code": "OptInRequired"}, "OptInRequired"),
        ({"kind": "html"}, "malformed_answer"),
        ({"kind": "missing_set"}, "malformed_answer"),
        ({"kind": "malformed"}, "malformed_answer"),
        ({"kind": "truncated"}, "malformed_answer"),
        ({"kind": "body"}, "malformed_answer"),
    ],
    ids=str,
)
def test_a_region_that_fails_spares_every_region(moto_site: Site, fault: dict[str, str], error_code: str):
    moto_site.orphan(EAST)
    moto_site.orphan(WEST)
    moto_site.cloud.fault(region=WEST, action=LISTING, **fault)

    document = refused(moto_site.run("once"), 4, "listing_incomplete")

    assert [(entry["scope"], entry["ok"]) for entry in document["coverage"]] == [
        (f"aws/{WEST}", False),
        (f"aws/{EAST}", True),
    ]
    assert document["coverage"][0]["error_code"] == error_code
    assert [entry["key"] for entry in document["conditions"]] == ["listing_incomplete"]


def test_plan_refuses_a_failed_region_too(site: Site):
    site.orphan(EAST)
    site.cloud.fault(region=WEST, action=LISTING, code="UnauthorizedOperation")

    refused(site.run("plan", cold=True), 4, "listing_incomplete")


@pytest.mark.slow
def test_a_region_that_fails_however_often_it_is_asked_spares_every_region(tmp_path: Path, crew: Crew):
    # At the same time, because the SDK waits for half a minute before it gives up.
    faults: list[dict[str, str]] = [
        {"kind": "drop"},
        {"code": "InternalError"},
        {"code": "RequestLimitExceeded"},
        {"kind": "html", "http": 503},
    ]
    with ExitStack() as stack:
        sites = []
        for number, fault in enumerate(faults):
            cloud = stack.enter_context(FaultyEc2())
            cloud.fault(region=WEST, action=LISTING, **fault)
            folder = tmp_path / str(number)
            folder.mkdir()
            site = Site(folder=folder, cloud=cloud, crew=crew)
            site.set_up()
            site.orphan(EAST)
            sites.append(site)
        running = [site.start("once") for site in sites]
        documents = [refused(command.wait(100), 4, "listing_incomplete") for command in running]

        assert [document["coverage"][0]["error_code"] for document in documents] == [
            "connection_closed",
            "InternalError",
            "RequestLimitExceeded",
            "http_503",
        ]
        assert [site.mutations() for site in sites] == [[], [], [], []]


def test_a_hung_region_ends_at_the_deadline_and_keeps_no_process(site: Site):
    site.orphan(EAST)
    site.cloud.fault("hang", region=WEST, action=LISTING)

    command = site.start("once", settings={"reconcile.deadline": "2s"}, cold=True)
    document = refused(command.wait(45), 5, "deadline")

    took = datetime.fromisoformat(document["finished_at"]) - datetime.fromisoformat(document["started_at"])
    assert took <= timedelta(seconds=2 + A_FEW)


@pytest.mark.parametrize("action", ["GetCallerIdentity", None])
def test_a_hung_cloud_ends_at_the_deadline(site: Site, action: str | None):
    site.orphan(EAST)
    site.cloud.fault("hang", action=action)

    document = refused(site.start("once", settings={"reconcile.deadline": "1s"}).wait(30), 5, "deadline")

    took = datetime.fromisoformat(document["finished_at"]) - datetime.fromisoformat(document["started_at"])
    assert took <= timedelta(seconds=1 + A_FEW)


def test_an_account_whose_role_cannot_be_assumed_spares_every_account_and_is_named(site: Site):
    site.orphan(EAST)
    role = "arn:aws:iam::222222222222:role/reaperd"
    other = f'[[providers]]\nname = "research"\ntype = "aws"\naccount = "222222222222"\nregions = ["{EAST}"]\n'
    site.configure(more=f'{other}role_arn = "{role}"\n')

    result = site.run("once")

    document = refused(result, 5, "wrong_account")
    failed = [entry for entry in document["coverage"] if not entry["ok"]]
    assert [(entry["scope"], entry["error_code"]) for entry in failed] == [(f"research/{EAST}", "unproven")]
    assert role in failed[0]["detail"]
    assert len(document["coverage"]) == 3


def test_a_region_that_was_seen_once_stays_required_until_a_list_leaves_it_out(site: Site):
    site.configure(regions=())
    text = site.config.read_text(encoding="utf-8")
    site.config.write_text(text.replace("regions = []", 'regions = "auto"'), encoding="utf-8")
    complete(site.run("once"))
    site.cloud.set_region("ap-south-1", "not-opted-in")

    document = refused(site.run("once"), 4, "listing_incomplete")
    site.configure(regions=(EAST, WEST))
    after = complete(site.run("once"))

    assert [entry["scope"] for entry in document["coverage"] if not entry["ok"]] == ["aws/ap-south-1"]
    assert [entry["scope"] for entry in after["coverage"]] == [f"aws/{WEST}", f"aws/{EAST}"]


def test_the_wrong_account_is_refused(site: Site):
    site.orphan()
    site.cloud.set_caller_account("222222222222")

    document = refused(site.run("once", cold=True), 5, "wrong_account")

    assert "222222222222" in document["detail"]


@pytest.mark.parametrize(
    "fault", [{"code": "ExpiredToken"}, {"code": "InvalidClientTokenId"}, {"kind": "missing_set"}], ids=str
)
def test_an_account_that_cannot_be_proved_is_the_wrong_one(site: Site, fault: dict[str, str]):
    site.orphan()
    site.cloud.fault(action="GetCallerIdentity", **fault)

    document = refused(site.run("once"), 5, "wrong_account")

    assert {entry["error_code"] for entry in document["coverage"]} == {"unproven"}


@pytest.mark.parametrize("seconds", [-300, 300])
def test_a_cloud_with_another_time_is_refused(site: Site, seconds: int):
    site.orphan()
    site.cloud.configure(date_skew_s=seconds)

    refused(site.run("once"), 5, "clock")


# ---------------------------------------------------------------- the registry


def _execute(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _zero_bytes(path: Path) -> None:
    path.write_bytes(b"")


def _garbage(path: Path) -> None:
    path.write_bytes(b"not a database at all\n" * 400)


def _cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])


def _something_else(path: Path) -> None:
    path.unlink()
    _execute(path, "CREATE TABLE workers (worker_id)")


def _sql(statement: str) -> Callable[[Path], None]:
    return lambda path: _execute(path, statement)


BROKEN: dict[str, Callable[[Path], None]] = {
    "missing": Path.unlink,
    "a folder": _folder,
    "zero bytes": _zero_bytes,
    "garbage": _garbage,
    "cut off": _cut_off,
    "something else": _something_else,
    "no workers table": _sql("DROP TABLE workers"),
    "no meta table": _sql("DROP TABLE meta"),
    "no meta row": _sql("DELETE FROM meta"),
    "no marks": _sql("DELETE FROM epochs"),
    "newer schema": _sql("UPDATE meta SET schema_version = 3"),
}


@pytest.mark.parametrize("damage", BROKEN.values(), ids=BROKEN)
def test_a_broken_registry_is_no_registry(site: Site, damage: Callable[[Path], None]):
    site.orphan()
    site.tracked()
    damage(site.registry)
    before = tree(site.registry.parent)

    document = refused(site.run("once"), 5, "registry_unusable")

    assert document["registry"] is None
    assert str(site.registry) in document["detail"]
    assert tree(site.registry.parent) == before


def test_a_registry_that_stays_locked_is_no_registry(site: Site):
    site.orphan()
    with closing(sqlite3.connect(site.registry, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode = DELETE")
        writer.execute("BEGIN EXCLUSIVE")

        refused(site.run("once", settings={"registry.busy_timeout": "1s"}), 5, "registry_unusable")


def test_a_registry_that_nobody_writes_is_no_registry(site: Site):
    site.orphan()
    _execute(site.registry, "UPDATE meta SET updated_at = '2026-01-01T00:00:00Z'")

    refused(site.run("once", settings={"registry.max_silence": "1h"}), 5, "registry_unusable")


def _another(site: Site) -> None:
    site.registry.unlink()
    create(site.registry, site.deployment)


def _restored(site: Site) -> None:
    """Put the copy back that was made before the last write."""
    shutil.copy(site.registry.with_suffix(".bak"), site.registry)


def _restored_and_used(site: Site) -> None:
    _restored(site)
    site.add_row("w-2", "i-02")
    site.add_row("w-3", "i-03")


def _of_another_deployment(site: Site) -> None:
    site.registry.unlink()
    create(site.registry, "prod-b")


@pytest.mark.parametrize("swap", [_another, _restored, _restored_and_used, _of_another_deployment])
def test_a_registry_that_is_not_the_one_we_know_is_refused(site: Site, swap: Callable[[Site], None]):
    shutil.copy(site.registry, site.registry.with_suffix(".bak"))
    site.tracked()
    complete(site.run("once"))
    site.orphan()
    swap(site)

    refused(site.run("once"), 5, "registry_identity")
    refused(site.run("once"), 5, "registry_identity")


def test_a_registry_and_a_cloud_that_share_no_machine_do_not_belong_together(site: Site):
    site.orphan()
    for number in range(3):
        site.add_row(f"w-{number}", f"i-{number}a")

    refused(site.run("once", cold=True), 5, "registry_mismatch")


# ---------------------------------------------------------------- the ledger


def _ledger_folder(site: Site) -> None:
    site.ledger_path.mkdir(parents=True)


def _state_is_a_file(site: Site) -> None:
    site.state.write_text("")


def _ledger_garbage(site: Site) -> None:
    site.state.mkdir()
    site.ledger_path.write_bytes(b"not a database at all\n" * 400)


def _ledger_of_another(site: Site) -> None:
    open_ledger(site.ledger_path, deployment="prod-b", owner_tag="reaperd:owner", now=datetime.now(UTC)).close()


def _ledger_of_a_newer_release(site: Site) -> None:
    open_ledger(site.ledger_path, deployment="prod", owner_tag="reaperd:owner", now=datetime.now(UTC)).close()
    _execute(site.ledger_path, "UPDATE meta SET schema_version = 99")


def _registry_instead(site: Site) -> None:
    site.state.mkdir()
    shutil.copy(site.registry, site.ledger_path)


@pytest.mark.parametrize(
    "damage",
    [
        _ledger_folder,
        _state_is_a_file,
        _ledger_garbage,
        _ledger_of_another,
        _ledger_of_a_newer_release,
        _registry_instead,
    ],
)
def test_without_its_ledger_it_asks_for_nothing(site: Site, damage: Callable[[Site], None]):
    site.orphan()
    damage(site)

    document = refused(site.run("once"), 5, "ledger_unusable")

    assert str(site.state) in document["detail"]
    assert "ledger_unusable" in [entry["key"] for entry in document["conditions"]]


def test_a_place_where_nothing_can_be_created_gives_no_ledger(site: Site):
    site.orphan()

    document = refused(site.run("once", settings={"state_dir": "/proc/reaperd"}), 5, "ledger_unusable")

    assert "/proc/reaperd" in document["detail"]


@pytest.mark.parametrize("used_before", [False, True])
def test_a_full_disk_stops_everything_although_it_reads_well(site: Site, used_before: bool):
    site.tracked()
    if used_before:
        complete(site.run("once"))
    site.orphan()

    refused(site.run("once", file_size=8192), 5, "ledger_unusable")


def test_another_writer_that_does_not_let_go_is_waited_for_and_then_refused(site: Site):
    site.orphan()
    site.state.mkdir()
    with site.ledger() as ledger, ledger.transaction():
        refused(site.run("once"), 5, "ledger_unusable")


# ---------------------------------------------------------------- the lease, the brake, the breaker


@contextmanager
def _held(site: Site):
    with site.ledger() as ledger:
        assert isinstance(ledger.take_lease(current(), timedelta(minutes=5), datetime.now(UTC)), Lease)
        yield ledger


def test_while_another_process_holds_the_lease_it_only_looks(site: Site):
    orphan = site.orphan()
    with _held(site) as ledger:
        document = refused(site.run("once", cold=True), 75, "not_leader")

        assert document["verdicts"] == []
        assert ledger.recall(datetime.now(UTC)).sightings.popitem()[1].confirmations == 1
        assert site.cloud.state_of(orphan) == "running"


def test_a_lease_that_was_given_back_stops_nobody(site: Site):
    complete(site.run("once"))

    complete(site.run("once"))

    assert site.rows("SELECT generation FROM lease") == [(2,)]


def test_the_brake_stops_every_termination_until_it_is_released(site: Site):
    orphan = site.orphan()
    assert site.run("hold", "--reason", "drill").code == 0

    document = refused(site.run("once", cold=True), 5, "reap_hold")

    assert reasons(document) == {orphan: "unregistered"}
    assert "drill" in document["detail"]
    assert document["outcomes"] == []


@pytest.mark.parametrize(
    "wishes",
    [
        {"reconcile.breaker.max_per_pass": "1"},
        {"reconcile.breaker.max_per_hour": "1"},
        {"reconcile.breaker.max_fraction": "0.5", "reconcile.breaker.fraction_from": "2"},
    ],
    ids=str,
)
def test_the_breaker_lets_none_through(site: Site, wishes: dict[str, str]):
    orphans = [site.orphan(worker=f"w-{number}") for number in range(2)]
    site.tracked()

    document = refused(site.run("once", settings=wishes), 5, "breaker_open")

    assert [reasons(document)[orphan] for orphan in orphans] == ["unregistered"] * 2
    assert document["plan_digest"] is not None
    assert next(iter(wishes)).rpartition(".")[2] in document["detail"]
    assert document["outcomes"] == []


def test_the_first_reason_wins_and_the_others_are_told_too(site: Site):
    site.orphan()
    site.cloud.fault(region=WEST, action=LISTING, code="UnauthorizedOperation")
    site.registry.unlink()
    with _held(site):
        document = refused(site.run("once"), 75, "not_leader")

    assert document["also"] == ["listing_incomplete", "registry_unusable"]


# ---------------------------------------------------------------- the configuration


@pytest.mark.parametrize("command", ["once", "plan"])
def test_a_missing_configuration_is_said_so(site: Site, command: str):
    site.config.unlink()

    result = site.run(command, cold=True)

    assert (result.code, result.out) == (78, "")
    assert "there is no such file" in result.err
    nothing_happened(site)


SECRET = f'external_id = "{EXTERNAL_ID}"\n'


@pytest.mark.parametrize(
    "text",
    [
        "deployment = ",
        'deployment = "prod"\n',
        'deployment = "prod"\n' + SECRET,
        '[[providers]]\nname = "aws"\ntype = "aws"\n' + SECRET,
    ],
)
def test_a_bad_configuration_starts_nothing(site: Site, text: str):
    site.config.write_text(text, encoding="utf-8")

    result = site.run("once")

    assert (result.code, result.out) == (78, "")
    harmless(result)
    nothing_happened(site)


def test_no_variable_can_ask_for_terminations(site: Site):
    site.orphan()
    site.configure(mode="dry-run")

    result = site.run("once", settings={"mode": "enforce"}, cold=True)

    assert (result.code, result.out) == (78, "")
    assert "REAPERD_MODE" in result.err
    nothing_happened(site)


def test_an_account_that_is_not_pinned_cannot_be_enforced_on(site: Site):
    site.orphan()
    site.config.write_text(site.config.read_text("utf-8").replace("account =", "# account ="), encoding="utf-8")

    result = site.run("once")

    assert (result.code, result.out) == (78, "")
    assert "providers.0.account" in result.err
    nothing_happened(site)


@pytest.mark.parametrize("words", [["once", "--frobnicate"], ["once", "extra"], ["frobnicate"]], ids=str)
def test_wrong_usage_is_told(site: Site, words: list[str]):
    result = site.run(*words)

    assert (result.code, result.out) == (2, "")
    assert "Usage:" in result.err


def nothing_happened(site: Site) -> None:
    assert site.cloud.requests() == []
    assert not site.state.exists()
