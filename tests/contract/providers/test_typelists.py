"""The price lists keep their promises: the cloud in memory, AWS over two test clouds, and behind a gate."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from moto import mock_aws

from providers.aws import AwsOptions, aws_provider, aws_type_lister
from providers.catalogue import InstanceType
from providers.conformance import TypeListerConformance
from providers.errors import QuoteError
from providers.fake import FakeAuditingProvider, FakeCloud, FakeTypeLister
from providers.gated import gated
from providers.harness import BreaksTypes, HidesPrices, SellsOut
from providers.model import Scope
from reaperd.clock import ManualClock, SystemClock
from tests.contract.providers.aws import Gate
from tests.contract.providers.fakes import NOW
from tests.contract.providers.wrapped import Shut, Silent
from tests.support.ec2 import FaultyEc2

REGIONS = ("eu-west-1", "us-east-1")


class FakeTypes:
    """A cloud in memory with two types."""

    routing_key = "one"
    scopes = (Scope("one", "north"), Scope("one", "south"))

    def __init__(self):
        self.cloud = FakeCloud("one", ("north", "south"), clock=ManualClock(NOW))
        self.listed = FakeTypeLister(self.cloud, typed("large", "0.16", gpus=2), typed("small", "0.02"))

    def type_lister(self):
        return self.listed

    def sell_out(self):
        return self.change("small", regions=(), available=False)

    def hide_price(self):
        return self.change("small", price_per_hour=None)

    def change(self, name, **changes):
        self.listed.types[name] = replace(self.listed.types[name], **changes)
        return name

    def break_types(self, _scope):
        self.listed.error = QuoteError("no")

    def mutations(self):
        return len(self.cloud.mutations)


def typed(name, price, *, gpus=0):
    return InstanceType(
        name=name,
        gpu_count=gpus,
        gpu_type="A10G" if gpus else "",
        memory_gib=Decimal(16),
        vcpus=4,
        price_per_hour=Decimal(price),
        regions=("north", "south"),
        available=True,
    )


class GatedTypes(FakeTypes):
    """The same behind a gate that is shut: a price list is no offer."""

    def type_lister(self):
        return gated("one", Selling(self.cloud, self.listed), Shut(), Silent())


class Selling(FakeAuditingProvider):
    """A whole provider that has a price list."""

    def __init__(self, cloud, listed):
        super().__init__(cloud)
        self.listed = listed

    def list_instance_types(self):
        return self.listed.list_instance_types()


class AwsTypes:
    """An account over the test cloud that can be broken."""

    routing_key = "aws"
    scopes = tuple(Scope("aws", region) for region in REGIONS)

    def __init__(self, cloud):
        self.cloud = cloud
        account = cloud.world.account
        options = AwsOptions(name="aws", deployment="prod", account=account, regions=REGIONS, max_attempts=1)
        self.listed = self.made(options)

    def made(self, options):
        return aws_type_lister(options, clock=SystemClock())

    def type_lister(self):
        return self.listed

    def sell_out(self):
        self.cloud.add_type("p5.48xlarge", gpus=[("H100", 8)], regions=REGIONS, offered=())
        return "p5.48xlarge"

    def hide_price(self):
        self.cloud.add_type("hpc7g.4xlarge", regions=REGIONS)
        return "hpc7g.4xlarge"

    def break_types(self, scope):
        self.cloud.fault(region=scope.region, action="DescribeInstanceTypes", code="UnauthorizedOperation")

    def mutations(self):
        return len(self.cloud.mutating_requests())


class AwsProviderTypes(AwsTypes):
    """The same, of a whole provider."""

    def made(self, options):
        return aws_provider(options, clock=SystemClock())


@pytest.fixture
def cloud(monkeypatch):
    with FaultyEc2(page_size=1) as started:
        for name, value in started.environment().items():
            monkeypatch.setenv(name, value)
        for number, region in enumerate(REGIONS):
            for name in ("g5.xlarge", "m5.large"):
                started.set_spot_price(name, f"0.4{number}", region=region)
                started.set_spot_price(name, f"0.5{number}", region=region, az=f"{region}b")
        started.add_type("g5.xlarge", gpus=[("A10G", 1)], regions=REGIONS)
        started.add_type("m5.large", vcpus=2, memory_mib=8192, regions=REGIONS, offered=REGIONS[:1])
        yield started


class TestFake(TypeListerConformance):
    @pytest.fixture(params=[FakeTypes, GatedTypes])
    def harness(self, request):
        return request.param()


class TestAws(TypeListerConformance):
    @pytest.fixture(params=[AwsTypes, AwsProviderTypes])
    def harness(self, request, cloud):
        return request.param(cloud)


class MotoTypes:
    """One region of moto: fourteen hundred types as AWS tells them. Asked once, since it takes seconds."""

    routing_key = "aws"
    scopes = (Scope("aws", "eu-west-1"),)

    def __init__(self, gate):
        self.gate = gate
        options = AwsOptions(name="aws", deployment="prod", regions=("eu-west-1",))
        self.inner = aws_type_lister(options, clock=SystemClock())
        self.name = self.inner.name
        self.told = self.inner.list_instance_types()

    def type_lister(self):
        return self

    def list_instance_types(self):
        return self.told

    def mutations(self):
        return len(self.gate.mutations)


@pytest.fixture(scope="module")
def asked():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")
        with mock_aws(), Gate() as gate:
            return MotoTypes(gate)


class TestAwsOverMoto(TypeListerConformance):
    lacks = (BreaksTypes, HidesPrices, SellsOut)

    @pytest.fixture
    def harness(self, asked):
        return asked

    def test_it_is_the_list_that_aws_publishes(self, harness):
        by_name = {each.name: each for each in harness.told}

        machine = by_name["p4d.24xlarge"]
        assert (machine.gpu_count, machine.gpu_type, machine.memory_gib, machine.vcpus) == (8, "A100", 1152, 96)
        assert (by_name["g6f.large"].gpu_count, by_name["g6f.large"].gpu_type) == (1, "0.125 L4")
        assert by_name["t3.nano"].memory_gib == Decimal("0.5")
        assert len(by_name) > 1000
        assert any(not each.available for each in harness.told)
        assert harness.mutations() == 0
