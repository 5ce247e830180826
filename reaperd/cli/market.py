"""What `quote` and `launch` share: which machines are wanted, and who is asked for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import click

from reaperd.cli.check import require_plugins
from reaperd.cli.options import load_settings
from reaperd.clock import SystemClock

if TYPE_CHECKING:
    from providers.capacity import Offer, QuoteFailure, Requirement
    from providers.multicloud import MultiCloudProvider
    from reaperd.config import Settings
    from reaperd.report.quote import Quoted

P = ParamSpec("P")
R = TypeVar("R")


def shopping_options(command: Callable[P, R]) -> Callable[P, R]:
    """Add the options that say which machines are wanted."""
    for option in (
        click.option("--model", default="", help="What it is to serve: becomes a tag, and may have offers of its own."),
        click.option("--region", default="", help="Only this region.  [default: all that are configured]"),
        click.option("--type", "types", metavar="TYPE", multiple=True, help="An instance type; may be given again."),
    ):
        command = option(command)
    return command


_NOT_ASKED = {"quote_gated": "cloud", "provider_cannot_launch": "provider"}
"""What is heard of a cloud that is not asked, and which field names its table."""

ALL_OFF = (
    "every cloud is off, so none was asked. `reaperd gate list` tells since when and why; `reaperd gate on` ends it"
)


@dataclass(slots=True)
class Listening:
    """The log of the gates: what stays closed is told with the offers."""

    heard: list[str] = field(default_factory=list)
    silent: set[str] = field(default_factory=set)
    """The tables of the clouds that were not asked: they are off, or cannot quote."""

    def warning(self, event: str, /, **fields: object) -> None:
        """Keep what a gate says; each cloud says it once."""
        told = str(fields.get("detail", ""))
        if event in _NOT_ASKED:
            self.silent.add(str(fields[_NOT_ASKED[event]]))
        if told and told not in self.heard:
            self.heard.append(told)


@dataclass(frozen=True, slots=True, kw_only=True)
class Market:
    """Everybody who sells, as configured."""

    settings: Settings
    shop: MultiCloudProvider
    gates: Listening

    def ask(self, requirement: Requirement) -> Quoted:
        """Return what is offered, cheapest first, and who could not say.

        Raises:
            QuoteError: if nobody could.
        """
        from providers.cheapest import cheapest_first  # noqa: PLC0415 - heavy
        from reaperd.report.quote import Quoted  # noqa: PLC0415

        quotes = self.shop.quote(requirement)
        offers: tuple[Offer, ...] = tuple(cheapest_first(quotes))
        failures: tuple[QuoteFailure, ...] = quotes.failures
        all_off = self.gates.silent >= {table.name for table in self.settings.providers}
        return Quoted(offers=offers, failures=failures, closed=tuple(self.gates.heard), all_off=all_off)


def open_market(config: Path | None, *, registry_id: Callable[[Settings], str] | None = None) -> Market:
    """Return who sells. `registry_id` tells what becomes a tag of what is launched.

    Raises:
        ConfigError: if the configuration is wrong.
        ProviderSetupError: if a provider cannot be built.
    """
    from reaperd.wiring.shopping import build_shop  # noqa: PLC0415 - heavy

    settings = load_settings(config)
    require_plugins(settings, config)
    gates = Listening()
    known = None if registry_id is None else registry_id(settings)
    shop = build_shop(settings, SystemClock(), gates, registry_id=known)
    return Market(settings=settings, shop=shop, gates=gates)
