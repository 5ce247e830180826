"""`check-config`: the configuration, with everything that is wrong with it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from reaperd.cli.options import config_option, exits, load_settings
from reaperd.cli.output import put
from reaperd.errors import ConfigError, Problem
from reaperd.report.visible import visible

if TYPE_CHECKING:
    from reaperd.config import Settings


@click.command("check-config")
@click.option("--show", is_flag=True, help="Print the settings in force as TOML, secrets masked.")
@config_option
@exits
def check_config(config: Path | None, *, show: bool) -> None:
    """Check the configuration, and say all that is wrong with it.

    Also tells what is allowed and should be thought about again, and whether
    it fits the registry, if that can be read from here. No cloud is asked.

    \b
    Examples:
      reaperd check-config
      reaperd check-config --config ./reaperd.toml
      reaperd check-config --show > effective.toml

    \b
    Exit codes: 0 it is right, warnings or not; 78 it is wrong or missing.
    """
    from reaperd.config import config_path, warnings  # noqa: PLC0415 - heavy
    from reaperd.wiring.alerting import unreadable  # noqa: PLC0415

    settings = load_settings(config)
    require_plugins(settings, config)
    comment = "# " if show else ""
    put(f"{comment}{visible(str(config_path(config, os.environ)))}: OK, mode {settings.mode}\n")
    if show:
        put(toml(settings.masked()))
    for text in (*warnings(settings), *unreadable(settings), *about_registry(settings)):
        click.echo(f"warning: {visible(text)}", err=True)


def require_plugins(settings: Settings, config: Path | None) -> None:
    """Raise ConfigError unless something provides every provider type and every channel that the settings name."""
    from reaperd.config import config_path  # noqa: PLC0415 - heavy
    from reaperd.wiring.alerting import misconfigured  # noqa: PLC0415
    from reaperd.wiring.clouds import missing_plugins  # noqa: PLC0415

    problems = (*(Problem(path, text) for path, text in missing_plugins(settings)), *misconfigured(settings))
    if problems:
        raise ConfigError(problems, str(config_path(config, os.environ)))


def about_registry(settings: Settings) -> Iterator[str]:
    """Yield what of the settings does not fit the registry."""
    from reaperd.config import misfits  # noqa: PLC0415 - heavy
    from registry.errors import RegistryUnusableError  # noqa: PLC0415
    from registry.sqlite import SqliteRegistry  # noqa: PLC0415

    try:
        snapshot = SqliteRegistry(settings.registry.path, settings.registry.busy_timeout).snapshot()
    except RegistryUnusableError as error:
        yield f"registry.path: it cannot be used from here: {error}"
        return
    found = snapshot.identity.deployment
    if found != settings.deployment:
        yield f"registry.path: that is the registry of deployment {found!r}, so every pass will be refused"
    yield from misfits(settings, snapshot)


# ---------------------------------------------------------------- TOML


def toml(table: Mapping[str, object], above: str = "") -> str:
    """Return plain data as TOML."""
    plain = {key: value for key, value in table.items() if not _is_table(value) and not _tables(value)}
    text = "".join(f"{_key(key)} = {_value(value)}\n" for key, value in plain.items())
    for key, value in table.items():
        dotted = f"{above}{_key(key)}"
        if _is_table(value):
            text += f"\n[{dotted}]\n{toml(cast('Mapping[str, object]', value), f'{dotted}.')}"
        for entry in _tables(value):
            text += f"\n[[{dotted}]]\n{toml(entry, f'{dotted}.')}"
    return text


def _is_table(value: object) -> bool:
    return isinstance(value, Mapping)


def _tables(value: object) -> Sequence[Mapping[str, object]]:
    if isinstance(value, list) and value and all(_is_table(entry) for entry in cast("list[object]", value)):
        return cast("list[Mapping[str, object]]", value)
    return ()


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _value(name)


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        inner = cast("Mapping[str, object]", value)
        return "{ " + ", ".join(f"{_key(key)} = {_value(entry)}" for key, entry in inner.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_value(entry) for entry in cast("list[object]", value)) + "]"
    # JSON's strings, numbers and booleans are TOML's too, but for its pairs of surrogates.
    text = json.dumps(value, ensure_ascii=False)
    return "".join(char if char.isprintable() else f"\\U{ord(char):08x}" for char in text)
