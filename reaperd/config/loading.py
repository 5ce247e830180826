"""From a file and an environment to settings, or to everything that is wrong with them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

from pydantic import ValidationError

from reaperd.config.environment import FILE_VARIABLE, Overridden, override
from reaperd.config.problems import problems_of
from reaperd.config.rules import broken_rules
from reaperd.config.settings import Settings
from reaperd.errors import ConfigError, Problem

DEFAULT_PATH = Path("/etc/reaperd/reaperd.toml")


def config_path(option: Path | None, env: Mapping[str, str]) -> Path:
    """Return where the file is: `--config`, else `$REAPERD_CONFIG`, else the default."""
    return option or Path(env.get(FILE_VARIABLE) or DEFAULT_PATH)


def load(path: Path, env: Mapping[str, str]) -> Settings:
    """Return the settings of the file with the environment laid over them.

    Raises:
        ConfigError: with every problem of the file and of the environment.
    """
    given = _with_state_directory(override(_read(path), env), env)
    try:
        settings = Settings.model_validate(given.tables)
    except ValidationError as error:
        problems = (*given.problems, *problems_of(error), *broken_rules(given.tables))
        raise ConfigError(_ordered(problems, given.variables), str(path)) from None
    if given.problems:
        raise ConfigError(_ordered(given.problems, given.variables), str(path))
    return settings


def load_for_the_brake(path: Path, env: Mapping[str, str]) -> Settings:
    """Return settings of which only `deployment`, `state_dir` and `tags.owner` are the file's: whose ledger, and where.

    For the brake, which must not depend on a key that has nothing to do with it.

    Raises:
        ConfigError: if not even these can be read.
    """
    tables = _with_state_directory(override(_read(path), env), env).tables
    found = tables.get("tags")
    tags = cast("dict[str, object]", found) if isinstance(found, dict) else {}
    owner: dict[str, object] = {"owner": tags["owner"]} if "owner" in tags else {}
    kept = {key: tables[key] for key in ("deployment", "state_dir") if key in tables}
    # What a file has to have, and what the brake does not use.
    filled: dict[str, object] = {
        "tags": owner,
        "registry": {"path": "/unused"},
        "providers": [{"name": "unused", "type": "unused"}],
    }
    try:
        return Settings.model_validate({**filled, **kept})
    except ValidationError as error:
        raise ConfigError(problems_of(error), str(path)) from None


def _read(path: Path) -> dict[str, object]:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise _unreadable(path, "there is no such file; name another with --config or REAPERD_CONFIG") from None
    except UnicodeDecodeError:
        raise _unreadable(path, "is not UTF-8 text") from None
    except (OSError, ValueError) as error:
        raise _unreadable(path, f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise _unreadable(path, "is not TOML: nested too deeply") from None
    except ValueError as error:  # A TOMLDecodeError is one; so is what an absurdly long number raises.
        raise _unreadable(path, f"is not TOML: {error}{_quotes_hint(text, str(error))}") from None


def _unreadable(path: Path, message: str) -> ConfigError:
    return ConfigError((Problem("", message),), str(path))


def _quotes_hint(text: str, message: str) -> str:
    place = re.search(r"at line (\d+)", message)
    lines = text.split("\n")
    line = lines[int(place[1]) - 1] if place and int(place[1]) <= len(lines) else ""
    return "; an account needs quotes" if re.match(r"\s*account\s*=\s*\d", line) else ""


def _with_state_directory(given: Overridden, env: Mapping[str, str]) -> Overridden:
    # systemd lists several folders with colons; ours is the first.
    folder = env.get("STATE_DIRECTORY", "").partition(":")[0]
    if not folder or "state_dir" in given.tables:
        return given
    variables = {**given.variables, "state_dir": "STATE_DIRECTORY"}
    return replace(given, tables={**given.tables, "state_dir": folder}, variables=variables)


def _ordered(problems: tuple[Problem, ...], variables: Mapping[str, str]) -> tuple[Problem, ...]:
    """Sort by place, numbers as numbers, each problem once, and name the variable that a value came from."""
    named = {_from_variable(problem, variables) for problem in problems}
    return tuple(sorted(named, key=lambda problem: (_sortable(problem.path), problem.message)))


def _from_variable(problem: Problem, variables: Mapping[str, str]) -> Problem:
    for dotted, variable in variables.items():
        if problem.path == dotted or problem.path.startswith(f"{dotted}."):
            return replace(problem, message=f"{problem.message} (set by {variable})")
    return problem


def _sortable(path: str) -> tuple[tuple[int, str], ...]:
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in path.split("."))
