"""A whole provider keeps every promise of the ports, alone and behind each wrapper, and while its cloud is off."""

import pytest

from providers.conformance import AuditorConformance, ListerConformance, LocatorConformance, TerminatorConformance
from tests.contract.providers.wrapped import (
    GatedHarness,
    MultiCloudProviderHarness,
    MultiRegionProviderHarness,
    ProviderHarness,
)


@pytest.fixture(params=[ProviderHarness, GatedHarness, MultiRegionProviderHarness, MultiCloudProviderHarness])
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


class TestAuditor(AuditorConformance):
    @pytest.fixture
    def harness(self, made):
        return made
