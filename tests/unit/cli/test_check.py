"""`check-config`."""

from __future__ import annotations

import tomllib

import pytest

from reaperd.cli.check import toml
from reaperd.config import Settings
from tests.unit.cli.running import run


def check(place, *words):
    return run("check-config", "--config", place.config, *words)


def test_a_good_file_is_ok_without_a_word_more(place):
    place.make_registry(rows=3)
    place.configure(more='[http]\nlisten = ""')

    result = check(place)

    assert result.exit_code == 0
    assert result.stdout == f"{place.config}: OK, mode dry-run\n"
    assert [line for line in result.stderr.splitlines() if "state_dir" not in line] == []


def test_a_bad_file_tells_every_problem_and_is_78(place):
    place.config.write_text('deployment = "A"\nmode = "odd"\n[registry]\n')

    result = check(place)

    assert result.exit_code == 78
    assert result.stdout == ""
    for path in ("deployment", "mode", "registry.path", "providers"):
        assert f"\n  {path}: " in result.stderr


def test_a_provider_that_nothing_installed_provides_is_a_problem(place):
    text = place.config.read_text().replace('type = "aws"', 'type = "nimbus"')
    place.config.write_text(text)

    result = check(place)

    assert result.exit_code == 78
    assert "providers.0.type: no plug-in provides type 'nimbus' (built in: aws; installed: none)" in result.stderr


def test_a_missing_file_is_78(place):
    assert run("check-config", "--config", place.folder / "none").exit_code == 78


def test_the_environment_names_the_file(place, monkeypatch):
    place.make_registry()
    monkeypatch.setenv("REAPERD_CONFIG", str(place.config))

    assert run("check-config").stdout == f"{place.config}: OK, mode dry-run\n"


def test_what_somebody_should_think_about_is_a_warning(place):
    place.configure(more="[reconcile]\nconfirm_passes = 1")

    result = check(place)

    assert result.exit_code == 0
    assert "warning: reconcile.confirm_passes:" in result.stderr
    assert "warning: registry.path: it cannot be used from here:" in result.stderr


def test_the_breakers_defaults_are_too_small_for_a_big_registry(place):
    place.make_registry(rows=301)

    result = check(place)

    assert "warning: reconcile.breaker.max_per_pass: the default 5 fits fleets of up to a few hundred" in result.stderr
    assert "warning: reconcile.breaker.max_per_hour: the default 10" in result.stderr
    assert "301 live rows" in result.stderr


def test_a_limit_that_somebody_chose_is_not_warned_of(place):
    place.make_registry(rows=301)
    place.configure(more="[reconcile.breaker]\nmax_per_pass = 40")

    result = check(place)

    assert "max_per_pass" not in result.stderr
    assert "max_per_hour" in result.stderr


def test_the_registry_of_another_deployment_is_warned_of(place):
    place.make_registry("staging-b")

    assert "that is the registry of deployment 'staging-b'" in check(place).stderr


def test_a_provider_that_only_the_registry_knows_is_warned_of(place):
    place.make_registry()
    run("registry", "add", "w-1", "--provider", "ec2", "--region", "r", "--path", place.registry)

    assert "1 live row names the provider 'ec2', which no [[providers]] table has" in check(place).stderr


def test_show_prints_the_settings_in_force_as_toml_without_secrets(place):
    place.make_registry()
    place.configure(more='external_id = "hush"\nrole_arn = "arn:aws:iam::111111111111:role/r"')

    result = check(place, "--show")

    shown = tomllib.loads(result.stdout)
    assert shown["reconcile"]["breaker"]["max_per_pass"] == 5
    assert shown["providers"][0]["external_id"] == "********"
    assert "hush" not in result.output
    assert Settings.model_validate(shown).deployment == "prod-a"


@pytest.mark.parametrize(
    "table",
    [
        {"a": 1, "b": "x", "c": True, "d": [1, "y"], "e": 0.5, "f": []},
        {"a": {"b": {"c": 1}}, "d": 2},
        {"a": [{"b": 1, "c": {"d": 2}}, {"b": 3}]},
        {"key with blanks": {"k:v": "x"}, "ä": 1},
        {"a": [[1], {"b": "c"}, 2]},
        {"a": '\x7f\x00\n"\\\x1b \U0001f600 \u202e'},
    ],
)
def test_toml_reads_back_as_it_was(table):
    text = toml(table)

    assert tomllib.loads(text) == table
    assert all(char == "\n" or char.isprintable() for char in text)
