"""Channels, and who is told what: settings in, lines of delivery out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from alerts.alertmanager import AlertmanagerChannel
from alerts.apprise import LIBRARY, apprise_channel
from alerts.base import Channel
from alerts.errors import ChannelSetupError, DeliveryError
from alerts.lifecycle import Audience, Policy
from alerts.log import LogChannel
from alerts.ping import Ping
from alerts.secrets import Secret, from_environment, from_file
from alerts.web import Address, Web
from alerts.webhook import WebhookChannel
from providers.base import Clock
from reaperd.config import ChannelTable, ChannelType, Settings
from reaperd.core.telling import Watch
from reaperd.delivery.line import AnyLine, LevelLine, Line
from reaperd.errors import ConfigError, Problem
from reaperd.report.logs import Logger
from reaperd.wiring.policy import discovering, named_scopes


def build_lines(settings: Settings, clock: Clock, log: Logger) -> tuple[AnyLine, ...]:
    """Return the configured channels. Nothing is opened or sent.

    Raises:
        ConfigError: if one of them can never work as it is configured. A file that cannot be read may come yet.
    """
    if problems := misconfigured(settings):
        raise ConfigError(problems)
    web = Web(clock=clock)
    return tuple(_line(table, settings, web, log) for table in settings.alerts.channels)


def misconfigured(settings: Settings) -> tuple[Problem, ...]:
    """Return what of the channels can never work."""
    channels = enumerate(settings.alerts.channels)
    return tuple(problem for place, table in channels for problem in _problems(f"alerts.channels.{place}", table))


def build_watch(settings: Settings) -> Watch:
    """Return who is told, and what is looked after."""
    tables = settings.alerts.channels
    policy = Policy(
        audiences=tuple(_audience(table) for table in tables if table.type is not ChannelType.ALERTMANAGER),
        realert_after=settings.audit.realert_after,
        escalate_after=settings.alerts.escalate_after,
        digest_above=settings.alerts.digest_above,
    )
    return Watch(
        policy=policy,
        levels=tuple(_audience(table) for table in tables if table.type is ChannelType.ALERTMANAGER),
        providers=frozenset(table.name for table in settings.providers),
        scopes=named_scopes(settings),
        discovering=discovering(settings),
    )


def build_ping(settings: Settings, clock: Clock) -> Callable[[], None] | None:
    """Return the call of the dead man's switch; None when there is none."""
    path = settings.alerts.ping_url_file
    if path is None:
        return None
    web = Web(clock=clock)

    def call() -> None:
        # The file is read for each call: a new address needs no restart.
        Ping(Address(_text(from_file(path))), web)()

    return call


def unreadable(settings: Settings) -> Iterator[str]:
    """Yield a sentence for every file or variable of a channel that cannot be used from here, the key in front."""
    ping = settings.alerts.ping_url_file
    if ping is not None and (trouble := _trouble(lambda: Address(_text(from_file(ping))))):
        yield f"alerts.ping_url_file: {trouble}"
    for place, table in enumerate(settings.alerts.channels):
        after = f"; nothing reaches channel {table.label} before that is right"
        if table.url is None and table.type is not ChannelType.LOG and (trouble := _trouble(partial(_address, table))):
            yield f"alerts.channels.{place}.{'url_file' if table.url_file else 'url_env'}: {trouble}{after}"
        secret = _secret(table.secret_file, table.secret_env)
        if secret is not None and (trouble := _trouble(secret)):
            yield f"alerts.channels.{place}.{'secret_file' if table.secret_file else 'secret_env'}: {trouble}{after}"


# ---------------------------------------------------------------- channels


def _line(table: ChannelTable, settings: Settings, web: Web, log: Logger) -> AnyLine:
    audience = _audience(table)
    match table.type:
        case ChannelType.LOG:
            return Line(audience=audience, make=lambda: LogChannel(log, name=table.label))
        case ChannelType.WEBHOOK:
            return Line(audience=audience, make=partial(_webhook, table, settings, web))
        case ChannelType.APPRISE:
            return Line(audience=audience, make=partial(_apprise, table, settings))
        case ChannelType.ALERTMANAGER:
            return LevelLine(audience=audience, make=partial(_alertmanager, table, settings, web))


def _webhook(table: ChannelTable, settings: Settings, web: Web) -> Channel:
    secret = _secret(table.secret_file, table.secret_env)
    return WebhookChannel(Address(_url(table)), web, deployment=settings.deployment, secret=secret, name=table.label)


def _apprise(table: ChannelTable, settings: Settings) -> Channel:
    return apprise_channel(_url(table), deployment=settings.deployment, name=table.label)


def _alertmanager(table: ChannelTable, settings: Settings, web: Web) -> AlertmanagerChannel:
    runbooks = settings.alerts.runbook_url or ""
    return AlertmanagerChannel(
        Address(_url(table)), web, deployment=settings.deployment, runbooks=runbooks, name=table.label
    )


def _audience(table: ChannelTable) -> Audience:
    return Audience(name=table.label, min_severity=table.min_severity)


# ---------------------------------------------------------------- addresses


def _url(table: ChannelTable) -> str:
    """Return where to, read anew each time.

    Raises:
        DeliveryError: if the file cannot be read, or the variable is not set.
    """
    if table.url is not None:
        return table.url
    kept = _secret(table.url_file, table.url_env)
    return "" if kept is None else _text(kept)


def _secret(path: Path | None, variable: str | None) -> Secret | None:
    """Return what reads a secret from where it is kept; None where none is."""
    if path is not None:
        return from_file(path)
    return None if variable is None else from_environment(variable, os.environ)


def _text(kept: Secret) -> str:
    return kept().decode("utf-8", "replace")


def _address(table: ChannelTable) -> object:
    """Return where to, if it can be that."""
    if table.type is ChannelType.APPRISE:
        # It is asked: nobody else knows its schemes.
        return apprise_channel(_url(table), deployment="", name=table.label)
    return Address(_url(table))


def _trouble(use: Callable[[], object]) -> str:
    try:
        use()
    except (ChannelSetupError, DeliveryError) as error:
        return str(error)
    return ""


def _problems(path: str, table: ChannelTable) -> Iterator[Problem]:
    if table.type is ChannelType.APPRISE and find_spec(LIBRARY) is None:
        yield Problem(path, "Apprise is not installed: pip install 'reaperd[notify]'")
    elif table.url is not None and (trouble := _trouble(partial(_address, table))):
        yield Problem(f"{path}.url", trouble)
