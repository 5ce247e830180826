"""`demo`: the whole story on an embedded AWS."""

from __future__ import annotations

from pathlib import Path

import click

from reaperd.cli.options import exits, fail
from reaperd.errors import ExitCode, ReaperdError


@click.command(short_help="Show the whole story on an embedded AWS.")
@click.option(
    "--serve",
    "folder",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Tell no story: keep its AWS running, with a configuration and a registry in a new folder.",
)
@exits
def demo(folder: Path | None) -> None:
    """Show the whole story on an embedded AWS: no account, no credentials, nothing left behind.

    Needs the extra `demo`, which brings the simulator.

    \b
    Examples:
      reaperd demo                      six scenes, in half a minute
      reaperd demo --serve playground   an AWS to try the other commands on

    \b
    Exit codes: 0 told, or served until Ctrl-C; 1 the extra is missing, a
    command of the story answered otherwise, or FOLDER exists.
    """
    try:
        from reaperd.demo.serve import serve  # noqa: PLC0415 - moto is an extra
        from reaperd.demo.story import play  # noqa: PLC0415
    except ModuleNotFoundError as error:
        fail(f"the demo needs {error.name}, which comes with the extra: pip install 'reaperd[demo]'", ExitCode.ERROR)
    try:
        if folder is None:
            play(click.echo)
        else:
            serve(folder, click.echo)
    except ReaperdError as error:
        fail(str(error), ExitCode.ERROR)
