import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from providers.base import InstanceAuditor, Lister, Terminator
from providers.errors import IncompleteListingError, ProviderSetupError, TerminateRejectedError
from providers.events import ProviderEvent, Unheard
from providers.fake import FakeCloud, FakeMachine, ListingFault
from providers.fanout import Answered, ask_all
from providers.model import (
    AuditedInstance,
    AuditSweep,
    Coverage,
    InstanceRef,
    InstanceState,
    Inventory,
    OwnedInstance,
    Scope,
    ScopeFailure,
)
from providers.multiregion import MultiRegion, MultiRegionTerminator
from providers.stragglers import Stragglers
from reaperd.clock import ManualClock, SystemClock
from tests.support.processes import until

NOW = datetime(2026, 1, 1, tzinfo=UTC)
A, B = Scope("c", "a"), Scope("c", "b")


class Says:
    """A lister that says what it is told to."""

    def __init__(self, say, name="c"):
        self.name = name
        self._say = say

    def list_owned(self):
        return self._say()


class Audits(Says):
    def audit_instances(self):
        return self._say()


def owned(provider, region, instance_id="i-1", **fields):
    fields = {"worker_id": "w", "launched_at": NOW} | fields
    return OwnedInstance(
        ref=InstanceRef(provider, region, instance_id), state=InstanceState.RUNNING, owner="fleet", **fields
    )


def whole(*instances, scope):
    return lambda: Inventory(instances, (Coverage(scope=scope, instances=len(instances)),))


def raising(error):
    def say():
        raise error

    return say


def failures(error: IncompleteListingError) -> dict[str, str | None]:
    return {str(entry.scope): entry.error_code for entry in error.coverage}


@pytest.fixture
def clock():
    return ManualClock(NOW)


@pytest.fixture
def listing(clock):
    """Return what region a says, next to a healthy region b."""

    def listing(say, *, timeout=None):
        children = {"b": Says(whole(scope=B)), "a": Says(say)}
        return MultiRegion("c", children, clock=clock, timeout=timeout).list_owned()

    return listing


@pytest.fixture
def broken(listing):
    def broken(say, **options):
        with pytest.raises(IncompleteListingError) as caught:
            listing(say, **options)
        return failures(caught.value)

    return broken


def test_it_is_a_lister_and_an_auditor_and_cannot_terminate(clock):
    multi = MultiRegion("c", {"a": Says(whole(scope=A))}, clock=clock)

    assert isinstance(multi, Lister)
    assert isinstance(multi, InstanceAuditor)
    assert not hasattr(multi, "terminate")


def test_regions_are_sorted(clock):
    cloud = FakeCloud("c", ("b", "a"), clock=clock)

    multi = MultiRegion("c", {"b": cloud.lister("b"), "a": cloud.lister("a")}, clock=clock)

    assert multi.regions == ("a", "b")


def test_the_children_are_those_of_the_construction(clock):
    children = {"a": Says(whole(scope=A))}
    multi = MultiRegion("c", children, clock=clock)

    children.clear()

    assert len(multi.list_owned().coverage) == 1


@pytest.mark.parametrize(
    "children",
    [{}, {"a": None}, {"": Says(None)}, {"a": Says(None, name="other")}, {"a": object()}],
    ids=["none", "null", "nameless region", "other name", "not a lister"],
)
def test_children_that_cannot_be_routed_to_are_refused(clock, children):
    with pytest.raises(ProviderSetupError):
        MultiRegion("c", children, clock=clock)
    with pytest.raises(ProviderSetupError):
        MultiRegionTerminator("c", children)


def test_an_empty_name_is_refused(clock):
    with pytest.raises(ProviderSetupError):
        MultiRegion("", {"a": Says(None, name="")}, clock=clock)


def test_instances_and_coverage_of_all_regions_come_in_order_of_the_regions(listing):
    inventory = listing(whole(owned("c", "a"), scope=A))

    assert [str(i.ref) for i in inventory] == ["c/a/i-1"]
    assert [entry.scope for entry in inventory.coverage] == [A, B]


def test_what_the_child_leaves_blank_is_filled_in(listing):
    inventory = listing(whole(owned("", ""), scope=Scope("", "")))

    assert [i.ref.scope for i in inventory] == [A]
    assert inventory.coverage[0].scope == A


@pytest.mark.parametrize(
    ("instance_scope", "covered"), [(A, B), (B, A), (Scope("d", "a"), A), (A, Scope("d", "a")), (A, Scope("", "b"))]
)
def test_a_child_that_answers_for_another_place_is_not_believed(broken, instance_scope, covered):
    stray = owned(instance_scope.provider, instance_scope.region)

    assert broken(whole(stray, scope=covered)) == {"c/a": "scope_mismatch", "c/b": None}


def test_one_broken_region_fails_the_listing_and_shows_the_healthy_ones(broken):
    entry = Coverage(scope=A, failure=ScopeFailure.LISTING, error_code="RequestLimitExceeded")

    assert broken(raising(IncompleteListingError((entry,)))) == {"c/a": "RequestLimitExceeded", "c/b": None}


def test_the_kind_of_a_childs_failure_is_kept(listing):
    entry = Coverage(scope=Scope("", ""), failure=ScopeFailure.WRONG_ACCOUNT, error_code="unproven")

    with pytest.raises(IncompleteListingError) as caught:
        listing(raising(IncompleteListingError((entry,))))

    assert caught.value.coverage[0] == replace(entry, scope=A)


@pytest.mark.parametrize(
    ("coverage", "code"), [((), "no_coverage"), ((Coverage(scope=A),), "incomplete_listing")], ids=["none", "all fine"]
)
def test_a_child_that_is_incomplete_without_saying_where_fails_its_region(broken, coverage, code):
    assert broken(raising(IncompleteListingError(coverage))) == {"c/a": code, "c/b": None}


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ValueError("x"), "value_error"),
        (TimeoutError(), "timeout_error"),
        (OSError(), "os_error"),
        (SystemExit(0), "system_exit"),
        (type("EC2ClientError", (Exception,), {})(), "ec2_client_error"),
    ],
)
def test_an_unexpected_error_of_a_child_is_a_failed_region(broken, error, code):
    assert broken(raising(error)) == {"c/a": code, "c/b": None}


def test_the_errors_of_the_children_are_kept_for_the_log(listing):
    error = ValueError("the reason")

    with pytest.raises(IncompleteListingError) as caught:
        listing(raising(error))

    assert isinstance(caught.value.__cause__, ExceptionGroup)
    assert caught.value.__cause__.exceptions == (error,)
    assert caught.value.coverage[0].detail == "the reason"


@pytest.mark.parametrize("answer", [None, [], (), True, Inventory((), ()), Inventory((owned("c", "a"),), ())])
def test_an_answer_without_proof_is_incomplete(broken, answer):
    assert broken(lambda: answer) == {"c/a": "no_coverage", "c/b": None}


def test_an_answer_full_of_nonsense_is_a_failed_region(broken):
    nonsense = Inventory(("i-1",), (Coverage(scope=A),))

    assert broken(lambda: nonsense) == {"c/a": "attribute_error", "c/b": None}


def test_a_machine_listed_twice_is_incomplete(broken):
    twice = owned("c", "a")

    assert broken(whole(twice, twice, scope=A)) == {"c/a": "duplicate_instance", "c/b": None}


def test_one_machine_under_two_regions_is_incomplete(clock):
    """Two clients of one region that leave the region blank: the second sight would look like an orphan."""
    same = whole(owned("", ""), scope=Scope("", ""))
    multi = MultiRegion("c", {"a": Says(same), "b": Says(same)}, clock=clock)

    with pytest.raises(IncompleteListingError) as caught:
        multi.list_owned()

    assert failures(caught.value) == {"c/a": "duplicate_instance", "c/b": "duplicate_instance"}


@pytest.mark.parametrize("other", [{"worker_id": "v"}, {"launched_at": NOW + timedelta(seconds=1)}])
def test_two_machines_may_have_one_id_in_two_regions(clock, other):
    children = {"a": Says(whole(owned("c", "a"), scope=A)), "b": Says(whole(owned("c", "b", **other), scope=B))}

    assert len(MultiRegion("c", children, clock=clock).list_owned()) == 2


def test_all_regions_are_asked_although_one_fails(clock):
    cloud = FakeCloud("c", ("a", "b", "d"), clock=clock)
    cloud.fail_listing("a", ListingFault(error_code="X"))
    multi = MultiRegion("c", {region: cloud.lister(region) for region in cloud.regions}, clock=clock)

    with pytest.raises(IncompleteListingError) as caught:
        multi.list_owned()

    assert failures(caught.value) == {"c/a": "X", "c/b": None, "c/d": None}
    assert [cloud.list_calls(region) for region in cloud.regions] == [1, 1, 1]


def test_a_region_that_hangs_ends_as_deadline_and_the_healthy_ones_are_shown():
    release = threading.Event()
    children = {"a": Says(release.wait), "b": Says(whole(scope=B))}
    multi = MultiRegion("c", children, clock=SystemClock(), timeout=timedelta(milliseconds=30))

    with pytest.raises(IncompleteListingError) as caught:
        multi.list_owned()
    release.set()

    assert failures(caught.value) == {"c/a": "deadline", "c/b": None}
    assert caught.value.coverage[0].failure is ScopeFailure.DEADLINE
    assert caught.value.coverage[0].duration >= timedelta(milliseconds=30)


@pytest.mark.parametrize("ability", ["list_owned", "audit_instances"])
def test_what_hangs_is_not_asked_again_before_it_has_ended(ability):
    release, asked, ended = threading.Event(), [], threading.Event()

    def hang():
        asked.append(None)
        release.wait(20)
        ended.set()
        coverage = (Coverage(scope=A),)
        return AuditSweep(instances=(), coverage=coverage) if ability == "audit_instances" else Inventory((), coverage)

    multi = MultiRegion("c", {"a": Audits(hang)}, clock=SystemClock(), timeout=timedelta(milliseconds=100))
    first, second = coverage_of(getattr(multi, ability)), coverage_of(getattr(multi, ability))
    threads = len(asked)
    release.set()
    ended.wait(20)
    until(lambda: coverage_of(getattr(multi, ability))[0].ok)

    assert [entry.failure for entry in (*first, *second)] == [ScopeFailure.DEADLINE] * 2
    assert threads == 1
    assert "not asked" in second[0].detail


def test_two_that_list_at_once_do_not_keep_each_other_from_it():
    together = threading.Barrier(2, timeout=20)

    def say():
        together.wait()
        return whole(scope=A)()

    multi = MultiRegion("c", {"a": Says(say)}, clock=SystemClock(), timeout=timedelta(seconds=20))
    answers = ask_all([multi.list_owned] * 2, clock=SystemClock())

    assert {type(answer) for answer in answers} == {Answered}


def test_objects_that_follow_each_other_share_what_hangs():
    release, stragglers = threading.Event(), Stragglers()
    options = {"clock": SystemClock(), "timeout": timedelta(milliseconds=50), "stragglers": stragglers}
    coverage_of(MultiRegion("c", {"a": Says(release.wait)}, **options).list_owned)

    second = coverage_of(MultiRegion("c", {"a": Says(whole(scope=A))}, **options).list_owned)
    release.set()

    assert (second[0].failure, "not asked" in second[0].detail) == (ScopeFailure.DEADLINE, True)


def coverage_of(look):
    try:
        return look().coverage
    except IncompleteListingError as error:
        return error.coverage


def test_a_whole_answer_after_the_timeout_does_not_count(clock):
    cloud = FakeCloud("c", ("a",), clock=clock)
    cloud.fail_listing("a", ListingFault(delay=timedelta(minutes=2)))
    multi = MultiRegion("c", {"a": cloud.lister("a")}, clock=clock, timeout=timedelta(minutes=1))

    with pytest.raises(IncompleteListingError) as caught:
        multi.list_owned()

    assert failures(caught.value) == {"c/a": "deadline"}


def test_the_audit_names_the_regions_that_cannot_audit(clock):
    cloud = FakeCloud("c", ("a", "b"), clock=clock)
    cloud.add(FakeMachine(region="a", owner=None))
    multi = MultiRegion("c", {"a": cloud.auditor("a"), "b": cloud.lister("b")}, clock=clock)

    sweep = multi.audit_instances()

    assert [i.ref.region for i in sweep.instances] == ["a"]
    assert [(entry.scope, entry.ok) for entry in sweep.coverage] == [(A, True)]
    assert sweep.skipped == ("c/b",)


def test_an_audit_with_a_failed_region_still_shows_the_others(clock):
    cloud = FakeCloud("c", ("a", "b"), clock=clock)
    cloud.add(FakeMachine(region="b"))
    cloud.fail_audit("a", ListingFault(error_code="X"))
    multi = MultiRegion("c", {region: cloud.auditor(region) for region in cloud.regions}, clock=clock)

    sweep = multi.audit_instances()

    assert [i.ref.region for i in sweep.instances] == ["b"]
    assert [(entry.scope, entry.error_code) for entry in sweep.coverage] == [(A, "X"), (B, None)]


def audited(region):
    return AuditedInstance(ref=InstanceRef("c", region, "i-1"), state=InstanceState.RUNNING)


@pytest.mark.parametrize(
    ("say", "code"),
    [
        (raising(ValueError()), "value_error"),
        (lambda: None, "no_coverage"),
        (lambda: AuditSweep(instances=(), coverage=()), "no_coverage"),
        (lambda: AuditSweep(instances=(audited("a"),), coverage=()), "no_coverage"),
        (lambda: AuditSweep(instances=(audited("b"),), coverage=(Coverage(scope=A),)), "scope_mismatch"),
        (raising(IncompleteListingError(())), "incomplete_listing_error"),
    ],
    ids=["raises", "nothing", "empty sweep", "no coverage", "elsewhere", "a lister's error"],
)
def test_an_audit_that_fails_in_any_way_is_a_failed_region_and_never_an_error(clock, say, code):
    sweep = MultiRegion("c", {"a": Audits(say)}, clock=clock).audit_instances()

    assert sweep.instances == ()
    assert [(entry.scope, entry.error_code) for entry in sweep.coverage] == [(A, code)]


def event(provider, region):
    ref = InstanceRef(provider, region, "i-1")
    return ProviderEvent(ref=ref, fault_code="going", marked_for_termination=True)


def test_what_a_region_announces_for_another_place_is_not_believed_and_fails_no_sweep(clock):
    def say():
        return AuditSweep(
            instances=(audited("a"),), coverage=(Coverage(scope=A),), events=(event("c", "a"), event("c", "b"))
        )

    sweep = MultiRegion("c", {"a": Audits(say)}, clock=clock).audit_instances()

    assert [each.ref.region for each in sweep.events] == ["a"]
    assert [(entry.scope, entry.error_code) for entry in sweep.unheard] == [(A, "scope_mismatch")]
    assert [(len(sweep.instances), entry.ok) for entry in sweep.coverage] == [(1, True)]


def test_a_region_that_cannot_say_what_it_announces_may_leave_its_own_name_blank(clock):
    def say():
        unheard = (Unheard(scope=Scope("", ""), error_code="denied"), Unheard(scope=A, error_code="denied"))
        return AuditSweep(instances=(), coverage=(Coverage(scope=A),), unheard=unheard)

    sweep = MultiRegion("c", {"a": Audits(say)}, clock=clock).audit_instances()

    assert [entry.scope for entry in sweep.unheard] == [A, A]


def test_an_audit_that_hangs_is_a_failed_region():
    release = threading.Event()
    multi = MultiRegion("c", {"a": Audits(release.wait)}, clock=SystemClock(), timeout=timedelta(milliseconds=20))

    sweep = multi.audit_instances()
    release.set()

    assert [entry.failure for entry in sweep.coverage] == [ScopeFailure.DEADLINE]


@pytest.fixture
def cloud(clock):
    return FakeCloud("c", ("a", "b"), clock=clock)


@pytest.fixture
def terminator(cloud):
    return MultiRegionTerminator("c", {region: cloud.terminator(region) for region in cloud.regions})


def test_the_terminator_is_no_lister(terminator):
    assert isinstance(terminator, Terminator)
    assert not isinstance(terminator, Lister)
    assert terminator.regions == ("a", "b")


def test_a_machine_is_terminated_in_its_own_region(cloud, terminator):
    first = cloud.add(FakeMachine(region="a", instance_id="i-1"))
    second = cloud.add(FakeMachine(region="b", instance_id="i-1"))

    terminator.terminate(second)

    assert cloud.live == (first,)


@pytest.mark.parametrize(
    ("ref", "code"),
    [
        (InstanceRef("c", "d", "i-1"), "unknown_region"),
        (InstanceRef("c", "", "i-1"), "unknown_region"),
        (InstanceRef("x", "a", "i-1"), "unknown_provider"),
        (InstanceRef("", "a", "i-1"), "unknown_provider"),
    ],
)
def test_there_is_no_fallback_for_a_place_that_is_not_ours(clock, ref, code):
    cloud = FakeCloud("c", ("a",), clock=clock)
    there = cloud.add(FakeMachine(instance_id="i-1"))
    terminator = MultiRegionTerminator("c", {"a": cloud.terminator("a")})

    with pytest.raises(TerminateRejectedError) as caught:
        terminator.terminate(ref)

    assert caught.value.error_code == code
    assert cloud.live == (there,)


def test_the_child_gets_what_was_seen(cloud, terminator):
    ref = cloud.add(FakeMachine(region="a", worker_id="w"))
    (seen,) = cloud.lister("a").list_owned()

    terminator.terminate(ref, seen=seen)

    assert cloud.live == ()
