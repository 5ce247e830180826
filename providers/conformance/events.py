"""The promises of `EventSource`, and of a sweep that mentions what is announced, one test each."""

# The abilities are Protocols, and are asked for by type.
# mypy: disable-error-code="type-abstract"

from __future__ import annotations

import pytest

from providers.base import EventSource
from providers.conformance.suite import NOWHERE, Conformance
from providers.errors import EventError
from providers.harness import Announces, Audits, CountsMutations, EventSourceHarness, KeepsSilent
from providers.model import InstanceRef


class EventSourceConformance(Conformance):
    """The promises of `EventSource`."""

    @pytest.fixture
    def harness(self) -> EventSourceHarness:
        """Return a harness of an empty cloud that announces nothing."""
        raise NotImplementedError

    def test_the_name_is_that_of_the_lister(self, harness: EventSourceHarness) -> None:
        """Both are found under one routing key."""
        source = harness.event_source()
        assert isinstance(source, EventSource)
        assert source.name == harness.lister().name

    def test_nothing_announced_is_none(self, harness: EventSourceHarness) -> None:
        """For a machine that is there, and for one that is not."""
        ref = harness.add_owned(harness.scopes[0])
        assert harness.event_source().instance_event(ref) is None
        unknown = InstanceRef(ref.provider, ref.region, harness.unknown_id)
        assert harness.event_source().instance_event(unknown) is None

    def test_what_is_announced_is_told_of_that_machine_alone(self, harness: EventSourceHarness) -> None:
        """In the cloud's own word, and with a time that has a zone, if there is one."""
        cloud = self.ability(harness, Announces)
        kept, going = (harness.add_owned(scope) for scope in (harness.scopes[0], harness.scopes[-1]))
        word = cloud.announce(going)
        event = harness.event_source().instance_event(going)
        assert event is not None
        assert (event.ref, event.fault_code) == (going, word)
        assert event.termination_time is None or event.termination_time.utcoffset() is not None
        assert harness.event_source().instance_event(kept) is None

    def test_another_place_is_an_error(self, harness: EventSourceHarness) -> None:
        """There the answer would be None, which reads like "nothing is announced"."""
        ref = harness.add_owned(harness.scopes[0])
        for provider, region in (("nobody", ref.region), (ref.provider, NOWHERE)):
            with pytest.raises(EventError):
                harness.event_source().instance_event(InstanceRef(provider, region, ref.instance_id))

    def test_what_cannot_be_known_is_an_error(self, harness: EventSourceHarness) -> None:
        """With a code that says why."""
        ref = harness.add_owned(harness.scopes[0])
        self.ability(harness, KeepsSilent).keep_silent(ref.scope)
        with pytest.raises(EventError) as caught:
            harness.event_source().instance_event(ref)
        assert caught.value.error_code

    def test_asking_changes_nothing(self, harness: EventSourceHarness) -> None:
        """No mutating request."""
        cloud = self.ability(harness, CountsMutations)
        ref = harness.add_owned(harness.scopes[0])
        before = cloud.mutations()
        harness.event_source().instance_event(ref)
        assert cloud.mutations() == before

    def test_a_sweep_mentions_what_is_announced(self, harness: EventSourceHarness) -> None:
        """Of every scope, each once."""
        auditor, cloud = self.ability(harness, Audits).auditor(), self.ability(harness, Announces)
        machines = [harness.add_owned(scope) for scope in harness.scopes]
        words = {ref: cloud.announce(ref) for ref in machines}
        sweep = auditor.audit_instances()
        assert sorted((event.ref, event.fault_code) for event in sweep.events) == sorted(words.items())
        assert sweep.unheard == ()

    def test_silence_is_told_and_takes_nothing_from_a_sweep(self, harness: EventSourceHarness) -> None:
        """Its machines are seen and its scopes are whole, and so is a listing."""
        auditor = self.ability(harness, Audits).auditor()
        machines = {harness.add_owned(scope) for scope in harness.scopes}
        silent = harness.scopes[0]
        self.ability(harness, KeepsSilent).keep_silent(silent)
        sweep = auditor.audit_instances()
        assert {entry.scope for entry in sweep.unheard} == {silent}
        assert all(entry.error_code for entry in sweep.unheard)
        assert {instance.ref for instance in sweep.instances} == machines
        assert all(entry.ok for entry in sweep.coverage)
        assert {instance.ref for instance in harness.lister().list_owned()} == machines
