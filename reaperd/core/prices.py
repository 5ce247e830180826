"""What an hour of a machine costs, by the operator's own list. Pure.

A price is shown and summed. No machine goes or stays because of one.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from providers.model import InstanceRef

Prices = Mapping[str, float]
"""US dollars an hour by `TYPE`, `PROVIDER/TYPE` or `PROVIDER/REGION/TYPE`."""

NO_PRICES: Prices = MappingProxyType({})


def price_of(ref: InstanceRef, instance_type: str | None, prices: Prices) -> float | None:
    """Return what the list says of a machine, by its most precise entry; None when it says nothing. Never guessed."""
    if instance_type is None or not prices:
        return None
    names = (f"{ref.provider}/{ref.region}/{instance_type}", f"{ref.provider}/{instance_type}", instance_type)
    return next((prices[name] for name in names if name in prices), None)
