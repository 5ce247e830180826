"""Options that several commands share, and how their errors become exit codes."""

from __future__ import annotations

import functools
import os
import sys
import traceback
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, ParamSpec, TypeVar

import click

from providers.errors import ProviderError, ProviderSetupError
from reaperd.errors import ConfigError, ExitCode, ReaperdError, WebConfigError
from reaperd.report.visible import visible_lines
from registry.errors import RegistryError

if TYPE_CHECKING:
    from reaperd.config import Settings

P = ParamSpec("P")
R = TypeVar("R")


class Format(StrEnum):
    """How data is written to stdout."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


def _format(_ctx: click.Context, _param: click.Parameter, value: str) -> Format:
    return Format(value)


config_option = click.option(
    "--config",
    "config",
    metavar="FILE",
    type=click.Path(path_type=Path),
    default=None,
    help="The configuration.  [default: $REAPERD_CONFIG, or /etc/reaperd/reaperd.toml]",
)

format_option = click.option(
    "--format",
    "format_",
    type=click.Choice([str(choice) for choice in Format]),
    default=str(Format.TABLE),
    show_default=True,
    callback=_format,
    help="How to print the result.",
)

everything_option = click.option("--all", "everything", is_flag=True, help="Show every machine, not the first 20.")

yes_option = click.option("--yes", is_flag=True, help="Do not ask: for scripts.")

reason_option = click.option("--reason", default="", help="Why. It is kept with who and when.")


def load_settings(config: Path | None) -> Settings:
    """Return the settings.

    Raises:
        ConfigError: with every problem at once.
    """
    from reaperd.config import config_path, load  # noqa: PLC0415 - heavy

    return load(config_path(config, os.environ), os.environ)


def exits(command: Callable[P, R]) -> Callable[P, R]:
    """Turn errors into a sentence on stderr and the exit code of the contract.

    What nobody foresaw keeps its traceback, which shows lines of code and never the values in them.
    """

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except (ConfigError, WebConfigError, ProviderSetupError) as error:
            fail(str(error), ExitCode.CONFIG)
        except (ReaperdError, RegistryError, ProviderError) as error:
            fail(str(error), ExitCode.ERROR)
        except (click.ClickException, click.Abort, click.exceptions.Exit, BrokenPipeError):
            raise
        except Exception:  # noqa: BLE001 - the last thing before the process ends; what it says is kept
            click.echo(visible_lines(traceback.format_exc().rstrip()), err=True)
            fail("this should not have happened: please report it with the lines above", ExitCode.ERROR)

    return wrapped


def fail(message: str, code: ExitCode) -> NoReturn:
    """Say what is wrong on stderr and end the command."""
    say(message)
    raise click.exceptions.Exit(code)


def say(message: str) -> None:
    """Tell a person something on stderr: on a terminal folded between words, elsewhere a line each, to be searched."""
    told = f"reaperd: {visible_lines(message)}"
    click.echo(_folded(told) if sys.stderr.isatty() else told, err=True)


def _folded(text: str) -> str:
    from reaperd.report.paper import NARROWEST, PLAIN_WIDTH, Paper  # noqa: PLC0415 - heavy

    columns = os.get_terminal_size(sys.stderr.fileno()).columns
    paper = Paper(width=max(columns or PLAIN_WIDTH, NARROWEST))
    for line in text.split("\n"):
        words = line.lstrip()
        paper.line(words, indent=min(len(line) - len(words), NARROWEST // 2))
    return paper.text().rstrip("\n")
