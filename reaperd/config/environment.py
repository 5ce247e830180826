"""`REAPERD_SECTION__KEY` overrides a key of the file, except that no variable can ask for terminations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from difflib import get_close_matches
from typing import cast

from reaperd.config.schema import Key, keys_of
from reaperd.config.settings import Settings
from reaperd.core.model import Mode
from reaperd.errors import Problem

PREFIX = "REAPERD_"
FILE_VARIABLE = "REAPERD_CONFIG"
"""Where the file is. It is not a setting."""

# Kubernetes gives every pod these for a Service called `reaperd`, whatever we think of it.
_SERVICE_LINKS = re.compile(
    r"REAPERD_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overridden:
    """The file's tables with the environment laid over them."""

    tables: dict[str, object]
    variables: Mapping[str, str]
    """Which variable set which key."""
    problems: tuple[Problem, ...]


def override(tables: Mapping[str, object], env: Mapping[str, str]) -> Overridden:
    """Return a copy of the tables in which the environment's values replace the file's."""
    keys = {key.variable: key for key in keys_of(Settings)}
    merged = deepcopy(dict(tables))
    variables: dict[str, str] = {}
    problems: list[Problem] = []
    for variable in sorted(filter(_is_ours, env)):
        key = keys.get(variable.upper())
        problem = _refused(variable, env[variable], key, keys)
        if key is not None and key.dotted in variables:
            problem = Problem(variable, f"sets the same key as {variables[key.dotted]}")
        if problem is not None:
            problems.append(problem)
        elif key is not None:
            _put(merged, key.path, _value(key, env[variable]))
            variables[key.dotted] = variable
    return Overridden(tables=merged, variables=variables, problems=tuple(problems))


def _is_ours(variable: str) -> bool:
    mine = variable.upper().startswith(PREFIX) and variable != FILE_VARIABLE
    return mine and _SERVICE_LINKS.fullmatch(variable) is None


def _refused(variable: str, value: str, key: Key | None, keys: Mapping[str, Key]) -> Problem | None:
    if key is None:
        return _unknown(variable, keys)
    if key.in_file_only:
        return Problem(variable, f"{key.heading} has no environment form: write it in the file")
    if key.path == ("mode",) and value != Mode.DRY_RUN:
        return Problem(variable, 'can only be "dry-run": to terminate is asked for in the file, with mode = "enforce"')
    return None


def _unknown(variable: str, keys: Mapping[str, Key]) -> Problem:
    for key in keys.values():
        if key.in_file_only and variable.upper().startswith(key.variable):
            return Problem(variable, f"{key.heading} has no environment form: write it in the file")
    close = get_close_matches(variable.upper(), keys, n=1, cutoff=0.9)
    return Problem(variable, "is not a setting" + (f"; did you mean {close[0]}?" if close else ""))


def _value(key: Key, text: str) -> object:
    """Return the text as the type of the key; what does not fit stays text, and the models say so."""
    if int in key.types:
        return int(text) if re.fullmatch(r"-?[0-9]{1,18}", text) else text
    if float in key.types:
        return float(text) if re.fullmatch(r"-?[0-9]{1,18}(\.[0-9]{1,18})?", text) else text
    if any(getattr(kind, "__origin__", None) is tuple for kind in key.types):
        return [part.strip() for part in text.split(",") if part.strip()]
    return text


def _put(tables: dict[str, object], path: tuple[str, ...], value: object) -> None:
    for part in path[:-1]:
        inner = tables.setdefault(part, {})
        if not isinstance(inner, dict):
            return  # The file has a value where a table belongs, and is told so.
        tables = cast("dict[str, object]", inner)
    tables[path[-1]] = value
