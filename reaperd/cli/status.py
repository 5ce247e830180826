"""`status` and `health`: ask the running daemon."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from reaperd.cli.options import Format, config_option, exits, fail, load_settings, say
from reaperd.cli.output import blank_paper, put, put_json, whereabouts
from reaperd.errors import ConfigError, ExitCode, UnreadableStatusError
from reaperd.report.visible import clipped, visible

if TYPE_CHECKING:
    from reaperd.config import Settings
    from reaperd.http.client import Caller
    from reaperd.report.remedies import Whereabouts

PASSWORD_VARIABLE = "REAPERD_STATUS_PASSWORD"  # noqa: S105 - the name of a variable
_OK = 200
_UNAUTHORIZED = 401
_LONGEST = 1_000
"""Characters of a probe's text: it is one line, and what answers may be anybody."""

url_option = click.option("--url", default="", help="Where it listens.  [default: http.listen of the configuration]")
ca_option = click.option(
    "--ca-file", type=click.Path(path_type=Path), default=None, help="With TLS: whose certificates to believe."
)


@click.command()
@config_option
@url_option
@ca_option
@click.option("--user", default="", help=f"With basic auth; the password is taken from ${PASSWORD_VARIABLE}.")
@click.option("--format", "as_what", type=click.Choice(["table", "json"]), default="table", show_default=True)
@exits
def status(config: Path | None, url: str, ca_file: Path | None, user: str, as_what: str) -> None:
    """Tell how the running daemon is, and what stands in its way.

    \b
    Examples:
      reaperd status
      reaperd status --format json | jq .last.reconcile
      reaperd status --url https://10.0.0.5:9745 --user ops

    \b
    Exit codes: 0 it answered; 1 it did not; 78 bad configuration.
    """
    from reaperd.report.status import draw_status, read_status  # noqa: PLC0415 - heavy

    settings = _settings(config, url)
    caller = _caller(settings, url, ca_file, user)
    code, body = caller.ask("/api/v1/status")
    if code != _OK:
        _turned_away(code)
    try:
        told = read_status(body)
        if Format(as_what) is Format.JSON:
            put_json(dict(told))
            return
        paper = blank_paper()
        draw_status(told, paper, _whereabouts(config, settings))
    except (UnreadableStatusError, RecursionError) as error:
        fail(
            f"what answers at {caller.url} is not reaperd, or another version of it: {clipped(visible(str(error)))}. "
            "Compare `reaperd --version` on both sides, or give --url",
            ExitCode.ERROR,
        )
    put(paper.text())


@click.command()
@config_option
@url_option
@ca_option
@click.option("--ready", is_flag=True, help="Ask whether it does its work, not only whether it lives.")
@exits
def health(config: Path | None, url: str, ca_file: Path | None, *, ready: bool) -> None:
    """Ask the running daemon whether it is healthy. For probes.

    Healthy is: its scheduler progresses, whatever the clouds answer. Ready is:
    registry and account are proved and a first look was complete, or it stands
    by for another daemon.

    \b
    Examples:
      reaperd health
      reaperd health --ready

    \b
    Exit codes: 0 yes; 1 no, or no answer; 78 bad configuration.
    """
    settings = _settings(config, url)
    code, body = _caller(settings, url, ca_file, "").ask("/readyz" if ready else "/healthz")
    text = clipped(visible(body.decode("utf-8", "replace").strip()), _LONGEST)
    if code != _OK:
        fail(text or f"it answered {code}", ExitCode.ERROR)
    put(f"{text}\n")


def _settings(config: Path | None, url: str) -> Settings | None:
    """Return the settings; None where the file is wrong and an address was given: who is asked is known then."""
    try:
        return load_settings(config)
    except ConfigError as error:
        if not url:
            fail(f"{error}\nThe daemon can be asked without the file: give --url http://HOST:PORT", ExitCode.CONFIG)
        say(str(error))
        return None


def _whereabouts(config: Path | None, settings: Settings | None) -> Whereabouts:
    from reaperd.report.remedies import Whereabouts  # noqa: PLC0415 - heavy

    if settings is None:
        return Whereabouts(config=None if config is None else str(config))
    return whereabouts(config, settings, recorded=True)


def _caller(settings: Settings | None, url: str, ca_file: Path | None, user: str) -> Caller:
    from reaperd.http.client import Caller, url_of  # noqa: PLC0415 - heavy
    from reaperd.http.web_config import uses_tls  # noqa: PLC0415

    if not url and settings is not None:
        if settings.http.address is None:
            fail("http.listen is empty in the configuration: the daemon does not listen. Give --url", ExitCode.ERROR)
        web = settings.http.web_config_file
        host, port = settings.http.address
        url = url_of(host, port, tls=web is not None and uses_tls(web))
    return Caller(url=url, user=user, password=os.environ.get(PASSWORD_VARIABLE, ""), ca_file=ca_file)


def _turned_away(code: int) -> NoReturn:
    if code == _UNAUTHORIZED:
        fail(f"it wants a user: give --user NAME, and the password in ${PASSWORD_VARIABLE}", ExitCode.ERROR)
    fail(f"it answered {code}", ExitCode.ERROR)
