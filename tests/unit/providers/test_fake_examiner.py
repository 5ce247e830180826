"""The cloud in memory, looked over."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from providers.examination import Answer, ScopeExamination
from providers.fake import FakeCloud, FakeExaminer, FakeMachine, ListingFault, TerminateFault
from providers.model import InstanceState
from reaperd.clock import ManualClock


@pytest.fixture
def cloud() -> FakeCloud:
    return FakeCloud("one", ("north",), clock=ManualClock(datetime(2026, 1, 1, tzinfo=UTC)))


def scopes(cloud: FakeCloud) -> tuple[ScopeExamination, ...]:
    return FakeExaminer(cloud).examine().scopes


@pytest.mark.parametrize(
    ("fault", "answer", "code"),
    [
        (TerminateFault.DENIED, Answer.DENIED, "UnauthorizedOperation"),
        (TerminateFault.PROTECTED, Answer.PROTECTED, "OperationNotPermitted"),
        (TerminateFault.NOT_FOUND, Answer.GONE, "InvalidInstanceID.NotFound"),
        (TerminateFault.THROTTLED, Answer.UNCLEAR, "RequestLimitExceeded"),
        (TerminateFault.UNKNOWN_LOST, Answer.UNCLEAR, "unknown_lost"),
        (TerminateFault.IGNORED, Answer.UNCLEAR, "ignored"),
    ],
)
def test_what_would_stand_in_the_way_is_the_answer(cloud: FakeCloud, fault: TerminateFault, answer: Answer, code: str):
    ref = cloud.add(FakeMachine(region="north"))
    cloud.fail_terminate(ref.instance_id, fault)

    ((probe,),) = [scope.probes for scope in scopes(cloud)]

    assert probe.trouble is not None
    assert (probe.ref, probe.answer, probe.trouble.code) == (ref, answer, code)
    assert cloud.mutations == ()


def test_a_machine_that_is_ending_is_not_asked_about(cloud: FakeCloud):
    cloud.add(FakeMachine(region="north", state=InstanceState.SHUTTING_DOWN))

    assert [scope.probes for scope in scopes(cloud)] == [()]


def test_a_region_that_fails_is_told(cloud: FakeCloud):
    cloud.fail_listing("north", ListingFault(error_code="RequestLimitExceeded"))

    assert [scope.coverage.error_code for scope in scopes(cloud)] == ["RequestLimitExceeded"]


def test_a_region_without_a_proof_is_none(cloud: FakeCloud):
    cloud.fail_listing("north", ListingFault(no_coverage=True))

    assert scopes(cloud) == ()
