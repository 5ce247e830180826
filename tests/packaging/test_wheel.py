"""The wheel holds the four packages, whole, the manual page, and nothing else."""

import tomllib
import zipfile
from email import message_from_string
from pathlib import PurePosixPath

import pytest

from tests.packaging.conftest import ROOT, committed_files

PACKAGES = ("alerts", "providers", "reaperd", "registry")

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DATA = f"reaperd-{PROJECT['version']}.data"


def read(wheel, ending: str) -> str:
    """Return the text of the one file with this ending."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith(ending))
        return archive.read(name).decode()


def test_it_holds_the_four_packages_the_manual_page_and_its_own_record(names):
    record = f"reaperd-{PROJECT['version']}.dist-info"

    assert sorted({PurePosixPath(name).parts[0] for name in names}) == sorted((*PACKAGES, DATA, record))
    assert [name for name in names if name.startswith(DATA)] == [f"{DATA}/data/share/man/man1/reaperd.1"]


def test_it_holds_everything_that_is_committed_and_nothing_that_is_not_there(names):
    committed = {path.relative_to(ROOT).as_posix() for path in committed_files(*PACKAGES)}
    packed = {name for name in names if ".dist-info/" not in name and not name.startswith(DATA)}

    assert committed - packed == set()
    assert {name for name in packed if not (ROOT / name).is_file() or "__pycache__" in name} == set()


@pytest.mark.parametrize("package", PACKAGES)
def test_each_package_says_that_it_is_typed(names, package):
    assert f"{package}/py.typed" in names


def test_the_licence_is_in_it(wheel):
    assert read(wheel, "/licenses/LICENSE") == (ROOT / "LICENSE").read_text(encoding="utf-8")


def test_the_command_and_the_group_of_the_plug_ins_are_declared(wheel):
    told = read(wheel, "/entry_points.txt").split()

    assert told == ["[console_scripts]", "reaperd", "=", "reaperd.__main__:main"]


def test_the_front_page_is_the_readme(wheel):
    told = message_from_string(read(wheel, "/METADATA"))

    assert told.get_payload().strip() == (ROOT / "README.md").read_text(encoding="utf-8").strip()
    assert told["Requires-Python"] == ">=3.11"
    assert told["License-Expression"] == "Apache-2.0"
