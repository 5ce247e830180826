"""Plans that are too big to go one by one, with the whole program against a cloud that does what EC2 documents."""

from __future__ import annotations

import ast
import json
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from reaperd.core.model import Brake
from reaperd.passes.lanes import FEW
from tests.integration.judging import complete, deferred, outcomes
from tests.integration.test_signals import stopped_promptly
from tests.support.crash import some_of
from tests.support.ec2 import FaultyEc2
from tests.support.ec2.protocol import ApiRequest
from tests.support.processes import ROOT, Crew, until
from tests.support.site import EAST, WEST, Site

pytestmark = pytest.mark.timeout(600)  # on a busy machine; most take a few seconds

LISTING, TERMINATE = "DescribeInstances", "TerminateInstances"
MANY = FEW + 4
WIDE = {
    "reconcile.breaker.max_per_pass": "1000",
    "reconcile.breaker.max_per_hour": "1000",
    "reconcile.breaker.max_fraction": "1.0",
}
KILLED = -9


def orphans(site: Site, region: str = EAST, count: int = MANY, **facts: object) -> list[str]:
    """Start so many in one zone, the first the oldest."""
    return [
        site.orphan(region, worker=f"w-{region}-{number}", age_s=90_000 - number, **facts) for number in range(count)
    ]


def named(site: Site) -> list[list[str]]:
    """Return the ids of each terminate that reached the cloud, in order."""
    return [exchange.request.listed("InstanceId") for exchange in site.cloud.terminate_requests()]


def states(site: Site, ids: list[str]) -> set[str]:
    return {site.cloud.state_of(each) for each in ids}


def on_the_second_look(site: Site, act: Callable[[], object], *, times: int = 1) -> None:
    """Act while machines are looked at again by their ids."""
    done: list[None] = []

    def seen(request: ApiRequest) -> None:
        if request.listed("InstanceId") and len(done) < times:
            done.append(None)
            act()

    site.cloud.on(LISTING, seen)


def test_an_approved_plan_goes_many_machines_a_request_and_is_confirmed_by_the_next_look(site: Site):
    here, there, few = orphans(site), orphans(site, WEST), orphans(site, EAST, 3, az="us-east-1b")
    stopped = site.run("once")
    digest = json.loads(stopped.out)["plan_digest"]
    assert site.run("approve", digest, "--yes", "--reason", "we checked").code == 0

    document = complete(site.run("once"))

    assert outcomes(document) == dict.fromkeys([*here, *there, *few], "requested")
    assert sorted(map(sorted, named(site))) == sorted(map(sorted, [here, there, few]))
    assert {outcome for _, outcome, _ in site.intents()} == {"requested"}
    after = complete(site.run("once"))
    assert outcomes(after) == dict.fromkeys([*here, *there, *few], "confirmed_gone")


def test_a_small_plan_goes_one_machine_a_request(site: Site):
    few = orphans(site, EAST, 6)

    complete(site.run("once", settings=WIDE))

    assert named(site) == [[each] for each in few]


def test_a_protected_machine_stops_only_itself_whatever_its_zone(site: Site):
    here, there = orphans(site), orphans(site, EAST, MANY, az="us-east-1b")
    for each in (here[3], here[7], there[0]):
        site.cloud.change(each, protected=True)

    document = complete(site.run("once", settings=WIDE), code=1)

    bad = {here[3], here[7], there[0]}
    assert outcomes(document) == {each: "protected" if each in bad else "requested" for each in [*here, *there]}
    assert states(site, [each for each in [*here, *there] if each not in bad]) == {"terminated"}
    assert states(site, list(bad)) == {"running"}


def test_machines_that_vanish_between_the_plan_and_the_request_spoil_nothing(site: Site):
    here = orphans(site)
    on_the_second_look(site, lambda: [site.cloud.remove(each) for each in here[:3]])

    document = complete(site.run("once", settings=WIDE))

    assert outcomes(document) == {each: "already_gone" if each in here[:3] else "requested" for each in here}
    assert named(site) == [here[3:]]


def test_a_worker_that_registers_while_its_machine_is_looked_at_again_is_spared(site: Site):
    here = orphans(site)
    on_the_second_look(site, lambda: site.add_row("w-new", here[5]))

    document = complete(site.run("once", settings=WIDE))

    assert outcomes(document) == {each: "spared" if each == here[5] else "requested" for each in here}
    assert named(site) == [[each for each in here if each != here[5]]]
    assert states(site, [here[5]]) == {"running"}


def test_a_machine_that_is_protected_by_its_tag_in_the_meantime_is_spared(site: Site):
    here = orphans(site)
    tags = dict(site.cloud.instance(here[5]).tags)
    on_the_second_look(site, lambda: site.cloud.change(here[5], tags={**tags, "reaperd:protect": ""}))

    document = complete(site.run("once", settings=WIDE))

    assert outcomes(document)[here[5]] == "spared"
    assert states(site, [here[5]]) == {"running"}


def test_a_persistent_spot_request_is_cancelled_and_its_machine_goes_alone(site: Site):
    here, spot = orphans(site), orphans(site, EAST, 2, spot="persistent")

    document = complete(site.run("once", settings=WIDE))

    assert outcomes(document) == dict.fromkeys([*here, *spot], "requested")
    assert {request.state for request in site.cloud.spot_requests()} == {"cancelled"}
    assert len(site.cloud.instances()) == len(here) + len(spot)


def test_the_brake_in_the_middle_keeps_what_was_not_sent(site: Site):
    here, there = orphans(site), orphans(site, WEST)

    def brake() -> None:
        with site.ledger() as ledger:
            ledger.hold(Brake(since=datetime.now(UTC), by="me", reason="an incident"))

    on_the_second_look(site, brake, times=1)
    result = site.run("once", settings=WIDE)

    document = json.loads(result.out)
    kept = [each for each in [*here, *there] if outcomes(document)[each] == "spared"]
    # Whoever got leave before the brake was on was sent; the request whose look it was on during was not.
    assert document["reason"] == "reap_hold"
    assert set(kept) >= set(here) or set(kept) >= set(there)
    assert states(site, kept) == {"running"}


def test_a_cloud_that_throttles_all_the_same_stops_the_pass_and_the_next_one_goes_on(site: Site):
    here = orphans(site)
    site.cloud.fault(action=TERMINATE, code="RequestLimitExceeded", times=3)

    document = deferred(site.run("once", settings=WIDE), "throttled")

    assert set(outcomes(document).values()) == {"deferred"}
    assert outcomes(complete(site.run("once", settings=WIDE))) == dict.fromkeys(here, "requested")


def test_an_answer_that_was_lost_is_found_out_by_a_look(site: Site):
    site.cloud.configure(shutdown_s=None)
    here = orphans(site)
    site.cloud.fault("lost_reply", action=TERMINATE, times=1)

    document = complete(site.run("once", settings=WIDE))

    assert outcomes(document) == dict.fromkeys(here, "requested")
    assert named(site) == [here]


def test_a_request_that_never_arrived_is_sent_once_more(site: Site):
    here = orphans(site)
    site.cloud.fault("drop", action=TERMINATE, times=1)

    document = complete(site.run("once", settings=WIDE))

    assert outcomes(document) == dict.fromkeys(here, "requested")
    assert named(site) == [here, here]


@pytest.mark.parametrize("applied", [False, True])
def test_a_pass_that_is_stopped_during_a_hung_request_ends_all_the_same(site: Site, applied: bool):
    here = orphans(site)
    site.cloud.fault("hang", action=TERMINATE, applied=applied)
    command = site.start("once", settings=WIDE)
    until(lambda: site.cloud.terminate_requests())

    result = stopped_promptly(command, signal.SIGTERM)

    document = deferred(result, "stopping")
    assert outcomes(document) == dict.fromkeys(here, "unknown")
    assert len(named(site)) == 1
    site.cloud.clear_faults()
    after = complete(site.run("once", settings=WIDE))
    assert outcomes(after) == (dict.fromkeys(here, "confirmed_gone") if applied else {})
    assert len(named(site)) == 1


def test_a_pass_that_is_stopped_during_a_hung_look_has_sent_nothing(site: Site):
    here = orphans(site)
    site.cloud.fault("hang", action=LISTING, params={"InstanceId.1": "*?"})
    command = site.start("once", settings=WIDE)
    until(lambda: len(site.cloud.requests(LISTING)) > 2)

    document = deferred(stopped_promptly(command), "stopping")

    assert outcomes(document) == dict.fromkeys(here, "spared")
    assert named(site) == []


def test_moto_ends_many_as_well_and_protects_what_it_protects(moto_site: Site):
    here = [moto_site.orphan(worker=f"w-{number}") for number in range(MANY)]
    client = moto_site.cloud.client()
    client.modify_instance_attribute(InstanceId=here[5], DisableApiTermination={"Value": True})

    document = complete(moto_site.run("once", settings=WIDE), code=1)

    # moto ends those before the protected one, and then says that it did nothing.
    assert outcomes(document) == {each: "protected" if each == here[5] else "requested" for each in here}
    found = client.describe_instances(InstanceIds=here)["Reservations"]
    left = {i["InstanceId"]: i["State"]["Name"] for each in found for i in each["Instances"]}
    assert left == {each: "running" if each == here[5] else "terminated" for each in here}


# ---------------------------------------------------------------- killed in the middle

WATCHED = ("reaperd/passes/lanes.py", "reaperd/passes/leave.py", "reaperd/passes/parcels.py")


@pytest.mark.slow
def test_a_kill_at_any_line_is_made_good_by_the_next_passes(tmp_path: Path, parent: Path):
    places = recorded(tmp_path, parent)

    with ThreadPoolExecutor(4) as pool:
        killed = list(pool.map(partial(dies_and_recovers, tmp_path, parent), some_of(places)))

    assert len(places) >= 60
    # Whether there is something to wait for is chance.
    assert killed.count(True) >= len(killed) * 0.9


def recorded(folder: Path, parent: Path) -> list[str]:
    """Run a big plan to its end, and return the statements that it came by."""
    record = folder / "lines.json"
    with FaultyEc2(shutdown_s=0) as cloud, Crew(parent) as crew:
        site = set_up(folder / "recorded", cloud, crew)
        complete(site.run("once", settings=WIDE, crash={"files": WATCHED, "record": str(record)}))
    statements = {
        f"{name}:{node.lineno}"
        for name in WATCHED
        for node in ast.walk(ast.parse((ROOT / name).read_text(encoding="utf-8")))
        if isinstance(node, ast.stmt)
    }
    return sorted(statements & set(json.loads(record.read_text(encoding="utf-8"))))


def set_up(folder: Path, cloud: FaultyEc2, crew: Crew) -> Site:
    folder.mkdir()
    site = Site(folder=folder, cloud=cloud, crew=crew)
    site.set_up()
    site.configure(regions=(EAST,))
    orphans(site)
    site.tracked()
    return site


def dies_and_recovers(folder: Path, parent: Path, place: str) -> bool:
    """Kill a pass at a line and hold what follows to the promises; return whether it came by there."""
    with FaultyEc2(shutdown_s=0) as cloud, Crew(parent) as crew:
        site = set_up(folder / place.rpartition("/")[2].replace(":", "-"), cloud, crew)
        ours = [machine.instance_id for machine in cloud.instances()][:-1]
        code = site.run("once", settings=WIDE, crash={"files": WATCHED, "at": place, "visit": 1}).code
        assert code in {KILLED, 0}, place
        asked = named(site)
        begun = {name for name, outcome, closed in site.intents() if closed is None}

        complete(site.run("once", settings=WIDE))

        # What was begun is not begun again, whether or not it arrived.
        assert named(site)[len(asked) :] == ([] if begun else [ours]), place
        late = {**WIDE, "reconcile.stuck_after": "1s"}
        until(lambda: complete(site.run("once", settings=late)) and states(site, ours) == {"terminated"})
        assert [machine.state for machine in cloud.instances()].count("running") == 1, place
        assert sorted(site.accepted()) == sorted(ours), place
        return code == KILLED
