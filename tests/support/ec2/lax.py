"""A cloud that hands out everything, whatever filters a listing names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.support.ec2.dispatch import answer
from tests.support.ec2.protocol import ApiRequest, HttpRequest

_HTTP = HttpRequest(method="POST", path="/", query="", headers={}, body=b"")


def ignore_filters(cloud: Any, regions: Iterable[str]) -> None:
    """Answer every listing with all the machines that a FaultyEc2 has now; requests that name machines as they are."""
    for region in regions:
        request = ApiRequest(
            number=0,
            at=cloud.now(),
            region=region,
            access_key="",
            account=cloud.world.account,
            action="DescribeInstances",
            params={},
            http=_HTTP,
        )
        body = answer(cloud.world, request).body.decode()
        cloud.fault("body", region=region, action="DescribeInstances", params={"MaxResults": "?*"}, body=body)
