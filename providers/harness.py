"""What a test must be able to do to a cloud, for the suites of `providers.conformance`.

`Harness` and its extensions are needed; the Protocols below them are abilities that a harness may lack, if it says
so. A harness is made anew for every test, around a cloud that is empty.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from providers.base import (
    EventSource,
    Examiner,
    InstanceAuditor,
    InstanceTypeLister,
    Lister,
    Locator,
    Provider,
    Terminator,
)
from providers.capacity import Requirement, WorkerSpec
from providers.model import InstanceRef, Scope, TagKeys


class Harness(Protocol):
    """What a test of a lister must be able to do to a cloud that is empty at first."""

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """Return every scope that the lister covers."""
        ...

    @property
    def owner(self) -> str:
        """Return the value of our ownership tag."""
        ...

    def lister(self) -> Lister:
        """Return the lister, the object that a rehearsal would hold."""
        ...

    def add_owned(self, scope: Scope, *, worker_id: str | None = "w-1") -> InstanceRef:
        """Start a machine of ours, without a worker tag if None; return what the lister must call it."""
        ...


class TerminatorHarness(Harness, Protocol):
    """What a test of a terminator needs on top."""

    @property
    def unknown_id(self) -> str:
        """Return an instance id in the right form that no machine has."""
        ...

    def terminator(self) -> Terminator:
        """Return the terminator."""
        ...

    def exists(self, ref: InstanceRef) -> bool:
        """Return whether the machine is neither gone nor going, by asking the cloud itself."""
        ...


class LocatorHarness(Harness, Protocol):
    """What a test of a locator needs on top."""

    @property
    def unknown_id(self) -> str:
        """Return an instance id in the right form that no machine has."""
        ...

    def locator(self) -> Locator:
        """Return the locator."""
        ...

    def end(self, ref: InstanceRef) -> None:
        """End a machine, by asking the cloud itself."""
        ...


class AuditorHarness(Harness, Protocol):
    """What a test of an auditor needs on top."""

    def auditor(self) -> InstanceAuditor:
        """Return the auditor."""
        ...

    def add_stranger(self, scope: Scope) -> InstanceRef:
        """Start a machine without any ownership tag."""
        ...


class ProviderHarness(Harness, Protocol):
    """What a test of a whole provider needs on top. Its cloud has capacity for whatever is asked for here."""

    @property
    def wanted(self) -> Requirement:
        """Return a requirement, with at least one type, that the cloud has an offer for."""
        ...

    @property
    def spec(self) -> WorkerSpec:
        """Return what can be launched; it has a model."""
        ...

    def provider(self) -> Provider:
        """Return the provider."""
        ...

    def exists(self, ref: InstanceRef) -> bool:
        """Return whether the machine is neither gone nor going, by asking the cloud itself."""
        ...


class ExaminerHarness(Harness, Protocol):
    """What a test of an examiner needs on top."""

    def examiner(self) -> Examiner:
        """Return the examiner."""
        ...

    def add_stranger(self, scope: Scope) -> InstanceRef:
        """Start a machine without any ownership tag."""
        ...

    def exists(self, ref: InstanceRef) -> bool:
        """Return whether the machine is neither gone nor going, by asking the cloud itself."""
        ...


class EventSourceHarness(Harness, Protocol):
    """What a test of a source of announcements needs on top."""

    @property
    def unknown_id(self) -> str:
        """Return an instance id in the right form that no machine has."""
        ...

    def event_source(self) -> EventSource:
        """Return the source."""
        ...


class TypeListerHarness(Protocol):
    """What a test of a price list needs. Its cloud has types already."""

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """Return every scope that the list covers."""
        ...

    @property
    def routing_key(self) -> str:
        """Return the name of the lister of the same cloud."""
        ...

    def type_lister(self) -> InstanceTypeLister:
        """Return the list's owner."""
        ...


@runtime_checkable
class Announces(Protocol):
    """An ability: a machine that is about to go without anybody here doing anything."""

    def announce(self, ref: InstanceRef) -> str:
        """Let the cloud announce the end of a machine; return the cloud's own word for it."""
        ...


@runtime_checkable
class KeepsSilent(Protocol):
    """An ability: a scope that does not say what it announces."""

    def keep_silent(self, scope: Scope) -> None:
        """Let the cloud answer with an error there whenever it is asked for announcements, and for nothing else."""
        ...


@runtime_checkable
class Audits(Protocol):
    """An ability: a cloud that can be audited, too."""

    def auditor(self) -> InstanceAuditor:
        """Return the auditor."""
        ...


@runtime_checkable
class SellsOut(Protocol):
    """An ability: a type that is offered nowhere for the time being."""

    def sell_out(self) -> str:
        """Let the cloud offer one of its types nowhere any more; return the type's name."""
        ...


@runtime_checkable
class HidesPrices(Protocol):
    """An ability: a type whose price the cloud does not tell."""

    def hide_price(self) -> str:
        """Let the cloud tell no price of one of its types; return the type's name."""
        ...


@runtime_checkable
class BreaksTypes(Protocol):
    """An ability: a scope that does not say what types it has."""

    def break_types(self, scope: Scope) -> None:
        """Let the cloud answer with an error there whenever it is asked for types."""
        ...


@runtime_checkable
class BreaksListings(Protocol):
    """An ability: a scope that cannot be listed."""

    def break_listing(self, scope: Scope) -> None:
        """Let the cloud answer every further look at one scope with an error, listings and audits alike."""
        ...


@runtime_checkable
class RunsOut(Protocol):
    """An ability: a cloud without capacity."""

    def run_out(self) -> None:
        """Let the cloud answer every further launch with its own word for having no capacity."""
        ...


@runtime_checkable
class LosesAnswers(Protocol):
    """An ability: a launch whose answer does not arrive."""

    def lose_answer(self) -> None:
        """Let the cloud carry out the next launch, and its answer be lost on the way."""
        ...


@runtime_checkable
class BreaksLaterPages(Protocol):
    """An ability: a scope whose first page can be had and the next not."""

    def break_second_page(self, scope: Scope) -> None:
        """Fill the scope with more than one page, and let the cloud answer for the second with an error."""
        ...


@runtime_checkable
class FillsPages(Protocol):
    """An ability: more machines than one page holds."""

    @property
    def more_than_a_page(self) -> int:
        """Return how many machines need more than one page."""
        ...


@runtime_checkable
class StopsMachines(Protocol):
    """An ability: a machine that is stopped and can be started again."""

    def stop(self, ref: InstanceRef) -> None:
        """Stop a machine; return when it is stopped."""
        ...


@runtime_checkable
class AddsForeign(Protocol):
    """An ability: a machine of another deployment."""

    def add_foreign(self, scope: Scope, *, owner: str) -> InstanceRef:
        """Start a machine whose ownership tag has another value."""
        ...


@runtime_checkable
class ChangesTags(Protocol):
    """An ability: tags that change after the listing."""

    @property
    def tag_keys(self) -> TagKeys:
        """Return the names of the tags that lister and terminator go by."""
        ...

    def set_tag(self, ref: InstanceRef, key: str, value: str | None) -> None:
        """Write a tag; take it off if None."""
        ...


@runtime_checkable
class CountsMutations(Protocol):
    """An ability: telling whether the cloud was asked to change anything."""

    def mutations(self) -> int:
        """Return how many mutating requests of lister, auditor, examiner and terminator have reached the cloud.

        A question that the cloud knows as one (AWS: with DryRun) is none.
        """
        ...
