"""From a file to settings or to everything that is wrong with it."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reaperd.config import Settings, load, needs_restart
from reaperd.config.loading import _read
from reaperd.config.schema import keys_of
from reaperd.errors import ConfigError, ExitCode, LedgerUnusableError, Problem, ReaperdError
from tests.unit.config.writing import TOP, file, loaded, problems

_HERE = Path(__file__).parent
_FULL = _HERE.parents[2] / "examples" / "reaperd.full.toml"


def _raised(path: Path) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load(path, {})
    return caught.value


def test_a_missing_file_is_a_configuration_error(tmp_path):
    path = tmp_path / "reaperd.toml"

    error = _raised(path)

    assert error.problems == (Problem("", "there is no such file; name another with --config or REAPERD_CONFIG"),)
    assert str(error).startswith(f"{path}: 1 problem\n  there is no such file")


def test_a_folder_is_not_a_file(tmp_path):
    assert _raised(tmp_path).problems == (Problem("", "cannot be read: Is a directory"),)


def test_a_file_below_a_file_cannot_be_read(tmp_path):
    (tmp_path / "a").write_text("")

    assert _raised(tmp_path / "a" / "b").problems == (Problem("", "cannot be read: Not a directory"),)


def test_a_name_that_no_file_can_have_is_a_configuration_error():
    assert _raised(Path("/a\0b")).problems[0].message.startswith("cannot be read")


def test_bytes_that_are_no_text_are_a_configuration_error(tmp_path):
    path = tmp_path / "reaperd.toml"
    path.write_bytes(b"\xff\xfe")

    assert _raised(path).problems == (Problem("", "is not UTF-8 text"),)


def test_a_byte_order_mark_and_windows_line_ends_are_no_problem(tmp_path):
    path = tmp_path / "reaperd.toml"
    path.write_bytes(b"\xef\xbb\xbf" + file().replace("\n", "\r\n").encode())

    assert load(path, {}) == loaded(file())


def test_bad_toml_names_the_line():
    assert problems('deployment = "a"\nmode = dry-run') == {"": "is not TOML: Invalid value (at line 2, column 8)"}


@pytest.mark.parametrize("text", ["a = " + "[" * 5000, "a = " + "9" * 5000])
def test_absurd_toml_is_a_configuration_error(text):
    assert problems(text)[""].startswith("is not TOML")


def test_an_empty_file_lists_all_that_is_required():
    assert problems("") == {"deployment": "is required", "providers": "is required", "registry": "is required"}


def test_all_problems_come_at_once_as_they_were_agreed_on():
    text = (_HERE / "golden" / "everything_wrong.toml").read_text()
    env = {
        "REAPERD_MODE": "enforce",
        "REAPERD_PROVIDERS__0__NAME": "x",
        "REAPERD_HTTP__LISTEN": "9745",
        "REAPERD_X": "1",
    }

    with pytest.raises(ConfigError) as caught:
        loaded(text, env)

    shown = str(caught.value).replace(caught.value.source, "reaperd.toml")
    assert shown + "\n" == (_HERE / "golden" / "everything_wrong.txt").read_text()


def test_problems_are_in_the_order_of_the_tables():
    tables = "".join(f'[[providers]]\nname = "p{n}"\ntype = "aws"\nregions = []\n' for n in range(11))

    found = problems(f'{TOP}\n[registry]\npath = "/r.db"\n{tables}')

    assert list(found) == [f"providers.{n}.regions" for n in range(11)]


_SECRET = "s3cr3t-T0ken"
_ODD = [_SECRET, f"https://user:{_SECRET}@example.org/{_SECRET}", [_SECRET], {"a": _SECRET}, [_SECRET, _SECRET]]


def _places(value: object, above: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [above, *(place for key, each in inner for place in _places(each, (*above, key)))]


_EXAMPLE = _read(_FULL)


@given(
    st.sampled_from([place for place in _places(_EXAMPLE) if place]),
    st.sampled_from([*_ODD, 0, -1, 1.5, float("nan"), True, "", [], {}, [[]], [{}]]),
)
def test_any_value_in_any_place_is_accepted_or_named_and_never_shown(place, value):
    tables = _read(_FULL)
    inner = tables
    for part in place[:-1]:
        inner = inner[part]
    inner[place[-1]] = value

    try:
        shown = repr(loaded(_toml(tables))) if place[-1] in {"url", "external_id", "endpoint_url"} else ""
    except ConfigError as error:
        shown = str(error)
    assert _SECRET not in shown


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "\n".join(f"{_quoted(key)} = {_inline(each)}" for key, each in value.items())
    raise AssertionError


def _inline(value: object) -> str:
    match value:
        case dict():
            return "{" + ", ".join(f"{_quoted(key)} = {_inline(each)}" for key, each in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(_inline, value)) + "]"
        case bool():
            return str(value).lower()
        case str():
            return _quoted(value)
        case _:
            return str(value)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def test_what_needs_a_restart_is_named():
    old = loaded(file())
    new = loaded(
        file(
            top='deployment = "b"\nstate_dir = "/srv"',
            registry='path = "/b.db"',
            more='[http]\nlisten = ""\n[lease]\nttl = "9s"',
        )
    )

    assert needs_restart(old, new) == ("deployment", "state_dir", "registry.path", "http.listen")
    assert needs_restart(old, loaded(file(more='[tags]\nowner = "other:owner"'))) == ("tags.owner",)
    web = loaded(file(more='[http]\nweb_config_file = "/etc/web.yml"'))
    assert needs_restart(old, web) == ("http.web_config_file",)
    assert needs_restart(old, loaded(file(more='[log]\nformat = "json"'))) == ("log.format",)
    assert needs_restart(old, loaded(file(more='[lease]\nttl = "9s"'))) == ()


def test_every_key_has_a_variable_of_its_own():
    variables = [key.variable for key in keys_of(Settings)]

    assert len(set(variables)) == len(variables)


@pytest.mark.parametrize("module", ["reaperd.errors", "reaperd.cli"])
def test_pydantic_is_paid_for_only_by_who_loads_settings(module):
    code = f"import sys, {module}; sys.exit('pydantic' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_errors_of_the_application_have_one_root():
    assert issubclass(ConfigError, ReaperdError)
    assert str(LedgerUnusableError("/l.db", "is locked", "Stop the other process")) == (
        "/l.db: is locked. Stop the other process."
    )
    assert str(LedgerUnusableError("/l.db", "is locked")) == "/l.db: is locked."


def test_the_exit_codes_are_those_of_the_contract():
    assert [code.value for code in ExitCode] == [0, 1, 2, 3, 4, 5, 75, 78]
