"""What launches are made of beyond the account itself. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from providers.errors import ProviderSetupError
from providers.model import NO_TAGS

NAME_TAG = "Name"
_MAX_TAG_KEY, _MAX_TAG_VALUE = 128, 256


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsLaunchOptions:
    """How machines are launched into one account. The defaults launch into the default network of each region.

    Raises:
        ProviderSetupError: if a value cannot be right.
    """

    registry_id: str | None = None
    """The id of the registry that the workers stand in; becomes a tag. With it, two fleets that were given one name by
    mistake do not reap each other's machines."""
    subnets: Mapping[str, str] = field(default_factory=lambda: NO_TAGS, hash=False)
    """Zone -> subnet. A zone that stands here is never asked about."""
    security_groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]], hash=False)
    """Region -> security groups. A region that stands here is never asked about."""
    role_tag: str = "reaperd:role"
    role: str = "worker"
    """Subnets and security groups with this tag are for workers. The machines carry it, too."""
    image_tag: str = "reaperd:image"
    """Own images carry their variant in this tag."""
    image_lifetime: timedelta = timedelta(minutes=5)
    """For so long the newest image of a variant is not asked for again."""
    network_lifetime: timedelta = timedelta(minutes=30)
    """The same of a zone's subnet and groups, also when there are none."""
    launch_timeout: timedelta = timedelta(seconds=60)
    """No request is repeated once a launch has taken so long."""
    quote_timeout: timedelta = timedelta(seconds=60)
    """A region that has not answered by then has no offers, and is named."""
    extra_tags: Mapping[str, str] = field(default_factory=lambda: NO_TAGS, hash=False)
    """More tags, for every resource of a launch. None may be one of ours."""

    def __post_init__(self) -> None:
        for complaint in self._complaints():
            msg = f"launch options: {complaint}"
            raise ProviderSetupError(msg)

    def _complaints(self) -> list[str]:
        texts = (self.role_tag, self.role, self.image_tag, *self.subnets.values())
        checks = {
            "registry_id: may not be empty; leave it out": self.registry_id != "",
            "tags, roles and subnets: may not be empty": all(texts),
            "security_groups: name at least one, or leave the region out": all(self.security_groups.values()),
            "timeouts and lifetimes: must be positive": min(self._durations()) > timedelta(0),
        }
        odd = [key for key, value in self.extra_tags.items() if not fits_tag(key, value)]
        checks[f"extra_tags: {odd} cannot be tags"] = not odd
        return [complaint for complaint, fine in checks.items() if not fine]

    def _durations(self) -> tuple[timedelta, ...]:
        return (self.image_lifetime, self.network_lifetime, self.launch_timeout, self.quote_timeout)


def fits_tag(key: str, value: str) -> bool:
    """Return whether AWS takes this for a tag that a user may set."""
    return 0 < len(key) <= _MAX_TAG_KEY and len(value) <= _MAX_TAG_VALUE and not key.lower().startswith("aws:")
