"""The promises of `InstanceAuditor`, one test each."""

# The abilities are Protocols, and are asked for by type.
# mypy: disable-error-code="type-abstract"

from __future__ import annotations

import pytest

from providers.conformance.suite import Conformance, audited_scopes, failed_scopes
from providers.harness import AuditorHarness, BreaksListings, CountsMutations, FillsPages


class AuditorConformance(Conformance):
    """The promises of `InstanceAuditor`."""

    @pytest.fixture
    def harness(self) -> AuditorHarness:
        """Return a harness of an empty cloud."""
        raise NotImplementedError

    def test_the_name_is_that_of_the_lister(self, harness: AuditorHarness) -> None:
        """Both are found under one routing key."""
        assert harness.auditor().name == harness.lister().name

    def test_the_auditor_cannot_terminate(self, harness: AuditorHarness) -> None:
        """What it sees is not ours."""
        auditor = harness.auditor()
        assert not any(hasattr(auditor, method) for method in ("terminate", "terminate_many"))

    def test_every_scope_is_covered_or_said_to_be_skipped(self, harness: AuditorHarness) -> None:
        """A scope that nobody speaks of is a blind spot. More than the lister covers is welcome."""
        sweep = harness.auditor().audit_instances()
        assert sweep.instances == ()
        assert all(entry.ok for entry in sweep.coverage)
        assert audited_scopes(sweep, harness.scopes) >= set(harness.scopes)

    def test_what_is_not_ours_is_seen_as_such(self, harness: AuditorHarness) -> None:
        """That is what an audit is for."""
        strangers = {harness.add_stranger(scope) for scope in harness.scopes}
        sweep = harness.auditor().audit_instances()
        assert {instance.ref: instance.owner for instance in sweep.instances} == dict.fromkeys(strangers)

    def test_all_that_is_listed_is_audited_too(self, harness: AuditorHarness) -> None:
        """With its owner."""
        for scope in harness.scopes:
            harness.add_owned(scope)
        owned = {instance.ref: harness.owner for instance in harness.lister().list_owned()}
        sweep = harness.auditor().audit_instances()
        assert {instance.ref: instance.owner for instance in sweep.instances} == owned

    def test_all_pages_are_read(self, harness: AuditorHarness) -> None:
        """The first page alone would look whole."""
        count = self.ability(harness, FillsPages).more_than_a_page
        strangers = {harness.add_stranger(harness.scopes[0]) for _ in range(count)}
        assert {instance.ref for instance in harness.auditor().audit_instances().instances} == strangers

    def test_a_broken_scope_is_told_and_spoils_no_other(self, harness: AuditorHarness) -> None:
        """Never an exception."""
        refs = {harness.add_stranger(scope) for scope in harness.scopes}
        broken = harness.scopes[0]
        self.ability(harness, BreaksListings).break_listing(broken)
        sweep = harness.auditor().audit_instances()
        assert failed_scopes(sweep.coverage) == {broken}
        assert {instance.ref for instance in sweep.instances} >= {ref for ref in refs if ref.scope != broken}

    def test_auditing_changes_nothing(self, harness: AuditorHarness) -> None:
        """No mutating request, ever."""
        cloud = self.ability(harness, CountsMutations)
        harness.add_stranger(harness.scopes[0])
        before = cloud.mutations()
        harness.auditor().audit_instances()
        assert cloud.mutations() == before
