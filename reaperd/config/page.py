"""The reference page of the settings, rendered from the models. `make docs` writes it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from enum import StrEnum

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from reaperd.config.fields import Label
from reaperd.config.schema import Key, keys_of, marks_of, section_of
from reaperd.config.settings import Settings
from reaperd.config.tables import AwsProviderTable, PluginProviderTable, plain

_INTRODUCTION = """\
# Configuration

<!-- Generated from reaperd/config by `make docs`. Edit the models, not this page. -->

`reaperd` reads one TOML file: the one given by `--config`, else by `$REAPERD_CONFIG`, else `/etc/reaperd/reaperd.toml`.
`reaperd check-config` reports everything that is wrong with it at once, each problem with the path of its key, and ends
with 78. `examples/reaperd.minimal.toml` is the least that works, `examples/reaperd.full.toml` shows every key.

* An unknown key is an error, so that a misspelt guard cannot be silently absent.
* A duration is text with units, the larger first: `"90s"`, `"15m"`, `"1h30m"`, `"2d"`; ten years at most. A bare number
  is an error. `"0s"` is accepted for `reconcile.launch_grace` alone. To leave a key out never means 0: the default
  applies, and where there is none, the check itself is off.
* An account is text, in quotes: as a number it would lose a leading zero.
* A path is absolute.

## The environment

`REAPERD_SECTION__KEY` overrides a key of the file, two underscores for each dot:
`REAPERD_RECONCILE__BREAKER__MAX_PER_PASS=3` sets `reconcile.breaker.max_per_pass`. Upper and lower case are the same.
Values are written without TOML's quotes; the parts of a list are separated by commas.

* **No variable can ask for terminations.** `REAPERD_MODE=dry-run` turns an enforcing file into a rehearsal; any other
  value of `REAPERD_MODE` is an error, even beside a file that enforces.
* Arrays of tables (`[[providers]]`, `[[alerts.channels]]`, `[[audit.ignore]]`) and `[prices]` have no environment form.
* A variable that starts with `REAPERD_` and is no setting is an error. Excepted are `REAPERD_CONFIG` and the variables
  that Kubernetes sets in every pod beside a Service called `reaperd` (`REAPERD_SERVICE_HOST`, `REAPERD_PORT_…`).

## Reloading

`SIGHUP` reads and checks the whole file and then swaps. A file with a problem changes nothing. `deployment`,
`state_dir`, `tags.owner`, `registry.path`, `http.listen`, `http.web_config_file` and `log.format` need a restart: a
file that changes one of them is refused as a whole, and the log names it.
"""

_HEADINGS: dict[type[BaseModel], str] = {AwsProviderTable: ' with `type = "aws"`', PluginProviderTable: " of a plug-in"}


def document() -> str:
    """Return the page."""
    return "\n".join([_INTRODUCTION, *_sections(Settings, ())])


def _sections(model: type[BaseModel], path: tuple[str, ...]) -> Iterator[str]:
    heading = f"`[{'.'.join(path)}]`" if path else "Top level"
    yield from _table(heading, model, path)
    for key in keys_of(model, path):
        if key.path[:-1] == path and key.tables:
            for table in key.tables:
                yield from _table(f"`[[{key.dotted}]]`{_HEADINGS.get(table, '')}", table, key.path, numbered=True)
    for name, info in model.model_fields.items():
        if section := section_of(info):
            yield from _sections(section, (*path, name))


def _table(heading: str, model: type[BaseModel], path: tuple[str, ...], *, numbered: bool = False) -> Iterator[str]:
    yield f"## {heading}\n"
    yield inspect.cleandoc(model.__doc__ or "") + "\n"
    keys = [key for key in keys_of(model, path) if key.path[:-1] == path and not key.tables]
    variable = "" if numbered else " Environment |"
    yield f"| Key | Type | Default |{variable} Meaning |"
    yield "| --- | --- | --- |" + (" --- |" if variable else "") + " --- |"
    for key in keys:
        cells = [f"`{key.path[-1]}`", _kind(key), _default(key.info), key.info.description or ""]
        if variable:
            cells.insert(3, "none" if key.in_file_only else f"`{key.variable}`")
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
    yield ""


def _kind(key: Key) -> str:
    for mark in marks_of(key.info):
        if isinstance(mark, Label):
            return mark.text
    choices = [member for kind in key.types if isinstance(kind, type) and issubclass(kind, StrEnum) for member in kind]
    return ", ".join(f'`"{choice}"`' for choice in choices)


def _default(info: FieldInfo) -> str:
    if info.is_required():
        return "required"
    value = plain(info.get_default(call_default_factory=True, validated_data={}))
    match value:
        case None:
            return "not set"
        case str():
            return f'`"{value}"`'
        case dict():
            return "`{}`"
        case _:
            return f"`{value}`"
