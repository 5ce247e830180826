"""What the ledger remembers of machines that are not ours (rule 27)."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from providers.model import InstanceRef
from reaperd.core.starts import LearnedStarts
from reaperd.errors import LedgerUnusableError
from reaperd.ledger.ledger import Ledger
from reaperd.ledger.notebooks import peek_starts
from reaperd.ledger.schema import SCHEMA_VERSION
from tests.support.site import tree
from tests.unit.ledger.conftest import NOW, open_at

REF = InstanceRef("aws", "us-east-1", "i-1")
OTHER = InstanceRef("aws", "us-east-1", "i-2")
DAY = timedelta(days=1)


def peeked(path: Path, deployment: str = "prod-a"):
    return peek_starts(path, deployment=deployment, owner_tag="reaperd:owner", busy_timeout=timedelta(seconds=1))


def test_a_new_ledger_remembers_no_machine(ledger: Ledger):
    assert ledger.audited() == {}


def test_starts_survive_a_restart(path: Path):
    with open_at(path) as ledger:
        ledger.remember_audited(LearnedStarts(noted={REF: NOW - DAY, OTHER: NOW}))

    with open_at(path) as ledger:
        assert ledger.audited() == {REF: NOW - DAY, OTHER: NOW}


def test_a_start_never_becomes_later(ledger: Ledger):
    for start in (NOW, NOW - DAY, NOW - timedelta(hours=1)):
        ledger.remember_audited(LearnedStarts(noted={REF: start}))

    assert ledger.audited() == {REF: NOW - DAY}


def test_a_machine_that_is_gone_is_forgotten_and_no_other(ledger: Ledger):
    ledger.remember_audited(LearnedStarts(noted={REF: NOW, OTHER: NOW}))

    ledger.remember_audited(LearnedStarts(forgotten=frozenset({REF})))

    assert ledger.audited() == {OTHER: NOW}


def test_what_is_written_with_something_that_fails_is_not_there(ledger: Ledger):
    class OtherError(Exception):
        pass

    with pytest.raises(OtherError), ledger.transaction():
        ledger.remember_audited(LearnedStarts(noted={REF: NOW}))
        raise OtherError

    assert ledger.audited() == {}


# ---------------------------------------------------------------- leaving no trace


def test_whoever_leaves_no_trace_reads_the_same(path: Path):
    with open_at(path) as ledger:
        ledger.remember_audited(LearnedStarts(noted={REF: NOW - DAY}))
    before = tree(path.parent)

    assert peeked(path) == {REF: NOW - DAY}
    assert tree(path.parent) == before


def test_without_a_ledger_nothing_is_remembered_and_nothing_created(path: Path):
    assert peeked(path) == {}
    assert not path.exists()


def test_an_older_ledger_remembers_nothing(path: Path):
    open_at(path).close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP TABLE audited")
        connection.execute("UPDATE meta SET schema_version = ?", (SCHEMA_VERSION - 1,))

    assert peeked(path) == {}


def test_another_deployments_memory_is_not_ours(path: Path):
    open_at(path).close()

    with pytest.raises(LedgerUnusableError, match="belongs to"):
        peeked(path, deployment="prod-b")
