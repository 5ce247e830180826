import threading
from datetime import UTC, datetime, timedelta

import pytest

from providers.base import InstanceAuditor, Lister, Terminator
from providers.errors import IncompleteListingError, ProviderSetupError, TerminateRejectedError
from providers.fake import FakeCloud, FakeMachine, ListingFault
from providers.model import Coverage, InstanceRef, InstanceState, Inventory, OwnedInstance, Scope
from providers.multicloud import MultiCloud, MultiCloudTerminator
from providers.multiregion import MultiRegion
from reaperd.clock import ManualClock, SystemClock

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Says:
    """A lister that says what it is told to."""

    def __init__(self, name, say):
        self.name = name
        self._say = say

    def list_owned(self):
        return self._say()


class SaysRegions(Says):
    regions = ("1", "2")


def owned(scope, instance_id="i-1", worker_id="w"):
    ref = InstanceRef(scope.provider, scope.region, instance_id)
    return OwnedInstance(ref=ref, state=InstanceState.RUNNING, owner="fleet", worker_id=worker_id, launched_at=NOW)


def whole(*scopes, instances=()):
    return lambda: Inventory(tuple(instances), tuple(Coverage(scope=scope) for scope in scopes))


def failures(error: IncompleteListingError) -> dict[str, str | None]:
    return {str(entry.scope): entry.error_code for entry in error.coverage}


@pytest.fixture
def clock():
    return ManualClock(NOW)


@pytest.fixture
def clouds(clock):
    return FakeCloud("b", ("1", "2"), clock=clock), FakeCloud("a", ("1",), clock=clock)


@pytest.fixture
def broken(clock):
    def broken(*listers):
        with pytest.raises(IncompleteListingError) as caught:
            MultiCloud("all", *listers, clock=clock).list_owned()
        return failures(caught.value)

    return broken


def test_it_is_a_lister_and_an_auditor_and_cannot_terminate(clock, clouds):
    multi = MultiCloud("all", *(cloud.lister() for cloud in clouds), clock=clock)

    assert isinstance(multi, Lister)
    assert isinstance(multi, InstanceAuditor)
    assert not hasattr(multi, "terminate")
    assert multi.providers == ("a", "b")


@pytest.mark.parametrize(
    ("name", "names"),
    [("all", []), ("all", ["a", "a"]), ("all", [""]), ("", ["a"])],
    ids=["no cloud", "one name twice", "nameless cloud", "nameless whole"],
)
def test_clouds_that_cannot_be_routed_to_are_refused(clock, name, names):
    clouds = [FakeCloud(each, clock=clock) for each in names]

    with pytest.raises(ProviderSetupError):
        MultiCloud(name, *(cloud.lister() for cloud in clouds), clock=clock)
    with pytest.raises(ProviderSetupError):
        MultiCloudTerminator(name, *(cloud.terminator() for cloud in clouds))


def test_a_missing_child_is_refused(clock):
    with pytest.raises(ProviderSetupError):
        MultiCloud("all", None, clock=clock)


def test_names_are_those_of_the_construction(clock, clouds):
    b, a = clouds
    ref = b.add()
    terminator = MultiCloudTerminator("all", a.terminator(), b.terminator())
    a.name = "renamed"

    terminator.terminate(ref)

    assert terminator.providers == ("a", "b")


def test_all_clouds_make_one_inventory(clock, clouds):
    for cloud in clouds:
        cloud.add(FakeMachine(worker_id=cloud.name))
    multi = MultiCloud("all", *(cloud.lister() for cloud in clouds), clock=clock)

    inventory = multi.list_owned()

    assert [i.ref.provider for i in inventory] == ["a", "b"]
    assert [str(entry.scope) for entry in inventory.coverage] == ["a/1", "b/1", "b/2"]


def test_the_provider_is_filled_in_and_the_region_left_as_it_is(clock):
    blank = Scope("", "1")
    multi = MultiCloud("all", Says("a", whole(blank, instances=[owned(blank)])), clock=clock)

    inventory = multi.list_owned()

    assert [str(i.ref) for i in inventory] == ["a/1/i-1"]


def test_a_child_that_names_another_cloud_is_not_believed(broken):
    other = Scope("b", "1")

    assert broken(Says("a", whole(other, instances=[owned(other)]))) == {"a/*": "scope_mismatch"}


def test_a_machine_outside_the_covered_scopes_proves_that_the_coverage_is_wrong(broken):
    lister = Says("a", whole(Scope("a", "1"), instances=[owned(Scope("a", "2"))]))

    assert broken(lister) == {"a/*": "scope_mismatch"}


def test_a_region_that_the_child_has_and_does_not_cover_is_named(broken):
    assert broken(SaysRegions("a", whole(Scope("a", "1")))) == {"a/1": None, "a/2": "no_coverage"}


def test_a_region_that_was_discovered_later_is_required_from_then_on(clock):
    lister = SaysRegions("a", whole(Scope("a", "1"), Scope("a", "2")))
    multi = MultiCloud("all", lister, clock=clock)
    multi.list_owned()
    lister.regions = ("1", "2", "3")

    with pytest.raises(IncompleteListingError) as caught:
        multi.list_owned()

    assert failures(caught.value) == {"a/1": None, "a/2": None, "a/3": "no_coverage"}


def test_one_broken_cloud_shows_every_scope_of_all(broken, clouds):
    b, a = clouds
    b.fail_listing("2", ListingFault(error_code="X"))

    assert broken(a.lister(), b.lister()) == {"a/1": None, "b/1": None, "b/2": "X"}


def test_a_cloud_that_dies_fails_all_the_regions_that_it_told_of(broken, clouds):
    def dies():
        raise OSError

    assert broken(SaysRegions("x", dies), clouds[1].lister()) == {"a/1": None, "x/1": "os_error", "x/2": "os_error"}


def test_a_cloud_that_is_incomplete_without_saying_where_is_named_all_the_same(broken):
    def incomplete():
        raise IncompleteListingError(())

    assert broken(Says("x", incomplete)) == {"x/*": "no_coverage"}


def test_a_cloud_that_hangs_ends_as_deadline(clouds):
    release = threading.Event()
    listers = (Says("x", release.wait), clouds[1].lister())
    multi = MultiCloud("all", *listers, clock=SystemClock(), timeout=timedelta(milliseconds=30))

    with pytest.raises(IncompleteListingError) as caught:
        multi.list_owned()
    release.set()

    assert failures(caught.value) == {"a/1": None, "x/*": "deadline"}


def test_one_account_under_two_names_is_incomplete(broken):
    listers = [Says(name, whole(Scope("", "1"), instances=[owned(Scope("", "1"))])) for name in ("a", "b")]

    assert broken(*listers) == {"a/1": "duplicate_instance", "b/1": "duplicate_instance"}


def test_a_page_read_twice_is_incomplete(broken, clouds):
    ref = clouds[1].add()
    clouds[1].fail_listing("1", ListingFault(repeated=frozenset({ref.instance_id})))

    assert broken(clouds[1].lister()) == {"a/1": "duplicate_instance"}


def test_a_cloud_without_coverage_of_any_region_is_incomplete(broken, clouds):
    clouds[1].fail_listing("1", ListingFault(no_coverage=True))

    assert broken(clouds[1].lister()) == {"a/1": "no_coverage"}


def test_an_audit_goes_through_two_levels_and_names_who_cannot(clock, clouds):
    b, a = clouds
    b.add(FakeMachine(region="1", owner=None))
    regions = MultiRegion("b", {"1": b.auditor("1"), "2": b.lister("2")}, clock=clock)
    multi = MultiCloud("all", regions, a.lister(), clock=clock)

    sweep = multi.audit_instances()

    assert [str(i.ref.scope) for i in sweep.instances] == ["b/1"]
    assert [str(entry.scope) for entry in sweep.coverage] == ["b/1"]
    assert sweep.skipped == ("a", "b/2")


def test_an_audit_shows_the_healthy_clouds_next_to_the_broken(clock, clouds):
    b, a = clouds
    a.add()
    b.fail_audit("1", ListingFault(error_code="X"))
    multi = MultiCloud("all", a.auditor(), b.auditor(), clock=clock)

    sweep = multi.audit_instances()

    assert [i.ref.provider for i in sweep.instances] == ["a"]
    assert {str(e.scope): e.error_code for e in sweep.coverage} == {"a/1": None, "b/1": "X", "b/2": None}


def test_a_machine_is_terminated_in_its_own_cloud(clouds):
    b, a = clouds
    kept, ended = a.add(FakeMachine(instance_id="i-1")), b.add(FakeMachine(instance_id="i-1"))
    terminator = MultiCloudTerminator("all", a.terminator(), b.terminator())

    terminator.terminate(ended)

    assert isinstance(terminator, Terminator)
    assert not isinstance(terminator, Lister)
    assert (a.live, b.live) == ((kept,), ())


@pytest.mark.parametrize("provider", ["x", "", "all"])
def test_there_is_no_fallback_for_another_cloud(clouds, provider):
    there = clouds[1].add(FakeMachine(instance_id="i-1"))
    terminator = MultiCloudTerminator("all", clouds[1].terminator())

    with pytest.raises(TerminateRejectedError) as caught:
        terminator.terminate(InstanceRef(provider, "1", "i-1"))

    assert caught.value.error_code == "unknown_provider"
    assert clouds[1].live == (there,)


class Unasked:
    name = "old"

    def terminate(self, ref, *, seen=None):
        """End it."""


class TakesAll(Unasked):
    def terminate(self, ref, **rest):
        """End it."""


def test_a_terminator_that_cannot_be_asked_again_is_refused():
    with pytest.raises(ProviderSetupError, match="permitted"):
        MultiCloudTerminator("all", Unasked())

    assert MultiCloudTerminator("all", TakesAll()).providers == ("old",)
