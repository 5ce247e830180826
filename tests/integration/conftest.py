"""Sites with commands on them. The clouds live in the test's process, the commands in processes of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.ec2 import FaultyEc2
from tests.support.processes import Crew, zygote
from tests.support.site import MOTO_ACCOUNT, Site


@pytest.fixture(scope="session")
def parent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give the socket of the process that warm commands are forked from."""
    with zygote(tmp_path_factory.mktemp("zygote")) as path:
        yield path


@pytest.fixture
def crew(parent: Path) -> Iterator[Crew]:
    """Start commands, and end those that a failed test left over."""
    with Crew(parent) as started:
        yield started


@pytest.fixture
def cloud() -> Iterator[FaultyEc2]:
    """Give a cloud whose clock runs and whose machines are gone as soon as they were told to be."""
    with FaultyEc2(shutdown_s=0) as started:
        yield started


@pytest.fixture
def site(tmp_path: Path, cloud: FaultyEc2, crew: Crew) -> Site:
    """Give a site that enforces, on a cloud of our own."""
    made = Site(folder=tmp_path, cloud=cloud, crew=crew)
    made.set_up()
    return made


@pytest.fixture
def moto() -> Iterator[Any]:
    """Give moto behind the fault layer."""
    # Two seconds that only these tests should pay.
    from tests.support.ec2.layer import MotoCloud  # noqa: PLC0415

    with MotoCloud() as started:
        yield started


@pytest.fixture
def moto_site(tmp_path: Path, moto: Any, crew: Crew) -> Site:
    """Give a site that enforces, on moto."""
    made = Site(folder=tmp_path, cloud=moto, crew=crew, account=MOTO_ACCOUNT)
    made.set_up()
    return made
