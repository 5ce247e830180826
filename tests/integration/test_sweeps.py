"""A running daemon's sweeps: what it remembers of machines that are not ours, and what a failing region costs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.daemon import Daemon, daemon
from tests.support.site import EAST, WEST, Site

pytestmark = pytest.mark.timeout(300)

SWEEPS = {"audit.interval": "1s", "audit.max_age": "6s"}


def leaks(running: Daemon, region: str = EAST) -> float | None:
    return running.metrics().get(f"reaperd_unowned_long_running_instances{{provider=aws,region={region}}}")


def sweeps(running: Daemon) -> list[dict[str, Any]]:
    return running.events("sweep_finished")


def after_sweeps(running: Daemon, more: int) -> None:
    wanted = len(sweeps(running)) + more
    running.until(lambda: len(sweeps(running)) >= wanted)


def restart(site: Site, instance_id: str) -> None:
    """Stop and start a machine as a schedule does: it looks as if it were new, in every field."""
    now = site.cloud.now()
    site.cloud.change(instance_id, launched_at=now, attached_at=now)


def test_a_machine_that_is_restarted_all_the_time_becomes_a_leak_and_stays_one(site: Site):
    nightly = site.cloud.add_instance(name="build")

    with daemon(site, SWEEPS) as running:

        def is_a_leak() -> bool:
            restart(site, nightly)
            return leaks(running) == 1

        running.until(is_a_leak)
        restart(site, nightly)
        after_sweeps(running, 2)
        assert leaks(running) == 1

    restart(site, nightly)
    with daemon(site, SWEEPS) as running:
        after_sweeps(running, 1)
        assert leaks(running) == 1
        assert [event["name"] for event in running.events("condition_holds")][:1] == ["build"]

        site.cloud.remove(nightly)
        running.until(lambda: leaks(running) == 0)

    assert site.rows("SELECT * FROM audited") == []


def test_a_region_that_fails_keeps_its_gauges_and_its_memory_and_the_others_go_on(site: Site):
    lost = site.cloud.add_instance(region=WEST, age_s=60)
    seen = site.cloud.add_instance(region=EAST, age_s=60)

    with daemon(site, SWEEPS) as running:
        running.until(lambda: leaks(running, EAST) == leaks(running, WEST) == 1)
        site.cloud.fault(region=WEST, action="DescribeInstances", code="UnauthorizedOperation")
        site.cloud.remove(lost)
        site.cloud.remove(seen)

        running.until(lambda: leaks(running, EAST) == 0)
        after_sweeps(running, 2)
        assert leaks(running, WEST) == 1
        assert running.metrics()[f"reaperd_scope_up{{kind=audit,provider=aws,region={WEST}}}"] == 0
        assert running.events("scope_incomplete")[-1]["scope"] == f"aws/{WEST}"
        assert site.rows("SELECT region, instance_id FROM audited") == [(WEST, lost)]

        site.cloud.clear_faults()
        running.until(lambda: leaks(running, WEST) == 0)


def test_a_machine_that_does_not_say_when_it_started_is_a_leak_once_it_was_seen_for_long_enough(site: Site):
    site.cloud.add_instance(launched_at=None)

    with daemon(site, SWEEPS) as running:
        after_sweeps(running, 1)
        assert (sweeps(running)[0]["unknown_age"], sweeps(running)[0]["leaks"]) == (1, 0)
        running.until(lambda: leaks(running) == 1)


def test_a_stopped_leak_is_counted_for_itself(site: Site):
    site.cloud.add_instance(age_s=60, state="stopped")

    with daemon(site, SWEEPS) as running:
        after_sweeps(running, 1)
        metrics = running.metrics()

    here = f"{{provider=aws,region={EAST}}}"
    assert metrics[f"reaperd_unowned_long_running_instances{here}"] == 0
    assert metrics[f"reaperd_unowned_stopped_instances{here}"] == 1
