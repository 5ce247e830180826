"""`hold` and `once` in two terminals at the same moment: what was recorded before the brake is sent, and no more.

Which of the two came first is what the ledger says itself: two triggers, which only this test puts there, write the
order of commits down.
"""

from __future__ import annotations

import sqlite3
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from itertools import cycle
from pathlib import Path

import pytest

from tests.integration.judging import document_of, harmless, outcomes
from tests.support.ec2 import FaultyEc2
from tests.support.ec2.protocol import ApiRequest
from tests.support.processes import Crew, Result, Running
from tests.support.site import EAST, WEST, Site

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ROUNDS = 200
NEW_HOSTS = 20
SAFETY_STOP = 5
LISTING, TERMINATE = "DescribeInstances", "TerminateInstances"
WIDE = {"reconcile.breaker.max_per_hour": "100000", "reconcile.breaker.max_fraction": "1.0"}

_WITNESSES = (
    "CREATE TABLE witness (number INTEGER PRIMARY KEY AUTOINCREMENT, what TEXT NOT NULL)",
    "CREATE TRIGGER saw_intent AFTER INSERT ON intents BEGIN INSERT INTO witness (what) VALUES (new.instance_id); END",
    "CREATE TRIGGER saw_brake AFTER INSERT ON brake BEGIN INSERT INTO witness (what) VALUES ('brake'); END",
)

MOMENTS: dict[str, Callable[[ApiRequest], bool] | None] = {
    "together": None,
    "listing": lambda request: request.action == LISTING and "MaxResults" in request.params,
    "second look": lambda request: request.action == LISTING and "MaxResults" not in request.params,
    "request": lambda request: request.action == TERMINATE,
}
"""When the brake is pulled: at once, or as soon as the cloud gets such a request, which it answers meanwhile."""


def test_what_was_not_recorded_before_the_brake_is_not_sent(site: Site):
    assert site.run("once").code == 0
    with closing(sqlite3.connect(site.ledger_path, isolation_level=None)) as connection:
        for statement in _WITNESSES:
            connection.execute(statement)
    hand = Hand(site)
    seen: Counter[str] = Counter()

    for number, moment in zip(range(ROUNDS), cycle(MOMENTS), strict=False):
        known = set(site.cloud.terminated_ids())
        orphans = [site.orphan(region, worker=f"w-{number}-{region}") for region in (EAST, WEST)]
        once, hold = hand.race(moment)

        assert hold.code == 0, hold.err
        harmless(hold)
        sent = {exchange.request.params["InstanceId.1"] for exchange in site.cloud.terminate_requests()}
        recorded = before_the_brake(site)
        assert sent <= recorded
        # What was recorded and met the brake on its way was not sent, and is written down as that.
        assert {name for name, _, closed in site.intents() if closed == "spared"} >= recorded - sent
        assert set(site.accepted()) - known == sent
        seen[told(once, sent)] += 1
        assert site.rows("PRAGMA integrity_check") == [("ok",)]
        for orphan in set(orphans) - sent:
            assert site.cloud.state_of(orphan) == "running"
            site.cloud.remove(orphan)
        hand.start_anew()

    # Both have won often enough for this to have shown something: of a deferred pass, each one of the two machines.
    assert min(seen["refused"], seen["deferred"]) >= ROUNDS // 20, seen
    assert site.rows("SELECT count(*) FROM operator_acts") == [(2 * ROUNDS,)]


def test_a_brake_that_makes_the_ledger_while_a_pass_makes_it_too_is_on(tmp_path: Path, cloud: FaultyEc2, crew: Crew):
    for number in range(NEW_HOSTS):
        folder = tmp_path / str(number)
        folder.mkdir()
        site = Site(folder=folder, cloud=cloud, crew=crew, deployment=f"prod-{number}")
        site.set_up()
        orphan = site.orphan()

        once, hold = Hand(site).race("together" if number % 2 else "listing")

        assert hold.code == 0, hold.err
        sent = {name for _, name in site.mutations()}
        assert sent <= {name for name, _, _ in site.intents()} <= {orphan}
        told(once, sent)
        assert site.rows("SELECT count(*) FROM brake") == [(1,)]
        assert site.rows("PRAGMA integrity_check") == [("ok",)]
        cloud.clear_requests()


def before_the_brake(site: Site) -> set[str]:
    """Return the machines whose intents were committed before the brake; none may have been committed after it."""
    committed = [what for (what,) in site.rows("SELECT what FROM witness ORDER BY number")]
    assert committed.count("brake") == 1
    assert committed[-1] == "brake"
    assert len(set(committed)) == len(committed)
    return set(committed[:-1])


def told(once: Result, sent: set[str]) -> str:
    """Return how the pass ended, having checked that it reports exactly what was sent, and the brake if it met it."""
    outcome: str = once.json["outcome"]
    code = {"complete": 0, "refused": SAFETY_STOP, "deferred": 1}[outcome]
    document = document_of(once, code, outcome, None if outcome == "complete" else "reap_hold")
    answers = outcomes(document)
    assert {name for name, answer in answers.items() if answer == "requested"} == sent
    assert set(answers.values()) <= {"requested", "confirmed_gone", "spared"}
    if outcome != "complete":
        # A brake that was met before the first request refuses the pass, a later one defers it.
        assert (outcome == "deferred") == bool(sent)
    if "spared" in answers.values():
        assert outcome != "complete"
    return outcome


class Hand:
    """Pulls the brake at a given moment of a pass."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._fires: Callable[[ApiRequest], bool] | None = None
        self._alone = threading.Lock()
        self._hold: Running | None = None
        site.cloud.on(LISTING, self._look)
        site.cloud.on(TERMINATE, self._look)

    def race(self, moment: str) -> tuple[Result, Result]:
        """Return what the pass and the brake left."""
        self._hold, self._fires = None, MOMENTS[moment]
        once = self._site.start("once", settings=WIDE)
        if self._fires is None:
            self._pull()
        ended = once.wait()
        hold = self._pull()
        return ended, hold.wait()

    def start_anew(self) -> None:
        """Take the brake off, and forget the round."""
        assert self._site.run("resume").code == 0
        with closing(sqlite3.connect(self._site.ledger_path, isolation_level=None)) as connection:
            connection.execute("DELETE FROM witness")
        self._site.cloud.clear_requests()

    def _look(self, request: ApiRequest) -> None:
        # The cloud answers in several threads.
        if self._fires is not None and self._fires(request):
            self._pull()

    def _pull(self) -> Running:
        """Start `hold`, once a round."""
        with self._alone:
            if self._hold is None:
                self._hold = self._site.start("hold", "--reason", "drill")
            return self._hold
