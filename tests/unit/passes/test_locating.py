"""A machine that was asked to end is gone once its cloud says so of its id, not once it is out of sight (rule 22)."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from providers.base import Lister
from providers.fake import ListingFault, TerminateFault
from providers.locations import Gone, Location, NotKnown, OnlyListed, There
from providers.model import InstanceRef, InstanceState, Inventory
from reaperd.clock import ManualClock, SystemClock
from reaperd.core.model import OutcomeKind, PassOutcome, PassReport, RefusalReason
from reaperd.errors import LedgerUnusableError
from reaperd.ledger.notebooks import BrokenNotebook
from reaperd.passes.aside import Patience
from reaperd.passes.observe import locate
from tests.unit.passes.conftest import World, kinds

MINUTE = timedelta(minutes=1)


@dataclass
class OnlyLists:
    """A lister that cannot look for single machines."""

    inner: Lister
    name: str = "fake"

    def list_owned(self) -> Inventory:
        return self.inner.list_owned()


@dataclass
class Listens(OnlyLists):
    """One that can, and keeps whom it was asked for."""

    before: Callable[[], None] = lambda: None
    asked: list[list[InstanceRef]] = field(default_factory=list)

    def locate(self, refs: Collection[InstanceRef]) -> Mapping[InstanceRef, Location]:
        self.asked.append(list(refs))
        self.before()
        return self.inner.locate(refs)  # type: ignore[attr-defined] # the fake one has it


def asked_to_end(world: World, fault: TerminateFault | None = None) -> InstanceRef:
    """Return an orphan whose end was accepted a minute ago."""
    ref = world.orphan(1)
    if fault is not None:
        world.cloud.fail_terminate("i-1", fault)
    assert kinds(world.reap()) == {"i-1": OutcomeKind.REQUESTED}
    world.clock.advance(MINUTE)
    return ref


def lost(world: World) -> InstanceRef:
    """Return one that runs on, without any tag."""
    ref = asked_to_end(world, TerminateFault.IGNORED)
    world.cloud.change(ref, owner=None, worker_id=None)
    return ref


def reap(world: World, lister: Lister) -> PassReport:
    return replace(world.reconciler(), lister=lister).run()


def keys(report: PassReport) -> list[str]:
    return [condition.key for condition in report.conditions]


def open_intents(world: World) -> set[InstanceRef]:
    return set(world.ledger.pending())


def test_a_machine_that_lost_its_tag_and_runs_on_is_never_told_to_be_gone(world: World):
    ref = lost(world)

    for _ in range(3):
        report = world.reap()
        world.clock.advance(31 * MINUTE)
        assert (report.outcome, kinds(report)) == (PassOutcome.COMPLETE, {})
        assert keys(report) == [f"termination_stuck/{ref}"]

    assert open_intents(world) == {ref}
    assert world.cloud.terminate_requests("i-1") == 1
    assert world.cloud.live == (ref,)


def test_what_is_told_of_it_is_kept_with_the_pass(world: World):
    ref = lost(world)

    world.reap()

    rows = world.ledger._connection.execute("SELECT record FROM passes ORDER BY seq").fetchall()
    (condition,) = json.loads(rows[-1][0])["conditions"]
    assert condition["key"] == f"termination_stuck/{ref}"
    assert {name: condition["data"][name] for name in ("state", "owner")} == {"state": "running", "owner": None}


def test_it_is_gone_once_somebody_ended_it_by_hand(world: World):
    ref = lost(world)
    world.reap()
    world.cloud.remove(ref)
    world.clock.advance(MINUTE)

    report = world.reap()

    assert kinds(report) == {"i-1": OutcomeKind.CONFIRMED_GONE}
    assert (keys(report), open_intents(world)) == ([], set())


def test_with_its_tag_back_it_is_asked_again_after_the_time_for_that(world: World):
    ref = lost(world)
    world.reap()
    world.cloud.change(ref, owner="prod-a", worker_id="w-1")
    world.cloud.mend()

    world.clock.advance(31 * MINUTE)
    report = world.reap()

    assert kinds(report) == {"i-1": OutcomeKind.REQUESTED}
    assert world.cloud.live == ()


@pytest.mark.parametrize("still_listed", [True, False])
def test_a_machine_that_ended_is_gone(world: World, still_listed: bool):
    asked_to_end(world)
    world.cloud.settle(still_listed=still_listed)

    report = world.reap()

    assert kinds(report) == {"i-1": OutcomeKind.CONFIRMED_GONE}
    assert open_intents(world) == set()


def test_what_nobody_can_say_keeps_the_request_open_until_somebody_can(world: World):
    ref = asked_to_end(world)
    world.cloud.settle()
    world.cloud.fail_locating("fake-1", ListingFault(error_code="Throttling"))

    told = [kinds(world.reap()), keys(world.reap())]
    world.clock.advance(31 * MINUTE)
    stuck = world.reap()
    world.cloud.mend()
    world.clock.advance(MINUTE)

    assert told == [{}, []]
    assert (kinds(stuck), keys(stuck)) == ({}, [f"termination_stuck/{ref}"])
    assert stuck.conditions[0].data["detail"] == "not listed, and not proved to be gone: Throttling"
    assert kinds(world.reap()) == {"i-1": OutcomeKind.CONFIRMED_GONE}


def test_where_nobody_can_be_asked_the_listing_is_believed(world: World):
    lost(world)

    report = reap(world, OnlyLists(world.cloud.lister()))

    assert kinds(report) == {"i-1": OutcomeKind.CONFIRMED_GONE}


def test_only_machines_that_are_asked_to_end_and_are_not_listed_are_asked_for(world: World):
    gone = asked_to_end(world)
    world.cloud.settle()
    stays = world.orphan(2)
    world.cloud.fail_terminate("i-2", TerminateFault.IGNORED)
    lister = Listens(world.cloud.lister())

    for _ in range(3):
        reap(world, lister)
        world.clock.advance(MINUTE)

    assert lister.asked == [[gone]]
    assert open_intents(world) == {stays}


def test_after_a_listing_that_is_not_whole_nobody_is_asked_for(world: World):
    lost(world)
    world.cloud.fail_listing("fake-1", ListingFault(error_code="AuthFailure"))
    lister = Listens(world.cloud.lister())

    report = reap(world, lister)

    assert report.reason == RefusalReason.LISTING_INCOMPLETE
    assert lister.asked == []


def test_without_the_ledger_nobody_is_asked_for(world: World):
    lost(world)
    lister = Listens(world.cloud.lister())
    broken = BrokenNotebook(LedgerUnusableError("ledger.db", "the disk is gone"))

    report = replace(world.reconciler(), lister=lister, notebook=broken).run()

    assert report.reason == RefusalReason.LEDGER_UNUSABLE
    assert lister.asked == []


def test_a_rehearsal_asks_too_and_tells_the_same(world: World):
    ref = lost(world)

    report = world.reap(rehearse=True)

    assert (kinds(report), keys(report)) == ({}, [f"termination_stuck/{ref}"])


def test_the_registry_is_read_after_the_look_for_single_machines(world: World):
    lost(world)
    late = world.orphan(2)
    lister = Listens(world.cloud.lister(), before=lambda: world.track(late, "w-2"))

    report = reap(world, lister)

    assert {v.ref.instance_id: str(v.call.reason) for v in report.verdicts} == {"i-2": "tracked"}


class _Restless(ManualClock):
    """A second passes whenever somebody asks for the time."""

    def monotonic(self) -> float:
        self.advance(timedelta(seconds=1))
        return super().monotonic()


def test_a_look_that_hangs_ends_with_the_pass_and_proves_nothing(world: World):
    release = threading.Event()
    ref = asked_to_end(world)
    world.cloud.settle()
    world.clock = _Restless(world.clock.now())
    world.deadline = timedelta(seconds=20)

    report = reap(world, Listens(world.cloud.lister(), before=lambda: release.wait(50)))
    release.set()

    assert (report.outcome, kinds(report)) == (PassOutcome.COMPLETE, {})
    assert open_intents(world) == {ref}


def test_asked_to_stop_while_somebody_is_looked_for_it_proves_nothing(world: World):
    release = threading.Event()
    ref = asked_to_end(world)
    world.cloud.settle()

    def hang() -> None:
        world.stop = True
        release.wait(50)

    report = reap(world, Listens(world.cloud.lister(), before=hang))
    release.set()

    assert kinds(report) == {}
    assert open_intents(world) == {ref}


def test_whoever_only_looks_reads_the_open_requests_in_the_ledger(world: World):
    ref = lost(world)

    assert world.reconciler().notebook.pending()[ref].outcome is OutcomeKind.REQUESTED


# ---------------------------------------------------------------- the look itself


REF = InstanceRef("fake", "fake-1", "i-1")


def patient() -> Patience:
    clock = SystemClock()
    return Patience(clock, clock.monotonic() + 50, lambda: False)


def test_nobody_is_asked_for_nothing(world: World):
    lister = Listens(world.cloud.lister())

    assert locate(lister, (), patient()) == {}
    assert lister.asked == []


def test_a_look_says_what_the_cloud_says(world: World):
    ref = world.orphan(1)

    found = locate(world.cloud.lister(), (ref, replace(REF, instance_id="i-9")), patient())

    assert list(found.values()) == [There(InstanceState.RUNNING, "prod-a"), Gone()]


def test_one_that_cannot_look_says_so(world: World):
    assert locate(OnlyLists(world.cloud.lister()), (REF,), patient()) == {REF: OnlyListed()}


def test_an_impatient_look_knows_nothing(world: World):
    release = threading.Event()
    hangs = Listens(world.cloud.lister(), before=lambda: release.wait(50))
    clock = SystemClock()

    late = locate(hangs, (REF,), Patience(clock, clock.monotonic(), lambda: False))
    interrupted = locate(hangs, (REF,), Patience(clock, clock.monotonic() + 50, lambda: True))
    release.set()

    assert late == {REF: NotKnown("no answer: late")}
    assert interrupted == {REF: NotKnown("no answer: interrupted")}
