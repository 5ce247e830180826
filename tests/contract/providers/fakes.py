"""Harnesses around clouds in memory, plain and behind each wrapper."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from providers.capacity import Offer, Requirement, WorkerSpec
from providers.errors import CapacityError, UnknownLaunchError
from providers.fake import FakeAuditingProvider, FakeCloud, FakeExaminer, FakeMachine, ListingFault
from providers.gated import gated
from providers.instrumented import instrumented_lister, instrumented_terminator
from providers.model import InstanceState, Scope
from providers.multicloud import MultiCloud, MultiCloudProvider, MultiCloudTerminator
from providers.multiregion import MultiRegion, MultiRegionProvider, MultiRegionTerminator
from reaperd.clock import ManualClock

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NO_ANSWER = UnknownLaunchError("connection reset")


class FakeHarness:
    """One cloud of two regions, seen directly. Has every ability."""

    owner = "prod"
    unknown_id = "fake-none"
    more_than_a_page = 5

    def __init__(self):
        self.clock = ManualClock(NOW)
        self.clouds = [self.cloud("one", "north", "south")]

    def cloud(self, name, *regions):
        cloud = FakeCloud(name, regions, clock=self.clock, owner=self.owner)
        cloud.page_size = self.more_than_a_page - 1
        return cloud

    @property
    def scopes(self):
        return tuple(Scope(cloud.name, region) for cloud in self.clouds for region in cloud.regions)

    @property
    def tag_keys(self):
        return self.clouds[0].tag_keys

    def lister(self) -> Any:
        return self.clouds[0].lister()

    def locator(self) -> Any:
        return self.lister()

    def end(self, ref):
        cloud = self.of(ref.scope)
        cloud.change(ref, state=InstanceState.SHUTTING_DOWN, ended_at=self.clock.now())

    def auditor(self) -> Any:
        return self.clouds[0].auditor()

    def examiner(self) -> Any:
        return FakeExaminer(self.clouds[0])

    def terminator(self) -> Any:
        return self.clouds[0].terminator()

    def add_owned(self, scope, *, worker_id="w-1"):
        return self.of(scope).add(FakeMachine(region=scope.region, worker_id=worker_id))

    def add_foreign(self, scope, *, owner):
        return self.of(scope).add(FakeMachine(region=scope.region, owner=owner))

    def add_stranger(self, scope):
        return self.of(scope).add(FakeMachine(region=scope.region, owner=None))

    def exists(self, ref):
        return ref in self.of(ref.scope).live

    def stop(self, ref):
        self.of(ref.scope).change(ref, state=InstanceState.STOPPED)

    def set_tag(self, ref, key, value):
        cloud, field = self.of(ref.scope), {self.tag_keys.owner: "owner", self.tag_keys.worker: "worker_id"}.get(key)
        if field is not None:
            cloud.change(ref, **{field: value})
            return
        cloud.change(ref, tags={key: value})

    def break_listing(self, scope):
        cloud = self.of(scope)
        for fail in (cloud.fail_listing, cloud.fail_audit, cloud.fail_locating):
            fail(scope.region, ListingFault(error_code="RequestLimitExceeded"))

    def break_second_page(self, scope):
        for _ in range(self.more_than_a_page):
            self.add_owned(scope)
        self.break_listing(scope)

    def mutations(self):
        return sum(len(cloud.mutations) for cloud in self.clouds)

    def of(self, scope):
        return next(cloud for cloud in self.clouds if cloud.name == scope.provider)


class FakeProviderHarness(FakeHarness):
    """The same, and whole providers of its clouds."""

    wanted = Requirement(model="llama", instance_types=("large", "small"))
    spec = WorkerSpec(model="llama", image="img-1")

    def __init__(self):
        super().__init__()
        self.parts = []

    def provider(self) -> Any:
        return self.part(self.clouds[0])

    def part(self, cloud, region=None):
        """Return a new provider of a cloud. What was arranged holds for the new one, too."""
        made = FakeAuditingProvider(cloud, region)
        made.set_offers("llama", [self.offer(cloud, r, kind) for r in made.regions for kind in ("large", "small")])
        self.parts.append(made)
        self.arrange(made)
        return made

    def arrange(self, part):
        """Nothing goes wrong at first."""

    def offer(self, cloud, region, kind):
        price = Decimal("0.16") if kind == "large" else Decimal("0.02")
        return Offer(provider=cloud.name, instance_type=kind, region=region, zone=f"{region}-a", price_per_hour=price)

    def run_out(self):
        self.arrange_all(lambda part: setattr(part, "launch_err", self.full))

    def full(self, offer):
        return CapacityError("InsufficientInstanceCapacity", "none is free", offer.region)

    def lose_answer(self):
        self.arrange_all(lambda part: setattr(part, "on_launch", self.lose))

    def lose(self, _handle):
        raise NO_ANSWER

    def arrange_all(self, arrange):
        self.arrange = arrange
        for part in self.parts:
            arrange(part)


class MultiRegionProviderHarness(FakeProviderHarness):
    """A provider for each region, together."""

    def provider(self):
        (cloud,) = self.clouds
        return MultiRegionProvider(cloud.name, {r: self.part(cloud, r) for r in cloud.regions}, clock=self.clock)


class MultiCloudProviderHarness(FakeProviderHarness):
    """Two clouds, one of them in regions, together and each behind an open gate."""

    def __init__(self):
        super().__init__()
        self.clouds.append(self.cloud("two", "north"))

    def lister(self):
        one, two = self.clouds
        return MultiCloud("all", one.auditor(), two.auditor(), clock=self.clock)

    def provider(self):
        one, two = self.clouds
        regions = MultiRegionProvider(one.name, {r: self.part(one, r) for r in one.regions}, clock=self.clock)
        clouds = [gated(each.name, each, self, self) for each in (regions, self.part(two))]
        return MultiCloudProvider("all", *clouds, clock=self.clock)

    def provision_allowed(self, cloud):
        """Be the gate."""
        return True

    def warning(self, event, /, **fields):
        """Be its log."""


class MultiRegionHarness(FakeHarness):
    """The regions of one cloud, behind a MultiRegion."""

    def lister(self):
        (cloud,) = self.clouds
        return MultiRegion(cloud.name, {r: cloud.auditor(r) for r in cloud.regions}, clock=self.clock)

    def auditor(self):
        return self.lister()

    def terminator(self):
        (cloud,) = self.clouds
        return MultiRegionTerminator(cloud.name, {r: cloud.terminator(r) for r in cloud.regions})


class MultiCloudHarness(FakeHarness):
    """Two clouds, one of them behind a MultiRegion, behind a MultiCloud."""

    def __init__(self):
        super().__init__()
        self.clouds.append(self.cloud("two", "north"))

    def lister(self):
        one, two = self.clouds
        regions = MultiRegion(one.name, {r: one.auditor(r) for r in one.regions}, clock=self.clock)
        return MultiCloud("all", two.auditor(), regions, clock=self.clock)

    def auditor(self):
        return self.lister()

    def terminator(self):
        return MultiCloudTerminator("all", *(cloud.terminator() for cloud in self.clouds))


class InstrumentedHarness(MultiRegionHarness):
    """A measured MultiRegion."""

    def observed(self, **_measurement):
        """Be the observer."""

    def lister(self):
        return instrumented_lister(super().lister(), self, clock=self.clock)

    def terminator(self):
        return instrumented_terminator(super().terminator(), self, clock=self.clock)
