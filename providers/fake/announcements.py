"""What the cloud in memory announces, and where it does not say."""

from __future__ import annotations

from providers.errors import EventError
from providers.events import ProviderEvent, Unheard
from providers.identity import InstanceRef, Scope


class Announcements:
    """The cloud's book of what will become of machines. Tests write it."""

    def __init__(self) -> None:
        """Begin with nothing announced, and nobody silent."""
        self.events: dict[InstanceRef, ProviderEvent] = {}
        """By machine, there or not."""
        self.silent: dict[Scope, str] = {}
        """Where nothing is told, each with its error code."""

    def of(self, ref: InstanceRef, scopes: tuple[Scope, ...]) -> ProviderEvent | None:
        """Return what is announced for a machine, to somebody who covers these scopes, or raise EventError."""
        if ref.scope not in scopes:
            raise EventError(ref, f"there are {', '.join(map(str, scopes))}", error_code="unknown_region")
        if ref.scope in self.silent:
            raise EventError(ref, "it does not say", error_code=self.silent[ref.scope])
        return self.events.get(ref)

    def within(self, scopes: tuple[Scope, ...]) -> tuple[tuple[ProviderEvent, ...], tuple[Unheard, ...]]:
        """Return what is announced in these scopes, and which of them do not say."""
        told = (event for ref, event in sorted(self.events.items()) if ref.scope in {*scopes} - {*self.silent})
        silent = (scope for scope in scopes if scope in self.silent)
        return tuple(told), tuple(Unheard(scope=scope, error_code=self.silent[scope]) for scope in silent)
