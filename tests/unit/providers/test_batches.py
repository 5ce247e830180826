"""Several machines with one request, through the wrappers and on the cloud in memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime

import pytest

from providers.allowance import require_batch
from providers.base import BatchTerminator, Terminator
from providers.errors import (
    CredentialsExpiredError,
    GoesAloneError,
    InstanceNotFoundError,
    InvalidInstanceIdError,
    SpoiledBatchError,
    TerminateError,
    TerminateRejectedError,
    TerminationDeniedError,
    TerminationProtectedError,
    ThrottledError,
    UnknownResultError,
)
from providers.fake import FakeAuditingProvider, FakeCloud, FakeMachine, Mutation, TerminateFault
from providers.gated import gated
from providers.instrumented import InstrumentedBatchTerminator, instrumented_terminator
from providers.model import InstanceRef, OwnedInstance, Scope
from providers.multicloud import MultiCloudTerminator
from providers.multiregion import MultiRegionTerminator
from reaperd.clock import ManualClock

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def everybody(refs: Sequence[InstanceRef]) -> Collection[InstanceRef]:
    return refs


class Alone:
    """A terminator of one region that can only end machines alone."""

    def __init__(self, cloud: FakeCloud, region: str | None = None) -> None:
        self._inner = cloud.terminator(region)
        self.name = cloud.name

    def terminate(self, ref, *, seen=None, permitted=None):
        self._inner.terminate(ref, seen=seen, permitted=permitted)


class Notes:
    def __init__(self) -> None:
        self.taken: list[tuple[str, str, float]] = []

    def observed(self, *, provider, operation, result, seconds):
        self.taken.append((operation, result, seconds))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


@pytest.fixture
def cloud(clock: ManualClock) -> FakeCloud:
    made = FakeCloud("fake", ("north", "south"), clock=clock)
    for number in range(3):
        made.add(FakeMachine(instance_id=f"i-{number}", region="north"))
    return made


def seen(cloud: FakeCloud) -> list[OwnedInstance]:
    return list(cloud.lister().list_owned())


def kinds(answers) -> list[type | None]:
    return [None if error is None else type(error) for _, error in sorted(answers.items())]


# ---------------------------------------------------------------- the wrappers


def test_a_cloud_that_ends_machines_alone_says_so_and_is_asked_nothing(clock: ManualClock, cloud: FakeCloud):
    lone = FakeCloud("lone", ("north",), clock=clock)
    lone.add()
    both = MultiCloudTerminator("all", cloud.terminator(), Alone(lone))

    answers = both.terminate_many(seen(lone), permitted=everybody)

    assert isinstance(both, BatchTerminator)
    assert both.allowance(Scope("lone", "north")) is None
    assert both.allowance(Scope("fake", "north")) is not None
    assert both.allowance(Scope("nobody", "north")) is None
    assert kinds(answers) == [GoesAloneError]
    assert lone.mutations == ()


def test_a_region_that_ends_machines_alone_says_so_and_is_asked_nothing(cloud: FakeCloud):
    multi = MultiRegionTerminator("fake", {"north": Alone(cloud, "north"), "south": cloud.terminator("south")})

    answers = multi.terminate_many(seen(cloud), permitted=everybody)

    assert [multi.allowance(Scope("fake", region)) is None for region in ("north", "south", "west")] == [
        True,
        False,
        True,
    ]
    assert multi.allowance(Scope("nobody", "south")) is None
    assert kinds(answers) == [GoesAloneError] * 3
    assert cloud.mutations == ()


@pytest.mark.parametrize("region", ["west", ""])
def test_no_other_region_is_fallen_back_to(cloud: FakeCloud, region: str):
    multi = MultiRegionTerminator("fake", {"north": cloud.terminator("north")})
    wrong = [
        OwnedInstance(ref=InstanceRef("fake", region, each.ref.instance_id), state=each.state, owner=each.owner)
        for each in seen(cloud)
    ]

    answers = multi.terminate_many(wrong, permitted=everybody)

    assert {error.error_code for error in answers.values()} == {"unknown_region"}
    assert cloud.mutations == ()


def test_of_nobody_nothing_is_asked(cloud: FakeCloud):
    region = MultiRegionTerminator("fake", {"north": cloud.terminator("north")})

    assert region.terminate_many([], permitted=everybody) == {}
    assert MultiCloudTerminator("all", region).terminate_many([], permitted=everybody) == {}


def test_machines_of_two_places_are_no_batch(clock: ManualClock, cloud: FakeCloud):
    cloud.add(FakeMachine(region="south"))
    region = MultiRegionTerminator("fake", {r: cloud.terminator(r) for r in cloud.regions})

    for terminator in (region, MultiCloudTerminator("all", region)):
        with pytest.raises(ValueError, match="one scope"):
            terminator.terminate_many(seen(cloud), permitted=everybody)

    assert cloud.mutations == ()


def test_what_is_measured_ends_several_exactly_if_the_inner_one_does(clock: ManualClock, cloud: FakeCloud):
    measured = [instrumented_terminator(each, Notes(), clock=clock) for each in (cloud.terminator(), Alone(cloud))]

    assert [isinstance(each, BatchTerminator) for each in measured] == [True, False]
    assert all(isinstance(each, Terminator) for each in measured)
    with pytest.raises(TypeError, match="one machine a request"):
        InstrumentedBatchTerminator(Alone(cloud), Notes(), clock=clock)


def test_each_machine_is_measured_as_if_it_had_been_ended_alone(clock: ManualClock, cloud: FakeCloud):
    notes = Notes()
    cloud.fail_terminate("i-1", TerminateFault.NOT_FOUND)
    cloud.on_terminate = lambda _: clock.sleep(2)

    terminator = instrumented_terminator(cloud.terminator(), notes, clock=clock)
    answers = terminator.terminate_many(seen(cloud), permitted=everybody)

    assert kinds(answers) == [None, InstanceNotFoundError, None]
    assert sorted(notes.taken) == [("terminate", "not_found", 4.0), ("terminate", "ok", 4.0), ("terminate", "ok", 4.0)]


def test_who_is_to_be_asked_for_again_is_measured_then(clock: ManualClock, cloud: FakeCloud):
    notes = Notes()
    cloud.fail_terminate("i-1", TerminateFault.PROTECTED)
    cloud.add(FakeMachine(instance_id="i-3", region="north", persistent_spot=True))

    terminator = instrumented_terminator(cloud.terminator(), notes, clock=clock)
    answers = terminator.terminate_many(seen(cloud), permitted=everybody)

    assert kinds(answers) == [SpoiledBatchError, TerminationProtectedError, SpoiledBatchError, GoesAloneError]
    assert [result for _, result, _ in notes.taken] == ["protected"]


def test_a_call_that_dies_is_an_error_of_each(clock: ManualClock, cloud: FakeCloud):
    notes = Notes()

    def dies(_: Sequence[InstanceRef]) -> Collection[InstanceRef]:
        raise LookupError

    with pytest.raises(LookupError):
        instrumented_terminator(cloud.terminator(), notes, clock=clock).terminate_many(seen(cloud), permitted=dies)

    assert [result for _, result, _ in notes.taken] == ["error"] * 3


class Shut:
    def provision_allowed(self, cloud):
        return False

    def warning(self, event, /, **fields):
        """Be the log, too."""


class Whole(FakeAuditingProvider):
    """A provider that can end several together."""

    def allowance(self, scope):
        return self.cloud.terminator().allowance(scope)

    def terminate_many(self, seen, *, permitted):
        return self.cloud.terminator().terminate_many(seen, permitted=permitted)


def test_a_gate_stands_in_nobodys_way_and_gives_no_ability(cloud: FakeCloud):
    able = gated("fake", Whole(cloud), Shut(), Shut())
    unable = gated("fake", FakeAuditingProvider(cloud), Shut(), Shut())

    assert not isinstance(unable, BatchTerminator)
    assert isinstance(able, BatchTerminator)
    assert able.allowance(Scope("fake", "north")) is not None
    assert kinds(able.terminate_many(seen(cloud), permitted=everybody)) == [None] * 3


# ---------------------------------------------------------------- the cloud in memory


@pytest.mark.parametrize(
    ("fault", "first", "others", "ended"),
    [
        (TerminateFault.NOT_FOUND, InstanceNotFoundError, None, [False, True, True]),
        (TerminateFault.MALFORMED, InvalidInstanceIdError, None, [False, True, True]),
        (TerminateFault.PROTECTED, TerminationProtectedError, SpoiledBatchError, [False] * 3),
        (TerminateFault.DENIED, TerminationDeniedError, SpoiledBatchError, [False] * 3),
        (TerminateFault.REJECTED, TerminateRejectedError, SpoiledBatchError, [False] * 3),
        (TerminateFault.THROTTLED, ThrottledError, ThrottledError, [False] * 3),
        (TerminateFault.EXPIRED, CredentialsExpiredError, CredentialsExpiredError, [False] * 3),
        (TerminateFault.UNKNOWN_LOST, UnknownResultError, UnknownResultError, [False] * 3),
        (TerminateFault.UNKNOWN_APPLIED, UnknownResultError, UnknownResultError, [True] * 3),
        (TerminateFault.IGNORED, None, None, [False, True, True]),
    ],
)
def test_a_fault_of_one_does_to_the_others_what_a_cloud_does(
    cloud: FakeCloud,
    fault: TerminateFault,
    first: type[TerminateError] | None,
    others: type[TerminateError] | None,
    ended: list[bool],
):
    machines = seen(cloud)
    cloud.fail_terminate("i-0", fault)

    answers = cloud.terminator().terminate_many(machines, permitted=everybody)

    assert kinds(answers) == [first, others, others]
    assert [each.ref not in cloud.live for each in machines] == ended


def test_another_zone_and_a_spot_request_that_launches_again_go_alone(cloud: FakeCloud):
    for number, facts in enumerate(({"zone": "b"}, {"persistent_spot": True}), start=3):
        cloud.add(FakeMachine(instance_id=f"i-{number}", region="north", **facts))

    answers = cloud.terminator().terminate_many(seen(cloud), permitted=everybody)

    assert kinds(answers) == [None, None, None, GoesAloneError, GoesAloneError]
    assert cloud.mutations == tuple(Mutation("terminate", InstanceRef("fake", "north", f"i-{n}")) for n in range(3))


def test_a_request_has_a_size():
    one = OwnedInstance(ref=InstanceRef("p", "r", "i-1"), state="running", owner="o")

    require_batch([], 0)
    require_batch([one], 1)
    with pytest.raises(ValueError, match="which may name 0"):
        require_batch([one], 0)
