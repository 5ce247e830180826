"""A whole account of AWS keeps every promise of a provider, over the test cloud that keeps tokens by zone."""

from __future__ import annotations

import pytest

from providers.aws import AwsOptions, aws_lister, aws_provider, aws_terminator
from providers.capacity import Requirement, WorkerSpec
from providers.conformance import LocatorConformance, ProviderConformance, TerminatorConformance
from providers.harness import StopsMachines
from providers.model import InstanceRef, Scope, TagKeys
from reaperd.clock import SystemClock
from tests.support.ec2 import FaultyEc2

REGIONS = ("eu-west-1", "us-east-1")


@pytest.fixture
def cloud(monkeypatch):
    with FaultyEc2() as started:
        for name, value in started.environment().items():
            monkeypatch.setenv(name, value)
        for number, region in enumerate(REGIONS):
            started.set_spot_price("g5.xlarge", f"0.4{number}", region=region)
            started.set_spot_price("g5.xlarge", f"0.5{number}", region=region, az=f"{region}b")
            started.add_image("ami-1", region=region, tags={"reaperd:image": "worker"})
        yield started


class Account:
    owner = "prod"
    unknown_id = "i-0123456789abcdef0"
    wanted = Requirement(model="llama", instance_types=("g5.xlarge",))
    spec = WorkerSpec(model="llama", env={"QUEUE": "jobs"})

    def __init__(self, cloud):
        self.cloud = cloud
        self.tag_keys = TagKeys()
        self.scopes = tuple(Scope("aws", region) for region in REGIONS)
        account = cloud.world.account
        options = AwsOptions(name="aws", deployment=self.owner, account=account, regions=REGIONS, max_attempts=1)
        # Once a test, since the SDK takes its time.
        self._provider = aws_provider(options, clock=SystemClock())
        self._lister = aws_lister(options, clock=SystemClock())
        self._terminator = aws_terminator(options, clock=SystemClock())

    def provider(self):
        return self._provider

    def lister(self):
        return self._lister

    def terminator(self):
        return self._terminator

    def locator(self):
        return Asking(self._provider)

    def end(self, ref):
        self.cloud.set_state(ref.instance_id, "shutting-down")

    def add_owned(self, scope, *, worker_id="w-1"):
        started = self.cloud.add_instance(region=scope.region, owner=self.owner, worker=worker_id)
        return InstanceRef(scope.provider, scope.region, started)

    def exists(self, ref):
        return self.cloud.state_of(ref.instance_id) not in {"absent", "shutting-down", "terminated"}

    def set_tag(self, ref, key, value):
        tags = dict(self.cloud.instance(ref.instance_id).tags)
        tags.pop(key, None)
        self.cloud.change(ref.instance_id, tags=tags if value is None else tags | {key: value})

    def break_listing(self, scope):
        self.cloud.fault(region=scope.region, action="DescribeInstances", code="UnauthorizedOperation")

    def run_out(self):
        self.cloud.fault(action="RunInstances", code="InsufficientInstanceCapacity")

    def lose_answer(self):
        self.cloud.fault("lost_reply", action="RunInstances", times=1)

    def mutations(self):
        return len(self.cloud.mutating_requests())


class Asking:
    """The provider as what can be asked where a machine is."""

    def __init__(self, provider):
        self.name, self.locate = provider.name, provider.locate


class TestProvider(ProviderConformance):
    @pytest.fixture
    def harness(self, cloud):
        return Account(cloud)


class TestProviderAsLocator(LocatorConformance):
    lacks = (StopsMachines,)

    @pytest.fixture
    def harness(self, cloud):
        return Account(cloud)


class AccountAsTerminator(Account):
    def terminator(self):
        return self._provider


class TestProviderAsTerminator(TerminatorConformance):
    @pytest.fixture
    def harness(self, cloud):
        return AccountAsTerminator(cloud)
