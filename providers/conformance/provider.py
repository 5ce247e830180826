"""The promises of `Provider`, one test each: shopping, launching, and what a reaper will make of the machine."""

# The abilities are Protocols, and are asked for by type.
# mypy: disable-error-code="type-abstract"

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from functools import partial

import pytest

from providers.base import InstanceAuditor, Provider
from providers.capacity import Kind, Offer, WorkerHandle
from providers.conformance.suite import NOWHERE, THREADS, Conformance, at_once
from providers.errors import (
    CapacityError,
    IncompleteListingError,
    InstanceChangedError,
    InstanceNotFoundError,
    LaunchError,
    TerminateError,
    TerminationWithdrawnError,
    UnknownLaunchError,
)
from providers.harness import BreaksListings, CountsMutations, LosesAnswers, ProviderHarness, RunsOut
from providers.model import OwnedInstance

NO_TYPE = "no-cloud-has-this.type"


class ProviderConformance(Conformance):
    """The promises of `Provider` beyond those of a `Lister` and a `Terminator`, to which it is put as well."""

    @pytest.fixture
    def harness(self) -> ProviderHarness:
        """Return a harness of an empty cloud with capacity."""
        raise NotImplementedError

    def test_it_is_a_whole_provider(self, harness: ProviderHarness) -> None:
        """Under the name of its lister."""
        provider = harness.provider()
        assert isinstance(provider, Provider)
        assert provider.name == harness.lister().name

    def test_offers_can_be_compared_and_launched_onto(self, harness: ProviderHarness) -> None:
        """Each with the cloud that it is of, a place of it, a type that was asked for, and its price as money."""
        offers = harness.provider().quote(harness.wanted)
        assert offers
        for offer in offers:
            assert (offer.provider, offer.region) in {(scope.provider, scope.region) for scope in harness.scopes}
            assert offer.instance_type in harness.wanted.instance_types
            assert isinstance(offer.price_per_hour, Decimal)
            assert offer.price_per_hour > 0
            assert offer.currency
            assert isinstance(offer.kind, Kind)

    def test_a_type_that_the_cloud_does_not_have_is_no_offer_and_no_error(self, harness: ProviderHarness) -> None:
        """A requirement is written for several clouds."""
        provider, wanted = harness.provider(), harness.wanted
        assert list(provider.quote(replace(wanted, instance_types=(NO_TYPE,)))) == []
        assert set(provider.quote(replace(wanted, instance_types=(NO_TYPE, *wanted.instance_types)))) == set(
            provider.quote(wanted)
        )

    def test_only_the_region_that_is_asked_for_is_quoted(self, harness: ProviderHarness) -> None:
        """Elsewhere nothing is offered."""
        offers = harness.provider().quote(harness.wanted)
        region = offers[0].region
        assert {o.region for o in harness.provider().quote(replace(harness.wanted, region=region))} == {region}
        assert list(harness.provider().quote(replace(harness.wanted, region=NOWHERE))) == []

    def test_quoting_changes_nothing(self, harness: ProviderHarness) -> None:
        """No mutating request."""
        cloud = self.ability(harness, CountsMutations)
        before = cloud.mutations()
        harness.provider().quote(harness.wanted)
        assert cloud.mutations() == before

    def test_a_handle_carries_all_that_was_given_and_what_the_cloud_said(self, harness: ProviderHarness) -> None:
        """The worker as it was supplied, the machine, the offer, the spec and an aware time."""
        offer = _offer(harness)
        handle = harness.provider().launch("w-1", offer, harness.spec)
        assert (handle.worker_id, handle.offer, handle.spec) == ("w-1", offer, harness.spec)
        assert handle.spec.model
        assert handle.instance_id
        assert handle.ref.scope in harness.scopes
        assert handle.launched_at is not None
        assert handle.launched_at.utcoffset() is not None
        assert harness.exists(handle.ref)

    def test_what_was_launched_is_listed_as_ours(self, harness: ProviderHarness) -> None:
        """From its first moment, with our tag, its worker and its model: a reaper knows it by nothing else."""
        handle = _launched(harness)
        (listed,) = harness.lister().list_owned()
        assert (listed.ref, listed.owner, listed.worker_id) == (handle.ref, harness.owner, "w-1")
        assert listed.model == harness.spec.model
        assert listed.state.exists
        assert not listed.protect
        assert listed.managed_by is None

    def test_the_same_worker_never_has_two_machines(self, harness: ProviderHarness) -> None:
        """The worker id is the token: the same call gives the same machine."""
        offer, provider = _offer(harness), harness.provider()
        handles = [provider.launch("w-1", offer, harness.spec) for _ in range(2)]
        handles.append(harness.provider().launch("w-1", offer, harness.spec))
        assert len({handle.ref for handle in handles}) == 1
        assert len(_listed(harness)) == 1

    def test_a_worker_that_is_launched_differently_has_no_second_machine(self, harness: ProviderHarness) -> None:
        """Onto another offer of the region, or with another spec: the same machine or an error."""
        handle, provider = _launched(harness), harness.provider()
        place = (handle.offer.provider, handle.offer.region)
        others = [offer for offer in provider.quote(harness.wanted) if (offer.provider, offer.region) == place]
        for offer in others:
            for spec in (harness.spec, replace(harness.spec, user_data="#!/bin/sh\n")):
                with suppress(LaunchError):
                    assert provider.launch("w-1", offer, spec).ref == handle.ref
        assert [instance.ref for instance in _listed(harness)] == [handle.ref]

    def test_launches_of_one_worker_at_the_same_time_give_one_machine(self, harness: ProviderHarness) -> None:
        """A control plane that was restarted asks again while the first request is on its way."""
        offer, provider = _offer(harness), harness.provider()

        def launch() -> None:
            with suppress(LaunchError):
                provider.launch("w-1", offer, harness.spec)

        at_once([launch] * THREADS)
        assert len(_listed(harness)) == 1

    def test_launches_may_run_at_the_same_time(self, harness: ProviderHarness) -> None:
        """One object is used from several threads, and no worker gets the machine of another."""
        offer, provider = _offer(harness), harness.provider()
        workers = [f"w-{number}" for number in range(THREADS)]
        handles = at_once([partial(provider.launch, worker, offer, harness.spec) for worker in workers])
        assert {handle.ref: handle.worker_id for handle in handles} == {
            instance.ref: instance.worker_id for instance in _listed(harness)
        }
        assert len(_listed(harness)) == THREADS

    def test_a_launch_without_a_worker_is_refused(self, harness: ProviderHarness) -> None:
        """No row could ever name it."""
        with pytest.raises(LaunchError):
            harness.provider().launch("", _offer(harness), harness.spec)
        assert _listed(harness) == []

    def test_an_offer_of_another_place_is_refused(self, harness: ProviderHarness) -> None:
        """There is no fallback: the row says where the machine is."""
        offer = _offer(harness)
        for wrong in (replace(offer, provider="nobody"), replace(offer, region=NOWHERE)):
            with pytest.raises(LaunchError):
                harness.provider().launch("w-1", wrong, harness.spec)
        assert _listed(harness) == []

    def test_a_cloud_without_capacity_says_so(self, harness: ProviderHarness) -> None:
        """By the one error that lets the next offer be tried, and nothing was launched."""
        offer = _offer(harness)
        self.ability(harness, RunsOut).run_out()
        with pytest.raises(CapacityError) as caught:
            harness.provider().launch("w-1", offer, harness.spec)
        assert caught.value.code
        assert _listed(harness) == []

    def test_a_lost_answer_is_not_taken_for_a_refusal(self, harness: ProviderHarness) -> None:
        """The machine is there; asked again with the same worker, it is the one that is told of."""
        offer = _offer(harness)
        self.ability(harness, LosesAnswers).lose_answer()
        with suppress(UnknownLaunchError):
            harness.provider().launch("w-1", offer, harness.spec)
        again = harness.provider().launch("w-1", offer, harness.spec)
        assert [instance.ref for instance in _listed(harness)] == [again.ref]

    def test_what_was_launched_can_be_ended(self, harness: ProviderHarness) -> None:
        """By the ref of its handle, and it is then no longer listed as existing."""
        handle = _launched(harness)
        harness.provider().terminate(handle.ref)
        assert not harness.exists(handle.ref)
        assert _listed(harness) == []

    def test_ending_it_twice_does_no_harm(self, harness: ProviderHarness) -> None:
        """It is accepted again, or refused because the machine is gone or going."""
        handle, kept = _launched(harness), _launched(harness, "w-2")
        provider = harness.provider()
        provider.terminate(handle.ref)
        with suppress(InstanceNotFoundError, InstanceChangedError):
            provider.terminate(handle.ref)
        assert [harness.exists(each.ref) for each in (handle, kept)] == [False, True]

    def test_a_worker_that_was_ended_gets_no_second_machine(self, harness: ProviderHarness) -> None:
        """A worker id is used once: a launch that comes late must not start what nobody waits for."""
        handle, provider = _launched(harness), harness.provider()
        provider.terminate(handle.ref)
        with suppress(LaunchError):
            provider.launch("w-1", handle.offer, harness.spec)
        assert _listed(harness) == []

    def test_a_machine_without_an_id_cannot_be_ended(self, harness: ProviderHarness) -> None:
        """A handle without one addresses nothing, and must not be taken for done."""
        handle = _launched(harness)
        with pytest.raises((TerminateError, ValueError)):
            harness.provider().terminate(replace(handle, instance_id="").ref)
        assert harness.exists(handle.ref)

    def test_an_end_that_is_no_longer_permitted_does_not_come(self, harness: ProviderHarness) -> None:
        """The provider of a control plane keeps the promises of a terminator."""
        handle, provider = _launched(harness), harness.provider()
        with pytest.raises(TerminationWithdrawnError):
            provider.terminate(handle.ref, permitted=lambda: False)
        with pytest.raises(InstanceChangedError):
            provider.terminate(handle.ref, seen=replace(_listed(harness)[0], worker_id="w-2"))
        assert harness.exists(handle.ref)

    def test_it_lists_what_its_lister_lists(self, harness: ProviderHarness) -> None:
        """Whole, and with the same coverage."""
        _launched(harness)
        harness.add_owned(harness.scopes[-1], worker_id=None)
        mine, theirs = harness.provider().list_owned(), harness.lister().list_owned()
        assert {instance.ref for instance in mine} == {instance.ref for instance in theirs}
        assert {entry.scope for entry in mine.coverage} == {entry.scope for entry in theirs.coverage}

    def test_a_listing_that_is_not_whole_is_none(self, harness: ProviderHarness) -> None:
        """For a control plane neither."""
        self.ability(harness, BreaksListings).break_listing(harness.scopes[0])
        with pytest.raises(IncompleteListingError):
            harness.provider().list_owned()

    def test_what_was_launched_is_audited_if_there_is_an_audit(self, harness: ProviderHarness) -> None:
        """An audit sees at least what a listing sees."""
        provider = harness.provider()
        if not isinstance(provider, InstanceAuditor):
            pytest.skip("the provider does not audit")
        handle = _launched(harness)
        audited = {instance.ref: instance.owner for instance in provider.audit_instances().instances}
        assert {instance.ref for instance in provider.list_owned()} <= set(audited)
        assert audited[handle.ref] == harness.owner


def _offer(harness: ProviderHarness) -> Offer:
    offers: Sequence[Offer] = harness.provider().quote(harness.wanted)
    return min(offers, key=lambda offer: offer.price_per_hour)


def _launched(harness: ProviderHarness, worker_id: str = "w-1") -> WorkerHandle:
    return harness.provider().launch(worker_id, _offer(harness), harness.spec)


def _listed(harness: ProviderHarness) -> list[OwnedInstance]:
    """Return what exists of ours."""
    return [instance for instance in harness.lister().list_owned() if instance.state.exists]
