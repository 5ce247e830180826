"""Where in the network a machine is launched: what is named, what carries our tag, or the default."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

from providers.aws.answers import Answer
from providers.aws.errors import CALL_ERRORS, BrokenAnswerError, error_code, error_text
from providers.aws.kept import Kept
from providers.aws.launch_options import AwsLaunchOptions
from providers.aws.rows import all_rows
from providers.base import Clock
from providers.capacity import Offer
from providers.model import Scope

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_ec2.type_defs import (
        DescribeSecurityGroupsRequestTypeDef,
        DescribeSubnetsRequestTypeDef,
        FilterTypeDef,
    )


@dataclass(frozen=True, slots=True)
class Place:
    """A subnet and its groups. With neither, a machine comes into the default network of its zone."""

    subnet: str | None = None
    groups: tuple[str, ...] = ()


DEFAULT_NETWORK = Place()


class DefaultNetwork(Protocol):
    """Told that a launch goes into the default network, because looking for ours failed. Must not raise."""

    def __call__(self, scope: Scope, *, zone: str, error_code: str, detail: str) -> None:
        """Take the place and the reason."""
        ...


def told_nobody(scope: Scope, *, zone: str, error_code: str, detail: str) -> None:
    """Say nothing. For whoever does not want to know."""


class Networks:
    """Finds networks, and remembers them for a while; also that a zone has none of ours."""

    def __init__(self, how: AwsLaunchOptions, clock: Clock, *, fell_back: DefaultNetwork) -> None:
        """Keep nothing yet."""
        self._how = how
        self._fell_back = fell_back
        self._found: Kept[tuple[str, str], Place] = Kept(clock, how.network_lifetime)

    def place_for(self, offer: Offer, client: EC2Client) -> Place:
        """Return where the machine belongs. What is named is taken, and nothing is asked.

        A look that fails is no reason not to launch: the default network is taken, and whoever wants to know is told.
        It is not remembered, so that the next launch looks again.
        """
        named = self._named(offer)
        if named is not None:
            return named
        try:
            return self._found.get((offer.region, offer.zone), lambda: self._find(client, offer.zone))
        except (*CALL_ERRORS, BrokenAnswerError) as error:
            scope = Scope(offer.provider, offer.region)
            self._fell_back(scope, zone=offer.zone, error_code=error_code(error), detail=error_text(error))
            return DEFAULT_NETWORK

    def _named(self, offer: Offer) -> Place | None:
        subnet = self._how.subnets.get(offer.zone)
        groups = self._how.security_groups.get(offer.region, ())
        return Place(subnet, tuple(groups)) if subnet or groups else None

    def _find(self, client: EC2Client, zone: str) -> Place:
        ours: list[FilterTypeDef] = [{"Name": f"tag:{self._how.role_tag}", "Values": [self._how.role]}]
        placed: list[FilterTypeDef] = [{"Name": "availability-zone", "Values": [zone]}] if zone else []
        subnets = all_rows(partial(_subnets, client, ours + placed), "Subnets")
        # The smallest id, so that a launch that is asked for again asks for the same subnet.
        chosen = min(subnets, key=lambda row: str(row.get("SubnetId")), default=None)
        if chosen is None:
            return DEFAULT_NETWORK
        vpc: FilterTypeDef = {"Name": "vpc-id", "Values": [str(chosen.get("VpcId"))]}
        groups = all_rows(partial(_groups, client, [*ours, vpc]), "SecurityGroups")
        return Place(str(chosen["SubnetId"]), tuple(sorted(str(row["GroupId"]) for row in groups)))


def _subnets(client: EC2Client, filters: list[FilterTypeDef], token: str | None) -> Answer:
    asked: DescribeSubnetsRequestTypeDef = {"Filters": filters}
    if token is not None:
        asked["NextToken"] = token
    return client.describe_subnets(**asked)


def _groups(client: EC2Client, filters: list[FilterTypeDef], token: str | None) -> Answer:
    asked: DescribeSecurityGroupsRequestTypeDef = {"Filters": filters}
    if token is not None:
        asked["NextToken"] = token
    return client.describe_security_groups(**asked)
