"""docs/seeds.md has a row for every name of the seeds, and what a row says is so."""

import inspect
import re
from importlib import import_module
from typing import NamedTuple

import pytest
import yaml

from tests.docs.markdown import read
from tests.docs.pages import ROOT
from tests.support import collected

DATA = yaml.safe_load((ROOT / "tests" / "docs" / "data" / "seed_names.yaml").read_text(encoding="utf-8"))
SEEDS = ("capacity", "navarch", "cedana")
NOT_THERE_YET = "not there yet"
NOT_HERE = "not here"


class Row(NamedTuple):
    """One name of a seed."""

    seed: str
    name: str
    here: str
    shown: str
    note: str

    @property
    def key(self):
        return f"{self.seed}.{self.name}"

    @property
    def python(self):
        return tuple(re.findall(r"`([^`]+)`", self.here))

    @property
    def tests(self):
        return tuple(re.findall(r"`([^`]+)`", self.shown))


def rows_of(seed):
    """Return the rows of one seed's table, without its two lines of head."""
    section = read("docs/seeds.md").partition(f"\n## {seed}\n")[2].partition("\n## ")[0]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if line.startswith("|")]
    return [Row(seed, name.strip("`"), here, shown, note) for name, here, shown, note in cells[2:]]


ROWS = [row for seed in SEEDS for row in rows_of(seed)]
HERE = [row for row in ROWS if row.here != NOT_HERE]
EVERY = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.key)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_name_of_a_seed_has_one_row_in_the_order_of_the_list(seed):
    assert [row.name for row in rows_of(seed)] == DATA[seed]
    assert len(set(DATA[seed])) == len(DATA[seed])


def test_the_seeds_of_the_page_are_those_of_the_list():
    assert re.findall(r"^## (.+)$", read("docs/seeds.md"), re.MULTILINE) == list(SEEDS)
    assert set(DATA) == {*SEEDS, "not_there_yet"}


@EVERY
def test_a_name_is_here_and_shown_or_it_is_said_why_not(row):
    if row.here == NOT_HERE:
        assert row.note
        assert not row.shown
        return

    assert row.python
    assert bool(row.tests) is (row.shown != NOT_THERE_YET)


@pytest.mark.parametrize("row", HERE, ids=lambda row: row.key)
def test_a_python_name_can_be_imported(row):
    assert [name for name in row.python if not is_there(name)] == []


@pytest.mark.parametrize("row", HERE, ids=lambda row: row.key)
def test_a_test_that_is_named_exists(row):
    assert [test for test in row.tests if not collected.exists(test)] == []


def test_what_is_not_shown_yet_is_listed():
    assert {row.key for row in ROWS if row.shown == NOT_THERE_YET} == set(DATA["not_there_yet"])


@EVERY
def test_what_a_note_names_can_be_imported_too(row):
    named = re.findall(r"`((?:providers|registry|alerts|reaperd)\.[\w.]+)`", row.note)

    assert [name for name in named if not is_there(name)] == []


@pytest.mark.parametrize(
    "name", ["providers.model.Nothing", "providers.nothing", "providers.fake.FakeProvider.nothing", "nothing"]
)
def test_a_name_that_is_not_there_is_found_out(name):
    assert not is_there(name)


def is_there(name):
    """Say whether a dotted name leads somewhere: a module, what is in it, a method, a field."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        return all(_has(owner, part) for owner, part in _walk(found, parts[length:]))
    return False


def _walk(found, parts):
    for part in parts:
        yield found, part
        found = getattr(found, part, None)


def _has(owner, part):
    """Say whether an object has a name, or a class gives it to its objects when they are made."""
    if hasattr(owner, part):
        return True
    return inspect.isclass(owner) and any(
        f"self.{part}" in inspect.getsource(each) for each in owner.__mro__ if each is not object
    )
