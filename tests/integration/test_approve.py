"""`approve` while the world goes on: what is let through is what was shown, less whatever has changed since."""

from __future__ import annotations

import json
from typing import Any

import pytest

from registry.model import WorkerState
from tests.integration.judging import complete, harmless, outcomes, reasons, refused
from tests.support.processes import Result
from tests.support.site import EAST, WEST, Site

pytestmark = pytest.mark.timeout(300)  # on a busy machine; most take a second

LISTING, TERMINATE = "DescribeInstances", "TerminateInstances"
SAFETY_STOP = 5
TWO_A_PASS = {"reconcile.breaker.max_per_pass": "2"}


@pytest.fixture
def orphans(site: Site) -> list[str]:
    """Give four machines that two processes find too many, in two regions."""
    return [site.orphan(WEST if number % 2 else EAST, worker=f"w-{number}") for number in range(4)]


def test_an_approved_plan_is_carried_out_in_the_next_pass(site: Site, orphans: list[str]):
    digest = stopped_by_the_breaker(site)

    approve(site, digest)

    assert outcomes(once(site)) == dict.fromkeys(orphans, "requested")
    assert site.accepted() == sorted(orphans)


def test_what_vanished_or_was_registered_meanwhile_is_left_out_and_the_rest_goes(site: Site, orphans: list[str]):
    vanished, registered, *rest = orphans
    approve(site, stopped_by_the_breaker(site))

    site.cloud.remove(vanished)
    site.add_row("w-1", registered, WEST)

    document = once(site)
    assert outcomes(document) == dict.fromkeys(rest, "requested")
    assert reasons(document)[registered] == "tracked"
    assert vanished not in reasons(document)
    assert site.accepted() == sorted(rest)
    assert asked(site) == sorted(rest)


def test_a_new_orphan_that_is_few_enough_by_itself_goes_along(site: Site, orphans: list[str]):
    approve(site, stopped_by_the_breaker(site))

    late = site.orphan(worker="w-late")

    assert outcomes(once(site)) == dict.fromkeys([*orphans, late], "requested")
    assert site.accepted() == sorted([*orphans, late])


def test_new_orphans_that_are_too_many_by_themselves_stop_the_approved_ones_too(site: Site, orphans: list[str]):
    older = stopped_by_the_breaker(site)
    approve(site, older)
    late = [site.orphan(worker=f"w-late-{number}") for number in range(3)]

    shown = site.run("once", "--format", "table", settings=TWO_A_PASS)

    newer = stopped_by_the_breaker(site)
    assert shown.code == SAFETY_STOP
    assert newer != older
    assert f"reaperd approve {newer} --config" in shown.out
    assert older not in shown.out
    assert "3 to terminate in one pass" in shown.out
    assert asked(site) == []
    approve(site, newer)
    assert outcomes(once(site)) == dict.fromkeys([*orphans, *late], "requested")


def test_an_approval_counts_until_its_hour_is_over_and_not_longer(site: Site, orphans: list[str]):
    digest = stopped_by_the_breaker(site)
    approve(site, digest)

    site.later(minutes=60)

    assert stopped_by_the_breaker(site) == digest
    assert asked(site) == []
    approve(site, digest)
    site.later(minutes=58)
    assert outcomes(once(site)) == dict.fromkeys(orphans, "requested")


def test_what_was_approved_does_not_fill_the_hour(site: Site, orphans: list[str]):
    approve(site, stopped_by_the_breaker(site))
    once(site)

    late = site.orphan(worker="w-late")
    document = complete(site.run("once", settings=TWO_A_PASS | {"reconcile.breaker.max_per_hour": "1"}))

    assert outcomes(document) == {**dict.fromkeys(orphans, "confirmed_gone"), late: "requested"}


def test_a_digest_that_no_pass_recorded_approves_nothing_and_writes_nothing(site: Site, orphans: list[str]):
    known = stopped_by_the_breaker(site)
    unknown = "sha256:" + "0" * 64

    result = site.run("approve", unknown, "--yes")

    assert (result.code, result.out) == (1, "")
    harmless(result)
    assert f"no recorded pass had the plan {unknown}" in result.err
    assert known in result.err
    assert site.rows("SELECT count(*) FROM approvals") == [(0,)]
    assert site.rows("SELECT count(*) FROM operator_acts") == [(0,)]
    assert stopped_by_the_breaker(site) == known
    assert asked(site) == []


def test_a_plan_that_only_a_look_without_a_trace_had_cannot_be_approved(site: Site, orphans: list[str]):
    stopped_by_the_breaker(site)
    late = site.orphan(worker="w-late")
    plan = site.run("plan", settings=TWO_A_PASS).json

    result = site.run("approve", plan["plan_digest"], "--yes")

    assert result.code == 1
    assert late in [verdict["instance_id"] for verdict in plan["verdicts"]]
    assert site.rows("SELECT count(*) FROM approvals") == [(0,)]


@pytest.mark.parametrize("moment", [LISTING, TERMINATE])
def test_an_approved_machine_that_is_tracked_by_now_never_goes(site: Site, orphans: list[str], moment: str):
    saved = orphans[2]
    approve(site, stopped_by_the_breaker(site))
    rows = iter([("w-2", saved)])
    site.cloud.on(moment, lambda _request: [site.add_row(*row) for row in rows])

    document = once(site)

    others = sorted(set(orphans) - {saved})
    assert site.accepted() == asked(site) == others
    assert outcomes(document).get(saved) in {None, "spared"}
    assert site.cloud.state_of(saved) == "running"


@pytest.mark.parametrize("saving", ["protect tag", "never"])
def test_an_approved_machine_that_is_held_by_another_rule_stays(site: Site, orphans: list[str], saving: str):
    saved, *others = orphans
    wishes = TWO_A_PASS | ({"reconcile.never": saved} if saving == "never" else {})
    approve(site, stopped_by_the_breaker(site))
    if saving == "protect tag":
        site.cloud.change(saved, tags=site.cloud.instance(saved).tags | {"reaperd:protect": ""})

    document = complete(site.run("once", settings=wishes))

    assert outcomes(document) == dict.fromkeys(others, "requested")
    assert site.accepted() == asked(site) == sorted(others)


def test_an_approval_does_not_take_the_brake_off(site: Site, orphans: list[str]):
    approve(site, stopped_by_the_breaker(site))
    assert site.run("hold", "--reason", "drill").code == 0

    document = refused(site.run("once", settings=TWO_A_PASS), SAFETY_STOP, "reap_hold")

    assert document["also"] == []
    assert asked(site) == []
    assert site.run("resume").code == 0
    assert outcomes(once(site)) == dict.fromkeys(orphans, "requested")


# ---------------------------------------------------------------- what is shown


def test_each_machine_is_shown_with_its_cost_and_the_evidence(site: Site, orphans: list[str]):
    site.configure(more='[prices]\n"aws/g5.xlarge" = 0.1')
    retired, dear = orphans[0], site.orphan(worker="w-dear", instance_type="p5.48xlarge")
    site.add_row("w-0", retired)
    site.writer().set_state("w-0", WorkerState.COMPLETED)
    digest = stopped_by_the_breaker(site)

    shown = site.run("approve", digest, "--yes").out

    lines = shown.partition("Approved by ")[0].splitlines()
    assert all(len(line) <= 80 for line in lines)
    cells = {line.split()[0]: line.split() for line in lines if line.startswith("  i-")}
    assert set(cells) == {*orphans, dear}
    assert [cells[retired][2], *cells[retired][-3:]] == ["g5.xlarge", "0.10", "to", "go"]
    assert [cells[dear][2], *cells[dear][-3:]] == ["p5.48xlarge", "-", "to", "go"]
    assert "retired: row w-0 is completed, last written at " in shown
    assert "unregistered: no row; running, worker w-1" in shown
    assert "untracked in 1/1 looks, first seen " in shown
    foot = " ".join(shown.split())
    assert "5 machines to go, $0.40 an hour, 1 of unknown price: [prices] in the configuration gives one" in foot


def test_the_evidence_stands_in_the_record(site: Site, orphans: list[str]):
    site.configure(more='[prices]\n"g5.xlarge" = 0.1')
    first = stopped_by_the_breaker(site)

    recorded = site.run("history", "--format", "json", "--kind", "reconcile").out

    (document,) = map(json.loads, recorded.splitlines())
    assert document["plan_digest"] == first
    for verdict in document["verdicts"]:
        assert (verdict["instance_type"], verdict["cost_per_hour_usd"]) == ("g5.xlarge", 0.1)
        assert (verdict["detail"], verdict["last_tracked_at"]) == ("no row", None)
        assert verdict["first_seen_at"] == document["started_at"]


def test_explain_names_the_plan_that_it_recommends_to_approve(site: Site, orphans: list[str]):
    digest = stopped_by_the_breaker(site)

    told = site.run("explain", orphans[0], settings=TWO_A_PASS)
    late = site.orphan(worker="w-late")
    unplanned = site.run("explain", late, "--look", settings=TWO_A_PASS)

    assert f"reaperd approve {digest} --config" in told.out
    assert "reaperd once --dry-run" not in told.out
    assert "reaperd once --dry-run --config" in unplanned.out
    assert "reaperd approve" not in unplanned.out


# ---------------------------------------------------------------- a plan that the world has left behind


def test_a_plan_that_was_carried_out_is_not_approved_again(site: Site, orphans: list[str]):
    digest = stopped_by_the_breaker(site)
    approve(site, digest)
    once(site)

    at_once = site.run("approve", digest, "--yes")
    once(site)
    later = site.run("approve", digest, "--yes")

    for result, word in ((at_once, "requested"), (later, "gone")):
        assert result.code == 1
        harmless(result)
        assert [line.split()[-1] for line in result.out.splitlines() if line.startswith("  i-")] == [word] * 4
        assert result.out.count(f"NOW {word}") == 4
        assert f"no machine of this plan is still to go ({word} 4)" in " ".join(result.err.split())
    assert site.rows("SELECT count(*) FROM operator_acts") == [(1,)]


def test_machines_that_vanished_or_were_registered_are_named_and_the_others_let_through(site: Site, orphans: list[str]):
    vanished, registered, *rest = orphans
    older = stopped_by_the_breaker(site)
    site.cloud.remove(vanished)
    site.add_row("w-1", registered, WEST)
    late = [site.orphan(worker=f"w-late-{number}") for number in range(2)]
    newer = stopped_by_the_breaker(site)

    result = approve(site, older)

    assert newer != older
    assert "exactly these 2 machines" in result.out
    words = {line.split()[0]: line.split()[-2:] for line in result.out.splitlines() if line.startswith("  i-")}
    assert words == {
        vanished: ["not", "listed"],
        registered: ["-", "tracked"],
        **{name: ["to", "go"] for name in rest},
    }
    # What is new was not let through; it is few enough to go by itself.
    ((refs,),) = site.rows("SELECT refs FROM approvals")
    assert sorted(ref[2] for ref in json.loads(refs)) == sorted(rest)
    assert outcomes(once(site)) == dict.fromkeys([*rest, *late], "requested")


def test_a_plan_of_which_everything_is_registered_by_now_approves_nothing(site: Site, orphans: list[str]):
    older = stopped_by_the_breaker(site)
    for number, name in enumerate(orphans):
        site.add_row(f"w-{number}", name, WEST if number % 2 else EAST)
    late = [site.orphan(worker=f"w-late-{number}") for number in range(3)]
    newer = stopped_by_the_breaker(site)

    result = site.run("approve", older, "--yes")

    assert result.code == 1
    harmless(result)
    assert "no machine of this plan is still to go (tracked 4)" in " ".join(result.err.split())
    assert newer in result.err
    assert site.rows("SELECT count(*) FROM approvals") == [(0,)]
    assert site.rows("SELECT count(*) FROM operator_acts") == [(0,)]
    assert stopped_by_the_breaker(site) == newer
    assert asked(site) == []
    assert late


# ---------------------------------------------------------------- helpers


def once(site: Site) -> dict[str, Any]:
    return complete(site.run("once", settings=TWO_A_PASS))


def stopped_by_the_breaker(site: Site) -> str:
    """Return the digest of the plan that a pass recorded and did not carry out."""
    document = refused(site.run("once", settings=TWO_A_PASS), SAFETY_STOP, "breaker_open")
    assert document["outcomes"] == []
    digest: str = document["plan_digest"]
    return digest


def approve(site: Site, digest: str) -> Result:
    result = site.run("approve", digest, "--yes", "--reason", "the fleet was shut down")
    assert result.code == 0, result.err
    harmless(result)
    return result


def asked(site: Site) -> list[str]:
    """Return the machines that were asked for, as often as they were."""
    return sorted(name for _, name in site.mutations())
