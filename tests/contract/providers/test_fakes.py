"""The cloud in memory keeps every promise, alone and behind each wrapper."""

import pytest

from providers.conformance import (
    AuditorConformance,
    BatchTerminatorConformance,
    ExaminerConformance,
    ListerConformance,
    LocatorConformance,
    ProviderConformance,
    TerminatorConformance,
)
from tests.contract.providers.fakes import (
    FakeHarness,
    FakeProviderHarness,
    InstrumentedHarness,
    MultiCloudHarness,
    MultiCloudProviderHarness,
    MultiRegionHarness,
    MultiRegionProviderHarness,
)


@pytest.fixture(params=[FakeHarness, MultiRegionHarness, MultiCloudHarness, InstrumentedHarness])
def made(request):
    return request.param()


class TestLister(ListerConformance):
    @pytest.fixture
    def harness(self, made):
        return made


class TestTerminator(TerminatorConformance):
    @pytest.fixture
    def harness(self, made):
        return made


class TestLocator(LocatorConformance):
    @pytest.fixture
    def harness(self, made):
        return made


class TestBatchTerminator(BatchTerminatorConformance):
    @pytest.fixture
    def harness(self, made):
        return made


class TestAuditor(AuditorConformance):
    @pytest.fixture
    def harness(self, made):
        return made


class TestExaminer(ExaminerConformance):
    """Alone: a wrapper has nothing to add to it."""

    @pytest.fixture
    def harness(self):
        return FakeHarness()


class TestProvider(ProviderConformance):
    @pytest.fixture(params=[FakeProviderHarness, MultiRegionProviderHarness, MultiCloudProviderHarness])
    def harness(self, request):
        return request.param()
