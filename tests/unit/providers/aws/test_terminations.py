"""Many terminations in one request: one look, one leave, one request, and an answer for each machine."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest

from providers.aws import AwsTerminator
from providers.aws.hooks import TERMINATING
from providers.aws.session import AwsSessions
from providers.base import BatchTerminator
from providers.errors import (
    CredentialsExpiredError,
    GoesAloneError,
    InstanceChangedError,
    InstanceNotFoundError,
    InvalidInstanceIdError,
    SpoiledBatchError,
    TerminateError,
    TerminateRejectedError,
    TerminationDeniedError,
    TerminationProtectedError,
    TerminationWithdrawnError,
    ThrottledError,
    UnknownResultError,
)
from providers.model import InstanceRef, OwnedInstance, Scope
from reaperd.clock import ManualClock
from tests.unit.providers.aws.builders import REGION, lister, options, patience, terminator
from tests.unit.providers.aws.canned import (
    NOW,
    OWNED,
    CannedAws,
    Reply,
    answer,
    failure,
    fleets,
    identity,
    instance,
    page,
    reservation,
)

ZONE = f"{REGION}a"
Answers = Mapping[InstanceRef, TerminateError | None]


def ref(number: int) -> InstanceRef:
    return InstanceRef("aws", REGION, f"i-{number}")


def machine(number: int, *, zone: str | None = ZONE, more: str = "", **facts: Any) -> str:
    place = f"<placement><availabilityZone>{zone}</availabilityZone></placement>" if zone else ""
    return instance(f"i-{number}", more=place + more, **facts)


def shown(*machines: str) -> Reply:
    return Reply(page(reservation(*machines)))


def ending(**states: str) -> Reply:
    """Return the answer to a terminate, with the state of each machine."""
    items = (
        f"<item><instanceId>{name.replace('_', '-')}</instanceId><currentState><code>32</code><name>{state}</name>"
        "</currentState><previousState><code>16</code><name>running</name></previousState></item>"
        for name, state in states.items()
    )
    return Reply(answer("TerminateInstances", f"<instancesSet>{''.join(items)}</instancesSet>"))


def going(*numbers: int) -> Reply:
    return ending(**{f"i_{number}": "shutting-down" for number in numbers})


THREE = shown(machine(1), machine(2), machine(3))
ALL = going(1, 2, 3)


@pytest.fixture
def aws(canned: CannedAws) -> CannedAws:
    canned.will("DescribeInstances", THREE)
    canned.will("TerminateInstances", ALL)
    return canned


class Leave:
    """Lets all through but some, and remembers of whom it was asked."""

    def __init__(self, *refused: int) -> None:
        self.refused = {ref(number) for number in refused}
        self.asked: list[tuple[InstanceRef, ...]] = []
        self.before: Callable[[], None] = lambda: None

    def __call__(self, refs: Sequence[InstanceRef]) -> Collection[InstanceRef]:
        self.asked.append(tuple(refs))
        self.before()
        return [each for each in refs if each not in self.refused]


def seen_by(aws: CannedAws) -> tuple[OwnedInstance, ...]:
    found = tuple(lister(aws).list_owned())
    aws.requests.clear()
    return found


def asked_for(aws: CannedAws) -> list[list[str]]:
    """Return the ids of each terminate, in order."""
    return [
        [value for name, value in request.items() if name.startswith("InstanceId.")]
        for request in aws.asked("TerminateInstances")
    ]


def ended(
    aws: CannedAws, *looks: Reply, leave: Leave | None = None, built: AwsTerminator | None = None, **changes: Any
) -> Answers:
    """Ask for the end of what a listing shows now, and let later looks be these."""
    seen = seen_by(aws)
    if looks:
        aws.will("DescribeInstances", *looks)
    return (built or terminator(aws, **changes)).terminate_many(seen, permitted=leave or Leave())


def kinds(answers: Answers) -> dict[str, type | None]:
    return {each.instance_id: None if error is None else type(error) for each, error in answers.items()}


def code_of(answers: Answers, number: int) -> str | None:
    error = answers[ref(number)]
    assert error is not None
    return error.error_code


# ---------------------------------------------------------------- the good case


def test_many_machines_are_looked_at_once_and_ended_with_one_request(aws: CannedAws) -> None:
    answers = ended(aws)

    assert answers == {ref(1): None, ref(2): None, ref(3): None}
    assert aws.actions == ["GetCallerIdentity", "DescribeInstances", "TerminateInstances"]
    (looked,) = aws.asked("DescribeInstances")
    assert [looked[f"InstanceId.{n}"] for n in (1, 2, 3)] == ["i-1", "i-2", "i-3"]
    assert looked["IncludeManagedResources"] == "true"
    assert "MaxResults" not in looked
    assert asked_for(aws) == [["i-1", "i-2", "i-3"]]


def test_it_can_end_many_and_says_how_fast(aws: CannedAws) -> None:
    built: object = terminator(aws)

    assert isinstance(built, BatchTerminator)
    allowance = built.allowance(Scope("aws", REGION))
    assert allowance is not None
    assert (allowance.together, allowance.machines.burst, allowance.machines.per_second) == (100, 1000, 20)
    assert (allowance.requests.burst, allowance.requests.per_second) == (100, 5)
    elsewhere = [Scope("gcp", REGION), Scope("aws", "us-east-1"), Scope("aws", "")]
    assert [built.allowance(scope) for scope in elsewhere] == [None, None, None]


def test_of_no_machines_nothing_is_asked(aws: CannedAws) -> None:
    assert terminator(aws).terminate_many((), permitted=Leave()) == {}
    assert aws.actions == []


@pytest.mark.parametrize("wrong", ["too many", "twice", "two places"])
def test_what_cannot_be_one_request_is_refused(aws: CannedAws, wrong: str) -> None:
    (first, *_) = seen_by(aws)
    others = {
        "too many": [InstanceRef("aws", REGION, f"i-{n}") for n in range(101)],
        "twice": [first.ref] * 2,
        "two places": [first.ref, InstanceRef("aws", "us-east-1", "i-2")],
    }[wrong]
    seen = [OwnedInstance(ref=each, state=first.state, owner=first.owner) for each in others]

    with pytest.raises(ValueError, match="one request"):
        terminator(aws).terminate_many(seen, permitted=Leave())

    assert aws.actions == []


# ---------------------------------------------------------------- the look


@pytest.mark.parametrize(
    ("now", "kind", "word"),
    [
        (machine(2, tags={}), InstanceChangedError, "owner tag"),
        (machine(2, tags={"reaperd:owner": "prod "}), InstanceChangedError, "owner tag"),
        (machine(2, tags=OWNED | {"Reaperd:Protect": "no"}), InstanceChangedError, "protect"),
        (machine(2, tags=OWNED | {"aws:autoscaling:groupName": "web"}), InstanceChangedError, "autoscaling:web"),
        (machine(2, tags=OWNED | {"aws:ec2:fleet-id": "fleet-x"}), InstanceChangedError, "fleet:fleet-x"),
        (machine(2, tags=OWNED | {"reaperd:worker-id": "w-9"}), InstanceChangedError, "worker tag"),
        (machine(2, tags=OWNED | {"reaperd:registry-id": "r-9"}), InstanceChangedError, "registry tag"),
        (machine(2, launched="2026-11-29T11:00:00.000Z"), InstanceChangedError, "launched"),
        (machine(2, state="shutting-down"), InstanceChangedError, "shutting-down"),
        (machine(2, state="terminated"), InstanceNotFoundError, "terminated"),
        (machine(2, zone=f"{REGION}b"), GoesAloneError, f"{REGION}b"),
        (machine(2, zone=None), GoesAloneError, "None"),
    ],
)
def test_one_that_changed_is_left_out_and_the_others_go(
    aws: CannedAws, now: str, kind: type[TerminateError], word: str
) -> None:
    leave = Leave()

    answers = ended(aws, shown(machine(1), now, machine(3)), leave=leave)

    assert kinds(answers) == {"i-1": None, "i-2": kind, "i-3": None}
    assert word in str(answers[ref(2)])
    assert leave.asked == [(ref(1), ref(3))]
    assert asked_for(aws) == [["i-1", "i-3"]]


def test_a_machine_of_another_account_is_left_out(aws: CannedAws) -> None:
    both = Reply(page(reservation(machine(1), machine(3)), reservation(machine(2), owner="999999999999")))

    answers = ended(aws, both)

    assert kinds(answers) == {"i-1": None, "i-2": InstanceChangedError, "i-3": None}
    assert asked_for(aws) == [["i-1", "i-3"]]


def test_the_oldest_decides_which_zone_goes(aws: CannedAws) -> None:
    """In the order that was given, not in that of the answer."""
    looked = shown(machine(3), machine(2), machine(1, zone=f"{REGION}b"))

    answers = ended(aws, looked)

    assert kinds(answers) == {"i-1": None, "i-2": GoesAloneError, "i-3": GoesAloneError}
    assert asked_for(aws) == [["i-1"]]


def test_those_of_a_fleet_that_launches_nothing_again_go_and_it_is_asked_about_once(aws: CannedAws) -> None:
    of_fleet = OWNED | {"aws:ec2:fleet-id": "fleet-a"}
    aws.will("DescribeInstances", shown(machine(1, tags=of_fleet), machine(2, tags=of_fleet), machine(3)))
    aws.will("DescribeFleets", Reply(fleets(fleet_a="instant")))
    aws.will("TerminateInstances", failure("RequestLimitExceeded", 503), ALL)

    answers = ended(aws)

    assert set(answers.values()) == {None}
    # One for the listing that the plan was made of, and one for the two looks.
    assert len(aws.asked("DescribeFleets")) == 1


@pytest.mark.parametrize(
    ("message", "kind", "code"),
    [
        ("The instance ID 'i-2' does not exist", InstanceNotFoundError, "InvalidInstanceID.NotFound"),
        ('Invalid id: "i-2"', InvalidInstanceIdError, "InvalidInstanceID.Malformed"),
    ],
)
def test_one_that_the_cloud_does_not_know_is_taken_out_of_the_look(
    aws: CannedAws, message: str, kind: type[TerminateError], code: str
) -> None:
    answers = ended(aws, failure(code, message=message), shown(machine(1), machine(3)))

    assert kinds(answers) == {"i-1": None, "i-2": kind, "i-3": None}
    assert code_of(answers, 2) == code
    assert asked_for(aws) == [["i-1", "i-3"]]


def test_all_that_one_error_names_are_taken_out_at_once(aws: CannedAws) -> None:
    gone = failure("InvalidInstanceID.NotFound", message="The instance IDs 'i-1, i-3' do not exist")

    answers = ended(aws, gone, shown(machine(2)))

    assert kinds(answers) == {"i-1": InstanceNotFoundError, "i-2": None, "i-3": InstanceNotFoundError}
    assert len(aws.asked("DescribeInstances")) == 2


@pytest.mark.parametrize(
    "reply",
    [
        failure("InvalidInstanceID.NotFound", message="some of them do not exist"),
        failure("InvalidInstanceID.NotFound", message="The instance ID 'i-22' does not exist"),
        Reply(page()),
        shown(machine(1), machine(2)),
        shown(machine(1), machine(2), machine(3), machine(4)),
        shown(machine(1), machine(2), machine(2)),
        Reply(page(reservation(machine(1), machine(2), machine(3)), token="t")),
        shown(machine(1), machine(2), machine(3).replace("<tagSet>", "<tagSet><item><value>x</value></item>")),
    ],
)
def test_after_a_look_that_does_not_say_enough_each_goes_alone(aws: CannedAws, reply: Reply) -> None:
    assert set(kinds(ended(aws, reply)).values()) == {GoesAloneError}
    assert asked_for(aws) == []


@pytest.mark.parametrize(
    ("reply", "kind", "code"),
    [
        (failure("RequestLimitExceeded", 503), ThrottledError, "RequestLimitExceeded"),
        (failure("ExpiredToken"), CredentialsExpiredError, "ExpiredToken"),
        (failure("UnauthorizedOperation", 403), TerminateRejectedError, "relook_failed:UnauthorizedOperation"),
        (failure("InternalError", 500), TerminateRejectedError, "relook_failed:InternalError"),
        (Reply("", hang=True), TerminateRejectedError, "relook_failed:read_timeout"),
        (Reply("<html>"), TerminateRejectedError, "relook_failed:malformed_answer"),
    ],
)
def test_a_look_that_fails_sends_nothing(aws: CannedAws, reply: Reply, kind: type[TerminateError], code: str) -> None:
    seen = seen_by(aws)
    aws.will("DescribeInstances", reply)

    answers = terminator(aws, **patience(reply)).terminate_many(seen, permitted=Leave())

    assert set(kinds(answers).values()) == {kind}
    assert {error.error_code for error in answers.values() if error} == {code}
    assert asked_for(aws) == []


def test_a_look_that_took_too_long_sends_nothing(aws: CannedAws) -> None:
    clock = ManualClock(NOW)
    late = Reply(THREE.body, before=lambda: clock.advance(timedelta(seconds=60)))
    leave = Leave()

    answers = ended(aws, late, leave=leave, clock=clock)

    assert {error.error_code for error in answers.values() if error} == {"relook_failed:deadline"}
    assert (leave.asked, asked_for(aws)) == ([], [])


def test_a_leave_that_took_too_long_sends_nothing(aws: CannedAws) -> None:
    # Meanwhile any of them may have got a protect tag.
    clock = ManualClock(NOW)
    leave = Leave(3)
    leave.before = lambda: clock.advance(timedelta(seconds=60))

    answers = ended(aws, leave=leave, clock=clock)

    assert [code_of(answers, number) for number in (1, 2)] == ["relook_failed:deadline"] * 2
    assert kinds(answers)["i-3"] is TerminationWithdrawnError
    assert asked_for(aws) == []


# ---------------------------------------------------------------- spot requests

SPOT = "<spotInstanceRequestId>sir-{}</spotInstanceRequestId>"
MIXED = shown(machine(1, more=SPOT.format(1)), machine(2, more=SPOT.format(2)), machine(3))


def spot(**kinds_of: tuple[str, str]) -> Reply:
    items = (
        f"<item><spotInstanceRequestId>{name.replace('_', '-')}</spotInstanceRequestId><type>{kind}</type>"
        f"<state>{state}</state></item>"
        for name, (kind, state) in kinds_of.items()
    )
    content = f"<spotInstanceRequestSet>{''.join(items)}</spotInstanceRequestSet>"
    return Reply(answer("DescribeSpotInstanceRequests", content))


@pytest.mark.parametrize("harmless", [("one-time", "active"), ("persistent", "cancelled"), ("persistent", "closed")])
def test_a_spot_request_that_launches_nothing_again_keeps_nobody_back(
    aws: CannedAws, harmless: tuple[str, str]
) -> None:
    aws.will("DescribeSpotInstanceRequests", spot(sir_1=harmless, sir_2=harmless))

    assert set(ended(aws, MIXED).values()) == {None}
    (asked,) = aws.asked("DescribeSpotInstanceRequests")
    assert (asked["SpotInstanceRequestId.1"], asked["SpotInstanceRequestId.2"]) == ("sir-1", "sir-2")


@pytest.mark.parametrize("other", [("persistent", "active"), ("persistent", "open"), ("something-new", "active")])
def test_one_whose_spot_request_may_launch_it_again_goes_alone(aws: CannedAws, other: tuple[str, str]) -> None:
    aws.will("DescribeSpotInstanceRequests", spot(sir_1=("one-time", "active"), sir_2=other))

    answers = ended(aws, MIXED)

    assert kinds(answers) == {"i-1": None, "i-2": GoesAloneError, "i-3": None}
    assert asked_for(aws) == [["i-1", "i-3"]]
    assert "CancelSpotInstanceRequests" not in aws.actions


@pytest.mark.parametrize(
    "reply",
    [
        failure("InvalidSpotInstanceRequestID.NotFound"),
        failure("UnauthorizedOperation", 403),
        failure("InternalError", 500),
        spot(sir_9=("one-time", "active")),
        Reply("<html/>"),
    ],
)
def test_those_whose_spot_requests_nobody_tells_of_go_alone(aws: CannedAws, reply: Reply) -> None:
    aws.will("DescribeSpotInstanceRequests", reply)

    answers = ended(aws, MIXED)

    assert kinds(answers) == {"i-1": GoesAloneError, "i-2": GoesAloneError, "i-3": None}
    assert asked_for(aws) == [["i-3"]]


# ---------------------------------------------------------------- leave


def test_leave_is_asked_for_after_the_look_and_before_the_request_of_exactly_those_that_go(aws: CannedAws) -> None:
    leave, done = Leave(), []
    leave.before = lambda: done.extend(aws.actions)

    ended(aws, leave=leave)

    assert leave.asked == [(ref(1), ref(2), ref(3))]
    assert done == ["GetCallerIdentity", "DescribeInstances"]


def test_those_without_leave_are_not_named(aws: CannedAws) -> None:
    answers = ended(aws, leave=Leave(2))

    assert kinds(answers) == {"i-1": None, "i-2": TerminationWithdrawnError, "i-3": None}
    assert asked_for(aws) == [["i-1", "i-3"]]


def test_without_any_leave_nothing_is_sent(aws: CannedAws) -> None:
    answers = ended(aws, leave=Leave(1, 2, 3))

    assert set(kinds(answers).values()) == {TerminationWithdrawnError}
    assert asked_for(aws) == []


def test_leave_for_others_than_were_asked_about_is_none(aws: CannedAws) -> None:
    seen = seen_by(aws)
    aws.will("DescribeInstances", shown(machine(1), machine(2)))

    answers = terminator(aws).terminate_many(seen[:2], permitted=lambda refs: [ref(3)] if refs else refs)

    assert kinds(answers) == {"i-1": TerminationWithdrawnError, "i-2": TerminationWithdrawnError}
    assert asked_for(aws) == []


def test_an_error_of_whoever_gives_leave_comes_out_and_nothing_is_sent(aws: CannedAws) -> None:
    leave = Leave()

    def broken() -> None:
        raise LookupError

    leave.before = broken
    with pytest.raises(LookupError):
        ended(aws, leave=leave)

    assert asked_for(aws) == []


# ---------------------------------------------------------------- the answer


@pytest.mark.parametrize(
    ("refusal", "kind"),
    [
        (
            failure(
                "OperationNotPermitted",
                message="The instance 'i-2' may not be terminated. Modify its 'disableApiTermination'",
            ),
            TerminationProtectedError,
        ),
        (
            failure(
                "UnauthorizedOperation", 403, message="not authorized: arn:aws:ec2:eu-west-1:1:instance/i-2 because"
            ),
            TerminationDeniedError,
        ),
        (failure("InvalidInstanceID.NotFound", message="The instance ID 'i-2' does not exist"), InstanceNotFoundError),
        (failure("IncorrectInstanceState", message="i-2: no"), TerminateRejectedError),
    ],
)
def test_a_refusal_that_names_one_is_its_own_and_the_others_may_go_again(
    aws: CannedAws, refusal: Reply, kind: type[TerminateError]
) -> None:
    aws.will("TerminateInstances", refusal)
    looks = (THREE, shown(machine(1), machine(3))) if kind is InstanceNotFoundError else (THREE,)

    answers = ended(aws, *looks)

    assert kinds(answers) == {"i-1": SpoiledBatchError, "i-2": kind, "i-3": SpoiledBatchError}
    assert asked_for(aws) == [["i-1", "i-2", "i-3"]]
    assert aws.actions[-1] == "DescribeInstances"


@pytest.mark.parametrize("message", ["no", "i-22 and i-1x may not", ""])
def test_after_a_refusal_that_names_nobody_each_goes_alone(aws: CannedAws, message: str) -> None:
    aws.will("TerminateInstances", failure("OperationNotPermitted", message=message))

    assert set(kinds(ended(aws)).values()) == {GoesAloneError}


def test_a_refusal_of_one_that_is_left_alone_is_its_own_whatever_it_names(aws: CannedAws) -> None:
    aws.will("TerminateInstances", failure("OperationNotPermitted", message="no"))

    answers = ended(aws, leave=Leave(1, 3))

    assert isinstance(answers[ref(2)], TerminationProtectedError)


def test_what_ends_although_the_request_was_refused_was_accepted(aws: CannedAws) -> None:
    aws.will("TerminateInstances", failure("OperationNotPermitted", message="'i-2' may not be terminated"))
    after = shown(machine(1, state="shutting-down"), machine(2), machine(3, state="terminated"))

    answers = ended(aws, THREE, after)

    assert kinds(answers) == {"i-1": None, "i-2": TerminationProtectedError, "i-3": None}


@pytest.mark.parametrize(
    "look",
    [
        failure("InternalError", 500),
        failure("UnauthorizedOperation", 403),
        failure("RequestLimitExceeded", 503),
        failure("ExpiredToken"),
        failure("InvalidInstanceID.NotFound", message="some of them"),
        Reply("<html/>"),
    ],
)
def test_a_refusal_after_which_nobody_can_look_leaves_all_unknown(aws: CannedAws, look: Reply) -> None:
    aws.will("TerminateInstances", failure("OperationNotPermitted", message="'i-2' may not be terminated"))

    assert set(kinds(ended(aws, THREE, look)).values()) == {UnknownResultError}


def test_what_the_answer_does_not_confirm_is_unknown_unless_a_look_shows_it_ending(aws: CannedAws) -> None:
    aws.will("TerminateInstances", ending(i_1="shutting-down", i_2="running"))
    after = shown(machine(2), machine(3, state="shutting-down"))

    answers = ended(aws, THREE, after, shown(machine(2)))

    assert kinds(answers) == {"i-1": None, "i-2": UnknownResultError, "i-3": None}
    assert code_of(answers, 2) == "unconfirmed"
    # As often as it is for one machine, and never again for those that were confirmed or seen ending.
    assert asked_for(aws) == [["i-1", "i-2", "i-3"], ["i-2"], ["i-2"]]


@pytest.mark.parametrize(
    "lost",
    [
        failure("InternalError", 500),
        failure("Unavailable", 503),
        failure("InternalError", 500, message="i-2 is to blame"),
        Reply("", status=502),
        Reply(ALL.body, cut=40),
        Reply("<html/>", content_type="text/html"),
        Reply(ALL.body, status=202),
    ],
)
def test_after_a_lost_answer_a_look_says_what_was_accepted_and_the_rest_is_asked_again(
    aws: CannedAws, lost: Reply
) -> None:
    aws.will("TerminateInstances", lost, going(3))
    after = shown(machine(1, state="shutting-down"), machine(2, state="terminated"), machine(3))
    leave = Leave()

    answers = ended(aws, THREE, after, leave=leave)

    assert answers == {ref(1): None, ref(2): None, ref(3): None}
    assert leave.asked == [(ref(1), ref(2), ref(3)), (ref(3),)]
    assert asked_for(aws) == [["i-1", "i-2", "i-3"], ["i-3"]]


def test_a_request_that_hangs_is_a_lost_one(aws: CannedAws) -> None:
    hanging = Reply("", hang=True)
    aws.will("TerminateInstances", hanging)

    answers = ended(aws, **patience(hanging))

    assert set(kinds(answers).values()) == {UnknownResultError}
    assert len(asked_for(aws)) == 3


@pytest.mark.parametrize(
    ("second", "look"),
    [
        (failure("RequestLimitExceeded", 503), THREE),
        (failure("ExpiredToken"), THREE),
        (failure("OperationNotPermitted", message="'i-2' may not be terminated"), THREE),
        (failure("OperationNotPermitted", message="no"), THREE),
        (failure("InvalidInstanceID.NotFound", message="The instance ID 'i-2' does not exist"), THREE),
        (ALL, failure("InternalError", 500)),
        (ALL, Reply("<html/>")),
        (ALL, shown(machine(1, tags={}), machine(2, tags={}), machine(3, zone=None))),
        (ALL, failure("InvalidInstanceID.NotFound", message="The instance IDs 'i-1, i-2, i-3' do not exist")),
    ],
)
def test_once_an_answer_was_lost_nothing_makes_it_certain_that_nothing_was_accepted(
    aws: CannedAws, second: Reply, look: Reply
) -> None:
    aws.will("TerminateInstances", failure("InternalError", 500), second)

    assert set(kinds(ended(aws, THREE, look)).values()) == {UnknownResultError}


def test_leave_that_is_taken_back_after_a_lost_answer_leaves_it_unknown(aws: CannedAws) -> None:
    aws.will("TerminateInstances", failure("InternalError", 500), ALL)
    leave = Leave()
    leave.before = lambda: leave.refused.update({ref(2)} if len(leave.asked) > 1 else ())

    answers = ended(aws, leave=leave)

    assert kinds(answers) == {"i-1": None, "i-2": UnknownResultError, "i-3": None}
    assert asked_for(aws) == [["i-1", "i-2", "i-3"], ["i-1", "i-3"]]


def test_a_throttle_is_asked_again_after_a_new_look_and_with_new_leave(aws: CannedAws) -> None:
    aws.will("TerminateInstances", failure("RequestLimitExceeded", 503), going(1, 3))
    leave = Leave()

    answers = ended(aws, THREE, shown(machine(1), machine(2, tags={}), machine(3)), leave=leave)

    assert kinds(answers) == {"i-1": None, "i-2": InstanceChangedError, "i-3": None}
    assert leave.asked == [(ref(1), ref(2), ref(3)), (ref(1), ref(3))]


def test_a_throttle_that_goes_on_is_one_for_all(aws: CannedAws) -> None:
    clock = ManualClock(NOW)
    aws.will("TerminateInstances", failure("RequestLimitExceeded", 503))

    answers = ended(aws, clock=clock)

    assert set(kinds(answers).values()) == {ThrottledError}
    assert len(asked_for(aws)) == 3
    assert clock.now() - NOW == timedelta(seconds=3)


@pytest.mark.parametrize("first", [failure("RequestLimitExceeded", 503), failure("InternalError", 500)])
def test_nothing_is_repeated_once_the_process_is_to_end(aws: CannedAws, first: Reply) -> None:
    aws.will("TerminateInstances", first, ALL)

    answers = ended(aws, stopping=lambda: True)

    expected = ThrottledError if "RequestLimitExceeded" in str(first.body) else UnknownResultError
    assert set(kinds(answers).values()) == {expected}
    assert len(asked_for(aws)) == 1


def test_nothing_is_repeated_once_the_time_is_up(aws: CannedAws) -> None:
    clock = ManualClock(NOW)
    slow = Reply(
        failure("RequestLimitExceeded", 503).body, status=503, before=lambda: clock.advance(timedelta(seconds=60))
    )
    aws.will("TerminateInstances", slow, ALL)

    assert set(kinds(ended(aws, clock=clock)).values()) == {ThrottledError}
    assert len(asked_for(aws)) == 1


# ---------------------------------------------------------------- the account, the place, the session


@pytest.mark.parametrize(
    ("reply", "kind", "code"),
    [
        (Reply(identity("999999999999")), TerminateRejectedError, "wrong_account"),
        (Reply("<html/>"), TerminateRejectedError, "unproven:malformed_answer"),
    ],
)
def test_an_unproven_account_terminates_nothing(
    aws: CannedAws, reply: Reply, kind: type[TerminateError], code: str
) -> None:
    seen = seen_by(aws)
    aws.will("GetCallerIdentity", reply)

    answers = terminator(aws).terminate_many(seen, permitted=Leave())

    assert set(kinds(answers).values()) == {kind}
    assert {(error.ref, error.error_code) for error in answers.values() if error} == {(each.ref, code) for each in seen}
    assert aws.actions == ["GetCallerIdentity"]


@pytest.mark.parametrize(
    ("place", "code"),
    [(("aws", "us-east-1"), "unknown_region"), (("aws", ""), "unknown_region"), (("gcp", REGION), "unknown_provider")],
)
def test_a_place_that_is_not_covered_is_an_error(aws: CannedAws, place: tuple[str, str], code: str) -> None:
    seen = [
        OwnedInstance(ref=InstanceRef(*place, each.ref.instance_id), state=each.state, owner=each.owner)
        for each in seen_by(aws)
    ]

    answers = terminator(aws).terminate_many(seen, permitted=Leave())

    assert {error.error_code for error in answers.values() if error} == {code}
    assert asked_for(aws) == []


def test_an_endpoint_that_is_none_terminates_nothing(aws: CannedAws, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = seen_by(aws)
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", aws.url)
    monkeypatch.setenv("AWS_ENDPOINT_URL_EC2", "not a url")
    built = AwsTerminator(options(), AwsSessions(options(), allowed=TERMINATING), clock=ManualClock(NOW))

    answers = built.terminate_many(seen, permitted=Leave())

    assert all("relook_failed" in str(error) for error in answers.values())


@pytest.mark.parametrize("action", ["TerminateInstances", "DescribeInstances"])
def test_expired_credentials_are_replaced_at_once(aws: CannedAws, action: str) -> None:
    built, seen = terminator(aws), seen_by(aws)
    aws.will(action, failure("ExpiredToken"), ALL if action == "TerminateInstances" else THREE)

    first = built.terminate_many(seen, permitted=Leave())
    second = built.terminate_many(seen, permitted=Leave())

    assert set(kinds(first).values()) == {CredentialsExpiredError}
    assert set(second.values()) == {None}
    assert len(aws.asked("GetCallerIdentity")) == 2
