"""`quote`: what a machine costs now."""

from __future__ import annotations

from pathlib import Path

import click

from reaperd.cli.market import ALL_OFF, open_market, shopping_options
from reaperd.cli.options import Format, config_option, exits, fail, format_option, say
from reaperd.cli.output import blank_paper, put, put_json
from reaperd.errors import ExitCode


@click.command()
@shopping_options
@click.option("--all", "everything", is_flag=True, help="Show every offer, not the 20 cheapest.")
@format_option
@config_option
@exits
def quote(
    types: tuple[str, ...], region: str, model: str, format_: Format, config: Path | None, *, everything: bool
) -> None:
    """Show what a machine costs now, cheapest first.

    Asks every configured provider whose gate is on, side by side. A region
    that does not answer takes no other's offers away: its reason is shown.

    \b
    Examples:
      reaperd quote --type g5.xlarge --type g6.xlarge
      reaperd quote --type g5.xlarge --region eu-west-1 --format json

    \b
    Exit codes: 0 everybody that was asked answered; 1 nobody did; 4 somebody
    did not; 5 every cloud is off, so nobody was asked; 78 bad configuration.
    """
    from providers.capacity import Requirement  # noqa: PLC0415 - heavy
    from reaperd.report.quote import SHOWN, draw_quote, quote_document, quote_sheet  # noqa: PLC0415

    quoted = open_market(config).ask(Requirement(model=model, instance_types=types, region=region))
    match format_:
        case Format.JSON:
            put_json(quote_document(quoted))
        case Format.CSV:
            put(quote_sheet(quoted.offers))
            for text in quoted.closed:
                say(text)
        case Format.TABLE:
            paper = blank_paper()
            draw_quote(quoted, paper, limit=None if everything else SHOWN)
            put(paper.text())
    if quoted.all_off:
        fail(ALL_OFF, ExitCode.SAFETY_STOP)
    raise click.exceptions.Exit(ExitCode.INCOMPLETE if quoted.failures else ExitCode.OK)
