"""`run`: the daemon."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from reaperd.cli.options import config_option, exits, load_settings
from reaperd.errors import ExitCode

if TYPE_CHECKING:
    from reaperd.daemon.daemon import Signals


@click.command()
@config_option
@exits
def run(config: Path | None) -> None:
    """Run the daemon: a pass every minute, a sweep now and then.

    Ends on SIGTERM or SIGINT, within ten seconds and without leaving anything
    half done. SIGHUP reads the configuration anew; a bad one is refused, and
    the old one stays in force. With a registry, a cloud or an account that
    cannot be used it stays up, terminates nothing, and is not ready.

    Two daemons on one ledger: one acts, the other stands by.

    \b
    Examples:
      reaperd run --config ./reaperd.toml
      reaperd status               how is it? (in another terminal)
      systemctl reload reaperd     after a change of the configuration

    \b
    Exit codes: 0 asked to stop; 1 the ledger or the port cannot be had;
    78 bad configuration.
    """
    from reaperd.clock import SystemClock  # noqa: PLC0415 - heavy
    from reaperd.daemon.daemon import Signals  # noqa: PLC0415
    from reaperd.report.logs import configure_logs  # noqa: PLC0415
    from reaperd.wiring.daemon import Given, build_daemon  # noqa: PLC0415

    settings = load_settings(config)
    clock = SystemClock()
    log = configure_logs(format_=settings.log.format, now=clock.now, stream=sys.stderr, environ=os.environ)
    signals = Signals(stop=threading.Event(), reload=threading.Event())
    _listen(signals)
    given = Given(load=lambda: load_settings(config), log=log, clock=clock, signals=signals, environ=os.environ)
    finished = build_daemon(given).run()
    if not finished:
        # A call that hangs would keep the process. Its answer can reach nothing any more: all is recorded.
        sys.stderr.flush()
        os._exit(ExitCode.OK)


def _listen(signals: Signals) -> None:
    """Turn signals into requests. A handler does nothing else: it runs between any two instructions."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        signals.stop.set()

    def reload(_number: int, _frame: FrameType | None) -> None:
        signals.reload.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGHUP, reload)
