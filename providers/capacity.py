"""The types of the capacity side: what a control plane asks for, is offered, and gets. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import overload

from providers.identity import NO_TAGS, InstanceRef, Scope, require_aware

UNKNOWN_PRICE = Decimal("NaN")
"""The price of an offer that nobody quoted. Comparing it raises, so that it is never taken for the cheapest."""


class Kind(StrEnum):
    """Interruptible or stable capacity."""

    SPOT = "spot"
    ON_DEMAND = "on_demand"


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A live, quotable unit of capacity."""

    provider: str
    instance_type: str
    region: str
    zone: str = ""
    kind: Kind = Kind.SPOT
    price_per_hour: Decimal
    """In `currency`; Decimal, because it is money. UNKNOWN_PRICE only in the handle of a machine found again."""
    currency: str = "USD"

    @property
    def is_priced(self) -> bool:
        """True when somebody quoted it."""
        return not self.price_per_hour.is_nan()


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """The capacity that a model needs."""

    model: str
    instance_types: tuple[str, ...] = ()
    """Empty: no filter."""
    region: str = ""
    """Empty: anywhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSpec:
    """The worker to launch onto an offer. Empty values mean the provider's default."""

    model: str = ""
    image: str = ""
    """An explicit image wins over a variant."""
    image_variant: str = ""
    user_data: str = ""
    """Raw text; the adapter encodes it once."""
    env: Mapping[str, str] = field(default_factory=lambda: NO_TAGS, hash=False)
    instance_profile: str = ""
    """A name or an ARN."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerHandle:
    """A launched worker: all that a terminate needs, so that a provider keeps no state of its own."""

    worker_id: str
    """Empty in the handle of a machine that was found without a worker tag."""
    instance_id: str
    offer: Offer
    spec: WorkerSpec
    launched_at: datetime | None
    """None in the handle of a machine whose launch time nobody knows. A launch always knows one."""

    def __post_init__(self) -> None:
        require_aware(self.launched_at, f"launched_at of worker {self.worker_id}")

    @property
    def provider(self) -> str:
        """Return the routing key of the cloud that it is on."""
        return self.offer.provider

    @property
    def ref(self) -> InstanceRef:
        """Return the identity that a terminate takes.

        Raises:
            ValueError: if there is no instance id. Nothing can be addressed by it, and nothing must be taken for done.
        """
        return InstanceRef(self.offer.provider, self.offer.region, self.instance_id)


def handle_at(
    ref: InstanceRef,
    *,
    worker_id: str | None = None,
    model: str | None = None,
    zone: str | None = None,
    launched_at: datetime | None = None,
) -> WorkerHandle:
    """Return the handle of a machine from what a row of a registry says of it, for whoever has lost the first one.

    What the row does not say is not made up: the price is unknown, the kind is not to be relied on. A row without an
    instance id has no ref and so no handle: only `list_owned` can tell whether it has a machine.
    """
    offer = Offer(
        provider=ref.provider, instance_type="", region=ref.region, zone=zone or "", price_per_hour=UNKNOWN_PRICE
    )
    return WorkerHandle(
        worker_id=worker_id or "",
        instance_id=ref.instance_id,
        offer=offer,
        spec=WorkerSpec(model=model or ""),
        launched_at=launched_at,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class QuoteFailure:
    """A place that could not say what it has, and why."""

    scope: Scope
    """The region is `*` when the child did not live to say which regions it has."""
    error_code: str
    detail: str = ""
    error: BaseException | None = field(default=None, compare=False, repr=False)
    """What was raised; None when nothing was (no answer in time)."""

    def __str__(self) -> str:
        return f"{self.scope} ({self.error_code})"


@dataclass(frozen=True, slots=True)
class Quotes(Sequence[Offer]):
    """The offers of every place that answered, and the reason of each that did not.

    Offers of a part are worth having, unlike a part of a listing: what is missing can only be bought elsewhere. Who
    iterates sees offers alone; who wants to know why they are few looks at `failures`.
    """

    offers: tuple[Offer, ...]
    failures: tuple[QuoteFailure, ...] = ()
    unreadable: int = 0
    """So many prices could not be read. What they were of is not among the offers."""

    @overload
    def __getitem__(self, index: int) -> Offer: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Offer, ...]: ...
    def __getitem__(self, index: int | slice) -> Offer | tuple[Offer, ...]:
        return self.offers[index]

    def __len__(self) -> int:
        return len(self.offers)

    @classmethod
    def joined(cls, parts: Iterable[Quotes]) -> Quotes:
        """Return the parts as one, in the order given."""
        kept = tuple(parts)
        return cls(
            tuple(offer for part in kept for offer in part.offers),
            tuple(failure for part in kept for failure in part.failures),
            sum(part.unreadable for part in kept),
        )
