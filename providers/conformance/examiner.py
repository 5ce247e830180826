"""The promises of `Examiner`, one test each."""

# The abilities are Protocols, and are asked for by type.
# mypy: disable-error-code="type-abstract"

from __future__ import annotations

import pytest

from providers.conformance.suite import Conformance, failed_scopes
from providers.harness import BreaksListings, CountsMutations, ExaminerHarness


class ExaminerConformance(Conformance):
    """The promises of `Examiner`."""

    @pytest.fixture
    def harness(self) -> ExaminerHarness:
        """Return a harness of an empty cloud."""
        raise NotImplementedError

    def test_the_name_is_that_of_the_lister(self, harness: ExaminerHarness) -> None:
        """Of the examiner, and of what it found."""
        examiner = harness.examiner()
        assert {examiner.name, examiner.examine().name} == {harness.lister().name}

    def test_the_examiner_cannot_terminate(self, harness: ExaminerHarness) -> None:
        """It is given to people who only want to know."""
        examiner = harness.examiner()
        assert not any(hasattr(examiner, method) for method in ("terminate", "terminate_many"))

    def test_every_scope_is_examined(self, harness: ExaminerHarness) -> None:
        """Those of the lister are what a pass needs."""
        found = harness.examiner().examine()
        assert found.trouble is None
        assert {each.coverage.scope for each in found.scopes if each.coverage.ok} == set(harness.scopes)

    def test_what_is_ours_is_what_the_lister_lists(self, harness: ExaminerHarness) -> None:
        """Otherwise it would be said of another fleet that it can be ended."""
        for scope in harness.scopes:
            harness.add_owned(scope)
        owned = {instance.ref for each in harness.examiner().examine().scopes for instance in each.owned}
        assert owned == {instance.ref for instance in harness.lister().list_owned()}

    def test_only_our_machines_are_asked_about(self, harness: ExaminerHarness) -> None:
        """A question, too, is a request about somebody's machine."""
        ours = {harness.add_owned(scope) for scope in harness.scopes}
        for scope in harness.scopes:
            harness.add_stranger(scope)
        probes = [probe for each in harness.examiner().examine().scopes for probe in each.probes]
        assert {probe.ref for probe in probes} <= ours

    def test_a_broken_scope_is_told_and_spoils_no_other(self, harness: ExaminerHarness) -> None:
        """Never an exception."""
        broken = harness.scopes[0]
        self.ability(harness, BreaksListings).break_listing(broken)
        found = harness.examiner().examine()
        assert failed_scopes(each.coverage for each in found.scopes) == {broken}
        assert {each.coverage.scope for each in found.scopes} == set(harness.scopes)

    def test_examining_ends_no_machine(self, harness: ExaminerHarness) -> None:
        """Whatever is asked about it."""
        refs = [harness.add_owned(scope) for scope in harness.scopes]
        harness.examiner().examine()
        assert [harness.exists(ref) for ref in refs] == [True] * len(refs)

    def test_examining_changes_nothing(self, harness: ExaminerHarness) -> None:
        """No mutating request, ever. A question that the cloud knows as one is none."""
        cloud = self.ability(harness, CountsMutations)
        harness.add_owned(harness.scopes[0])
        before = cloud.mutations()
        harness.examiner().examine()
        assert cloud.mutations() == before
