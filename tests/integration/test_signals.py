"""SIGTERM, SIGINT and SIGSTOP: a pass that is asked to stop, and one that is frozen."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from tests.integration.judging import complete, deferred, document_of, outcomes, reasons, refused
from tests.support.processes import Running, until
from tests.support.site import EAST, WEST, Site

pytestmark = pytest.mark.timeout(300)  # on a busy machine; most take a second

LISTING, TERMINATE = "DescribeInstances", "TerminateInstances"
PROMPTLY = 10.0
"""Seconds within which a process that was told to end has ended (rule 25)."""


def stopped_promptly(command: Running, number: int = signal.SIGTERM):
    """Send the signal and return what the command left, which it has to do soon."""
    command.kill(number)
    told_at = time.monotonic()
    result = command.wait()
    assert time.monotonic() - told_at < PROMPTLY
    return result


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_pass_that_is_stopped_during_the_listing_has_done_nothing(site: Site, number: int):
    orphan = site.orphan()
    site.cloud.fault("hang", action=LISTING)
    command = site.start("once")
    until(lambda: site.cloud.requests(LISTING))

    document = deferred(stopped_promptly(command, number), "stopping")

    assert (document["verdicts"], document["outcomes"]) == ([], [])
    assert site.mutations() == []
    site.cloud.clear_faults()
    assert outcomes(complete(site.run("once"))) == {orphan: "requested"}


def test_a_cold_process_stops_as_well(site: Site):
    site.cloud.fault("hang")
    command = site.start("once", cold=True)
    until(lambda: site.cloud.requests())

    deferred(stopped_promptly(command), "stopping")


def test_plan_stops_as_well(site: Site):
    site.cloud.fault("hang")
    command = site.start("plan")
    until(lambda: site.cloud.requests())

    deferred(stopped_promptly(command), "stopping")


def test_a_pass_that_is_stopped_while_acting_records_what_it_asked_for_and_asks_no_more(site: Site):
    orphans = [site.orphan(worker=f"w-{number}", age_s=9000 - number) for number in range(3)]
    site.cloud.fault(action=TERMINATE, delay_s=2, times=1)
    command = site.start("once")
    until(lambda: site.cloud.terminate_requests())

    document = deferred(stopped_promptly(command), "stopping")

    assert outcomes(document) == {orphans[0]: "requested", orphans[1]: "spared", orphans[2]: "spared"}
    assert [outcome["reason"] for outcome in document["outcomes"]] == [None, "stopping", "stopping"]
    assert reasons(document) == dict.fromkeys(orphans, "unregistered")
    assert site.intents() == [(orphans[0], "requested", None)]
    after = complete(site.run("once"))
    assert outcomes(after) == {orphans[0]: "confirmed_gone", orphans[1]: "requested", orphans[2]: "requested"}
    assert site.accepted() == sorted(orphans)


@pytest.mark.parametrize("applied", [False, True])
def test_a_pass_that_is_stopped_during_a_hung_request_ends_all_the_same(site: Site, applied: bool):
    first, second = site.orphan(age_s=9000), site.orphan(worker="w-2")
    site.cloud.fault("hang", action=TERMINATE, applied=applied)
    command = site.start("once")
    until(lambda: site.cloud.terminate_requests())

    document = deferred(stopped_promptly(command), "stopping")

    assert outcomes(document) == {first: "unknown", second: "spared"}
    assert site.intents() == [(first, "unknown", None)]
    assert len(site.cloud.terminate_requests()) == 1
    site.cloud.clear_faults()
    after = complete(site.run("once"))
    assert outcomes(after) == {second: "requested"} | ({first: "confirmed_gone"} if applied else {})


def test_a_request_whose_answer_is_lost_is_not_repeated_once_the_process_is_to_end(site: Site):
    orphan = site.orphan()
    site.cloud.fault("drop", action=TERMINATE, delay_s=1)
    command = site.start("once")
    until(lambda: site.cloud.terminate_requests())

    document = complete(stopped_promptly(command), code=1)

    assert outcomes(document) == {orphan: "unknown"}
    assert len(site.cloud.terminate_requests()) == 1


def test_a_frozen_holder_terminates_nothing_when_it_wakes(site: Site):
    orphans = [site.orphan(worker=f"w-{number}", age_s=9000 - number) for number in range(3)]
    wishes = {"lease.ttl": "1s"}
    site.cloud.fault(action=TERMINATE, delay_s=0.5, times=1)
    frozen = site.start("once", settings=wishes)
    until(lambda: site.cloud.terminate_requests())
    site.freeze(frozen)
    before = len(site.cloud.terminate_requests())

    def taken_over() -> bool:
        result = site.run("once")
        return result.code != 75 and complete(result) is not None

    until(taken_over)
    acted = len(site.cloud.terminate_requests())
    frozen.kill(signal.SIGCONT)
    document = document_of(frozen.wait(), 1, "deferred", "not_leader")

    assert before == 1
    assert acted == len(orphans)
    assert len(site.cloud.terminate_requests()) == acted
    assert [outcomes(document)[orphan] for orphan in orphans[1:]] == ["spared", "spared"]
    assert site.accepted() == sorted(orphans)


def test_a_holder_that_is_frozen_while_it_lists_only_looks_when_it_wakes(site: Site):
    orphan = site.orphan()
    wishes = {"lease.ttl": "1s"}
    site.cloud.fault(action=LISTING, delay_s=0.5, times=1)
    frozen = site.start("once", settings=wishes)
    until(lambda: site.cloud.requests(LISTING))
    site.freeze(frozen)

    until(lambda: site.run("once").code == 0)
    site.cloud.clear_requests()
    frozen.kill(signal.SIGCONT)
    refused(frozen.wait(), 75, "not_leader")

    assert site.mutations() == []
    assert site.cloud.state_of(orphan) == "terminated"


def test_a_slow_pass_keeps_its_lease_for_as_long_as_it_takes(site: Site):
    east, west = site.orphan(EAST), site.orphan(WEST, worker="w-2")
    answered, first = threading.Event(), iter([True])
    site.cloud.on(LISTING, lambda _request: next(first, False) and answered.wait(60))
    slow = site.start("once", settings={"lease.ttl": "2s"})
    until(lambda: site.cloud.requests(LISTING))

    time.sleep(3)
    codes = [site.run("once").code for _ in range(3)]
    answered.set()

    assert codes == [75, 75, 75]
    assert outcomes(complete(slow.wait())) == {east: "requested", west: "requested"}


def test_two_at_the_same_moment_are_one_that_acts(site: Site):
    wishes = {"reconcile.breaker.max_per_hour": "100"}
    codes: list[int] = []

    for number in range(20):
        orphan = site.orphan(worker=f"w-{number}", region=EAST if number % 2 else WEST)
        both = [site.start("once", settings=wishes) for _ in range(2)]
        results = [command.wait() for command in both]

        for result in results:
            ended_well = complete(result) if result.code == 0 else refused(result, 75, "not_leader")
            assert outcomes(ended_well).get(orphan) in {"requested", "confirmed_gone", None}
        assert len(site.cloud.terminate_requests(orphan)) == 1
        codes += [result.code for result in results]

    # The second one may come when the first has given the lease back: then it has it, and finds nothing to ask for.
    assert set(codes) == {0, 75}
    assert len(site.accepted()) == 20
    assert site.rows("PRAGMA integrity_check") == [("ok",)]


def test_many_that_start_together_on_a_new_host_make_one_ledger(site: Site):
    orphan = site.orphan()

    results = [command.wait() for command in [site.start("once") for _ in range(6)]]

    for result in results:
        document_of(result, result.code, *(("refused", "not_leader") if result.code else ("complete",)))
    assert 0 in {result.code for result in results}
    assert site.accepted() == [orphan]


def test_no_request_is_begun_after_the_deadline(site: Site):
    first, second = site.orphan(age_s=9000), site.orphan(worker="w-2")
    site.cloud.fault(action=TERMINATE, delay_s=4, times=1)

    document = deferred(site.run("once", settings={"reconcile.deadline": "4s"}), "deadline")

    assert outcomes(document) == {first: "requested", second: "deferred"}
    assert site.accepted() == [first]
