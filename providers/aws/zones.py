"""The parts that a large region is listed in: by availability zone, each part with its own chain of pages."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from providers.aws.answers import answer_of
from providers.aws.errors import MALFORMED, BrokenAnswerError

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_ec2.type_defs import FilterTypeDef

Part = frozenset[str]
"""The names of zones that are listed together."""

_MAIN = "availability-zone"
_MOST = 200
"""So many values may a filter have."""


def parts_of(client: EC2Client, region: str) -> tuple[Part, ...]:
    """Return every zone that a machine of the region can be in, each in one part.

    Each availability zone is a part; the local and wavelength zones, of which there are many and in which there is
    little, are one together. No zone is left out for its state, or because it is not enabled: what was launched into
    it before may be there still.

    Raises:
        BrokenAnswerError: if the answer does not name them all, each once and as one of this region.
        Exception: anything in CALL_ERRORS.
    """
    rows = answer_of(lambda: client.describe_availability_zones(AllAvailabilityZones=True)).get("AvailabilityZones")
    if not isinstance(rows, list) or not rows:
        raise BrokenAnswerError(MALFORMED, "no list of AvailabilityZones")
    zones: dict[str, bool] = {}
    for row in rows:
        name = row.get("ZoneName") if isinstance(row, Mapping) and row.get("RegionName") == region else None
        if not isinstance(name, str) or not name or name in zones:
            raise BrokenAnswerError(MALFORMED, f"a zone without a name, there twice, or not of {region}")
        zones[name] = row.get("ZoneType") == _MAIN
    others = sorted(name for name, main in zones.items() if not main)
    together = (frozenset(others[start : start + _MOST]) for start in range(0, len(others), _MOST))
    return (*(frozenset({name}) for name, main in sorted(zones.items()) if main), *together)


def only_in(part: Collection[str]) -> FilterTypeDef:
    """Return the filter that leaves the machines of a part."""
    return {"Name": "availability-zone", "Values": sorted(part)}
