"""What EC2 says of its types, read."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from providers.aws.errors import BrokenAnswerError
from providers.aws.types import Hardware, RegionTypes, hardware_of, lowest_of, offered_of, price_list
from providers.capacity import Kind, Offer

SMALL = Hardware(name="t3.nano", vcpus=2, memory_gib=Decimal("0.5"), gpu_count=0, gpu_type="")
LARGE = Hardware(name="g5.48xlarge", vcpus=192, memory_gib=Decimal(768), gpu_count=8, gpu_type="A10G")


def described(**changes: Any) -> dict[str, Any]:
    row: dict[str, Any] = {
        "InstanceType": "t3.nano",
        "VCpuInfo": {"DefaultVCpus": 2},
        "MemoryInfo": {"SizeInMiB": 512},
    }
    return {key: value for key, value in (row | changes).items() if value is not None}


def told(region: str, *types: Hardware, offered: set[str], prices: dict[str, str]) -> RegionTypes:
    return RegionTypes(
        region=region,
        described=types,
        offered=frozenset(offered),
        prices={name: Decimal(price) for name, price in prices.items()},
    )


def test_a_type_has_memory_and_processors():
    assert hardware_of([described()]) == (SMALL,)


@pytest.mark.parametrize(
    ("gpus", "count", "kind"),
    [
        ([{"Name": "A10G", "Count": 8}], 8, "A10G"),
        ([{"Name": "A10G", "Count": 4, "LogicalGpuCount": 4, "GpuPartitionSize": 1.0}], 4, "A10G"),
        ([{"Name": "L4", "Count": 0, "LogicalGpuCount": 1, "GpuPartitionSize": 0.125}], 1, "0.125 L4"),
        ([{"Name": "L4", "Count": 0}], 1, "L4"),
        ([{"Name": "A", "Count": 1}, {"Name": "B", "Count": 2}], 3, "A + B"),
        ([{"Count": 1}], 1, "unknown"),
        ([], 0, ""),
    ],
)
def test_gpus_are_counted_as_the_machine_sees_them(gpus: list[dict[str, Any]], count: int, kind: str):
    (read,) = hardware_of([described(GpuInfo={"Gpus": gpus})])

    assert (read.gpu_count, read.gpu_type) == (count, kind)


def test_an_accelerator_that_is_no_gpu_is_none():
    (read,) = hardware_of([described(InferenceAcceleratorInfo={"Accelerators": [{"Name": "Inferentia", "Count": 4}]})])

    assert (read.gpu_count, read.gpu_type) == (0, "")


@pytest.mark.parametrize(
    "row",
    [
        described(InstanceType=None),
        described(InstanceType=""),
        described(VCpuInfo=None),
        described(VCpuInfo={}),
        described(VCpuInfo={"DefaultVCpus": 0}),
        described(MemoryInfo=None),
        described(MemoryInfo={"SizeInMiB": "512"}),
        described(GpuInfo={"Gpus": "many"}),
        described(GpuInfo={"Gpus": ["A10G"]}),
        described(GpuInfo="A10G"),
    ],
)
def test_a_type_that_does_not_say_what_it_has_is_no_answer(row: dict[str, Any]):
    with pytest.raises(BrokenAnswerError):
        hardware_of([row])


def test_an_offering_names_a_type():
    assert offered_of([{"InstanceType": "t3.nano", "Location": "eu-west-1"}]) == {"t3.nano"}
    with pytest.raises(BrokenAnswerError):
        offered_of([{"Location": "eu-west-1"}])


def test_the_price_of_a_region_is_that_of_its_cheapest_zone():
    zones = [("eu-west-1a", "0.3"), ("eu-west-1b", "0.1"), ("eu-west-1c", "0.2")]
    offers = [
        Offer(provider="aws", instance_type="t3.nano", region="eu-west-1", zone=zone, price_per_hour=Decimal(price))
        for zone, price in zones
    ]

    assert lowest_of(offers) == {"t3.nano": Decimal("0.1")}


def test_a_type_stands_once_with_every_region_that_offers_it():
    regions = [
        told("us-east-1", SMALL, LARGE, offered={"t3.nano"}, prices={"t3.nano": "0.1"}),
        told("eu-west-1", SMALL, offered={"t3.nano"}, prices={"t3.nano": "0.2"}),
    ]

    large, small = price_list(regions)

    assert (small.name, small.regions, small.available) == ("t3.nano", ("eu-west-1", "us-east-1"), True)
    assert (small.price_per_hour, small.price_kind) == (Decimal("0.1"), Kind.SPOT)
    assert [small.price_in(region) for region in small.regions] == [Decimal("0.2"), Decimal("0.1")]
    assert (large.name, large.gpu_count, large.regions, large.available) == ("g5.48xlarge", 8, (), False)


def test_a_price_where_a_type_is_not_offered_is_none_of_it():
    regions = [
        told("eu-west-1", SMALL, offered={"t3.nano"}, prices={}),
        told("us-east-1", SMALL, offered=set(), prices={"t3.nano": "0.1"}),
    ]

    (small,) = price_list(regions)

    assert (small.regions, small.price_per_hour, dict(small.region_prices)) == (("eu-west-1",), None, {})
