"""EC2's filters: names AND-ed, values OR-ed, case-sensitive, with * and ?."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tests.support.ec2.model import STATE_CODES, Fleet, Image, Machine, SecurityGroup, SpotPrice, SpotRequest, Subnet
from tests.support.ec2.protocol import ApiError

Getter = Callable[[Any], Iterable[str | None]]

MACHINE_FILTERS: Mapping[str, Callable[[Machine], Iterable[str | None]]] = {
    "availability-zone": lambda m: [m.az],
    "client-token": lambda m: [m.client_token],
    "image-id": lambda m: [m.image_id],
    "instance-id": lambda m: [m.instance_id],
    "instance-lifecycle": lambda m: ["spot"] if m.spot_request_id else [],
    "instance-state-code": lambda m: [str(STATE_CODES[m.state])],
    "instance-state-name": lambda m: [m.state],
    "instance-type": lambda m: [m.instance_type],
    "launch-time": lambda m: [m.launched_at],
    "operator.managed": lambda m: [str(m.operator is not None).lower()],
    "operator.principal": lambda m: [m.operator],
    "owner-id": lambda m: [m.owner_id],
    "reservation-id": lambda m: [m.reservation_id],
    "spot-instance-request-id": lambda m: [m.spot_request_id],
    "tag-key": lambda m: m.tags,
}
SPOT_FILTERS: Mapping[str, Callable[[SpotRequest], Iterable[str | None]]] = {
    "instance-id": lambda s: [s.instance_id],
    "spot-instance-request-id": lambda s: [s.request_id],
    "state": lambda s: [s.state],
    "tag-key": lambda s: s.tags,
    "type": lambda s: [s.kind],
}
FLEET_FILTERS: Mapping[str, Callable[[Fleet], Iterable[str | None]]] = {
    "fleet-state": lambda f: [f.state],
    "type": lambda f: [f.kind],
}
PRICE_FILTERS: Mapping[str, Callable[[SpotPrice], Iterable[str | None]]] = {
    "availability-zone": lambda p: [p.az],
    "instance-type": lambda p: [p.instance_type],
    "product-description": lambda p: [p.product],
    "spot-price": lambda p: [p.price],
}
IMAGE_FILTERS: Mapping[str, Callable[[Image], Iterable[str | None]]] = {
    "image-id": lambda i: [i.image_id],
    "state": lambda i: [i.state],
    "tag-key": lambda i: i.tags,
}
SUBNET_FILTERS: Mapping[str, Callable[[Subnet], Iterable[str | None]]] = {
    "availability-zone": lambda s: [s.az],
    "subnet-id": lambda s: [s.subnet_id],
    "tag-key": lambda s: s.tags,
    "vpc-id": lambda s: [s.vpc_id],
}
GROUP_FILTERS: Mapping[str, Callable[[SecurityGroup], Iterable[str | None]]] = {
    "group-id": lambda g: [g.group_id],
    "tag-key": lambda g: g.tags,
    "vpc-id": lambda g: [g.vpc_id],
}
REGION_FILTERS: Mapping[str, Callable[[tuple[str, str]], Iterable[str | None]]] = {
    "endpoint": lambda r: [f"ec2.{r[0]}.amazonaws.com"],
    "opt-in-status": lambda r: [r[1]],
    "region-name": lambda r: [r[0]],
}


def predicate(filters: list[tuple[str, list[str]]], known: Mapping[str, Getter]) -> Callable[[Any], bool]:
    """Compile the filters into one test of a row; an unknown filter is an error, as in AWS."""
    tests = [(_getter(name, known), _matcher(values)) for name, values in filters]
    return lambda row: all(any(value is not None and matches(value) for value in get(row)) for get, matches in tests)


def _getter(name: str, known: Mapping[str, Getter]) -> Getter:
    if name.startswith("tag:") and "tag-key" in known:
        key = name.removeprefix("tag:")
        return lambda row: [row.tags.get(key)]
    if name not in known:
        message = f"The filter '{name}' is invalid"
        raise ApiError(message, code="InvalidParameterValue")
    return known[name]


def _matcher(values: list[str]) -> Callable[[str], object]:
    if len(values) > 200:
        message = "The maximum number of filter values specified on a single call is 200"
        raise ApiError(message, code="FilterLimitExceeded")
    if not any(sign in value for value in values for sign in "*?"):
        return frozenset(values).__contains__
    return re.compile("|".join(_pattern(value) for value in values), re.DOTALL).fullmatch


def _pattern(value: str) -> str:
    """A backslash takes the meaning from the sign after it."""
    pieces = re.split(r"(\\.|\*|\?)", value)
    return "".join({"*": ".*", "?": "."}.get(piece, re.escape(piece.removeprefix("\\"))) for piece in pieces)
