"""`conformance`: every promise of a configured provider, with one machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reaperd.cli.asking import be_sure
from reaperd.cli.check import require_plugins
from reaperd.cli.options import Format, config_option, exits, fail, format_option, load_settings, yes_option
from reaperd.cli.output import blank_paper, put, put_json
from reaperd.clock import SystemClock
from reaperd.errors import ExitCode
from reaperd.report.visible import visible

if TYPE_CHECKING:
    from providers.capacity import Offer
    from providers.proving import Proof, Trial
    from reaperd.config import ProviderTable, Settings


@click.command()
@click.option("--provider", "name", required=True, help="The name of a [[providers]] table.")
@click.option("--type", "types", metavar="TYPE", multiple=True, help="An instance type; may be given again.")
@click.option("--region", default="", help="Only this region.  [default: all that are configured]")
@click.option("--image", default="", help="The image of the machine, by its id.  [default: the provider's]")
@yes_option
@format_option
@config_option
@exits
def conformance(  # noqa: PLR0913 - one parameter an option
    name: str, types: tuple[str, ...], region: str, image: str, format_: Format, config: Path | None, *, yes: bool
) -> None:
    """Prove every promise of a provider, with one machine.

    Launches one machine onto the cheapest offer, tries on it whatever must not
    end it, ends it, and looks whether it is gone. Says before what that costs,
    and asks. Its worker id begins with conformance-; no row stands for it, so
    that reaperd ends it, too, should this be killed.

    What only a cloud can show that a test may break (lost answers, pages that
    are missing) is proved by the suites of providers.conformance.

    \b
    Examples:
      reaperd conformance --provider acme
      reaperd conformance --provider aws --type t4g.nano --image ami-0abc --yes

    \b
    Exit codes: 0 every promise was kept; 1 one is broken, a machine was left,
    there is no offer or no capacity, or you said no; 2 nobody could be asked,
    or no such provider; 78 bad configuration.
    """
    from providers.proving import LAUNCH, Verdict  # noqa: PLC0415 - heavy
    from reaperd.report.quote import price  # noqa: PLC0415

    settings = load_settings(config)
    require_plugins(settings, config)
    trial = _trial(settings, _table(settings, name), types, region, image)
    if not trial.offers:
        fail(f"provider {name} has no offer for this, so there is nothing to prove it with", ExitCode.ERROR)
    cheapest = trial.offers[0]
    _say_what_it_costs(name, cheapest, beside_data=format_ is not Format.TABLE)
    be_sure(f"Launch one machine on {visible(name)} for {price(cheapest)} an hour, and end it?", yes=yes)
    proofs = tuple(_watched(trial, format_))
    _tell(name, proofs, format_)
    broken = any(proof.verdict is Verdict.BROKEN for proof in proofs)
    launched = any(proof.promise == LAUNCH and proof.verdict is Verdict.KEPT for proof in proofs)
    raise click.exceptions.Exit(ExitCode.OK if launched and not broken else ExitCode.ERROR)


def _table(settings: Settings, name: str) -> ProviderTable:
    for table in settings.providers:
        if table.name == name:
            return table
    there = ", ".join(table.name for table in settings.providers)
    msg = f"no [[providers]] table is called {name!r}; there is {there}"
    raise click.BadParameter(msg, param_hint="--provider")


def _trial(settings: Settings, table: ProviderTable, types: tuple[str, ...], region: str, image: str) -> Trial:
    from providers.capacity import Requirement, WorkerSpec  # noqa: PLC0415 - heavy
    from providers.proving import Trial, offers_to_try  # noqa: PLC0415
    from reaperd.wiring.shopping import build_provider  # noqa: PLC0415

    clock = SystemClock()
    provider = build_provider(settings, table, clock)
    spec = WorkerSpec(model="conformance", image=image)
    offers = offers_to_try(provider, Requirement(model=spec.model, instance_types=types, region=region))
    return Trial(provider=provider, owner=settings.deployment, spec=spec, offers=offers, clock=clock)


def _say_what_it_costs(name: str, offer: Offer, *, beside_data: bool) -> None:
    from reaperd.report.quote import price  # noqa: PLC0415 - heavy

    paper = blank_paper()
    paper.line(
        f"To prove {name}, one {offer.instance_type} is launched in {offer.provider}/{offer.region}, at {price(offer)} "
        "an hour or the next offer that has capacity, and is ended again. It has no row: to reaperd it is an orphan."
    )
    paper.line()
    click.echo(paper.text(), err=beside_data, nl=False)


def _watched(trial: Trial, format_: Format) -> Iterator[Proof]:
    """Yield each proof, and show it at once to a person."""
    from providers.proving import prove  # noqa: PLC0415 - heavy
    from reaperd.report.proofs import proof_line  # noqa: PLC0415

    for proof in prove(trial):
        if format_ is Format.TABLE:
            mark, told = proof_line(proof)
            paper = blank_paper()
            paper.labelled(mark, told, width=len(mark))
            put(paper.text())
        yield proof


def _tell(name: str, proofs: tuple[Proof, ...], format_: Format) -> None:
    from reaperd.report.proofs import proofs_document, proofs_sheet  # noqa: PLC0415 - heavy

    match format_:
        case Format.JSON:
            put_json(proofs_document(name, proofs))
        case Format.CSV:
            put(proofs_sheet(proofs))
        case Format.TABLE:
            pass
