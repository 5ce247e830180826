from collections.abc import Iterator

import pytest

from tests.support.ec2 import FaultyEc2

NOW = "2026-01-10T12:00:00+00:00"


@pytest.fixture
def cloud() -> Iterator[FaultyEc2]:
    with FaultyEc2(now=NOW) as started:
        yield started
