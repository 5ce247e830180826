"""The promises of `BatchTerminator`, one test each."""

# The abilities are Protocols, and are asked for by type.
# mypy: disable-error-code="type-abstract"

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from providers.base import BatchPermission, BatchTerminator
from providers.conformance.suite import NOWHERE, THREADS, Conformance, at_once
from providers.errors import (
    GoesAloneError,
    InstanceChangedError,
    SpoiledBatchError,
    TerminateError,
    TerminationWithdrawnError,
)
from providers.harness import ChangesTags, CountsMutations, TerminatorHarness
from providers.model import InstanceRef, OwnedInstance, Scope

Answers = Mapping[InstanceRef, TerminateError | None]


class BatchTerminatorConformance(Conformance):
    """The promises of `BatchTerminator`. What it terminates with is put to those of `Terminator` as well."""

    @pytest.fixture
    def harness(self) -> TerminatorHarness:
        """Return a harness of an empty cloud whose terminator can end several machines together."""
        raise NotImplementedError

    def test_it_can_end_several_under_the_name_of_the_lister(self, harness: TerminatorHarness) -> None:
        """Both are found under one routing key."""
        assert _batching(harness).name == harness.lister().name

    def test_it_says_how_many_may_go_together_and_how_fast(self, harness: TerminatorHarness) -> None:
        """In every place that it covers; elsewhere each goes alone."""
        terminator = _batching(harness)
        for scope in harness.scopes:
            allowance = terminator.allowance(scope)
            assert allowance is not None
            assert allowance.together > 1
            rates = (allowance.requests, allowance.machines)
            assert all(rate.burst >= 1 and rate.per_second > 0 for rate in rates)
        assert terminator.allowance(replace(harness.scopes[0], region=NOWHERE)) is None
        assert terminator.allowance(replace(harness.scopes[0], provider="nobody")) is None

    def test_exactly_those_machines_end(self, harness: TerminatorHarness) -> None:
        """In every scope, and no other, not even one of the same worker."""
        for scope in harness.scopes:
            ended, kept = _some(harness, scope), harness.add_owned(scope)
            assert _ended(harness, ended) == dict.fromkeys(ended)
            assert [harness.exists(ref) for ref in (*ended, kept)] == [False] * len(ended) + [True]

    def test_what_was_ended_is_no_longer_listed_as_existing(self, harness: TerminatorHarness) -> None:
        """Accepted is not gone: it may still be listed, as going."""
        _ended(harness, _some(harness))
        assert [instance.ref for instance in harness.lister().list_owned() if instance.state.exists] == []

    def test_of_no_machines_nothing_is_asked(self, harness: TerminatorHarness) -> None:
        """And nobody's leave either."""
        assert _batching(harness).terminate_many([], permitted=_nobody) == {}

    def test_a_second_request_does_no_harm(self, harness: TerminatorHarness) -> None:
        """Each is accepted again, or refused because it is gone or going; none of the others ends."""
        refs, kept = _some(harness), harness.add_owned(harness.scopes[0])
        seen = _listed(harness, refs)
        for _ in range(2):
            answers = _batching(harness).terminate_many(seen, permitted=_all)
            assert set(answers) == set(refs)
        assert harness.exists(kept)

    def test_every_machine_has_an_answer_of_its_own(self, harness: TerminatorHarness) -> None:
        """One that the cloud does not know is an error, and the others are not hindered for good."""
        refs = _some(harness)
        seen = list(_listed(harness, refs))
        unknown = replace(seen[0], ref=replace(seen[0].ref, instance_id=harness.unknown_id))
        answers = _until_settled(harness, [unknown, *seen])
        assert isinstance(answers[unknown.ref], TerminateError)
        assert [answers[ref] for ref in refs] == [None] * len(refs)
        assert not any(harness.exists(ref) for ref in refs)

    def test_what_is_not_a_yes_is_never_told_as_one(self, harness: TerminatorHarness) -> None:
        """A machine whose answer is None has ended, and one that was not to be named has not."""
        refs = _some(harness)
        seen = list(_listed(harness, refs))
        answers = _batching(harness).terminate_many([replace(seen[0], worker_id="w-other"), *seen[1:]], permitted=_all)
        assert answers[refs[0]] is not None
        assert [harness.exists(ref) for ref in refs] == [answers[ref] is not None for ref in refs]

    def test_there_is_no_fallback_to_another_place(self, harness: TerminatorHarness) -> None:
        """A region or provider that is not covered is an error for each, even for ids that exist elsewhere."""
        refs = _some(harness)
        scope = harness.scopes[0]
        for place in (replace(scope, region=NOWHERE), replace(scope, region=""), replace(scope, provider="nobody")):
            wrong = [
                replace(each, ref=replace(each.ref, provider=place.provider, region=place.region))
                for each in _listed(harness, refs)
            ]
            answers = _batching(harness).terminate_many(wrong, permitted=_all)
            assert set(answers) == {each.ref for each in wrong}
            assert all(isinstance(error, TerminateError) for error in answers.values())
        assert all(harness.exists(ref) for ref in refs)

    def test_what_cannot_be_one_request_is_refused_whole(self, harness: TerminatorHarness) -> None:
        """Too many, or one of them twice: nothing is sent."""
        refs = _some(harness)
        seen = _listed(harness, refs)
        terminator = _batching(harness)
        allowance = terminator.allowance(harness.scopes[0])
        assert allowance is not None
        first = seen[0]
        others = [
            replace(first, ref=replace(first.ref, instance_id=f"{first.ref.instance_id}{number}"))
            for number in range(allowance.together)
        ]
        for wrong in ([*seen, first], [first, *others]):
            with pytest.raises(ValueError, match=r"."):
                terminator.terminate_many(wrong, permitted=_all)
        assert all(harness.exists(ref) for ref in refs)

    def test_one_of_another_worker_than_was_seen_is_spared(self, harness: TerminatorHarness) -> None:
        """The plan was made for another machine; the others go."""
        for worker_id in ("w-2", None):
            refs = _some(harness)
            first, *others = _listed(harness, refs)
            answers = _batching(harness).terminate_many([replace(first, worker_id=worker_id), *others], permitted=_all)
            _assert_first_spared(harness, answers, refs)

    def test_one_of_another_launch_time_than_was_seen_is_spared(self, harness: TerminatorHarness) -> None:
        """The id was used anew, or the machine was started again; the others go."""
        refs = _some(harness)
        first, *others = _listed(harness, refs)
        other = (first.launched_at or datetime(2020, 1, 1, tzinfo=UTC)) - timedelta(hours=1)
        answers = _batching(harness).terminate_many([replace(first, launched_at=other), *others], permitted=_all)
        _assert_first_spared(harness, answers, refs)

    def test_one_that_was_given_away_is_spared(self, harness: TerminatorHarness) -> None:
        """Its ownership tag is gone or has another value by now; the others go."""
        for value in (None, harness.owner + "-other"):
            _spares_the_first_tagged(harness, self.ability(harness, ChangesTags).tag_keys.owner, value)

    def test_one_that_was_protected_is_spared(self, harness: TerminatorHarness) -> None:
        """After the listing, too, and whatever the value of the tag; the others go."""
        _spares_the_first_tagged(harness, self.ability(harness, ChangesTags).tag_keys.protect, "false")

    def test_one_that_another_worker_took_is_spared(self, harness: TerminatorHarness) -> None:
        """Its worker tag is another by now; the others go."""
        _spares_the_first_tagged(harness, self.ability(harness, ChangesTags).tag_keys.worker, "w-2")

    def test_those_without_permission_are_spared(self, harness: TerminatorHarness) -> None:
        """Somebody has come to need them since the plan was made; those that are permitted go."""
        refs = _some(harness)
        answers = _ended(harness, refs, permitted=lambda asked: [ref for ref in asked if ref != refs[0]])
        assert isinstance(answers[refs[0]], TerminationWithdrawnError)
        assert [harness.exists(ref) for ref in refs] == [True] + [False] * (len(refs) - 1)

    def test_permission_is_asked_after_the_look_and_for_exactly_those_that_would_be_named(
        self, harness: TerminatorHarness
    ) -> None:
        """One that the look spares is not asked about, and nothing has ended when it is asked."""
        refs = _some(harness)
        seen = list(_listed(harness, refs))
        asked: list[InstanceRef] = []

        def permitted(those: Sequence[InstanceRef]) -> Collection[InstanceRef]:
            assert all(harness.exists(ref) for ref in those)
            asked.extend(those)
            return those

        _batching(harness).terminate_many([replace(seen[0], worker_id="w-other"), *seen[1:]], permitted=permitted)
        assert sorted(asked) == sorted(refs[1:])

    def test_a_permission_that_cannot_be_had_is_none(self, harness: TerminatorHarness) -> None:
        """Whatever asking raises comes out, and the machines stay."""
        refs = _some(harness)

        def permitted(_: Sequence[InstanceRef]) -> Collection[InstanceRef]:
            raise LookupError

        with pytest.raises(LookupError):
            _ended(harness, refs, permitted=permitted)
        assert all(harness.exists(ref) for ref in refs)

    def test_nothing_is_sent_without_permission(self, harness: TerminatorHarness) -> None:
        """Not only no terminate: nothing that prepares one."""
        cloud, refs = self.ability(harness, CountsMutations), _some(harness)
        before = cloud.mutations()
        answers = _ended(harness, refs, permitted=_nobody)
        assert all(isinstance(error, TerminationWithdrawnError) for error in answers.values())
        assert cloud.mutations() == before

    def test_permission_for_others_than_were_asked_about_is_none(self, harness: TerminatorHarness) -> None:
        """What is not named cannot be ended by an answer."""
        refs = _some(harness)
        _ended(harness, refs[1:], permitted=lambda _: [refs[0]])
        assert all(harness.exists(ref) for ref in refs)

    def test_batches_may_go_at_the_same_time(self, harness: TerminatorHarness) -> None:
        """One object is used from several threads."""
        batches = [_some(harness) for _ in range(THREADS)]
        kept = harness.add_owned(harness.scopes[0], worker_id="kept")
        seen = [_listed(harness, refs) for refs in batches]
        terminator = _batching(harness)
        at_once([partial(terminator.terminate_many, each, permitted=_all) for each in seen])
        assert [harness.exists(ref) for refs in batches for ref in refs] == [False] * (THREADS * len(batches[0]))
        assert harness.exists(kept)


def _batching(harness: TerminatorHarness) -> BatchTerminator:
    terminator: object = harness.terminator()
    assert isinstance(terminator, BatchTerminator)
    return terminator


def _some(harness: TerminatorHarness, scope: Scope | None = None) -> list[InstanceRef]:
    return [harness.add_owned(scope or harness.scopes[0]) for _ in range(3)]


def _listed(harness: TerminatorHarness, refs: Sequence[InstanceRef]) -> Sequence[OwnedInstance]:
    """Return the machines as the lister shows them, in this order."""
    shown = {instance.ref: instance for instance in harness.lister().list_owned()}
    return [shown[ref] for ref in refs]


def _all(refs: Sequence[InstanceRef]) -> Collection[InstanceRef]:
    return refs


def _nobody(_: Sequence[InstanceRef]) -> Collection[InstanceRef]:
    return ()


def _ended(harness: TerminatorHarness, refs: Sequence[InstanceRef], permitted: BatchPermission = _all) -> Answers:
    return _batching(harness).terminate_many(_listed(harness, refs), permitted=permitted)


def _until_settled(harness: TerminatorHarness, seen: Sequence[OwnedInstance]) -> Answers:
    """Go on as a caller does with those that were spoiled by others, or have to go alone."""
    answers: dict[InstanceRef, TerminateError | None] = {}
    left = {each.ref: each for each in seen}
    for _ in seen:
        if left:
            answers |= _batching(harness).terminate_many(list(left.values()), permitted=_all)
        left = {ref: each for ref, each in left.items() if isinstance(answers[ref], SpoiledBatchError)}
    for ref, error in list(answers.items()):
        if isinstance(error, GoesAloneError):
            harness.terminator().terminate(ref)
            answers[ref] = None
    return answers


def _spares_the_first_tagged(harness: TerminatorHarness, key: str, value: str | None) -> None:
    """Check that a machine whose tag changes after the listing stays."""
    refs = _some(harness)
    seen = _listed(harness, refs)
    assert isinstance(harness, ChangesTags)
    harness.set_tag(refs[0], key, value)
    _assert_first_spared(harness, _batching(harness).terminate_many(seen, permitted=_all), refs)


def _assert_first_spared(harness: TerminatorHarness, answers: Answers, refs: Sequence[InstanceRef]) -> None:
    assert isinstance(answers[refs[0]], InstanceChangedError)
    assert [harness.exists(ref) for ref in refs] == [True] + [False] * (len(refs) - 1)
