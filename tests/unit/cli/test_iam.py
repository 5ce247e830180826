"""`reaperd iam-policy` prints what providers.aws.policy decides, for the configuration that it reads."""

import json
import re
from pathlib import Path

import pytest
import yaml
from cfnlint.api import lint_all

from providers.aws.policy import Role
from providers.aws.policy_forms import Form, rendered
from reaperd.cli.iam import FORMS, ROLES
from reaperd.errors import ExitCode
from tests.docs.policies import FOLDER, printed
from tests.unit.cli.running import run

CONFIG = FOLDER / "reaperd.toml"
MORE = """\
[[providers]]
name = "research"
type = "aws"
account = "222222222222"
regions = "auto"
[[providers]]
name = "other"
type = "othercloud"
[[providers]]
name = "any"
type = "aws"
regions = "auto"
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Give a configuration with two more accounts, one of them not pinned, and a plug-in."""
    path = tmp_path / "reaperd.toml"
    path.write_text(f"{CONFIG.read_text()}\n{MORE}")
    return path


def test_the_command_offers_every_role_and_form():
    assert list(Role) == list(ROLES)
    assert list(Form) == list(FORMS)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("form", FORMS)
def test_what_ships_is_what_the_command_prints(role, form):
    ending = {"json": "json", "terraform": "tf", "cloudformation": "yaml"}[form]
    more = ["--worker-role", "fleet-worker"] if role == "launcher" else []

    result = run("iam-policy", "--role", role, "--format", form, "--config", CONFIG, *more)

    assert result.exit_code == 0
    assert result.stderr == ""
    assert result.stdout == (FOLDER / f"{role}.{ending}").read_text(encoding="utf-8")


@pytest.mark.parametrize("role", Role)
def test_all_forms_hold_the_same_policy(role):
    document = json.loads(printed(role))
    terraform = re.search(r"jsonencode\((.*)\)\n}\n", printed(role, Form.TERRAFORM), re.DOTALL)
    (resource,) = yaml.safe_load(printed(role, Form.CLOUDFORMATION))["Resources"].values()

    assert terraform is not None
    assert json.loads(terraform[1]) == document
    assert resource["Properties"]["PolicyDocument"] == document


@pytest.mark.parametrize("role", Role)
def test_cloudformation_finds_nothing_wrong_with_its_form(role):
    found = lint_all(printed(role, Form.CLOUDFORMATION))

    # I: a hint.
    assert [match for match in found if not match.rule.id.startswith("I")] == []


def test_every_account_is_in_it_and_what_it_cannot_say_is_told(config):
    result = run("iam-policy", "--role", "reaper", "--config", config)

    assert result.exit_code == 0
    assert "arn:aws:ec2:*:222222222222:instance/*" in result.stdout
    assert "'other' is a plug-in's" in result.stderr
    assert "'any' pins no account" in result.stderr


def test_one_table_alone_can_be_asked_for(config):
    result = run("iam-policy", "--role", "reaper", "--provider", "research", "--config", config)

    assert result.exit_code == 0
    assert result.stderr == ""
    assert "222222222222" in result.stdout
    assert "111111111111" not in result.stdout


def test_a_policy_that_aws_would_not_take_is_told(config):
    accounts = "".join(
        f'[[providers]]\nname = "a{n}"\ntype = "aws"\naccount = "{n:012}"\nregions = ["us-east-{n}"]\n'
        for n in range(1, 60)
    )
    config.write_text(f"{CONFIG.read_text()}\n{accounts}")

    result = run("iam-policy", "--role", "reaper", "--config", config)

    assert result.exit_code == 0
    assert "--provider NAME" in result.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--role", "reaper", "--provider", "none"), "no [[providers]] table is named 'none'"),
        (("--role", "reaper", "--provider", "other"), "there is nothing to allow"),
        (("--role", "caller", "--provider", "research"), "role_arn"),
        (("--role", "launcher", "--worker-role", "*"), "no role's name"),
    ],
)
def test_where_there_is_nothing_to_allow_nothing_is_printed(config, words, said):
    result = run("iam-policy", *words, "--config", config)

    assert result.exit_code == ExitCode.CONFIG
    assert result.stdout == ""
    assert said in result.stderr


@pytest.mark.parametrize("role", ["auditor", "reaper", "caller"])
def test_who_looks_may_be_let_ask_for_the_accounts_of_the_organization(role):
    plain = json.loads(printed(Role(role)))

    result = run("iam-policy", "--role", role, "--organization", "--config", CONFIG)

    statements = json.loads(result.stdout)["Statement"]
    (more,) = [statement for statement in statements if statement not in plain["Statement"]]
    assert (more["Effect"], more["Action"]) == ("Allow", ["organizations:ListAccounts"])
    assert len(statements) == len(plain["Statement"]) + 1


def test_a_launcher_asks_for_no_accounts():
    result = run("iam-policy", "--role", "launcher", "--organization", "--config", CONFIG)

    assert result.exit_code == ExitCode.USAGE
    assert "--organization is for what looks" in result.stderr


def test_only_a_launcher_gives_roles_away():
    result = run("iam-policy", "--role", "reaper", "--worker-role", "w", "--config", CONFIG)

    assert result.exit_code == ExitCode.USAGE
    assert "--worker-role is for --role launcher" in result.stderr


def test_the_text_of_a_terraform_string_is_not_read_as_a_template():
    assert "$${x}" in rendered_with("${x}")
    assert "%%{x}" in rendered_with("%{x}")


def rendered_with(text: str) -> str:
    return rendered({"Version": text}, Form.TERRAFORM, role=Role.REAPER, deployment="prod")
