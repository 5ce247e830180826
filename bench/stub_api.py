"""What the stand-in answers: the few calls that reapers and their peers send, over one fleet whose states it keeps.

Nothing is accepted in silence: an action, a filter or a token that is not known here is an error.
"""

# ruff: noqa: EM101 - the codes are AWS's words, not ours

from __future__ import annotations

import base64
import fnmatch
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus

from bench.buckets import Buckets
from bench.fleet import ACCOUNT, OWNER_TAG, ZONES, Machine, Recipe, fleet, regions
from bench.rendering import (
    CODES,
    ec2_answer,
    error_answer,
    instance_xml,
    item,
    leaf,
    listed,
    query_answer,
    spot_request_id,
)

Params = Mapping[str, str]
Predicate = Callable[["Standing"], bool]

_PAGE_SIZES = range(5, 1001)
_MOST_IDS = 1000
_MOST_VALUES = 200
_ID = re.compile(r"i-([0-9a-f]{8}|[0-9a-f]{17})")
_PROTECTED = (
    "The instance '{}' may not be terminated. Modify its 'disableApiTermination' instance attribute and try again."
)


class ApiError(Exception):
    """An answer that is an error."""

    def __init__(self, code: str, message: str, status: HTTPStatus = HTTPStatus.BAD_REQUEST) -> None:
        """Keep what is answered."""
        super().__init__(f"{code}: {message}")
        self.status = status
        self.body = error_answer(code, message)


THROTTLED = ApiError("RequestLimitExceeded", "Request limit exceeded.", HTTPStatus.SERVICE_UNAVAILABLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A body, and what the statistics want to know of it."""

    body: bytes
    items: int = 0
    page: int = 0
    """0 is the first of a listing."""
    key: tuple[object, ...] | None = None
    """Equal keys have equal bodies; None: it is nothing that comes twice."""


@dataclass(slots=True)
class Standing:
    """One machine as it is now."""

    machine: Machine
    state: str
    xml: bytes

    def turn(self, state: str) -> None:
        """Change its state, and what is listed of it."""
        self.state = state
        self.xml = instance_xml(self.machine, state)


class Api:
    """The answers to calls, for one fleet."""

    def __init__(self, recipe: Recipe, buckets: Buckets) -> None:
        """Make the fleet, every machine rendered: nobody's first page is slower than his second."""
        self._buckets = buckets
        self._regions = regions(recipe)
        self._by_id = {
            each.instance_id: Standing(each, "running", instance_xml(each, "running")) for each in fleet(recipe)
        }
        self._spots = {spot_request_id(key): each for key, each in self._by_id.items() if each.machine.spot}
        self._by_region: dict[str, list[Standing]] = {region: [] for region in self._regions}
        for each in self._by_id.values():
            self._by_region[each.machine.region].append(each)
        self._changes = dict.fromkeys(self._regions, 0)
        self._ending: dict[str, list[Standing]] = {}
        self._actions: dict[str, Callable[[str, Params], Answer]] = {
            "DescribeInstances": self._instances,
            "TerminateInstances": self._terminate,
            "DescribeRegions": self._all_regions,
            "DescribeAvailabilityZones": self._zones,
            "DescribeSpotInstanceRequests": self._spot_requests,
            "DescribeInstanceAttribute": self._attribute,
            "DescribeInstanceStatus": self._statuses,
            "GetCallerIdentity": _identity,
            "ListAccountAliases": _aliases,
        }

    def answer(self, action: str, region: str, params: Params) -> Answer:
        """Answer one call. Raises ApiError."""
        known = self._actions.get(action)
        if known is None:
            raise ApiError("InvalidAction", f"The action {action} is not valid for this web service.")
        if region not in self._by_region:
            raise ApiError("AuthFailure", f"the region {region} is not enabled", HTTPStatus.UNAUTHORIZED)
        return known(region, params)

    def states(self) -> Iterator[tuple[Machine, str]]:
        """Yield every machine and its state: the truth."""
        return ((each.machine, each.state) for each in self._by_id.values())

    def reset(self) -> None:
        """Let every machine run again."""
        for each in self._by_id.values():
            if each.state != "running":
                each.turn("running")
                self._changes[each.machine.region] += 1
        self._ending = {}

    def finish(self) -> None:
        """End what is shutting down."""
        for region, ending in self._ending.items():
            for each in ending:
                each.turn("terminated")
            self._changes[region] += 1
        self._ending = {}

    # ------------------------------------------------------------ looking

    def _instances(self, region: str, params: Params) -> Answer:
        ids = _numbered(params, "InstanceId")
        size = _page_size(params)
        if ids:
            if size is not None or "NextToken" in params:
                raise ApiError("InvalidParameterCombination", "instancesSet and maxResults exclude each other")
            self._take("describe", region)
            found = [each.xml for each in self._known(region, ids)]
            return Answer(body=ec2_answer("DescribeInstances", listed("reservationSet", found)), items=len(found))
        filters = tuple(_filters(params))
        self._take("describe" if size is not None or filters else "describe-everything", region)
        return self._page(region, filters, size or _PAGE_SIZES[-1], params.get("NextToken"))

    def _page(
        self, region: str, filters: tuple[tuple[str, tuple[str, ...]], ...], size: int, token: str | None
    ) -> Answer:
        request = f"{region} {filters}"
        start, page = _opened(token, request)
        matches = _all_of([_predicate(name, values) for name, values in filters])
        found: list[bytes] = []
        after = None
        members = self._by_region[region]
        for place in range(start, len(members)):
            if matches(members[place]):
                if len(found) == size:
                    after = place
                    break
                found.append(members[place].xml)
        follows = None if after is None else _sealed(after, page + 1, request)
        body = ec2_answer("DescribeInstances", listed("reservationSet", found), follows)
        key = (region, self._changes[region], filters, size, start)
        return Answer(body=body, items=len(found), page=page, key=key)

    def _known(self, region: str, ids: list[str]) -> list[Standing]:
        found = [self._by_id.get(each) for each in ids]
        here = [each for each in found if each is not None and each.machine.region == region]
        if len(here) == len(ids):
            return here
        known = {each.machine.instance_id for each in here}
        unknown = [each for each in ids if each not in known]
        ids_do = f"IDs '{', '.join(unknown)}' do" if len(unknown) > 1 else f"ID '{unknown[0]}' does"
        raise ApiError("InvalidInstanceID.NotFound", f"The instance {ids_do} not exist")

    def _all_regions(self, region: str, params: Params) -> Answer:
        rows = [
            item(regionName=each, regionEndpoint=f"ec2.{each}.amazonaws.com", optInStatus="opt-in-not-required")
            for each in self._regions
        ]
        return Answer(body=ec2_answer("DescribeRegions", listed("regionInfo", rows)))

    def _zones(self, region: str, params: Params) -> Answer:
        rows = [
            item(
                zoneName=f"{region}{letter}",
                zoneState="available",
                regionName=region,
                zoneId=f"{region}-az{place}",
                zoneType="availability-zone",
                groupName=region,
                optInStatus="opt-in-not-required",
            )
            for place, letter in enumerate(ZONES, start=1)
        ]
        return Answer(body=ec2_answer("DescribeAvailabilityZones", listed("availabilityZoneInfo", rows)))

    def _spot_requests(self, region: str, params: Params) -> Answer:
        ids = _numbered(params, "SpotInstanceRequestId")
        self._take("describe", region)
        if unknown := [each for each in ids if each not in self._spots or self._spots[each].machine.region != region]:
            told = f"The spot instance request ID '{unknown[0]}' does not exist"
            raise ApiError("InvalidSpotInstanceRequestID.NotFound", told)
        rows = [
            item(
                spotInstanceRequestId=each,
                type="one-time",
                state="active",
                instanceId=self._spots[each].machine.instance_id,
            )
            for each in ids
        ]
        return Answer(body=ec2_answer("DescribeSpotInstanceRequests", listed("spotInstanceRequestSet", rows)))

    def _statuses(self, region: str, params: Params) -> Answer:
        """Announce nothing for anybody, but tell how each is."""
        self._take("describe", region)
        ids, size = _numbered(params, "InstanceId"), _page_size(params) or _PAGE_SIZES[-1]
        start, page = _opened(params.get("NextToken"), f"{region} status")
        members = self._known(region, ids) if ids else self._by_region[region]
        after = start + size
        rows = [_status(each) for each in members[start:after] if each.state == "running"]
        follows = _sealed(after, page + 1, f"{region} status") if after < len(members) else None
        body = ec2_answer("DescribeInstanceStatus", listed("instanceStatusSet", rows), follows)
        return Answer(body=body, items=len(rows), page=page)

    def _attribute(self, region: str, params: Params) -> Answer:
        (found,) = self._known(region, [params.get("InstanceId", "")])
        parts = (
            leaf("instanceId", found.machine.instance_id),
            leaf("disableApiTermination", {"value": str(found.machine.guarded).lower()}),
        )
        return Answer(body=ec2_answer("DescribeInstanceAttribute", parts))

    # ------------------------------------------------------------ ending

    def _terminate(self, region: str, params: Params) -> Answer:
        """End machines as EC2 does: all or none of a zone, and no zone at all if one id is not known."""
        ids = list(dict.fromkeys(_numbered(params, "InstanceId")))
        if not ids or len(ids) > _MOST_IDS:
            raise ApiError("InvalidParameterValue", f"{len(ids)} instance ids")
        if wrong := [each for each in ids if not _ID.fullmatch(each)]:
            raise ApiError("InvalidInstanceID.Malformed", f'Invalid id: "{wrong[0]}"')
        self._take("TerminateInstances", region)
        asked = self._known(region, ids)
        self._take("TerminateInstances/resources", region, len(asked))
        guarded = {each.machine.zone: each.machine.instance_id for each in asked if each.machine.guarded}
        rows = [self._ended(each) for each in asked if each.machine.zone not in guarded]
        self._changes[region] += 1
        if guarded:
            raise ApiError("OperationNotPermitted", _PROTECTED.format(next(iter(guarded.values()))))
        return Answer(body=ec2_answer("TerminateInstances", listed("instancesSet", rows)), items=len(rows))

    def _ended(self, each: Standing) -> bytes:
        before = each.state
        if before != "terminated":
            each.turn("shutting-down")
            self._ending.setdefault(each.machine.region, []).append(each)
        return item(
            instanceId=each.machine.instance_id,
            currentState={"code": CODES[each.state], "name": each.state},
            previousState={"code": CODES[before], "name": before},
        )

    def _take(self, bucket: str, region: str, amount: int = 1) -> None:
        if not self._buckets.take(bucket, region, amount):
            raise THROTTLED


def _status(each: Standing) -> bytes:
    passed = {"status": "ok", "details": {"item": {"name": "reachability", "status": "passed"}}}
    return item(
        instanceId=each.machine.instance_id,
        availabilityZone=each.machine.zone,
        instanceState={"code": CODES[each.state], "name": each.state},
        systemStatus=passed,
        instanceStatus=passed,
    )


def _identity(_region: str, _params: Params) -> Answer:
    arn = f"arn:aws:iam::{ACCOUNT}:user/bench"
    told = f"<Arn>{arn}</Arn><UserId>AIDAEXAMPLE</UserId><Account>{ACCOUNT}</Account>"
    return Answer(body=query_answer("sts", "GetCallerIdentity", told))


def _aliases(_region: str, _params: Params) -> Answer:
    told = "<IsTruncated>false</IsTruncated><AccountAliases><member>bench</member></AccountAliases>"
    return Answer(body=query_answer("iam", "ListAccountAliases", told))


# ---------------------------------------------------------------- parameters


def _numbered(params: Params, name: str) -> list[str]:
    found: list[str] = []
    while (value := params.get(f"{name}.{len(found) + 1}")) is not None:
        found.append(value)
    return found


def _page_size(params: Params) -> int | None:
    asked = params.get("MaxResults")
    if asked is None:
        return None
    if not asked.isdecimal() or int(asked) not in _PAGE_SIZES:
        raise ApiError("InvalidParameterValue", f"Value ( {asked} ) for parameter maxResults is invalid.")
    return int(asked)


def _filters(params: Params) -> Iterator[tuple[str, tuple[str, ...]]]:
    number = 1
    while (name := params.get(f"Filter.{number}.Name")) is not None:
        values = tuple(_numbered(params, f"Filter.{number}.Value"))
        if not 0 < len(values) <= _MOST_VALUES:
            raise ApiError("FilterLimitExceeded", f"{len(values)} values for the filter {name}")
        yield name, values
        number += 1


_OF_A_FILTER: Mapping[str, Callable[[Standing], Iterable[str]]] = {
    "availability-zone": lambda each: (each.machine.zone,),
    "instance-id": lambda each: (each.machine.instance_id,),
    "instance-state-name": lambda each: (each.state,),
    "tag-key": lambda each: (key for key, _ in each.machine.tags()),
}


def _predicate(name: str, values: tuple[str, ...]) -> Predicate:
    if name == f"tag:{OWNER_TAG}" and not any(map(_is_pattern, values)):
        # What every candidate asks for, and no work for us: the clock runs for them.
        wanted = "bench" in values
        return lambda each: wanted and each.machine.owned
    if name.startswith("tag:"):
        key = name.removeprefix("tag:")
        return _any_of(lambda each: (value for found, value in each.machine.tags() if found == key), values)
    if name not in _OF_A_FILTER:
        raise ApiError("InvalidParameterValue", f"The filter '{name}' is invalid")
    return _any_of(_OF_A_FILTER[name], values)


def _any_of(words: Callable[[Standing], Iterable[str]], values: tuple[str, ...]) -> Predicate:
    patterns = [re.compile(fnmatch.translate(value.replace("[", "[[]"))) for value in values if _is_pattern(value)]
    plain = frozenset(value for value in values if not _is_pattern(value))
    return lambda each: any(word in plain or any(one.match(word) for one in patterns) for word in words(each))


def _is_pattern(value: str) -> bool:
    return "*" in value or "?" in value


def _all_of(predicates: list[Predicate]) -> Predicate:
    if len(predicates) == 1:
        return predicates[0]
    return lambda each: all(holds(each) for holds in predicates)


# ---------------------------------------------------------------- tokens


def _sealed(start: int, page: int, request: str) -> str:
    return base64.urlsafe_b64encode(f"{start} {page} {request}".encode()).decode()


def _opened(token: str | None, request: str) -> tuple[int, int]:
    """Return where a page starts and its number. A token is good for the request that it came from, and no other."""
    if not token:
        return 0, 0
    try:
        start, page, of = base64.urlsafe_b64decode(token).decode().split(" ", 2)
        if of == request:
            return int(start), int(page)
    except ValueError:
        pass
    raise ApiError("InvalidNextToken", "The token is not valid for this request")
