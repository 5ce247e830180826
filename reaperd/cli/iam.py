"""`iam-policy`: what AWS has to allow."""

from __future__ import annotations

from pathlib import Path

import click

from reaperd.cli.options import config_option, exits, load_settings, say
from reaperd.cli.output import put

ROLES = ("reaper", "auditor", "launcher", "caller")
FORMS = ("json", "terraform", "cloudformation")


@click.command("iam-policy")
@click.option(
    "--role",
    type=click.Choice(ROLES),
    required=True,
    help="Who gets it: what enforces; what only looks; a control plane; whose credentials assume a role_arn.",
)
@click.option("--format", "form", type=click.Choice(FORMS), default=FORMS[0], show_default=True, help="What to print.")
@click.option("--provider", metavar="NAME", default=None, help="For the account of this [[providers]] table alone.")
@click.option(
    "--worker-role",
    "worker_roles",
    metavar="NAME",
    multiple=True,
    help="A role that a launcher may give to its machines; may be repeated.  [default: none]",
)
@click.option(
    "--organization",
    is_flag=True,
    help="Let doctor compare with the accounts of the organization. For one role, in the management account or that of "
    "a delegated administrator: AWS tells no other.",
)
@config_option
@exits
def iam_policy(
    role: str,
    form: str,
    provider: str | None,
    worker_roles: tuple[str, ...],
    organization: bool,  # noqa: FBT001 - click calls it by its name
    config: Path | None,
) -> None:
    """Print the least that a role on AWS needs.

    For the accounts, regions, tags and the deployment of the configuration.
    A reaper may terminate what carries the ownership tag with the deployment,
    and can neither set tags nor lift a protection. An auditor may look, and
    change nothing: it is enough for plan, for audit and for a rehearsal. A
    launcher may launch with that tag, and end nothing. A caller may assume
    the roles that role_arn names. Nothing is sent to AWS.

    \b
    Examples:
      reaperd iam-policy --role auditor
      reaperd iam-policy --role reaper --format terraform > reaper.tf
      reaperd iam-policy --role launcher --worker-role fleet-worker

    \b
    Exit codes: 0 printed; 2 wrong usage; 78 bad configuration, or one with
    nothing to allow in it.
    """
    from reaperd.wiring.permissions import build_permissions  # noqa: PLC0415 - heavy

    if worker_roles and role != "launcher":
        message = "--worker-role is for --role launcher"
        raise click.UsageError(message)
    if organization and role == "launcher":
        message = "--organization is for what looks: a control plane's role has no use for it"
        raise click.UsageError(message)
    made = build_permissions(
        load_settings(config), role, form, only=provider, worker_roles=worker_roles, organization=organization
    )
    for remark in made.remarks:
        say(remark)
    put(made.text)
