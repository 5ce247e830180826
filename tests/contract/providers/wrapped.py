"""Harnesses around whole providers, behind each wrapper that a control plane may put around them."""

from __future__ import annotations

from providers.fake import FakeAuditingProvider
from providers.gated import gated
from providers.multicloud import MultiCloudProvider
from providers.multiregion import MultiRegionProvider
from tests.contract.providers.fakes import FakeHarness


class Shut:
    """A gate that is off: what it must not stand in the way of is done all the same."""

    def provision_allowed(self, cloud):
        return False


class Silent:
    """A log that nobody reads."""

    def warning(self, event, /, **fields):
        """Take it."""


class Only:
    """A provider seen as one of its ports: what a rehearsal or an audit is given."""

    def __init__(self, provider, ability):
        self.name = provider.name
        setattr(self, ability, getattr(provider, ability))


class ProviderHarness(FakeHarness):
    """One cloud of two regions, as a whole provider."""

    def provider(self):
        return FakeAuditingProvider(self.clouds[0])

    def lister(self):
        return Only(self.provider(), "list_owned")

    def locator(self):
        return Only(self.provider(), "locate")

    def auditor(self):
        return Only(self.provider(), "audit_instances")

    def terminator(self):
        return self.provider()


class GatedHarness(ProviderHarness):
    """A cloud that is switched off."""

    def provider(self):
        return gated("one", super().provider(), Shut(), Silent())


class MultiRegionProviderHarness(ProviderHarness):
    """The regions of one cloud, each behind a gate, combined."""

    def provider(self):
        return self.regions_of(self.clouds[0])

    def regions_of(self, cloud):
        children = {
            region: gated(cloud.name, FakeAuditingProvider(cloud, region), Shut(), Silent()) for region in cloud.regions
        }
        return MultiRegionProvider(cloud.name, children, clock=self.clock)


class MultiCloudProviderHarness(MultiRegionProviderHarness):
    """Two clouds, combined; the combination behind a gate."""

    def __init__(self):
        super().__init__()
        self.clouds.append(self.cloud("two", "north"))

    def provider(self):
        clouds = [self.regions_of(cloud) for cloud in self.clouds]
        return gated("all", MultiCloudProvider("all", *clouds, clock=self.clock), Shut(), Silent())
