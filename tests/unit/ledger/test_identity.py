"""The ledger that a process began with, and no other."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from reaperd.errors import LedgerUnusableError
from reaperd.ledger.lease import LONGEST, Lease
from reaperd.ledger.ledger import LeaseLostError, Ledger, open_ledger
from reaperd.process import current
from tests.unit.ledger.conftest import NOW, open_at

TTL = timedelta(seconds=30)


def same(path: Path, ledger_id: str) -> Ledger:
    return open_ledger(path, deployment="prod-a", owner_tag="reaperd:owner", now=NOW, ledger_id=ledger_id)


def gone(path: Path) -> None:
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()


def leased(ledger: Ledger) -> Lease:
    taken = ledger.take_lease(current(), TTL, NOW)
    assert isinstance(taken, Lease)
    return taken


def test_the_ledger_that_is_meant_is_opened_as_often_as_one_likes(path: Path):
    with open_at(path) as ledger:
        identity = ledger.identity

    with same(path, identity) as again:
        assert again.identity == identity


def test_two_ledgers_have_two_identities(path: Path):
    with open_at(path) as first:
        before = first.identity
    gone(path)
    with open_at(path) as second:
        assert second.identity != before


def test_one_that_is_gone_is_not_made_anew(path: Path):
    with open_at(path) as ledger:
        identity = ledger.identity
    gone(path)

    with pytest.raises(LedgerUnusableError, match="it is gone: it is not the ledger that this process began with"):
        same(path, identity)

    assert list(path.parent.iterdir()) == []


def test_one_that_was_replaced_is_refused_with_what_to_do(path: Path):
    with open_at(path) as ledger:
        identity = ledger.identity
    gone(path)
    open_at(path).close()

    with pytest.raises(LedgerUnusableError, match="it was replaced") as raised:
        same(path, identity)

    assert "Restart reaperd" in str(raised.value)


def test_one_that_was_emptied_is_refused(path: Path):
    with open_at(path) as ledger:
        identity = ledger.identity
    gone(path)
    path.touch()

    with pytest.raises(LedgerUnusableError, match="it is empty"):
        same(path, identity)


def test_a_lease_of_one_ledger_is_none_in_another_although_the_generation_is_the_same(path: Path):
    with open_at(path) as ledger:
        ours = leased(ledger)
    gone(path)
    with open_at(path) as ledger:
        theirs = ledger.take_lease(replace(current(), host="elsewhere"), TTL, NOW)

        assert isinstance(theirs, Lease)
        assert theirs.generation == ours.generation
        assert not ledger.renew_lease(ours, TTL, NOW)
        assert not ledger.holds_lease(ours, NOW)
        with pytest.raises(LeaseLostError):
            ledger.check_leave(ours, NOW)
        ledger.release_lease(ours, NOW)
        assert ledger.holds_lease(theirs, NOW)


@pytest.mark.parametrize(("ahead", "waits"), [(LONGEST, True), (LONGEST + timedelta(seconds=1), False)])
def test_a_lease_that_claims_to_run_for_longer_than_any_is_not_waited_for(
    ledger: Ledger, ahead: timedelta, *, waits: bool
):
    ledger.take_lease(replace(current(), host="elsewhere", boot_id="another"), ahead, NOW)

    assert isinstance(ledger.take_lease(current(), TTL, NOW), Lease) is not waits


def test_what_is_no_time_where_one_belongs_is_a_damaged_ledger(path: Path):
    with open_at(path) as ledger:
        leased(ledger)
        with closing(sqlite3.connect(path)) as other, other:
            other.execute("UPDATE lease SET expires_at = 'soon'")

        with pytest.raises(LedgerUnusableError, match="it holds 'soon' where a time belongs"):
            ledger.take_lease(current(), TTL, NOW)
