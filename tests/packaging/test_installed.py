"""What was installed from the wheel runs, far from the checkout."""

import json

import pytest

from reaperd import __version__
from tests.packaging.conftest import ROOT, run
from tests.packaging.test_wheel import PACKAGES


@pytest.fixture
def elsewhere(tmp_path):
    return tmp_path


def test_the_command_answers(installed, elsewhere):
    assert run(installed / "reaperd", "--help", cwd=elsewhere).startswith("Usage: reaperd ")
    assert run(installed / "reaperd", "--version", cwd=elsewhere) == f"reaperd, version {__version__}\n"
    assert run(installed / "python", "-m", "reaperd", "--version", cwd=elsewhere).endswith(f"{__version__}\n")


def test_its_manual_page_lies_where_man_looks_beside_the_command(installed):
    page = installed.parent / "share" / "man" / "man1" / "reaperd.1"

    assert page.read_bytes() == (ROOT / "docs" / "man" / "reaperd.1").read_bytes()


def test_the_four_packages_come_from_the_wheel(installed, elsewhere):
    program = f"import json, {', '.join(PACKAGES)}; print(json.dumps([m.__file__ for m in ({', '.join(PACKAGES)})]))"
    found = json.loads(run(installed / "python", "-c", program, cwd=elsewhere))

    assert [path for path in found if not path.startswith(str(installed.parent))] == []


def test_every_module_can_be_imported(installed, elsewhere):
    program = (
        "import importlib, pkgutil\n"
        f"for package in {PACKAGES!r}:\n"
        "    found = pkgutil.walk_packages(importlib.import_module(package).__path__, package + '.')\n"
        "    for module in found:\n"
        "        if not module.name.endswith('__main__'):\n"
        "            importlib.import_module(module.name)\n"
        "        print(module.name)\n"
    )

    assert "registry.sqlite.writer" in run(installed / "python", "-c", program, cwd=elsewhere).split()


def test_a_registry_is_made_and_found_good(installed, elsewhere):
    at = ("--path", "registry.db")
    run(installed / "reaperd", "registry", "init", *at, "--deployment", "prod-eu", cwd=elsewhere)

    assert run(installed / "reaperd", "registry", "verify", *at, cwd=elsewhere)
