"""What EC2 says of its instance types, read into a price list. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType

from providers.aws.answers import Answer
from providers.aws.errors import MALFORMED, BrokenAnswerError
from providers.capacity import Kind, Offer
from providers.catalogue import InstanceType

_MIB_OF_A_GIB = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """What a type has, wherever it is offered."""

    name: str
    vcpus: int
    memory_gib: Decimal
    gpu_count: int
    gpu_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionTypes:
    """What one region says: the types that it describes, those that it offers, and what they cost as spot machines."""

    region: str
    described: tuple[Hardware, ...]
    offered: frozenset[str]
    prices: Mapping[str, Decimal]
    """By type, in US dollars an hour: the lowest of its zones."""


def hardware_of(rows: Iterable[Answer]) -> tuple[Hardware, ...]:
    """Return what DescribeInstanceTypes says.

    Only GPUs count as such: AWS's own accelerators (Inferentia, Trainium) and FPGAs do not. Half a GPU is one of the
    type `0.5 L4`.

    Raises:
        BrokenAnswerError: if a type has no name, no memory or no processors.
    """
    return tuple(_hardware(row) for row in rows)


def offered_of(rows: Iterable[Answer]) -> frozenset[str]:
    """Return the types that DescribeInstanceTypeOfferings names.

    Raises:
        BrokenAnswerError: if an offering names none.
    """
    return frozenset(_name(row) for row in rows)


def lowest_of(offers: Iterable[Offer]) -> Mapping[str, Decimal]:
    """Return what each type costs in its cheapest zone."""
    lowest: dict[str, Decimal] = {}
    for offer in offers:
        known = lowest.get(offer.instance_type)
        lowest[offer.instance_type] = offer.price_per_hour if known is None else min(known, offer.price_per_hour)
    return lowest


def price_list(regions: Iterable[RegionTypes]) -> tuple[InstanceType, ...]:
    """Return every type that any of the regions describes, by name, with where it is offered and for how much."""
    told = tuple(sorted(regions, key=lambda each: each.region))
    hardware = {each.name: each for region in told for each in region.described}
    return tuple(_listed(hardware[name], told) for name in sorted(hardware))


def _listed(hardware: Hardware, told: tuple[RegionTypes, ...]) -> InstanceType:
    here = [each for each in told if hardware.name in each.offered]
    prices = {each.region: each.prices[hardware.name] for each in here if hardware.name in each.prices}
    return InstanceType(
        name=hardware.name,
        gpu_count=hardware.gpu_count,
        gpu_type=hardware.gpu_type,
        memory_gib=hardware.memory_gib,
        vcpus=hardware.vcpus,
        price_per_hour=min(prices.values(), default=None),
        price_kind=Kind.SPOT,
        region_prices=MappingProxyType(prices),
        regions=tuple(each.region for each in here),
        available=bool(here),
    )


def _hardware(row: Answer) -> Hardware:
    name = _name(row)
    gpus = _gpus(row, name)
    return Hardware(
        name=name,
        vcpus=_number(_within(row, "VCpuInfo", name), "DefaultVCpus", name),
        memory_gib=Decimal(_number(_within(row, "MemoryInfo", name), "SizeInMiB", name)) / _MIB_OF_A_GIB,
        gpu_count=sum(map(_devices, gpus)),
        gpu_type=" + ".join(dict.fromkeys(map(_kind_of_gpu, gpus))),
    )


def _gpus(row: Answer, name: str) -> list[Answer]:
    if "GpuInfo" not in row:
        return []
    gpus = _within(row, "GpuInfo", name).get("Gpus", [])
    if not isinstance(gpus, list) or not all(isinstance(gpu, Mapping) for gpu in gpus):
        raise BrokenAnswerError(MALFORMED, f"the GPUs of {name} are no list")
    return gpus


def _devices(gpu: Answer) -> int:
    """Return how many of these the machine sees. Of whole ones a machine with a part of one has none."""
    return next((n for key in ("LogicalGpuCount", "Count") if isinstance(n := gpu.get(key), int) and n > 0), 1)


def _kind_of_gpu(gpu: Answer) -> str:
    name, part = gpu.get("Name"), gpu.get("GpuPartitionSize")
    told = name if isinstance(name, str) and name else "unknown"
    return f"{part:g} {told}" if isinstance(part, float) and 0 < part < 1 else told


def _name(row: Answer) -> str:
    name = row.get("InstanceType")
    if not isinstance(name, str) or not name:
        raise BrokenAnswerError(MALFORMED, "an instance type without a name")
    return name


def _within(row: Answer, key: str, name: str) -> Answer:
    found = row.get(key)
    if not isinstance(found, Mapping):
        raise BrokenAnswerError(MALFORMED, f"{name} has no {key}")
    return found


def _number(row: Answer, key: str, name: str) -> int:
    found = row.get(key)
    if not isinstance(found, int) or found <= 0:
        raise BrokenAnswerError(MALFORMED, f"{name} has no {key}")
    return found
