"""A running daemon holds its alerts in a real Alertmanager: they fire, and resolve when the machine goes."""

from __future__ import annotations

import pytest

from tests.e2e import alertmanager
from tests.support.daemon import daemon
from tests.support.receiver import Receiver
from tests.support.site import EAST, Site

pytestmark = pytest.mark.skipif(
    alertmanager.program() is None, reason="needs the Debian package prometheus-alertmanager"
)
CONFIG = """
[audit]
interval = "1s"
[alerts]
runbook_url = "https://wiki.example.org/reaperd"
[[alerts.channels]]
type = "alertmanager"
url = "{url}"
"""


@pytest.fixture
def real(tmp_path):
    with Receiver() as receiver, alertmanager.running(tmp_path, receiver) as started:
        yield started


def test_a_leak_fires_once_and_resolves_when_the_machine_goes(site: Site, real):
    site.configure(more=CONFIG.format(url=real.url))
    leak = site.cloud.add_instance(region=EAST, age_s=90_000)
    with daemon(site) as running:
        running.until(lambda: real.told())
        running.after_passes(5)
        assert [status for status, _ in real.told()] == ["firing"]
        (alert,) = real.alerts()
        assert alert["labels"]["instance_id"] == leak
        assert alert["annotations"]["runbook_url"] == "https://wiki.example.org/reaperd#leak"

        site.cloud.remove(leak)
        running.until(lambda: len(real.told()) > 1)

    assert [status for status, _ in real.told()] == ["firing", "resolved"]


def test_what_a_daemon_that_died_held_resolves_by_itself(site: Site, real):
    site.configure(more=CONFIG.format(url=real.url))
    site.orphan(tags={"reaperd:protect": "yes"})
    with daemon(site) as running:
        running.until(lambda: real.told())
        running.running.kill()
        running.running.wait()

    alertmanager.until(lambda: [status for status, _ in real.told()] == ["firing", "resolved"])


def test_that_the_ledger_cannot_be_used_is_held_without_it(site: Site, real):
    site.configure(more=CONFIG.format(url=real.url))
    with daemon(site) as running:
        running.after_passes(1)
        site.state.rename(site.folder / "away")
        site.ledger_path.mkdir(parents=True)

        running.until(lambda: real.told())
        assert real.told()[0][1]["alertname"] == "ReaperdLedgerUnusable"
