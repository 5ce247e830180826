"""What is committed beside the code and has to agree with it."""

import subprocess
import sys
from pathlib import Path

import pytest

from reaperd.config import Settings, load
from reaperd.config.page import document
from reaperd.config.schema import keys_of

_ROOT = Path(__file__).parents[3]


def test_the_committed_page_is_the_generated_one():
    assert (_ROOT / "docs" / "configuration.md").read_text() == document(), "run `make docs`"


@pytest.mark.parametrize("key", [key for key in keys_of(Settings) if not key.in_file_only], ids=lambda key: key.dotted)
def test_every_key_is_on_the_page_with_its_meaning(key):
    line = next(line for line in document().splitlines() if f"| `{key.variable}` |" in line)
    name, kind, default, _, meaning = line.strip("| ").split(" | ")

    assert name == f"`{key.path[-1]}`"
    assert kind
    assert default
    assert meaning.endswith(".")


def test_the_prices_are_on_the_page_and_have_no_variable():
    (line,) = (line for line in document().splitlines() if line.startswith("| `prices` |"))

    assert "| table of numbers | `{}` | none |" in line
    assert "REAPERD_PRICES" not in document()


def test_the_minimal_example_is_a_rehearsal():
    settings = load(_ROOT / "examples" / "reaperd.minimal.toml", {})

    assert not settings.enforcing


def test_the_full_example_shows_every_key():
    path = _ROOT / "examples" / "reaperd.full.toml"
    settings = load(path, {})

    unset = [key.dotted for key in keys_of(Settings) if _value(settings, key.path) in (None, (), {})]
    assert settings.enforcing
    assert unset == []
    for table in (*settings.audit.ignore[1:], settings.providers[0]):
        shown = {key for key in type(table).model_fields if getattr(table, key)}
        assert set(type(table).model_fields) - shown <= {"name", "endpoint_url"}


def _value(settings: Settings, path: tuple[str, ...]) -> object:
    value: object = settings
    for part in path:
        value = getattr(value, part)
    return value


def test_the_page_is_written_by_one_command(tmp_path):
    (tmp_path / "docs").mkdir()

    subprocess.run([sys.executable, "-m", "reaperd.config"], cwd=tmp_path, env={"PYTHONPATH": str(_ROOT)}, check=True)

    assert (tmp_path / "docs" / "configuration.md").read_text() == document()
