"""Worked cases as a running daemon goes through them, look by look: what it shows on /metrics, how it ends, who acts.

What `tests/scenarios` plays in one process and with a clock of its own is here a process with signals, sockets and
threads. Cases of the rhythm are in `test_daemon_rhythm.py`.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from tests.scenarios.registry_file import broken_as
from tests.support.daemon import Daemon, daemon
from tests.support.ec2 import ApiRequest
from tests.support.ec2.lax import ignore_filters
from tests.support.processes import until
from tests.support.site import EAST, WEST, Site, tree
from tests.support.turns import Turns, turns

pytestmark = pytest.mark.timeout(300)  # on a busy machine; most take a few seconds

LISTING, TERMINATE = "DescribeInstances", "TerminateInstances"
HERE = f"{{provider=aws,region={EAST}}}"
OWNED = f"reaperd_owned_instances{HERE}"
TERMINATING = f"reaperd_terminating_instances{HERE}"
LEAKS = f"reaperd_unowned_long_running_instances{HERE}"
OLDEST_LEAK = f"reaperd_unowned_oldest_launch_timestamp_seconds{HERE}"
COMPLETE = "reaperd_last_complete_timestamp_seconds{kind=reconcile}"
REFUSED = "reaperd_passes_total{kind=reconcile,outcome=refused}"
OUTCOMES = (
    "already_gone", "confirmed_gone", "deferred", "denied", "failed", "invalid_id", "protected", "requested", "spared",
    "unknown",
)  # fmt: skip
ENDS = ("complete", "deferred", "error", "refused")
PROMPTLY = 10.0
"""Seconds within which a process that was told to end has ended (rule 25)."""


def terminations(outcome: str) -> str:
    return f"reaperd_terminations_total{{outcome={outcome},provider=aws}}"


def up(region: str) -> str:
    return f"reaperd_scope_up{{kind=reconcile,provider=aws,region={region}}}"


@contextmanager
def in_turns(site: Site, **settings: str) -> Iterator[tuple[Turns, Daemon]]:
    """Run a daemon that begins no look before the test lets it."""
    dotted = {key.replace("__", "."): value for key, value in settings.items()}
    with turns(site) as turn, daemon(site, {"audit.interval": "1h", **dotted}) as running:
        yield turn, running


# ---------------------------------------------------------------- what the metrics show, pass by pass


def test_a01_a_region_that_fails_is_down_and_completes_nothing(site: Site):
    site.tracked()
    with in_turns(site) as (turn, running):
        turn.reconcile(running)
        site.orphan()
        for refusals, code in enumerate(("AuthFailure", "UnauthorizedOperation", "InvalidNextToken"), 1):
            before = running.metrics()[COMPLETE]
            with site.cloud.fault(region=WEST, action=LISTING, code=code):
                turn.reconcile(running)
            after, told = running.metrics(), running.events("scope_incomplete")[-1]
            assert (after[REFUSED], after[COMPLETE]) == (refusals, before)
            assert (after[up(EAST)], after[up(WEST)]) == (1, 0)
            assert (told["scope"], told["error_code"]) == (f"aws/{WEST}", code)

    assert site.mutations() == []


def test_a02_and_a04_every_page_and_every_row_is_counted(site: Site):
    names = [f"{number:03d}" for number in range(1, 251)]
    with closing(sqlite3.connect(site.registry)) as registry, registry:
        registry.executemany(
            "INSERT INTO workers (worker_id, provider, region, instance_id, state, created_at, updated_at)"
            " VALUES (?, 'aws', ?, ?, 'running', '2026-01-01T00:00:00Z', '2026-01-01T00:00:00Z')",
            [(f"w-{name}", EAST, f"i-{name}") for name in names],
        )
    for name in [*names[:150], "999"]:
        site.orphan(worker=f"w-{name}", instance_id=f"i-{name}")
    # An empty page with a token is not the last one.
    site.cloud.set_pages(EAST, [1, 0, 2])
    with in_turns(site) as (turn, running):
        turn.reconcile(running)
        metrics = running.metrics()

    assert metrics["reaperd_registry_workers{state=running}"] == 250
    assert metrics[OWNED] == 151
    assert metrics[f"reaperd_missing_workers{HERE}"] == 100
    assert site.accepted() == ["i-999"]


def test_a05_a_registry_that_is_none_is_down_and_makes_the_daemon_unready(site: Site):
    machine = site.tracked()
    whole = site.registry.read_bytes()
    with in_turns(site) as (turn, running):
        turn.reconcile(running)
        before = running.metrics()
        for how in ("absent", "zero bytes", "no workers table"):
            broken_as(site.registry, how)
            found = tree(site.registry.parent)
            turn.reconcile(running)
            after = running.metrics()
            assert (running.last()["reason"], running.ready()) == ("registry_unusable", False), how
            assert (after["reaperd_registry_up"], after[COMPLETE]) == (0, before[COMPLETE]), how
            assert tree(site.registry.parent) == found, how
            site.registry.write_bytes(whole)
        turn.reconcile(running)
        assert running.metrics()["reaperd_registry_up"] == 1
        assert running.ready()

    assert before["reaperd_registry_up"] == 1
    assert site.cloud.state_of(machine) == "running"


def test_a12_only_machines_with_exactly_our_tag_are_counted(site: Site):
    machine = site.orphan()
    for owner in ("prod-canary", "eu-prod", "", "staging"):
        site.cloud.add_instance(region=EAST, owner=owner, worker=f"w-{owner}")
    ignore_filters(site.cloud, [EAST, WEST])
    with in_turns(site) as (turn, running):
        turn.reconcile(running)
        metrics = running.metrics()

    assert (metrics[OWNED], metrics[f"reaperd_orphan_instances{HERE}"]) == (1, 1)
    assert site.accepted() == [machine]


def test_a15_what_is_ending_is_counted_no_more(site: Site):
    site.cloud.configure(shutdown_s=None)
    for state in ("shutting-down", "terminated", "stopped", "running"):
        site.orphan(worker=f"w-{state}", state=state)
    with in_turns(site) as (turn, running):
        owned = []
        for _ in range(2):
            turn.reconcile(running)
            owned.append(running.metrics()[OWNED])
        metrics = running.metrics()

    assert owned == [2, 0]
    assert metrics[terminations("requested")] == 2
    assert len(site.cloud.terminate_requests()) == 2


def test_a16_a_protected_machine_is_counted_apart_from_those_that_end(site: Site):
    site.orphan(az="us-east-1a")
    guarded = site.orphan(worker="w-2", az="us-east-1a", protected=True)
    site.orphan(worker="w-3", az="us-east-1b")
    with in_turns(site) as (turn, running):
        for _ in range(3):
            turn.reconcile(running)
        metrics = running.metrics()

    assert metrics[terminations("requested")] == 2
    assert metrics[terminations("protected")] == 1
    assert metrics["reaperd_held_instances{reason=protected}"] == 1
    assert {action for action, _ in site.mutations()} == {TERMINATE}
    assert site.cloud.state_of(guarded) == "running"


def test_a19_an_end_is_counted_when_a_complete_look_does_not_show_the_machine(site: Site):
    machine = site.orphan()
    site.cloud.fault("ignored", action=TERMINATE)
    with in_turns(site) as (turn, running):
        turn.reconcile(running)
        turn.reconcile(running)
        accepted = running.metrics()
        with site.cloud.fault(region=EAST, action=LISTING, code="AuthFailure"):
            turn.reconcile(running)
        unseen = running.metrics()
        site.cloud.remove(machine)
        turn.reconcile(running)
        gone = running.metrics()

    ended = terminations("confirmed_gone")
    assert [page[ended] for page in (accepted, unseen, gone)] == [0, 0, 1]
    assert [page[TERMINATING] for page in (accepted, unseen, gone)] == [1, 1, 0]
    assert len(site.cloud.terminate_requests(machine)) == 1


def test_a20_a_rehearsal_counts_what_it_would_do_and_nothing_that_was_done(site: Site):
    site.configure(mode="dry-run")
    site.orphan()
    site.orphan(worker="w-2")
    site.tracked()
    found = tree(site.registry.parent)
    with in_turns(site) as (turn, running):
        turn.reconcile(running)
        turn.reconcile(running)
        metrics = running.metrics()

    assert metrics[f"reaperd_would_terminate_instances{HERE}"] == 2
    assert {metrics[terminations(outcome)] for outcome in OUTCOMES} == {0}
    assert site.mutations() == []
    assert tree(site.registry.parent) == found


# ---------------------------------------------------------------- what the metrics show, sweep by sweep


def test_a24_leaks_are_counted_sweep_after_sweep_and_left_alone(site: Site):
    site.tracked(age_s=108_000)
    site.cloud.add_instance(region=EAST)
    site.cloud.add_instance(region=EAST, age_s=25_200)
    site.cloud.add_instance(region=EAST, age_s=25_200, name="Packer Builder")
    with in_turns(site, audit__interval="1s", audit__max_age="6h") as (turn, running):
        turn.reconcile(running)
        leaks = []
        for _ in range(3):
            turn.audit(running)
            leaks.append(running.metrics()[LEAKS])

    assert leaks == [2, 2, 2]
    assert site.mutations() == []


def test_a26_counters_are_there_before_they_count_and_gauges_end_with_what_they_tell_of(site: Site):
    machine = site.cloud.add_instance(region=EAST, age_s=25_200)
    launched = time.time() - 25_200
    with in_turns(site, audit__interval="1s", audit__max_age="6h") as (turn, running):
        first = running.metrics()
        turn.reconcile(running)
        turn.audit(running)
        second = running.metrics()
        site.cloud.remove(machine)
        turn.audit(running)
        third, text = running.metrics(), running.get("/metrics")[1]

    assert {key: first[key] for key in first if key.startswith(("reaperd_terminations_", "reaperd_passes_"))} == {
        **{terminations(outcome): 0 for outcome in OUTCOMES},
        **{f"reaperd_passes_total{{kind={kind},outcome={end}}}": 0 for kind in ("audit", "reconcile") for end in ENDS},
    }
    assert counters(first) == counters(second) == counters(third)
    assert LEAKS not in first
    assert OLDEST_LEAK not in first
    assert second[LEAKS] == 1
    assert abs(second[OLDEST_LEAK] - launched) < 2
    assert third[LEAKS] == 0
    assert OLDEST_LEAK not in third
    assert machine not in text


def counters(page: dict[str, float]) -> set[str]:
    return {key for key in page if key.startswith("reaperd_") and "_total" in key}


# ---------------------------------------------------------------- A29: stopped in the middle of its terminations


def test_a29_a_stop_during_a_request_records_it_and_begins_no_other(site: Site):
    machines = [site.orphan(worker=f"w-{number}", age_s=7200 - number) for number in range(3)]
    site.cloud.fault(action=TERMINATE, delay_s=3)
    pids: list[int] = []
    recorded: list[list[str]] = []

    def stop(_request: ApiRequest) -> None:
        recorded.append([instance_id for instance_id, _, closed_as in site.intents() if closed_as is None])
        if len(recorded) == 1:
            os.kill(pids[0], signal.SIGTERM)

    site.cloud.on(TERMINATE, stop)
    with daemon(site) as running:
        pids.append(running.pid)
        until(lambda: recorded)
        signalled = time.monotonic()
        result = running.running.wait()
        took = time.monotonic() - signalled

    assert (result.code, took < PROMPTLY) == (0, True)
    assert requests(site, machines) == [1, 0, 0]
    assert [intent[:2] for intent in site.intents()] == [(machines[0], "requested")]
    assert site.rows("PRAGMA integrity_check") == [("ok",)]
    site.cloud.clear_faults()
    with daemon(site) as running:
        until(lambda: len(site.accepted()) == 3)
        running.after_passes(1)
    assert site.accepted() == sorted(machines)
    assert requests(site, machines) == [1, 1, 1]
    # Each request was on the disk when it came in.
    assert [names[-1] for names in recorded] == machines
    assert site.rows("PRAGMA integrity_check") == [("ok",)]


def requests(site: Site, machines: list[str]) -> list[int]:
    """Return how often the end of each was asked for."""
    return [len(site.cloud.terminate_requests(machine)) for machine in machines]


# ---------------------------------------------------------------- A30: two replicas


def test_a30_of_two_that_start_together_one_acts_and_the_other_stands_by_ready(site: Site):
    keys = ["AKIAFIRSTFIRSTFIFAKE", "AKIASECONDSECONDFAKE"]
    machine = site.orphan()
    leak = site.cloud.add_instance(region=EAST, age_s=25_200)
    settings = {"audit.interval": "1s", "audit.max_age": "6h"}
    with (
        daemon(site, settings, env={"AWS_ACCESS_KEY_ID": keys[0]}) as one,
        daemon(site, settings, env={"AWS_ACCESS_KEY_ID": keys[1]}) as other,
    ):
        until(lambda: site.accepted() == [machine])
        for running in (one, other):
            running.after_passes(2)
            running.until(lambda running=running: running.metrics().get(LEAKS) == 1)
        pages = {running.metrics()["reaperd_leader"]: running for running in (one, other)}
        leader, standby = pages[1], pages[0]
        last = standby.last()

        assert (last["outcome"], last["reason"]) == ("refused", "not_leader")
        assert standby.get("/readyz") == (200, "standing by\n")
        assert standby.status()["holder"]["pid"] == leader.pid
        assert standby.metrics()["reaperd_refusals_total{reason=not_leader}"] >= 2

    changed = {exchange.request.access_key for exchange in site.cloud.requests() if exchange.request.mutating}
    assert changed == {keys[[one, other].index(leader)]}
    assert len(site.cloud.terminate_requests()) == 1
    assert site.cloud.state_of(leak) == "running"
