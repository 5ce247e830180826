"""EC2 keeps a token by zone, and shows a new machine late: what a launch that broke off goes on with."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from providers.aws import AwsOptions, AwsProvider, aws_provider
from providers.capacity import Kind, Offer, WorkerSpec
from reaperd.clock import ManualClock
from reaperd.errors import LaunchPendingError
from reaperd.launching import SETTLES, launch_worker
from registry.model import WorkerState
from registry.sqlite.admin import create
from registry.sqlite.writer import SqliteRegistryWriter
from tests.support.ec2 import FaultyEc2

NOON = datetime(2026, 1, 10, 12, tzinfo=UTC)
REGION = "us-east-1"
SPEC = WorkerSpec(model="m", image="ami-1")


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyEc2]:
    with FaultyEc2(now=NOON) as started:
        for name, value in started.environment().items():
            monkeypatch.setenv(name, value)
        yield started


@pytest.fixture
def provider(cloud: FaultyEc2) -> AwsProvider:
    options = AwsOptions(name="aws", deployment="prod", account=cloud.world.account, regions=(REGION,), max_attempts=1)
    return aws_provider(options, clock=ManualClock(NOON))


@pytest.fixture
def registry(tmp_path: Path) -> SqliteRegistryWriter:
    create(tmp_path / "registry.db", "prod")
    return SqliteRegistryWriter(tmp_path / "registry.db", "prod", now=lambda: NOON)


def offer(zone: str, price: str) -> Offer:
    return Offer(
        provider="aws",
        instance_type="g5.xlarge",
        region=REGION,
        zone=f"{REGION}{zone}",
        kind=Kind.SPOT,
        price_per_hour=Decimal(price),
    )


def test_a_launch_that_broke_off_goes_on_in_its_zone_although_another_is_cheaper_and_nothing_shows_its_machine(
    cloud: FaultyEc2, provider: AwsProvider, registry: SqliteRegistryWriter
):
    cloud.fault("stale", action="DescribeInstances")
    with cloud.fault("lost_reply", action="RunInstances"), pytest.raises(LaunchPendingError):
        launch_worker(provider, registry, SPEC, [offer("a", "0.40")], worker_id="w-1")
    (machine,) = cloud.instances()
    later = ManualClock(NOON + SETTLES)

    handle = launch_worker(
        provider, registry, SPEC, [offer("a", "0.40"), offer("b", "0.10")], worker_id="w-1", clock=later
    )

    row = registry.find("w-1")
    assert [each.instance_id for each in cloud.instances()] == [machine.instance_id] == [handle.instance_id]
    assert row is not None
    assert (row.state, row.instance_id, row.zone) == (WorkerState.RUNNING, machine.instance_id, "us-east-1a")
