"""STS: who is asking, and becoming somebody else."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from tests.support.ec2.model import timestamp
from tests.support.ec2.protocol import ApiError, ApiRequest
from tests.support.ec2.rendering import group, leaf
from tests.support.ec2.world import World

_ROLE = re.compile(r"arn:aws[a-z-]*:iam::(\d{12}):role/(?:.*/)?([^/]+)")


def get_caller_identity(world: World, request: ApiRequest) -> str:
    """Answer with account and ARN of the access key."""
    default = (world.account, f"arn:aws:iam::{world.account}:user/tester")
    account, arn = world.identities.get(request.access_key, default)
    return leaf("Arn", arn) + leaf("UserId", f"AIDA{account}") + leaf("Account", account)


def assume_role(world: World, request: ApiRequest) -> str:
    """Hand out credentials of a role's account; only of roles that the test added, with their external id."""
    arn = request.params.get("RoleArn", "")
    parsed = _ROLE.fullmatch(arn)
    external_id = world.roles.get(arn)
    allowed = arn in world.roles and external_id in {None, request.params.get("ExternalId")}
    if parsed is None or not allowed:
        message = f"User is not authorized to perform: sts:AssumeRole on resource: {arn}"
        raise ApiError(message, code="AccessDenied")
    account, name = parsed[1], parsed[2]
    session = request.params.get("RoleSessionName", "session")
    key = f"ASIA{world.serial():016d}"
    assumed = f"arn:aws:sts::{account}:assumed-role/{name}/{session}"
    world.identities[key] = (account, assumed)
    # botocore compares with the machine's clock and would refresh for ever on a frozen one.
    lifetime = timedelta(seconds=int(request.params.get("DurationSeconds", "3600")))
    credentials = group(
        "Credentials",
        leaf("AccessKeyId", key),
        leaf("SecretAccessKey", "secret"),
        leaf("SessionToken", f"token-{key}"),
        leaf("Expiration", timestamp(datetime.now(UTC) + lifetime)),
    )
    user = group("AssumedRoleUser", leaf("AssumedRoleId", f"AROA:{session}"), leaf("Arn", assumed))
    return credentials + user
