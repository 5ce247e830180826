"""AWS keeps every promise, over moto in this process."""

import pytest
from moto import mock_aws

from providers.aws import AwsAccount
from providers.aws.hooks import READ_ONLY
from providers.aws.pages import PageReader
from providers.aws.session import AwsSessions
from providers.conformance import (
    AuditorConformance,
    BatchTerminatorConformance,
    ExaminerConformance,
    ListerConformance,
    LocatorConformance,
    TerminatorConformance,
)
from providers.parsers import Parser
from reaperd.clock import SystemClock
from tests.contract.providers.aws import REGIONS, AwsHarness, Gate, admin


@pytest.fixture
def gate(monkeypatch):
    monkeypatch.setenv("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")
    for region in REGIONS:
        admin(region)
    with mock_aws(), Gate() as gate:
        yield gate


class TestLister(ListerConformance):
    @pytest.fixture
    def harness(self, gate):
        return AwsHarness(gate, REGIONS)


class WithoutLxml(AwsHarness):
    """Read by the standard library's parser, as where lxml is not installed."""

    def __init__(self, gate, regions):
        super().__init__(gate, regions)
        clock = SystemClock()
        sessions = AwsSessions(self.options, allowed=READ_ONLY, clock=clock, pages=PageReader(Parser.STDLIB))
        self._lister = AwsAccount(self.options, sessions, clock=clock)


class TestListerWithoutLxml(ListerConformance):
    @pytest.fixture
    def harness(self, gate):
        return WithoutLxml(gate, REGIONS)


class TestAuditorWithoutLxml(AuditorConformance):
    @pytest.fixture
    def harness(self, gate):
        return WithoutLxml(gate, REGIONS)


class TestTerminator(TerminatorConformance):
    @pytest.fixture
    def harness(self, gate):
        # One region is enough here, and an EC2 client takes a tenth of a second to make.
        return AwsHarness(gate, REGIONS[:1])


class TestLocator(LocatorConformance):
    @pytest.fixture
    def harness(self, gate):
        return AwsHarness(gate, REGIONS)


class TestBatchTerminator(BatchTerminatorConformance):
    @pytest.fixture
    def harness(self, gate):
        return AwsHarness(gate, REGIONS[:1])


class TestAuditor(AuditorConformance):
    @pytest.fixture
    def harness(self, gate):
        return AwsHarness(gate, REGIONS)


class TestExaminer(ExaminerConformance):
    @pytest.fixture
    def harness(self, gate):
        return AwsHarness(gate, REGIONS)
