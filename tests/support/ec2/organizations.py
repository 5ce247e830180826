"""Organizations: which accounts there are, told to those who may know."""

from __future__ import annotations

import json

from tests.support.ec2.protocol import ApiError, ApiRequest
from tests.support.ec2.world import World


def list_accounts(world: World, request: ApiRequest) -> str:
    """Answer with a page of the accounts, as `set_organization` said."""
    accounts = world.organization.accounts
    if not accounts:
        message = "Your account is not a member of an organization."
        raise ApiError(message, code="AWSOrganizationsNotInUseException")
    if request.account not in world.organization.readers:
        message = "You don't have permissions to access this resource."
        raise ApiError(message, code="AccessDeniedException")
    begin = int(json.loads(request.http.body or b"{}").get("NextToken", "0"))
    end = begin + min(20, world.settings.page_size)
    more = {"NextToken": str(end)} if end < len(accounts) else {}
    return json.dumps({"Accounts": accounts[begin:end], **more})
