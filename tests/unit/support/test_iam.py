"""What judges our policies refuses what it should, so that it can be believed when it allows."""

import pytest

from tests.support.iam import Request, Resource, allowed

MACHINE = "arn:aws:ec2:us-east-1:111111111111:instance/i-1"


def policy(*statements: dict) -> dict:
    return {"Version": "2012-10-17", "Statement": list(statements)}


def statement(effect: str = "Allow", **more: object) -> dict:
    return {"Effect": effect, "Action": "ec2:TerminateInstances", "Resource": "*", **more}


def asked(action: str = "ec2:TerminateInstances", arn: str = MACHINE, **keys: str) -> Request:
    return Request(action, [Resource(arn, keys)])


def test_what_no_statement_speaks_of_is_denied():
    assert not allowed(policy(), asked())
    assert not allowed(policy(statement(Action="ec2:Describe*")), asked())
    assert allowed(policy(statement(Action=["s3:*", "EC2:terminate*"])), asked())


def test_a_deny_beats_any_allow():
    assert not allowed(policy(statement(), statement("Deny")), asked())


def test_a_star_in_an_arn_stands_for_anything_and_nothing_else_does():
    assert allowed(policy(statement(Resource="arn:aws:ec2:*:111111111111:instance/*")), asked())
    assert not allowed(policy(statement(Resource="arn:aws:ec2:*:11111111111.:instance/*")), asked())
    assert not allowed(policy(statement(Resource="arn:aws:ec2:*:111111111111:volume/*")), asked())


def test_every_resource_of_a_request_has_to_be_allowed():
    both = Request("ec2:TerminateInstances", [Resource(MACHINE), Resource("arn:other")])

    assert not allowed(policy(statement(Resource="arn:aws:*")), both)


@pytest.mark.parametrize(
    ("keys", "equal"),
    [({"aws:x": "a"}, True), ({"AWS:X": "b"}, True), ({"aws:x": "A"}, False), ({"aws:x": ""}, False), ({}, False)],
)
def test_a_missing_key_equals_nothing(keys, equal):
    request = Request("ec2:TerminateInstances", [Resource(MACHINE, keys)])

    assert allowed(policy(statement(Condition={"StringEquals": {"aws:x": ["a", "b"]}})), request) == equal
    assert allowed(policy(statement(Condition={"StringNotEquals": {"aws:x": ["a", "b"]}})), request) != equal


@pytest.mark.parametrize("more", [{"NotAction": "*"}, {"Condition": {"StringLike": {"aws:x": "*"}}}])
def test_what_is_not_understood_is_an_error(more):
    with pytest.raises((ValueError, KeyError)):
        allowed(policy(statement(**more)), asked())
