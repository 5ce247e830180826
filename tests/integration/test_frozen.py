"""A daemon that is frozen in the middle of a pass for longer than its lease, and wakes up."""

from __future__ import annotations

import signal
from datetime import UTC, datetime
from typing import Any

import pytest

from reaperd.ledger.connection import time_of
from tests.support.daemon import daemon
from tests.support.processes import until
from tests.support.site import Site

pytestmark = pytest.mark.timeout(300)  # on a busy machine; most take a few seconds

LISTING, TERMINATE = "DescribeInstances", "TerminateInstances"
WISHES = {"lease.ttl": "2s", "reconcile.breaker.max_fraction": "1.0"}
FROZEN, OTHER = "AKIAFROZEN", "AKIAOTHER"
"""Access keys, so that the cloud can tell who asked."""


def asked_by(site: Site, key: str) -> list[str]:
    """Return the machines whose end was asked for with an access key, in order."""
    requests = [exchange.request for exchange in site.cloud.terminate_requests()]
    return [request.params["InstanceId.1"] for request in requests if request.access_key == key]


def started(site: Site, key: str) -> Any:
    return daemon(site, WISHES, env={"AWS_ACCESS_KEY_ID": key})


def has_run_out(site: Site) -> bool:
    """Say whether the lease has."""
    ((expires_at,),) = site.rows("SELECT expires_at FROM lease")
    return time_of(expires_at) < datetime.now(UTC)


def test_frozen_in_the_middle_of_a_pass_it_asks_for_nothing_when_it_wakes(site: Site):
    machines = [site.orphan(worker=f"w-{number}", age_s=9000 - number) for number in range(3)]
    site.cloud.fault(action=TERMINATE, delay_s=1, times=1)
    with started(site, FROZEN) as frozen:
        until(lambda: site.cloud.terminate_requests())
        site.freeze(frozen.running)
        assert asked_by(site, FROZEN) == machines[:1]
        with started(site, OTHER) as other:
            until(lambda: len(site.accepted()) == 3)
            assert asked_by(site, OTHER) == machines[1:]

            frozen.running.kill(signal.SIGCONT)
            frozen.until(lambda: frozen.events("standing_by"))
            frozen.after_passes(2)

            assert asked_by(site, FROZEN) == machines[:1]
            assert [event["reason"] for event in frozen.passes()][-2:] == ["not_leader", "not_leader"]
            assert other.metrics()["reaperd_leader"] == 1

    assert site.accepted() == sorted(machines)
    assert len(site.cloud.terminate_requests()) == 3


def test_frozen_while_it_lists_it_acts_on_nothing_that_it_saw_before(site: Site):
    machine = site.orphan()
    site.cloud.fault(action=LISTING, delay_s=1, times=1)
    with started(site, FROZEN) as frozen:
        until(lambda: site.cloud.requests(LISTING))
        site.freeze(frozen.running)
        with started(site, OTHER) as other:
            until(lambda: asked_by(site, OTHER) == [machine])
            frozen.running.kill(signal.SIGCONT)
            frozen.after_passes(2)
            other.after_passes(1)

    assert asked_by(site, FROZEN) == []
    assert site.accepted() == [machine]


def test_frozen_alone_its_pass_ends_and_the_next_one_acts_under_a_new_lease(site: Site):
    machines = [site.orphan(worker=f"w-{number}", age_s=9000 - number) for number in range(3)]
    site.cloud.fault(action=TERMINATE, delay_s=1, times=1)
    with started(site, FROZEN) as frozen:
        until(lambda: site.cloud.terminate_requests())
        site.freeze(frozen.running)
        until(lambda: has_run_out(site))
        frozen.running.kill(signal.SIGCONT)
        until(lambda: site.accepted() == sorted(machines))

    passes = site.rows("SELECT pass_id, generation, instance_id FROM intents ORDER BY intent_id")
    assert [machine for _, _, machine in passes] == machines
    first, *later = passes
    assert {generation > first[1] and pass_id != first[0] for pass_id, generation, _ in later} == {True}
