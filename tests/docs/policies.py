"""The policies of deploy/iam, as `reaperd iam-policy` prints them for the configuration beside them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from providers.aws.policy import Role
from providers.aws.policy_forms import Form
from reaperd.config import load
from reaperd.wiring.permissions import build_permissions

FOLDER = Path(__file__).parents[2] / "deploy" / "iam"
WORKER_ROLES = ("fleet-worker",)
ENDINGS = {Form.JSON: "json", Form.TERRAFORM: "tf", Form.CLOUDFORMATION: "yaml"}


def printed(role: Role, form: Form = Form.JSON) -> str:
    """Return the text of a policy."""
    settings = load(FOLDER / "reaperd.toml", {})
    worker_roles = WORKER_ROLES if role is Role.LAUNCHER else ()
    return build_permissions(settings, role, form, worker_roles=worker_roles).text


def files() -> Iterator[tuple[str, Role, Form]]:
    """Yield the name of each file, in the project, and what it holds."""
    for role in Role:
        for form, ending in ENDINGS.items():
            yield f"deploy/iam/{role}.{ending}", role, form


def shown() -> str:
    """Return the reaper's, as docs/safety.md shows it."""
    return f"```json\n{printed(Role.REAPER)}```\n"
