"""`launch`: one worker, row first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reaperd.cli.asking import be_sure
from reaperd.cli.market import ALL_OFF, open_market, shopping_options
from reaperd.cli.options import Format, config_option, exits, fail, format_option, yes_option
from reaperd.cli.output import blank_paper, put, put_json
from reaperd.errors import ExitCode

if TYPE_CHECKING:
    from providers.capacity import Requirement, WorkerHandle, WorkerSpec
    from reaperd.config import Settings
    from reaperd.report.quote import Quoted

_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What was asked for, option by option."""

    types: tuple[str, ...]
    region: str
    model: str
    image: str
    image_variant: str
    user_data: str
    env: Mapping[str, str]
    instance_profile: str
    worker: str | None
    max_price: Decimal | None

    @property
    def requirement(self) -> Requirement:
        """Return what is asked of the market."""
        from providers.capacity import Requirement  # noqa: PLC0415 - heavy

        return Requirement(model=self.model, instance_types=self.types, region=self.region)

    @property
    def spec(self) -> WorkerSpec:
        """Return what runs on the machine."""
        from providers.capacity import WorkerSpec  # noqa: PLC0415 - heavy

        return WorkerSpec(
            model=self.model,
            image=self.image,
            image_variant=self.image_variant,
            user_data=self.user_data,
            env=self.env,
            instance_profile=self.instance_profile,
        )

    def affordable(self, quoted: Quoted) -> Quoted:
        """Return the offers that are not too dear."""
        limit = self.max_price
        return replace(quoted, offers=tuple(o for o in quoted.offers if limit is None or o.price_per_hour <= limit))


def _money(_ctx: click.Context, _param: click.Parameter, value: str | None) -> Decimal | None:
    if value is None:
        return None
    try:
        limit = Decimal(value)
    except InvalidOperation:
        limit = Decimal("NaN")
    if limit.is_finite() and limit > 0:
        return limit
    msg = f"{value!r} is no price, such as 0.35"
    raise click.BadParameter(msg)


def _pairs(_ctx: click.Context, _param: click.Parameter, values: Sequence[str]) -> Mapping[str, str]:
    pairs = [value.partition("=") for value in values]
    for value, (name, sign, _) in zip(values, pairs, strict=True):
        if not name or not sign:
            msg = f"{value!r} is not NAME=VALUE"
            raise click.BadParameter(msg)
    return {name: text for name, _, text in pairs}


def _text(_ctx: click.Context, _param: click.Parameter, value: Path | None) -> str:
    if value is None:
        return ""
    try:
        return value.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        msg = f"{value}: {error}"
        raise click.BadParameter(msg) from error


@click.command()
@shopping_options
@click.option("--image", default="", help="The image, by its id.")
@click.option("--image-variant", default="", help="Without an image: the newest of our own of this variant.")
@click.option(
    "--user-data",
    metavar="FILE",
    type=click.Path(path_type=Path),
    callback=_text,
    help="What the machine runs at its first start; sent as it is.",
)
@click.option(
    "--env", metavar="NAME=VALUE", multiple=True, callback=_pairs, help="A variable of the worker; repeat it."
)
@click.option("--instance-profile", default="", help="The instance profile, by name or ARN.")
@click.option("--worker", metavar="WORKER", default=None, help="The worker id.  [default: a new one]")
@click.option("--max-price", metavar="PRICE", callback=_money, help="Take no offer that costs more, an hour.")
@yes_option
@format_option
@config_option
@exits
def launch(format_: Format, config: Path | None, *, yes: bool, **wanted: Any) -> None:  # noqa: ANN401 - an Order
    """Launch one worker, so that no machine is ever without a row.

    Writes its row, launches onto the cheapest offer that has capacity, and
    writes the machine into the row. Shows what it may cost, and asks. The
    registry is the configured one, and this user has to be able to write it.

    When the answer of a cloud was lost, launch again with --worker and the
    worker id that was told: no second machine starts.

    \b
    Examples:
      reaperd launch --type g5.xlarge --image ami-0abc --model llama
      reaperd launch --type g5.xlarge --image ami-0abc --max-price 0.60 --yes

    \b
    Exit codes: 0 it runs; 1 there is no offer or no capacity, the answer was
    lost, or you said no; 2 nobody could be asked; 5 every cloud is off;
    78 bad configuration.
    """
    from reaperd.launching import launch_worker  # noqa: PLC0415 - heavy
    from reaperd.report.quote import price  # noqa: PLC0415
    from registry.sqlite.writer import SqliteRegistryWriter  # noqa: PLC0415

    order = Order(**wanted)
    market = open_market(config, registry_id=_registry_id)
    quoted = market.ask(order.requirement)
    fitting = order.affordable(quoted)
    _show(fitting, beside_data=format_ is not Format.TABLE)
    if quoted.all_off:
        fail(f"nothing was launched: {ALL_OFF}", ExitCode.SAFETY_STOP)
    if not fitting.offers:
        dearer = f"; the cheapest costs {price(quoted.offers[0])}" if quoted.offers else ""
        fail(f"nothing was launched: no offer fits{dearer}. See `reaperd quote`", ExitCode.ERROR)
    be_sure(f"Launch one worker, for {price(fitting.offers[0])} an hour or the next that has capacity?", yes=yes)
    registry = market.settings.registry
    writer = SqliteRegistryWriter(registry.path, market.settings.deployment, busy_timeout=registry.busy_timeout)
    handle = launch_worker(market.shop, writer, order.spec, fitting.offers, worker_id=order.worker)
    _tell(handle, format_)


def _tell(handle: WorkerHandle, format_: Format) -> None:
    from reaperd.report.quote import launch_document, launch_sheet, price  # noqa: PLC0415 - heavy

    match format_:
        case Format.JSON:
            put_json(launch_document(handle))
        case Format.CSV:
            put(launch_sheet(handle))
        case Format.TABLE:
            paper = blank_paper()
            paper.command(f"worker {handle.worker_id} has {handle.ref}", indent=0)
            if handle.offer.is_priced:
                paper.line(f"It costs {price(handle.offer)} an hour.")
            put(paper.text())


def _registry_id(settings: Settings) -> str:
    """Return the id of a registry that can be read: without one, nothing is asked for."""
    from registry.sqlite import SqliteRegistry  # noqa: PLC0415 - heavy

    return SqliteRegistry(settings.registry.path, settings.registry.busy_timeout).snapshot().identity.registry_id


def _show(quoted: Quoted, *, beside_data: bool) -> None:
    """Show what may be launched onto; on stderr where stdout is for data."""
    from reaperd.report.quote import draw_quote  # noqa: PLC0415 - heavy

    paper = blank_paper()
    draw_quote(quoted, paper, limit=_SHOWN)
    if beside_data:
        click.echo(paper.text(), err=True, nl=False)
        return
    put(paper.text())
