"""The promises of the ports of `providers.base`, as tests that any provider can be put to.

Derive one class for each port that you offer, and give it a harness: your provider, and the few things that a test
must be able to do to your cloud. Everything in here is public; pytest comes with the extra `reaperd[testing]`.

    import pytest
    from providers import harness
    from providers.conformance import ListerConformance
    from providers.model import InstanceRef, Scope

    class AcmeHarness:
        scopes = (Scope("acme", "oslo"),)               # all that the lister covers
        owner = "prod"                                  # the value of our ownership tag

        def __init__(self):
            self.cloud = AcmeTestCloud()                # empty

        def lister(self):
            return AcmeLister(self.cloud)

        def add_owned(self, scope, *, worker_id="w-1"):
            machine_id = self.cloud.start(owner=self.owner, worker=worker_id)
            return InstanceRef(scope.provider, scope.region, machine_id)

        def break_listing(self, scope):                 # an ability: harness.BreaksListings
            self.cloud.is_broken = True

    class TestAcmeLister(ListerConformance):
        # What the harness cannot do must be said; the tests that need it are skipped.
        lacks = (harness.StopsMachines, harness.AddsForeign, harness.ChangesTags, harness.CountsMutations,
                 harness.FillsPages, harness.BreaksLaterPages)

        @pytest.fixture
        def harness(self):
            return AcmeHarness()

An ability that is neither there nor in `lacks` is a failure, so that nothing is skipped unseen. This package is a
pytest plug-in, too: `pytest_plugins = ["providers.conformance"]` in a conftest makes its failures readable. It does not
load itself, because every pytest of the environment would then import it.
"""

from providers.conformance.auditor import AuditorConformance
from providers.conformance.batches import BatchTerminatorConformance
from providers.conformance.events import EventSourceConformance
from providers.conformance.examiner import ExaminerConformance
from providers.conformance.lister import ListerConformance
from providers.conformance.locator import LocatorConformance
from providers.conformance.provider import ProviderConformance
from providers.conformance.suite import Conformance
from providers.conformance.terminator import TerminatorConformance
from providers.conformance.typelist import TypeListerConformance

__all__ = [
    "AuditorConformance",
    "BatchTerminatorConformance",
    "Conformance",
    "EventSourceConformance",
    "ExaminerConformance",
    "ListerConformance",
    "LocatorConformance",
    "ProviderConformance",
    "TerminatorConformance",
    "TypeListerConformance",
]
