"""What each role must be allowed on AWS, and no more than that. Pure: options go in, a policy document comes out.

A Deny holds whatever else is attached to a role, so each policy also says what its role may never do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from providers.aws.hooks import LAUNCHING, QUOTING, READ_ONLY, TERMINATING
from providers.aws.options import AwsOptions
from providers.errors import ProviderSetupError

Document = Mapping[str, object]
"""A policy, as it becomes JSON."""

LONGEST = 6144
"""Characters of a managed policy, blanks not counted."""

_ROLE_NAME = re.compile(r"(?:[\w+=,.@-]+/)*[\w+=,.@-]{1,64}", re.ASCII)
_ASSUME, _LAUNCH, _TERMINATE = "sts:AssumeRole", "ec2:RunInstances", "ec2:TerminateInstances"
_CANCEL, _TAG, _UNTAG = "ec2:CancelSpotInstanceRequests", "ec2:CreateTags", "ec2:DeleteTags"
_LIST_ACCOUNTS = "organizations:ListAccounts"
_UNPROTECT, _STOP = "ec2:ModifyInstanceAttribute", "ec2:StopInstances"

_MADE = ("instance", "network-interface", "spot-instances-request", "volume")
"""What a launch makes, and tags."""
_USED = ("security-group", "subnet")
"""What a launch into an account uses. Its image has no account in its name."""

_CHINA = "aws-cn"
_PARTITIONS = {
    "cn-": _CHINA,
    "us-gov-": "aws-us-gov",
    "us-iso-": "aws-iso",
    "us-isob-": "aws-iso-b",
    "eu-isoe-": "aws-iso-e",
    "us-isof-": "aws-iso-f",
    "eusc-": "aws-eusc",
}
"""By how a region's name begins. All others are in `aws`."""


class Role(StrEnum):
    """Who is to be allowed something."""

    REAPER = "reaper"
    """`run` and `once` that enforce."""
    AUDITOR = "auditor"
    """`plan`, `audit`, and a daemon that rehearses."""
    LAUNCHER = "launcher"
    """A control plane."""
    CALLER = "caller"
    """Whose credentials assume the `role_arn` of the configuration."""


@dataclass(frozen=True, slots=True)
class _Land:
    """Accounts of one partition in which the same regions are looked at."""

    partition: str
    regions: tuple[str, ...] | None
    """None: all."""
    accounts: tuple[str, ...]

    def named(self, kinds: Iterable[str], service: str = "ec2:*") -> list[str]:
        """Return the pattern of every resource of these kinds."""
        return [f"arn:{self.partition}:{service}:{account}:{kind}" for kind in kinds for account in self.accounts]


def policy(
    role: Role, accounts: Sequence[AwsOptions], *, worker_roles: Sequence[str] = (), organization: bool = False
) -> Document:
    """Return the policy of a role in all these accounts. They share deployment and tags.

    `worker_roles` are the roles that a launcher may give to its machines, by path and name. With `organization` it may
    also ask which other accounts there are, as far as its own account is told.

    Raises:
        ProviderSetupError: if it would allow nothing, or a worker's role has no role's name.
    """
    if not accounts:
        msg = "no account of AWS is configured: there is nothing to allow"
        raise ProviderSetupError(msg)
    statements = list(_statements(role, accounts, worker_roles))
    if organization:
        statements.insert(1, _allow("CompareWithTheOrganization", [_LIST_ACCOUNTS], "*"))
    return {"Version": "2012-10-17", "Statement": _numbered(statements)}


def size(document: Document) -> int:
    """Return how many characters AWS counts."""
    return len(json.dumps(document, separators=(",", ":")))


def _statements(role: Role, accounts: Sequence[AwsOptions], worker_roles: Sequence[str]) -> Iterator[Document]:
    match role:
        case Role.REAPER:
            yield _look(READ_ONLY)
            yield from _reaping(accounts)
        case Role.AUDITOR:
            yield _look(READ_ONLY)
            yield _deny("ChangeNothing", [_CANCEL, _TAG, _UNTAG, _UNPROTECT, _LAUNCH, _STOP, _TERMINATE])
        case Role.LAUNCHER:
            yield _look((LAUNCHING | QUOTING) - {_LAUNCH})
            yield from _launching(accounts, worker_roles)
        case Role.CALLER:
            yield _assume(accounts)


def _look(requests: Iterable[str]) -> Document:
    # EC2 cannot be told which machines may be described; the audit looks into every enabled region.
    return _allow("Look", sorted(frozenset(requests) - {_ASSUME}), "*")


# ---------------------------------------------------------------- the reaper


def _reaping(accounts: Sequence[AwsOptions]) -> Iterator[Document]:
    ours = {f"aws:ResourceTag/{accounts[0].tags.owner}": accounts[0].deployment}
    for land in _lands(accounts):
        where = {"StringEquals": {**ours, **_in_regions(land)}}
        yield _allow("TerminateOurs", [_TERMINATE], land.named(["instance/*"]), where)
        yield _allow("CancelWhatWouldLaunchOursAgain", [_CANCEL], land.named(["spot-instances-request/*"]), where)
    # A tag that is missing equals nothing.
    yield _deny("EndNothingThatIsNotOurs", sorted(TERMINATING - READ_ONLY), {"StringNotEquals": ours})
    yield _deny("NeverTagOrUnprotect", [_TAG, _UNTAG, _UNPROTECT])


# ---------------------------------------------------------------- the launcher


def _launching(accounts: Sequence[AwsOptions], worker_roles: Sequence[str]) -> Iterator[Document]:
    ours = {f"aws:RequestTag/{accounts[0].tags.owner}": accounts[0].deployment}
    made = [f"{kind}/*" for kind in _MADE]
    for land in _lands(accounts):
        regions = _in_regions(land)
        yield _allow("LaunchWithOurTag", [_LAUNCH], land.named(made), {"StringEquals": {**ours, **regions}})
        parts = [f"arn:{land.partition}:ec2:*::image/*", *land.named(f"{kind}/*" for kind in _USED)]
        yield _allow("LaunchFromThese", [_LAUNCH], parts, {"StringEquals": regions} if regions else None)
        tagging = {"StringEquals": {"ec2:CreateAction": "RunInstances", **ours, **regions}}
        yield _allow("TagWhatIsLaunched", [_TAG], land.named(made), tagging)
        if worker_roles:
            yield _pass(land, worker_roles)
    yield _deny("EndNothing", [_CANCEL, _UNTAG, _UNPROTECT, _STOP, _TERMINATE])
    yield _deny("TagNothingThatRuns", [_TAG], {"StringNotEquals": {"ec2:CreateAction": "RunInstances"}})


def _pass(land: _Land, worker_roles: Sequence[str]) -> Document:
    odd = [name for name in worker_roles if not _ROLE_NAME.fullmatch(name)]
    if odd:
        msg = f"{odd[0]!r} is no role's name. Give the name of the role in the workers' instance profile, not its ARN"
        raise ProviderSetupError(msg)
    service = "ec2.amazonaws.com.cn" if land.partition == _CHINA else "ec2.amazonaws.com"
    roles = land.named((f"role/{name}" for name in worker_roles), "iam:")
    return _allow("GiveWorkersTheirRole", ["iam:PassRole"], roles, {"StringEquals": {"iam:PassedToService": service}})


# ---------------------------------------------------------------- the caller


def _assume(accounts: Sequence[AwsOptions]) -> Document:
    roles = sorted({account.role_arn for account in accounts if account.role_arn is not None})
    if not roles:
        msg = "no [[providers]] table has a role_arn: its credentials are used as they are, and need no caller's policy"
        raise ProviderSetupError(msg)
    return _allow("AssumeTheRoles", [_ASSUME], roles)


# ---------------------------------------------------------------- where


def _lands(accounts: Iterable[AwsOptions]) -> list[_Land]:
    """Return the accounts by where they are looked at."""
    found: dict[tuple[str, tuple[str, ...] | None], list[str]] = {}
    for account in accounts:
        regions = None if account.regions is None else tuple(sorted(account.regions))
        owners = found.setdefault((_partition(account), regions), [])
        # An account that is not pinned may be any. A role can do nothing outside of its own.
        owner = account.account or "*"
        if owner not in owners:
            owners.append(owner)
    return [_Land(partition, regions, tuple(owners)) for (partition, regions), owners in found.items()]


def _partition(account: AwsOptions) -> str:
    if account.role_arn is not None:
        return account.role_arn.split(":")[1]
    region = (account.regions or (account.home_region or "",))[0]
    return next((name for beginning, name in _PARTITIONS.items() if region.startswith(beginning)), "aws")


def _in_regions(land: _Land) -> Mapping[str, object]:
    return {} if land.regions is None else {"ec2:Region": list(land.regions)}


# ---------------------------------------------------------------- statements


def _allow(name: str, actions: Sequence[str], resources: object, where: Mapping[str, object] | None = None) -> Document:
    more = {} if where is None else {"Condition": where}
    return {"Sid": name, "Effect": "Allow", "Action": list(actions), "Resource": resources, **more}


def _deny(name: str, actions: Sequence[str], where: Mapping[str, object] | None = None) -> Document:
    more = {} if where is None else {"Condition": where}
    return {"Sid": name, "Effect": "Deny", "Action": list(actions), "Resource": "*", **more}


def _numbered(statements: Iterable[Document]) -> list[Document]:
    """Return the statements, those of a name that was there before with a number: no two may have one name."""
    seen: dict[object, int] = {}
    numbered: list[Document] = []
    for statement in statements:
        count = seen[statement["Sid"]] = seen.get(statement["Sid"], 0) + 1
        numbered.append(statement if count == 1 else {**statement, "Sid": f"{statement['Sid']}{count}"})
    return numbered
