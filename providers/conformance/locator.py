"""The promises of `Locator`, one test each."""

# The abilities are Protocols, and are asked for by type.
# mypy: disable-error-code="type-abstract"

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from providers.conformance.suite import NOWHERE, THREADS, Conformance, at_once
from providers.harness import BreaksListings, ChangesTags, CountsMutations, LocatorHarness, StopsMachines
from providers.locations import Gone, NotKnown, There
from providers.model import InstanceState


class LocatorConformance(Conformance):
    """The promises of `Locator`."""

    @pytest.fixture
    def harness(self) -> LocatorHarness:
        """Return a harness of an empty cloud."""
        raise NotImplementedError

    def test_the_name_is_that_of_the_lister(self, harness: LocatorHarness) -> None:
        """Both are found under one routing key."""
        assert harness.locator().name == harness.lister().name

    def test_the_locator_cannot_terminate(self, harness: LocatorHarness) -> None:
        """A rehearsal holds it, too."""
        assert not hasattr(harness.locator(), "terminate")

    def test_a_machine_that_is_there_is_there(self, harness: LocatorHarness) -> None:
        """In every scope, with its owner."""
        refs = [harness.add_owned(scope) for scope in harness.scopes]
        for ref, found in harness.locator().locate(refs).items():
            assert isinstance(found, There), ref
            assert found.state.exists
            assert found.owner == harness.owner

    def test_nobody_is_asked_for_nothing(self, harness: LocatorHarness) -> None:
        """And no other machine is spoken of."""
        harness.add_owned(harness.scopes[0])
        assert dict(harness.locator().locate([])) == {}

    def test_a_machine_that_lost_its_tags_is_there(self, harness: LocatorHarness) -> None:
        """No listing by the tag shows it, and it runs. This is what the port is for."""
        tags, ref = self.ability(harness, ChangesTags), harness.add_owned(harness.scopes[0])
        for key in (tags.tag_keys.worker, tags.tag_keys.owner):
            tags.set_tag(ref, key, None)
        found = harness.locator().locate([ref])[ref]
        assert isinstance(found, There)
        assert found.owner is None

    def test_a_machine_that_was_given_away_is_there_under_its_new_owner(self, harness: LocatorHarness) -> None:
        """The tag is told as it stands on the machine."""
        tags, ref = self.ability(harness, ChangesTags), harness.add_owned(harness.scopes[0])
        tags.set_tag(ref, tags.tag_keys.owner, harness.owner + "-other")
        found = harness.locator().locate([ref])[ref]
        assert isinstance(found, There)
        assert found.owner == harness.owner + "-other"

    def test_a_stopped_machine_is_there(self, harness: LocatorHarness) -> None:
        """It still bills."""
        ref = harness.add_owned(harness.scopes[0])
        self.ability(harness, StopsMachines).stop(ref)
        assert harness.locator().locate([ref])[ref] == There(InstanceState.STOPPED, harness.owner)

    def test_a_machine_that_there_is_not_is_gone(self, harness: LocatorHarness) -> None:
        """By the word of the cloud, in every scope."""
        kept = harness.add_owned(harness.scopes[0])
        unknown = [replace(kept, region=scope.region, provider=scope.provider) for scope in harness.scopes]
        unknown = [replace(ref, instance_id=harness.unknown_id) for ref in unknown]
        assert dict(harness.locator().locate(unknown)) == dict.fromkeys(unknown, Gone())

    def test_a_machine_that_was_ended_does_not_exist(self, harness: LocatorHarness) -> None:
        """It is gone, or there and going: whatever its listing shows."""
        ref = harness.add_owned(harness.scopes[0])
        harness.end(ref)
        found = harness.locator().locate([ref])[ref]
        assert found == Gone() or (isinstance(found, There) and found.state is InstanceState.SHUTTING_DOWN)

    def test_each_machine_is_answered_for_by_itself(self, harness: LocatorHarness) -> None:
        """Those that are gone take no other's answer with them, however many are asked for together."""
        here = [harness.add_owned(harness.scopes[0], worker_id=f"w-{n}") for n in range(3)]
        gone = replace(here[0], instance_id=harness.unknown_id)
        found = harness.locator().locate([here[0], gone, *here[1:]])
        assert [isinstance(found[ref], There) for ref in here] == [True] * 3
        assert found[gone] == Gone()

    def test_a_place_that_is_not_covered_is_not_known(self, harness: LocatorHarness) -> None:
        """There is no fallback, and "not found" in another place is not "gone"."""
        ref = harness.add_owned(harness.scopes[0])
        elsewhere = [replace(ref, region=NOWHERE), replace(ref, region=""), replace(ref, provider="nobody")]
        found = harness.locator().locate([ref, *elsewhere])
        assert [type(found[wrong]) for wrong in elsewhere] == [NotKnown] * 3
        assert isinstance(found[ref], There)

    def test_what_cannot_be_known_is_not_known_and_spoils_no_other(self, harness: LocatorHarness) -> None:
        """Never an exception, never gone."""
        refs = [harness.add_owned(scope) for scope in harness.scopes]
        unknown = [replace(ref, instance_id=harness.unknown_id) for ref in refs]
        broken = harness.scopes[0]
        self.ability(harness, BreaksListings).break_listing(broken)
        found = harness.locator().locate([*refs, *unknown])
        for ref in (*refs, *unknown):
            assert isinstance(found[ref], NotKnown) == (ref.scope == broken), ref

    def test_locating_changes_nothing(self, harness: LocatorHarness) -> None:
        """No mutating request, ever."""
        cloud = self.ability(harness, CountsMutations)
        ref = harness.add_owned(harness.scopes[0])
        before = cloud.mutations()
        harness.locator().locate([ref, replace(ref, instance_id=harness.unknown_id)])
        assert cloud.mutations() == before

    def test_machines_may_be_located_at_the_same_time(self, harness: LocatorHarness) -> None:
        """One object is used from several threads."""
        refs = [harness.add_owned(scope) for scope in harness.scopes]
        locator = harness.locator()
        for found in at_once([partial(locator.locate, refs)] * THREADS):
            assert [isinstance(found[ref], There) for ref in refs] == [True] * len(refs)
