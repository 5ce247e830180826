"""A cloud in memory, with a seam for every way in which a cloud fails.

For tests, demonstrations and the conformance suite, which it passes.
"""

from providers.fake.cloud import (
    DEFAULT_ACCOUNT,
    DEFAULT_OWNER,
    FakeAuditor,
    FakeCloud,
    FakeLister,
    FakeTerminator,
)
from providers.fake.examiner import FakeExaminer
from providers.fake.faults import ListingFault, TerminateFault
from providers.fake.machine import FakeMachine, Mutation
from providers.fake.provider import FakeAuditingProvider, FakeProvider
from providers.fake.typelist import FakeTypeLister

__all__ = [
    "DEFAULT_ACCOUNT",
    "DEFAULT_OWNER",
    "FakeAuditingProvider",
    "FakeAuditor",
    "FakeCloud",
    "FakeExaminer",
    "FakeLister",
    "FakeMachine",
    "FakeProvider",
    "FakeTerminator",
    "FakeTypeLister",
    "ListingFault",
    "Mutation",
    "TerminateFault",
]
