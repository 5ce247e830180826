"""`plan`, `once` and `audit` as they are typed, against a cloud on a loopback port."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from reaperd.cli import main
from reaperd.process import current
from tests.support.ec2.cloud import FaultyEc2
from tests.support.worlds import DEPLOYMENT

_ROOT = Path(__file__).parents[3]
TRACKED = "i-0aaaaaaaaaaaaaaa1"
ORPHAN = "i-0bbbbbbbbbbbbbbb2"


@pytest.fixture
def cloud():
    with FaultyEc2(regions=("us-east-1", "eu-west-1")) as made:
        made.add_instance(instance_id=TRACKED, worker="w-1", owner=DEPLOYMENT)
        yield made


@pytest.fixture
def run(place, cloud, monkeypatch):
    """Return what runs a command against the cloud and a registry that tracks one machine."""
    for name, value in cloud.environment().items():
        monkeypatch.setenv(name, value)
    place.configure(mode="enforce", more="[reconcile]\nconfirm_passes = 1")
    writer = place.make_registry()
    words = ("add", "w-1", "--provider", "aws", "--region", "us-east-1", "--instance-id", TRACKED)
    assert CliRunner().invoke(main, ["registry", *words, "--path", str(place.registry)]).exit_code == 0
    assert writer is not None

    def runner(*words):
        return CliRunner().invoke(main, [*words, "--config", str(place.config)])

    return runner


@pytest.fixture
def orphan(cloud):
    return cloud.add_instance(instance_id=ORPHAN, worker="w-2", owner=DEPLOYMENT)


def document(result):
    return json.loads(result.stdout)


def test_plan_finds_an_orphan_and_leaves_no_trace(run, place, cloud, orphan):
    result = run("plan")

    assert result.exit_code == 3
    assert result.stdout.startswith("REHEARSAL: nothing was terminated\ncomplete\n")
    assert f"  {ORPHAN}  aws/us-east-1  unregistered" in result.stdout
    assert result.stderr == ""
    assert not place.ledger.parent.exists()
    assert cloud.mutating_requests() == []


def test_plan_finds_nothing(run):
    result = run("plan", "--format", "json")

    assert result.exit_code == 0
    assert document(result)["plan_digest"] is None


def test_plan_as_csv(run, orphan):
    result = run("plan", "--format", "csv")

    verdicts = {row["instance_id"]: row["verdict"] for row in csv.DictReader(io.StringIO(result.stdout))}
    assert verdicts == {TRACKED: "keep", ORPHAN: "terminate"}


def test_once_terminates_the_orphan_and_logs_it(run, cloud, orphan):
    result = run("once", "--format", "json")

    assert result.exit_code == 0
    assert [outcome["outcome"] for outcome in document(result)["outcomes"]] == ["requested"]
    assert len(cloud.terminate_requests(ORPHAN)) == 1
    events = [json.loads(line) for line in result.stderr.splitlines()]
    assert [event["event"] for event in events] == ["orphan_terminated", "pass_finished"]


def test_once_can_rehearse(run, place, cloud, orphan):
    result = run("once", "--dry-run")

    assert result.exit_code == 0
    assert result.stdout.startswith("REHEARSAL: nothing was terminated\n")
    assert cloud.terminate_requests() == []
    assert place.ledger.exists()


def test_once_says_that_it_enforced(run, orphan):
    assert run("once").stdout.startswith("ENFORCING: 1 termination requested\n")


@pytest.mark.parametrize("command", ["once", "plan"])
def test_an_incomplete_listing_is_4_with_json_on_stdout(run, cloud, command):
    cloud.fault(code="UnauthorizedOperation", action="DescribeInstances")

    result = run(command, "--format", "json")

    assert result.exit_code == 4
    assert (document(result)["outcome"], document(result)["reason"]) == ("refused", "listing_incomplete")


@pytest.mark.parametrize("command", ["once", "plan"])
def test_an_unusable_registry_is_5_with_json_on_stdout(run, place, command):
    place.registry.write_text("garbage")

    result = run(command, "--format", "json")

    assert result.exit_code == 5
    assert document(result)["reason"] == "registry_unusable"


def test_a_refusal_tells_the_command_with_the_configuration_that_was_given(run, place):
    place.registry.write_text("garbage")

    assert f"\n    reaperd registry verify --config {place.config}\n" in run("plan").stdout


def test_the_breaker_is_approved_with_the_command_that_is_shown(run, place, cloud):
    for number in range(6):
        cloud.add_instance(worker=f"w-{number + 10}", owner=DEPLOYMENT)

    refused = run("once")
    assert refused.exit_code == 5
    (typed,) = [line for line in refused.stdout.splitlines() if line.startswith("    reaperd approve ")]
    approved = CliRunner().invoke(main, [*typed.split()[1:], "--yes"])
    assert approved.exit_code == 0
    after = run("once")

    assert after.exit_code == 0
    assert "ENFORCING: 6 terminations requested" in after.stdout


def test_the_brake_stops_once_and_resume_ends_it(run, cloud, orphan):
    assert run("hold", "--reason", "wait").exit_code == 0
    held = run("once")
    assert held.exit_code == 5
    assert "REFUSED: reap_hold" in held.stdout
    assert cloud.terminate_requests() == []

    assert run("resume").exit_code == 0
    assert run("once").exit_code == 0
    assert len(cloud.terminate_requests(ORPHAN)) == 1


def test_a_lease_that_another_holds_is_75(run, place, cloud, orphan):
    now = datetime.now(UTC)
    other = type(current())(host="elsewhere", boot_id="", pid_namespace="", pid=1, started="1")
    with place.open() as ledger:
        ledger.take_lease(other, timedelta(minutes=5), now)

    result = run("once", "--format", "json")

    assert result.exit_code == 75
    assert document(result)["reason"] == "not_leader"
    assert "process 1 on elsewhere holds the lease" in result.stderr
    assert cloud.terminate_requests() == []


def test_a_termination_that_is_denied_is_1(run, cloud, orphan):
    cloud.fault(code="UnauthorizedOperation", action="TerminateInstances")

    result = run("once")

    assert result.exit_code == 1
    assert "NOT AS PLANNED (1)" in result.stdout


@pytest.mark.parametrize("command", ["once", "plan", "audit"])
def test_a_bad_configuration_is_78(run, place, command):
    place.config.write_text("mode = 1")

    assert run(command).exit_code == 78


@pytest.mark.parametrize("command", ["once", "plan", "audit"])
def test_a_provider_that_cannot_be_built_is_78(run, place, command):
    place.configure(more='[[providers]]\nname = "lab"\ntype = "no-such-plugin"')

    result = run(command)

    assert result.exit_code == 78
    assert "no plug-in provides type 'no-such-plugin'" in result.stderr


def test_audit_finds_a_leak_and_terminates_nothing(run, place, cloud):
    cloud.add_instance(region="eu-west-1", name="forgotten", age_s=90000)

    result = run("audit", "--format", "json")

    assert result.exit_code == 3
    assert [leak["name"] for leak in document(result)["leaks"]] == ["forgotten"]
    assert cloud.mutating_requests() == []
    assert not place.ledger.parent.exists()


def test_audit_finds_nothing(run):
    result = run("audit")

    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("no leaks\n")


def test_audit_tells_what_it_saw_of_an_incomplete_look(run, cloud):
    cloud.add_instance(name="forgotten", age_s=90000)
    cloud.fault(code="UnauthorizedOperation", action="DescribeInstances", region="eu-west-1")

    result = run("audit", "--format", "json")

    assert result.exit_code == 4
    assert [leak["name"] for leak in document(result)["leaks"]] == ["forgotten"]


@contextmanager
def _piped(place, *words):
    command = [sys.executable, "-m", "reaperd", *words, "--config", str(place.config)]
    with subprocess.Popen(
        command, cwd=_ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ
    ) as process:
        yield process


def test_a_pager_that_is_left_early_sees_no_traceback(run, place, orphan):
    with _piped(place, "plan", "--format", "json") as process:
        process.stdout.close()
        said = process.stderr.read()

    assert b"Traceback" not in said
    assert b"BrokenPipe" not in said
    assert process.returncode == 3
