"""The promises of `InstanceTypeLister`, one test each."""

# The abilities are Protocols, and are asked for by type.
# mypy: disable-error-code="type-abstract"

from __future__ import annotations

from collections import Counter
from decimal import Decimal

import pytest

from providers.base import InstanceTypeLister
from providers.capacity import Kind
from providers.catalogue import InstanceType
from providers.conformance.suite import Conformance
from providers.errors import QuoteError
from providers.harness import BreaksTypes, CountsMutations, HidesPrices, SellsOut, TypeListerHarness
from providers.pricelist import ListedPrices


class TypeListerConformance(Conformance):
    """The promises of `InstanceTypeLister`."""

    @pytest.fixture
    def harness(self) -> TypeListerHarness:
        """Return a harness of a cloud that has types with prices."""
        raise NotImplementedError

    def test_the_name_is_that_of_the_lister(self, harness: TypeListerHarness) -> None:
        """Its offers are routed by it."""
        assert isinstance(harness.type_lister(), InstanceTypeLister)
        assert harness.type_lister().name == harness.routing_key

    def test_every_type_is_there_once(self, harness: TypeListerHarness) -> None:
        """However many regions and pages tell of it."""
        types = harness.type_lister().list_instance_types()
        assert types
        assert [name for name, times in Counter(each.name for each in types).items() if times > 1] == []

    def test_what_a_type_has_is_known(self, harness: TypeListerHarness) -> None:
        """Memory and processors always; a kind of GPU exactly where there are GPUs."""
        for each in harness.type_lister().list_instance_types():
            assert each.name, "a type without a name cannot be asked for"
            assert isinstance(each.memory_gib, Decimal)
            assert each.memory_gib > 0, each.name
            assert each.vcpus > 0, each.name
            assert each.gpu_count >= 0, each.name
            assert bool(each.gpu_type) is (each.gpu_count > 0), each.name

    def test_what_can_be_had_is_had_somewhere_of_this_cloud(self, harness: TypeListerHarness) -> None:
        """Or nobody could launch it."""
        places = {scope.region for scope in harness.scopes}
        for each in harness.type_lister().list_instance_types():
            assert set(each.regions) <= places, each.name
            assert len(each.regions) == len(set(each.regions)), each.name
            assert not each.available or each.regions, each.name

    def test_a_price_is_money_and_never_nothing(self, harness: TypeListerHarness) -> None:
        """What is not known is None. The price of a type is the lowest of those of its regions."""
        types = harness.type_lister().list_instance_types()
        assert any(each.price_per_hour is not None for each in types), "the harness has to have prices"
        for each in types:
            for price in (each.price_per_hour, *each.region_prices.values()):
                if price is not None:
                    assert isinstance(price, Decimal), each.name
                    assert price > 0, each.name
            assert isinstance(each.price_kind, Kind)
            assert set(each.region_prices) <= set(each.regions), each.name
            if each.region_prices:
                assert each.price_per_hour == min(each.region_prices.values()), each.name

    def test_the_list_is_a_source_of_prices(self, harness: TypeListerHarness) -> None:
        """Each of its offers says what, where and for how much."""
        lister = harness.type_lister()
        offers = ListedPrices(lister).get_prices()
        assert offers
        by_name = {each.name: each for each in lister.list_instance_types()}
        for offer in offers:
            listed = by_name[offer.instance_type]
            assert (offer.provider, offer.kind) == (harness.routing_key, listed.price_kind)
            assert offer.region in listed.regions
            assert offer.price_per_hour == listed.price_in(offer.region)

    def test_what_cannot_be_had_now_is_listed_all_the_same(self, harness: TypeListerHarness) -> None:
        """As such, and nobody is offered it."""
        sold_out = self.ability(harness, SellsOut).sell_out()
        lister = harness.type_lister()
        assert not _of(lister, sold_out).available
        assert sold_out not in {offer.instance_type for offer in ListedPrices(lister).get_prices()}

    def test_a_price_that_is_not_told_is_not_known(self, harness: TypeListerHarness) -> None:
        """Not free, and no offer."""
        unpriced = self.ability(harness, HidesPrices).hide_price()
        lister = harness.type_lister()
        assert _of(lister, unpriced).price_per_hour is None
        assert unpriced not in {offer.instance_type for offer in ListedPrices(lister).get_prices()}

    def test_a_list_that_is_not_whole_is_none(self, harness: TypeListerHarness) -> None:
        """A type that is not there would look as if the cloud did not have it."""
        lister = harness.type_lister()
        self.ability(harness, BreaksTypes).break_types(harness.scopes[0])
        with pytest.raises(QuoteError):
            lister.list_instance_types()

    def test_asking_changes_nothing(self, harness: TypeListerHarness) -> None:
        """No mutating request."""
        cloud = self.ability(harness, CountsMutations)
        before = cloud.mutations()
        harness.type_lister().list_instance_types()
        assert cloud.mutations() == before


def _of(lister: InstanceTypeLister, name: str) -> InstanceType:
    return next(each for each in lister.list_instance_types() if each.name == name)
