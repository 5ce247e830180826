"""What a test must be able to do to a receiver of alerts, for the suites of `alerts.conformance`.

`ChannelHarness` or `LevelHarness` is needed; the Protocols below them are abilities that a harness may lack, if it says
so. A harness is made anew for every test, with a receiver that takes everything and has got nothing yet.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Protocol, runtime_checkable

from alerts.base import Channel, LevelChannel


class ChannelHarness(Protocol):
    """What a test of a channel needs."""

    def channel(self) -> Channel:
        """Return the channel."""
        ...

    def received(self) -> Sequence[str]:
        """Return what the receiver was given, one text for each notification, in order, whether it took it or not."""
        ...


class LevelHarness(Protocol):
    """What a test of a channel needs that is told levels."""

    def channel(self) -> LevelChannel:
        """Return the channel."""
        ...

    def received(self) -> Sequence[str]:
        """Return what the receiver was given, one text for each alert, in order, whether it took it or not."""
        ...


@runtime_checkable
class Answers(Protocol):
    """Its receiver answers over HTTP."""

    def answer(self, status: int, *, headers: Sequence[tuple[str, str]] = (), text: str = "", after: int = 0) -> None:
        """Answer so from now on, once so many requests were taken."""
        ...


@runtime_checkable
class Fails(Protocol):
    """Its receiver can be told to take nothing more."""

    def fail(self) -> None:
        """Take nothing from now on."""
        ...


@runtime_checkable
class Vanishes(Protocol):
    """Its receiver can be switched off."""

    def vanish(self) -> None:
        """Let nobody listen there."""
        ...


@runtime_checkable
class Hangs(Protocol):
    """Its receiver can be slow without end."""

    @property
    def timeout(self) -> timedelta:
        """Return the channel's timeout, in real time: well below a second, or the tests take long."""
        ...

    def hang(self) -> None:
        """Take requests from now on, and say nothing."""
        ...

    def drip(self) -> None:
        """Answer from now on a byte now and then, without end."""
        ...


@runtime_checkable
class Secret(Protocol):
    """Its address or its settings hold secrets."""

    @property
    def secrets(self) -> Collection[str]:
        """Return what must not be in any error."""
        ...
