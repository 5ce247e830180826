"""A policy as a file: what the console takes, Terraform, or CloudFormation. Text out, nothing is sent."""

from __future__ import annotations

import json
from enum import StrEnum
from textwrap import indent

from providers.aws.policy import Document, Role

_WORDS = {
    Role.REAPER: "reaperd: look everywhere, terminate what carries the tag of this deployment",
    Role.AUDITOR: "reaperd: look everywhere, change nothing",
    Role.LAUNCHER: "reaperd: launch workers with the tag of this deployment, end nothing",
    Role.CALLER: "reaperd: assume the roles of the configuration",
}


class Form(StrEnum):
    """Who is to read it."""

    JSON = "json"
    """The policy itself."""
    TERRAFORM = "terraform"
    """A resource for it."""
    CLOUDFORMATION = "cloudformation"
    """A template with it."""


def rendered(document: Document, form: Form, *, role: Role, deployment: str) -> str:
    """Return the text of a file."""
    match form:
        case Form.JSON:
            return json.dumps(document, indent=2) + "\n"
        case Form.TERRAFORM:
            return _terraform(document, role, deployment)
        case Form.CLOUDFORMATION:
            return _cloudformation(document, role, deployment)


def _terraform(document: Document, role: Role, deployment: str) -> str:
    # As `terraform fmt` writes it.
    body = json.dumps(document, indent=2, separators=(",", " : "))
    body = body.replace("${", "$${").replace("%{", "%%{")
    return f"""\
# Made by `{_command(role, Form.TERRAFORM)}`.

resource "aws_iam_policy" "reaperd_{role}" {{
  name        = "reaperd-{deployment}-{role}"
  description = "{_WORDS[role]}"

  policy = jsonencode({indent(body, "  ").lstrip()})
}}
"""


def _cloudformation(document: Document, role: Role, deployment: str) -> str:
    import yaml  # noqa: PLC0415 - heavy, and nothing else here needs it

    name = f"Reaperd{role.capitalize()}Policy"
    properties = {
        "Description": _WORDS[role],
        "Path": f"/reaperd/{deployment}/",
        "PolicyDocument": document,
    }
    template = {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": _WORDS[role],
        "Resources": {name: {"Type": "AWS::IAM::ManagedPolicy", "Properties": properties}},
        "Outputs": {"PolicyArn": {"Description": "To be attached to the role", "Value": {"Ref": name}}},
    }
    text = yaml.dump(template, Dumper=_no_anchors(), sort_keys=False, width=110)
    return f"# Made by `{_command(role, Form.CLOUDFORMATION)}`.\n{text}"


def _no_anchors() -> type:
    import yaml  # noqa: PLC0415 - heavy

    class Plain(yaml.SafeDumper):
        """Writes a value twice that stands in two places: the reader of a policy should not have to look it up."""

        def ignore_aliases(self, data: object) -> bool:
            return True

    return Plain


def _command(role: Role, form: Form) -> str:
    return f"reaperd iam-policy --role {role} --format {form}"
