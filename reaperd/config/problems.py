"""From what pydantic found to sentences that say where it is and what to write instead."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from reaperd.config.schema import keys_of, tables_in
from reaperd.config.settings import RULE_BROKEN, Settings
from reaperd.config.tables import AWS, PLUGIN, AwsProviderTable, PluginProviderTable
from reaperd.errors import Problem

_SENTENCES = {
    "missing": "is required",
    "string_type": "must be a string",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "tuple_type": "must be a list",
    "mapping_type": "must be a table",
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "model_attributes_type": "must be a table",
    "greater_than": "must be more than {gt:g}",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than_equal": "must be at most {le:g}",
    "enum": "must be {expected}",
    "literal_error": "must be {expected}",
}
_KINDS: Mapping[str, type[BaseModel]] = {AWS: AwsProviderTable, PLUGIN: PluginProviderTable}
_UNWRITTEN = frozenset({*_KINDS, "[key]"})
"""Steps of pydantic's own that nobody wrote in a file."""


def problems_of(error: ValidationError) -> tuple[Problem, ...]:
    """Return one problem for each thing that pydantic found, broken rules left out: the loader judges those itself."""
    found = error.errors(include_url=False, include_input=False)
    return tuple(_problem(details) for details in found if details["type"] != RULE_BROKEN)


def _problem(details: ErrorDetails) -> Problem:
    place = details["loc"]
    dotted = ".".join(str(part) for part in place if part not in _UNWRITTEN)
    if details["type"] == "extra_forbidden":
        return Problem(dotted, "unknown key" + _hint(place))
    return Problem(dotted, _sentence(details))


def _sentence(details: ErrorDetails) -> str:
    context: dict[str, Any] = details.get("ctx", {})
    if details["type"] == "value_error":
        return str(context["error"])
    template = _SENTENCES.get(details["type"])
    if template is None:
        return details["msg"]
    return template.format_map({key: _quoted(value) for key, value in context.items()})


def _quoted(value: object) -> object:
    """Pydantic lists choices in single quotes; people copy what they read, so show TOML's plain strings."""
    return re.sub(r"'([^']*)'", r'"\1"', value) if isinstance(value, str) else value


def _hint(place: tuple[int | str, ...]) -> str:
    key = str(place[-1])
    siblings = _model_at(place[:-1]).model_fields
    if close := get_close_matches(key.replace("-", "_"), siblings, n=1):
        return f"; did you mean {close[0]}?"
    elsewhere = [known.dotted for known in keys_of(Settings) if known.path[-1] == key]
    return f"; did you mean {elsewhere[0]}?" if elsewhere else ""


def _model_at(place: tuple[int | str, ...]) -> type[BaseModel]:
    model: type[BaseModel] = Settings
    for part in place:
        if part in _KINDS:
            model = _KINDS[str(part)]
        elif isinstance(part, str):
            model = tables_in(model.model_fields[part].annotation)[0]
    return model
