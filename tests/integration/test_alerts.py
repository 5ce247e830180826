"""A running daemon tells people: once, whatever dies between, and nobody waits for a receiver that does not answer."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.daemon import Daemon, daemon
from tests.support.processes import Result
from tests.support.receiver import Receiver
from tests.support.site import EAST, WEST, Site

pytestmark = pytest.mark.timeout(300)

SWEEPS = '[audit]\ninterval = "1s"\n'
LISTING, TERMINATE = "DescribeInstances", "TerminateInstances"
OLD = 90_000
"""Seconds: longer than `audit.max_age`."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as started:
        yield started


def channel(receiver: Receiver, name: str = "hook", **keys: Any) -> str:
    """Return the table of a webhook."""
    lines = {"type": "webhook", "name": name, "url": f"{receiver.url}/{name}", **keys}
    return "".join(["[[alerts.channels]]\n", *(f"{key} = {json.dumps(value)}\n" for key, value in lines.items())])


def told(receiver: Receiver) -> list[tuple[str, str]]:
    """Return kind and subject of every event, in the order in which they came."""
    events = [json.loads(request.body) for request in list(receiver.requests)]
    return [(event["type"].removeprefix("io.reaperd.alert."), event["subject"]) for event in events]


def leak(site: Site, region: str = EAST, **fields: Any) -> str:
    """Start an old machine of nobody's; return the key of its alert."""
    instance_id = site.cloud.add_instance(region=region, age_s=OLD, **fields)
    return f"leak/aws/{region}/{instance_id}"


def stop(running: Daemon) -> None:
    """End a daemon as its service manager does."""
    result, took = running.stop(signal.SIGTERM)
    assert result.code == 0
    assert took < 10


def alerts(site: Site, *words: str) -> Result:
    """Run a command of `reaperd alerts`."""
    assert site.crew is not None
    argv = ("alerts", *words, "--config", str(site.config))
    return site.crew.warm(*argv, env=site.environment(), cwd=site.folder).wait()


def swept(running: Daemon, more: int = 2) -> None:
    """Wait until so many more sweeps have ended, and what they had to tell was brought."""
    wanted = len(running.events("sweep_finished")) + more
    running.until(lambda: len(running.events("sweep_finished")) >= wanted)
    running.after_passes(1)


def test_a_leak_is_told_once_and_its_end_too(site: Site, receiver: Receiver):
    site.configure(more=SWEEPS + channel(receiver))
    key = leak(site)
    with daemon(site) as running:
        running.until(lambda: told(receiver))
        running.after_passes(4)
        assert told(receiver) == [("firing", key)]

        site.cloud.remove(key.rpartition("/")[2])
        running.until(lambda: len(told(receiver)) > 1)
        running.after_passes(3)
        metrics = running.metrics()

    assert told(receiver) == [("firing", key), ("resolved", key)]
    assert metrics["reaperd_alerts_total{channel=hook,outcome=sent}"] == 2
    assert metrics["reaperd_alerts_total{channel=hook,outcome=failed}"] == 0


# ---------------------------------------------------------------- restarts and replicas


def test_a25_a_restart_sends_no_alert_again_and_silences_no_new_one(site: Site, receiver: Receiver):
    site.configure(more=SWEEPS + channel(receiver))
    first = leak(site)
    with daemon(site) as running:
        running.until(lambda: told(receiver))
        stop(running)
    with daemon(site) as running:
        swept(running)
        stop(running)
    assert told(receiver) == [("firing", first)]

    second = leak(site)
    with daemon(site) as running:
        running.until(lambda: len(told(receiver)) == 2)
        swept(running)
        stop(running)
    assert told(receiver)[1:] == [("firing", second)]

    site.later(hours=24)
    with daemon(site) as running:
        running.until(lambda: len(told(receiver)) == 4)
        swept(running)
    assert sorted(told(receiver)[2:]) == sorted([("reminder", first), ("reminder", second)])


def test_a_kill_while_an_alert_is_sent_has_it_sent_once_more_with_the_same_id(site: Site, receiver: Receiver):
    site.configure(more=SWEEPS + channel(receiver))
    leak(site)
    receiver.hang()
    with daemon(site) as running:
        running.until(lambda: receiver.requests)
        running.running.kill()
        running.running.wait()
    receiver.answer(200)
    with daemon(site) as running:
        running.until(lambda: len(told(receiver)) == 2)
        swept(running)

    ids = [json.loads(request.body)["id"] for request in receiver.requests]
    assert len(ids) == 2
    assert len(set(ids)) == 1


def test_a30_of_two_daemons_one_tells_and_the_other_goes_on_where_it_died(site: Site, receiver: Receiver):
    site.configure(more=SWEEPS + channel(receiver))
    first = leak(site)
    with daemon(site) as one, daemon(site) as other:
        one.until(lambda: told(receiver))
        swept(one)
        swept(other)
        assert told(receiver) == [("firing", first)]

        leader, standby = (one, other) if one.metrics()["reaperd_leader"] else (other, one)
        leader.running.kill()
        leader.running.wait()
        standby.until(lambda: standby.metrics()["reaperd_leader"] == 1)
        second = leak(site)
        standby.until(lambda: len(told(receiver)) == 2)
        swept(standby)

    assert told(receiver) == [("firing", first), ("firing", second)]


# ---------------------------------------------------------------- what passes tell


def test_a13_a16_a21_each_orphan_that_a_person_must_end_is_told_once(site: Site, receiver: Receiver):
    site.configure(more=channel(receiver))
    tagged = site.orphan(worker="w-1", tags={"reaperd:protect": "yes"})
    protected = site.orphan(worker="w-2", protected=True)
    managed = site.orphan(worker="w-3", tags={"aws:autoscaling:groupName": "fleet"})
    site.tracked()
    wanted = [
        ("firing", f"managed_orphan/aws/{EAST}/{managed}"),
        ("firing", f"protected_orphan/aws/{EAST}/{tagged}"),
        ("firing", f"termination_protected/aws/{EAST}/{protected}"),
    ]
    with daemon(site) as running:
        running.until(lambda: len(told(receiver)) >= 3)
        running.after_passes(4)

    assert sorted(told(receiver)) == wanted


def test_a19_a_machine_that_does_not_end_is_told_once_and_that_it_is_gone(site: Site, receiver: Receiver):
    site.configure(more=channel(receiver))
    machine = site.orphan()
    site.cloud.fault("ignored", action=TERMINATE)
    key = f"termination_stuck/aws/{EAST}/{machine}"
    with daemon(site, {"reconcile.stuck_after": "2s"}) as running:
        running.until(lambda: told(receiver))
        running.after_passes(4)
        assert told(receiver) == [("firing", key)]
        site.cloud.clear_faults()
        running.until(lambda: len(told(receiver)) == 2)

    assert told(receiver) == [("firing", key), ("resolved", key)]
    assert site.cloud.state_of(machine) in {"terminated", "absent"}


def test_a07_an_open_breaker_is_told_once_and_resolved_by_a_pass_that_asked_it(site: Site, receiver: Receiver):
    site.configure(more=channel(receiver))
    machines = [site.orphan(worker=f"w-{number}") for number in range(6)]
    with daemon(site) as running:
        running.until(lambda: told(receiver))
        running.after_passes(3)
        assert told(receiver) == [("firing", "breaker_open")]
        site.cloud.fault(region=WEST, code="AuthFailure")
        running.after_passes(3)
        assert told(receiver) == [("firing", "breaker_open")]
        site.cloud.clear_faults()
        for machine in machines[2:]:
            site.cloud.remove(machine)
        running.until(lambda: len(told(receiver)) == 2)

    assert told(receiver)[1] == ("resolved", "breaker_open")


def test_a_rehearsal_tells_what_enforcing_would(site: Site, receiver: Receiver):
    site.configure(mode="dry-run", more=channel(receiver))
    for number in range(6):
        site.orphan(worker=f"w-{number}")
    with daemon(site) as running:
        running.until(lambda: told(receiver))

    assert told(receiver) == [("firing", "breaker_open")]
    assert site.mutations() == []


def test_passes_that_do_not_end_are_told_as_late_and_their_return_too(site: Site, receiver: Receiver):
    site.configure(more=channel(receiver))
    with daemon(site) as running:
        running.after_passes(1)
        site.cloud.fault("hang", action=LISTING)
        running.until(lambda: told(receiver))
        assert told(receiver) == [("firing", "late")]
        site.cloud.clear_faults()


def test_a_region_that_fails_neither_resolves_nor_tells_again(site: Site, receiver: Receiver):
    site.configure(more=SWEEPS + channel(receiver))
    key = leak(site, WEST)
    with daemon(site) as running:
        running.until(lambda: told(receiver))
        site.cloud.fault(region=WEST, action=LISTING, code="AuthFailure")
        swept(running, 3)
        site.cloud.clear_faults()
        swept(running, 3)

    assert told(receiver) == [("firing", key)]


def test_3000_leaks_at_once_are_one_message(site: Site, receiver: Receiver):
    site.configure(more=SWEEPS.replace("1s", "1h") + channel(receiver))
    for number in range(3_000):
        site.cloud.add_instance(region=EAST, instance_id=f"i-{number}", age_s=OLD)
    with daemon(site) as running:
        running.until(lambda: receiver.requests)
        running.after_passes(2)

    (request,) = receiver.requests
    event = json.loads(request.body)
    assert event["type"].endswith(".digest")
    assert event["data"]["total"] == 3_000
    assert len(request.body) < 20_000


def test_a_hostile_name_reaches_no_receiver_as_markup(site: Site, receiver: Receiver):
    site.configure(more=SWEEPS + channel(receiver))
    leak(site, name="<script>alert(1)</script> <!here> [x](http://y)")
    with daemon(site) as running:
        running.until(lambda: receiver.requests)

    text = receiver.requests[0].body.decode()
    assert not any(active in text for active in ("<script", "<!here", "](http"))
    assert "script" in text


# ---------------------------------------------------------------- channels that fail


def test_a_channel_that_hangs_delays_neither_a_termination_nor_another_channel(site: Site, receiver: Receiver):
    with Receiver() as slow:
        slow.hang()
        site.configure(more=channel(slow, "slow") + channel(receiver))
        held = site.orphan(worker="w-held", tags={"reaperd:protect": "yes"})
        with daemon(site) as running:
            running.until(lambda: slow.requests)
            machine = site.orphan(WEST, worker="w-late")
            running.until(lambda: site.accepted() == [machine])
            running.until(lambda: told(receiver))
            stop(running)

    assert told(receiver) == [("firing", f"protected_orphan/aws/{EAST}/{held}")]


def test_a_channel_that_was_dead_hears_everything_in_order_once_it_lives(site: Site, receiver: Receiver):
    receiver.answer(500)
    site.configure(more=SWEEPS + channel(receiver))
    key = leak(site)
    with daemon(site) as running:
        running.until(lambda: running.events("alert_not_delivered"))
        site.cloud.remove(key.rpartition("/")[2])
        swept(running)
        assert "answers 500" in running.status()["alerts"]["failing"]["hook"]
        assert "CHANNEL hook FAILS" in site.run("status", "--url", running.url).out
        receiver.answer(200)
        receiver.requests.clear()
        running.until(lambda: len(told(receiver)) == 2)
        running.until(lambda: running.status()["alerts"] == {"open": 0, "channels": 1, "failing": {}})
        metrics = running.metrics()

    assert told(receiver) == [("firing", key), ("resolved", key)]
    assert metrics["reaperd_alerts_total{channel=hook,outcome=failed}"] >= 1


def test_that_the_ledger_cannot_be_used_is_told_directly_and_that_it_can_again(site: Site, receiver: Receiver):
    site.configure(more=channel(receiver))
    with daemon(site) as running:
        running.after_passes(1)
        away = site.state.rename(site.folder / "away")
        site.ledger_path.mkdir(parents=True)
        running.until(lambda: told(receiver))
        running.after_passes(3)
        assert told(receiver) == [("firing", "ledger_unusable")]
        # Whole, and without a moment in which it is an empty folder: the daemon looks at any time.
        site.state.rename(site.folder / "broken")
        away.rename(site.state)
        running.until(lambda: len(told(receiver)) == 2)

    assert told(receiver)[1] == ("resolved", "ledger_unusable")


def test_no_secret_of_a_channel_is_in_the_log(site: Site, receiver: Receiver):
    receiver.answer(500, text="no such hook: T0K3Nabcdef")
    secret, address = site.folder / "secret", site.folder / "url"
    secret.write_text("s1gning-k3y-abcdef")
    address.write_text(f"{receiver.url}/services/T0K3Nabcdef?auth=P4SSw0rd99")
    table = channel(receiver, url_file=str(address), secret_file=str(secret)).replace("url = ", "# ")
    site.configure(more=SWEEPS + table)
    leak(site)
    with daemon(site) as running:
        running.until(lambda: running.events("alert_not_delivered"))
        result, _ = running.stop(signal.SIGTERM)

    assert receiver.requests[0].headers["x-reaperd-signature"]
    assert not any(word in result.err for word in ("T0K3Nabcdef", "P4SSw0rd99", "s1gning-k3y"))


# ---------------------------------------------------------------- settings, mutes, commands


def test_a_reload_brings_a_channel_that_is_told_what_holds(site: Site, receiver: Receiver):
    site.configure(more=SWEEPS)
    key = leak(site)
    with daemon(site) as running:
        swept(running)
        site.configure(more=SWEEPS + channel(receiver))
        running.running.kill(signal.SIGHUP)
        running.until(lambda: told(receiver))
        metrics = running.metrics()

    assert told(receiver) == [("firing", key)]
    assert "reaperd_alerts_total{channel=hook,outcome=sent}" in metrics


def test_a_reload_that_drops_a_channel_drops_what_waited_for_it_and_says_so(site: Site, receiver: Receiver):
    receiver.answer(500)
    site.configure(more=SWEEPS + channel(receiver))
    leak(site)
    with daemon(site) as running:
        running.until(lambda: running.events("alert_not_delivered"))
        site.configure(more=SWEEPS)
        running.running.kill(signal.SIGHUP)
        running.until(lambda: running.events("alerts_dropped"))

    assert running.events("alerts_dropped")[0]["messages"] == 1
    assert site.rows("SELECT * FROM outbox") == []


def test_what_is_muted_is_told_once_it_is_not(site: Site, receiver: Receiver):
    site.configure(more=SWEEPS + channel(receiver))
    with daemon(site) as running:
        running.after_passes(1)
        assert site.run("mute", "leak/*", "--for", "1h", "--reason", "a load test").code == 0
        key = leak(site)
        swept(running)
        assert told(receiver) == []
        assert site.run("unmute", "leak/*").code == 0
        running.until(lambda: told(receiver))

    assert told(receiver) == [("firing", key)]


def test_a_flush_beside_a_daemon_has_the_daemon_send_once(site: Site, receiver: Receiver):
    receiver.answer(503, headers=[("Retry-After", "3600")])
    site.configure(more=SWEEPS + channel(receiver))
    leak(site)
    with daemon(site) as running:
        running.until(lambda: running.events("alert_not_delivered"))
        receiver.answer(200)
        receiver.requests.clear()
        result = alerts(site, "flush")
        running.after_passes(2)

    assert (result.code, len(receiver.requests)) == (0, 1)
    assert "1 of 1 delivered" in result.out


def test_a_flush_without_a_daemon_sends_itself(site: Site, receiver: Receiver):
    receiver.answer(503, headers=[("Retry-After", "3600")])
    site.configure(more=channel(receiver))
    site.orphan(tags={"reaperd:protect": "yes"})
    assert site.run("once").code == 0
    listed = alerts(site, "list")
    receiver.answer(200)
    receiver.requests.clear()

    flushed = alerts(site, "flush")

    assert "answers 503" in listed.out
    assert (flushed.code, len(receiver.requests)) == (0, 1)
    assert alerts(site, "flush").out == "Nothing waits.\n"


def test_once_tells_as_the_daemon_does_and_no_channel_changes_its_end(site: Site, receiver: Receiver):
    site.configure(more=channel(receiver) + channel(receiver, "dead", url="http://127.0.0.1:9/"))
    held, machine = site.orphan(worker="w-1", tags={"reaperd:protect": "yes"}), site.orphan(worker="w-2")

    codes = [site.run("once").code for _ in range(3)]

    assert codes == [0, 0, 0]
    assert site.accepted() == [machine]
    assert told(receiver) == [("firing", f"protected_orphan/aws/{EAST}/{held}")]


def test_looks_that_leave_no_trace_tell_nobody(site: Site, receiver: Receiver):
    site.configure(more=channel(receiver))
    site.orphan(tags={"reaperd:protect": "yes"})
    leak(site)

    site.run("plan")
    site.run("audit")

    assert receiver.requests == []


def test_the_dead_mans_switch_is_called_after_complete_passes_alone(site: Site, receiver: Receiver):
    file = site.folder / "ping-url"
    file.write_text(f"{receiver.url}/ping/T0K3N\n")
    site.configure(more=f'[alerts]\nping_url_file = "{file}"\n')
    with daemon(site) as running:
        running.until(lambda: len(receiver.requests) > 2)
        site.cloud.fault(region=WEST, code="AuthFailure")
        running.until(lambda: running.last().get("outcome") == "refused")
        running.after_passes(1)
        called = len(receiver.requests)
        running.after_passes(3)
        assert len(receiver.requests) == called
        result, _ = running.stop(signal.SIGTERM)

    assert {(request.method, request.path) for request in receiver.requests} == {("GET", "/ping/T0K3N")}
    assert "T0K3N" not in result.err


def test_every_channel_can_be_tried_beside_a_daemon(site: Site, receiver: Receiver):
    site.configure(more=channel(receiver) + channel(receiver, "dead", url="http://127.0.0.1:9/"))
    with daemon(site) as running:
        running.after_passes(1)
        result = alerts(site, "test")
        good = alerts(site, "test", "--channel", "hook")

    assert (result.code, good.code) == (1, 0)
    assert "hook: took it" in result.out
    assert "dead: FAILED: http://127.0.0.1:9 cannot be reached" in result.out
    assert [kind for kind, _ in told(receiver)] == ["test", "test"]
