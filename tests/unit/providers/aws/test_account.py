"""Who we are, and where we have machines."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import boto3
import pytest
from moto import mock_aws
from mypy_boto3_ec2 import EC2Client

from providers.aws import AwsAccount, AwsOptions, aws_lister
from providers.aws.hooks import READ_ONLY
from providers.aws.session import AwsSessions
from providers.errors import IncompleteListingError, ProviderSetupError
from providers.model import AuditSweep, ScopeFailure
from reaperd.clock import ManualClock, SystemClock
from tests.unit.providers.aws.builders import REGION, hole, holes, lister, options, patience
from tests.unit.providers.aws.canned import (
    ACCOUNT,
    NOW,
    CannedAws,
    Reply,
    answer,
    failure,
    identity,
    instance,
    page,
    regions,
    reservation,
    sts_failure,
)

OTHER = "999999999999"
OWNED = [{"Key": "reaperd:owner", "Value": "prod"}, {"Key": "reaperd:worker-id", "Value": "w-1"}]


def covered(sweep: AuditSweep) -> dict[str, str | None]:
    return {entry.scope.region: entry.error_code for entry in sweep.coverage}


def launch(client: EC2Client, tags: list[dict[str, str]]) -> str:
    answered = client.run_instances(
        ImageId="ami-12345678",
        MinCount=1,
        MaxCount=1,
        TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],  # type: ignore[typeddict-item]
    )
    return answered["Instances"][0]["InstanceId"]


def test_lists_all_regions_and_only_what_carries_our_tag(moto_ec2: EC2Client) -> None:
    ours = {launch(moto_ec2, OWNED), launch(boto3.client("ec2", "eu-west-1"), OWNED)}
    launch(moto_ec2, [{"Key": "reaperd:owner", "Value": "other"}])
    gone = launch(moto_ec2, OWNED)
    moto_ec2.terminate_instances(InstanceIds=[gone])
    stopped = launch(moto_ec2, OWNED)
    moto_ec2.stop_instances(InstanceIds=[stopped])

    inventory = aws_lister(options(regions=("us-east-1", "eu-west-1")), clock=SystemClock()).list_owned()

    assert {machine.ref.instance_id for machine in inventory} == ours | {stopped}
    assert {entry.scope.region for entry in inventory.coverage} == {"us-east-1", "eu-west-1"}
    assert {entry.account for entry in inventory.coverage} == {ACCOUNT}


def test_pages_through_moto(moto_ec2: EC2Client) -> None:
    launched = {launch(moto_ec2, OWNED) for _ in range(12)}

    inventory = aws_lister(options(regions=("us-east-1",), page_size=5), clock=SystemClock()).list_owned()

    assert {machine.ref.instance_id for machine in inventory} == launched
    assert inventory.coverage[0].pages == 3


def test_looks_into_every_enabled_region_by_itself(canned: CannedAws) -> None:
    rows = {"a-1": "opt-in-not-required", "b-1": "opted-in", "c-1": "not-opted-in", "d-1": "something-new"}
    items = (f"<item><regionName>{n}</regionName><optInStatus>{s}</optInStatus></item>" for n, s in rows.items())
    canned.will("DescribeRegions", Reply(answer("DescribeRegions", f"<regionInfo>{''.join(items)}</regionInfo>")))
    account = lister(canned, regions=None)

    inventory = account.list_owned()

    assert {entry.scope.region for entry in inventory.coverage} == {"a-1", "b-1", "d-1"}
    assert account.regions == ("a-1", "b-1", "d-1")


def test_another_account_fails_every_scope(canned: CannedAws) -> None:
    canned.will("GetCallerIdentity", Reply(identity(OTHER)))

    broken = holes(lister(canned, regions=("us-east-1", "eu-west-1")))

    assert {entry.scope.region for entry in broken} == {"us-east-1", "eu-west-1"}
    assert {entry.failure for entry in broken} == {ScopeFailure.WRONG_ACCOUNT}
    assert {entry.error_code for entry in broken} == {"wrong_account"}
    assert canned.asked("DescribeInstances") == []


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (sts_failure("ExpiredToken"), "ExpiredToken"),
        (sts_failure("InvalidClientTokenId"), "InvalidClientTokenId"),
        (Reply("<html><body/></html>", content_type="text/html"), "malformed_answer"),
        (Reply("<html><body/></html>"), "malformed_answer"),
        (Reply(identity("")), "malformed_answer"),
        (Reply("", hang=True), "read_timeout"),
        (Reply("", status=503), "http_503"),
    ],
)
@pytest.mark.parametrize("pinned", [ACCOUNT, None])
def test_an_identity_that_cannot_be_had_fails_every_scope(
    canned: CannedAws, reply: Reply, said: str, pinned: str | None
) -> None:
    canned.will("GetCallerIdentity", reply)

    broken = hole(lister(canned, account=pinned, **patience(reply)))

    assert broken.failure is ScopeFailure.WRONG_ACCOUNT
    assert broken.error_code == "unproven"
    assert broken.detail.startswith(said)
    assert canned.asked("DescribeInstances") == []


def test_without_a_pin_any_account_will_do_and_is_told(canned: CannedAws) -> None:
    canned.will("GetCallerIdentity", Reply(identity(OTHER)))

    (coverage,) = lister(canned, account=None).list_owned().coverage

    assert coverage.account == OTHER


def test_no_credentials_at_all_are_unproven(canned: CannedAws, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")

    broken = hole(lister(canned))

    assert broken.error_code == "unproven"
    assert broken.detail.startswith("no_credentials")
    assert canned.requests == []


def test_every_pass_proves_the_account_anew(canned: CannedAws) -> None:
    account = lister(canned)
    account.list_owned()
    canned.will("GetCallerIdentity", Reply(identity(OTHER)))

    assert hole(account).error_code == "wrong_account"


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (failure("UnauthorizedOperation", 403), "UnauthorizedOperation"),
        (Reply(regions()), "malformed_answer"),
        (Reply(regions("eu-west-3", status="not-opted-in")), "malformed_answer"),
        (Reply(answer("DescribeRegions", "")), "malformed_answer"),
        (Reply(answer("DescribeRegions", "<regionInfo><item/></regionInfo>")), "malformed_answer"),
        (Reply(regions("not a name")), "malformed_answer"),
        (Reply("<html/>"), "malformed_answer"),
    ],
)
def test_regions_that_cannot_be_had_fail_the_listing(canned: CannedAws, reply: Reply, code: str) -> None:
    canned.will("DescribeRegions", reply)

    broken = hole(lister(canned, regions=None))

    assert broken.scope.region == "*"
    assert broken.failure is ScopeFailure.LISTING
    assert broken.error_code == code
    assert broken.account == ACCOUNT
    assert canned.asked("DescribeInstances") == []


def test_a_region_once_seen_stays_required(canned: CannedAws) -> None:
    account = lister(canned, regions=None)
    canned.will("DescribeRegions", Reply(regions("eu-west-1", "eu-west-2")), Reply(regions("eu-west-1")))

    account.list_owned()
    second = account.list_owned()

    assert {entry.scope.region for entry in second.coverage} == {"eu-west-1", "eu-west-2"}


def test_regions_of_an_earlier_process_are_required(canned: CannedAws) -> None:
    canned.will("DescribeRegions", Reply(regions("eu-west-1")))
    account = aws_lister(
        options(regions=None, endpoint_url=canned.url), clock=ManualClock(NOW), required_regions=["eu-west-9"]
    )

    assert account.regions == ("eu-west-9",)
    assert {entry.scope.region for entry in account.list_owned().coverage} == {"eu-west-1", "eu-west-9"}


def test_the_mark_of_unknown_regions_is_no_region_to_require(canned: CannedAws) -> None:
    account = aws_lister(
        options(regions=None, endpoint_url=canned.url), clock=ManualClock(NOW), required_regions=["*", "eu-west-9"]
    )

    assert account.regions == ("eu-west-9",)


def test_required_regions_are_named_when_regions_cannot_be_had(canned: CannedAws) -> None:
    canned.will("DescribeRegions", failure("RequestLimitExceeded", 503))
    account = aws_lister(
        options(regions=None, endpoint_url=canned.url), clock=ManualClock(NOW), required_regions=["eu-west-9"]
    )

    assert hole(account).scope.region == "eu-west-9"


def test_an_explicit_list_drops_what_was_required(canned: CannedAws) -> None:
    account = aws_lister(options(endpoint_url=canned.url), clock=ManualClock(NOW), required_regions=["eu-west-9"])

    assert account.regions == (REGION,)
    assert [entry.scope.region for entry in account.list_owned().coverage] == [REGION]


def test_an_endpoint_that_is_none_fails_every_scope(canned: CannedAws, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", canned.url)
    monkeypatch.setenv("AWS_ENDPOINT_URL_EC2", "not a url")

    account = aws_lister(options(regions=("eu-west-1", "eu-west-2")), clock=ManualClock(NOW))

    assert {entry.failure for entry in holes(account)} == {ScopeFailure.LISTING}


def test_one_broken_region_spoils_the_others_too(canned: CannedAws) -> None:
    canned.will("DescribeInstances", Reply(page()), failure("AuthFailure", 401))
    account = lister(canned, regions=("eu-west-1", "eu-west-2"))

    with pytest.raises(IncompleteListingError) as raised:
        account.list_owned()

    assert {entry.error_code for entry in raised.value.coverage} == {None, "AuthFailure"}


def test_the_audit_sees_everything_that_exists_in_every_enabled_region(canned: CannedAws) -> None:
    canned.will("DescribeRegions", Reply(regions("eu-west-1", "eu-west-2")))
    stranger = instance("i-2", tags={"Name": "pet"}, state="dreaming")
    canned.will(
        "DescribeInstances",
        Reply(page(reservation(instance("i-1"), stranger, instance("i-3", state="terminated")))),
        Reply(page()),
    )

    sweep = lister(canned).audit_instances()

    assert [machine.ref.instance_id for machine in sweep.instances] == ["i-1", "i-2"]
    assert covered(sweep) == {"eu-west-1": None, "eu-west-2": None}
    for asked in canned.asked("DescribeInstances"):
        assert not any(key.startswith("Filter") for key in asked)
        assert asked["IncludeManagedResources"] == "true"


def test_the_audit_goes_on_where_a_region_fails(canned: CannedAws) -> None:
    canned.will("DescribeRegions", Reply(regions("eu-west-1", "eu-west-2")))
    canned.will("DescribeInstances", Reply(page(reservation(instance("i-1")))), failure("InternalError", 500))

    sweep = lister(canned).audit_instances()

    assert len(sweep.instances) == 1
    assert sorted(covered(sweep).values(), key=str) == ["InternalError", None]


def test_the_audit_names_the_hole_when_the_regions_cannot_be_had(canned: CannedAws) -> None:
    canned.will("DescribeRegions", failure("UnauthorizedOperation", 403))

    assert covered(lister(canned).audit_instances()) == {"*": "UnauthorizedOperation", REGION: None}
    assert covered(lister(canned, regions=None).audit_instances()) == {"*": "UnauthorizedOperation"}


def test_the_audit_of_an_unproven_account_sees_nothing_and_says_so(canned: CannedAws) -> None:
    canned.will("GetCallerIdentity", sts_failure("ExpiredToken"))

    sweep = lister(canned).audit_instances()

    assert sweep.instances == ()
    assert covered(sweep) == {REGION: "unproven"}


def test_a_role_is_assumed_with_its_external_id() -> None:
    with mock_aws():
        role = "arn:aws:iam::222222222222:role/reaper"
        account = aws_lister(
            options(account="222222222222", role_arn=role, external_id="x-1", regions=("us-east-1",)),
            clock=SystemClock(),
        )

        (coverage,) = account.list_owned().coverage

    assert coverage.account == "222222222222"


def test_a_role_is_assumed_over_the_wire(canned: CannedAws) -> None:
    given = (
        "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>ASIA</AccessKeyId>"
        "<SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken>"
        "<Expiration>2026-11-29T13:00:00Z</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>"
    )
    canned.will("AssumeRole", Reply(given))

    lister(canned, role_arn="arn:aws:iam::1:role/r", external_id="x-1", deployment="prod/1").list_owned()

    assert canned.actions == ["AssumeRole", "GetCallerIdentity", "DescribeInstances"]
    (asked,) = canned.asked("AssumeRole")
    assert (asked["ExternalId"], asked["RoleSessionName"]) == ("x-1", "reaperd-prod-1")


@pytest.mark.parametrize(
    "reply", [sts_failure("AccessDenied"), Reply("<AssumeRoleResponse><AssumeRoleResult/></AssumeRoleResponse>")]
)
def test_a_role_that_cannot_be_assumed_leaves_the_account_unproven(canned: CannedAws, reply: Reply) -> None:
    canned.will("AssumeRole", reply)

    assert hole(lister(canned, role_arn="arn:aws:iam::1:role/r")).error_code == "unproven"
    assert canned.actions == ["AssumeRole"]


def test_the_same_credentials_keep_their_clients_until_a_failure(canned: CannedAws) -> None:
    given = options(endpoint_url=canned.url)
    sessions = AwsSessions(given, allowed=READ_ONLY)
    account = AwsAccount(given, sessions, clock=ManualClock(NOW))
    account.list_owned()
    first = sessions.open()
    assert sessions.open() is first

    canned.will("DescribeInstances", failure("InternalError", 500))
    hole(account)

    assert sessions.open() is not first


def test_a_failed_audit_drops_its_clients_too(canned: CannedAws) -> None:
    given = options(endpoint_url=canned.url)
    sessions = AwsSessions(given, allowed=READ_ONLY)
    first = sessions.open()
    canned.will("GetCallerIdentity", sts_failure("ExpiredToken"))

    AwsAccount(given, sessions, clock=ManualClock(NOW)).audit_instances()

    assert sessions.open() is not first


def test_a_rewritten_credentials_file_is_read_without_a_restart(
    canned: CannedAws,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    path = tmp_path / "credentials"
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(path))
    account = lister(canned)
    assert hole(account).error_code == "unproven"

    path.write_text("[default]\naws_access_key_id = AKIANEW\naws_secret_access_key = s\n")

    assert account.list_owned().coverage[0].ok


@pytest.mark.parametrize(
    "changes",
    [
        {"name": ""},
        {"deployment": " "},
        {"account": "12"},
        {"regions": ()},
        {"regions": ("eu-west-1", "eu-west-1")},
        {"regions": ("eu west 1",)},
        {"regions": ("eu-west-1.evil.example/",)},
        {"external_id": "x"},
        {"page_size": 4},
        {"page_size": 1001},
        {"max_attempts": 0},
        {"read_timeout": timedelta(0)},
    ],
)
def test_options_that_cannot_be_right_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(ProviderSetupError):
        options(**changes)


def test_a_profile_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ProviderSetupError, match="nobody"):
        aws_lister(options(profile="nobody"), clock=ManualClock(NOW))


def test_a_required_region_without_a_name_is_refused() -> None:
    with pytest.raises(ProviderSetupError):
        aws_lister(options(regions=None), clock=ManualClock(NOW), required_regions=["no name"])


def test_the_usual_endpoint_setting_is_honoured(canned: CannedAws, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", canned.url)
    plain = AwsOptions(name="aws", deployment="prod", account=ACCOUNT, regions=(REGION,))

    assert aws_lister(plain, clock=ManualClock(NOW)).list_owned().coverage[0].ok
    assert canned.actions == ["GetCallerIdentity", "DescribeInstances"]
