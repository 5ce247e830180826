"""Each key: its default, what it takes, and the sentence for what it does not take."""

from datetime import date, timedelta
from pathlib import Path

import pytest

from alerts.model import Severity
from providers.model import TagKeys
from reaperd.config import AwsProviderTable, ChannelType, LogFormat, Mode, PluginProviderTable
from tests.unit.config.writing import AWS, REGISTRY, TOP, file, loaded, problems


def test_the_defaults_are_those_of_the_contract():
    settings = loaded(file())

    assert settings.masked() == {
        "deployment": "prod-eu",
        "mode": "dry-run",
        "state_dir": "/var/lib/reaperd",
        "tags": {
            "owner": "reaperd:owner",
            "worker": "reaperd:worker-id",
            "model": "reaperd:model",
            "protect": "reaperd:protect",
            "registry": "reaperd:registry-id",
        },
        "registry": {
            "path": "/var/lib/fleet/registry.db",
            "busy_timeout": "5s",
            "launching_ttl": "1h",
            "vanish_grace": "1h",
        },
        "reconcile": {
            "interval": "1m",
            "deadline": "4m",
            "launch_grace": "15m",
            "confirm_passes": 3,
            "stuck_after": "30m",
            "terminate_pace": 0.5,
            "never": [],
            "breaker": {"max_per_pass": 5, "max_fraction": 0.5, "fraction_from": 4, "max_per_hour": 10},
        },
        "lease": {"ttl": "30s"},
        "ledger": {"keep": "30d"},
        "audit": {"interval": "15m", "max_age": "1d", "min_age": "1h", "realert_after": "1d", "ignore": []},
        "prices": {},
        "alerts": {"digest_above": 20, "escalate_after": "3d", "channels": []},
        "http": {"listen": "127.0.0.1:9745"},
        "log": {"format": "auto"},
        "providers": [{"name": "aws", "type": "aws", "regions": ["us-east-1"]}],
    }


def test_what_is_off_by_default_is_none_and_never_zero():
    settings = loaded(file())

    assert settings.registry.max_silence is None
    assert settings.registry.heartbeat_ttl is None
    assert settings.audit.max_cost_per_hour is None


def test_a_missing_launch_grace_is_the_default_and_never_zero():
    assert loaded(file(more='[reconcile]\ninterval = "5s"')).reconcile.launch_grace == timedelta(minutes=15)


def test_the_values_are_plain_and_frozen():
    settings = loaded(file(more='[reconcile]\nnever = ["i-1"]\n[log]\nformat = "json"'))

    assert settings.mode is Mode.DRY_RUN
    assert not settings.enforcing
    assert settings.registry.path == Path("/var/lib/fleet/registry.db")
    assert settings.ledger_path == Path("/var/lib/reaperd/ledger.db")
    assert settings.reconcile.never == ("i-1",)
    assert settings.log.format is LogFormat.JSON
    with pytest.raises(ValueError, match="frozen"):
        settings.mode = Mode.ENFORCE  # type: ignore[misc]


@pytest.mark.parametrize("name", ["a", "prod-eu", "x" * 31, "a9-"])
def test_a_deployment_is_a_name_that_every_cloud_takes(name):
    assert loaded(file(top=f'deployment = "{name}"')).deployment == name


@pytest.mark.parametrize(
    "name",
    ['"prod-*"', '"prod-?"', '""', '"Prod"', '"9a"', '"-a"', '"a b"', '"a\\n"', '"ä"', f'"{"x" * 32}"', "5", "true"],
)
def test_any_other_deployment_is_refused(name):
    assert problems(file(top=f"deployment = {name}")) == {
        "deployment": "must be 1 to 31 lower-case letters, digits and dashes, starting with a letter"
    }


def test_a_mode_is_one_of_two():
    assert problems(file(top=f'{TOP}\nmode = "live"')) == {"mode": 'must be "dry-run" or "enforce"'}


_DURATIONS = [
    ("registry", "busy_timeout"),
    ("registry", "max_silence"),
    ("registry", "heartbeat_ttl"),
    ("registry", "launching_ttl"),
    ("registry", "vanish_grace"),
    ("reconcile", "interval"),
    ("reconcile", "deadline"),
    ("reconcile", "launch_grace"),
    ("reconcile", "stuck_after"),
    ("lease", "ttl"),
    ("ledger", "keep"),
    ("audit", "interval"),
    ("audit", "max_age"),
    ("audit", "min_age"),
    ("audit", "realert_after"),
    ("alerts", "escalate_after"),
]


def _with(section: str, line: str) -> str:
    if section == "registry":
        return file(registry=f"{REGISTRY}\n{line}")
    return file(more=f"[{section}]\n{line}")


@pytest.mark.parametrize(("section", "key"), _DURATIONS)
@pytest.mark.parametrize("number", ["60", "0", "1.5", "-1", "inf"])
def test_a_bare_number_is_no_duration(section, key, number):
    assert problems(_with(section, f"{key} = {number}")) == {
        f"{section}.{key}": 'a bare number is not a duration: write the unit too, in quotes, like "90s" or "15m"'
    }


@pytest.mark.parametrize(("section", "key"), _DURATIONS)
@pytest.mark.parametrize("value", ["true", "[]", "{}", "00:01:00", "2026-01-01"])
def test_nothing_but_text_is_a_duration(section, key, value):
    assert "must be a duration in quotes" in problems(_with(section, f"{key} = {value}"))[f"{section}.{key}"]


@pytest.mark.parametrize(("section", "key"), [entry for entry in _DURATIONS if entry[1] != "launch_grace"])
def test_zero_seconds_are_refused(section, key):
    assert problems(_with(section, f'{key} = "0s"'))[f"{section}.{key}"] in {
        'must be longer than "0s"',
        'must be at least "1s"',
    }


def test_zero_seconds_are_allowed_for_the_launch_grace_alone():
    assert loaded(_with("reconcile", 'launch_grace = "0s"')).reconcile.launch_grace == timedelta(0)


@pytest.mark.parametrize("section", ["reconcile", "audit"])
def test_an_interval_may_be_one_second(section):
    assert loaded(_with(section, 'interval = "1s"'))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("confirm_passes = 0", "must be at least 1"),
        ("confirm_passes = true", "must be a whole number"),
        ('confirm_passes = "3"', "must be a whole number"),
        ("confirm_passes = 3.0", "must be a whole number"),
    ],
)
def test_confirm_passes_is_at_least_one(line, message):
    assert problems(_with("reconcile", line)) == {"reconcile.confirm_passes": message}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("terminate_pace = 0", "must be more than 0"),
        ("terminate_pace = 0.0", "must be more than 0"),
        ("terminate_pace = -0.5", "must be more than 0"),
        ("terminate_pace = 1.01", "must be at most 1"),
        ("terminate_pace = nan", "must be a finite number"),
        ('terminate_pace = "0.5"', "must be a number"),
    ],
)
def test_the_pace_is_a_share_and_never_none(line, message):
    assert problems(_with("reconcile", line)) == {"reconcile.terminate_pace": message}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("max_per_pass = -1", "must be at least 0"),
        ("max_per_pass = 1.5", "must be a whole number"),
        ("max_per_hour = -1", "must be at least 0"),
        ("max_fraction = 1.01", "must be at most 1"),
        ("max_fraction = -0.1", "must be at least 0"),
        ("max_fraction = nan", "must be a finite number"),
        ("max_fraction = inf", "must be a finite number"),
        ('max_fraction = "0.5"', "must be a number"),
        ("fraction_from = 0", "must be at least 1"),
    ],
)
def test_a_breaker_is_not_talked_into_infinity(line, message):
    assert problems(_with("reconcile.breaker", line)) == {f"reconcile.breaker.{line.split()[0]}": message}


def test_zero_in_the_breaker_is_allowed_and_means_never():
    breaker = loaded(
        _with("reconcile.breaker", "max_per_pass = 0\nmax_fraction = 0\nmax_per_hour = 0")
    ).reconcile.breaker

    assert (breaker.max_per_pass, breaker.max_fraction, breaker.max_per_hour) == (0, 0.0, 0)


@pytest.mark.parametrize(
    ("value", "path", "message"),
    [
        ('"i-1"', "reconcile.never", "must be a list"),
        ("[7]", "reconcile.never.0", "must be an instance id: no blanks, quotes or brackets"),
        ('["i-1", ""]', "reconcile.never.1", "must be an instance id: no blanks, quotes or brackets"),
        ("""['["i-1"]']""", "reconcile.never.0", "must be an instance id: no blanks, quotes or brackets"),
        ('["i-1 "]', "reconcile.never.0", "must be an instance id: no blanks, quotes or brackets"),
    ],
)
def test_the_never_list_holds_instance_ids(value, path, message):
    assert problems(_with("reconcile", f"never = {value}")) == {path: message}


def test_the_tag_keys_are_given_as_the_providers_take_them():
    settings = loaded(_with("tags", 'owner = "team/owner"'))

    assert settings.tag_keys == TagKeys(owner="team/owner")


@pytest.mark.parametrize("key", ["", "aws:owner", "AWS:owner", "own*", "own?r", "an owner", " owner", "o" * 129])
def test_a_tag_key_is_one_that_can_be_filtered_by_exactly(key):
    assert problems(_with("tags", f'owner = "{key}"'))["tags.owner"].startswith("must be a tag key")


def test_a_path_is_absolute():
    found = problems(file(top=f'{TOP}\nstate_dir = "state"', registry='path = "~/registry.db"'))

    sentence = "must be an absolute path: a service has no folder of its own to start from"
    assert found == {"registry.path": sentence, "state_dir": sentence}


@pytest.mark.parametrize("value", ['"/a\\u0000b"', "5", "[]"])
def test_what_no_file_can_be_called_is_no_path(value):
    assert problems(file(registry=f"path = {value}")) == {"registry.path": "must be a path in quotes"}


def test_the_registry_is_required():
    text = f"{TOP}\n[[providers]]\n{AWS}\n"

    assert problems(text) == {"registry": "is required"}
    assert problems(file(registry="")) == {"registry.path": "is required"}


@pytest.mark.parametrize(
    ("listen", "address"),
    [
        ("127.0.0.1:9745", ("127.0.0.1", 9745)),
        ("[::1]:9745", ("::1", 9745)),
        ("localhost:0", ("localhost", 0)),
        ("", None),
    ],
)
def test_listen_is_host_and_port_or_nothing(listen, address):
    assert loaded(_with("http", f'listen = "{listen}"')).http.address == address


@pytest.mark.parametrize("listen", [":9745", "9745", "a:b", "a:65536", "::1:9745", "a:1\\n", " a:1", "http://a:1"])
def test_any_other_listen_is_refused(listen):
    assert problems(_with("http", f'listen = "{listen}"'))["http.listen"].startswith('must be "host:port"')


def test_a_log_format_is_one_of_three():
    assert problems(_with("log", 'format = "text"')) == {"log.format": 'must be "auto", "json" or "console"'}


@pytest.mark.parametrize("value", ["123456789012", "0o17"])
def test_an_account_as_a_number_is_told_to_be_quoted(value):
    assert problems(file(provider=f"{AWS}\naccount = {value}")) == {
        "providers.0.account": 'an account is a string: put it in quotes, like "012345670123" '
        "(a number would lose a leading zero)"
    }


def test_an_account_with_a_leading_zero_is_not_even_toml_without_quotes():
    assert "an account needs quotes" in problems(file(provider=f"{AWS}\naccount = 012345670123"))[""]
    assert loaded(file(provider=f'{AWS}\naccount = "012345670123"'))


@pytest.mark.parametrize(
    "value",
    [
        '"12345678901"',
        '"1234567890123"',
        '"12345678901a"',
        '"123456789012\\n"',
        '"' + "\N{ARABIC-INDIC DIGIT FIVE}" * 12 + '"',
        "true",
    ],
)
def test_an_account_has_twelve_digits(value):
    assert problems(file(provider=f"{AWS}\naccount = {value}"))["providers.0.account"].startswith(
        "must be the 12 digits"
    )


def test_regions_are_a_list_or_auto():
    listed = loaded(file(provider='name = "aws"\ntype = "aws"\nregions = ["us-east-1", "eu-west-1"]')).providers[0]
    found = loaded(file(provider='name = "aws"\ntype = "aws"\nregions = "auto"')).providers[0]

    assert isinstance(listed, AwsProviderTable)
    assert listed.regions == ("us-east-1", "eu-west-1")
    assert isinstance(found, AwsProviderTable)
    assert found.regions == "auto"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("[]", 'must name at least one region, or be "auto"'),
        ('["us-east-1", "us-east-1"]', "names us-east-1 twice"),
        ('["auto"]', 'write regions = "auto", without a list'),
        ('["us-east-1", "eu-*"]', "entry 1 is not the name of a region, like us-east-1"),
        ("[1]", "entry 0 is not the name of a region, like us-east-1"),
        ('"us-east-1"', 'must be a list of regions, like ["us-east-1", "eu-west-1"], or "auto"'),
        ('"all"', 'must be a list of regions, like ["us-east-1", "eu-west-1"], or "auto"'),
    ],
)
def test_any_other_regions_are_refused(value, message):
    assert problems(file(provider=f'name = "aws"\ntype = "aws"\nregions = {value}')) == {"providers.0.regions": message}


def test_large_regions_are_split_on_request():
    split = loaded(file(provider=f'{AWS}\nsplit_by_zone = ["us-east-1", "eu-west-1"]')).providers[0]

    assert split.split_by_zone == ("us-east-1", "eu-west-1")
    assert loaded(file()).providers[0].split_by_zone is None


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ('"us-east-1"', 'must be a list of regions, like ["us-east-1"]'),
        ("[]", 'must be a list of regions, like ["us-east-1"]'),
        ('["us-east-1", "US"]', "entry 1 is not the name of a region, like us-east-1"),
        ('["us-east-1", "us-east-1"]', "names us-east-1 twice"),
    ],
)
def test_what_is_to_be_split_is_named(value, message):
    assert problems(file(provider=f"{AWS}\nsplit_by_zone = {value}")) == {"providers.0.split_by_zone": message}


def test_an_aws_table_says_its_regions():
    assert problems(file(provider='name = "aws"\ntype = "aws"')) == {"providers.0.regions": "is required"}


def test_a_plug_in_gets_every_key_of_its_table():
    provider = loaded(
        file(provider='name = "other"\ntype = "othercloud"\ntoken = "x"\nzones = ["a"]\nn = 3')
    ).providers[0]

    assert isinstance(provider, PluginProviderTable)
    assert provider.as_table() == {"name": "other", "type": "othercloud", "token": "x", "zones": ["a"], "n": 3}


def test_a_built_in_provider_gives_its_table_without_what_is_unset():
    assert loaded(file()).providers[0].as_table() == {"name": "aws", "type": "aws", "regions": ("us-east-1",)}


@pytest.mark.parametrize("kind", ['"AWS"', '""', '"my cloud"', "5"])
def test_a_type_is_aws_or_the_name_of_an_entry_point(kind):
    assert problems(file(provider=f'name = "a"\ntype = {kind}')) == {
        "providers.0.type": 'must be "aws" or the name of an entry point, in lower case'
    }


def test_a_provider_without_a_type_is_told_so():
    assert problems(file(provider='name = "aws"\nregions = "auto"')) == {"providers.0.type": "is required"}


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ('role_arn = "reaperd"', "role_arn"),
        ('endpoint_url = "ftp://x"', "endpoint_url"),
        ('endpoint_url = "http://"', "endpoint_url"),
        ('endpoint_url = "http://x:99999"', "endpoint_url"),
        ('profile = " "', "profile"),
    ],
)
def test_the_optional_keys_of_aws_are_judged_too(line, path):
    assert set(problems(file(provider=f"{AWS}\n{line}"))) == {f"providers.0.{path}"}


def test_what_the_audit_ignores_is_read():
    entry = loaded(
        file(more='[[audit.ignore]]\nname = "bastion-*"\nreason = "ours"\nuntil = 2026-12-31\ntags = { team = "x-*" }')
    ).audit.ignore[0]

    assert (entry.name, entry.reason, entry.until, entry.tags) == (
        "bastion-*",
        "ours",
        date(2026, 12, 31),
        {"team": "x-*"},
    )


@pytest.mark.parametrize(
    ("line", "path", "message"),
    [
        ('reason = " "', "reason", "must not be blank"),
        ("", "reason", "is required"),
        ('reason = "x"\nuntil = 2026-12-31T00:00:00Z', "until", "must be a date, like 2026-12-31"),
        ('reason = "x"\nuntil = "2026-13-01"', "until", "must be a date, like 2026-12-31"),
        ('reason = "x"\nuntil = 20261231', "until", "must be a date, like 2026-12-31"),
        ('reason = "x"\nregion = ""', "region", 'must be a pattern, like "bastion-*"'),
        ('reason = "x"\ntags = { team = 5 }', "tags.team", 'must be a pattern, like "bastion-*"'),
    ],
)
def test_what_the_audit_ignores_is_judged(line, path, message):
    assert problems(file(more=f'[[audit.ignore]]\nname = "a"\n{line}')) == {f"audit.ignore.0.{path}": message}


def test_a_day_in_quotes_is_a_date_too():
    text = file(more='[[audit.ignore]]\nname = "a"\nreason = "x"\nuntil = "2026-12-31"')

    assert loaded(text).audit.ignore[0].until == date(2026, 12, 31)


def test_a_channel_is_called_by_its_type_unless_it_has_a_name():
    channels = loaded(
        file(
            more='[[alerts.channels]]\ntype = "log"\n[[alerts.channels]]\ntype = "webhook"\nname = "pager"\nurl = "http://a"'
        )
    ).alerts.channels

    assert [(channel.label, channel.type, channel.min_severity) for channel in channels] == [
        ("log", ChannelType.LOG, Severity.WARNING),
        ("pager", ChannelType.WEBHOOK, Severity.WARNING),
    ]


def test_prices_are_read_by_type_and_place():
    text = file(more='[prices]\n"m5.large" = 0.096\n"aws/m5.large" = 1\n"aws/eu-west-1/m5.large" = 0\n"NVIDIA L4" = 2')

    assert loaded(file()).prices == {}
    assert loaded(text).prices == {
        "m5.large": 0.096,
        "aws/m5.large": 1.0,
        "aws/eu-west-1/m5.large": 0.0,
        "NVIDIA L4": 2.0,
    }


_NO_TYPE = 'must be an instance type, like "m5.large", "aws/m5.large" or "aws/eu-west-1/m5.large"'


@pytest.mark.parametrize(
    ("line", "path", "message"),
    [
        (
            "m5.large = 0.1",
            "prices.m5",
            'is cut at its dots: put the whole name of the type in quotes, like "m5.large" = 0.096',
        ),
        ('"m5.large" = "0.1"', "prices.m5.large", "must be a number"),
        ('"m5.large" = true', "prices.m5.large", "must be a number"),
        ('"m5.large" = -1', "prices.m5.large", "must be at least 0"),
        ('"m5.large" = nan', "prices.m5.large", "must be at least 0"),
        ('"m5.large" = inf', "prices.m5.large", "must be at most 10000"),
        ('"m5.large" = 1e300', "prices.m5.large", "must be at most 10000"),
        ('"" = 1', "prices.", _NO_TYPE),
        ('"aws/" = 1', "prices.aws/", _NO_TYPE),
        ('"a/b/c/d" = 1', "prices.a/b/c/d", _NO_TYPE),
        ('" m5.large" = 1', "prices. m5.large", _NO_TYPE),
    ],
)
def test_prices_are_judged(line, path, message):
    assert problems(file(more=f"[prices]\n{line}")) == {path: message}


def test_prices_are_a_table():
    assert problems(file(top=f"{TOP}\nprices = 3")) == {"prices": "must be a table"}


def test_a_cost_is_a_finite_number():
    assert problems(_with("audit", "max_cost_per_hour = inf")) == {"audit.max_cost_per_hour": "must be a finite number"}
    assert loaded(_with("audit", "max_cost_per_hour = 5")).audit.max_cost_per_hour == 5.0


@pytest.mark.parametrize(
    ("more", "path", "message"),
    [
        ("[reconcile]\nlunch_grace = 5", "reconcile.lunch_grace", "unknown key; did you mean launch_grace?"),
        ("[reconcile]\nlaunch-grace = 5", "reconcile.launch-grace", "unknown key; did you mean launch_grace?"),
        (
            "[reconcile]\nmax_per_pass = 5",
            "reconcile.max_per_pass",
            "unknown key; did you mean reconcile.breaker.max_per_pass?",
        ),
        ("[reconcil]", "reconcil", "unknown key; did you mean reconcile?"),
        ("[prometheus]", "prometheus", "unknown key"),
        ("[reconcile.breaker]\nmax = 5", "reconcile.breaker.max", "unknown key"),
    ],
)
def test_an_unknown_key_is_an_error_with_a_hint(more, path, message):
    assert problems(file(more=more)) == {path: message}


def test_an_unknown_key_of_a_provider_is_an_error_with_a_hint():
    assert problems(file(provider=f'{AWS}\nacount = "x"')) == {
        "providers.0.acount": "unknown key; did you mean account?"
    }


def test_a_value_where_a_table_belongs_is_told_so():
    assert problems(f'{TOP}\nreconcile = 5\nproviders = [5]\nregistry = "x"') == {
        "providers.0": "must be a table",
        "reconcile": "must be a table",
        "registry": "must be a table",
    }
    assert problems(f'{TOP}\nproviders = "aws"\n[registry]\n{REGISTRY}') == {"providers": "must be a list"}
