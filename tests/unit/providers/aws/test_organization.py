"""The accounts of an organization: all of them, or why they are not known."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import boto3
import pytest
from moto import mock_aws

from providers.aws import AwsOptions, MutatingRequestError, aws_organization
from providers.aws.hooks import ASKING_ORGANIZATIONS
from providers.aws.organization import AwsOrganization
from providers.aws.session import AwsSessions
from providers.examination import NO_ORGANIZATION, Member, Organization, Trouble
from reaperd.clock import ManualClock, SystemClock
from tests.support.ec2 import FaultyEc2
from tests.support.ec2.cloud import DEFAULT_ACCOUNT
from tests.unit.providers.aws.canned import NOW

OTHER = "222222222222"


@pytest.fixture
def cloud() -> Iterator[FaultyEc2]:
    """Give a cloud, and hold every test to this: it was asked for accounts and nothing else."""
    with FaultyEc2() as started:
        yield started
        assert {e.action for e in started.requests()} <= {"AssumeRole", "ListAccounts"}


def options(cloud: FaultyEc2, **changes: Any) -> AwsOptions:
    given: dict[str, Any] = {"name": "aws", "deployment": "prod", "max_attempts": 1, "endpoint_url": cloud.url}
    return AwsOptions(**(given | changes))


def look(cloud: FaultyEc2, **changes: Any) -> Organization | Trouble:
    return aws_organization(options(cloud, **changes), clock=SystemClock()).look()


def trouble(cloud: FaultyEc2) -> str:
    found = look(cloud)
    assert isinstance(found, Trouble)
    return found.code


def body(cloud: FaultyEc2, *pages: str) -> None:
    """Let these pages be the next answers."""
    for number, page in enumerate(pages, start=1):
        cloud.fault("body", action="ListAccounts", body=page, call=number)


def test_all_accounts_are_named_in_order(cloud: FaultyEc2):
    cloud.set_organization({OTHER: "ACTIVE", DEFAULT_ACCOUNT: "ACTIVE"})

    assert look(cloud) == Organization(
        members=(
            Member(account=DEFAULT_ACCOUNT, name=f"name of {DEFAULT_ACCOUNT}"),
            Member(account=OTHER, name=f"name of {OTHER}"),
        )
    )


def test_every_page_is_read(cloud: FaultyEc2):
    cloud.set_organization({f"{number:012}": "ACTIVE" for number in range(45)})

    found = look(cloud)

    assert isinstance(found, Organization)
    assert len(found.members) == 45
    assert len(cloud.requests("ListAccounts")) == 3


def test_an_empty_page_is_not_the_last(cloud: FaultyEc2):
    body(cloud, '{"Accounts": [], "NextToken": "0"}')
    cloud.set_organization({OTHER: "ACTIVE"})

    found = look(cloud)

    assert isinstance(found, Organization)
    assert [member.account for member in found.members] == [OTHER]


@pytest.mark.parametrize(
    ("state", "runs"),
    [
        ("ACTIVE", True),
        ("SUSPENDED", False),
        ("PENDING_CLOSURE", False),
        ("CLOSED", False),
        ("PENDING_ACTIVATION", False),
        ("SOMETHING_NEW", True),
    ],
)
def test_where_nothing_can_run_is_left_out_and_what_is_not_known_is_not(cloud: FaultyEc2, state: str, runs: bool):
    cloud.set_organization({OTHER: state})

    found = look(cloud)

    assert isinstance(found, Organization)
    assert [member.account for member in found.members] == ([OTHER] if runs else [])


@pytest.mark.parametrize(("status", "runs"), [("ACTIVE", True), ("SUSPENDED", False)])
def test_the_older_name_of_the_state_is_understood(cloud: FaultyEc2, status: str, runs: bool):
    body(cloud, f'{{"Accounts": [{{"Id": "{OTHER}", "Status": "{status}"}}]}}')

    assert look(cloud) == Organization(members=(Member(account=OTHER),) if runs else ())


@pytest.mark.parametrize(
    "page",
    [
        "{}",
        '{"Accounts": [{"Name": "nobody"}]}',
        '{"Accounts": [{"Id": ""}]}',
        '{"Accounts": [7]}',
        '{"Accounts": 7}',
        '{"Accounts": []}',
        "<html>sign in</html>",
        "",
    ],
)
def test_what_is_no_list_of_accounts_is_none(cloud: FaultyEc2, page: str):
    cloud.fault("body", action="ListAccounts", body=page)

    assert trouble(cloud) == "malformed_answer"


def test_a_part_of_the_accounts_is_none(cloud: FaultyEc2):
    cloud.set_organization({f"{number:012}": "ACTIVE" for number in range(45)})
    cloud.fault(action="ListAccounts", call=3, code="TooManyRequestsException")

    assert trouble(cloud) == "TooManyRequestsException"


def test_a_page_that_leads_to_itself_does_not_go_on_for_ever(cloud: FaultyEc2):
    cloud.fault("body", action="ListAccounts", body='{"Accounts": [], "NextToken": "again"}')

    assert trouble(cloud) == "repeated_token"


def test_pages_that_never_end_are_given_up(cloud: FaultyEc2):
    clock = ManualClock(NOW)
    cloud.set_organization({f"{number:012}": "ACTIVE" for number in range(45)})
    cloud.on("ListAccounts", lambda _: clock.advance(timedelta(minutes=4)))
    sessions = AwsSessions(options(cloud), allowed=ASKING_ORGANIZATIONS)

    found = AwsOrganization(options(cloud), sessions, clock=clock).look()

    assert isinstance(found, Trouble)
    assert found.code == "deadline"


def test_a_member_that_may_not_ask_is_told_so(cloud: FaultyEc2):
    cloud.set_organization({DEFAULT_ACCOUNT: "ACTIVE"}, readers=[OTHER])

    assert trouble(cloud) == "AccessDeniedException"


def test_an_account_of_its_own_has_no_organization(cloud: FaultyEc2):
    assert trouble(cloud) == NO_ORGANIZATION


def test_without_credentials_nothing_is_sent(cloud: FaultyEc2, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")

    assert trouble(cloud) == "no_credentials"
    assert cloud.requests() == []


def test_it_is_asked_in_the_account_of_the_role(cloud: FaultyEc2):
    role = f"arn:aws:iam::{OTHER}:role/reaperd"
    cloud.add_role(role)
    cloud.set_organization({OTHER: "ACTIVE"}, readers=[OTHER])

    assert isinstance(look(cloud, role_arn=role), Organization)


def test_its_session_can_ask_for_nothing_else(cloud: FaultyEc2):
    session = AwsSessions(options(cloud), allowed=ASKING_ORGANIZATIONS).open()

    with pytest.raises(MutatingRequestError):
        session.organizations().close_account(AccountId=OTHER)  # type: ignore[attr-defined]
    with pytest.raises(MutatingRequestError):
        session.ec2("us-east-1").client.describe_instances()


def test_moto_is_asked_the_same_way():
    with mock_aws():
        theirs = boto3.client("organizations", "us-east-1")
        theirs.create_organization(FeatureSet="ALL")
        made = theirs.create_account(Email="a@example.org", AccountName="research")
        given = AwsOptions(name="aws", deployment="prod", max_attempts=1)

        found = aws_organization(given, clock=SystemClock()).look()

    assert isinstance(found, Organization)
    assert Member(account=made["CreateAccountStatus"]["AccountId"], name="research") in found.members
    assert len(found.members) == 2
