"""One account looked over, against a cloud that writes down what it is asked."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from providers.aws import AwsExaminer, AwsOptions, MutatingRequestError, aws_examiner
from providers.aws.hooks import QUESTIONS, READ_ONLY
from providers.aws.probing import DryRunProber
from providers.aws.session import AwsSessions
from providers.base import Examiner
from providers.examination import WRONG_ACCOUNT, Answer, Examination, LeftOut, ScopeExamination
from providers.model import InstanceRef
from reaperd.clock import SystemClock
from tests.support.ec2 import FaultyEc2
from tests.support.ec2.cloud import DEFAULT_ACCOUNT

EAST, WEST, FAR = "us-east-1", "eu-west-1", "ap-south-1"
DENIED = {"action": "TerminateInstances", "code": "UnauthorizedOperation"}


@pytest.fixture
def cloud() -> Iterator[FaultyEc2]:
    """Give a cloud, and hold every test to this: nothing that changes anything ever reached it."""
    with FaultyEc2(regions=(EAST, WEST, FAR)) as started:
        yield started
        assert started.mutating_requests() == []
        assert {e.action for e in started.requests()} <= {
            "AssumeRole",
            "CancelSpotInstanceRequests",
            "DescribeFleets",
            "DescribeInstances",
            "DescribeRegions",
            "DescribeSpotFleetRequests",
            "DescribeSpotInstanceRequests",
            "GetCallerIdentity",
            "TerminateInstances",
        }


def options(cloud: FaultyEc2, **changes: Any) -> AwsOptions:
    given: dict[str, Any] = {
        "name": "aws",
        "deployment": "prod",
        "account": DEFAULT_ACCOUNT,
        "regions": (EAST,),
        "max_attempts": 1,
        "endpoint_url": cloud.url,
    }
    return AwsOptions(**(given | changes))


def examiner(cloud: FaultyEc2, *, sample: int = 20, **changes: Any) -> AwsExaminer:
    given = options(cloud, **changes)
    sessions = AwsSessions(given, allowed=READ_ONLY, questions=QUESTIONS)
    return AwsExaminer(given, sessions, clock=SystemClock(), sample=sample)


def examined(cloud: FaultyEc2, **changes: Any) -> Examination:
    return examiner(cloud, **changes).examine()


def only(found: Examination) -> ScopeExamination:
    (scope,) = found.scopes
    return scope


def answers(scope: ScopeExamination) -> dict[str, Answer]:
    return {probe.ref.instance_id: probe.answer for probe in scope.probes}


def left_out(found: Examination) -> dict[str, LeftOut]:
    return {each.scope.region: each for each in found.left_out}


def raw_client(cloud: FaultyEc2) -> Any:
    given = options(cloud)
    return AwsSessions(given, allowed=READ_ONLY, questions=QUESTIONS).open().ec2(EAST).client


# ---------------------------------------------------------------- what may leave the process


@pytest.mark.parametrize("parameters", [{}, {"DryRun": False}])
def test_a_terminate_that_is_no_question_never_leaves_the_process(cloud: FaultyEc2, parameters: dict[str, bool]):
    instance_id = cloud.add_instance(owner="prod")
    client = raw_client(cloud)

    with pytest.raises(MutatingRequestError, match="TerminateInstances without DryRun"):
        client.terminate_instances(InstanceIds=[instance_id], **parameters)

    assert cloud.requests("TerminateInstances") == []
    assert cloud.state_of(instance_id) == "running"


@pytest.mark.parametrize("parameters", [{}, {"DryRun": False}])
def test_the_end_of_a_spot_request_that_is_no_question_never_leaves_it(cloud: FaultyEc2, parameters: dict[str, bool]):
    with pytest.raises(MutatingRequestError, match="CancelSpotInstanceRequests without DryRun"):
        raw_client(cloud).cancel_spot_instance_requests(SpotInstanceRequestIds=["sir-1"], **parameters)

    assert cloud.requests() == []


@pytest.mark.parametrize(
    "action",
    ["CancelSpotInstanceRequests", "DescribeSpotInstanceRequests", "DescribeFleets", "DescribeSpotFleetRequests"],
)
def test_what_a_termination_needs_besides_is_asked_for_too(cloud: FaultyEc2, action: str):
    cloud.add_instance(owner="prod", spot="persistent")
    cloud.fault(action=action, code="UnauthorizedOperation", http=403)

    (shortfall,) = only(examined(cloud)).shortfalls

    assert (shortfall.permission, shortfall.trouble.code) == (f"ec2:{action}", "UnauthorizedOperation")
    assert shortfall.is_vital == ("Fleet" not in action)


def test_a_cloud_that_allows_everything_leaves_nothing_short(cloud: FaultyEc2):
    cloud.add_instance(owner="prod", spot="persistent")

    scope = only(examined(cloud))

    assert scope.shortfalls == ()
    assert [exchange.request.dry_run for exchange in cloud.requests("CancelSpotInstanceRequests")] == [True]


def test_without_a_spot_request_nobody_asks_to_cancel_one(cloud: FaultyEc2):
    cloud.add_instance(owner="prod")

    examined(cloud)

    assert cloud.requests("CancelSpotInstanceRequests") == []


def test_a_question_that_is_also_allowed_is_still_only_a_question(cloud: FaultyEc2):
    given = options(cloud)
    client = AwsSessions(given, allowed=QUESTIONS, questions=QUESTIONS).open().ec2(EAST).client

    with pytest.raises(MutatingRequestError):
        client.terminate_instances(InstanceIds=["i-1"])


@pytest.mark.parametrize(
    "ask",
    [
        lambda client: client.stop_instances(InstanceIds=["i-1"], DryRun=True),
        lambda client: client.modify_instance_attribute(InstanceId="i-1", DryRun=True),
        lambda client: client.create_tags(Resources=["i-1"], Tags=[], DryRun=True),
    ],
    ids=["stop", "modify", "tag"],
)
def test_nothing_else_leaves_it_even_as_a_question(cloud: FaultyEc2, ask: Any):
    # What is on nobody's list cannot even be named: see test_models.
    with pytest.raises((MutatingRequestError, AttributeError)):
        ask(raw_client(cloud))

    assert [e.action for e in cloud.requests()] == []


def test_the_one_method_of_the_prober_always_says_dry_run(cloud: FaultyEc2):
    instance_id = cloud.add_instance(owner="prod")

    probe = DryRunProber(raw_client(cloud)).ask(InstanceRef("aws", EAST, instance_id))

    assert probe.answer is Answer.ALLOWED
    assert [(e.request.dry_run, e.request.params["DryRun"]) for e in cloud.requests("TerminateInstances")] == [
        (True, "true")
    ]


def test_a_cloud_that_does_not_heed_dry_run_is_asked_about_no_machine(cloud: FaultyEc2):
    cloud.add_instance(owner="prod")
    # The listing's own answer, as if the parameter were not there.
    page = '<DescribeInstancesResponse xmlns="x"><requestId>r</requestId><reservationSet/></DescribeInstancesResponse>'
    cloud.fault("body", action="DescribeInstances", params={"DryRun": "true"}, body=page)

    scope = only(examined(cloud))

    assert scope.probes == ()
    assert scope.trouble is not None
    assert scope.trouble.code == "dry_run_unheeded"
    assert cloud.requests("TerminateInstances") == []


def test_a_question_that_was_taken_for_the_request_is_told_and_is_the_last_one(cloud: FaultyEc2):
    for _ in range(3):
        cloud.add_instance(owner="prod")
    taken = "<instancesSet><item><instanceId>i-1</instanceId></item></instancesSet>"
    body = f'<TerminateInstancesResponse xmlns="x"><requestId>r</requestId>{taken}</TerminateInstancesResponse>'
    cloud.fault("body", action="TerminateInstances", body=body)

    assert [probe.answer for probe in only(examined(cloud)).probes] == [Answer.TAKEN]


# ---------------------------------------------------------------- permissions


def test_our_machines_are_asked_about_oldest_first_and_those_of_others_are_not(cloud: FaultyEc2):
    young, old = cloud.add_instance(owner="prod", age_s=60), cloud.add_instance(owner="prod", age_s=9000)
    cloud.add_instance(owner="other")
    cloud.add_instance(owner="Prod")
    cloud.add_instance(owner="prod", state="shutting-down")

    scope = only(examined(cloud))

    assert answers(scope) == {old: Answer.ALLOWED, young: Answer.ALLOWED}
    assert [probe.ref.instance_id for probe in scope.probes] == [old, young]


def test_no_more_are_asked_about_than_the_sample(cloud: FaultyEc2):
    ids = [cloud.add_instance(owner="prod", age_s=9000 - number) for number in range(5)]

    scope = only(examined(cloud, sample=2))

    assert list(answers(scope)) == ids[:2]
    assert len(scope.owned) == 5


@pytest.mark.parametrize(
    ("code", "answer"),
    [
        ("UnauthorizedOperation", Answer.DENIED),
        ("OperationNotPermitted", Answer.PROTECTED),
        ("InvalidInstanceID.NotFound", Answer.GONE),
    ],
)
def test_what_the_cloud_says_of_one_machine_does_not_end_the_questions(cloud: FaultyEc2, code: str, answer: Answer):
    odd, fine = cloud.add_instance(owner="prod", age_s=9000), cloud.add_instance(owner="prod")
    cloud.fault(action="TerminateInstances", instance_id=odd, code=code)

    scope = only(examined(cloud))

    assert answers(scope) == {odd: answer, fine: Answer.ALLOWED}
    assert scope.probes[0].trouble is not None
    assert scope.probes[0].trouble.code == code


@pytest.mark.parametrize("code", ["RequestLimitExceeded", "AuthFailure", "InternalError"])
def test_after_an_answer_that_is_neither_yes_nor_no_nothing_more_is_asked(cloud: FaultyEc2, code: str):
    for _ in range(3):
        cloud.add_instance(owner="prod")
    cloud.fault(action="TerminateInstances", code=code)

    assert [probe.answer for probe in only(examined(cloud)).probes] == [Answer.UNCLEAR]
    assert len(cloud.requests("TerminateInstances")) == 1


def test_a_region_without_machines_of_ours_is_asked_nothing(cloud: FaultyEc2):
    cloud.add_instance(owner="other")

    scope = only(examined(cloud))

    assert (scope.probes, scope.trouble) == ((), None)
    assert cloud.dry_runs() == []


# ---------------------------------------------------------------- who we are


def test_the_caller_is_named(cloud: FaultyEc2):
    found = examined(cloud)

    assert (found.name, found.account) == ("aws", DEFAULT_ACCOUNT)
    assert found.caller == f"arn:aws:iam::{DEFAULT_ACCOUNT}:user/tester"


def test_in_another_account_nothing_is_looked_at(cloud: FaultyEc2):
    cloud.set_caller_account("999999999999")

    found = examined(cloud)

    assert found.trouble is not None
    assert found.trouble.code == WRONG_ACCOUNT
    assert "999999999999" in found.trouble.detail
    assert {e.action for e in cloud.requests()} == {"GetCallerIdentity"}


def test_without_a_pin_any_account_is_looked_at(cloud: FaultyEc2):
    cloud.set_caller_account("999999999999")

    found = examined(cloud, account=None)

    assert (found.account, found.trouble) == ("999999999999", None)


def test_no_credentials_at_all_are_told(cloud: FaultyEc2, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")

    found = examined(cloud)

    assert found.trouble is not None
    assert found.trouble.code == "no_credentials"
    assert cloud.requests() == []


def test_an_identity_that_is_refused_is_told_with_its_code(cloud: FaultyEc2):
    cloud.fault(action="GetCallerIdentity", code="ExpiredToken")

    found = examined(cloud)

    assert found.trouble is not None
    assert found.trouble.code == "ExpiredToken"


# ---------------------------------------------------------------- regions


def test_a_region_that_is_left_out_and_holds_machines_is_counted(cloud: FaultyEc2):
    cloud.add_instance(region=WEST, owner="prod")
    cloud.add_instance(region=WEST, owner="other")
    cloud.add_instance(region=WEST, owner="prod", state="terminated")

    found = examined(cloud)

    assert found.enabled == {EAST, WEST, FAR}
    assert (left_out(found)[WEST].instances, left_out(found)[WEST].owned) == (2, 1)
    assert (left_out(found)[FAR].instances, left_out(found)[FAR].trouble) == (0, None)


def test_all_enabled_regions_leave_none_out(cloud: FaultyEc2):
    found = examined(cloud, regions=None)

    assert {scope.coverage.scope.region for scope in found.scopes} == {EAST, WEST, FAR}
    assert found.left_out == ()


def test_a_region_that_fails_takes_no_other_with_it(cloud: FaultyEc2):
    cloud.fault(region=WEST, action="DescribeInstances", code="AuthFailure")
    cloud.fault(region=FAR, action="DescribeInstances", code="UnauthorizedOperation")
    cloud.add_instance(owner="prod")

    found = examined(cloud, regions=(EAST, WEST))

    codes = {scope.coverage.scope.region: scope.coverage.error_code for scope in found.scopes}
    assert codes == {EAST: None, WEST: "AuthFailure"}
    assert left_out(found)[FAR].trouble is not None
    assert len(found.scopes[1].probes) == 1


def test_regions_that_cannot_be_asked_for_are_told_and_the_named_ones_looked_at(cloud: FaultyEc2):
    cloud.fault(action="DescribeRegions", code="UnauthorizedOperation")

    found = examined(cloud)

    assert found.enabled is None
    assert found.enabled_trouble is not None
    assert found.enabled_trouble.code == "UnauthorizedOperation"
    assert only(found).coverage.ok


def test_a_region_that_does_not_answer_is_late_and_the_others_are_not(cloud: FaultyEc2):
    cloud.fault("hang", region=WEST)
    cloud.fault("hang", region=FAR)

    found = examined(cloud, regions=(EAST, WEST), listing_timeout=timedelta(seconds=1.5))

    assert [scope.coverage.error_code for scope in found.scopes] == ["deadline", None]
    assert left_out(found)[FAR].trouble is not None


def test_the_clock_of_each_region_is_compared(cloud: FaultyEc2):
    cloud.fault(region=EAST, date_skew_s=-300)

    skew = only(examined(cloud)).coverage.clock_skew

    assert skew is not None
    assert timedelta(seconds=290) < skew < timedelta(seconds=310)


def test_it_is_an_examiner_and_no_terminator(cloud: FaultyEc2):
    made = aws_examiner(options(cloud), clock=SystemClock())

    assert isinstance(made, Examiner)
    assert not hasattr(made, "terminate")
