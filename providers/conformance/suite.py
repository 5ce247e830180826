"""What the suites share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar, TypeVar

import pytest

from providers.errors import IncompleteListingError, InstanceChangedError
from providers.harness import Harness, TerminatorHarness
from providers.model import AuditSweep, Coverage, InstanceRef, Inventory, OwnedInstance, Scope

THREADS = 4
NOWHERE = "nowhere-1"
"""A region that no harness may have."""

Ability = TypeVar("Ability")
Result = TypeVar("Result")


class Conformance:
    """What the suites share."""

    lacks: ClassVar[tuple[type, ...]] = ()
    """The abilities, of the Protocols in `providers.harness`, that the harness does not have."""

    def ability(self, harness: object, wanted: type[Ability]) -> Ability:
        """Return the harness as what it is able to do; skip the test if that was declared to be lacking."""
        if wanted in self.lacks:
            pytest.skip(f"the harness lacks {wanted.__name__}")
        assert isinstance(harness, wanted), f"the harness has no {wanted.__name__}, and does not say so in `lacks`"
        return harness


def scopes_once(inventory: Inventory) -> set[Scope]:
    """Return the scopes that an inventory covers, each of which must stand there once."""
    scopes = [entry.scope for entry in inventory.coverage]
    assert len(scopes) == len(set(scopes)), f"a scope stands in the coverage twice: {scopes}"
    return set(scopes)


def failed_scopes(coverage: Iterable[Coverage]) -> set[Scope]:
    """Return the scopes that were not covered."""
    return {entry.scope for entry in coverage if not entry.ok}


def assert_broken(harness: Harness, broken: set[Scope]) -> None:
    """Check that the listing fails with the coverage of every scope, of which these are broken."""
    with pytest.raises(IncompleteListingError) as caught:
        harness.lister().list_owned()
    coverage = caught.value.coverage
    assert {entry.scope for entry in coverage} == set(harness.scopes), "the error must carry every scope"
    assert failed_scopes(coverage) == broken
    assert all(entry.error_code for entry in coverage if not entry.ok), "a failed scope needs an error code"


def listed(harness: Harness, ref: InstanceRef) -> OwnedInstance:
    """Return one machine as the lister shows it."""
    return next(instance for instance in harness.lister().list_owned() if instance.ref == ref)


def assert_spared(harness: TerminatorHarness, ref: InstanceRef, *, seen: OwnedInstance | None) -> None:
    """Check that a termination is refused because the machine changed, and that it lives."""
    with pytest.raises(InstanceChangedError):
        harness.terminator().terminate(ref, seen=seen)
    assert harness.exists(ref)


def audited_scopes(sweep: AuditSweep, scopes: tuple[Scope, ...]) -> set[Scope]:
    """Return the scopes that a sweep covers or says that it skipped."""
    covered = {entry.scope for entry in sweep.coverage}
    return covered | {scope for scope in scopes if str(scope) in sweep.skipped or scope.provider in sweep.skipped}


def at_once(calls: list[Callable[[], Result]]) -> list[Result]:
    """Return what the calls return when they run side by side."""
    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [pool.submit(call) for call in calls]]
