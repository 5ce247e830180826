"""What EC2 says of spot prices, read into offers. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation

from providers.capacity import Kind, Offer
from providers.model import Scope

PRODUCT = "Linux/UNIX"
_PRODUCTS = frozenset({PRODUCT, f"{PRODUCT} (Amazon VPC)"})
"""One and the same, by its name of today and that of when there was something else than a VPC."""
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Pools:
    """The offers of one region, and how many pools have a price that cannot be read."""

    offers: tuple[Offer, ...]
    unreadable: int = 0


def pools_of(rows: Iterable[Mapping[str, object]], scope: Scope, wanted: Collection[str]) -> Pools:
    """Return one offer for each type and zone, at its newest price. `wanted` empty: every type.

    When the newest price cannot be read the pool has no offer. An older one is known to be wrong.
    """
    newest: dict[tuple[str, str], tuple[datetime, object]] = {}
    for row in rows:
        pool = (str(row.get("InstanceType", "")), str(row.get("AvailabilityZone", "")))
        if not all(pool) or not _is_asked_for(row, wanted):
            continue
        since = _moment(row.get("Timestamp"))
        if pool not in newest or since > newest[pool][0]:
            newest[pool] = (since, row.get("SpotPrice"))
    priced = {pool: _price(text) for pool, (_, text) in sorted(newest.items())}
    offers = tuple(_offer(scope, pool, price) for pool, price in priced.items() if price is not None)
    return Pools(offers, len(priced) - len(offers))


def _is_asked_for(row: Mapping[str, object], wanted: Collection[str]) -> bool:
    """Return whether the row is of the wanted types and of Linux, whatever the cloud's own filter did."""
    return row.get("ProductDescription", PRODUCT) in _PRODUCTS and (not wanted or row.get("InstanceType") in wanted)


def _offer(scope: Scope, pool: tuple[str, str], price: Decimal) -> Offer:
    instance_type, zone = pool
    return Offer(
        provider=scope.provider,
        instance_type=instance_type,
        region=scope.region,
        zone=zone,
        kind=Kind.SPOT,
        price_per_hour=price,
        currency="USD",
    )


def _price(text: object) -> Decimal | None:
    """Return the price; None when it is no positive number. Nothing is for nothing."""
    if not isinstance(text, str):
        return None
    try:
        price = Decimal(text)
    except InvalidOperation:
        return None
    return price if price.is_finite() and price > 0 else None


def _moment(value: object) -> datetime:
    if not isinstance(value, datetime):
        return _LONG_AGO
    return value if value.tzinfo is not None else value.replace(tzinfo=UTC)
