"""The daemon as a process: it keeps its rhythm, tells the truth about itself, and ends well."""

from __future__ import annotations

import json
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.daemon import daemon, notes
from tests.support.processes import until
from tests.support.site import EAST, WEST, Site

pytestmark = pytest.mark.timeout(300)  # on a busy machine; most take a few seconds

LISTING, TERMINATE = "DescribeInstances", "TerminateInstances"
PROMPTLY = 10.0
"""Seconds within which a process that was told to end has ended (rule 25)."""


def test_orphans_go_and_tracked_machines_stay_pass_after_pass(site: Site):
    first, kept = site.orphan(), site.tracked(WEST)
    with daemon(site) as running:
        until(lambda: site.accepted() == [first])
        second = site.orphan(WEST, worker="w-late")
        until(lambda: site.accepted() == sorted([first, second]))
        running.after_passes(2)

    assert site.accepted() == sorted([first, second])
    assert site.cloud.state_of(kept) == "running"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_when_it_is_asked_to(site: Site, number: int):
    with daemon(site) as running:
        running.after_passes(1)
        result, took = running.stop(number)

    assert (result.code, result.out) == (0, "")
    assert took < PROMPTLY
    assert result.events[-1]["event"] == "stopped"


def test_a_hung_listing_does_not_keep_it_from_ending(site: Site):
    site.cloud.fault("hang")
    with daemon(site) as running:
        until(lambda: site.cloud.requests())
        result, took = running.stop(signal.SIGTERM)

    assert result.code == 0
    assert took < PROMPTLY


def test_a_stop_during_a_hung_request_ends_in_time_and_the_request_counts_as_sent(site: Site):
    machine = site.orphan()
    site.cloud.fault("hang", action=TERMINATE)
    with daemon(site) as running:
        until(lambda: site.cloud.requests(TERMINATE))
        result, took = running.stop(signal.SIGTERM)

    assert result.code == 0
    assert took < PROMPTLY
    assert [intent[:2] for intent in site.intents()] == [(machine, "unknown")]


# ---------------------------------------------------------------- the brake


def test_the_brake_and_its_end_are_honoured_within_one_pass(site: Site):
    with daemon(site) as running:
        running.after_passes(1)
        assert site.run("hold", "--reason", "an incident").code == 0
        machine = site.orphan()
        running.after_passes(3)
        assert site.accepted() == []
        assert running.metrics()["reaperd_reap_hold"] == 1
        assert running.status()["brake"]["reason"] == "an incident"

        assert site.run("resume").code == 0
        running.after_passes(2)
        assert site.accepted() == [machine]
        assert running.metrics()["reaperd_reap_hold"] == 0


def test_an_approval_is_honoured_within_one_pass(site: Site):
    machines = [site.orphan(worker=f"w-{number}") for number in range(6)]
    with daemon(site) as running:
        running.after_passes(2)
        digest = running.status()["plan_digest"]
        assert site.accepted() == []
        assert running.metrics()["reaperd_breaker_open"] == 1

        assert site.run("approve", digest, "--yes").code == 0
        until(lambda: site.accepted() == sorted(machines))
        running.after_passes(2)
        assert running.metrics()["reaperd_breaker_open"] == 0


# ---------------------------------------------------------------- starts that fail


def test_a_bad_configuration_ends_it_with_78(site: Site):
    with daemon(site, {"reconcile.interval": "soon"}) as running:
        result = running.running.wait()

    assert result.code == 78
    assert "reconcile.interval" in result.err


def test_a_ledger_that_cannot_be_opened_ends_it_with_1(site: Site):
    site.ledger_path.mkdir(parents=True)
    with daemon(site) as running:
        result = running.running.wait()

    assert result.code == 1
    assert str(site.ledger_path) in result.err


def test_a_port_that_is_taken_ends_it_with_1_and_nothing_was_started(site: Site):
    site.orphan()
    with daemon(site) as first:
        first.after_passes(1)
        host, port = first.address
        with daemon(site, {"http.listen": f"{host}:{port}"}) as second:
            result = second.running.wait()

    assert result.code == 1
    assert "http.listen" in result.err


def test_a_registry_that_is_not_there_keeps_it_up_and_unready(site: Site):
    machine = site.orphan()
    site.registry.rename(site.registry.with_suffix(".away"))
    with daemon(site) as running:
        running.after_passes(2)
        assert running.healthy()
        assert not running.ready()
        assert running.metrics()["reaperd_registry_up"] == 0
        site.registry.with_suffix(".away").rename(site.registry)
        running.until(running.ready)
        until(lambda: site.accepted() == [machine])


# ---------------------------------------------------------------- reload


def test_a_reload_takes_over_what_changed(site: Site):
    site.configure(mode="dry-run")
    machine = site.orphan()
    with daemon(site) as running:
        running.after_passes(2)
        assert site.accepted() == []
        site.configure(mode="enforce")
        running.running.kill(signal.SIGHUP)
        until(lambda: site.accepted() == [machine])
        running.until(lambda: running.events("config_reloaded"))
        metrics = running.metrics()

    assert metrics["reaperd_config_last_reload_successful"] == 1
    assert metrics["reaperd_mode{mode=enforce}"] == 1
    assert metrics["reaperd_listing_parser{parser=lxml}"] == 1


@pytest.mark.parametrize(
    ("broken", "key"),
    [
        ('deployment = "other"', "deployment"),
        ('state_dir = "/elsewhere"', "state_dir"),
        ("nonsense = 1", "nonsense"),
        ("this is no TOML", ""),
    ],
)
def test_a_reload_that_cannot_be_taken_over_keeps_the_old_settings_and_names_the_key(site: Site, broken: str, key: str):
    machine = site.orphan()
    with daemon(site) as running:
        until(lambda: site.accepted() == [machine])
        before = site.config.read_text()
        name = broken.partition(" ")[0]
        site.config.write_text("\n".join([broken, *(x for x in before.splitlines() if not x.startswith(name))]))
        running.running.kill(signal.SIGHUP)
        running.until(lambda: running.events("config_rejected"))
        second = site.orphan(worker="w-after")
        until(lambda: second in site.accepted())
        metrics = running.metrics()

    assert running.events("config_rejected")[0]["key"] == key
    assert metrics["reaperd_config_last_reload_successful"] == 0


# ---------------------------------------------------------------- the service manager


def test_the_service_manager_hears_ready_the_outcome_the_reload_and_the_end(site: Site, tmp_path: Path):
    with notes(tmp_path) as heard, daemon(site, env={"NOTIFY_SOCKET": str(heard.path)}) as running:
        until(lambda: heard.said("READY=1"))
        running.after_passes(1)
        until(lambda: heard.said("STATUS=enforce: last pass complete"))
        running.running.kill(signal.SIGHUP)
        until(lambda: heard.said("RELOADING=1") and len(heard.said("READY=1")) > 1)
        running.stop(signal.SIGTERM)
        assert heard.said("STOPPING=1")
        assert not heard.said("WATCHDOG=1")


def test_it_is_ready_for_the_manager_before_any_cloud_or_registry_answered(site: Site, tmp_path: Path):
    site.cloud.fault("hang")
    site.registry.unlink()
    with notes(tmp_path) as heard, daemon(site, env={"NOTIFY_SOCKET": str(heard.path)}):
        until(lambda: heard.said("READY=1"))


# ---------------------------------------------------------------- two of them


def test_the_one_that_stands_by_takes_over_from_one_that_was_killed(site: Site):
    lease = 3.0
    with daemon(site, {"lease.ttl": f"{lease:.0f}s"}) as first:
        first.after_passes(1)
        with daemon(site, {"lease.ttl": f"{lease:.0f}s"}) as second:
            second.after_passes(1)
            first.running.kill()
            killed_at = time.monotonic()
            machine = site.orphan()
            second.until(lambda: second.events("lease_taken"))
            assert time.monotonic() - killed_at < lease
            until(lambda: site.accepted() == [machine])


def test_the_lease_is_given_back_on_a_clean_end(site: Site):
    with daemon(site, {"lease.ttl": "5m"}) as first:
        first.after_passes(1)
        first.stop(signal.SIGTERM)
    with closing(sqlite3.connect(site.ledger_path)) as connection:
        (expires_at,) = connection.execute("SELECT expires_at FROM lease").fetchone()

    assert expires_at <= time.strftime("%Y-%m-%dT%H:%M:%S.999999Z", time.gmtime())


# ---------------------------------------------------------------- what it tells


def test_status_and_health_ask_the_running_daemon(site: Site):
    site.tracked()
    with daemon(site) as running:
        running.after_passes(1)
        told = site.run("status", "--url", running.url)
        as_json = site.run("status", "--url", running.url, "--format", "json")
        lives = site.run("health", "--url", running.url)
        works = site.run("health", "--ready", "--url", running.url)
        url = running.url

    assert told.code == 0
    assert "prod: ENFORCING" in told.out
    assert max(map(len, told.out.splitlines())) <= 80
    assert json.loads(as_json.out)["last"]["reconcile"]["outcome"] == "complete"
    assert (lives.code, works.code) == (0, 0)
    nobody = site.run("health", "--url", url)
    assert nobody.code == 1
    assert "no daemon answers" in nobody.err


def test_times_survive_a_restart(site: Site):
    key = "reaperd_last_complete_timestamp_seconds{kind=reconcile}"
    with daemon(site) as first:
        first.after_passes(1)
        before = first.metrics()[key]
        first.stop(signal.SIGTERM)
    site.cloud.fault(region=EAST, code="AuthFailure")
    with daemon(site) as second:
        second.after_passes(1)
        after = second.metrics()

    assert abs(after[key] - before) < 60
    assert after["reaperd_scope_up{kind=reconcile,provider=aws,region=us-east-1}"] == 0


# ---------------------------------------------------------------- what is taken away from under it


def test_a_ledger_that_is_deleted_under_it_takes_no_brake_off_and_is_told(site: Site):
    with daemon(site) as running:
        running.after_passes(1)
        assert site.run("hold", "--reason", "an incident").code == 0
        site.orphan()
        running.after_passes(2)
        for file in site.state.glob("ledger.db*"):
            file.unlink()
        running.until(lambda: running.last().get("reason") == "ledger_unusable")
        running.after_passes(3)
        ready = running.ready()

    assert site.mutations() == []
    assert not ready
    assert not site.ledger_path.exists()


def test_a_ledger_that_is_replaced_under_two_of_them_makes_neither_act(site: Site):
    with daemon(site) as first, daemon(site) as second:
        first.after_passes(1)
        second.after_passes(1)
        for file in site.state.glob("ledger.db*"):
            file.unlink()
        with site.ledger():
            pass
        site.orphan()
        for running in (first, second):
            running.until(lambda running=running: running.last().get("reason") == "ledger_unusable")
            running.after_passes(2)

    assert site.mutations() == []


def test_nothing_is_sent_any_more_once_a_reload_to_a_rehearsal_is_told(site: Site):
    for number in range(4):
        site.orphan(worker=f"w-{number}", age_s=7200 - number)
    site.cloud.fault(action=TERMINATE, delay_s=1)
    with daemon(site, {"reconcile.breaker.max_fraction": "1.0", "audit.interval": "1h"}) as running:
        until(lambda: site.cloud.requests(TERMINATE))
        site.configure(mode="dry-run")
        running.running.kill(signal.SIGHUP)
        running.until(lambda: running.events("config_reloaded"))
        sent = len(site.cloud.terminate_requests())
        running.after_passes(2)

    assert sent < 4
    assert len(site.cloud.terminate_requests()) == sent
