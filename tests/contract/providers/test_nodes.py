"""An adapter of a provider of another shape keeps the promises of the ports."""

from decimal import Decimal

import pytest

from providers import harness
from providers.capacity import Requirement, WorkerSpec
from providers.catalogue import InstanceType
from providers.conformance import ListerConformance, LocatorConformance, ProviderConformance, TerminatorConformance
from providers.model import InstanceRef, Scope, TagKeys
from providers.nodes import NodeAdapter, NodeLister
from tests.unit.providers.nodes import PricedNodeCloud


class NodeHarness:
    scopes = (Scope("other", "oslo"), Scope("other", "turku"))
    owner = "prod"
    unknown_id = "n-none"
    tag_keys = TagKeys()

    def __init__(self):
        self.cloud = PricedNodeCloud()
        self.regions = tuple(scope.region for scope in self.scopes)

    def lister(self):
        return NodeLister(self.cloud, regions=self.regions, owner=self.owner)

    def locator(self):
        return self.lister()

    def end(self, ref):
        self.cloud.change(ref.instance_id, status="terminated")

    def terminator(self):
        return NodeAdapter(self.cloud, regions=self.regions, owner=self.owner)

    def add_owned(self, scope, *, worker_id="w-1"):
        worker = {} if worker_id is None else {self.tag_keys.worker: worker_id}
        return self._add(scope, {self.tag_keys.owner: self.owner} | worker)

    def add_foreign(self, scope, *, owner):
        return self._add(scope, {self.tag_keys.owner: owner})

    def exists(self, ref):
        return any(
            node.id == ref.instance_id and node.status in ("running", "provisioning") for node in self.cloud.nodes
        )

    def set_tag(self, ref, key, value):
        (node,) = (node for node in self.cloud.nodes if node.id == ref.instance_id)
        labels = {k: v for k, v in node.labels.items() if k != key} | ({} if value is None else {key: value})
        self.cloud.change(node.id, labels=labels)

    def mutations(self):
        return len(self.cloud.terminated) + len(self.cloud.requests)

    def _add(self, scope, labels):
        return InstanceRef(scope.provider, scope.region, self.cloud.add(region=scope.region, labels=labels).id)


class NodeProviderHarness(NodeHarness):
    wanted = Requirement(model="llama", instance_types=("gpu",))
    spec = WorkerSpec(model="llama")

    def __init__(self):
        super().__init__()
        gpu = InstanceType(
            name="gpu", memory_gib=Decimal(64), vcpus=8, price_per_hour=Decimal(2), regions=self.regions, available=True
        )
        self.cloud.types = (gpu,)

    def provider(self):
        return self.terminator()

    def break_listing(self, scope):
        self.cloud.fails["list"] = ConnectionError(scope.region)

    def lose_answer(self):
        provision, lost = self.cloud.provision, TimeoutError("no answer")

        def provision_and_lose(request):
            provision(request)
            raise lost

        self.cloud.provision = provision_and_lose


# It has no pages, and one listing for all regions: it breaks everywhere or nowhere. There is no word for stopped.
LACKS = (harness.BreaksListings, harness.BreaksLaterPages, harness.FillsPages, harness.StopsMachines)


class TestNodeLister(ListerConformance):
    lacks = LACKS

    @pytest.fixture
    def harness(self):
        return NodeHarness()


class TestNodeLocator(LocatorConformance):
    lacks = LACKS

    @pytest.fixture
    def harness(self):
        return NodeHarness()


class TestNodeTerminator(TerminatorConformance):
    lacks = LACKS

    @pytest.fixture
    def harness(self):
        return NodeHarness()


class TestNodeProvider(ProviderConformance):
    # There is no word for a lack of capacity: whatever is raised may have made a machine.
    lacks = (harness.RunsOut,)

    @pytest.fixture
    def harness(self):
        return NodeProviderHarness()

    def test_a_handle_carries_all_that_was_given_and_what_the_cloud_said(self, harness):
        # Of two things less is promised: the time is not known, and the zone is the one that the node came up in.
        offer = harness.provider().quote(harness.wanted)[0]

        handle = harness.provider().launch("w-1", offer, harness.spec)

        assert (handle.worker_id, handle.spec, handle.launched_at) == ("w-1", harness.spec, None)
        assert (handle.offer.zone, handle.offer.price_per_hour) == ("oslo-a", offer.price_per_hour)
        assert harness.exists(handle.ref)
