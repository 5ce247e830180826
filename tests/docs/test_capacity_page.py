"""What docs/capacity.md shows runs, and its tables leave nothing out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from providers import errors
from providers.aws import AwsOptions, aws_provider
from providers.aws.hooks import LAUNCHING, QUOTING
from reaperd.clock import SystemClock
from tests.docs.markdown import blocks, read
from tests.support.ec2 import FaultyEc2

PAGE = read("docs/capacity.md")
ELSEWHERE = {errors.GateClosedError, errors.GateUnreadableError}
"""Errors of a gate, which has a page of its own."""


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyEc2]:
    with FaultyEc2(account="123456789012") as started:
        for name, value in started.environment().items():
            monkeypatch.setenv(name, value)
        yield started


def every_kind(of: type[Exception]) -> Iterator[type[Exception]]:
    for kind in of.__subclasses__():
        yield kind
        yield from every_kind(kind)


def test_the_code_of_the_page_launches_onto_the_cheapest_offer(cloud: FaultyEc2):
    for region, price in {"eu-west-1": "0.5", "us-east-1": "0.4"}.items():
        cloud.set_spot_price("g5.xlarge", price, region=region)
        cloud.add_image("ami-1", region=region, tags={"reaperd:image": "worker"})
    given = {"clock": SystemClock(), "registry_id": "r-1", "worker_id": "w-1", "script": "#!/bin/sh\nexec worker\n"}
    launch, _ = blocks(PAGE, "python")

    exec(launch.text, given)

    (machine,) = cloud.instances()
    assert (machine.region, machine.tags["reaperd:registry-id"]) == ("us-east-1", "r-1")
    assert machine.user_data == "#!/bin/sh\nexport QUEUE='jobs'\nexec worker\n"


def test_the_code_of_the_page_finds_a_type_with_its_price(cloud: FaultyEc2):
    regions = ("eu-west-1", "us-east-1")
    cloud.add_type("g5.xlarge", gpus=[("A10G", 1)], regions=regions)
    cloud.add_type("m5.large", regions=regions)
    cloud.set_spot_price("g5.xlarge", "0.5", region="eu-west-1")
    options = AwsOptions(name="aws", deployment="prod-eu", account="123456789012", regions=regions)
    given: dict[str, Any] = {"cloud": aws_provider(options, clock=SystemClock())}
    _, types = blocks(PAGE, "python")

    exec(types.text, given)

    assert [each.name for each in given["with_gpus"]] == ["g5.xlarge"]
    assert [(offer.region, str(offer.price_per_hour)) for offer in given["prices"]] == [("eu-west-1", "0.5")]


def test_the_page_says_of_every_error_whether_there_is_a_machine():
    kinds = {kind for kind in every_kind(errors.LaunchError) if kind.__module__ == errors.__name__}

    table = "\n".join(line for line in PAGE.splitlines() if line.startswith("| `"))
    named = set(re.findall(r"`(\w+Error)`", table))

    assert named == {kind.__name__ for kind in kinds - ELSEWHERE}


def test_the_page_names_every_request_of_a_launcher():
    section = PAGE[PAGE.index("## Permissions") :]

    for request in sorted(LAUNCHING | QUOTING):
        service, operation = request.split(":")
        if service == "ec2":
            assert f"`{operation}`" in section or f"`{request}`" in section
