"""Rules that span keys, and that they are found beside everything else."""

import pytest
from pydantic import ValidationError

from reaperd.config import AwsProviderTable, RegistryTable, Settings
from tests.unit.config.writing import AWS, TOP, file, loaded, problems

_ENFORCE = f'{TOP}\nmode = "enforce"'


def test_enforcing_needs_a_pinned_account():
    assert problems(file(top=_ENFORCE)) == {
        "providers.0.account": 'is required for mode = "enforce": name the account that may be acted on'
    }


def test_enforcing_with_a_pinned_account_is_accepted():
    assert loaded(file(top=_ENFORCE, provider=f'{AWS}\naccount = "123456789012"')).enforcing


def test_every_account_is_pinned_not_only_the_first():
    second = '[[providers]]\nname = "b"\ntype = "aws"\nregions = "auto"'

    found = problems(file(top=_ENFORCE, provider=f'{AWS}\naccount = "123456789012"', more=second))

    assert set(found) == {"providers.1.account"}


def test_a_plug_in_has_no_account_that_could_be_asked_for():
    assert loaded(file(top=_ENFORCE, provider='name = "a"\ntype = "othercloud"')).enforcing


_WAITING = """{top}
[reconcile]
deadline = "{deadline}"
[registry]
path = "/r.db"
busy_timeout = "{wait}"
[[providers]]
{aws}
"""


@pytest.mark.parametrize("wait", ["10s", "11s"])
def test_the_registry_is_not_waited_for_as_long_as_a_whole_pass_may_take(wait):
    text = _WAITING.format(top=TOP, deadline="10s", wait=wait, aws=AWS)

    assert problems(text) == {
        "registry.busy_timeout": 'must be shorter than reconcile.deadline, which is "10s": the pass ends there'
    }


def test_the_registry_may_be_waited_for_a_part_of_a_pass():
    assert loaded(_WAITING.format(top=TOP, deadline="10s", wait="9s", aws=AWS))


def test_the_deadline_that_is_left_out_bounds_the_wait_for_the_registry_too():
    text = file(registry='path = "/r.db"\nbusy_timeout = "4m"')

    assert set(problems(text)) == {"registry.busy_timeout"}


def test_a_wait_that_nobody_wrote_is_no_reason_against_a_short_pass():
    assert loaded(f'{TOP}\n[reconcile]\ndeadline = "2s"\n[registry]\npath = "/r.db"\n[[providers]]\n{AWS}')


def test_settings_built_by_hand_keep_the_rules_too():
    with pytest.raises(ValidationError, match=r"providers\.0\.account: is required for mode"):
        Settings(
            deployment="a",
            mode="enforce",  # type: ignore[arg-type]
            registry=RegistryTable(path="/r.db"),  # type: ignore[arg-type]
            providers=(AwsProviderTable(name="aws", type="aws", regions="auto"),),
        )


def test_two_providers_have_two_names():
    second = '[[providers]]\nname = "aws"\ntype = "othercloud"'

    assert problems(file(more=second)) == {"providers.1.name": "is the name of providers.0 too"}


@pytest.mark.parametrize("name", ["", "AWS", "a/b", "a b", "1a"])
def test_the_name_of_a_provider_can_be_a_label(name):
    text = file(provider=f'name = "{name}"\ntype = "aws"\nregions = "auto"')

    assert problems(text)["providers.0.name"].startswith("must be 1 to 31 lower-case letters")


def test_there_is_at_least_one_provider():
    assert problems(f'{TOP}\nproviders = []\n[registry]\npath = "/r.db"') == {
        "providers": "needs at least one [[providers]] table"
    }
    assert problems(f'{TOP}\n[registry]\npath = "/r.db"') == {"providers": "is required"}


def test_two_tables_over_one_account_are_refused():
    """The same machine would be listed twice, once under a provider that no row of the registry knows."""
    first = f'{AWS}\naccount = "123456789012"'
    second = '[[providers]]\nname = "b"\ntype = "aws"\naccount = "123456789012"\nregions = ["eu-west-1"]'

    assert problems(file(provider=first, more=second)) == {
        "providers.1.account": "is the account of providers.0 too: one table per account"
    }


def test_the_same_number_behind_another_endpoint_is_another_account():
    first = f'{AWS}\naccount = "123456789012"'
    second = '[[providers]]\nname = "b"\ntype = "aws"\naccount = "123456789012"\nregions = "auto"\nendpoint_url = "http://a:1"'

    assert loaded(file(provider=first, more=second))


def test_a_role_is_of_the_pinned_account():
    provider = f'{AWS}\naccount = "123456789012"\nrole_arn = "arn:aws:iam::210987654321:role/reaperd"'

    assert problems(file(provider=provider)) == {
        "providers.0.role_arn": "is a role of another account than the one in `account`"
    }


def test_an_external_id_belongs_to_a_role():
    assert problems(file(provider=f'{AWS}\nexternal_id = "x"')) == {
        "providers.0.external_id": "has no effect without role_arn"
    }


@pytest.mark.parametrize(
    ("line", "path", "other"),
    [
        ('worker = "reaperd:owner"', "tags.worker", "owner"),
        ('registry = "REAPERD:Owner"', "tags.registry", "owner"),
        ('owner = "reaperd:protect"', "tags.protect", "owner"),
    ],
)
def test_no_two_tags_have_one_key(line, path, other):
    assert problems(file(more=f"[tags]\n{line}")) == {path: f"is the same tag key as tags.{other}"}


@pytest.mark.parametrize(
    ("channel", "path", "message"),
    [
        ('type = "webhook"', "", 'type = "webhook" needs one of url, url_file and url_env'),
        (
            'type = "webhook"\nurl_env = "HOOK"\nsecret_env = "S"\nsecret_file = "/a"',
            "",
            "has one secret: either secret_file or secret_env",
        ),
        (
            'type = "webhook"\nurl_env = "REAPERD_HOOK"',
            ".url_env",
            "must be the name of a variable, like ALERT_HOOK: letters, digits and _, and not beginning with REAPERD_",
        ),
        ('type = "apprise"', "", 'type = "apprise" needs one of url, url_file and url_env'),
        (
            'type = "webhook"\nurl = "http://a"\nurl_file = "/a"',
            "",
            'type = "webhook" needs one of url, url_file and url_env',
        ),
        ('type = "webhook"\nurl = "slack://a"', ".url", "must be an http or https URL"),
        ('type = "webhook"\nurl = "nowhere"', ".url", 'must be a URL, like "https://hooks.example.org/reaperd"'),
        ('type = "log"\nurl = "http://a"', ".url", "has no effect on a log channel"),
        ('type = "log"\nurl_file = "/a"', ".url_file", "has no effect on a log channel"),
        (
            'type = "alertmanager"\nurl = "http://a"\nsecret_file = "/a"',
            ".secret_file",
            "has no effect on a channel that is no webhook: only that is signed",
        ),
        ('type = "mail"', ".type", 'must be "log", "webhook", "alertmanager" or "apprise"'),
        ('type = "log"\nmin_severity = "high"', ".min_severity", 'must be "info", "warning" or "critical"'),
    ],
)
def test_a_channel_has_what_its_type_needs(channel, path, message):
    assert problems(file(more=f"[[alerts.channels]]\n{channel}")) == {f"alerts.channels.0{path}": message}


def test_an_apprise_url_may_have_any_scheme():
    assert loaded(file(more='[[alerts.channels]]\ntype = "apprise"\nurl = "mailto://user:pass@example.org"'))


def test_two_channels_have_two_names():
    log = '[[alerts.channels]]\ntype = "log"\n'

    assert problems(file(more=log * 2)) == {
        "alerts.channels.1.name": "is the name (the type, where none is set) of alerts.channels.0 too"
    }
    assert loaded(file(more=f'{log}{log}name = "second"'))


def test_an_entry_that_would_ignore_everything_is_refused():
    found = problems(file(more='[[audit.ignore]]\nreason = "x"'))

    assert found["audit.ignore.0"].startswith("would ignore everything")


def test_a_broken_rule_is_found_beside_a_wrong_value():
    found = problems(file(top='deployment = "prod-*"\nmode = "enforce"', more="[reconcile]\ninterval = 5"))

    assert set(found) == {"deployment", "providers.0.account", "reconcile.interval"}
