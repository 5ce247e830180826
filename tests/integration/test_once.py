"""`once` over real HTTP: what goes, what stays, and what it answers."""

from __future__ import annotations

import pytest

from tests.integration.judging import complete, deferred, outcomes, reasons
from tests.support.processes import until
from tests.support.site import EAST, EXTERNAL_ID, WEST, Site

pytestmark = pytest.mark.timeout(300)  # on a busy machine; most take a second

TERMINATE = "TerminateInstances"


def test_orphans_go_in_two_regions_and_nothing_else_does(moto_site: Site):
    east, west = moto_site.orphan(EAST), moto_site.orphan(WEST, worker=None)
    tracked = [moto_site.tracked(EAST, worker=f"w-{number}") for number in range(3)]
    young = moto_site.orphan(WEST, age_s=60)
    guarded = moto_site.orphan(EAST, tags={"Reaperd:Protect": ""})
    strangers = [
        moto_site.cloud.add_instance(owner="prod-b", worker="w-x"),
        moto_site.cloud.add_instance(owner="Prod"),
        moto_site.cloud.add_instance(),
    ]

    document = complete(moto_site.run("once", cold=True))

    assert outcomes(document) == {east: "requested", west: "requested"}
    assert reasons(document) == {
        east: "unregistered",
        west: "anonymous",
        young: "launch_grace",
        guarded: "protect_tag",
        **dict.fromkeys(tracked, "tracked"),
    }
    assert sorted(moto_site.mutations()) == sorted([(TERMINATE, east), (TERMINATE, west)])
    running = running_on(moto_site)
    assert running == {*tracked, young, guarded, *strangers}


def test_the_second_run_confirms_what_the_first_one_asked_for(moto_site: Site):
    orphan, _ = moto_site.orphan(), moto_site.tracked()

    first = complete(moto_site.run("once", cold=True))
    second = complete(moto_site.run("once", cold=True))
    third = complete(moto_site.run("once"))

    assert [outcomes(document) for document in (first, second, third)] == [
        {orphan: "requested"},
        {orphan: "confirmed_gone"},
        {},
    ]
    assert moto_site.mutations() == [(TERMINATE, orphan)]
    assert moto_site.intents() == [(orphan, "requested", "confirmed_gone")]


def test_what_is_still_ending_is_neither_confirmed_nor_asked_for_again(site: Site):
    site.cloud.configure(shutdown_s=None)
    orphan = site.orphan()

    complete(site.run("once"))
    second = complete(site.run("once", settings={"reconcile.stuck_after": "1s"}))
    site.cloud.settle()
    third = complete(site.run("once"))

    assert reasons(second) == {orphan: "in_transition"}
    assert outcomes(second) == {}
    assert outcomes(third) == {orphan: "confirmed_gone"}
    assert site.accepted() == [orphan]


def test_a_row_that_names_no_machine_is_missing(site: Site):
    site.tracked()
    site.add_row("w-lost", "i-0fedcba9", WEST)

    document = complete(site.run("once"))

    assert [(row["worker_id"], row["instance_id"]) for row in document["missing"]] == [("w-lost", "i-0fedcba9")]


def test_a_row_that_comes_during_the_listing_still_protects(site: Site):
    late = site.orphan(worker="w-late")
    site.cloud.on("DescribeInstances", Once(lambda: site.add_row("w-late", late)))

    document = complete(site.run("once"))

    assert reasons(document) == {late: "tracked"}
    assert site.mutations() == []


def test_a_row_that_comes_between_the_plan_and_the_request_spares_the_machine(site: Site):
    first, second = site.orphan(worker="w-1", age_s=9000), site.orphan(worker="w-2")
    site.cloud.on(TERMINATE, Once(lambda: site.add_row("w-2", second)))

    document = complete(site.run("once"))

    assert outcomes(document) == {first: "requested", second: "spared"}
    assert {outcome["reason"] for outcome in document["outcomes"]} == {None, "tracked_now"}
    assert site.accepted() == [first]


def test_three_looks_are_three_looks_across_processes(site: Site):
    orphan = site.orphan()
    wishes = {"reconcile.confirm_passes": "3"}

    documents = [complete(site.run("once", settings=wishes)) for _ in range(2)]
    assert [reasons(document)[orphan] for document in documents] == ["unconfirmed", "unconfirmed"]
    until(lambda: complete(site.run("once", settings=wishes))["outcomes"])

    assert site.accepted() == [orphan]


def test_a_rehearsal_remembers_and_asks_for_nothing(site: Site):
    orphan, _ = site.orphan(), site.tracked()
    site.configure(mode="dry-run")

    configured = complete(site.run("once", cold=True))
    site.configure(mode="enforce")
    forced = complete(site.run("once", "--dry-run"))

    assert [outcomes(document) for document in (configured, forced)] == [{orphan: "would_terminate"}] * 2
    assert [document["mode"] for document in (configured, forced)] == ["dry-run"] * 2
    assert site.mutations() == []
    assert site.rows("SELECT count(*) FROM sightings") == [(2,)]
    assert site.rows("SELECT count(*) FROM passes") == [(2,)]
    assert site.intents() == []


def test_a_rehearsal_fills_no_hour(site: Site):
    site.orphan()
    wishes = {"reconcile.breaker.max_per_hour": "1"}

    for _ in range(3):
        complete(site.run("once", "--dry-run", settings=wishes))

    assert outcomes(complete(site.run("once", settings=wishes))).popitem()[1] == "requested"


# ---------------------------------------------------------------- answers of the cloud


@pytest.mark.parametrize(
    ("code", "outcome", "condition"),
    [
        ("UnauthorizedOperation", "denied", "termination_denied"),
        ("OperationNotPermitted", "protected", "termination_protected"),
        ("InvalidInstanceID.Malformed", "invalid_id", "invalid_id"),
        ("IncorrectInstanceState", "failed", "termination_failed"),
    ],
)
def test_a_refusal_of_the_cloud_spoils_only_its_own_machine(site: Site, code: str, outcome: str, condition: str):
    bad, good = site.orphan(age_s=9000), site.orphan(worker="w-2")
    site.cloud.fault(code=code, action=TERMINATE, instance_id=bad)

    document = complete(site.run("once"), code=1)

    assert outcomes(document) == {bad: outcome, good: "requested"}
    assert f"{condition}/aws/{EAST}/{bad}" in [entry["key"] for entry in document["conditions"]]
    assert site.accepted() == [good]
    assert len(site.cloud.terminate_requests(bad)) == 1


def test_a_machine_that_nobody_knows_any_more_is_gone_already(site: Site):
    gone, good = site.orphan(age_s=9000), site.orphan(worker="w-2")
    site.cloud.fault(code="InvalidInstanceID.NotFound", action=TERMINATE, instance_id=gone)

    assert outcomes(complete(site.run("once"))) == {gone: "already_gone", good: "requested"}


def test_protection_is_reported_and_never_lifted(moto_site: Site):
    orphan = moto_site.orphan()
    moto_site.cloud.client().modify_instance_attribute(InstanceId=orphan, DisableApiTermination={"Value": True})
    moto_site.cloud.clear_requests()

    document = complete(moto_site.run("once"), code=1)

    assert outcomes(document) == {orphan: "protected"}
    assert moto_site.mutations() == [(TERMINATE, orphan)]


@pytest.mark.parametrize(
    "fault",
    [{"kind": "lost_reply"}, {"code": "InternalError"}, {"kind": "truncated"}, {"kind": "missing_set"}],
    ids=str,
)
def test_an_answer_that_tells_nothing_is_unknown_and_not_asked_for_again(site: Site, fault: dict[str, str]):
    site.cloud.configure(shutdown_s=None)
    orphan = site.orphan()
    site.cloud.fault(action=TERMINATE, **fault)

    document = complete(site.run("once"), code=1)
    site.cloud.clear_requests()
    again = complete(site.run("once"))

    assert outcomes(document) == {orphan: "unknown"}
    assert reasons(again)[orphan] in {"in_transition", "already_requested"}
    assert site.mutations() == []


def test_a_throttle_ends_the_requests_of_the_pass(site: Site):
    first, second = site.orphan(age_s=9000), site.orphan(worker="w-2")
    site.cloud.fault(code="RequestLimitExceeded", action=TERMINATE)

    document = deferred(site.run("once"), "throttled")
    site.cloud.clear_faults()
    after = complete(site.run("once"))

    assert outcomes(document) == {first: "deferred", second: "deferred"}
    assert outcomes(after) == {first: "requested", second: "requested"}
    assert site.accepted() == sorted([first, second])


@pytest.mark.parametrize("code", ["ExpiredToken", "RequestExpired", "AuthFailure"])
def test_credentials_that_expire_while_acting_defer_the_rest(site: Site, code: str):
    first, second = site.orphan(age_s=9000), site.orphan(worker="w-2")
    site.cloud.fault(code=code, action=TERMINATE, after=1)

    document = deferred(site.run("once"), "credentials_expired")
    site.cloud.clear_faults()
    after = complete(site.run("once"))

    assert outcomes(document) == {first: "requested", second: "deferred"}
    assert outcomes(after) == {first: "confirmed_gone", second: "requested"}
    assert site.accepted() == sorted([first, second])


def test_a_role_is_assumed_with_an_external_id_that_stays_secret(site: Site):
    orphan = site.orphan()
    role = f"arn:aws:iam::{site.account}:role/reaperd"
    site.cloud.add_role(role, EXTERNAL_ID)
    site.configure(more=f'role_arn = "{role}"\nexternal_id = "{EXTERNAL_ID}"\n')

    assert outcomes(complete(site.run("once"))) == {orphan: "requested"}
    assert EXTERNAL_ID in [e.request.params["ExternalId"] for e in site.cloud.requests("AssumeRole")]


# ---------------------------------------------------------------- helpers


class Once:
    """Does something at the first request, and then nothing more."""

    def __init__(self, deed):
        self._deed = deed

    def __call__(self, _request):
        deed, self._deed = self._deed, lambda: None
        deed()


def running_on(site: Site) -> set[str]:
    """Return what runs, asked past the log."""
    found = set()
    for region in (EAST, WEST):
        answer = site.cloud.client("ec2", region).describe_instances()
        states = {i["InstanceId"]: i["State"]["Name"] for r in answer["Reservations"] for i in r["Instances"]}
        found |= {instance_id for instance_id, state in states.items() if state == "running"}
    return found
