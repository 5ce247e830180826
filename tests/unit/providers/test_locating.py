"""Single machines, asked for through wrappers: each by the one who answers for its place, and nobody else."""

import threading
from datetime import UTC, datetime, timedelta

import pytest

from providers.base import Locator
from providers.fake import FakeCloud, FakeMachine, ListingFault
from providers.locating import LOCATING_TIMEOUT, locate_with
from providers.locations import Gone, NotKnown, OnlyListed, There
from providers.model import InstanceRef, InstanceState
from providers.multicloud import MultiCloud
from providers.multiregion import MultiRegion
from reaperd.clock import ManualClock, SystemClock
from tests.support.processes import until

NOW = datetime(2026, 1, 1, tzinfo=UTC)
A, B = InstanceRef("c", "a", "i-1"), InstanceRef("c", "b", "i-1")
RUNS = There(InstanceState.RUNNING, "fleet")


class OnlyLists:
    name = "c"

    def list_owned(self):
        raise NotImplementedError


class Says(OnlyLists):
    """A locator that says what it is told to, and keeps what it was asked."""

    def __init__(self, say):
        self._say = say
        self.asked = []

    def locate(self, refs):
        self.asked.append(list(refs))
        return self._say(refs)


def all_of_them(location):
    return Says(lambda refs: dict.fromkeys(refs, location))


def regions(a, b, *, clock=None, timeout=None):
    return MultiRegion("c", {"a": a, "b": b}, clock=clock or ManualClock(NOW), timeout=timeout)


# ---------------------------------------------------------------- values


def test_a_terminated_machine_is_not_there():
    with pytest.raises(ValueError, match="say Gone"):
        There(InstanceState.TERMINATED)


# ---------------------------------------------------------------- one provider


def test_what_cannot_look_by_ids_has_only_its_listing():
    assert locate_with(OnlyLists(), [A, B]) == {A: OnlyListed(), B: OnlyListed()}


def test_what_is_no_answer_is_not_known():
    told = Says(lambda _: {A: "running", B: RUNS, InstanceRef("c", "a", "i-9"): Gone()})

    assert locate_with(told, [A, B]) == {A: NotKnown("str is no answer"), B: RUNS}


@pytest.mark.parametrize("nothing", [None, {}, [RUNS]], ids=repr)
def test_what_is_not_answered_is_not_known(nothing):
    assert locate_with(Says(lambda _: nothing), [A]) == {A: NotKnown("no answer")}


# ---------------------------------------------------------------- several


def test_each_region_is_asked_for_its_own_machines_only():
    here, there = all_of_them(RUNS), all_of_them(Gone())

    assert regions(here, there).locate([A, B]) == {A: RUNS, B: Gone()}
    assert (here.asked, there.asked) == ([[A]], [[B]])


def test_a_region_of_which_nothing_is_asked_is_left_alone():
    here, there = all_of_them(RUNS), all_of_them(Gone())

    assert regions(here, there).locate([A]) == {A: RUNS}
    assert there.asked == []


@pytest.mark.parametrize("elsewhere", [InstanceRef("c", "z", "i-1"), InstanceRef("d", "a", "i-1")], ids=str)
def test_a_place_that_nobody_answers_for_is_not_known(elsewhere):
    asked = all_of_them(Gone())

    assert regions(asked, asked).locate([elsewhere]) == {elsewhere: NotKnown("nobody here answers for this place")}
    assert asked.asked == []


def test_one_that_raises_takes_no_other_with_it():
    def dies(_):
        raise LookupError(404)

    assert regions(Says(dies), all_of_them(RUNS)).locate([A, B]) == {A: NotKnown("LookupError: 404"), B: RUNS}


def test_a_terminated_machine_that_a_locator_calls_there_is_not_known():
    wrong = Says(lambda refs: {ref: There(InstanceState.TERMINATED) for ref in refs})

    found = regions(wrong, all_of_them(Gone())).locate([A, B])

    assert isinstance(found[A], NotKnown)
    assert found[B] == Gone()


def test_one_that_cannot_look_says_so_among_those_that_can():
    assert regions(OnlyLists(), all_of_them(RUNS)).locate([A, B]) == {A: OnlyListed(), B: RUNS}


def test_nobody_is_asked_for_nothing():
    asked = all_of_them(RUNS)

    assert regions(asked, asked).locate([]) == {}
    assert asked.asked == []


@pytest.mark.timeout(60)
def test_one_that_hangs_is_not_waited_for_and_not_asked_again_while_it_hangs():
    hanging = threading.Event()
    begun = []

    def hangs(refs):
        begun.append(refs)
        hanging.wait(50)
        return dict.fromkeys(refs, RUNS)

    cloud = regions(Says(hangs), all_of_them(RUNS), clock=SystemClock(), timeout=timedelta(seconds=0.2))
    found = [cloud.locate([A, B]) for _ in range(2)]
    hanging.set()

    assert found == [
        {A: NotKnown("no answer in time"), B: RUNS},
        {A: NotKnown("not asked: the look before has not ended"), B: RUNS},
    ]
    assert len(begun) == 1
    until(lambda: cloud.locate([A])[A] == RUNS)


def test_nobody_is_waited_for_longer_than_a_glance_takes():
    clock = ManualClock(NOW)
    slow = FakeCloud("c", ("a", "b"), clock=clock)
    slow.fail_locating("a", ListingFault(delay=LOCATING_TIMEOUT))

    found = regions(slow.lister("a"), slow.lister("b"), clock=clock, timeout=timedelta(hours=1)).locate([A])

    assert found == {A: NotKnown("no answer in time")}


def test_clouds_are_told_apart_by_their_names():
    clock = ManualClock(NOW)
    one, two = FakeCloud("one", ("a",), clock=clock), FakeCloud("two", ("a",), clock=clock)
    here = one.add(FakeMachine(owner=None))
    there = InstanceRef("two", "a", here.instance_id)
    both = MultiCloud("clouds", one.lister(), two.auditor(), clock=clock)

    assert isinstance(both, Locator)
    assert both.locate([here, there]) == {here: There(InstanceState.RUNNING), there: Gone()}


# ---------------------------------------------------------------- the cloud in memory


def test_the_cloud_in_memory_shows_what_its_listing_hides():
    cloud = FakeCloud(clock=ManualClock(NOW))
    ref = cloud.add()
    cloud.freeze_view("fake-1")
    cloud.fail_listing("fake-1", ListingFault(missing=frozenset({ref.instance_id})))

    assert cloud.lister().locate([ref]) == {ref: RUNS}
    cloud.remove(ref)
    assert cloud.lister().locate([ref]) == {ref: Gone()}


def test_the_cloud_in_memory_can_be_made_to_answer_nothing_for_a_while():
    cloud = FakeCloud(clock=ManualClock(NOW))
    ref = cloud.add()
    cloud.fail_locating("fake-1", ListingFault(error_code="Throttling", calls=1))

    found = [cloud.lister().locate([ref])[ref] for _ in range(2)]

    assert found == [NotKnown("Throttling"), RUNS]
