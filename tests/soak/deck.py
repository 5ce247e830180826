"""All faults."""

from __future__ import annotations

from tests.soak.card import Card
from tests.soak.cloud_cards import IDENTITIES, LISTINGS, TERMINATIONS
from tests.soak.host_cards import LEDGERS, REGISTRIES, STANDING


def deck() -> list[Card]:
    """Return every card once."""
    return [*LISTINGS, *IDENTITIES, *REGISTRIES, *LEDGERS, *TERMINATIONS, *STANDING]
