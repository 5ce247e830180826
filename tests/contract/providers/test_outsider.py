"""The example of the suite's docstring, run as an outsider would run it."""

import textwrap

from providers import conformance
from providers.base import Lister
from providers.errors import IncompleteListingError
from providers.model import Coverage, InstanceRef, InstanceState, Inventory, OwnedInstance, Scope, ScopeFailure

OSLO = Scope("acme", "oslo")


class AcmeTestCloud:
    def __init__(self):
        self.machines = []
        self.is_broken = False

    def start(self, *, owner, worker):
        self.machines.append((owner, worker))
        return f"vm-{len(self.machines)}"


class AcmeLister:
    name = "acme"

    def __init__(self, cloud):
        self.cloud = cloud

    def list_owned(self):
        if self.cloud.is_broken:
            raise IncompleteListingError((Coverage(scope=OSLO, failure=ScopeFailure.LISTING, error_code="down"),))
        machines = tuple(
            OwnedInstance(
                ref=InstanceRef("acme", "oslo", f"vm-{n}"), state=InstanceState.RUNNING, owner=owner, worker_id=worker
            )
            for n, (owner, worker) in enumerate(self.cloud.machines, start=1)
        )
        return Inventory(machines, (Coverage(scope=OSLO, instances=len(machines), pages=1),))


def example() -> str:
    """Return the indented block of the docstring."""
    _, start, rest = conformance.__doc__.partition("    import pytest\n")
    return textwrap.dedent(start + rest[: rest.index("\nAn ability")])


# Puts TestAcmeLister here, where pytest collects it.
exec(compile(example(), "the docstring of providers.conformance", "exec"))


def test_the_outsider_needs_no_base_class():
    assert isinstance(AcmeLister(AcmeTestCloud()), Lister)
    assert AcmeLister.__mro__ == (AcmeLister, object)


def test_the_example_is_short():
    assert len(example().splitlines()) <= 32
