"""Laws of the audit (rules 26, 27), on generated histories of sweeps."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from providers.base import Terminator
from providers.model import AuditedInstance, AuditSweep, InstanceRef, InstanceState, Scope, TagKeys
from reaperd.core.ignoring import IgnoreRule
from reaperd.core.leaks import AuditPolicy, find_leaks
from reaperd.core.starts import learn_starts, started
from reaperd.passes import audit
from tests.support.worlds import DEPLOYMENT, EAST, HOUR, MINUTE, NOW, WEST, broken, ref, whole

PLACES = (EAST, WEST)
IDS = ("i-1", "i-2", "i-3")
POLICY = AuditPolicy(
    deployment=DEPLOYMENT,
    tags=TagKeys(),
    max_age=24 * HOUR,
    max_cost_per_hour=5.0,
    ignore=(IgnoreRule(reason="known", patterns={"name": "bastion*"}),),
    scopes=frozenset({EAST}),
)

times = st.none() | st.integers(-3_000, 120).map(lambda minutes: NOW + minutes * MINUTE)
"""Also in the future, as clocks have it."""


@dataclass(frozen=True)
class Look:
    """One sweep, and when it was."""

    sweep: AuditSweep
    at: datetime


@st.composite
def machines(draw: st.DrawFn) -> tuple[AuditedInstance, ...]:
    refs = draw(st.sets(st.sampled_from([ref(instance_id, place) for instance_id in IDS for place in PLACES])))
    return tuple(
        AuditedInstance(
            ref=each,
            state=draw(st.sampled_from(InstanceState)),
            launched_at=draw(times),
            attached_at=draw(times),
            owner=draw(st.sampled_from([None, DEPLOYMENT, "prod-b"])),
            name=draw(st.sampled_from([None, "bastion-1", "<script>"])),
            cost_per_hour_usd=draw(st.sampled_from([None, 1.0, 9.0])),
            tags=draw(st.sampled_from([{}, {"Reaperd:Owner": DEPLOYMENT}])),
        )
        for each in draw(st.permutations(sorted(refs)))
    )


@st.composite
def looks(draw: st.DrawFn) -> Look:
    failed = draw(st.sets(st.sampled_from(PLACES)))
    # What a scope showed before it failed may be there or not.
    kept = draw(st.booleans())
    seen = tuple(each for each in draw(machines()) if kept or each.ref.scope not in failed)
    coverage = tuple(broken(place) if place in failed else whole(place) for place in PLACES)
    at = NOW + draw(st.integers(0, 3_000)) * MINUTE
    return Look(AuditSweep(instances=seen, coverage=coverage), at)


Book = Mapping[InstanceRef, datetime]


def learned(book: Book, look: Look) -> Book:
    """Return the book after a sweep, as the ledger keeps it."""
    lesson = learn_starts(look.sweep, book, look.at)
    kept = {each: start for each, start in book.items() if each not in lesson.forgotten}
    for each, start in lesson.noted.items():
        kept[each] = min(start, kept.get(each, start))
    return kept


def after(history: list[Look]) -> Book:
    book: Book = {}
    for look in history:
        book = learned(book, look)
    return book


histories = st.lists(looks(), max_size=5)


@given(histories, looks())
def test_another_sweep_never_makes_a_machine_younger_while_it_is_there(history: list[Look], look: Look):
    before = after(history)

    book = learned(before, look)

    for instance in look.sweep.instances:
        if instance.ref in before and not instance.state.is_gone:
            assert book[instance.ref] <= before[instance.ref]
            if before[instance.ref] <= look.at:
                since = started(instance, look.at, book[instance.ref])
                assert since is not None
                assert since <= before[instance.ref]


@given(histories, looks())
def test_the_age_of_a_machine_counts_from_no_later_than_any_sweep_knew(history: list[Look], look: Look):
    book = after(history)

    for leak in find_leaks(look.sweep.instances, POLICY, look.at, book).leaks:
        remembered = book.get(leak.instance.ref)
        assert leak.age is not None
        assert leak.age >= timedelta(0)
        if remembered is not None and remembered <= look.at:
            assert leak.age >= look.at - remembered


@given(histories, looks())
def test_a_scope_that_failed_makes_nothing_forgotten(history: list[Look], look: Look):
    before = after(history)
    failed = {entry.scope for entry in look.sweep.coverage if not entry.ok}

    book = learned(before, look)

    assert {each for each in before if each.scope in failed} <= set(book)


@given(histories, looks())
def test_of_a_scope_that_was_seen_whole_exactly_what_is_there_is_remembered(history: list[Look], look: Look):
    good = {entry.scope for entry in look.sweep.coverage if entry.ok}

    book = learned(after(history), look)

    there = {each.ref for each in look.sweep.instances if not each.state.is_gone}
    assert {each for each in book if each.scope in good} == {each for each in there if each.scope in good}


@given(histories, looks())
def test_a_second_sweep_that_sees_the_same_teaches_nothing(history: list[Look], look: Look):
    book = learned(after(history), look)

    lesson = learn_starts(look.sweep, book, look.at)

    assert (dict(lesson.noted), lesson.forgotten) == ({}, frozenset())


@given(histories, looks(), st.randoms())
def test_the_order_in_which_machines_are_listed_changes_nothing(history: list[Look], look: Look, chance):
    mixed = list(look.sweep.instances)
    chance.shuffle(mixed)
    other = AuditSweep(instances=tuple(mixed), coverage=tuple(reversed(look.sweep.coverage)))
    book = after(history)

    assert find_leaks(mixed, POLICY, look.at, book) == find_leaks(look.sweep.instances, POLICY, look.at, book)
    assert learn_starts(other, book, look.at) == learn_starts(look.sweep, book, look.at)


@given(histories, looks())
def test_every_machine_is_owned_a_leak_ignored_of_unknown_age_or_young(history: list[Look], look: Look):
    book = after(history)
    there = [each for each in look.sweep.instances if not each.state.is_gone]

    found = find_leaks(look.sweep.instances, POLICY, look.at, book)

    leaks, ignored, unknown = (
        {leak.instance.ref for leak in found.leaks},
        {each.leak.instance.ref for each in found.ignored},
        {leak.instance.ref for leak in found.unknown_age},
    )
    owned = {each.ref for each in there if each.owner == DEPLOYMENT}
    assert found.instances == len(there)
    assert found.owned == len(owned)
    assert sum(map(len, (leaks, ignored, unknown, owned))) == len(leaks | ignored | unknown | owned)
    assert [condition.subject for condition in found.conditions] == [
        *(str(leak.instance.ref) for leak in found.leaks),
        *map(str, found.out_of_scope),
    ]


@given(st.sampled_from(PLACES), looks())
def test_what_one_scope_shows_changes_nothing_of_another(place: Scope, look: Look):
    book = {ref(each, other): NOW - HOUR for each in IDS for other in PLACES}
    elsewhere = tuple(each for each in look.sweep.instances if each.ref.scope != place)
    without = AuditSweep(
        instances=elsewhere, coverage=tuple(each for each in look.sweep.coverage if each.scope != place)
    )

    both, one = learn_starts(look.sweep, book, look.at), learn_starts(without, book, look.at)

    assert {each: start for each, start in both.noted.items() if each.scope != place} == dict(one.noted)
    assert {each for each in both.forgotten if each.scope != place} == one.forgotten


def test_nothing_that_the_audit_is_made_of_can_terminate():
    fields = audit.Auditor.__dataclass_fields__
    reachable = {name for name, _ in inspect.getmembers(audit)}

    assert not any("terminat" in name.lower() for name in {*fields, *reachable})
    assert not hasattr(audit.InstanceAuditor, Terminator.terminate.__name__)
