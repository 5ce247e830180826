"""The price list of the cloud in memory."""

from __future__ import annotations

from providers.catalogue import InstanceType
from providers.errors import QuoteError
from providers.fake.cloud import FakeCloud


class FakeTypeLister:
    """Lists the types that a test gave it."""

    def __init__(self, cloud: FakeCloud, *types: InstanceType) -> None:
        """Keep the cloud, and the types that it begins with."""
        self._cloud = cloud
        self.types: dict[str, InstanceType] = {each.name: each for each in types}
        """By name. A test may change it at any time."""
        self.error: QuoteError | None = None
        """Raised by every listing."""

    @property
    def name(self) -> str:
        """Return the name of the cloud."""
        return self._cloud.name

    def list_instance_types(self) -> tuple[InstanceType, ...]:
        """Return the types, in the order of their names."""
        if self.error is not None:
            raise self.error
        return tuple(self.types[name] for name in sorted(self.types))
