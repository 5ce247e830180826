"""The whole way: a machine nobody owns, a running daemon, Prometheus with our rules, Alertmanager, a webhook."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from alerts.rulebook import Form, rulebook
from tests.e2e import alertmanager, prometheus
from tests.support.daemon import daemon
from tests.support.receiver import Receiver
from tests.support.site import EAST, Site

pytestmark = pytest.mark.timeout(300)

NAME = "ReaperdUnownedLongRunning"
LEAKS = f'reaperd_unowned_long_running_instances{{region="{EAST}"}}'
SETTINGS = {"audit.interval": "1s", "audit.max_age": "1h"}


def statuses(hook: alertmanager.Alertmanager) -> list[str]:
    """Return what the webhook was told of leaks in that region, repeats left out."""
    told = [status for status, labels in hook.told() if (labels["alertname"], labels.get("region")) == (NAME, EAST)]
    return [status for number, status in enumerate(told) if number == 0 or told[number - 1] != status]


def test_a_leak_fires_survives_a_failing_region_and_a_restart_and_resolves_with_the_machine(site: Site, tmp_path: Path):
    leak = site.cloud.add_instance(region=EAST, age_s=90_000)
    ours, theirs = tmp_path / "prometheus", tmp_path / "alertmanager"
    ours.mkdir()
    theirs.mkdir()
    rules = prometheus.hurried(rulebook(Form.PROMETHEUS))
    with Receiver() as receiver, alertmanager.running(theirs, receiver) as hook, daemon(site, SETTINGS) as first:
        host, port = first.address
        target = {"rules": rules, "alertmanager": hook.url.removeprefix("http://")}
        with prometheus.running(ours, f"{host}:{port}", **target) as metrics:
            alertmanager.until(lambda: statuses(hook) == ["firing"], 60)

            failing = site.cloud.fault(region=EAST, code="AuthFailure")
            first.until(lambda: first.metrics()[f"reaperd_scope_up{{kind=audit,provider=aws,region={EAST}}}"] == 0)
            first.after_passes(3)
            assert float(metrics.series(LEAKS)[0]["value"][1]) == 1
            failing.remove()

            first.stop(signal.SIGTERM)
            with daemon(site, {**SETTINGS, "http.listen": f"{host}:{port}"}) as second:
                second.after_passes(4)
                assert statuses(hook) == ["firing"]

                site.cloud.remove(leak)
                alertmanager.until(lambda: statuses(hook) == ["firing", "resolved"], 60)
    assert site.mutations() == []
