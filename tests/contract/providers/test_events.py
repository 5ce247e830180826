"""What is announced is told: by the cloud in memory, by AWS, and through every wrapper of an audit."""

from __future__ import annotations

import pytest

from providers.aws import AwsOptions, aws_event_source, aws_lister, aws_provider
from providers.conformance import EventSourceConformance
from providers.events import ProviderEvent
from providers.fake import FakeAuditingProvider
from providers.gated import gated
from providers.harness import Audits
from providers.model import InstanceRef, Scope
from reaperd.clock import SystemClock
from tests.contract.providers.fakes import FakeHarness, InstrumentedHarness, MultiCloudHarness, MultiRegionHarness
from tests.contract.providers.wrapped import Shut, Silent
from tests.support.ec2 import FaultyEc2

REGIONS = ("eu-west-1", "us-east-1")
QUESTIONS = ("DescribeSpotInstanceRequests", "DescribeInstanceStatus")


class Announcing(FakeHarness):
    """A cloud in memory that announces ends."""

    def event_source(self):
        return self.clouds[0].auditor()

    def announce(self, ref):
        self.of(ref.scope).announcements.events[ref] = ProviderEvent(
            ref=ref, fault_code="going", marked_for_termination=True
        )
        return "going"

    def keep_silent(self, scope):
        self.of(scope).announcements.silent[scope] = "silent"


class Gated(Announcing):
    """A whole provider behind a gate that is shut."""

    def event_source(self):
        return gated("one", FakeAuditingProvider(self.clouds[0]), Shut(), Silent())

    def auditor(self):
        return self.event_source()


class MultiRegionAnnouncing(Announcing, MultiRegionHarness):
    """Its regions together."""


class MultiCloudAnnouncing(Announcing, MultiCloudHarness):
    """Two clouds together, of which the first can be asked for single machines."""

    def event_source(self):
        one, two = self.clouds
        return Either(one.auditor(), two.auditor(), name="all")


class Either:
    """Asks the cloud that a machine is of."""

    def __init__(self, *sources, name):
        self.name = name
        self.sources = {source.name: source for source in sources}

    def instance_event(self, ref):
        return self.sources.get(ref.provider, next(iter(self.sources.values()))).instance_event(ref)


class InstrumentedAnnouncing(Announcing, InstrumentedHarness):
    """A measured one."""


class TestFakes(EventSourceConformance):
    @pytest.fixture(params=[Announcing, Gated, MultiRegionAnnouncing, MultiCloudAnnouncing, InstrumentedAnnouncing])
    def harness(self, request):
        return request.param()


class AwsAnnouncing:
    """An account whose machines are spot machines."""

    owner = "prod"
    unknown_id = "i-0123456789abcdef0"
    scopes = tuple(Scope("aws", region) for region in REGIONS)

    def __init__(self, cloud):
        self.cloud = cloud
        account = cloud.world.account
        self.options = AwsOptions(name="aws", deployment="prod", account=account, regions=REGIONS, max_attempts=1)
        self._lister = aws_lister(self.options, clock=SystemClock())

    def lister(self):
        return self._lister

    def auditor(self):
        return self._lister

    def event_source(self):
        return aws_event_source(self.options, clock=SystemClock())

    def add_owned(self, scope, *, worker_id="w-1"):
        made = self.cloud.add_instance(region=scope.region, owner=self.owner, worker=worker_id, spot="one-time")
        return InstanceRef(scope.provider, scope.region, made)

    def announce(self, ref):
        self.cloud.interrupt(ref.instance_id, "marked-for-termination")
        return "marked-for-termination"

    def keep_silent(self, scope):
        for action in QUESTIONS:
            self.cloud.fault(region=scope.region, action=action, code="UnauthorizedOperation")

    def mutations(self):
        return len(self.cloud.mutating_requests())


class AwsRetiring(AwsAnnouncing):
    """The same, of machines whose hosts go."""

    def add_owned(self, scope, *, worker_id="w-1"):
        made = self.cloud.add_instance(region=scope.region, owner=self.owner, worker=worker_id)
        return InstanceRef(scope.provider, scope.region, made)

    def announce(self, ref):
        self.cloud.change(ref.instance_id, scheduled=(("instance-retirement", "2026-11-30T00:00:00.000Z"),))
        return "instance-retirement"


class AwsWhole(AwsAnnouncing):
    """The same, as a whole provider."""

    def event_source(self):
        return aws_provider(self.options, clock=SystemClock())


class TestAws(EventSourceConformance):
    @pytest.fixture(params=[AwsAnnouncing, AwsRetiring, AwsWhole])
    def harness(self, request, monkeypatch):
        with FaultyEc2() as cloud:
            for name, value in cloud.environment().items():
                monkeypatch.setenv(name, value)
            yield request.param(cloud)


class Unaudited(Announcing):
    """Who only tells."""

    auditor = None


class TestWithoutAnAudit(EventSourceConformance):
    lacks = (Audits,)

    @pytest.fixture
    def harness(self):
        return Unaudited()
