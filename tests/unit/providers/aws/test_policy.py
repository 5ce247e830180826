"""What the policies of `reaperd iam-policy` allow and deny, judged request by request."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import pytest

from providers.aws.hooks import LAUNCHING, QUOTING, READ_ONLY, TERMINATING
from providers.aws.options import AwsOptions
from providers.aws.policy import LONGEST, Role, policy, size
from providers.errors import ProviderSetupError
from providers.model import TagKeys
from tests.support.iam import Request, Resource, allowed

ACCOUNT, OTHER = "111111111111", "222222222222"
EAST, WEST, ELSEWHERE = "us-east-1", "eu-west-1", "ap-south-1"
OWNER = "reaperd:owner"
OURS = {OWNER: "prod-eu"}
MADE = ("instance", "volume", "network-interface", "spot-instances-request")

TERMINATE, CANCEL, RUN = "ec2:TerminateInstances", "ec2:CancelSpotInstanceRequests", "ec2:RunInstances"
CHANGES = [
    TERMINATE,
    CANCEL,
    RUN,
    "ec2:CreateTags",
    "ec2:DeleteTags",
    "ec2:ModifyInstanceAttribute",
    "ec2:StopInstances",
    "ec2:StartInstances",
    "ec2:RebootInstances",
    "ec2:RequestSpotInstances",
    "ec2:CreateFleet",
    "iam:PassRole",
    "iam:PutRolePolicy",
    "sts:AssumeRole",
    "s3:DeleteBucket",
]


def account(**more: Any) -> AwsOptions:
    fields = {"name": "aws", "deployment": "prod-eu", "account": ACCOUNT, "regions": (EAST, WEST), **more}
    return AwsOptions(**fields)


def made(role: Role, *accounts: AwsOptions, **more: Any) -> Any:
    """Return the document as AWS reads it."""
    return json.loads(json.dumps(policy(role, accounts or [account()], **more)))


def thing(kind: str = "instance", *, region: str = EAST, owner: str = ACCOUNT, tags: Any = None) -> Resource:
    """Return something that is there, with its tags."""
    keys = {f"aws:ResourceTag/{key}": value for key, value in (tags or {}).items()}
    return Resource(f"arn:aws:ec2:{region}:{owner}:{kind}/x-1", {"ec2:Region": region, **keys})


def new(kind: str = "instance", *, region: str = EAST, tags: Any = None, **keys: str) -> Resource:
    """Return something that a request is to make, with the tags that it is to get."""
    asked = {f"aws:RequestTag/{key}": value for key, value in (tags or {}).items()}
    return Resource(f"arn:aws:ec2:{region}:{ACCOUNT}:{kind}/*", {"ec2:Region": region, **asked, **keys})


def may(document: Any, action: str, *resources: Resource) -> bool:
    return allowed(document, Request(action, resources or (Resource("*"),)))


# ---------------------------------------------------------------- the reaper


@pytest.mark.parametrize(("action", "kind"), [(TERMINATE, "instance"), (CANCEL, "spot-instances-request")])
@pytest.mark.parametrize(
    ("what", "fine"),
    [
        ({"tags": OURS}, True),
        ({"tags": {**OURS, "Name": "x"}, "region": WEST}, True),
        ({"tags": {OWNER: "prod-us"}}, False),
        ({"tags": {OWNER: "Prod-EU"}}, False),
        ({"tags": {OWNER: ""}}, False),
        ({"tags": {"reaperd:worker-id": "prod-eu"}}, False),
        ({"tags": {}}, False),
        ({"tags": OURS, "owner": OTHER}, False),
        ({"tags": OURS, "region": ELSEWHERE}, False),
    ],
    ids=["ours", "ours-elsewhere", "foreign", "other-case", "empty", "other-key", "untagged", "account", "region"],
)
def test_the_reaper_may_end_what_is_ours_and_nothing_else(action, kind, what, fine):
    assert may(made(Role.REAPER), action, thing(kind, **what)) is fine


def test_one_foreign_machine_in_a_request_of_the_reapers_denies_it_all():
    assert not may(made(Role.REAPER), TERMINATE, thing(tags=OURS), thing(tags={OWNER: "prod-us"}))


@pytest.mark.parametrize("action", [action for action in CHANGES if action not in {TERMINATE, CANCEL}])
@pytest.mark.parametrize("tags", [OURS, {}])
def test_the_reaper_may_change_nothing_else_not_even_on_what_is_ours(action, tags):
    assert not may(made(Role.REAPER), action, thing(tags=tags))


@pytest.mark.parametrize("action", ["ec2:CreateTags", "ec2:DeleteTags", "ec2:ModifyInstanceAttribute"])
def test_another_policy_does_not_let_the_reaper_tag_or_lift_a_protection(action):
    document = with_everything(made(Role.REAPER))

    assert not may(document, action, thing(tags=OURS))
    assert not may(document, action, new(tags=OURS))


def test_another_policy_does_not_let_the_reaper_end_what_is_not_ours():
    document = with_everything(made(Role.REAPER))

    assert not may(document, TERMINATE, thing(tags={OWNER: "prod-us"}))
    assert not may(document, TERMINATE, thing())
    assert may(document, TERMINATE, thing(tags=OURS))


def test_the_reaper_is_allowed_exactly_what_its_sessions_may_send():
    assert actions(made(Role.REAPER)) == TERMINATING - {"sts:AssumeRole"}
    assert all(may(made(Role.REAPER), action) for action in READ_ONLY - {"sts:AssumeRole"})


def test_the_tag_and_the_deployment_are_those_of_the_configuration():
    document = made(Role.REAPER, account(deployment="lab", tags=TagKeys(owner="fleet")))

    assert may(document, TERMINATE, thing(tags={"fleet": "lab"}))
    assert not may(document, TERMINATE, thing(tags=OURS))


# ---------------------------------------------------------------- the auditor


def test_the_auditor_is_allowed_exactly_what_looks():
    assert actions(made(Role.AUDITOR)) == READ_ONLY - {"sts:AssumeRole"}


@pytest.mark.parametrize("action", CHANGES)
def test_the_auditor_may_change_nothing(action):
    assert not may(made(Role.AUDITOR), action, thing(tags=OURS))


@pytest.mark.parametrize("action", [action for action in CHANGES if action in TERMINATING | LAUNCHING])
def test_an_auditor_with_the_policy_of_another_role_ends_and_launches_nothing(action):
    both = made(Role.AUDITOR)
    both["Statement"] += made(Role.REAPER)["Statement"] + made(Role.LAUNCHER)["Statement"]

    assert not may(both, action, thing(tags=OURS))
    assert not may(both, action, new(tags=OURS))


# ---------------------------------------------------------------- the launcher


def launch(*, tags: Any = None, region: str = EAST, without: str = "") -> tuple[Resource, ...]:
    """Return all that a launch of one spot machine is about; one kind may go without its tags."""
    parts = [new(kind, region=region, tags=None if kind == without else tags) for kind in MADE]
    image = Resource(f"arn:aws:ec2:{region}::image/ami-1", {"ec2:Region": region})
    return (*parts, image, thing("subnet", region=region), thing("security-group", region=region))


def test_the_launcher_may_launch_with_our_tag_on_all_that_a_launch_makes():
    assert may(made(Role.LAUNCHER), RUN, *launch(tags=OURS))


@pytest.mark.parametrize("kind", MADE)
def test_the_launcher_may_not_launch_with_a_part_untagged(kind):
    assert not may(made(Role.LAUNCHER), RUN, *launch(tags=OURS, without=kind))


@pytest.mark.parametrize(
    "what", [{"tags": {OWNER: "prod-us"}}, {"tags": {}}, {"tags": OURS, "region": ELSEWHERE}], ids=str
)
def test_the_launcher_may_launch_for_nobody_else_and_nowhere_else(what):
    assert not may(made(Role.LAUNCHER), RUN, *launch(**what))


@pytest.mark.parametrize("kind", MADE)
def test_the_launcher_may_tag_what_it_launches_and_nothing_that_runs(kind):
    document = made(Role.LAUNCHER)

    assert may(document, "ec2:CreateTags", new(kind, tags=OURS, **{"ec2:CreateAction": "RunInstances"}))
    assert not may(document, "ec2:CreateTags", new(kind, tags=OURS))
    assert not may(document, "ec2:CreateTags", new(kind, tags=OURS, **{"ec2:CreateAction": "CreateVolume"}))
    assert not may(with_everything(document), "ec2:CreateTags", new(kind, tags=OURS))


@pytest.mark.parametrize("action", [TERMINATE, CANCEL, "ec2:DeleteTags", "ec2:ModifyInstanceAttribute"])
def test_the_launcher_may_end_and_unprotect_nothing_whatever_else_it_may(action):
    assert not may(made(Role.LAUNCHER), action, thing(tags=OURS))
    assert not may(with_everything(made(Role.LAUNCHER)), action, thing(tags=OURS))


def test_the_launcher_is_allowed_exactly_what_its_sessions_may_send_and_to_tag_a_launch():
    sent = (LAUNCHING | QUOTING) - {"sts:AssumeRole"}

    assert actions(made(Role.LAUNCHER)) == sent | {"ec2:CreateTags"}
    assert actions(made(Role.LAUNCHER, worker_roles=["w"])) == sent | {"ec2:CreateTags", "iam:PassRole"}


def test_the_launcher_may_give_its_machines_the_named_role_and_no_other():
    document = made(Role.LAUNCHER, worker_roles=["fleet/worker"])

    def gives(role: str, to: str = "ec2.amazonaws.com") -> bool:
        return may(
            document, "iam:PassRole", Resource(f"arn:aws:iam::{ACCOUNT}:role/{role}", {"iam:PassedToService": to})
        )

    assert gives("fleet/worker")
    assert not gives("admin")
    assert not gives("fleet/worker", "lambda.amazonaws.com")


@pytest.mark.parametrize("name", ["", "*", "arn:aws:iam::111111111111:role/w", "a b", "/w", "w?"])
def test_a_worker_role_that_could_stand_for_others_is_refused(name):
    with pytest.raises(ProviderSetupError, match="no role's name"):
        policy(Role.LAUNCHER, [account()], worker_roles=[name])


# ---------------------------------------------------------------- the caller


def test_the_caller_may_assume_the_configured_roles_and_nothing_else():
    role = f"arn:aws:iam::{ACCOUNT}:role/reaperd"
    document = made(Role.CALLER, account(role_arn=role), account(name="b"))

    assert may(document, "sts:AssumeRole", Resource(role))
    assert not may(document, "sts:AssumeRole", Resource(f"{role}-admin"))
    assert actions(document) == {"sts:AssumeRole"}


def test_without_a_role_to_assume_there_is_no_callers_policy():
    with pytest.raises(ProviderSetupError, match="role_arn"):
        policy(Role.CALLER, [account()])


# ---------------------------------------------------------------- accounts, regions, partitions


def test_each_account_is_allowed_in_its_own_regions():
    document = made(Role.REAPER, account(regions=(EAST,)), account(name="b", account=OTHER, regions=(WEST,)))

    assert may(document, TERMINATE, thing(tags=OURS, region=EAST))
    assert may(document, TERMINATE, thing(tags=OURS, region=WEST, owner=OTHER))
    assert not may(document, TERMINATE, thing(tags=OURS, region=WEST))
    assert not may(document, TERMINATE, thing(tags=OURS, region=EAST, owner=OTHER))


def test_regions_that_are_found_are_any_region():
    document = made(Role.REAPER, account(regions=None))

    assert may(document, TERMINATE, thing(tags=OURS, region=ELSEWHERE))
    assert not may(document, TERMINATE, thing(tags=OURS, owner=OTHER))


@pytest.mark.parametrize(
    ("fields", "partition"),
    [
        ({"regions": ("cn-north-1",)}, "aws-cn"),
        ({"regions": ("us-gov-west-1",)}, "aws-us-gov"),
        ({"regions": ("eusc-de-east-1",)}, "aws-eusc"),
        ({"regions": ("us-west-1",)}, "aws"),
        ({"regions": None}, "aws"),
        ({"regions": None, "home_region": "cn-north-1"}, "aws-cn"),
        ({"regions": None, "role_arn": f"arn:aws-cn:iam::{ACCOUNT}:role/r"}, "aws-cn"),
    ],
)
def test_the_arns_are_of_the_partition_of_the_account(fields, partition):
    document = made(Role.REAPER, account(**fields))

    assert may(document, TERMINATE, Resource(f"arn:{partition}:ec2:x:{ACCOUNT}:instance/i", keys_of(fields)))


def keys_of(fields: Any) -> dict[str, str]:
    return {f"aws:ResourceTag/{OWNER}": "prod-eu", "ec2:Region": (fields["regions"] or ("any",))[0]}


def test_in_china_the_service_has_another_name():
    document = made(Role.LAUNCHER, account(regions=("cn-north-1",)), worker_roles=["w"])
    role = f"arn:aws-cn:iam::{ACCOUNT}:role/w"

    assert may(document, "iam:PassRole", Resource(role, {"iam:PassedToService": "ec2.amazonaws.com.cn"}))


def test_no_two_statements_have_one_name():
    document = made(Role.LAUNCHER, account(), account(name="b", account=OTHER, regions=None), worker_roles=["w"])
    names = [statement["Sid"] for statement in document["Statement"]]

    assert len(names) == len(set(names))
    assert all(name.isalnum() for name in names)


def test_without_an_account_there_is_nothing_to_allow():
    with pytest.raises(ProviderSetupError, match="nothing to allow"):
        policy(Role.REAPER, [])


def test_every_region_of_an_account_fits_a_managed_policy():
    regions = tuple(f"eu-west-{number}" for number in range(40))

    assert max(size(policy(role, [account(regions=regions)])) for role in Role if role is not Role.CALLER) < LONGEST


@pytest.mark.parametrize("role", [Role.REAPER, Role.AUDITOR, Role.LAUNCHER])
def test_what_is_denied_was_not_allowed_either(role):
    document = made(role)
    document["Statement"] = [each for each in document["Statement"] if each["Effect"] == "Allow"]

    assert not may(document, "ec2:CreateTags", new(tags=OURS))
    assert [action for action in CHANGES if may(document, action, thing(tags={OWNER: "prod-us"}))] == []


# ---------------------------------------------------------------- against what others know of EC2


@pytest.mark.parametrize("role", Role)
def test_every_action_acts_on_the_resources_that_it_is_allowed_on(role):
    """By the list of cfn-lint, which is AWS's service authorization reference."""
    known = json.loads(files("cfnlint").joinpath("data/AdditionalSpecs/Policies.json").read_text(encoding="utf-8"))
    document = made(role, account(role_arn=f"arn:aws:iam::{ACCOUNT}:role/r"), worker_roles=["w"])

    for statement in document["Statement"]:
        for action in statement["Action"]:
            service, _, name = action.partition(":")
            kinds = known[service]["Actions"][name.lower()].get("Resources", [])
            named = {kind(pattern) for pattern in listed(statement["Resource"]) if pattern != "*"}
            assert named <= set(kinds), (action, named)
            if statement["Effect"] == "Allow" and "*" in listed(statement["Resource"]):
                # It cannot be narrowed.
                assert kinds == [], action


def kind(arn: str) -> str:
    return arn.split(":")[5].partition("/")[0]


def listed(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else value


# ---------------------------------------------------------------- what they are compared with


def actions(document: Any) -> set[str]:
    return {action for each in document["Statement"] if each["Effect"] == "Allow" for action in each["Action"]}


def with_everything(document: Any) -> Any:
    """Return the policy with an administrator's beside it."""
    anything = {"Effect": "Allow", "Action": "*", "Resource": "*"}
    return {**document, "Statement": [*document["Statement"], anything]}
