"""The ports of a cloud, each with its promises. Adapters do not inherit from them.

A reaper needs a `Lister` and, to enforce, a `Terminator`. Both may be one object or two: rehearsals and
audits are built from the lister alone. All implementations are safe to use from several threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime

    from providers.allowance import Allowance
    from providers.capacity import Offer, Requirement, WorkerHandle, WorkerSpec
    from providers.catalogue import InstanceType
    from providers.errors import TerminateError
    from providers.events import ProviderEvent
    from providers.examination import Examination
    from providers.locations import Location
    from providers.model import AuditSweep, InstanceRef, Inventory, OwnedInstance, Scope


class Clock(Protocol):
    """Where an adapter gets its time from; given to it, never asked of the machine."""

    def now(self) -> datetime:
        """Return the wall time, timezone-aware, UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never step."""
        ...

    def sleep(self, seconds: float) -> None:
        """Return after so many seconds."""
        ...


class Progress(Protocol):
    """Told of every page, so that a person sees a long listing move. Must not raise."""

    def __call__(self, scope: Scope, *, pages: int, instances: int) -> None:
        """Take the running totals of one scope."""
        ...


class Permission(Protocol):
    """Asked whether a machine may still be ended. Whoever plans terminations gives it; it may wait for a registry."""

    def __call__(self) -> bool:
        """Return whether it may, at this moment. Whoever cannot know says no."""
        ...


class BatchPermission(Protocol):
    """Asked which of several machines may still be ended, as Permission is of one. It may wait for a registry."""

    def __call__(self, refs: Sequence[InstanceRef], /) -> Collection[InstanceRef]:
        """Return those that may, at this moment. Whoever cannot know of one leaves it out."""
        ...


@runtime_checkable
class Lister(Protocol):
    """Sees what carries the ownership tag. Sends no mutating request, ever."""

    @property
    def name(self) -> str:
        """Return the routing key, stable for the life of the object."""
        ...

    def list_owned(self) -> Inventory:
        """Return every not yet terminated instance that carries our ownership tag, or raise.

        Stopped and stopping machines are included, machines in transition too; terminated ones may be.
        An instance without a worker tag is included. The result may hold instances of other owners (a lax
        filter at the cloud): the caller compares the tag's value itself.

        Raises:
            IncompleteListingError: if any scope was not listed whole, whatever the cause. It carries the
                coverage of every scope. A part of a listing is never returned.
        """
        ...


@runtime_checkable
class Terminator(Protocol):
    """Ends one machine. The only port with a mutating request."""

    @property
    def name(self) -> str:
        """Return the routing key, the same as the lister's."""
        ...

    def terminate(
        self, ref: InstanceRef, *, seen: OwnedInstance | None = None, permitted: Permission | None = None
    ) -> None:
        """Ask the cloud to end this machine; return once the request was accepted. Accepted is not gone.

        Looks at the machine again first and sends nothing unless it still carries our ownership tag, exists,
        has no protect tag and nothing that would relaunch it; with `seen`, unless its worker tag and launch
        time are still those that the plan was made for. A persistent spot request is cancelled first.

        `permitted` is asked after that second look, immediately before every mutating request (a repetition, the end
        of a spot request): looking takes its time, and meanwhile somebody may have come to need the machine. A no is a
        TerminationWithdrawnError and nothing more is sent; an error that it raises is passed on, likewise. Without it
        nobody is asked.

        Raises:
            TerminateError: one of its subclasses, for every other answer. A region that this object does not
                cover is an error, never a success.
        """
        ...


@runtime_checkable
class Locator(Protocol):
    """Finds single machines by their ids, whatever tags they carry. Optional, and asked for.

    A listing shows what carries our tag, so that a machine is not on it any more proves only that it is gone *or* lost
    its tag. A reaper asks here before it believes that a termination took effect. Of a provider without this ability
    its complete listing is taken for the proof: there, nobody notices a machine that lost its tag and runs on.
    """

    @property
    def name(self) -> str:
        """Return the routing key, the same as the lister's."""
        ...

    def locate(self, refs: Collection[InstanceRef]) -> Mapping[InstanceRef, Location]:
        """Return where each of these machines is, one answer a ref, best effort. Never an exception.

        There and Gone are what the cloud itself says of this id in the place of the ref, asked as the account that
        the lister lists. All else is NotKnown: an error, silence, a place that is not covered. No bad id, and no place
        that fails, spoils the answer for another. Sends nothing that changes anything.
        """
        ...


@runtime_checkable
class BatchTerminator(Protocol):
    """Ends several machines of one scope with one request. Optional, beside Terminator: else each goes alone."""

    @property
    def name(self) -> str:
        """Return the routing key, the same as the lister's."""
        ...

    def allowance(self, scope: Scope) -> Allowance | None:
        """Return how many may go together there, and how fast its cloud lets them; None: each goes alone."""
        ...

    def terminate_many(
        self, seen: Sequence[OwnedInstance], *, permitted: BatchPermission
    ) -> Mapping[InstanceRef, TerminateError | None]:
        """Ask the cloud to end these machines; return an answer for every one: None when its end was accepted.

        They are of one scope, each is there once, and there are no more of them than may go together. What `terminate`
        promises for one holds for each of them: it is looked at again, together with the others, and nothing is sent
        for one that is no longer what was `seen`. `permitted` is asked after that look, immediately before every
        request, of exactly those that it would name; who is left out of the answer is not named. An error that it
        raises is passed on, and nothing more is sent.

        After any answer that is not a plain yes the machines are looked at once more. One of which nobody can say
        whether its end was accepted has an UnknownResultError. Two errors ask for more: GoesAloneError (nothing was
        sent for it: call `terminate`) and SpoiledBatchError (it was named, and refused because of another: call this
        again without that one).

        Raises:
            ValueError: if they are too many, of several scopes or there twice. Nothing was sent.
        """
        ...


@runtime_checkable
class InstanceAuditor(Protocol):
    """Sees everything that runs, owned or not. Optional: a provider without it is skipped, and said so."""

    @property
    def name(self) -> str:
        """Return the routing key."""
        ...

    def audit_instances(self) -> AuditSweep:
        """Return what could be seen, best effort per scope. A failed scope is in the coverage, never an exception."""
        ...


@runtime_checkable
class Examiner(Protocol):
    """Looks over its own set-up: credentials, regions, permissions. Optional: who has it not is skipped, and named."""

    @property
    def name(self) -> str:
        """Return the routing key."""
        ...

    def examine(self) -> Examination:
        """Return what was found, best effort per scope. Whatever a cloud answers is in it, never an exception.

        Sends nothing that could change anything. Where the cloud has a way to ask for a permission without using it,
        it is asked; an adapter makes sure that nothing else can leave it (AWS: a session that refuses a
        TerminateInstances without DryRun).
        """
        ...


@runtime_checkable
class Capacity(Protocol):
    """Sells machines. Optional for a reaper, which buys none; a control plane needs it."""

    @property
    def name(self) -> str:
        """Return the routing key, the same as the lister's."""
        ...

    def quote(self, requirement: Requirement) -> Sequence[Offer]:
        """Return live offers that satisfy the requirement, in no particular order; none is an answer, not an error.

        Raises:
            QuoteError: if nothing is known of what there is. What asks several places returns `Quotes`, and raises
                only when none of them answered.
        """
        ...

    def launch(self, worker_id: str, offer: Offer, spec: WorkerSpec) -> WorkerHandle:
        """Launch one machine onto an offer; return when accepted, not when ready.

        The worker id becomes the worker tag and the idempotency token: the same id twice never gives two machines.

        Raises:
            CapacityError: if there is no such machine to be had; nothing was launched, another offer may do.
            UnknownLaunchError: if there may be a machine and its answer is lost.
            LaunchError: for every other refusal; nothing was launched.
        """
        ...


@runtime_checkable
class Provider(Capacity, Protocol):
    """The whole interface of a source of disposable machines, for control planes.

    `reaperd` itself needs only `Lister`, `Terminator` and `InstanceAuditor`.
    """

    def terminate(
        self, ref: InstanceRef, *, seen: OwnedInstance | None = None, permitted: Permission | None = None
    ) -> None:
        """See Terminator.terminate; a handle carries its ref."""
        ...

    def list_owned(self) -> Inventory:
        """See Lister.list_owned."""
        ...


class Gate(Protocol):
    """Says whether a cloud is cleared for launches. Asked at every quote and launch, so that it holds at once."""

    def provision_allowed(self, cloud: str) -> bool:
        """Return whether machines may be launched there. May raise whatever it likes: that, too, is a no."""
        ...


class Log(Protocol):
    """Takes events with fields; a logger of structlog is one. Must not raise."""

    def warning(self, event: str, /, **fields: object) -> object:
        """Take one event."""
        ...


@runtime_checkable
class InstanceTypeLister(Protocol):
    """Knows what kinds of machines there are and what they cost. Optional."""

    @property
    def name(self) -> str:
        """Return the routing key."""
        ...

    def list_instance_types(self) -> tuple[InstanceType, ...]:
        """Return every type of machine once, those that cannot be had at the moment, too.

        A price that the cloud does not tell here is None, never 0.

        Raises:
            QuoteError: if they cannot be had whole: of a part nobody could say what is missing.
        """
        ...


@runtime_checkable
class PricingModel(Protocol):
    """Knows prices, whoever sells: a live quote, a price list, an index of last month."""

    def get_prices(self) -> tuple[Offer, ...]:
        """Return what is known, an offer for each price.

        Raises:
            QuoteError: if nothing can be known.
        """
        ...


@runtime_checkable
class EventSource(Protocol):
    """Tells what a cloud is about to do to a machine. Optional."""

    @property
    def name(self) -> str:
        """Return the routing key."""
        ...

    def instance_event(self, ref: InstanceRef) -> ProviderEvent | None:
        """Return what is announced for this machine, or was carried out; None when nothing is.

        Raises:
            EventError: if that cannot be known, or the machine is none of a place that this covers.
        """
        ...
