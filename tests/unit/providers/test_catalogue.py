from decimal import Decimal

import pytest

from providers.base import InstanceTypeLister, PricingModel
from providers.capacity import Kind
from providers.catalogue import Gpu, GpuInfo, InstanceType, offers_of, read_gpu_info
from providers.pricelist import ListedPrices


class List:
    name = "other"

    def list_instance_types(self):
        return (
            InstanceType(
                name="gpu_8x",
                gpu_count=8,
                gpu_type="H100",
                memory_gib=Decimal(1800),
                vcpus=208,
                price_per_hour=Decimal("27.92"),
                regions=("us-west-1", "us-west-2"),
                available=True,
            ),
        )


def test_a_price_list_is_a_source_of_prices():
    prices = ListedPrices(List())

    assert isinstance(List(), InstanceTypeLister)
    assert isinstance(prices, PricingModel)
    assert [(each.provider, each.instance_type, each.region, each.kind) for each in prices.get_prices()] == [
        ("other", "gpu_8x", "us-west-1", Kind.ON_DEMAND),
        ("other", "gpu_8x", "us-west-2", Kind.ON_DEMAND),
    ]
    assert {each.price_per_hour for each in prices.get_prices()} == {Decimal("27.92")}


def test_a_type_without_a_price_is_not_free():
    unpriced = InstanceType(
        name="t", memory_gib=Decimal(1), vcpus=1, price_per_hour=None, regions=("a",), available=True
    )

    assert offers_of([unpriced], provider="other") == ()


def test_where_the_regions_differ_each_has_its_own_price_or_none():
    varied = InstanceType(
        name="t",
        memory_gib=Decimal(1),
        vcpus=1,
        price_per_hour=Decimal("0.1"),
        price_kind=Kind.SPOT,
        region_prices={"a": Decimal("0.2"), "b": Decimal("0.1")},
        regions=("a", "b", "c"),
        available=True,
    )

    told = [(each.region, each.kind, each.price_per_hour) for each in offers_of([varied], provider="other")]

    assert told == [("a", Kind.SPOT, Decimal("0.2")), ("b", Kind.SPOT, Decimal("0.1"))]
    assert varied.price_in("c") is None


def test_what_cannot_be_had_now_is_not_offered():
    gone = InstanceType(
        name="t", memory_gib=Decimal(1), vcpus=1, price_per_hour=Decimal(1), regions=("a",), available=False
    )

    assert offers_of([gone], provider="other") == ()


def test_the_accelerators_of_a_row_are_read():
    text = """{"Gpus": [{"Name": "A10G", "Manufacturer": "NVIDIA", "Count": 4, "MemoryInfo": {"SizeInMiB": 24576}}],
               "TotalGpuMemoryInMiB": 98304}"""

    assert read_gpu_info(text) == GpuInfo(
        gpus=(Gpu(name="A10G", manufacturer="NVIDIA", count=4, memory_mib=24576),), total_memory_mib=98304
    )


def test_the_memory_of_all_is_summed_where_it_is_not_told():
    text = '{"Gpus": [{"Name": "A", "Count": 2, "MemoryInfo": {"SizeInMiB": 10}}, {"Name": "B"}]}'

    assert read_gpu_info(text).total_memory_mib == 20


@pytest.mark.parametrize("text", ["", " ", "{}", '{"Gpus": null}'])
def test_no_accelerators_are_none(text):
    assert read_gpu_info(text) == GpuInfo()


@pytest.mark.parametrize("text", ["{", "[]", "3", '{"Gpus": [3]}', '{"Gpus": [{"Count": 1}]}', '{"Gpus": 3}'])
def test_accelerators_that_cannot_be_read_are_said_to_be_so(text):
    info = read_gpu_info(text)

    assert (info.gpus, info.total_memory_mib) == ((), 0)
    assert info.unreadable
