"""An answer is read to no larger size than it may have. How long it may take is tried with the listing."""

from __future__ import annotations

from datetime import timedelta

import pytest

from providers.aws.bodies import bound_answers
from providers.aws.errors import LargeAnswerError, error_code
from providers.aws.hooks import READ_ONLY
from providers.aws.session import AwsSessions
from reaperd.clock import SystemClock
from tests.unit.providers.aws.builders import REGION, options
from tests.unit.providers.aws.canned import CannedAws, Reply, regions


@pytest.mark.parametrize("action", ["DescribeInstances", "DescribeRegions"])
def test_an_answer_that_grows_beyond_all_measure_is_not_read_to_its_end(canned: CannedAws, action: str) -> None:
    canned.will(action, Reply("<a>" + "x" * 1_000_000))
    client = AwsSessions(options(endpoint_url=canned.url), allowed=READ_ONLY).open().ec2(REGION).client
    bound_answers(client, SystemClock(), timedelta(minutes=1), limit=500_000)

    with pytest.raises(LargeAnswerError) as raised:
        client.describe_instances() if action == "DescribeInstances" else client.describe_regions()

    assert error_code(raised.value) == "large_answer"
    assert len(canned.asked(action)) == 1


def test_an_answer_of_the_very_size_is_read(canned: CannedAws) -> None:
    body = regions(REGION)
    canned.will("DescribeRegions", Reply(body))
    client = AwsSessions(options(endpoint_url=canned.url), allowed=READ_ONLY).open().ec2(REGION).client
    bound_answers(client, SystemClock(), timedelta(minutes=1), limit=len(body))

    assert client.describe_regions()["Regions"][0]["RegionName"] == REGION
