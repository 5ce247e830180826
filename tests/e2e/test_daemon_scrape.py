"""A running daemon, its live page before promtool, and a real Prometheus that scrapes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.alertmanager import until
from tests.e2e.prometheus import run, running
from tests.support.daemon import daemon
from tests.support.site import EAST, Site

pytestmark = pytest.mark.timeout(300)

SETTINGS = {"audit.interval": "1s", "audit.max_age": "1h"}


def test_promtool_finds_nothing_on_the_page_of_a_running_daemon(site: Site):
    site.tracked()
    site.orphan()
    site.orphan(worker="w-protected", tags={"reaperd:protect": "yes"})
    site.cloud.add_instance(region=EAST, age_s=90_000, name="somebody's")
    with daemon(site, SETTINGS) as process:
        first = process.get("/metrics")[1]
        process.until(lambda: site.accepted())
        process.after_passes(2)
        later = process.get("/metrics")[1]

    for page in (first, later):
        assert run("promtool", "check", "metrics", given=page.encode()) == ""


def test_a_real_prometheus_scrapes_a_running_daemon_and_its_watchdog_alert_fires(site: Site, tmp_path: Path):
    site.tracked()
    site.cloud.add_instance(region=EAST, age_s=90_000, name="somebody's")
    with daemon(site, SETTINGS) as process:
        host, port = process.address
        with running(tmp_path, f"{host}:{port}") as prometheus:
            until(lambda: prometheus.series("up == 1"), 60)
            until(lambda: prometheus.series('reaperd_last_complete_timestamp_seconds{kind="reconcile"}'), 60)
            until(lambda: prometheus.series("reaperd_unowned_long_running_instances == 1"), 60)
            until(lambda: prometheus.series('ALERTS{alertname="ReaperdWatchdog",alertstate="firing"}'), 60)
            (owned,) = prometheus.series(f'reaperd_owned_instances{{region="{EAST}"}}')

    assert owned["value"][1] == "1"
