"""What a launch looks up before it launches: images, subnets, security groups."""

from __future__ import annotations

from typing import Any

from tests.support.ec2 import rendering
from tests.support.ec2.filters import GROUP_FILTERS, IMAGE_FILTERS, SUBNET_FILTERS, predicate
from tests.support.ec2.paging import Cut, cut
from tests.support.ec2.protocol import ApiRequest
from tests.support.ec2.world import World


def describe_images(world: World, request: ApiRequest) -> str:
    """Answer with images. Those of others are public, so only `Owner.1=self` leaves them out."""
    own = "self" in request.listed("Owner")
    rows = [image for image in world.images if image.region == request.region]
    rows = [image for image in rows if not own or image.account == request.account]
    page = cut(request, rows, _indexed(rows, predicate(request.filters(), IMAGE_FILTERS)))
    return rendering.images(page.rows) + page.next_token()


def describe_subnets(world: World, request: ApiRequest) -> str:
    """Answer with subnets."""
    rows = [subnet for subnet in world.subnets.values() if _is_seen(subnet, request)]
    page = cut(request, rows, _indexed(rows, predicate(request.filters(), SUBNET_FILTERS)))
    return rendering.subnets(page.rows) + page.next_token()


def describe_security_groups(world: World, request: ApiRequest) -> str:
    """Answer with security groups."""
    rows = [group for group in world.security_groups if _is_seen(group, request)]
    page = cut(request, rows, _indexed(rows, predicate(request.filters(), GROUP_FILTERS)))
    return rendering.security_groups(page.rows) + page.next_token()


def _is_seen(row: Any, request: ApiRequest) -> bool:
    return (row.account, row.region) == (request.account, request.region)


def _indexed(rows: list[Any], matches: Any) -> Cut:
    positions = {id(row): index for index, row in enumerate(rows)}
    return Cut(matches=matches, position=lambda row: positions[id(row)])
