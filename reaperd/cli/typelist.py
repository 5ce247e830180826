"""`types`: what kinds of machine there are."""

from __future__ import annotations

from pathlib import Path

import click

from reaperd.cli.check import require_plugins
from reaperd.cli.options import Format, config_option, exits, format_option, load_settings
from reaperd.cli.output import blank_paper, put, put_json
from reaperd.clock import SystemClock
from reaperd.errors import ExitCode


@click.command()
@click.option("--type", "names", metavar="TYPE", multiple=True, help="Only this type; may be given again.")
@click.option("--region", default="", help="Only what this region offers, at its prices.")
@click.option("--all", "everything", is_flag=True, help="Show every type, not the 20 cheapest.")
@format_option
@config_option
@exits
def types(names: tuple[str, ...], region: str, format_: Format, config: Path | None, *, everything: bool) -> None:
    """Show the types of machine there are, cheapest first.

    Each with its GPUs, memory and processors, where it is offered, and what
    it costs there. On AWS that is the spot price of now, of the cheapest zone:
    EC2 tells no other. A list is whole, or its reason is shown. Asks every
    configured provider, wherever its gate is.

    \b
    Examples:
      reaperd types --region eu-west-1
      reaperd types --format csv > types.csv

    \b
    Exit codes: 0 everybody answered; 1 nobody did; 4 somebody did not;
    78 bad configuration.
    """
    from providers.errors import QuoteError  # noqa: PLC0415 - heavy
    from providers.pricelist import ask_for_types  # noqa: PLC0415
    from reaperd.report.quote import SHOWN  # noqa: PLC0415
    from reaperd.report.typelist import Catalogue, catalogue_document, catalogue_sheet, draw_catalogue  # noqa: PLC0415
    from reaperd.wiring.shopping import build_type_listers  # noqa: PLC0415

    settings = load_settings(config)
    require_plugins(settings, config)
    clock = SystemClock()
    listers, without = build_type_listers(settings, clock)
    if not listers:
        msg = f"no provider has a list of types: {', '.join(without)}"
        raise QuoteError(msg)
    told, failures = ask_for_types(listers, clock=clock, timeout=settings.reconcile.deadline)
    catalogue = Catalogue(types=told, failures=failures, without=without).of(names, region)
    match format_:
        case Format.JSON:
            put_json(catalogue_document(catalogue))
        case Format.CSV:
            put(catalogue_sheet(catalogue))
        case Format.TABLE:
            paper = blank_paper()
            draw_catalogue(catalogue, paper, region=region, limit=None if everything else SHOWN)
            put(paper.text())
    raise click.exceptions.Exit(ExitCode.INCOMPLETE if failures else ExitCode.OK)
