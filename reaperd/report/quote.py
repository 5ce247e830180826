"""Offers, cheapest first, with the reasons of those who made none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from providers.capacity import Offer, QuoteFailure, WorkerHandle
from reaperd.report.document import Document, moment
from reaperd.report.paper import Paper
from reaperd.report.sheet import sheet

COLUMNS = ("price_per_hour", "currency", "kind", "instance_type", "provider", "region", "zone")
SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Quoted:
    """What one question brought."""

    offers: tuple[Offer, ...]
    """Cheapest first."""
    failures: tuple[QuoteFailure, ...] = ()
    closed: tuple[str, ...] = ()
    """A sentence for each cloud that was not asked, because its gate is off."""
    all_off: bool = False
    """True when no cloud was asked: each is off, or cannot quote."""


def quote_document(quoted: Quoted) -> Document:
    """Return one quote as JSON. A price is a text: it is money."""
    return {
        "kind": "quote",
        "offers": [offer_document(offer) for offer in quoted.offers],
        "failures": [failure_document(failure) for failure in quoted.failures],
        "closed": list(quoted.closed),
    }


def failure_document(failure: QuoteFailure) -> Document:
    """Return a place that did not say what it has."""
    return {
        "provider": failure.scope.provider,
        "region": failure.scope.region,
        "error_code": failure.error_code,
        "detail": failure.detail,
    }


def launch_document(handle: WorkerHandle) -> Document:
    """Return what was launched as JSON."""
    return {
        "kind": "launch",
        "worker_id": handle.worker_id,
        "provider": handle.ref.provider,
        "region": handle.ref.region,
        "instance_id": handle.instance_id,
        "launched_at": None if handle.launched_at is None else moment(handle.launched_at),
        "offer": offer_document(handle.offer),
    }


def launch_sheet(handle: WorkerHandle) -> str:
    """Return what was launched as one line."""
    return sheet(("worker_id", "provider", "region", "instance_id", "launched_at"), [launch_document(handle)])


def offer_document(offer: Offer) -> Document:
    """Return one offer."""
    return {
        "price_per_hour": f"{offer.price_per_hour:f}" if offer.is_priced else None,
        "currency": offer.currency,
        "kind": str(offer.kind),
        "instance_type": offer.instance_type,
        "provider": offer.provider,
        "region": offer.region,
        "zone": offer.zone,
    }


def quote_sheet(offers: Sequence[Offer]) -> str:
    """Return one line for every offer."""
    return sheet(COLUMNS, map(offer_document, offers))


def draw_quote(quoted: Quoted, paper: Paper, *, limit: int | None = SHOWN) -> None:
    """Draw the offers, then who has none to show and why. Without a limit every offer is shown."""
    shown = quoted.offers[:limit]
    if shown:
        paper.rows(("PRICE/HOUR", "KIND", "TYPE", "PLACE", "ZONE"), [_row(offer) for offer in shown], right=(0,))
    else:
        paper.line("No offers.")
    if len(shown) < len(quoted.offers):
        paper.line(f"and {len(quoted.offers) - len(shown):,} more", indent=2)
    draw_failures(quoted.failures, paper)
    if quoted.closed:
        paper.line()
    for text in quoted.closed:
        paper.line(text)


def draw_failures(failures: Sequence[QuoteFailure], paper: Paper) -> None:
    """Draw who did not answer, and why."""
    if not failures:
        return
    paper.line()
    paper.line(f"No answer from {len(failures):,} place{'' if len(failures) == 1 else 's'}:")
    rows = [(str(failure.scope), failure.error_code, failure.detail or "-") for failure in failures]
    paper.rows(("PLACE", "CODE", "DETAIL"), rows)


def price(offer: Offer) -> str:
    """Return what an offer costs, with as many digits as were told."""
    return f"{offer.price_per_hour:f} {offer.currency}" if offer.is_priced else "unknown"


def _row(offer: Offer) -> tuple[str, ...]:
    kind = str(offer.kind).replace("_", "-")
    return (price(offer), kind, offer.instance_type, f"{offer.provider}/{offer.region}", offer.zone or "-")
