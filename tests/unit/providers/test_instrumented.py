from datetime import UTC, datetime, timedelta

import pytest

from providers import errors
from providers.base import InstanceAuditor, Lister, Locator, Terminator
from providers.fake import FakeCloud, ListingFault, TerminateFault
from providers.instrumented import (
    RESULTS,
    InstrumentedAuditor,
    InstrumentedListingAuditor,
    InstrumentedTerminator,
    Operation,
    RequestResult,
    instrumented_lister,
    result_of,
)
from providers.locations import OnlyListed, There
from providers.model import InstanceRef, InstanceState
from reaperd.clock import ManualClock

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Notes:
    """An observer that keeps what it was told."""

    def __init__(self):
        self.taken = []

    def observed(self, *, provider, operation, result, seconds):
        self.taken.append((provider, operation, result, seconds))


class OutsiderError(Exception):
    pass


class Dies:
    name = "dies"

    def list_owned(self):
        raise OutsiderError


@pytest.fixture
def clock():
    return ManualClock(NOW)


@pytest.fixture
def cloud(clock):
    return FakeCloud(clock=clock)


@pytest.fixture
def notes():
    return Notes()


def test_a_whole_listing_is_ok_and_timed(clock, cloud, notes):
    cloud.fail_listing("fake-1", ListingFault(delay=timedelta(seconds=3)))

    instrumented_lister(cloud.lister(), notes, clock=clock).list_owned()

    assert notes.taken == [("fake", "list_owned", "ok", 3.0)]


def test_an_incomplete_listing_is_reported_and_still_raises(clock, cloud, notes):
    cloud.fail_listing("fake-1", ListingFault(error_code="X"))

    with pytest.raises(errors.IncompleteListingError):
        instrumented_lister(cloud.lister(), notes, clock=clock).list_owned()

    assert notes.taken == [("fake", "list_owned", "incomplete", 0.0)]


def test_an_error_that_the_port_does_not_allow_is_an_error(clock, notes):
    with pytest.raises(OutsiderError):
        instrumented_lister(Dies(), notes, clock=clock).list_owned()

    assert notes.taken == [("dies", "list_owned", "error", 0.0)]


def test_an_audit_with_a_failed_region_is_incomplete(clock, cloud, notes):
    auditor = InstrumentedAuditor(cloud.auditor(), notes, clock=clock)
    auditor.audit_instances()
    cloud.fail_audit("fake-1", ListingFault(error_code="X"))
    auditor.audit_instances()

    assert [taken[1:3] for taken in notes.taken] == [("audit_instances", "ok"), ("audit_instances", "incomplete")]


def test_a_look_for_single_machines_is_reported_and_incomplete_when_one_is_not_known(clock, cloud, notes):
    ref, lister = cloud.add(), instrumented_lister(cloud.lister(), notes, clock=clock)

    found = lister.locate([ref])
    cloud.fail_locating("fake-1", ListingFault(error_code="X", delay=timedelta(seconds=2)))
    lister.locate([ref])

    assert found == {ref: There(InstanceState.RUNNING, "fleet")}
    assert notes.taken == [("fake", "locate", "ok", 0.0), ("fake", "locate", "incomplete", 2.0)]


def test_what_cannot_look_for_single_machines_is_not_measured(clock, notes):
    ref = InstanceRef("dies", "r", "i-1")

    assert instrumented_lister(Dies(), notes, clock=clock).locate([ref]) == {ref: OnlyListed()}
    assert notes.taken == []


def test_a_termination_is_reported(clock, cloud, notes):
    ref = cloud.add()

    InstrumentedTerminator(cloud.terminator(), notes, clock=clock).terminate(ref)

    assert cloud.live == ()
    assert notes.taken == [("fake", "terminate", "ok", 0.0)]


def test_a_failed_termination_is_reported_and_still_raises(clock, cloud, notes):
    ref = cloud.add()
    cloud.fail_terminate(ref.instance_id, TerminateFault.THROTTLED)

    with pytest.raises(errors.ThrottledError):
        InstrumentedTerminator(cloud.terminator(), notes, clock=clock).terminate(ref)

    assert notes.taken == [("fake", "terminate", "throttled", 0.0)]


def test_what_was_seen_reaches_the_inner_terminator(clock, cloud, notes):
    ref = cloud.add()
    (seen,) = cloud.lister().list_owned()
    cloud.change(ref, worker_id="another")

    with pytest.raises(errors.InstanceChangedError):
        InstrumentedTerminator(cloud.terminator(), notes, clock=clock).terminate(ref, seen=seen)


def test_every_class_of_error_has_a_result_of_its_own():
    to_be_asked_again = {errors.GoesAloneError, errors.SpoiledBatchError}
    classes = {errors.IncompleteListingError, *errors.TerminateError.__subclasses__()} - to_be_asked_again

    assert set(RESULTS) == classes
    assert len(set(RESULTS.values())) == len(classes)
    assert set(RequestResult) - set(RESULTS.values()) == {RequestResult.OK, RequestResult.ERROR}


def test_a_subclass_of_an_outsider_counts_as_its_ancestor():
    own = type("OwnError", (errors.TerminationDeniedError,), {})

    assert result_of(own(InstanceRef("p", "r", "i"))) is RequestResult.DENIED
    assert result_of(errors.ProviderError()) is RequestResult.ERROR


def test_operations_are_named_as_the_methods_are():
    for operation, port in zip(Operation, (Lister, Locator, InstanceAuditor, Terminator), strict=True):
        assert hasattr(port, operation.value)


def test_a_measured_lister_has_no_ability_more_than_the_inner_one(clock, cloud, notes):
    plain = instrumented_lister(cloud.lister(), notes, clock=clock)
    auditing = instrumented_lister(cloud.auditor(), notes, clock=clock)

    assert isinstance(plain, Lister)
    assert not isinstance(plain, InstanceAuditor | Terminator)
    assert isinstance(auditing, InstanceAuditor)
    assert not isinstance(auditing, Terminator)
    assert not isinstance(InstrumentedTerminator(cloud.terminator(), notes, clock=clock), Lister | InstanceAuditor)


def test_what_cannot_audit_is_not_measured_as_an_auditor(clock, cloud, notes):
    with pytest.raises(TypeError):
        InstrumentedListingAuditor(cloud.lister(), notes, clock=clock)


def test_regions_show_through(clock, cloud, notes):
    assert instrumented_lister(cloud.lister(), notes, clock=clock).regions == ("fake-1",)
    assert instrumented_lister(Dies(), notes, clock=clock).regions == ()
