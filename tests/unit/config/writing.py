"""Files for the tests: a valid one, and what is wrong with a changed one."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from reaperd.config import Settings, load
from reaperd.errors import ConfigError, Problem

TOP = 'deployment = "prod-eu"'
REGISTRY = 'path = "/var/lib/fleet/registry.db"'
AWS = 'name = "aws"\ntype = "aws"\nregions = ["us-east-1"]'


def file(top: str = TOP, registry: str = REGISTRY, provider: str = AWS, more: str = "") -> str:
    return f"{top}\n[registry]\n{registry}\n[[providers]]\n{provider}\n{more}\n"


def loaded(text: str, env: Mapping[str, str] | None = None) -> Settings:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "reaperd.toml"
        path.write_text(text, encoding="utf-8")
        return load(path, env or {})


def problems(text: str, env: Mapping[str, str] | None = None) -> dict[str, str]:
    with pytest.raises(ConfigError) as caught:
        loaded(text, env)
    found: tuple[Problem, ...] = caught.value.problems
    assert len({problem.path for problem in found}) == len(found), "one problem a path, as these tests want it"
    return {problem.path: problem.message for problem in found}
