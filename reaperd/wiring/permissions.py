"""Which policy the configured accounts need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from providers.aws.policy import LONGEST, Role, policy, size
from providers.aws.policy_forms import Form, rendered
from providers.errors import ProviderSetupError
from reaperd.config import AwsProviderTable, Settings
from reaperd.wiring.clouds import aws_options


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    """A policy, and what has to be said of it."""

    text: str
    remarks: tuple[str, ...] = ()


def build_permissions(
    settings: Settings,
    role: str,
    form: str,
    *,
    only: str | None = None,
    worker_roles: Sequence[str] = (),
    organization: bool = False,
) -> Permissions:
    """Return the policy of a role in the configured accounts, or in that of the one table that is named.

    With `organization` it is enough to compare the tables with the accounts of the organization, too.

    Raises:
        ProviderSetupError: if there is nothing to allow, or no such table.
    """
    tables = [table for table in settings.providers if only in {None, table.name}]
    if not tables:
        names = ", ".join(table.name for table in settings.providers)
        msg = f"no [[providers]] table is named {only!r} (there are: {names})"
        raise ProviderSetupError(msg)
    accounts = [aws_options(settings, table) for table in tables if isinstance(table, AwsProviderTable)]
    document = policy(Role(role), accounts, worker_roles=worker_roles, organization=organization)
    remarks = [
        f"provider {table.name!r} is a plug-in's: what it has to be allowed is for the plug-in to say"
        for table in tables
        if not isinstance(table, AwsProviderTable)
    ]
    remarks += [
        f"provider {account.name!r} pins no account: the policy fits any. Set `account` to narrow it"
        for account in accounts
        if account.account is None
    ]
    if size(document) > LONGEST:
        remarks.append(
            f"this is {size(document):,} characters, and a managed policy may have {LONGEST:,}: "
            "print one for each account with --provider NAME"
        )
    text = rendered(document, Form(form), role=Role(role), deployment=settings.deployment)
    return Permissions(text=text, remarks=tuple(remarks))
