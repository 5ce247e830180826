from dataclasses import FrozenInstanceError, fields, replace
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation

import pytest

from providers.capacity import UNKNOWN_PRICE, Kind, Offer, Requirement, WorkerHandle, WorkerSpec, handle_at
from providers.errors import CapacityError, LaunchError
from providers.model import AuditedInstance, InstanceRef, InstanceState, OwnedInstance

NOW = datetime(2026, 1, 1, tzinfo=UTC)
REF = InstanceRef("aws", "us-east-1", "i-1")
FOUND = OwnedInstance(
    ref=REF,
    state=InstanceState.RUNNING,
    owner="prod",
    worker_id="w-1",
    model="llama",
    launched_at=NOW,
    zone="us-east-1a",
    instance_type="g5.xlarge",
    spot_request_id="sir-1",
)


def test_the_kinds_are_the_words_of_the_seed_and_no_others():
    assert [str(kind) for kind in Kind] == ["spot", "on_demand"]
    with pytest.raises(ValueError, match="reserved"):
        Kind("reserved")


def test_an_offer_says_where_what_and_for_how_much():
    offer = Offer(provider="aws", instance_type="g5.xlarge", region="us-east-1", price_per_hour=Decimal("0.1"))

    assert (offer.zone, offer.kind, offer.currency, offer.is_priced) == ("", Kind.SPOT, "USD", True)
    with pytest.raises(FrozenInstanceError):
        offer.price_per_hour = Decimal(0)


def test_a_requirement_asks_for_any_type_anywhere_unless_it_says():
    need = Requirement(model="llama")

    assert (need.instance_types, need.region) == ((), "")


def test_a_spec_leaves_to_the_provider_what_it_does_not_say():
    spec = WorkerSpec()

    assert {field.name: getattr(spec, field.name) for field in fields(spec)} == {
        "model": "",
        "image": "",
        "image_variant": "",
        "user_data": "",
        "env": {},
        "instance_profile": "",
    }


def test_a_handle_carries_all_that_a_terminate_needs():
    offer = Offer(provider="aws", instance_type="g5.xlarge", region="us-east-1", price_per_hour=Decimal(1))
    handle = WorkerHandle(worker_id="w-1", instance_id="i-1", offer=offer, spec=WorkerSpec(), launched_at=NOW)

    assert (handle.ref, handle.provider) == (REF, "aws")


def test_a_handle_without_an_instance_id_addresses_nothing():
    handle = replace(FOUND.to_handle(), instance_id="")

    with pytest.raises(ValueError, match="without an id"):
        _ = handle.ref


def test_a_handle_with_a_naive_time_is_refused():
    with pytest.raises(ValueError, match="no time zone"):
        replace(FOUND.to_handle(), launched_at=NOW.replace(tzinfo=None))


def test_a_listed_machine_has_a_handle_that_leads_back_to_it():
    handle = FOUND.to_handle()

    assert (handle.ref, handle.worker_id, handle.launched_at) == (REF, "w-1", NOW)
    assert (handle.offer.zone, handle.offer.instance_type, handle.offer.kind) == (
        "us-east-1a",
        "g5.xlarge",
        Kind.SPOT,
    )
    assert handle.spec == WorkerSpec(model="llama")


def test_what_a_listed_machine_does_not_say_is_not_made_up():
    handle = OwnedInstance(ref=REF, state=InstanceState.STOPPED, owner="prod").to_handle()

    assert (handle.worker_id, handle.launched_at, handle.offer.is_priced) == ("", None, False)
    assert handle.ref == REF


def test_the_fields_of_a_row_make_a_handle():
    handle = handle_at(REF, worker_id="w-1", model="llama", zone="us-east-1a", launched_at=NOW)

    assert (handle.ref, handle.worker_id, handle.spec.model) == (REF, "w-1", "llama")
    assert (handle.offer.zone, handle.launched_at, handle.offer.is_priced) == ("us-east-1a", NOW, False)


def test_a_row_without_an_instance_id_makes_no_handle():
    with pytest.raises(ValueError, match="without an id"):
        handle_at(InstanceRef("aws", "us-east-1", ""), worker_id="w-1")


def test_a_price_that_nobody_quoted_is_never_taken_for_the_cheapest():
    with pytest.raises(InvalidOperation):
        min(UNKNOWN_PRICE, Decimal(1))


def test_a_capacity_error_is_its_message_and_keeps_code_and_region():
    error = CapacityError("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded", "us-east-1")

    assert isinstance(error, LaunchError)
    assert str(error) == "Max spot instance count exceeded"
    assert (error.code, error.region) == ("MaxSpotInstanceCountExceeded", "us-east-1")


def test_an_audited_machine_may_have_no_age_and_no_owner():
    audited = AuditedInstance(ref=REF, state=InstanceState.RUNNING)

    assert (audited.launched_at, audited.owner, audited.name) == (None, None, None)


@pytest.mark.parametrize(
    ("state", "exists"),
    [
        ("pending", True),
        ("running", True),
        ("stopping", True),
        ("stopped", True),
        ("shutting-down", False),
        ("terminated", False),
        ("unknown", True),
    ],
)
def test_every_state_but_gone_and_going_exists(state, exists):
    assert InstanceState(state).exists is exists
    assert len(InstanceState) == 7
