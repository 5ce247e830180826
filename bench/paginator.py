"""What a script of ten lines does: boto3's paginator, one region after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import boto3

from bench.fleet import DEPLOYMENT, OWNER_TAG
from bench.looks import Asked, asked, take

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import FilterTypeDef


def look(options: Asked) -> list[str]:
    """Return the ids of what is ours."""
    return [each for region in options.regions for each in _region(options.endpoint, region)]


def _region(endpoint: str, region: str) -> list[str]:
    pages = boto3.client("ec2", region_name=region, endpoint_url=endpoint).get_paginator("describe_instances")
    ours: FilterTypeDef = {"Name": f"tag:{OWNER_TAG}", "Values": [DEPLOYMENT]}
    return [
        instance["InstanceId"]
        for page in pages.paginate(Filters=[ours], PaginationConfig={"PageSize": 1000})
        for reservation in page["Reservations"]
        for instance in reservation.get("Instances", ())
        if "InstanceId" in instance
    ]


if __name__ == "__main__":
    _asked = asked()
    take(lambda: look(_asked), _asked)
