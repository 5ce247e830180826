"""What the environment may say, and what it may not."""

from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reaperd.config import DEFAULT_PATH, Settings, config_path
from reaperd.config.schema import keys_of
from reaperd.errors import ConfigError
from tests.unit.config.writing import AWS, TOP, file, loaded, problems

_ENFORCING = file(top=f'{TOP}\nmode = "enforce"', provider=f'{AWS}\naccount = "123456789012"')
_NO_ASKING = 'can only be "dry-run": to terminate is asked for in the file, with mode = "enforce"'


def test_a_variable_overrides_a_key_of_the_file():
    settings = loaded(
        file(more='[reconcile]\ninterval = "30s"'),
        {
            "REAPERD_DEPLOYMENT": "staging",
            "REAPERD_RECONCILE__INTERVAL": "5s",
            "REAPERD_RECONCILE__BREAKER__MAX_PER_PASS": "3",
            "REAPERD_RECONCILE__BREAKER__MAX_FRACTION": "0.25",
            "REAPERD_HTTP__LISTEN": "",
            "REAPERD_LOG__FORMAT": "json",
            "REAPERD_REGISTRY__PATH": "/elsewhere.db",
            "REAPERD_REGISTRY__MAX_SILENCE": "2h",
            "REAPERD_AUDIT__MAX_COST_PER_HOUR": "7",
        },
    )

    assert settings.deployment == "staging"
    assert settings.reconcile.interval == timedelta(seconds=5)
    assert settings.reconcile.breaker.max_per_pass == 3
    assert settings.reconcile.breaker.max_fraction == 0.25
    assert settings.reconcile.breaker.max_per_hour == 10
    assert settings.http.address is None
    assert settings.log.format == "json"
    assert settings.registry.path == Path("/elsewhere.db")
    assert settings.registry.max_silence == timedelta(hours=2)
    assert settings.audit.max_cost_per_hour == 7


def test_a_list_is_separated_by_commas():
    assert loaded(file(), {"REAPERD_RECONCILE__NEVER": "i-1, i-2,"}).reconcile.never == ("i-1", "i-2")
    assert loaded(file(more='[reconcile]\nnever = ["i-9"]'), {"REAPERD_RECONCILE__NEVER": ""}).reconcile.never == ()


def test_a_list_of_ids_written_as_json_is_no_id_that_holds_nothing():
    assert problems(file(), {"REAPERD_RECONCILE__NEVER": '["i-1"]'}) == {
        "reconcile.never.0": "must be an instance id: no blanks, quotes or brackets (set by REAPERD_RECONCILE__NEVER)"
    }


def test_upper_and_lower_case_are_the_same():
    assert loaded(file(), {"reaperd_lease__TTL": "9s"}).lease.ttl == timedelta(seconds=9)


def test_one_key_is_not_set_twice():
    assert problems(file(), {"REAPERD_LEASE__TTL": "9s", "reaperd_lease__ttl": "8s"}) == {
        "reaperd_lease__ttl": "sets the same key as REAPERD_LEASE__TTL"
    }


def test_a_required_key_may_come_from_the_environment_alone():
    text = f"[[providers]]\n{AWS}"

    assert loaded(text, {"REAPERD_DEPLOYMENT": "a", "REAPERD_REGISTRY__PATH": "/r.db"}).deployment == "a"


@pytest.mark.parametrize("value", ["enforce", "ENFORCE", " enforce", "", "true"])
@pytest.mark.parametrize("name", ["REAPERD_MODE", "reaperd_mode", "Reaperd_Mode"])
@pytest.mark.parametrize("text", [file(), _ENFORCING])
def test_no_variable_asks_for_terminations(text, name, value):
    assert problems(text, {name: value}) == {name: _NO_ASKING}


def test_a_variable_turns_enforcing_into_a_rehearsal():
    assert loaded(_ENFORCING).enforcing
    assert not loaded(_ENFORCING, {"REAPERD_MODE": "dry-run"}).enforcing


@given(st.dictionaries(st.sampled_from([key.variable for key in keys_of(Settings)]), st.text(max_size=8), max_size=4))
def test_whatever_the_environment_says_a_rehearsal_stays_one(env):
    try:
        settings = loaded(file(), env)
    except ConfigError:
        return
    assert not settings.enforcing


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("REAPERD_PROVIDERS", "providers"),
        ("REAPERD_PROVIDERS__0__ACCOUNT", "providers"),
        ("REAPERD_ALERTS__CHANNELS__0__URL", "alerts.channels"),
        ("REAPERD_AUDIT__IGNORE", "audit.ignore"),
    ],
)
def test_an_array_of_tables_has_no_environment_form(name, table):
    assert problems(file(), {name: "x"}) == {name: f"[[{table}]] has no environment form: write it in the file"}


@pytest.mark.parametrize("name", ["REAPERD_PRICES", "reaperd_prices", "REAPERD_PRICES__M5_LARGE"])
def test_prices_have_no_environment_form(name):
    assert problems(file(), {name: "1"}) == {name: "[prices] has no environment form: write it in the file"}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("REAPERD_RECONCILE_INTERVAL", "is not a setting; did you mean REAPERD_RECONCILE__INTERVAL?"),
        ("REAPERD_RECONCILE", "is not a setting"),
        ("REAPERD_DRY_RUN", "is not a setting"),
        ("REAPERD_", "is not a setting"),
    ],
)
def test_a_variable_that_sets_nothing_is_an_error(name, message):
    assert problems(file(), {name: "1"}) == {name: message}


@pytest.mark.parametrize(
    "name",
    [
        "REAPERD_CONFIG",
        "REAPERD_SERVICE_HOST",
        "REAPERD_SERVICE_PORT",
        "REAPERD_SERVICE_PORT_METRICS",
        "REAPERD_PORT",
        "REAPERD_PORT_9745_TCP",
        "REAPERD_PORT_9745_TCP_ADDR",
        "_REAPERD_COMPLETE",
        "PATH",
    ],
)
def test_what_others_set_is_left_alone(name):
    assert loaded(file(), {name: "x"}) == loaded(file())


def test_a_bad_value_names_its_key_and_its_variable():
    assert problems(file(), {"REAPERD_RECONCILE__INTERVAL": "60", "REAPERD_RECONCILE__CONFIRM_PASSES": "x"}) == {
        "reconcile.interval": "is not a duration: write whole numbers with units, "
        'like "90s", "15m", "1h30m" or "2d" (set by REAPERD_RECONCILE__INTERVAL)',
        "reconcile.confirm_passes": "must be a whole number (set by REAPERD_RECONCILE__CONFIRM_PASSES)",
    }


@pytest.mark.parametrize("value", ["nan", "inf", "1e400", "0x1", "1_0", "\N{ARABIC-INDIC DIGIT FIVE}"])
def test_a_number_in_the_environment_is_plain_digits(value):
    found = problems(file(), {"REAPERD_RECONCILE__BREAKER__MAX_FRACTION": value})

    assert found["reconcile.breaker.max_fraction"].startswith("must be a number")


def test_a_variable_below_a_value_that_is_no_table_does_not_hide_the_problem():
    text = f"{TOP}\nlease = 5\n" + file(top="")

    assert problems(text, {"REAPERD_LEASE__TTL": "5s"}) == {"lease": "must be a table"}


@pytest.mark.parametrize(
    ("env", "folder"),
    [
        ({}, "/var/lib/reaperd"),
        ({"STATE_DIRECTORY": ""}, "/var/lib/reaperd"),
        ({"STATE_DIRECTORY": "/var/lib/a"}, "/var/lib/a"),
        ({"STATE_DIRECTORY": "/var/lib/a:/var/lib/b"}, "/var/lib/a"),
        ({"STATE_DIRECTORY": "/var/lib/a", "REAPERD_STATE_DIR": "/var/lib/c"}, "/var/lib/c"),
    ],
)
def test_the_state_dir_is_the_one_that_systemd_made(env, folder):
    assert loaded(file(), env).state_dir == Path(folder)


def test_the_file_decides_over_systemd():
    assert loaded(file(top=f'{TOP}\nstate_dir = "/srv"'), {"STATE_DIRECTORY": "/var/lib/a"}).state_dir == Path("/srv")


def test_a_relative_state_directory_is_named():
    assert problems(file(), {"STATE_DIRECTORY": "a"})["state_dir"].endswith("(set by STATE_DIRECTORY)")


@pytest.mark.parametrize(
    ("option", "env", "path"),
    [
        (None, {}, DEFAULT_PATH),
        (None, {"REAPERD_CONFIG": ""}, DEFAULT_PATH),
        (None, {"REAPERD_CONFIG": "/b.toml"}, Path("/b.toml")),
        (Path("/a.toml"), {"REAPERD_CONFIG": "/b.toml"}, Path("/a.toml")),
    ],
)
def test_the_option_decides_where_the_file_is_then_the_variable(option, env, path):
    assert config_path(option, env) == path
