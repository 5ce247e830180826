import threading
from datetime import UTC, datetime, timedelta

import pytest

from providers import errors
from providers.base import InstanceAuditor, Lister, Terminator
from providers.fake import FakeCloud, FakeMachine, ListingFault, TerminateFault
from providers.model import InstanceRef, InstanceState, Scope, ScopeFailure
from reaperd.clock import ManualClock

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def clock():
    return ManualClock(NOW)


@pytest.fixture
def cloud(clock):
    return FakeCloud("c", ("a", "b"), clock=clock)


def listed(cloud) -> list[str]:
    return [instance.ref.instance_id for instance in cloud.lister().list_owned()]


def failing(cloud):
    with pytest.raises(errors.IncompleteListingError) as caught:
        cloud.lister().list_owned()
    return caught.value.coverage


def test_each_object_has_its_own_abilities(cloud):
    assert isinstance(cloud.lister(), Lister)
    assert not isinstance(cloud.lister(), InstanceAuditor | Terminator)
    assert isinstance(cloud.auditor(), InstanceAuditor)
    assert not isinstance(cloud.auditor(), Terminator)
    assert not isinstance(cloud.terminator(), Lister | InstanceAuditor)


def test_machines_without_a_worker_tag_stay_apart(cloud):
    cloud.add()
    cloud.add()

    assert len(cloud.lister().list_owned()) == 2


def test_a_machine_is_shown_as_it_was_described(cloud):
    cloud.add(FakeMachine(worker_id=" ", model="m", registry_id="r", tags={"Reaperd:Protect": ""}, account="9" * 12))

    (instance,) = cloud.lister().list_owned()

    assert (instance.worker_id, instance.model, instance.registry_id) == (None, "m", "r")
    assert instance.protect
    assert instance.foreign_account


@pytest.mark.parametrize(
    ("machine", "launched_at"),
    [
        (FakeMachine(), NOW),
        (FakeMachine(age=timedelta(hours=1)), NOW - timedelta(hours=1)),
        (FakeMachine(age=timedelta(hours=-1)), NOW + timedelta(hours=1)),
        (FakeMachine(age=None), None),
        (FakeMachine(launched_at=datetime(1970, 1, 1, tzinfo=UTC)), datetime(1970, 1, 1, tzinfo=UTC)),
    ],
    ids=["new", "old", "future", "unknown", "given"],
)
def test_the_launch_time_is_what_the_test_says(cloud, machine, launched_at):
    cloud.add(machine)

    assert [instance.launched_at for instance in cloud.lister().list_owned()] == [launched_at]


def test_other_owners_are_listed_and_the_untagged_only_audited(cloud):
    cloud.add(FakeMachine(owner="other"))
    cloud.add(FakeMachine(owner=None))

    assert [instance.owner for instance in cloud.lister().list_owned()] == ["other"]
    assert [instance.owner for instance in cloud.auditor().audit_instances().instances] == ["other", None]


def test_one_region_can_be_had_alone(cloud):
    cloud.add(FakeMachine(region="a"))
    cloud.add(FakeMachine(region="b"))

    inventory = cloud.lister("b").list_owned()

    assert [instance.ref.region for instance in inventory] == ["b"]
    assert [entry.scope for entry in inventory.coverage] == [Scope("c", "b")]


def test_a_loud_fault_fails_its_region_only(cloud):
    cloud.fail_listing("a", ListingFault(error_code="RequestLimitExceeded"))

    assert [entry.error_code for entry in failing(cloud)] == ["RequestLimitExceeded", None]


@pytest.mark.parametrize("failure", [ScopeFailure.WRONG_ACCOUNT, ScopeFailure.DEADLINE])
def test_a_fault_can_be_of_another_kind(cloud, failure):
    cloud.fail_listing("a", ListingFault(failure=failure))

    (entry, _) = failing(cloud)

    assert (entry.failure, entry.error_code) == (failure, failure.value)


def test_a_fault_may_heal_by_itself(cloud):
    cloud.fail_listing("a", ListingFault(error_code="X", calls=2))
    failing(cloud)
    failing(cloud)

    assert listed(cloud) == []


def test_a_page_may_be_lost_in_silence(cloud):
    lost, kept = cloud.add(), cloud.add()
    cloud.fail_listing("a", ListingFault(missing=frozenset({lost.instance_id})))

    assert listed(cloud) == [kept.instance_id]


def test_tags_may_be_lost(cloud):
    cloud.add(FakeMachine(worker_id="w"))
    cloud.fail_listing("a", ListingFault(lost_tags=frozenset({cloud.tag_keys.worker})))
    assert [instance.worker_id for instance in cloud.lister().list_owned()] == [None]

    cloud.fail_listing("a", ListingFault(lost_tags=frozenset({cloud.tag_keys.owner})))

    assert listed(cloud) == []


def test_a_view_may_be_stale_until_mended(cloud):
    ref = cloud.add()
    cloud.freeze_view("a")
    cloud.remove(ref)
    assert listed(cloud) == [ref.instance_id]

    cloud.mend()

    assert listed(cloud) == []


def test_an_answer_may_take_long_and_come_with_a_wrong_date(clock, cloud):
    cloud.fail_listing("a", ListingFault(delay=timedelta(minutes=1), clock_skew=timedelta(minutes=5)))

    (entry, _) = cloud.lister().list_owned().coverage

    assert clock.now() == NOW + timedelta(minutes=1)
    assert entry.clock_skew == timedelta(minutes=5)


def test_pages_and_calls_are_counted(cloud):
    cloud.page_size = 2
    for _ in range(3):
        cloud.add()

    coverage = cloud.lister().list_owned().coverage

    assert [entry.pages for entry in coverage] == [2, 1]
    assert (cloud.list_calls("a"), cloud.list_calls("b")) == (1, 1)


def test_a_machine_shuts_down_ends_and_vanishes_by_the_clock(clock, cloud):
    ref = cloud.add()
    cloud.terminator().terminate(ref)
    seen = []

    for wait in (timedelta(0), cloud.shutdown, cloud.linger):
        clock.advance(wait)
        machine = cloud.machine(ref)
        seen.append(machine and machine.state)

    assert seen == [InstanceState.SHUTTING_DOWN, InstanceState.TERMINATED, None]


def test_a_machine_may_shut_down_until_it_is_settled(clock, cloud):
    cloud.shutdown = None
    ref = cloud.add()
    cloud.terminator().terminate(ref)
    clock.advance(timedelta(days=1))
    assert cloud.machine(ref).state is InstanceState.SHUTTING_DOWN

    cloud.settle(still_listed=True)
    assert cloud.machine(ref).state is InstanceState.TERMINATED

    cloud.change(ref, state=InstanceState.SHUTTING_DOWN)
    cloud.settle()

    assert cloud.machine(ref) is None


@pytest.mark.parametrize(
    ("fault", "error", "sent"),
    [
        (TerminateFault.NOT_FOUND, errors.InstanceNotFoundError, 0),
        (TerminateFault.MALFORMED, errors.InvalidInstanceIdError, 0),
        (TerminateFault.SPOT_NOT_CANCELLED, errors.SpotRequestNotCancelledError, 0),
        (TerminateFault.PROTECTED, errors.TerminationProtectedError, 1),
        (TerminateFault.DENIED, errors.TerminationDeniedError, 1),
        (TerminateFault.THROTTLED, errors.ThrottledError, 1),
        (TerminateFault.EXPIRED, errors.CredentialsExpiredError, 1),
        (TerminateFault.REJECTED, errors.TerminateRejectedError, 1),
        (TerminateFault.UNKNOWN_LOST, errors.UnknownResultError, 1),
    ],
)
def test_a_fault_of_a_termination_leaves_the_machine_alone(cloud, fault, error, sent):
    ref = cloud.add()
    cloud.fail_terminate(ref.instance_id, fault)

    with pytest.raises(error):
        cloud.terminator().terminate(ref)

    assert cloud.live == (ref,)
    assert cloud.terminate_requests(ref.instance_id) == sent


def test_an_answer_may_be_lost_although_the_machine_ends(cloud):
    ref = cloud.add()
    cloud.fail_terminate(ref.instance_id, TerminateFault.UNKNOWN_APPLIED)

    with pytest.raises(errors.UnknownResultError):
        cloud.terminator().terminate(ref)

    assert cloud.live == ()


def test_a_request_may_be_accepted_and_forgotten(cloud):
    ref = cloud.add()
    cloud.fail_terminate(ref.instance_id, TerminateFault.IGNORED, calls=1)

    cloud.terminator().terminate(ref)
    assert cloud.live == (ref,)
    cloud.terminator().terminate(ref)

    assert cloud.live == ()
    assert cloud.terminate_requests(ref.instance_id) == 2


def test_a_termination_fault_may_heal_by_itself(cloud):
    ref = cloud.add()
    cloud.fail_terminate(ref.instance_id, TerminateFault.DENIED, calls=2)

    for _ in range(2):
        with pytest.raises(errors.TerminationDeniedError):
            cloud.terminator().terminate(ref)
    cloud.terminator().terminate(ref)

    assert cloud.live == ()


def test_a_persistent_spot_request_is_cancelled_first(cloud):
    ref = cloud.add(FakeMachine(spot_request_id="sir-1", persistent_spot=True))

    cloud.terminator().terminate(ref)

    assert [mutation.operation for mutation in cloud.mutations] == ["cancel_spot_request", "terminate"]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"owner": None}, "owner_tag"),
        ({"owner": "Fleet"}, "owner_tag"),
        ({"state": InstanceState.SHUTTING_DOWN}, "in_transition"),
        ({"protect": True}, "protect_tag"),
        ({"managed_by": "autoscaling:g"}, "managed"),
        ({"worker_id": "another"}, "worker_tag"),
        ({"worker_id": None}, "worker_tag"),
        ({"launched_at": NOW + timedelta(seconds=1)}, "launch_time"),
        ({"launched_at": None}, "launch_time"),
        ({"registry_id": "another"}, "registry_tag"),
    ],
)
def test_a_machine_that_changed_since_it_was_seen_is_spared(cloud, changes, code):
    ref = cloud.add(FakeMachine(worker_id="w"))
    (seen,) = cloud.lister().list_owned()
    cloud.before_terminate = lambda ref: cloud.change(ref, **changes)

    with pytest.raises(errors.InstanceChangedError) as caught:
        cloud.terminator().terminate(ref, seen=seen)

    assert caught.value.error_code == code
    assert cloud.mutations == ()


@pytest.mark.parametrize("state", [None, InstanceState.TERMINATED])
def test_a_machine_that_is_gone_is_not_found(cloud, state):
    ref = cloud.add(FakeMachine(state=state)) if state else InstanceRef("c", "a", "i-1")

    with pytest.raises(errors.InstanceNotFoundError):
        cloud.terminator().terminate(ref)


@pytest.mark.parametrize("ref", [InstanceRef("c", "b", "i-1"), InstanceRef("x", "a", "i-1")])
def test_a_machine_elsewhere_is_rejected(cloud, ref):
    with pytest.raises(errors.TerminateRejectedError):
        cloud.terminator("a").terminate(ref)


def test_hooks_may_use_the_cloud_from_another_thread(cloud):
    """Inside the lock this would never end."""
    ref, told = cloud.add(), []

    def look(what):
        thread = threading.Thread(target=lambda: told.append((what, cloud.live)), daemon=True)
        thread.start()
        thread.join(5)

    cloud.on_list = cloud.before_terminate = cloud.on_terminate = look
    cloud.lister("a").list_owned()
    cloud.terminator().terminate(ref)

    assert told == [(Scope("c", "a"), (ref,)), (ref, (ref,)), (ref, ())]


def test_an_audit_may_fail_while_the_listing_does_not(cloud):
    cloud.add()
    cloud.fail_audit("a", ListingFault(error_code="X"))

    sweep = cloud.auditor().audit_instances()

    assert sweep.instances == ()
    assert [entry.error_code for entry in sweep.coverage] == ["X", None]
    assert len(cloud.lister().list_owned()) == 1


def test_the_clock_may_be_replaced(cloud):
    later = NOW + timedelta(days=1)

    cloud.set_clock(ManualClock(later))
    ref = cloud.add()

    assert cloud.machine(ref).launched_at == later
