"""One pass from look to record."""

from __future__ import annotations

import json
import sqlite3
import threading
from dataclasses import replace
from datetime import timedelta

import pytest

from providers.fake import ListingFault
from providers.model import Inventory, Scope
from reaperd.clock import ManualClock, SystemClock
from reaperd.core.model import (
    DecisionRecord,
    DeferReason,
    KeepReason,
    Memory,
    OutcomeKind,
    PassOutcome,
    PassReport,
    RefusalReason,
    RegistryPin,
)
from reaperd.core.telling import Telling
from reaperd.errors import LedgerUnusableError
from reaperd.ledger.notebooks import BrokenNotebook, TracelessNotebook
from reaperd.passes.aside import Patience
from reaperd.passes.observe import list_clouds
from registry.model import RegistryFault
from tests.unit.passes.conftest import World, kinds


def keeps(report: PassReport) -> dict[str, str]:
    return {v.ref.instance_id: str(v.call.reason) for v in report.verdicts if not v.terminates}


def test_a_worker_that_registers_while_the_clouds_are_listed_is_seen(world: World):
    ref = world.orphan(1)
    world.cloud.on_list = lambda _: world.track(ref, "w-1") if not world.registry.contents.workers else None

    report = world.reap()

    assert keeps(report) == {"i-1": KeepReason.TRACKED}


def test_a_failed_region_refuses_the_pass_and_is_named(world: World):
    world.orphan(1)
    world.cloud.fail_listing("fake-1", ListingFault(error_code="RequestLimitExceeded"))

    report = world.reap()

    assert (report.outcome, report.reason) == (PassOutcome.REFUSED, RefusalReason.LISTING_INCOMPLETE)
    assert "fake/fake-1" in report.detail
    assert (report.verdicts, report.digest) == ((), None)
    assert world.cloud.mutations == ()


def test_several_reasons_are_told_in_order(world: World):
    world.cloud.fail_listing("fake-1", ListingFault(error_code="RequestLimitExceeded"))
    world.registry.fault = RegistryFault.LOCKED

    report = world.reap()

    assert (report.reason, report.also) == (RefusalReason.LISTING_INCOMPLETE, (RefusalReason.REGISTRY_UNUSABLE,))


def test_without_the_ledger_nothing_is_done_and_the_rest_is_told_all_the_same(world: World):
    world.orphan(1)
    world.registry.fault = RegistryFault.LOCKED
    broken = BrokenNotebook(LedgerUnusableError("ledger.db", "the disk is gone"))

    report = replace(world.reconciler(), notebook=broken).run()

    assert (report.outcome, report.reason) == (PassOutcome.REFUSED, RefusalReason.LEDGER_UNUSABLE)
    assert report.also == (RefusalReason.REGISTRY_UNUSABLE,)
    assert world.cloud.mutations == ()


class Forgetful(TracelessNotebook):
    """Keeps nothing, and does not want to be given anything."""

    def record(self, decision: DecisionRecord, telling: Telling | None = None) -> None:
        raise AssertionError(decision)


def test_a_look_that_leaves_no_trace_makes_no_record_of_it(world: World):
    world.orphan(1)

    report = replace(world.reconciler(rehearse=True), notebook=Forgetful(Memory())).run()

    assert report.outcome is PassOutcome.COMPLETE
    assert kinds(report) == {"i-1": OutcomeKind.WOULD_TERMINATE}


def test_a_pass_that_could_not_be_recorded_says_so(world: World):
    world.ledger._connection.execute("ALTER TABLE passes RENAME TO elsewhere")

    report = world.reap()

    assert (report.outcome, report.reason) == (PassOutcome.REFUSED, RefusalReason.LEDGER_UNUSABLE)


def test_a_refused_pass_that_could_not_be_recorded_still_tells_why_it_was_refused(world: World):
    world.registry.fault = RegistryFault.LOCKED
    world.ledger._connection.execute("ALTER TABLE passes RENAME TO elsewhere")

    report = world.reap()

    assert (report.reason, report.also) == (RefusalReason.LEDGER_UNUSABLE, (RefusalReason.REGISTRY_UNUSABLE,))
    assert [condition.key for condition in report.conditions] == ["ledger_unusable", "registry_unusable"]


def test_a_pass_that_acted_and_could_not_be_recorded_is_deferred(world: World):
    world.orphan(1)
    world.ledger._connection.execute("ALTER TABLE passes RENAME TO elsewhere")

    report = world.reap()

    assert (report.outcome, report.reason) == (PassOutcome.DEFERRED, DeferReason.LEDGER_UNUSABLE)
    assert kinds(report) == {"i-1": OutcomeKind.REQUESTED}


def test_every_pass_leaves_a_record_with_its_coverage_and_its_terminations(world: World):
    world.orphan(1)
    world.track(world.orphan(2), "w-2")

    report = world.reap()

    record = records(world)[-1]
    assert record["pass_id"] == report.pass_id
    assert record["coverage"][0]["ok"] is True
    assert {v["instance_id"]: v["verdict"] for v in record["verdicts"]} == {"i-1": "terminate", "i-2": "keep"}


def test_a_record_leaves_out_the_verdicts_that_did_not_change(world: World):
    world.track(world.orphan(2), "w-2")

    world.reap()
    world.clock.advance(timedelta(minutes=1))
    world.reap()

    assert [len(record["verdicts"]) for record in records(world)] == [1, 0]


def test_a_registry_that_another_process_came_to_know_meanwhile_is_read_again(world: World):
    ref = world.orphan(1)
    world.track(ref, "w-1")
    world.reap()
    world.registry.before_reading = once_only(lambda: _learned_elsewhere(world))

    report = world.reap()

    assert report.outcome is PassOutcome.COMPLETE
    assert keeps(report) == {"i-1": KeepReason.TRACKED}


def test_a_ledger_that_changes_at_every_moment_refuses_the_pass(world: World):
    world.track(world.orphan(1), "w-1")
    world.reap()
    world.registry.before_reading = lambda: _learned_elsewhere(world)

    report = world.reap()

    assert (report.outcome, report.reason) == (PassOutcome.REFUSED, RefusalReason.LEDGER_UNUSABLE)


def test_asked_to_stop_while_listing_it_stops_without_a_verdict(world: World):
    release = threading.Event()
    world.cloud.on_list = lambda _: release.wait(20)
    world.orphan(1)
    world.stop = True

    report = world.reap()
    release.set()

    assert (report.outcome, report.reason) == (PassOutcome.DEFERRED, DeferReason.STOPPING)
    assert world.cloud.mutations == ()


def test_a_hung_listing_ends_at_the_deadline_and_its_late_answer_is_dropped(world: World):
    release = threading.Event()
    world.orphan(1)
    lister = world.cloud.lister()

    class Hung:
        name = "fake"

        def list_owned(self) -> Inventory:
            release.wait(20)
            return lister.list_owned()

    clock = SystemClock()
    listing = list_clouds(Hung(), Patience(clock, clock.monotonic() + 0.2, lambda: False))
    release.set()

    assert (listing.late, listing.instances, listing.coverage) == (True, (), ())


class _Restless(ManualClock):
    """A second passes whenever somebody asks for the time."""

    def monotonic(self) -> float:
        self.advance(timedelta(seconds=1))
        return super().monotonic()


def test_a_hung_registry_ends_at_the_deadline_and_is_named(world: World):
    release = threading.Event()
    world.orphan(1)
    world.clock = _Restless(world.clock.now())
    world.deadline = timedelta(seconds=20)
    world.registry.before_reading = lambda: release.wait(30)

    report = world.reap()
    release.set()

    assert (report.outcome, report.reason) == (PassOutcome.REFUSED, RefusalReason.DEADLINE)
    assert report.detail == "no answer in time from the registry"
    assert report.also == (RefusalReason.REGISTRY_UNUSABLE,)
    assert world.cloud.mutations == ()


def test_asked_to_stop_while_the_registry_hangs_it_stops_without_a_verdict(world: World):
    release = threading.Event()
    world.orphan(1)

    def hang() -> None:
        world.stop = True
        release.wait(30)

    world.registry.before_reading = hang
    report = world.reap()
    release.set()

    assert (report.outcome, report.reason) == (PassOutcome.DEFERRED, DeferReason.STOPPING)
    assert "registry" in report.detail
    assert world.cloud.mutations == ()


def test_a_registry_that_answers_is_not_blamed_for_clouds_that_used_up_the_time(world: World):
    world.clock = _Restless(world.clock.now())
    world.deadline = timedelta(0)
    release = threading.Event()
    world.cloud.on_list = lambda _: release.wait(30)

    report = world.reap()
    release.set()

    assert report.reason == RefusalReason.DEADLINE
    assert RefusalReason.REGISTRY_UNUSABLE not in report.also


def test_what_a_plug_in_raises_by_mistake_is_not_swallowed(world: World):
    class Broken:
        name = "fake"

        def list_owned(self) -> Inventory:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        replace(world.reconciler(), lister=Broken()).run()


def test_accepted_is_not_gone_until_a_later_complete_look_says_so(world: World):
    world.orphan(1)
    told: list[dict[str, OutcomeKind]] = []
    for advance in (0, 30, 7200):
        world.clock.advance(timedelta(seconds=advance))
        told.append(kinds(world.reap()))

    assert told == [{"i-1": OutcomeKind.REQUESTED}, {}, {"i-1": OutcomeKind.CONFIRMED_GONE}]


def test_an_incomplete_listing_confirms_nothing(world: World):
    world.orphan(1)
    world.reap()
    world.clock.advance(timedelta(hours=3))
    world.cloud.fail_listing("fake-1", ListingFault(error_code="RequestLimitExceeded"))

    report = world.reap()

    assert kinds(report) == {}
    assert len(world.ledger.recall(world.clock.now()).intents) == 1


def test_three_looks_confirm_and_two_that_are_too_close_count_as_one(world: World):
    world.policy = replace(world.policy, confirm_passes=3)
    world.orphan(1)
    told: list[bool] = []
    for advance in (0, 29, 30, 30):
        world.clock.advance(timedelta(seconds=advance))
        told.append(bool(kinds(world.reap())))

    assert told == [False, False, False, True]


def test_a_scope_once_seen_stays_required_where_scopes_are_discovered(world: World):
    world.policy = replace(world.policy, scopes=frozenset(), discovering=frozenset({"fake"}))
    world.reap()
    world.ledger._connection.execute("INSERT INTO scopes VALUES ('fake', 'fake-2')")

    report = world.reap()

    assert (report.reason, report.detail) == (RefusalReason.LISTING_INCOMPLETE, "fake/fake-2 (not_listed)")


def test_an_explicit_list_of_scopes_drops_the_others(world: World):
    world.ledger._connection.execute("INSERT INTO scopes VALUES ('fake', 'fake-2')")

    world.reap()

    assert world.ledger.recall(world.clock.now()).scopes == {Scope("fake", "fake-1")}


def once_only(act):
    calls: list[None] = []

    def call() -> None:
        if not calls:
            calls.append(None)
            act()

    return call


def _learned_elsewhere(world: World) -> None:
    """Play another process that read a newer registry and wrote so into the ledger."""
    ref = world.orphan(len(world.registry.contents.workers) + 100)
    world.track(ref, f"w-{ref.instance_id}")
    contents = world.registry.contents
    pin = RegistryPin(registry_id=contents.registry_id, epoch=contents.epoch, nonce=contents.nonces[contents.epoch])
    with world.another() as ledger:
        ledger.pin(pin)


def records(world: World) -> list[dict]:
    connection = sqlite3.connect(world.path)
    rows = connection.execute("SELECT record FROM passes ORDER BY seq").fetchall()
    connection.close()
    return [json.loads(row[0]) for row in rows]


def test_a_look_is_counted_with_what_came_of_it(world: World):
    world.orphan(1)

    census = world.reap().census

    assert census is not None
    assert (census.total.orphans, census.total.would_terminate, census.total.terminating) == (1, 1, 1)


def test_a_refused_look_is_counted_all_the_same(world: World):
    world.orphan(1)
    world.allow(max_per_pass=0)

    report = world.reap()

    assert (report.outcome, report.census is not None) == (PassOutcome.REFUSED, True)


def test_an_incomplete_look_counts_nothing(world: World):
    world.orphan(1)
    world.cloud.fail_listing("fake-1", ListingFault(error_code="RequestLimitExceeded"))

    assert world.reap().census is None
