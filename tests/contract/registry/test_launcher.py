"""The example control plane runs as it stands, against a test cloud."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from registry.model import WorkerState
from registry.sqlite import SqliteRegistry
from registry.sqlite.admin import create
from tests.support.ec2 import FaultyEc2

ROOT = Path(__file__).parents[3]
REGION = "eu-west-1"


@pytest.fixture
def cloud():
    with FaultyEc2() as started:
        for number, zone in enumerate("abc"):
            started.set_spot_price("g5.xlarge", f"0.4{number}", region=REGION, az=f"{REGION}{zone}")
        yield started


@pytest.fixture
def path(tmp_path: Path) -> Path:
    create(tmp_path / "registry.db", "prod", registry_id="r-1")
    return tmp_path / "registry.db"


def start(cloud, path: Path, count: int = 1, **variables: str) -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    theirs = {"AWS_DEFAULT_REGION": REGION, "AWS_ACCOUNT_ID": cloud.world.account} | variables
    return subprocess.run(
        [sys.executable, "examples/launcher.py", str(path), "prod", "g5.xlarge", "ami-1", str(count)],
        cwd=ROOT,
        env={**own, "PYTHONPATH": str(ROOT), **cloud.environment(), **theirs},
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )


def rows(path: Path):
    return SqliteRegistry(path).snapshot().workers


def test_every_machine_has_its_row_and_carries_the_worker_id_of_it(cloud, path):
    started = start(cloud, path, 2)

    machines = {machine.instance_id: machine for machine in cloud.instances()}
    assert started.returncode == 0, started.stderr
    assert {row.instance_id: row.worker_id for row in rows(path)} == {
        name: machine.tags["reaperd:worker-id"] for name, machine in machines.items()
    }
    assert {(m.tags["reaperd:owner"], m.tags["reaperd:registry-id"]) for m in machines.values()} == {("prod", "r-1")}
    assert sorted(started.stdout.split()) == sorted(machines)
    assert len(rows(path)) == 2
    for row in rows(path):
        assert (row.state, row.provider, row.region) == (WorkerState.RUNNING, "aws", REGION)
        assert row.launched_at is not None


def test_the_row_stands_before_each_request_and_is_failed_when_all_are_refused(cloud, path):
    seen = []
    cloud.on("RunInstances", lambda request: seen.append((request.params["ClientToken"], rows(path))))
    cloud.fault(action="RunInstances", code="InsufficientInstanceCapacity")

    started = start(cloud, path, 3)

    (row,) = rows(path)
    assert started.returncode == 1
    assert "InsufficientInstanceCapacity" in started.stderr
    assert (row.state, row.instance_id) == (WorkerState.FAILED, None)
    assert len(seen) == 3
    for token, (row_before,) in seen:
        assert token == row_before.worker_id == row.worker_id
        assert row_before.state is WorkerState.LAUNCHING


def test_the_next_zone_is_tried_when_the_first_has_no_capacity(cloud, path):
    where = {"Placement.AvailabilityZone": f"{REGION}a"}
    cloud.fault(action="RunInstances", code="InsufficientInstanceCapacity", params=where)

    started = start(cloud, path)

    (machine,) = cloud.instances()
    assert started.returncode == 0, started.stderr
    assert machine.az == f"{REGION}b"


def test_a_launch_whose_answer_is_lost_is_one_machine_with_its_row(cloud, path):
    cloud.fault("lost_reply", action="RunInstances", times=1)

    started = start(cloud, path)

    (row,), (machine,) = rows(path), cloud.instances()
    assert started.returncode == 0, started.stderr
    assert (row.state, row.instance_id) == (WorkerState.RUNNING, machine.instance_id)


def test_while_nobody_can_say_what_became_of_a_launch_its_row_protects_the_machine(cloud, path):
    cloud.fault("lost_reply", action="RunInstances")
    cloud.on("RunInstances", lambda _request: cloud.fault("drop", action="DescribeInstances"))

    started = start(cloud, path)

    (row,), (machine,) = rows(path), cloud.instances()
    assert started.returncode == 1
    assert "launch again with this worker id" in started.stderr
    assert (row.state, row.instance_id) == (WorkerState.LAUNCHING, None)
    assert machine.tags["reaperd:worker-id"] == row.worker_id


def test_a_cloud_that_cannot_be_reached_leaves_no_row(cloud, path):
    cloud.fault("drop")

    started = start(cloud, path, AWS_MAX_ATTEMPTS="1")

    assert started.returncode == 1
    assert started.stderr.startswith("launch failed: ")
    assert rows(path) == ()


def test_without_a_registry_nothing_is_launched(cloud, tmp_path):
    started = start(cloud, tmp_path / "registry.db")

    assert started.returncode == 1
    assert "reaperd registry init" in started.stderr
    assert cloud.instances() == []
