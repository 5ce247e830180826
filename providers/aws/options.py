"""What an AWS provider is built from. Values only."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import timedelta

from providers.errors import ProviderSetupError
from providers.model import TagKeys

_REGION = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_ACCOUNT = re.compile(r"\d{12}")
_PAGE_SIZES = range(5, 1001)


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsOptions:
    """One AWS account, as the configuration describes it.

    Raises:
        ProviderSetupError: if a value cannot be right.
    """

    name: str
    """The routing key; also the first half of every scope."""
    deployment: str
    """The value that our ownership tag carries."""
    tags: TagKeys = field(default_factory=TagKeys)
    account: str | None = None
    """The account that the credentials must belong to. None: any, and then nothing can be terminated."""
    regions: tuple[str, ...] | None = None
    """None: those that the account has enabled, asked on every pass."""
    split_by_zone: tuple[str, ...] = ()
    """Regions so large that their availability zones are listed side by side. The zones are asked for on every look."""
    home_region: str | None = None
    """Where identity and regions are asked. None: the first of the regions, or the session's, or us-east-1."""
    profile: str | None = None
    role_arn: str | None = None
    external_id: str | None = None
    endpoint_url: str | None = None
    """For every service alike. None: what the SDK's own settings say (AWS_ENDPOINT_URL), or AWS."""
    page_size: int = 500
    """Machines a page, from 5 to 1000. Half of what EC2 gives costs hardly more, and half of the memory."""
    listing_timeout: timedelta = timedelta(minutes=5)
    """One look at all regions. It may not take longer; a late answer is no answer."""
    terminate_timeout: timedelta = timedelta(seconds=60)
    """How old the second look at a machine may be when its end is asked for."""
    connect_timeout: timedelta = timedelta(seconds=5)
    read_timeout: timedelta = timedelta(seconds=30)
    """Between two bytes, not for a whole answer."""
    max_attempts: int = 8
    """Of one request, the first included: the SDK's standard mode, which rides out 28 s of throttling with eight."""

    def __post_init__(self) -> None:
        for complaint in self._complaints():
            msg = f"provider {self.name!r}: {complaint}"
            raise ProviderSetupError(msg)

    def _complaints(self) -> list[str]:
        checks = {
            "name: may not be empty": bool(self.name),
            "deployment: may not be empty": bool(self.deployment.strip()),
            f"account: {self.account!r} is not twelve digits": self.account is None or _is_account(self.account),
            'regions: name at least one, once each, or "auto"': self.regions is None or _all_distinct(self.regions),
            f"regions: {self.regions} are not all names": all(is_region(name) for name in self.regions or ()),
            f"split_by_zone: {self.split_by_zone} are not all names": all(map(is_region, self.split_by_zone)),
            "external_id: has no meaning without role_arn": self.external_id is None or self.role_arn is not None,
            f"page_size: {self.page_size} is not in 5..1000": self.page_size in _PAGE_SIZES,
            f"max_attempts: {self.max_attempts} is not at least 1": self.max_attempts >= 1,
            "timeouts: must be positive": min(self._timeouts()) > timedelta(0),
        }
        return [complaint for complaint, fine in checks.items() if not fine]

    def _timeouts(self) -> tuple[timedelta, ...]:
        return (self.listing_timeout, self.terminate_timeout, self.connect_timeout, self.read_timeout)


def is_region(name: str) -> bool:
    """Return whether this can be the name of a region. Part of a host name, it decides who is asked."""
    return _REGION.fullmatch(name) is not None


def _is_account(text: str) -> bool:
    return _ACCOUNT.fullmatch(text) is not None


def _all_distinct(regions: tuple[str, ...]) -> bool:
    return bool(regions) and len(set(regions)) == len(regions)
