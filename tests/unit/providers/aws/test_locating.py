"""Single machines by their ids: what EC2 says of one is believed, and nothing that it does not say (rule 22)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pytest

from providers.aws.locating import ASKING, AT_ONCE
from providers.locations import Gone, Location, NotKnown, There
from providers.model import InstanceRef, InstanceState
from reaperd.clock import ManualClock, SystemClock
from tests.unit.providers.aws.builders import REF, REGION, SHORT, lister
from tests.unit.providers.aws.canned import (
    NOW,
    OWNED,
    CannedAws,
    Reply,
    failure,
    identity,
    instance,
    page,
    reservation,
    sts_failure,
)

SEVERAL = [InstanceRef("aws", REGION, f"i-{number}") for number in range(1, 5)]
RUNS = There(InstanceState.RUNNING, "prod")


def absent(*names: str) -> Reply:
    what = f"IDs '{', '.join(names)}' do" if len(names) > 1 else f"ID '{names[0]}' does"
    return failure("InvalidInstanceID.NotFound", message=f"The instance {what} not exist")


def malformed(name: str) -> Reply:
    return failure("InvalidInstanceID.Malformed", message=f"Invalid id: &quot;{name}&quot;")


def there(*names: str, **facts: Any) -> Reply:
    return Reply(page(*(reservation(instance(name, **facts)) for name in names)))


def where(canned: CannedAws, refs: Iterable[InstanceRef] = (REF,), **changes: Any) -> dict[str, Location]:
    """Return what is said of each machine, by its id."""
    return {ref.instance_id: found for ref, found in lister(canned, **changes).locate(list(refs)).items()}


def asked(canned: CannedAws) -> list[list[str]]:
    """Return the ids of each request for machines."""
    requests = canned.asked("DescribeInstances")
    return [[value for key, value in request.items() if key.startswith("InstanceId.")] for request in requests]


def detail(found: Location) -> str:
    assert isinstance(found, NotKnown)
    return found.detail


# ---------------------------------------------------------------- what EC2 says


@pytest.mark.parametrize("tags", [{}, {"Name": "x"}, {"reaperd:worker-id": "w-1"}, {"reaperd:owner": ""}], ids=repr)
def test_a_machine_without_our_tag_is_there(canned: CannedAws, tags: dict[str, str]) -> None:
    canned.will("DescribeInstances", there("i-1", tags=tags))

    assert where(canned) == {"i-1": There(InstanceState.RUNNING)}


def test_a_machine_is_asked_for_by_its_id_alone(canned: CannedAws) -> None:
    canned.will("DescribeInstances", there("i-1"))

    assert where(canned) == {"i-1": RUNS}
    (request,) = canned.asked("DescribeInstances")
    assert [key for key in request if key.startswith(("Filter", "MaxResults"))] == []
    assert (request["InstanceId.1"], request["IncludeManagedResources"]) == ("i-1", "true")


@pytest.mark.parametrize(
    ("state", "found"),
    [
        ("pending", InstanceState.PENDING),
        ("stopped", InstanceState.STOPPED),
        ("shutting-down", InstanceState.SHUTTING_DOWN),
        ("something-new", InstanceState.UNKNOWN),
    ],
)
def test_a_machine_is_there_in_whatever_state_but_one(canned: CannedAws, state: str, found: InstanceState) -> None:
    canned.will("DescribeInstances", there("i-1", state=state, tags=OWNED))

    assert where(canned) == {"i-1": There(found, "prod")}


def test_a_terminated_machine_is_gone(canned: CannedAws) -> None:
    canned.will("DescribeInstances", there("i-1", state="terminated", tags={}))

    assert where(canned) == {"i-1": Gone()}


def test_what_is_terminated_in_another_account_says_nothing_of_ours(canned: CannedAws) -> None:
    ended = reservation(instance("i-1", state="terminated"), owner="999999999999")
    canned.will("DescribeInstances", Reply(page(ended)))

    assert "another account" in detail(where(canned)["i-1"])


@pytest.mark.parametrize("names", [("i-2",), ("i-11",), ("i-2", "i-3")], ids=repr)
def test_that_another_id_is_absent_says_nothing_of_the_one_that_was_asked_for(
    canned: CannedAws, names: tuple[str, ...]
) -> None:
    canned.will("DescribeInstances", absent(*names))

    assert "NotFound" in detail(where(canned)["i-1"])


def test_an_id_that_ec2_does_not_have_is_gone(canned: CannedAws) -> None:
    canned.will("DescribeInstances", absent("i-1"))

    assert where(canned) == {"i-1": Gone()}


# ---------------------------------------------------------------- what it does not say


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (failure("UnauthorizedOperation", 403), "UnauthorizedOperation"),
        (failure("RequestLimitExceeded", 503), "RequestLimitExceeded"),
        (failure("InternalError", 500), "InternalError"),
        # By its words an end, and yet an error of the server's: it says nothing of the machine.
        (failure("InvalidInstanceID.NotFound", 500, "The instance ID 'i-1' does not exist"), "InvalidInstanceID"),
        (malformed("i-1"), "InvalidInstanceID.Malformed"),
        (failure("InvalidParameterValue"), "InvalidParameterValue"),
        (failure("AuthFailure", 401), "AuthFailure"),
        (Reply("", status=503), "http_503"),
        (Reply("<html><body/></html>", content_type="text/html"), "malformed_answer"),
        (Reply(page(), cut=20), "malformed_answer"),
        (Reply("", hang=True), "read_timeout"),
        (Reply(page()), "answered without it"),
        (there("i-2"), "malformed answer: asked for 1 machines, got i-2"),
        (there("i-1", "i-1"), "malformed answer"),
        (there("i-1", "i-2"), "malformed answer"),
        (Reply(page(reservation(instance("i-1", state="terminated")), token="more")), "malformed answer"),
    ],
)
def test_what_is_no_word_on_the_machine_is_not_known(canned: CannedAws, reply: Reply, why: str) -> None:
    canned.will("DescribeInstances", reply)

    found = where(canned, **({"read_timeout": SHORT} if reply.hang else {}))

    assert detail(found["i-1"]).startswith(why)


# ---------------------------------------------------------------- several


def test_those_that_are_absent_are_named_and_the_others_are_asked_about_again(canned: CannedAws) -> None:
    canned.will("DescribeInstances", absent("i-2", "i-3"), there("i-1", "i-4"))

    assert where(canned, SEVERAL) == {"i-1": RUNS, "i-2": Gone(), "i-3": Gone(), "i-4": RUNS}
    assert asked(canned) == [["i-1", "i-2", "i-3", "i-4"], ["i-1", "i-4"]]


def test_all_of_them_may_be_absent(canned: CannedAws) -> None:
    canned.will("DescribeInstances", absent("i-1", "i-2", "i-3", "i-4"))

    assert where(canned, SEVERAL) == dict.fromkeys(["i-1", "i-2", "i-3", "i-4"], Gone())
    assert len(asked(canned)) == 1


def test_a_name_within_another_name_is_not_meant(canned: CannedAws) -> None:
    refs = [InstanceRef("aws", REGION, name) for name in ("i-1", "i-11")]
    canned.will("DescribeInstances", absent("i-11"), there("i-1"))

    assert where(canned, refs) == {"i-1": RUNS, "i-11": Gone()}


def test_where_nobody_says_which_is_absent_each_half_is_asked_about(canned: CannedAws) -> None:
    nameless = failure("InvalidInstanceID.NotFound", message="no")
    canned.will("DescribeInstances", nameless, nameless, there("i-1"), nameless, there("i-3", "i-4"))

    assert where(canned, SEVERAL) == {"i-1": RUNS, "i-2": Gone(), "i-3": RUNS, "i-4": RUNS}
    assert asked(canned) == [["i-1", "i-2", "i-3", "i-4"], ["i-1", "i-2"], ["i-1"], ["i-2"], ["i-3", "i-4"]]


def test_an_id_that_is_none_spoils_no_other(canned: CannedAws) -> None:
    bad = malformed("i-2")
    canned.will("DescribeInstances", bad, there("i-1"), bad, bad, there("i-3"))

    found = where(canned, SEVERAL[:3])

    assert detail(found.pop("i-2")).startswith("InvalidInstanceID.Malformed")
    assert found == {"i-1": RUNS, "i-3": RUNS}


def test_an_error_of_another_kind_is_one_of_all_that_were_asked_for_together(canned: CannedAws) -> None:
    canned.will("DescribeInstances", failure("RequestLimitExceeded", 503))

    assert {type(found) for found in where(canned, SEVERAL).values()} == {NotKnown}
    assert len(asked(canned)) == 1


def test_a_machine_that_is_passed_over_in_silence_is_not_known(canned: CannedAws) -> None:
    canned.will("DescribeInstances", there("i-1", "i-2", "i-4"))

    found = where(canned, SEVERAL)

    assert detail(found.pop("i-3")) == "answered without it"
    assert set(found.values()) == {RUNS}


def test_many_are_asked_for_in_several_requests(canned: CannedAws) -> None:
    names = [f"i-{number:03}" for number in range(AT_ONCE + 1)]
    canned.will("DescribeInstances", absent(*names[:AT_ONCE]), absent(names[-1]))

    found = where(canned, [InstanceRef("aws", REGION, name) for name in names])

    assert set(found.values()) == {Gone()}
    assert [len(ids) for ids in asked(canned)] == [AT_ONCE, 1]


def test_when_the_time_is_up_no_other_request_begins_and_what_was_answered_is_told(canned: CannedAws) -> None:
    clock = ManualClock(NOW)
    names = [f"i-{number:03}" for number in range(AT_ONCE + 1)]
    first = absent(*names[:AT_ONCE])
    slow = Reply(first.body, first.status, before=lambda: clock.advance(ASKING))
    canned.will("DescribeInstances", slow)

    found = where(canned, [InstanceRef("aws", REGION, name) for name in names], clock=clock)

    assert detail(found.pop(names[-1])) == "not asked: the time was up"
    assert set(found.values()) == {Gone()}


# ---------------------------------------------------------------- where, and who


def test_each_machine_is_asked_for_in_its_own_region(canned: CannedAws) -> None:
    refs = [InstanceRef("aws", region, "i-1") for region in ("us-east-1", "eu-west-1")]
    canned.will("DescribeInstances", there("i-1"))

    found = lister(canned, regions=("us-east-1", "eu-west-1")).locate(refs)

    assert found == dict.fromkeys(refs, RUNS)
    assert asked(canned) == [["i-1"], ["i-1"]]


@pytest.mark.parametrize("elsewhere", [InstanceRef("aws", "us-east-1", "i-1"), InstanceRef("other", REGION, "i-1")])
def test_a_place_that_is_not_looked_into_is_not_asked(canned: CannedAws, elsewhere: InstanceRef) -> None:
    canned.will("DescribeInstances", absent("i-1"))

    assert isinstance(lister(canned).locate([elsewhere])[elsewhere], NotKnown)
    assert canned.requests == []


def test_nothing_is_sent_for_nobody(canned: CannedAws) -> None:
    assert lister(canned).locate([]) == {}
    assert canned.requests == []


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (Reply(identity("999999999999")), "wrong_account"),
        (sts_failure("ExpiredToken"), "ExpiredToken"),
        (Reply(identity("")), "malformed_answer"),
    ],
)
def test_another_account_would_not_know_our_machines(canned: CannedAws, reply: Reply, why: str) -> None:
    canned.will("GetCallerIdentity", reply)
    canned.will("DescribeInstances", absent("i-1"))

    assert detail(where(canned)["i-1"]).startswith(why)
    assert asked(canned) == []


def test_without_a_pinned_account_nobody_is_proved_to_be_asked(canned: CannedAws) -> None:
    canned.will("DescribeInstances", absent("i-1"))

    assert detail(where(canned, account=None)["i-1"]).startswith("no_account")
    assert asked(canned) == []


@pytest.mark.timeout(60)
def test_a_region_that_hangs_spoils_no_other(canned: CannedAws) -> None:
    refs = [InstanceRef("aws", region, "i-1") for region in ("us-east-1", "eu-west-1")]
    canned.will("DescribeInstances", Reply("", hang=True), there("i-1"))

    account = lister(canned, clock=SystemClock(), regions=("us-east-1", "eu-west-1"), read_timeout=SHORT)
    found = account.locate(refs)

    assert sorted(type(each).__name__ for each in found.values()) == ["NotKnown", "There"]


def test_a_region_that_never_answers_is_not_waited_for(canned: CannedAws) -> None:
    clock = ManualClock(NOW)
    late = there("i-1")
    canned.will("DescribeInstances", Reply(late.body, before=lambda: clock.advance(timedelta(minutes=1))))

    assert detail(where(canned, clock=clock)["i-1"]) == "no answer in time"
