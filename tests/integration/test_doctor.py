"""`doctor` as a process: what it answers with, how it is ended, and that it leaves no trace."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.support.daemon import daemon
from tests.support.processes import Result, until
from tests.support.site import SECRETS, Site, tree

pytestmark = pytest.mark.timeout(300)  # on a busy machine; most take a second

PROMPTLY = 10.0
FORGOTTEN = "222222222222"


@pytest.fixture
def site(site: Site) -> Iterator[Site]:
    """Hold every test of this module to this: whatever could change the cloud was a question."""
    yield site
    assert site.cloud.mutating_requests() == []


def grades(result: Result) -> dict[str, set[str]]:
    """Return the grades of each subject."""
    found: dict[str, set[str]] = {}
    for each in result.json["findings"]:
        found.setdefault(each["subject"], set()).add(each["grade"])
    return found


def test_a_cold_process_looks_everything_over_and_touches_nothing(site: Site):
    site.tracked()
    site.orphan()
    before = tree(site.folder)

    result = site.run("doctor", "--format", "json", cold=True)

    assert (result.code, result.err) == (0, "")
    assert set(grades(result)) == {
        "settings",
        "host",
        "ledger",
        "daemon",
        "http",
        "account",
        "regions",
        "listing",
        "clock",
        "permissions",
        "registry",
    }
    assert tree(site.folder) == before
    assert {(e.action, e.request.dry_run) for e in site.cloud.requests()} == {
        ("GetCallerIdentity", False),
        ("DescribeRegions", False),
        ("DescribeInstances", False),
        ("ListAccounts", False),
        ("DescribeInstances", True),
        ("DescribeFleets", True),
        ("DescribeSpotFleetRequests", True),
        ("DescribeSpotInstanceRequests", True),
        ("TerminateInstances", True),
    }


def organization(result: Result) -> tuple[str, str]:
    """Return the grade and the text of what is said of the accounts around."""
    (told,) = [each for each in result.json["findings"] if each["scope"] == "organization"]
    return told["grade"], told["text"]


def test_an_account_without_a_table_is_named_and_is_no_failure(site: Site):
    site.cloud.set_organization({site.account: "ACTIVE", FORGOTTEN: "ACTIVE", "333333333333": "SUSPENDED"})

    result = site.run("doctor", "--format", "json")

    grade, text = organization(result)
    assert (result.code, grade) == (0, "warning")
    assert text.endswith(f"(1 of 2 active): name of {FORGOTTEN} ({FORGOTTEN})")


def test_an_account_of_a_role_has_a_table_and_so_has_one_that_is_only_proved(site: Site):
    role = f"arn:aws:iam::{FORGOTTEN}:role/reaperd"
    site.cloud.add_role(role)
    site.cloud.set_organization({site.account: "ACTIVE", FORGOTTEN: "ACTIVE"})
    text = (
        site.config.read_text(encoding="utf-8")
        .replace(f'account = "{site.account}"\n', "")
        .replace("enforce", "dry-run")
    )
    other = f'[[providers]]\nname = "other"\ntype = "aws"\nregions = ["us-east-1"]\nrole_arn = "{role}"\n'
    site.config.write_text(text + other, encoding="utf-8")

    result = site.run("doctor", "--format", "json")

    assert organization(result) == ("ok", "2 active accounts, each with a table")
    # With the credentials as they are, which both tables begin with, and with those of the role.
    assert len(site.cloud.requests("ListAccounts")) == 2


def test_what_only_the_credentials_of_the_host_are_told_is_told(site: Site):
    role = f"arn:aws:iam::{FORGOTTEN}:role/reaperd"
    site.cloud.add_role(role)
    site.cloud.set_organization({FORGOTTEN: "ACTIVE", "333333333333": "ACTIVE"}, readers=[site.account])
    text = site.config.read_text(encoding="utf-8").replace(site.account, FORGOTTEN)
    site.config.write_text(f'{text}role_arn = "{role}"\n', encoding="utf-8")

    grade, text = organization(site.run("doctor", "--format", "json"))

    assert grade == "warning"
    assert "333333333333" in text
    assert f"({FORGOTTEN})" not in text


def test_who_may_not_ask_is_no_failure(site: Site):
    site.cloud.set_organization({site.account: "ACTIVE", FORGOTTEN: "ACTIVE"}, readers=[FORGOTTEN])

    result = site.run("doctor", "--format", "json")

    grade, text = organization(result)
    assert (result.code, grade) == (0, "ok")
    assert "AccessDeniedException" in text


def test_credentials_that_cannot_be_built_fail_where_they_are_used_and_not_twice(site: Site):
    site.configure(more='profile = "nobody"')

    result = site.run("doctor", "--format", "json")

    grade, text = organization(result)
    assert (result.code, grade) == (1, "ok")
    assert "nobody" in text
    assert "failure" in grades(result)["account"]


def test_a_service_that_does_not_answer_is_waited_for_and_no_failure(site: Site):
    site.cloud.fault("drop", action="ListAccounts")

    grade, text = organization(site.run("doctor", "--format", "json"))

    assert grade == "ok"
    assert text.startswith("not known whether")


def test_a_ledger_stays_as_it_is_byte_for_byte(site: Site):
    site.orphan()
    assert site.run("once", "--dry-run").code == 0
    before = tree(site.folder)

    result = site.run("doctor", "--format", "json")

    assert result.code == 0
    assert tree(site.folder) == before


def test_a_failure_is_1_and_names_the_machines(site: Site):
    orphan = site.orphan()
    site.cloud.fault(action="TerminateInstances", code="UnauthorizedOperation")

    result = site.run("doctor")

    assert result.code == 1
    assert "owned but not reapable" in " ".join(result.out.split())
    assert orphan in result.out
    assert result.out.splitlines()[-1].endswith("1 failure")


def test_what_would_end_the_daemon_at_its_start_is_a_failure(site: Site):
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        listen = f"127.0.0.1:{other.getsockname()[1]}"
        settings = {"http.listen": listen, "http.web_config_file": str(site.folder / "missing.yml")}

        result = site.run("doctor", "--format", "json", settings=settings)

    told = [finding for finding in result.json["findings"] if finding["subject"] == "http"]
    assert result.code == 1
    assert [finding["grade"] for finding in told] == ["failure", "failure"]
    assert "missing.yml" in told[0]["scope"]
    assert listen in told[1]["scope"]


def test_a_write_lock_that_is_not_let_go_of_is_a_failure(site: Site):
    site.run("once")
    with closing(sqlite3.connect(site.ledger_path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")

        result = site.run("doctor", "--format", "json")

    (told,) = [finding for finding in result.json["findings"] if finding["subject"] == "ledger"]
    assert (result.code, told["grade"]) == (1, "failure")
    assert f"process {os.getpid()} holds its write lock" in told["text"]


def test_the_address_of_a_running_daemon_is_not_held_against_it(site: Site):
    with daemon(site, {"audit.interval": "1h"}) as running:
        running.after_passes(1)
        host, port = running.address

        result = site.run("doctor", "--format", "json", settings={"http.listen": f"{host}:{port}"})

    (told,) = [finding for finding in result.json["findings"] if finding["subject"] == "http"]
    assert (told["grade"], "is taken, by process" in told["text"]) == ("ok", True)


def test_no_secret_is_shown(site: Site):
    site.configure(more='role_arn = "arn:aws:iam::111111111111:role/r"\nexternal_id = "hush-hush-0003"')

    result = site.run("doctor")

    assert [secret for secret in (*SECRETS, "hush-hush-0003") if secret in result.out + result.err] == []


def test_ctrl_c_ends_it_while_a_cloud_hangs(site: Site):
    site.cloud.fault("hang")
    command = site.start("doctor", cold=True)
    until(lambda: site.cloud.requests())
    told_at = time.monotonic()

    command.kill(signal.SIGINT)

    result = command.wait()
    assert time.monotonic() - told_at < PROMPTLY
    assert (result.code, result.out) == (1, "")
    assert "Traceback" not in result.err


def test_an_organization_of_moto_is_compared_too(moto_site: Site):
    theirs = moto_site.cloud.client("organizations", "us-east-1")
    theirs.create_organization(FeatureSet="ALL")
    made = theirs.create_account(Email="a@example.org", AccountName="research")

    result = moto_site.run("doctor", "--format", "json")

    grade, text = organization(result)
    assert grade == "warning"
    assert text.endswith(f"(1 of 2 active): research ({made['CreateAccountStatus']['AccountId']})")


def test_the_questions_are_heeded_by_moto_too(moto_site: Site):
    orphan = moto_site.orphan()

    result = moto_site.run("doctor", "--format", "json")

    assert grades(result)["permissions"] == {"ok"}
    assert (
        moto_site.cloud.client("ec2", "us-east-1").describe_instances(InstanceIds=[orphan])["Reservations"][0][
            "Instances"
        ][0]["State"]["Name"]
        == "running"
    )
