"""A running daemon hears what the cloud announces and `explain` tells it; a cloud that does not say fails nothing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.daemon import Daemon, daemon
from tests.support.site import WEST, Site

pytestmark = pytest.mark.timeout(300)

SWEEPS = {"audit.interval": "1s"}
QUESTIONS = ("DescribeSpotInstanceRequests", "DescribeInstanceStatus")


def sweeps(running: Daemon) -> list[dict[str, Any]]:
    return running.events("sweep_finished")


def test_what_a_sweep_heard_of_our_machine_is_told_of_it_after_it_is_gone(site: Site):
    going = site.tracked(spot="one-time")

    with daemon(site, SWEEPS) as running:
        running.until(lambda: bool(running.events("pass_finished")))
        site.cloud.interrupt(going, "instance-terminated-no-capacity")
        site.cloud.set_state(going, "terminated")
        running.until(lambda: any(sweep["events"] == 1 for sweep in sweeps(running)))

    told = site.run("explain", going, "--format", "json").json["machines"]
    assert [(each["instance_id"], each["announced"]["code"]) for each in told] == [
        (going, "instance-terminated-no-capacity")
    ]


def test_a_region_that_does_not_say_what_it_announces_makes_no_sweep_incomplete(site: Site):
    site.cloud.add_instance(region=WEST, spot="one-time", age_s=10 * 24 * 3600)
    for action in QUESTIONS:
        site.cloud.fault(region=WEST, action=action, code="UnauthorizedOperation")

    with daemon(site, SWEEPS) as running:
        running.until(lambda: bool(sweeps(running)))
        metrics = running.metrics()

    assert (sweeps(running)[0]["outcome"], sweeps(running)[0]["unheard"]) == ("complete", len(QUESTIONS))
    assert {event["scope"] for event in running.events("announcements_unheard")} == {f"aws/{WEST}"}
    assert metrics[f"reaperd_unowned_long_running_instances{{provider=aws,region={WEST}}}"] == 1
