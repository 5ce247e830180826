"""The cloud in memory, looked over. Ends nothing, and has no way to."""

from __future__ import annotations

from collections.abc import Mapping

from providers.examination import Answer, Examination, Probe, ScopeExamination, Trouble
from providers.fake.cloud import FakeCloud
from providers.fake.faults import REFUSALS, TerminateFault
from providers.model import InstanceRef

_ANSWERS: Mapping[TerminateFault | None, Answer] = {
    None: Answer.ALLOWED,
    TerminateFault.DENIED: Answer.DENIED,
    TerminateFault.PROTECTED: Answer.PROTECTED,
    TerminateFault.NOT_FOUND: Answer.GONE,
}


class FakeExaminer:
    """Examines every region."""

    def __init__(self, cloud: FakeCloud) -> None:
        """Keep the cloud."""
        self._cloud = cloud

    @property
    def name(self) -> str:
        """Return the name of the cloud."""
        return self._cloud.name

    def examine(self) -> Examination:
        """Return what was found."""
        cloud = self._cloud
        scopes = tuple(scope for region in cloud.regions if (scope := self._scope(region)) is not None)
        return Examination(name=self.name, account=cloud.account, enabled=frozenset(cloud.regions), scopes=scopes)

    def _scope(self, region: str) -> ScopeExamination | None:
        owned, coverage = self._cloud.answer_listing(region)
        if coverage is None:
            return None
        if not coverage.ok:
            return ScopeExamination(coverage=coverage)
        ours = (each.ref for each in owned if each.owner == self._cloud.owner and each.state.exists)
        return ScopeExamination(coverage=coverage, owned=owned, probes=tuple(map(self._probe, ours)))

    def _probe(self, ref: InstanceRef) -> Probe:
        fault = self._cloud.answer_question(ref)
        code = None if fault is None else REFUSALS.get(fault, (None, None))[1]
        trouble = None if fault is None else Trouble(code=code or fault.value)
        return Probe(ref=ref, answer=_ANSWERS.get(fault, Answer.UNCLEAR), trouble=trouble)
