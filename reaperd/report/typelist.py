"""Types of machine with what they have and cost, and the reasons of those who did not say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from providers.capacity import QuoteFailure
from providers.catalogue import InstanceType
from reaperd.report.document import Document
from reaperd.report.paper import Paper
from reaperd.report.quote import SHOWN, draw_failures, failure_document
from reaperd.report.sheet import sheet

COLUMNS = (
    "provider",
    "name",
    "gpu_count",
    "gpu_type",
    "memory_gib",
    "vcpus",
    "available",
    "region",
    "price_per_hour",
    "price_kind",
)
_NAMED = 1
"""So many regions are named; of more there is the number. `--region` and the other formats tell of each."""
_DEAREST = Decimal("Infinity")


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """What one question brought."""

    types: tuple[tuple[str, InstanceType], ...]
    """Each with the provider that has it."""
    failures: tuple[QuoteFailure, ...] = ()
    without: tuple[str, ...] = ()
    """Providers that have no list of types."""

    def of(self, names: tuple[str, ...], region: str) -> Catalogue:
        """Return only these types, if any are named, and only what a region offers, if one is; the cheapest first."""
        kept = [
            (provider, each)
            for provider, each in self.types
            if (not names or each.name in names) and (not region or region in each.regions)
        ]

        def by_price(entry: tuple[str, InstanceType]) -> tuple[bool, Decimal, str, str]:
            provider, each = entry
            price = each.price_in(region) if region else each.price_per_hour
            return (not each.available, _DEAREST if price is None else price, each.name, provider)

        return Catalogue(types=tuple(sorted(kept, key=by_price)), failures=self.failures, without=self.without)


def catalogue_document(catalogue: Catalogue) -> Document:
    """Return the types as JSON. A price and an amount of memory are texts: they are exact."""
    return {
        "kind": "types",
        "types": [{"provider": provider, **type_document(each)} for provider, each in catalogue.types],
        "failures": [failure_document(failure) for failure in catalogue.failures],
        "without": list(catalogue.without),
    }


def type_document(each: InstanceType) -> Document:
    """Return one type. `price_per_hour` is None when it is not known, in all regions or in one."""
    return {
        "name": each.name,
        "gpu_count": each.gpu_count,
        "gpu_type": each.gpu_type,
        "memory_gib": f"{each.memory_gib:f}",
        "vcpus": each.vcpus,
        "available": each.available,
        "price_per_hour": _price(each.price_per_hour),
        "currency": "USD",
        "price_kind": str(each.price_kind),
        "regions": [{"region": region, "price_per_hour": _price(each.price_in(region))} for region in each.regions],
    }


def catalogue_sheet(catalogue: Catalogue) -> str:
    """Return one line for every type and region that offers it, and one for a type that nobody offers."""
    return sheet(COLUMNS, _lines(catalogue))


def _lines(catalogue: Catalogue) -> Iterator[Document]:
    for provider, each in catalogue.types:
        front = {"provider": provider, **type_document(each)}
        if not each.regions:
            yield {**front, "price_per_hour": None}
        for region in each.regions:
            yield {**front, "region": region, "price_per_hour": _price(each.price_in(region))}


def draw_catalogue(catalogue: Catalogue, paper: Paper, *, region: str = "", limit: int | None = SHOWN) -> None:
    """Draw the types, then who has none to show and why. Prices are those of the region, if one is named."""
    shown = catalogue.types[:limit]
    header = ("PRICE/HOUR", "KIND", "TYPE", "GPUS", "MEMORY", "VCPUS", "PROVIDER", "REGIONS")
    if shown:
        paper.rows(header, [_row(provider, each, region) for provider, each in shown], right=(0, 4, 5))
    else:
        paper.line("No types.")
    if len(shown) < len(catalogue.types):
        paper.line(f"and {len(catalogue.types) - len(shown):,} more", indent=2)
    draw_failures(catalogue.failures, paper)
    for provider in catalogue.without:
        paper.line()
        paper.line(f"provider {provider!r} has no list of types")


def _row(provider: str, each: InstanceType, region: str) -> tuple[str, ...]:
    price = _price(each.price_in(region) if region else each.price_per_hour)
    where = ", ".join(each.regions) if len(each.regions) <= _NAMED else f"{len(each.regions)} regions"
    return (
        "unknown" if price is None else f"{price} USD",
        str(each.price_kind).replace("_", "-"),
        each.name,
        f"{each.gpu_count} x {each.gpu_type}" if each.gpu_count else "-",
        f"{_rounded(each.memory_gib)} GiB",
        str(each.vcpus),
        provider,
        region or where or "nowhere",
    )


def _rounded(amount: Decimal) -> str:
    """Return an amount with two decimals at the most: EC2 has types with 1.69921875 GiB. The JSON has them all."""
    return f"{amount:.2f}".rstrip("0").rstrip(".")


def _price(price: Decimal | None) -> str | None:
    return None if price is None else f"{price:f}"
