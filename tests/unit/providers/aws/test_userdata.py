"""The script of a new machine, judged by a shell that runs it."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from providers.aws import userdata
from providers.aws.userdata import ENV_FILE, MAX_BYTES, UserDataError, rendered

NAMES = st.from_regex(r"V_[A-Za-z0-9_]{0,8}", fullmatch=True)
VALUES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)
HOSTILE = {"V_A": "'; touch /pwned; '", "V_B": "$(id)`id`\\", "V_C": "a\nexport V_A=x\n", "V_D": "", "V_E": "ä'\"'"}


def run(script: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["/bin/sh", "-c", script], capture_output=True, check=True, env={"PATH": "/usr/bin:/bin"})


def printing(names: list[str]) -> str:
    return "#!/bin/sh -eu\n" + "".join(f"printf '%s\\0' \"${name}\"\n" for name in names)


@settings(deadline=None, max_examples=50)
@given(st.dictionaries(NAMES, VALUES, max_size=4))
def test_a_script_reads_every_variable_as_it_was_given(env: dict[str, str]):
    names = sorted(env)

    answered = run(rendered(printing(names), env)).stdout

    assert answered == b"".join(env[name].encode() + b"\0" for name in names)


def test_a_value_cannot_become_a_command():
    names = sorted(HOSTILE)

    answered = run(rendered(printing(names), HOSTILE)).stdout.decode().split("\0")

    assert answered[:-1] == [HOSTILE[name] for name in names]


def test_variables_without_a_script_are_left_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    where = tmp_path / "made" / "worker.env"
    monkeypatch.setattr(userdata, "ENV_FILE", str(where))
    env = {**HOSTILE, "V_F": "END_OF_ENV\nEND_OF_ENV_\n"}

    run(rendered("", env))

    told = run(f". {where}\n" + printing(sorted(env))).stdout.decode().split("\0")
    assert told[:-1] == [env[name] for name in sorted(env)]
    assert where.stat().st_mode & 0o777 == 0o600


def test_the_first_line_stays_the_first():
    script = rendered("#!/usr/bin/env -S bash -e\necho hi\n", {"A": "1"})

    assert script.splitlines() == ["#!/usr/bin/env -S bash -e", "export A='1'", "echo hi"]


def test_a_script_of_its_first_line_alone_gets_its_variables_too():
    assert rendered("#!/bin/sh", {"A": "1"}) == "#!/bin/sh\nexport A='1'\n"


@pytest.mark.parametrize("text", ["", "#cloud-config\nruncmd: []\n", "#!/usr/bin/python3\nprint()\n"])
def test_without_variables_the_text_is_left_alone(text: str):
    assert rendered(text, {}) == text


@pytest.mark.parametrize(
    "text", ["#cloud-config\n", "#!/usr/bin/python3\n", "#!/usr/bin/env python3\n", "echo hi\n", "#!"]
)
def test_variables_go_into_no_other_text_than_a_shell_script(text: str):
    with pytest.raises(UserDataError, match="Begin it with #!/bin/sh") as raised:
        rendered(text, {"A": "1"})

    assert raised.value.code == "env_without_script"


@pytest.mark.parametrize("name", ["", "1A", "A-B", "A=B", "A B", "A;id", "Ä", "A\n"])
def test_a_name_that_is_none_is_refused(name: str):
    with pytest.raises(UserDataError) as raised:
        rendered("#!/bin/sh\n", {name: "1"})

    assert raised.value.code == "env_name"


@pytest.mark.parametrize(("value", "code"), [("a\0b", "env_value"), ("\ud800", "user_data_text")])
def test_a_value_that_no_machine_can_have_is_refused(value: str, code: str):
    with pytest.raises(UserDataError) as raised:
        rendered("#!/bin/sh\n", {"A": value})

    assert raised.value.code == code


@pytest.mark.parametrize("text", ["#!/bin/sh\necho hi\n", "#cloud-config\n", "MIME-Version: 1.0\n"])
def test_text_that_is_encoded_already_is_refused(text: str):
    encoded = base64.encodebytes(text.encode()).decode()

    with pytest.raises(UserDataError, match="plain text") as raised:
        rendered(encoded, {})

    assert raised.value.code == "user_data_encoded"


@pytest.mark.parametrize("text", ["hello", "abcd", "aGVsbG8="])
def test_a_text_that_only_looks_encoded_is_not(text: str):
    assert rendered(text, {}) == text


def test_the_limit_is_of_bytes_and_counts_the_variables():
    fits = "#!/bin/sh\n" + "ä" * ((MAX_BYTES - 10) // 2)

    assert rendered(fits, {}) == fits
    with pytest.raises(UserDataError, match=f"is {MAX_BYTES + 13} bytes, and EC2 takes {MAX_BYTES}") as raised:
        rendered(fits, {"A": "1"})
    assert raised.value.code == "user_data_too_long"


def test_the_file_is_where_the_page_says():
    assert ENV_FILE in (Path(__file__).parents[4] / "docs" / "capacity.md").read_text()
