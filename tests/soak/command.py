"""The command line of the soak."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterable
from pathlib import Path

import click

from tests.soak.kills import kill
from tests.soak.page import Row, lines_of_kills, lines_of_soak, write
from tests.soak.run import soak
from tests.support.zygote import warm_up

TOLD_EVERY = 500
"""So many passes go by between two lines for whoever waits."""


@click.command()
@click.option("--passes", default=200, show_default=True, help="Passes of the soak; 0 leaves it out.")
@click.option("--kills", default=40, show_default=True, help="Processes killed at random moments; 0 leaves them out.")
@click.option("--seed", type=int, help="What is left to chance follows from it. A new one unless given.")
@click.option("--write", "page", type=click.Path(exists=True, path_type=Path), help="Put the figures into this page.")
def main(passes: int, kills: int, seed: int | None, page: Path | None) -> None:
    """Soak the daemon, and kill it. Ends with an error, the seed and the pass when a promise was broken."""
    seed = secrets.randbelow(1_000_000) if seed is None else seed
    click.echo(f"seed {seed}")
    # In this process, so that those that are forked from it find everything imported.
    warm_up()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        if passes:
            rows += _told(lines_of_soak(soak(Path(folder), passes=passes, seed=seed, progress=_progress)))
    with tempfile.TemporaryDirectory(prefix="kills-") as folder:
        if kills:
            rows += _told(lines_of_kills(kill(Path(folder), kills=kills, seed=seed)))
    if page is not None:
        write(page, f"seed {seed}", rows)


def _progress(number: int) -> None:
    if number % TOLD_EVERY == 0:
        click.echo(f"pass {number:,}", err=True)


def _told(rows: Iterable[Row]) -> list[Row]:
    told = list(rows)
    for name, value in told:
        click.echo(f"{name}: {value}")
    return told
