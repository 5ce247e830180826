"""A large region is listed by its zones, and only if that is proved to be all of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import pytest

from providers.aws import AwsAccount, AwsOptions, aws_lister
from providers.aws.hooks import READ_ONLY
from providers.aws.region import AwsRegion
from providers.aws.session import AwsSessions
from providers.errors import IncompleteListingError, ProviderSetupError
from providers.model import Coverage, Scope, ScopeFailure
from reaperd.clock import ManualClock
from tests.support.ec2 import FaultyEc2
from tests.support.ec2.model import Zone
from tests.unit.providers.aws.builders import REGION, hole, lister, options
from tests.unit.providers.aws.canned import (
    ACCOUNT,
    NOW,
    CannedAws,
    Reply,
    answer,
    failure,
    instance,
    page,
    reservation,
)

A, B, C, LOCAL = (f"{REGION}{suffix}" for suffix in ("a", "b", "c", "-loc-1a"))


@pytest.fixture
def cloud() -> Iterator[FaultyEc2]:
    with FaultyEc2(now=NOW) as started:
        yield started


def account(cloud: FaultyEc2, **changes: Any) -> AwsAccount:
    given = {"regions": (REGION,), "split_by_zone": (REGION,), "account": cloud.world.account} | changes
    return aws_lister(options(endpoint_url=cloud.url, **given), clock=ManualClock(NOW))


def fleet(cloud: FaultyEc2, *zones: str) -> set[str]:
    return {cloud.add_instance(region=REGION, owner="prod", worker="w", az=zone) for zone in zones}


def filters(cloud: FaultyEc2) -> list[tuple[str, ...]]:
    """Return the zones that each listing was asked for; none where it was asked for all of them."""
    sent = (exchange.request.filters() for exchange in cloud.requests("DescribeInstances"))
    return sorted(tuple(dict(each).get("availability-zone", ())) for each in sent)


def broken(seeing: AwsAccount) -> Coverage:
    with pytest.raises(IncompleteListingError) as raised:
        seeing.list_owned()
    (coverage,) = raised.value.coverage
    return coverage


def zones(*names: str, region: str = REGION, kind: str = "availability-zone") -> Reply:
    rows = "".join(
        f"<item><zoneName>{name}</zoneName><regionName>{region}</regionName><zoneType>{kind}</zoneType></item>"
        for name in names
    )
    return Reply(answer("DescribeAvailabilityZones", f"<availabilityZoneInfo>{rows}</availabilityZoneInfo>"))


def placed(instance_id: str, zone: str) -> str:
    where = f"<placement><availabilityZone>{zone}</availabilityZone></placement>"
    return reservation(instance(instance_id, more=where if zone else ""))


def split(aws: CannedAws, **changes: Any) -> AwsAccount:
    return lister(aws, split_by_zone=(REGION,), **changes)


# ---------------------------------------------------------------- it is all of the region


def test_a_region_in_parts_is_the_region(cloud: FaultyEc2) -> None:
    ids = fleet(cloud, A, A, B, C, LOCAL, A)
    cloud.add_instance(region=REGION, owner="prod-us", worker="w", az=B)

    inventory = account(cloud).list_owned()
    whole = account(cloud, split_by_zone=()).list_owned()

    assert {each.ref.instance_id for each in inventory} == ids
    assert sorted(inventory, key=lambda each: each.ref) == sorted(whole, key=lambda each: each.ref)
    (coverage,) = inventory.coverage
    assert (coverage.scope, coverage.instances, coverage.pages) == (Scope("aws", REGION), 6, 4)


def test_an_audit_of_a_region_in_parts_is_one_of_the_region(cloud: FaultyEc2) -> None:
    fleet(cloud, A, B, LOCAL)
    stranger = cloud.add_instance(region=REGION, az=C)

    swept = account(cloud).audit_instances()
    whole = account(cloud, split_by_zone=()).audit_instances()

    seen = {each.ref: each for each in swept.instances}
    assert seen == {each.ref: each for each in whole.instances if each.ref.region == REGION} | seen
    assert stranger in {ref.instance_id for ref in seen}
    assert all(entry.ok for entry in swept.coverage)


def test_each_zone_has_its_pages_and_the_small_ones_share_theirs(cloud: FaultyEc2) -> None:
    cloud.configure(
        zones={
            REGION: [
                Zone(A),
                Zone(B, state="unavailable"),
                Zone(LOCAL, kind="local-zone", opted="not-opted-in"),
                Zone(f"{REGION}-wl1-lon-wlz-1", kind="wavelength-zone", opted="opted-in"),
            ]
        }
    )

    account(cloud).list_owned()

    assert filters(cloud) == [(LOCAL, f"{REGION}-wl1-lon-wlz-1"), (A,), (B,)]
    (asked,) = cloud.requests("DescribeAvailabilityZones")
    assert asked.request.params["AllAvailabilityZones"] == "true"


def test_more_small_zones_than_a_filter_takes_are_several_parts(cloud: FaultyEc2) -> None:
    many = [Zone(f"{REGION}-loc-{number}", kind="local-zone") for number in range(401)]
    cloud.configure(zones={REGION: [Zone(A), *many]})

    account(cloud).list_owned()

    asked = filters(cloud)
    assert sorted(map(len, asked)) == [1, 1, 200, 200]
    assert {zone for part in asked for zone in part} == {A, *(zone.name for zone in many)}


def test_only_what_is_named_is_split(cloud: FaultyEc2) -> None:
    fleet(cloud, A, B)

    inventory = account(cloud, split_by_zone=("us-east-1",)).list_owned()

    assert len(inventory) == 2
    assert filters(cloud) == [()]
    assert cloud.requests("DescribeAvailabilityZones") == []


def test_the_owner_is_still_asked_for(cloud: FaultyEc2) -> None:
    account(cloud).list_owned()

    for exchange in cloud.requests("DescribeInstances"):
        assert dict(exchange.request.filters())["tag:reaperd:owner"] == ["prod"]


def test_the_pages_of_each_part_are_followed_to_their_end(cloud: FaultyEc2) -> None:
    ids = fleet(cloud, *([A] * 12), *([B] * 7), LOCAL)

    inventory = account(cloud, page_size=5).list_owned()

    assert {each.ref.instance_id for each in inventory} == ids
    assert inventory.coverage[0].pages == 3 + 2 + 1 + 1


def test_the_parts_tell_their_progress_together(cloud: FaultyEc2) -> None:
    fleet(cloud, A, B, B, LOCAL)
    told: list[tuple[int, int]] = []

    def progress(scope: Scope, *, pages: int, instances: int) -> None:
        told.append((pages, instances))

    given = options(endpoint_url=cloud.url, account=cloud.world.account, split_by_zone=(REGION,))
    aws_lister(given, clock=ManualClock(NOW), progress=progress).list_owned()

    assert [pages for pages, _ in told] == [1, 2, 3, 4]
    assert told[-1] == (4, 4)


@pytest.mark.parametrize("names", [("US",), ("eu-west-1", "eu west 1")])
def test_what_is_to_be_split_has_a_regions_name(names: Sequence[str]) -> None:
    with pytest.raises(ProviderSetupError, match="split_by_zone"):
        AwsOptions(name="aws", deployment="prod", split_by_zone=tuple(names))


# ---------------------------------------------------------------- or it is nothing


@pytest.mark.parametrize("zone", [A, B, C, LOCAL])
def test_a_part_that_fails_fails_the_region(cloud: FaultyEc2, zone: str) -> None:
    fleet(cloud, A, B, C, LOCAL)
    cloud.fault(action="DescribeInstances", code="UnauthorizedOperation", params={"Filter.2.Value.1": zone})

    failed = broken(account(cloud))

    assert failed.error_code == "UnauthorizedOperation"
    assert failed.scope == Scope("aws", REGION)


@pytest.mark.parametrize(
    "kind", ["missing_set", "malformed", "truncated", "drop", "repeated_token", "html", "duplicate"]
)
def test_a_fault_on_a_later_page_of_a_part_fails_the_region(cloud: FaultyEc2, kind: str) -> None:
    fleet(cloud, A, *([B] * 9))
    cloud.fault(kind, action="DescribeInstances", page=2)

    assert not broken(account(cloud, page_size=5)).ok


def test_without_its_zones_a_region_is_not_listed(cloud: FaultyEc2) -> None:
    fleet(cloud, A)
    cloud.fault(action="DescribeAvailabilityZones", code="UnauthorizedOperation")

    assert broken(account(cloud)).error_code == "UnauthorizedOperation"
    assert cloud.requests("DescribeInstances") == []


@pytest.mark.parametrize(
    "reply",
    [
        zones(),
        zones(""),
        zones(A, A),
        zones(A, B, region="eu-west-2"),
        Reply(answer("DescribeAvailabilityZones", "")),
        Reply("<html/>"),
    ],
    ids=["none", "no name", "twice", "elsewhere", "no list", "a page"],
)
def test_zones_that_are_not_all_named_once_are_no_proof(canned: CannedAws, reply: Reply) -> None:
    canned.will("DescribeAvailabilityZones", reply)

    assert hole(split(canned)).error_code == "malformed_answer"
    assert canned.asked("DescribeInstances") == []


@pytest.mark.parametrize("zone", [C, "", "eu-west-1A"])
def test_a_machine_in_a_zone_that_was_not_asked_for_shows_that_there_may_be_more(canned: CannedAws, zone: str) -> None:
    canned.will("DescribeAvailabilityZones", zones(A, B))
    canned.will("DescribeInstances", Reply(page(placed("i-1", zone))))

    assert hole(split(canned)).error_code == "outside_zone"


def test_a_machine_in_two_parts_is_an_error(canned: CannedAws) -> None:
    canned.will("DescribeAvailabilityZones", zones(A, B))
    canned.by_parameter("Filter.2.Value.1", {A: Reply(page(placed("i-1", A))), B: Reply(page(placed("i-1", B)))})

    assert hole(split(canned)).error_code == "duplicate_instance"


def test_an_sdk_that_lets_a_page_be_read_by_itself_fails_a_part_too(canned: CannedAws) -> None:
    canned.will("DescribeAvailabilityZones", zones(A))
    canned.will("DescribeInstances", Reply("<DescribeInstancesResponse/>"))

    assert hole(split(canned)).error_code == "malformed_answer"


def test_a_part_whose_answers_have_no_date_proves_no_clock(canned: CannedAws) -> None:
    canned.will("DescribeAvailabilityZones", zones(A, B))
    canned.by_parameter("Filter.2.Value.1", {A: Reply(page()), B: Reply(page(), date=None)})

    assert hole(split(canned)).error_code == "no_date"


def test_the_worst_clock_of_all_parts_counts(canned: CannedAws) -> None:
    canned.will("DescribeAvailabilityZones", zones(A, B))
    late = NOW + timedelta(seconds=100)
    canned.by_parameter("Filter.2.Value.1", {A: Reply(page(), date=late), B: Reply(page())})

    assert split(canned).list_owned().coverage[0].clock_skew == timedelta(seconds=100)


def test_the_parts_share_one_deadline(canned: CannedAws) -> None:
    clock = ManualClock(NOW)
    letters = [f"{REGION}{letter}" for letter in "abcdefghijklmnop"]
    canned.will("DescribeAvailabilityZones", zones(*letters))
    canned.will("DescribeInstances", Reply(page(), before=lambda: clock.advance(timedelta(minutes=1))))
    given = options(endpoint_url=canned.url, split_by_zone=(REGION,))
    ec2 = AwsSessions(given, allowed=READ_ONLY).open().ec2(REGION)

    with pytest.raises(IncompleteListingError) as raised:
        AwsRegion(REGION, given, ec2, account=ACCOUNT, clock=clock).list_owned()

    (coverage,) = raised.value.coverage
    assert coverage.failure is ScopeFailure.DEADLINE
    assert "not listed within" in coverage.detail


def test_whatever_a_part_dies_of_fails_the_region(cloud: FaultyEc2) -> None:
    def progress(scope: Scope, *, pages: int, instances: int) -> None:
        raise SystemExit

    given = options(endpoint_url=cloud.url, account=cloud.world.account, split_by_zone=(REGION,), regions=(REGION,))

    assert broken(aws_lister(given, clock=ManualClock(NOW), progress=progress)).error_code == "system_exit"


def test_no_more_than_four_parts_are_asked_for_at_once(canned: CannedAws) -> None:
    letters = [f"{REGION}{letter}" for letter in "abcdefghijklmnop"]
    under_way: set[int] = set()
    seen: list[int] = []
    four_are_there = threading.Event()

    def look() -> None:
        under_way.add(threading.get_ident())
        seen.append(len(under_way))
        if len(under_way) >= 4:
            four_are_there.set()
        # With no more than three side by side nobody would ever set it.
        four_are_there.wait(60)
        under_way.remove(threading.get_ident())

    canned.will("DescribeAvailabilityZones", zones(*letters))
    canned.will("DescribeInstances", Reply(page(), before=look))

    split(canned).list_owned()

    assert {request["Filter.2.Value.1"] for request in canned.asked("DescribeInstances")} == set(letters)
    assert max(seen) == 4


def test_a_denied_part_stands_for_all_with_its_own_words(canned: CannedAws) -> None:
    canned.will("DescribeAvailabilityZones", zones(A, B))
    canned.by_parameter("Filter.2.Value.1", {A: Reply(page(placed("i-1", A))), B: failure("RequestExpired")})

    failed = hole(split(canned))

    assert (failed.error_code, failed.instances) == ("RequestExpired", 1)
