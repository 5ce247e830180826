"""Launching onto the cheapest of several offers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from providers.capacity import Offer, WorkerHandle, WorkerSpec
from providers.errors import CapacityError, InvalidSpecError, OffersExhaustedError


class Launcher(Protocol):
    """The part of a Provider that launches."""

    def launch(self, worker_id: str, offer: Offer, spec: WorkerSpec) -> WorkerHandle:
        """See Provider.launch."""
        ...


def cheapest_first(offers: Iterable[Offer]) -> list[Offer]:
    """Return the offers by price; of equal ones always in the same order.

    Raises:
        InvalidSpecError: if one has no price, or they are in several currencies: neither can be compared.
    """
    kept = list(offers)
    currencies = sorted({offer.currency for offer in kept})
    if len(currencies) > 1:
        msg = f"offers in {' and '.join(currencies)} cannot be compared: choose among those in one currency"
        raise InvalidSpecError(msg, error_code="currencies")
    unpriced = [offer for offer in kept if not offer.is_priced]
    if unpriced:
        msg = f"{unpriced[0].instance_type} in {unpriced[0].provider}/{unpriced[0].region} has no price: quote it first"
        raise InvalidSpecError(msg, error_code="unpriced")
    return sorted(kept, key=lambda o: (o.price_per_hour, o.provider, o.region, o.zone, o.instance_type, o.kind))


def launch_cheapest(launcher: Launcher, worker_id: str, offers: Iterable[Offer], spec: WorkerSpec) -> WorkerHandle:
    """Launch onto the cheapest offer that can be had, and return the handle.

    The next offer is tried only when the cloud said that the one before has no capacity. Whatever else it says ends
    this, and an answer that is not known most of all: in another zone the same worker would get a second machine.

    Raises:
        OffersExhaustedError: if none could be had, with the cause of each.
        LaunchError: any other, as it came.
    """
    causes: list[CapacityError] = []
    for offer in cheapest_first(offers):
        try:
            return launcher.launch(worker_id, offer, spec)
        except CapacityError as error:
            causes.append(error)
    if not causes:
        msg = f"{worker_id}: there is no offer to launch onto"
        raise OffersExhaustedError(msg, ())
    said = "; ".join(str(cause) for cause in causes)
    msg = f"{worker_id}: none of {len(causes)} offers could be had: {said}"
    raise OffersExhaustedError(msg, causes) from ExceptionGroup("no capacity", causes)
