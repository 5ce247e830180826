"""The promises of `Lister`, one test each."""

# The abilities are Protocols, and are asked for by type.
# mypy: disable-error-code="type-abstract"

from __future__ import annotations

import pytest

from providers.conformance.suite import THREADS, Conformance, assert_broken, at_once, scopes_once
from providers.harness import (
    AddsForeign,
    BreaksLaterPages,
    BreaksListings,
    ChangesTags,
    CountsMutations,
    FillsPages,
    Harness,
    StopsMachines,
)
from providers.model import InstanceState, Inventory


class ListerConformance(Conformance):
    """The promises of `Lister`."""

    @pytest.fixture
    def harness(self) -> Harness:
        """Return a harness of an empty cloud."""
        raise NotImplementedError

    def test_the_name_is_there_and_stable(self, harness: Harness) -> None:
        """It is the routing key."""
        lister = harness.lister()
        before = lister.name
        lister.list_owned()
        assert isinstance(before, str)
        assert before
        assert lister.name == before == harness.lister().name

    def test_the_lister_cannot_terminate(self, harness: Harness) -> None:
        """A rehearsal holds the lister alone, and is safe because of this."""
        lister = harness.lister()
        assert not any(hasattr(lister, method) for method in ("terminate", "terminate_many"))

    def test_an_empty_fleet_is_proved_to_be_empty(self, harness: Harness) -> None:
        """No machines, and one whole coverage for each scope: not the same as no answer."""
        inventory = harness.lister().list_owned()
        assert isinstance(inventory, Inventory)
        assert inventory.instances == ()
        assert scopes_once(inventory) == set(harness.scopes)

    def test_what_we_own_is_listed_in_every_scope(self, harness: Harness) -> None:
        """With its identity, our owner value and its worker."""
        added = {harness.add_owned(scope, worker_id=f"w-{n}"): f"w-{n}" for n, scope in enumerate(harness.scopes)}
        inventory = harness.lister().list_owned()
        assert {instance.ref: instance.worker_id for instance in inventory} == added
        assert {instance.owner for instance in inventory} == {harness.owner}
        assert all(instance.state.exists for instance in inventory)

    def test_the_coverage_is_the_same_whatever_is_in_it(self, harness: Harness) -> None:
        """Scopes neither come nor go with their machines, and no machine is outside of them."""
        lister = harness.lister()
        ref = harness.add_owned(harness.scopes[-1])
        for _ in range(2):
            inventory = lister.list_owned()
            assert scopes_once(inventory) == set(harness.scopes)
            assert {instance.ref.scope for instance in inventory} == {ref.scope}

    def test_machines_without_a_worker_tag_are_listed_each(self, harness: Harness) -> None:
        """A launch that broke off half-way is an orphan, too."""
        refs = {harness.add_owned(harness.scopes[0], worker_id=None) for _ in range(2)}
        inventory = harness.lister().list_owned()
        assert {instance.ref for instance in inventory} == refs
        assert [instance.worker_id for instance in inventory] == [None, None]

    def test_times_carry_a_time_zone(self, harness: Harness) -> None:
        """A naive time would raise in the middle of a pass; a fresh machine was launched about now."""
        harness.add_owned(harness.scopes[0])
        launched = harness.lister().list_owned()[0].launched_at
        assert launched is None or launched.utcoffset() is not None

    def test_a_stopped_machine_is_listed(self, harness: Harness) -> None:
        """It still bills."""
        ref = harness.add_owned(harness.scopes[0])
        self.ability(harness, StopsMachines).stop(ref)
        assert [(i.ref, i.state) for i in harness.lister().list_owned()] == [(ref, InstanceState.STOPPED)]

    def test_the_owner_is_told_as_it_stands_on_the_machine(self, harness: Harness) -> None:
        """A machine of others may be listed, but never under our name."""
        owner = harness.owner.swapcase() + "-other"
        theirs = self.ability(harness, AddsForeign).add_foreign(harness.scopes[0], owner=owner)
        ours = harness.add_owned(harness.scopes[0])
        owners = {instance.ref: instance.owner for instance in harness.lister().list_owned()}
        assert owners.pop(ours) == harness.owner
        assert owners in ({}, {theirs: owner})

    def test_a_protect_tag_is_seen_whatever_its_value(self, harness: Harness) -> None:
        """Presence protects."""
        tags, ref = self.ability(harness, ChangesTags), harness.add_owned(harness.scopes[0])
        assert not harness.lister().list_owned()[0].protect
        tags.set_tag(ref, tags.tag_keys.protect, "false")
        assert harness.lister().list_owned()[0].protect

    def test_a_blank_worker_tag_is_no_worker(self, harness: Harness) -> None:
        """It names nobody."""
        tags, ref = self.ability(harness, ChangesTags), harness.add_owned(harness.scopes[0])
        tags.set_tag(ref, tags.tag_keys.worker, "")
        assert [instance.worker_id for instance in harness.lister().list_owned()] == [None]

    def test_all_pages_are_read(self, harness: Harness) -> None:
        """The first page alone would look whole."""
        count = self.ability(harness, FillsPages).more_than_a_page
        refs = {harness.add_owned(harness.scopes[0], worker_id=f"w-{n}") for n in range(count)}
        inventory = harness.lister().list_owned()
        assert len(inventory) == count
        assert {instance.ref for instance in inventory} == refs
        assert max(entry.pages for entry in inventory.coverage) > 1

    def test_a_broken_scope_breaks_the_listing(self, harness: Harness) -> None:
        """Complete or nothing, and the error carries the coverage of all scopes."""
        for scope in harness.scopes:
            harness.add_owned(scope)
        broken = harness.scopes[0]
        self.ability(harness, BreaksListings).break_listing(broken)
        assert_broken(harness, {broken})

    def test_a_listing_that_breaks_off_is_no_listing(self, harness: Harness) -> None:
        """The pages that were had are not returned."""
        broken = harness.scopes[0]
        self.ability(harness, BreaksLaterPages).break_second_page(broken)
        assert_broken(harness, {broken})

    def test_listing_changes_nothing(self, harness: Harness) -> None:
        """A lister sends no mutating request, ever."""
        cloud = self.ability(harness, CountsMutations)
        harness.add_owned(harness.scopes[0], worker_id=None)
        before = cloud.mutations()
        harness.lister().list_owned()
        assert cloud.mutations() == before

    def test_listings_may_run_at_the_same_time(self, harness: Harness) -> None:
        """One object is used from several threads."""
        refs = {harness.add_owned(scope) for scope in harness.scopes}
        lister = harness.lister()
        for inventory in at_once([lister.list_owned] * THREADS):
            assert {instance.ref for instance in inventory} == refs
            assert scopes_once(inventory) == set(harness.scopes)
