"""Options for a canned AWS: few attempts, short waits."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import cache
from typing import Any

from providers.aws import AwsAccount, AwsOptions, AwsTerminator
from providers.aws.hooks import READ_ONLY, TERMINATING
from providers.aws.pages import PageReader
from providers.aws.session import AwsSessions
from providers.base import Clock
from providers.errors import IncompleteListingError
from providers.model import Coverage, InstanceRef
from providers.parsers import Parser
from reaperd.clock import ManualClock, SystemClock
from tests.unit.providers.aws.canned import ACCOUNT, NOW, CannedAws, Reply

REGION = "eu-west-1"
REF = InstanceRef("aws", REGION, "i-1")


def options(**changes: Any) -> AwsOptions:
    given: dict[str, Any] = {
        "name": "aws",
        "deployment": "prod",
        "account": ACCOUNT,
        "regions": (REGION,),
        "max_attempts": 1,
        "connect_timeout": timedelta(seconds=2),
        "read_timeout": timedelta(seconds=20),
    }
    return AwsOptions(**(given | changes))


SHORT = timedelta(seconds=0.3)
"""A read timeout for those who wait in vain."""


class KeptSessions(AwsSessions):
    """Sessions for many tests: a failure in one says nothing about the next."""

    def forget(self) -> None:
        pass


@cache
def kept_sessions(given: AwsOptions, allowed: frozenset[str], parser: Parser | None = None) -> AwsSessions:
    # By the time of this machine: what it measures is how long a socket of this machine is waited for.
    return KeptSessions(given, allowed=allowed, clock=SystemClock(), pages=PageReader(parser))


def lister(aws: CannedAws, *, clock: Clock | None = None, parser: Parser | None = None, **changes: Any) -> AwsAccount:
    given = options(endpoint_url=aws.url, **changes)
    return AwsAccount(given, kept_sessions(given, READ_ONLY, parser), clock=clock or ManualClock(NOW))


def terminator(
    aws: CannedAws, *, clock: Clock | None = None, stopping: Callable[[], bool] = lambda: False, **changes: Any
) -> AwsTerminator:
    given = options(endpoint_url=aws.url, **changes)
    return AwsTerminator(given, kept_sessions(given, TERMINATING), clock=clock or ManualClock(NOW), stopping=stopping)


def patience(reply: Reply) -> dict[str, Any]:
    """Return the options of somebody who waits for this reply."""
    return {"read_timeout": SHORT} if reply.hang else {}


def holes(account: AwsAccount) -> tuple[Coverage, ...]:
    """Return the coverage of a listing that must not be whole."""
    try:
        inventory = account.list_owned()
    except IncompleteListingError as error:
        return error.coverage
    msg = f"a listing that is not whole was returned: {inventory}"
    raise AssertionError(msg)


def hole(account: AwsAccount) -> Coverage:
    """Return the one hole in the coverage of a listing."""
    broken = [entry for entry in holes(account) if not entry.ok]
    assert len(broken) == 1
    return broken[0]
