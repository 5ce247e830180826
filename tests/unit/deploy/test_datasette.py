"""The files that reaperd makes understand the questions of deploy/datasette. tests/e2e/test_datasette.py asks them."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from reaperd.ledger.ledger import open_ledger
from registry.sqlite.admin import create
from tests.docs.pages import ROOT
from tests.support.worlds import NOW

FOLDER = ROOT / "deploy" / "datasette"
DATABASES: dict[str, Any] = yaml.safe_load((FOLDER / "metadata.yaml").read_text(encoding="utf-8"))["databases"]
QUERIES = [(name, query) for name, each in DATABASES.items() for query in each["queries"]]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """Give a connection to both files, new and empty, read-only."""
    folder = tmp_path_factory.mktemp("audit")
    with open_ledger(folder / "ledger.db", deployment="prod", owner_tag="reaperd:owner", now=NOW):
        pass
    create(folder / "registry.db", "prod")
    with closing(sqlite3.connect(":memory:", uri=True)) as connection:
        for name in ("ledger", "registry"):
            connection.execute(f"ATTACH 'file:{folder / name}.db?mode=ro' AS {name}")
        yield connection


@pytest.mark.parametrize(("database", "name"), QUERIES)
def test_every_question_is_one_that_the_files_can_answer(asked: sqlite3.Connection, database: str, name: str):
    query = DATABASES[database]["queries"][name]

    answer = asked.execute(query["sql"], dict.fromkeys(query.get("params", []), "i-1"))

    assert answer.description
    assert query["title"]


@pytest.mark.parametrize("database", ["ledger", "registry"])
def test_what_is_hidden_is_there(asked: sqlite3.Connection, database: str):
    tables = {name for (name,) in asked.execute(f"SELECT name FROM {database}.sqlite_master WHERE type = 'table'")}

    assert set(DATABASES[database]["tables"]) <= tables


def test_the_page_names_every_question_and_no_other():
    page = (FOLDER / "README.md").read_text(encoding="utf-8")

    named = re.findall(r"`/(ledger|registry|_memory)/(\w+)", page)
    assert sorted(named) == sorted(QUERIES)


def test_the_page_says_how_it_is_started_once():
    page = (FOLDER / "README.md").read_text(encoding="utf-8")

    served, asked = re.findall(r"^\$ (datasette .+)$", page, re.MULTILINE)
    assert asked.startswith(f"{served} --get ")
    assert Path(served.split()[-1]) == (FOLDER / "metadata.yaml").relative_to(ROOT)
