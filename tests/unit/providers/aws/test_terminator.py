"""One termination: the second look, the spot request, the request, and what its answer means."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from mypy_boto3_ec2 import EC2Client

from providers.aws import AwsTerminator, MutatingRequestError, aws_lister, aws_terminator
from providers.aws.hooks import READ_ONLY, TERMINATING
from providers.aws.session import AwsSessions
from providers.base import Lister, Permission, Terminator
from providers.errors import (
    CredentialsExpiredError,
    InstanceChangedError,
    InstanceNotFoundError,
    InvalidInstanceIdError,
    ProviderSetupError,
    SpotRequestNotCancelledError,
    TerminateError,
    TerminateRejectedError,
    TerminationDeniedError,
    TerminationProtectedError,
    TerminationWithdrawnError,
    ThrottledError,
    UnknownResultError,
)
from providers.model import InstanceRef, OwnedInstance
from reaperd.clock import ManualClock, SystemClock
from tests.unit.providers.aws.builders import REF, REGION, lister, options, patience, terminator
from tests.unit.providers.aws.canned import (
    NOW,
    OWNED,
    CannedAws,
    Reply,
    answer,
    cancelled,
    failure,
    fleets,
    identity,
    instance,
    page,
    regions,
    reservation,
    spot_requests,
    sts_failure,
    terminating,
)

MUTATING = {"TerminateInstances", "CancelSpotInstanceRequests"}
SPOT = instance(more="<spotInstanceRequestId>sir-1</spotInstanceRequestId><instanceLifecycle>spot</instanceLifecycle>")


@pytest.fixture
def aws(canned: CannedAws) -> CannedAws:
    canned.will("DescribeInstances", Reply(page(reservation(instance()))))
    canned.will("TerminateInstances", Reply(terminating()))
    return canned


def sent(aws: CannedAws) -> list[str]:
    return [action for action in aws.actions if action in MUTATING]


def refusal(
    aws: CannedAws,
    *,
    seen: OwnedInstance | None = None,
    ref: InstanceRef = REF,
    permitted: Permission | None = None,
    **changes: Any,
) -> TerminateError:
    with pytest.raises(TerminateError) as raised:
        terminator(aws, **changes).terminate(ref, seen=seen, permitted=permitted)
    return raised.value


def seen_by(aws: CannedAws) -> OwnedInstance:
    (machine,) = lister(aws).list_owned()
    return machine


def test_looks_at_the_machine_again_and_asks_for_its_end(aws: CannedAws) -> None:
    terminator(aws).terminate(REF)

    assert aws.actions == ["GetCallerIdentity", "DescribeInstances", "TerminateInstances"]
    (looked,), (asked,) = aws.asked("DescribeInstances"), aws.asked("TerminateInstances")
    assert looked["InstanceId.1"] == asked["InstanceId.1"] == "i-1"
    assert looked["IncludeManagedResources"] == "true"
    assert "InstanceId.2" not in asked


def test_ends_the_machine_that_was_seen(aws: CannedAws) -> None:
    terminator(aws).terminate(REF, seen=seen_by(aws))

    assert sent(aws) == ["TerminateInstances"]


def test_ends_a_machine_of_moto(moto_ec2: EC2Client) -> None:
    tags = [{"Key": key, "Value": value} for key, value in OWNED.items()]
    launched = moto_ec2.run_instances(
        ImageId="ami-12345678",
        MinCount=1,
        MaxCount=1,
        TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],  # type: ignore[typeddict-item]
    )["Instances"][0]["InstanceId"]
    given = options(regions=("us-east-1",))
    (machine,) = aws_lister(given, clock=SystemClock()).list_owned()

    aws_terminator(given, clock=SystemClock()).terminate(machine.ref, seen=machine)

    state = moto_ec2.describe_instances(InstanceIds=[launched])["Reservations"][0]["Instances"][0]["State"]["Name"]
    assert state == "terminated"


def test_a_protected_machine_of_moto_stays_protected(moto_ec2: EC2Client) -> None:
    tags = [{"Key": "reaperd:owner", "Value": "prod"}]
    launched = moto_ec2.run_instances(
        ImageId="ami-12345678",
        MinCount=1,
        MaxCount=1,
        TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],  # type: ignore[typeddict-item]
    )["Instances"][0]["InstanceId"]
    moto_ec2.modify_instance_attribute(InstanceId=launched, DisableApiTermination={"Value": True})

    with pytest.raises(TerminationProtectedError):
        aws_terminator(options(regions=("us-east-1",)), clock=SystemClock()).terminate(
            InstanceRef("aws", "us-east-1", launched)
        )


@pytest.mark.parametrize(
    ("now", "word"),
    [
        (instance(tags={}), "owner tag"),
        (instance(tags={"reaperd:owner": "PROD"}), "owner tag"),
        (instance(tags={"reaperd:owner": "prod "}), "owner tag"),
        (instance(tags=OWNED | {"Reaperd:Protect": ""}), "protect"),
        (instance(tags=OWNED | {"aws:autoscaling:groupName": "web"}), "autoscaling:web"),
        (instance(tags=OWNED | {"aws:ec2:fleet-id": "fleet-unreadable"}), "fleet:fleet-unreadable"),
        (instance(more="<operator><managed>true</managed><principal>eks</principal></operator>"), "operator:eks"),
        (instance(state="shutting-down"), "shutting-down"),
        (instance(tags=OWNED | {"reaperd:worker-id": "w-2"}), "worker tag"),
        (instance(tags=OWNED | {"reaperd:registry-id": "r-2"}), "registry tag"),
        (instance(launched="2026-11-29T11:00:00.000Z"), "launched"),
    ],
)
def test_a_changed_machine_is_spared(aws: CannedAws, now: str, word: str) -> None:
    seen = seen_by(aws)
    aws.will("DescribeInstances", Reply(page(reservation(now))))

    error = refusal(aws, seen=seen)

    assert isinstance(error, InstanceChangedError)
    assert word in str(error)
    assert sent(aws) == []


def test_a_machine_of_another_account_is_spared(aws: CannedAws) -> None:
    aws.will("DescribeInstances", Reply(page(reservation(instance(), owner="999999999999"))))

    assert isinstance(refusal(aws), InstanceChangedError)
    assert sent(aws) == []


def test_a_machine_that_has_ended_is_not_found(aws: CannedAws) -> None:
    aws.will("DescribeInstances", Reply(page(reservation(instance(state="terminated")))))

    assert isinstance(refusal(aws), InstanceNotFoundError)
    assert sent(aws) == []


def test_a_machine_of_an_instant_fleet_may_be_ended(aws: CannedAws) -> None:
    aws.will("DescribeInstances", Reply(page(reservation(instance(tags=OWNED | {"aws:ec2:fleet-id": "fleet-a"})))))
    aws.will("DescribeFleets", Reply(fleets(fleet_a="instant")))

    terminator(aws).terminate(REF)

    assert sent(aws) == ["TerminateInstances"]


@pytest.mark.parametrize(
    ("reply", "kind", "code"),
    [
        (failure("InvalidInstanceID.NotFound"), InstanceNotFoundError, "InvalidInstanceID.NotFound"),
        (failure("InvalidInstanceID.Malformed"), InvalidInstanceIdError, "InvalidInstanceID.Malformed"),
        (failure("RequestLimitExceeded", 503), ThrottledError, "RequestLimitExceeded"),
        (failure("Throttling"), ThrottledError, "Throttling"),
        (failure("ExpiredToken"), CredentialsExpiredError, "ExpiredToken"),
        (failure("AuthFailure", 401), CredentialsExpiredError, "AuthFailure"),
        (failure("UnauthorizedOperation", 403), TerminateRejectedError, "relook_failed:UnauthorizedOperation"),
        (failure("OperationNotPermitted"), TerminateRejectedError, "relook_failed:OperationNotPermitted"),
        (failure("InternalError", 500), TerminateRejectedError, "relook_failed:InternalError"),
        (Reply("", hang=True), TerminateRejectedError, "relook_failed:read_timeout"),
        (Reply("<html/>"), TerminateRejectedError, "relook_failed:malformed_answer"),
        (Reply("<html>"), TerminateRejectedError, "relook_failed:malformed_answer"),
        (Reply(page()), TerminateRejectedError, "relook_failed:malformed_answer"),
        (Reply(page(reservation(instance("i-2")))), TerminateRejectedError, "relook_failed:malformed_answer"),
        (
            Reply(page(reservation(instance("i-1"), instance("i-2")))),
            TerminateRejectedError,
            "relook_failed:malformed_answer",
        ),
        (
            Reply(page(reservation(instance()), token="t")),
            TerminateRejectedError,
            "relook_failed:malformed_answer",
        ),
    ],
)
def test_a_second_look_that_fails_sends_nothing(
    aws: CannedAws, reply: Reply, kind: type[TerminateError], code: str
) -> None:
    aws.will("DescribeInstances", reply)

    error = refusal(aws, **patience(reply))

    assert type(error) is kind
    assert error.error_code == code
    assert sent(aws) == []


def test_a_second_look_that_took_too_long_sends_nothing(aws: CannedAws) -> None:
    clock = ManualClock(NOW)
    late = Reply(page(reservation(SPOT)), before=lambda: clock.advance(timedelta(seconds=61)))
    aws.will("DescribeInstances", late)

    with pytest.raises(TerminateRejectedError, match="relook_failed:deadline"):
        terminator(aws, clock=clock).terminate(REF)

    assert sent(aws) == []


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (failure("InvalidInstanceID.NotFound"), InstanceNotFoundError),
        (failure("InvalidInstanceID.Malformed"), InvalidInstanceIdError),
        (failure("OperationNotPermitted"), TerminationProtectedError),
        (failure("UnauthorizedOperation", 403), TerminationDeniedError),
        (failure("AccessDenied", 403), TerminationDeniedError),
        (failure("RequestLimitExceeded", 503), ThrottledError),
        (failure("ThrottlingException"), ThrottledError),
        (failure("ExpiredToken"), CredentialsExpiredError),
        (failure("RequestExpired"), CredentialsExpiredError),
        (failure("AuthFailure", 401), CredentialsExpiredError),
        (failure("UnsupportedOperation"), TerminateRejectedError),
        (failure("InternalError", 500), UnknownResultError),
        (failure("Unavailable", 503), UnknownResultError),
        (failure("RequestTimeout", 408), UnknownResultError),
        (Reply("", status=502), UnknownResultError),
        (Reply("<a><b/></a>", status=302), UnknownResultError),
        (Reply("", hang=True), UnknownResultError),
        (Reply(terminating(), cut=40), UnknownResultError),
        (Reply("<html/>"), UnknownResultError),
        (Reply("<html/>", content_type="text/html"), UnknownResultError),
        (Reply(terminating(), status=202), UnknownResultError),
        (Reply(answer("TerminateInstances", "<instancesSet/>")), UnknownResultError),
        (Reply(terminating("i-2")), UnknownResultError),
        (Reply(terminating(state="running")), UnknownResultError),
    ],
)
def test_an_answer_to_the_request_is_understood(aws: CannedAws, reply: Reply, kind: type[TerminateError]) -> None:
    aws.will("TerminateInstances", reply)

    error = refusal(aws, **patience(reply))

    assert type(error) is kind
    assert error.error_code
    assert set(sent(aws)) == {"TerminateInstances"}


def test_a_refused_request_is_not_repeated(aws: CannedAws) -> None:
    aws.will("TerminateInstances", failure("OperationNotPermitted"))

    refusal(aws)

    assert sent(aws) == ["TerminateInstances"]


@pytest.mark.parametrize("first", [failure("RequestLimitExceeded", 503), failure("InternalError", 500)])
def test_a_throttle_or_a_lost_answer_is_asked_again(aws: CannedAws, first: Reply) -> None:
    aws.will("TerminateInstances", first, Reply(terminating()))

    terminator(aws).terminate(REF)

    assert sent(aws) == ["TerminateInstances"] * 2


@pytest.mark.parametrize(
    "second",
    [
        failure("RequestLimitExceeded", 503),
        failure("UnauthorizedOperation", 403),
        failure("InvalidInstanceID.NotFound"),
    ],
)
def test_once_an_answer_was_lost_no_refusal_makes_it_certain(aws: CannedAws, second: Reply) -> None:
    aws.will("TerminateInstances", failure("InternalError", 500), second)

    assert isinstance(refusal(aws), UnknownResultError)


def test_nothing_is_repeated_once_the_second_look_is_old(aws: CannedAws) -> None:
    clock = ManualClock(NOW)
    slow = failure("RequestLimitExceeded", 503)
    aws.will(
        "TerminateInstances",
        Reply(slow.body, status=503, before=lambda: clock.advance(timedelta(seconds=60))),
        Reply(terminating()),
    )

    with pytest.raises(ThrottledError):
        terminator(aws, clock=clock).terminate(REF)

    assert sent(aws) == ["TerminateInstances"]


@pytest.mark.parametrize(
    ("first", "kind"),
    [(failure("RequestLimitExceeded", 503), ThrottledError), (failure("InternalError", 500), UnknownResultError)],
)
def test_nothing_is_repeated_once_the_process_is_to_end(
    aws: CannedAws, first: Reply, kind: type[TerminateError]
) -> None:
    aws.will("TerminateInstances", first, Reply(terminating()))

    with pytest.raises(kind):
        terminator(aws, stopping=lambda: True).terminate(REF)

    assert sent(aws) == ["TerminateInstances"]


@pytest.mark.parametrize("state", ["open", "active", "disabled", "something-new"])
def test_a_persistent_spot_request_is_cancelled_first(aws: CannedAws, state: str) -> None:
    aws.will("DescribeInstances", Reply(page(reservation(SPOT))))
    aws.will("DescribeSpotInstanceRequests", Reply(spot_requests(state=state)))
    aws.will("CancelSpotInstanceRequests", Reply(cancelled()))

    terminator(aws).terminate(REF)

    assert sent(aws) == ["CancelSpotInstanceRequests", "TerminateInstances"]
    assert aws.asked("CancelSpotInstanceRequests")[0]["SpotInstanceRequestId.1"] == "sir-1"


@pytest.mark.parametrize(
    "reply",
    [
        Reply(spot_requests(kind="one-time")),
        Reply(spot_requests(state="cancelled")),
        Reply(spot_requests(state="closed")),
        failure("InvalidSpotInstanceRequestID.NotFound"),
    ],
)
def test_a_spot_request_that_brings_nothing_back_is_left_alone(aws: CannedAws, reply: Reply) -> None:
    aws.will("DescribeInstances", Reply(page(reservation(SPOT))))
    aws.will("DescribeSpotInstanceRequests", reply)

    terminator(aws).terminate(REF)

    assert sent(aws) == ["TerminateInstances"]


@pytest.mark.parametrize(
    ("described", "then"),
    [
        (failure("UnauthorizedOperation", 403), None),
        (failure("RequestLimitExceeded", 503), None),
        (failure("ExpiredToken"), None),
        (Reply("<html/>"), None),
        (Reply(spot_requests(request_id="sir-2")), None),
        (Reply(spot_requests()), failure("UnauthorizedOperation", 403)),
        (Reply(spot_requests()), failure("InvalidSpotInstanceRequestID.NotFound")),
        (Reply(spot_requests()), failure("RequestLimitExceeded", 503)),
        (Reply(spot_requests()), failure("InternalError", 500)),
        (Reply(spot_requests()), Reply("", hang=True)),
        (Reply(spot_requests()), Reply(cancelled(state="active"))),
        (Reply(spot_requests()), Reply(cancelled(request_id="sir-2"))),
        (Reply(spot_requests()), Reply("<html/>")),
    ],
)
def test_a_spot_request_that_stands_saves_its_machine(aws: CannedAws, described: Reply, then: Reply | None) -> None:
    aws.will("DescribeInstances", Reply(page(reservation(SPOT))))
    aws.will("DescribeSpotInstanceRequests", described)
    if then is not None:
        aws.will("CancelSpotInstanceRequests", then)

    assert type(refusal(aws, **patience(then or described))) is SpotRequestNotCancelledError
    assert "TerminateInstances" not in aws.actions


# ---------------------------------------------------------------- leave


def asked_of(*answers: bool) -> tuple[Permission, list[bool]]:
    """Return a permission that gives these answers, and those that are left."""
    left = list(answers)
    return (lambda: left.pop(0)), left


def test_nothing_is_sent_without_leave(aws: CannedAws) -> None:
    permitted, left = asked_of(False)

    assert type(refusal(aws, permitted=permitted)) is TerminationWithdrawnError
    assert (sent(aws), left) == ([], [])
    assert aws.actions[-1] == "DescribeInstances"


def test_the_spot_request_of_a_machine_that_is_needed_is_left_alone(aws: CannedAws) -> None:
    aws.will("DescribeInstances", Reply(page(reservation(SPOT))))
    aws.will("DescribeSpotInstanceRequests", Reply(spot_requests()))
    permitted, _ = asked_of(False)

    assert type(refusal(aws, permitted=permitted)) is TerminationWithdrawnError
    assert sent(aws) == []
    assert aws.actions[-1] == "DescribeSpotInstanceRequests"


def test_leave_is_asked_for_again_once_the_spot_request_is_cancelled(aws: CannedAws) -> None:
    aws.will("DescribeInstances", Reply(page(reservation(SPOT))))
    aws.will("DescribeSpotInstanceRequests", Reply(spot_requests()))
    aws.will("CancelSpotInstanceRequests", Reply(cancelled()))
    permitted, left = asked_of(True, False)

    error = refusal(aws, permitted=permitted)

    assert (type(error), left) == (TerminationWithdrawnError, [])
    assert sent(aws) == ["CancelSpotInstanceRequests"]
    assert "its spot request is cancelled already" in error.detail


@pytest.mark.parametrize(
    ("first", "kind"),
    [
        (failure("RequestLimitExceeded", 503), TerminationWithdrawnError),
        (failure("InternalError", 500), UnknownResultError),
    ],
)
def test_leave_is_asked_for_before_each_repetition(aws: CannedAws, first: Reply, kind: type[TerminateError]) -> None:
    aws.will("TerminateInstances", first, Reply(terminating()))
    permitted, left = asked_of(True, False)

    # Once an answer was lost, nothing makes it certain that the first request was not accepted.
    assert type(refusal(aws, permitted=permitted)) is kind
    assert (sent(aws), left) == (["TerminateInstances"], [])


def test_a_leave_that_took_too_long_sends_nothing(aws: CannedAws) -> None:
    # Meanwhile it may have got a protect tag.
    clock = ManualClock(NOW)

    def permitted() -> bool:
        clock.advance(timedelta(seconds=61))
        return True

    with pytest.raises(TerminateRejectedError, match="relook_failed:deadline"):
        terminator(aws, clock=clock).terminate(REF, permitted=permitted)

    assert sent(aws) == []


def test_with_leave_the_machine_is_ended(aws: CannedAws) -> None:
    permitted, left = asked_of(True)

    terminator(aws).terminate(REF, permitted=permitted)

    assert (sent(aws), left) == (["TerminateInstances"], [])


@pytest.mark.parametrize(
    ("ref", "code"),
    [
        (InstanceRef("aws", "us-east-1", "i-1"), "unknown_region"),
        (InstanceRef("aws", "", "i-1"), "unknown_region"),
        (InstanceRef("gcp", REGION, "i-1"), "unknown_provider"),
    ],
)
def test_a_place_that_is_not_covered_is_an_error(aws: CannedAws, ref: InstanceRef, code: str) -> None:
    error = refusal(aws, ref=ref)

    assert isinstance(error, TerminateRejectedError)
    assert error.error_code == code
    assert "DescribeInstances" not in aws.actions
    assert sent(aws) == []


def test_regions_found_by_themselves_are_covered(aws: CannedAws) -> None:
    aws.will("DescribeRegions", Reply(regions(REGION)))
    built = terminator(aws, regions=None)

    built.terminate(REF)
    with pytest.raises(TerminateRejectedError, match="unknown_region"):
        built.terminate(InstanceRef("aws", "eu-west-2", "i-1"))


def test_regions_that_cannot_be_had_cover_nothing(aws: CannedAws) -> None:
    aws.will("DescribeRegions", failure("UnauthorizedOperation", 403))

    with pytest.raises(TerminateRejectedError, match="relook_failed:UnauthorizedOperation"):
        terminator(aws, regions=None).terminate(REF)


def test_an_endpoint_that_is_none_terminates_nothing(aws: CannedAws, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", aws.url)
    monkeypatch.setenv("AWS_ENDPOINT_URL_EC2", "not a url")

    with pytest.raises(TerminateRejectedError, match="relook_failed"):
        aws_terminator(options(), clock=ManualClock(NOW)).terminate(REF)


@pytest.mark.parametrize(
    ("reply", "kind", "code"),
    [
        (Reply(identity("999999999999")), TerminateRejectedError, "wrong_account"),
        (Reply("<html/>"), TerminateRejectedError, "unproven:malformed_answer"),
        (Reply("", hang=True), TerminateRejectedError, "unproven:read_timeout"),
        (sts_failure("ExpiredToken"), CredentialsExpiredError, "ExpiredToken"),
        (sts_failure("Throttling", 400), ThrottledError, "Throttling"),
    ],
)
def test_an_unproven_account_terminates_nothing(
    aws: CannedAws, reply: Reply, kind: type[TerminateError], code: str
) -> None:
    aws.will("GetCallerIdentity", reply)

    error = refusal(aws, **patience(reply))

    assert type(error) is kind
    assert error.error_code == code
    assert aws.actions == ["GetCallerIdentity"]


def test_the_account_is_proved_once_a_minute(aws: CannedAws) -> None:
    clock = ManualClock(NOW)
    built = terminator(aws, clock=clock)

    built.terminate(REF)
    built.terminate(REF)
    assert len(aws.asked("GetCallerIdentity")) == 1

    clock.advance(timedelta(seconds=61))
    built.terminate(REF)
    assert len(aws.asked("GetCallerIdentity")) == 2


def test_expired_credentials_are_replaced_at_once(aws: CannedAws) -> None:
    built = terminator(aws)
    aws.will("TerminateInstances", failure("ExpiredToken"), Reply(terminating()))
    with pytest.raises(CredentialsExpiredError):
        built.terminate(REF)

    built.terminate(REF)

    assert len(aws.asked("GetCallerIdentity")) == 2


def test_no_credentials_are_expired_credentials(aws: CannedAws, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")

    assert isinstance(refusal(aws), CredentialsExpiredError)
    assert aws.actions == []


def test_without_a_pinned_account_there_is_no_terminator(aws: CannedAws) -> None:
    with pytest.raises(ProviderSetupError, match="account"):
        terminator(aws, account=None)


def test_is_a_terminator_and_no_lister(aws: CannedAws) -> None:
    built: object = terminator(aws)

    assert isinstance(built, AwsTerminator)
    assert isinstance(built, Terminator)
    assert not isinstance(built, Lister)


@pytest.mark.parametrize(
    ("allowed", "forbidden"),
    [
        (READ_ONLY, lambda client: client.terminate_instances(InstanceIds=["i-1"])),
        (READ_ONLY, lambda client: client.cancel_spot_instance_requests(SpotInstanceRequestIds=["sir-1"])),
        (READ_ONLY, lambda client: client.create_tags(Resources=["i-1"], Tags=[])),
        (READ_ONLY, lambda client: client.stop_instances(InstanceIds=["i-1"])),
        (
            TERMINATING,
            lambda client: client.modify_instance_attribute(InstanceId="i-1", DisableApiTermination={"Value": False}),
        ),
        (TERMINATING, lambda client: client.create_tags(Resources=["i-1"], Tags=[])),
        (TERMINATING, lambda client: client.delete_tags(Resources=["i-1"])),
        (TERMINATING, lambda client: client.run_instances(MinCount=1, MaxCount=1)),
    ],
)
def test_a_session_sends_nothing_that_is_not_on_its_list(
    aws: CannedAws, allowed: frozenset[str], forbidden: Callable[[EC2Client], object]
) -> None:
    sessions = AwsSessions(options(endpoint_url=aws.url), allowed=allowed)
    client = sessions.open().ec2(REGION).client

    # What is on nobody's list cannot even be named: see test_models.
    with pytest.raises((MutatingRequestError, AttributeError)):
        forbidden(client)

    assert aws.actions == []


def test_keys_are_never_shown(aws: CannedAws) -> None:
    session = AwsSessions(options(), allowed=READ_ONLY).open()

    assert "secret" not in repr(vars(session))
