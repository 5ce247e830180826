"""The promises of `Terminator`, one test each."""

# The abilities are Protocols, and are asked for by type.
# mypy: disable-error-code="type-abstract"

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from providers.conformance.suite import NOWHERE, THREADS, Conformance, assert_spared, at_once, listed
from providers.errors import (
    InstanceChangedError,
    InstanceNotFoundError,
    TerminateError,
    TerminationWithdrawnError,
)
from providers.harness import ChangesTags, CountsMutations, TerminatorHarness
from providers.model import InstanceRef


class TerminatorConformance(Conformance):
    """The promises of `Terminator`."""

    @pytest.fixture
    def harness(self) -> TerminatorHarness:
        """Return a harness of an empty cloud."""
        raise NotImplementedError

    def test_the_name_is_that_of_the_lister(self, harness: TerminatorHarness) -> None:
        """Both are found under one routing key."""
        assert harness.terminator().name == harness.lister().name

    def test_exactly_that_machine_ends(self, harness: TerminatorHarness) -> None:
        """In every scope, and no other, not even one of the same worker."""
        for scope in harness.scopes:
            ended, kept = harness.add_owned(scope), harness.add_owned(scope)
            harness.terminator().terminate(ended, seen=listed(harness, ended))
            assert not harness.exists(ended)
            assert harness.exists(kept)

    def test_what_was_ended_is_no_longer_listed_as_existing(self, harness: TerminatorHarness) -> None:
        """Accepted is not gone: it may still be listed, as going."""
        ref = harness.add_owned(harness.scopes[0])
        harness.terminator().terminate(ref)
        assert [instance.ref for instance in harness.lister().list_owned() if instance.state.exists] == []

    def test_a_second_request_does_no_harm(self, harness: TerminatorHarness) -> None:
        """It is accepted again, or refused because the machine is gone or going."""
        ended, kept = harness.add_owned(harness.scopes[0]), harness.add_owned(harness.scopes[0])
        terminator = harness.terminator()
        terminator.terminate(ended)
        with suppress(InstanceNotFoundError, InstanceChangedError):
            terminator.terminate(ended)
        assert harness.exists(kept)

    def test_an_unknown_machine_is_an_error(self, harness: TerminatorHarness) -> None:
        """Silence would be taken for success."""
        kept = harness.add_owned(harness.scopes[0])
        unknown = replace(kept, instance_id=harness.unknown_id)
        with pytest.raises(TerminateError) as caught:
            harness.terminator().terminate(unknown)
        assert caught.value.ref == unknown
        assert harness.exists(kept)

    def test_there_is_no_fallback_to_another_place(self, harness: TerminatorHarness) -> None:
        """A region or provider that is not covered is an error, even for an id that exists elsewhere."""
        ref = harness.add_owned(harness.scopes[0])
        elsewhere = [replace(ref, region=NOWHERE), replace(ref, region=""), replace(ref, provider="nobody")]
        for wrong in elsewhere:
            with pytest.raises(TerminateError):
                harness.terminator().terminate(wrong)
        assert harness.exists(ref)

    def test_another_worker_than_was_seen_is_spared(self, harness: TerminatorHarness) -> None:
        """The plan was made for another machine."""
        ref = harness.add_owned(harness.scopes[0])
        for worker_id in ("w-2", None):
            assert_spared(harness, ref, seen=replace(listed(harness, ref), worker_id=worker_id))

    def test_another_launch_time_than_was_seen_is_spared(self, harness: TerminatorHarness) -> None:
        """The id was used anew, or the machine was started again."""
        ref = harness.add_owned(harness.scopes[0])
        seen = listed(harness, ref)
        other = (seen.launched_at or datetime(2020, 1, 1, tzinfo=UTC)) - timedelta(hours=1)
        assert_spared(harness, ref, seen=replace(seen, launched_at=other))

    def test_a_machine_that_was_given_away_is_spared(self, harness: TerminatorHarness) -> None:
        """Its ownership tag is gone or has another value by now."""
        tags, ref = self.ability(harness, ChangesTags), harness.add_owned(harness.scopes[0])
        seen = listed(harness, ref)
        for value in (None, harness.owner + "-other"):
            tags.set_tag(ref, tags.tag_keys.owner, value)
            assert_spared(harness, ref, seen=seen)
            assert_spared(harness, ref, seen=None)

    def test_a_machine_that_was_protected_is_spared(self, harness: TerminatorHarness) -> None:
        """After the listing, too, and whatever the value of the tag."""
        tags, ref = self.ability(harness, ChangesTags), harness.add_owned(harness.scopes[0])
        seen = listed(harness, ref)
        tags.set_tag(ref, tags.tag_keys.protect, "false")
        assert_spared(harness, ref, seen=seen)
        assert_spared(harness, ref, seen=None)

    def test_a_machine_that_another_worker_took_is_spared(self, harness: TerminatorHarness) -> None:
        """Its worker tag is another by now."""
        tags, ref = self.ability(harness, ChangesTags), harness.add_owned(harness.scopes[0], worker_id=None)
        seen = listed(harness, ref)
        tags.set_tag(ref, tags.tag_keys.worker, "w-2")
        assert_spared(harness, ref, seen=seen)

    def test_nothing_is_sent_for_a_machine_that_is_spared(self, harness: TerminatorHarness) -> None:
        """The second look comes before the request, not after."""
        cloud, ref = self.ability(harness, CountsMutations), harness.add_owned(harness.scopes[0])
        seen, before = replace(listed(harness, ref), worker_id="w-2"), cloud.mutations()
        assert_spared(harness, ref, seen=seen)
        assert cloud.mutations() == before

    def test_what_is_no_longer_permitted_is_spared(self, harness: TerminatorHarness) -> None:
        """Somebody has come to need the machine since the plan was made; what is permitted goes."""
        kept, ended = harness.add_owned(harness.scopes[0]), harness.add_owned(harness.scopes[0])
        with pytest.raises(TerminationWithdrawnError):
            harness.terminator().terminate(kept, seen=listed(harness, kept), permitted=lambda: False)
        harness.terminator().terminate(ended, seen=listed(harness, ended), permitted=lambda: True)
        assert [harness.exists(ref) for ref in (kept, ended)] == [True, False]

    def test_permission_is_asked_for_after_the_second_look(self, harness: TerminatorHarness) -> None:
        """The look takes time: an answer from before it is old. Where the look says no, nobody is asked."""
        ref = harness.add_owned(harness.scopes[0])
        asked: list[InstanceRef] = []

        def permitted() -> bool:
            asked.append(ref)
            return True

        terminator, seen = harness.terminator(), listed(harness, ref)
        with pytest.raises(InstanceChangedError):
            terminator.terminate(ref, seen=replace(seen, worker_id="w-2"), permitted=permitted)
        assert not asked
        terminator.terminate(ref, seen=seen, permitted=permitted)
        assert asked

    def test_a_permission_that_cannot_be_had_is_none(self, harness: TerminatorHarness) -> None:
        """Whatever asking raises comes out, and the machine stays."""
        ref = harness.add_owned(harness.scopes[0])

        def permitted() -> bool:
            raise LookupError

        with pytest.raises(LookupError):
            harness.terminator().terminate(ref, seen=listed(harness, ref), permitted=permitted)
        assert harness.exists(ref)

    def test_nothing_is_sent_without_permission(self, harness: TerminatorHarness) -> None:
        """Not only no terminate: nothing that prepares one."""
        cloud, ref = self.ability(harness, CountsMutations), harness.add_owned(harness.scopes[0])
        seen, before = listed(harness, ref), cloud.mutations()
        with pytest.raises(TerminationWithdrawnError):
            harness.terminator().terminate(ref, seen=seen, permitted=lambda: False)
        assert cloud.mutations() == before

    def test_terminations_may_run_at_the_same_time(self, harness: TerminatorHarness) -> None:
        """One object is used from several threads."""
        ended = [harness.add_owned(harness.scopes[0], worker_id=f"w-{n}") for n in range(THREADS)]
        kept = harness.add_owned(harness.scopes[0], worker_id="kept")
        terminator = harness.terminator()
        at_once([partial(terminator.terminate, ref) for ref in ended])
        assert [harness.exists(ref) for ref in (*ended, kept)] == [False] * THREADS + [True]
