"""What kinds of machines clouds have and what they cost, as frozen values. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from providers.capacity import Kind, Offer

NO_PRICES: Mapping[str, Decimal] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceType:
    """A kind of machine, as a price list has it."""

    name: str
    gpu_count: int = 0
    gpu_type: str = ""
    memory_gib: Decimal
    vcpus: int
    price_per_hour: Decimal | None
    """In US dollars; where the regions differ, the lowest of them. None when the cloud does not tell it: not free."""
    price_kind: Kind = Kind.ON_DEMAND
    """What is had for that price."""
    region_prices: Mapping[str, Decimal] = field(default_factory=lambda: NO_PRICES, hash=False)
    """For a cloud whose regions differ: of each whose price is known, the lowest. Empty: price_per_hour everywhere."""
    regions: tuple[str, ...] = ()
    """Where it can be had now; empty when nowhere."""
    available: bool
    """False when it cannot be had now, whatever the regions say."""

    def price_in(self, region: str) -> Decimal | None:
        """Return what it costs an hour in a region, in US dollars; None when that is not known."""
        return self.region_prices.get(region) if self.region_prices else self.price_per_hour


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One kind of accelerator in a machine."""

    name: str
    manufacturer: str = ""
    count: int = 1
    memory_mib: int | None = None
    """Of one of them. None when not told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuInfo:
    """The accelerators of a machine."""

    gpus: tuple[Gpu, ...] = ()
    total_memory_mib: int = 0
    unreadable: str = ""
    """What was wrong with the text that this was read from; the accelerators are then not known, not absent."""


def offers_of(types: Iterable[InstanceType], *, provider: str) -> tuple[Offer, ...]:
    """Return an offer for each type and region in which it can be had now; without a price there is no offer."""
    return tuple(
        Offer(provider=provider, instance_type=each.name, region=region, kind=each.price_kind, price_per_hour=price)
        for each in types
        if each.available
        for region in each.regions
        if (price := each.price_in(region)) is not None
    )


def read_gpu_info(text: str) -> GpuInfo:
    """Return the accelerators that a JSON text of the form `{"Gpus": [...], "TotalGpuMemoryInMiB": n}` tells.

    An empty text tells of none. One that cannot be read is said to be so in the answer: the accelerators of a row are
    no reason to lose the row.
    """
    if not text.strip():
        return GpuInfo()
    try:
        told = json.loads(text)
        gpus = tuple(_gpu(each) for each in told.get("Gpus") or ())
        total = told.get("TotalGpuMemoryInMiB")
        return GpuInfo(gpus=gpus, total_memory_mib=_summed(gpus) if total is None else int(total))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        return GpuInfo(unreadable=f"{type(error).__name__}: {error}")


def _gpu(told: Any) -> Gpu:  # noqa: ANN401 - whatever the JSON holds
    size = (told.get("MemoryInfo") or {}).get("SizeInMiB")
    return Gpu(
        name=str(told["Name"]),
        manufacturer=str(told.get("Manufacturer", "")),
        count=int(told.get("Count", 1)),
        memory_mib=None if size is None else int(size),
    )


def _summed(gpus: tuple[Gpu, ...]) -> int:
    return sum(gpu.count * (gpu.memory_mib or 0) for gpu in gpus)
