"""The daemon's rhythm: slow clouds, hung calls, a wedged pass, a process that could not run for a while."""

from __future__ import annotations

import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.daemon import Daemon, daemon, notes
from tests.support.processes import until
from tests.support.site import EAST, Site

pytestmark = pytest.mark.timeout(300)  # on a busy machine; most take a few seconds

LISTING = "DescribeInstances"
WATCHDOG = {"WATCHDOG_USEC": "2000000"}
"""Microseconds: fed four times in two seconds."""
COMPLETE = "reaperd_last_complete_timestamp_seconds{kind=reconcile}"


@contextmanager
def watched(site: Site, folder: Path, settings: dict[str, str]) -> Iterator[tuple[Daemon, Path]]:
    """Run a daemon whose service manager waits for its watchdog; give it and the manager's ear."""
    with notes(folder) as heard, daemon(site, settings, env={"NOTIFY_SOCKET": str(heard.path), **WATCHDOG}) as running:
        until(lambda: heard.said("READY=1"))
        yield running, heard


def longest_silence(fed: list[float], since: float, until_: float) -> float:
    inside = [since, *(at for at in fed if since <= at <= until_), until_]
    return max(later - sooner for sooner, later in pairwise(inside))


def test_a_slow_cloud_delays_neither_a_probe_nor_the_watchdog(site: Site, tmp_path: Path):
    site.cloud.fault(action=LISTING, delay_s=4)
    with watched(site, tmp_path, {"audit.interval": "1h"}) as (running, heard):
        until(lambda: site.cloud.requests(LISTING))
        began = time.monotonic()
        answers = []
        while time.monotonic() - began < 3.5:
            asked = time.monotonic()
            code, _ = running.get("/healthz", timeout=5)
            answers.append((code, time.monotonic() - asked))
            heard.read()
            time.sleep(0.1)
        fed = heard.said("WATCHDOG=1")
        assert not running.passes()

    assert {code for code, _ in answers} == {200}
    assert max(took for _, took in answers) < 1
    assert longest_silence(fed, began, began + 3.5) < 1.5


def test_a_cloud_that_throttles_everything_changes_nothing_about_its_health(site: Site, tmp_path: Path):
    with watched(site, tmp_path, {"audit.interval": "1h"}) as (running, heard):
        running.after_passes(1)
        before = running.metrics()[COMPLETE]
        site.cloud.fault(code="RequestLimitExceeded")
        running.until(lambda: running.last().get("reason") == "wrong_account")
        fed = len(heard.said("WATCHDOG=1"))
        running.until(lambda: len(heard.said("WATCHDOG=1")) > fed + 2)
        after = running.metrics()

        assert running.healthy()
        assert running.ready()

    assert after[COMPLETE] == before
    assert after["reaperd_scope_up{kind=reconcile,provider=aws,region=us-east-1}"] == 0


def test_a_pass_that_is_wedged_past_twice_its_deadline_is_told_by_the_probe_and_starves_the_watchdog(
    site: Site, tmp_path: Path
):
    settings = {"reconcile.deadline": "1s", "audit.interval": "1h", "lease.ttl": "1h"}
    with watched(site, tmp_path, settings) as (running, heard):
        running.after_passes(1)
        assert running.healthy()
        with closing(sqlite3.connect(site.ledger_path, isolation_level=None)) as other:
            # The ledger's write lock, which is waited for five seconds, and no deadline cuts that short.
            other.execute("BEGIN IMMEDIATE")
            running.until(lambda: not running.healthy())
            code, text = running.get("/healthz")
            heard.read()
            quiet_since = time.monotonic()
            time.sleep(2)
            fed = heard.said("WATCHDOG=1")
            other.execute("ROLLBACK")
            running.until(running.healthy)

    assert (code, text) == (503, text)
    assert "over twice its deadline" in text
    assert [at for at in fed if at > quiet_since] == []


def test_runs_that_fall_due_during_a_slow_one_are_counted_and_one_runs_at_a_time(site: Site):
    rule = site.cloud.fault(action=LISTING, region=EAST, delay_s=3.2)
    with daemon(site, {"audit.interval": "1h"}) as running:
        running.after_passes(2)
        missed = running.metrics()["reaperd_scheduler_missed_runs_total{kind=reconcile}"]
        # The listing of a pass is never begun before the pass before has ended. A sweep's has no filter.
        asked = [exchange.request for exchange in site.cloud.requests(LISTING, region=EAST)]
        listings = [request.at for request in asked if request.filters()]
        rule.remove()
        running.after_passes(2)

    assert missed >= 2
    assert min((later - sooner).total_seconds() for sooner, later in pairwise(listings)) > 3


def test_a_hung_call_ends_at_the_deadline_and_the_next_pass_runs(site: Site):
    machine = site.orphan()
    site.cloud.fault("hang", action=LISTING)
    with daemon(site, {"reconcile.deadline": "2s", "audit.interval": "1h"}) as running:
        until(lambda: site.cloud.requests(LISTING))
        began = time.monotonic()
        running.after_passes(1)
        took = time.monotonic() - began
        site.cloud.clear_faults()
        until(lambda: site.accepted() == [machine])
        first = running.passes()[0]
        metrics = running.metrics()

    assert first["outcome"] == "refused"
    assert first["reason"] == "deadline"
    assert took < 5
    assert metrics["reaperd_passes_total{kind=reconcile,outcome=refused}"] >= 1


def test_a_process_that_could_not_run_for_a_while_catches_up_with_one_run(site: Site):
    with daemon(site, {"reconcile.interval": "4s", "audit.interval": "1h"}) as running:
        running.after_passes(1)
        running.running.kill(signal.SIGSTOP)
        stopped = time.monotonic()
        # Two runs fall due meanwhile, at 4 and 8 seconds; the next one would be that at 12.
        until(lambda: time.monotonic() > stopped + 9)
        running.running.kill(signal.SIGCONT)
        woken = time.monotonic()
        until(lambda: time.monotonic() > woken + 1.5)
        passes = running.passes()

    assert len(passes) == 2


def test_a_process_that_is_frozen_between_intent_and_request_sends_nothing_when_it_wakes(site: Site):
    machine = site.orphan()
    # The adapter's second look is what lies between the two.
    site.cloud.fault(action=LISTING, params={"InstanceId.1": machine}, delay_s=1, times=1)
    settings = {"lease.ttl": "1s", "audit.interval": "1h"}
    with daemon(site, settings) as frozen:
        until(lambda: any(request.request.listed("InstanceId") for request in site.cloud.requests(LISTING)))
        site.freeze(frozen.running)
        with daemon(site, settings) as other:
            other.until(lambda: other.events("lease_taken"))
            time.sleep(1)
            before = len(site.cloud.terminate_requests())
            other.stop(signal.SIGTERM)
        # Nobody leads now but who wakes, and it may act again in its next pass: look at the first after it woke.
        frozen.running.kill(signal.SIGCONT)
        frozen.until(lambda: frozen.events("deferred") or frozen.events("refused"))
        first = (frozen.events("deferred") + frozen.events("refused"))[0]

    assert before == 0
    assert first["reason"] == "not_leader"
    assert site.intents()[0][:2] == (machine, "spared")


def test_a_registry_that_comes_and_goes_is_waited_for(site: Site):
    machine = site.orphan()
    away = site.registry.with_suffix(".away")
    with daemon(site, {"audit.interval": "1h"}) as running:
        until(lambda: site.accepted() == [machine])
        for _ in range(2):
            site.registry.rename(away)
            running.until(lambda: running.last().get("reason") == "registry_unusable")
            away.rename(site.registry)
            running.until(lambda: running.last()["outcome"] == "complete")
        assert running.ready()


def test_credentials_that_change_on_disk_are_read_without_a_restart(site: Site, tmp_path: Path):
    machine = site.orphan()
    file = tmp_path / "credentials"
    file.write_text("[default]\naws_access_key_id = AKIAOLDOLDOLDOLDFAKE\naws_secret_access_key = old\n")
    site.cloud.add_access_key("AKIAOLDOLDOLDOLDFAKE", "999999999999")
    env = {"AWS_SHARED_CREDENTIALS_FILE": str(file)}
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        env[name] = ""
    with daemon(site, {"audit.interval": "1h"}, env=env) as running:
        running.until(lambda: running.last().get("reason") == "wrong_account")
        assert not running.ready()
        file.write_text("[default]\naws_access_key_id = AKIANEWNEWNEWNEWFAKE\naws_secret_access_key = new\n")
        site.cloud.add_access_key("AKIANEWNEWNEWNEWFAKE", site.account)
        until(lambda: site.accepted() == [machine])
        running.until(running.ready)
