"""`explain` after real passes, and with a look of its own, against a cloud on a loopback port."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from reaperd.cli import main
from tests.support.ec2.cloud import FaultyEc2
from tests.support.worlds import DEPLOYMENT

ORPHAN = "i-0bbbbbbbbbbbbbbb2"


@pytest.fixture
def cloud():
    with FaultyEc2(regions=("us-east-1",)) as made:
        yield made


@pytest.fixture
def run(place, cloud, monkeypatch):
    for name, value in cloud.environment().items():
        monkeypatch.setenv(name, value)
    place.configure(mode="enforce", more="[reconcile]\nconfirm_passes = 1")
    place.make_registry()

    def runner(*words):
        return CliRunner().invoke(main, [*words, "--config", str(place.config)])

    return runner


@pytest.fixture
def orphan(cloud):
    return cloud.add_instance(instance_id=ORPHAN, worker="w-2", owner=DEPLOYMENT, instance_type="g5.xlarge")


def explained(run, *words):
    return json.loads(run("explain", ORPHAN, *words, "--format", "json").stdout)


def test_an_orphan_is_explained_before_any_pass_and_without_a_trace(run, place, cloud, orphan):
    result = run("explain", ORPHAN, "--look")

    assert result.exit_code == 0
    assert "TERMINATED BY THE NEXT PASS: unregistered" in result.stdout
    assert "judged on   a look made now, which left no trace" in result.stdout
    assert not place.ledger.parent.exists()
    assert cloud.mutating_requests() == []


def test_what_explain_says_is_what_once_does(run, cloud, orphan):
    before = explained(run, "--look")

    run("once")

    assert before["machines"][0]["would_terminate"] is True
    assert len(cloud.terminate_requests(ORPHAN)) == 1


def test_after_its_termination_the_record_tells_it_with_the_passes(run, orphan):
    run("once", "--dry-run")
    done = json.loads(run("once", "--format", "json").stdout)

    told = explained(run)

    (machine,) = told["machines"]
    assert told["judged_on"]["source"] == "record"
    assert machine["would_terminate"] is False
    unmet = [each["condition"] for each in machine["conditions"] if each["met"] is False]
    assert unmet == ["already_requested"]
    assert [(event["name"], event["mode"]) for event in machine["events"]] == [
        ("terminate/unregistered", "dry-run"),
        ("requested", "enforce"),
    ]
    assert machine["events"][1]["pass_id"] == done["pass_id"]


def test_the_record_and_a_look_agree_on_a_world_that_stands_still(run, orphan):
    run("once", "--dry-run")

    recorded, live = (explained(run, *words)["machines"][0]["conditions"] for words in ((), ("--look",)))

    assert [each["met"] for each in recorded] == [each["met"] for each in live]


def test_a_look_that_fails_falls_back_on_the_record_and_says_so(run, cloud, orphan):
    run("once", "--dry-run")
    cloud.fault(code="UnauthorizedOperation", action="DescribeInstances")

    result = run("explain", ORPHAN, "--look")
    told = explained(run, "--look")

    assert result.exit_code == 0
    assert "KEPT: listing_incomplete" in result.stdout
    assert "LOOK FAILED listing_incomplete: aws/us-east-1 (UnauthorizedOperation)" in result.stdout
    assert told["judged_on"]["source"] == "record"
    assert told["machines"][0]["presence"] == "listed"


def test_a_look_that_fails_without_a_record_proves_nothing(run, cloud, orphan):
    cloud.fault(code="UnauthorizedOperation", action="DescribeInstances")

    result = run("explain", ORPHAN, "--look")

    assert result.exit_code == 1
    assert "NEVER SEEN" in result.stdout
    assert "No complete listing is recorded, so nothing is proved." in result.stdout


def test_history_shows_what_once_recorded(run, orphan):
    done = json.loads(run("once", "--format", "json").stdout)

    (line,) = run("history", "--format", "json").stdout.splitlines()

    assert json.loads(line) == done
    assert run("history", "--verify").exit_code == 0
