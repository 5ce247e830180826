"""The plug-in of examples/provider-plugin is installed as anybody's would be, and reaperd works with it."""

import json
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from registry.sqlite.admin import create
from tests.packaging.conftest import ROOT, run

SETTINGS = """\
deployment = "prod-eu"
state_dir = "{folder}/state"
[registry]
path = "{folder}/registry.db"
[[providers]]
name = "acme"
type = "acme"
file = "{folder}/machines.json"
"""
STRAY = {
    "power": "on",
    "type": "small",
    "since": "2026-01-10T10:00:00+00:00",
    "tags": {"reaperd:owner": "prod-eu", "reaperd:worker-id": "w-1"},
}


@pytest.fixture(scope="module")
def python(tmp_path_factory) -> Path:
    """An environment of the plug-in's own, built and installed by pip without a network."""
    folder = tmp_path_factory.mktemp("plugin")
    # A copy: the build leaves its traces beside the sources.
    sources = shutil.copytree(ROOT / "examples" / "provider-plugin", folder / "sources")
    venv.create(folder / "home", with_pip=False, symlinks=True)
    made = folder / "home" / "bin" / "python"
    (packages,) = (folder / "home" / "lib").glob("python3.*/site-packages")
    (packages / "checkout.pth").write_text(f"{ROOT}\n{sysconfig.get_path('purelib')}\n")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", made, "install", "--quiet")
    run(*pip, "--no-deps", "--no-index", "--no-build-isolation", sources, cwd=folder)
    return made


@pytest.fixture
def home(tmp_path) -> Path:
    inventory = {"prices": {"small": "0.02"}, "free": 2, "machines": {"vm-1": STRAY}}
    (tmp_path / "machines.json").write_text(json.dumps(inventory))
    (tmp_path / "reaperd.toml").write_text(SETTINGS.format(folder=tmp_path))
    create(tmp_path / "registry.db", "prod-eu")
    return tmp_path


def reaperd(python: Path, home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python, "-m", "reaperd", *words, "--config", "reaperd.toml"],
        cwd=home,
        env={"PATH": "/usr/bin:/bin", "AWS_EC2_METADATA_DISABLED": "true"},
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )


def test_a_rehearsal_shows_its_orphan(python, home):
    done = reaperd(python, home, "plan", "--format", "json")

    (verdict,) = json.loads(done.stdout)["verdicts"]
    assert done.returncode == 3, done.stderr
    assert (verdict["provider"], verdict["instance_id"], verdict["verdict"]) == ("acme", "vm-1", "terminate")


def test_every_promise_of_it_is_proved(python, home):
    done = reaperd(python, home, "conformance", "--provider", "acme", "--yes", "--format", "json")

    machines = json.loads((home / "machines.json").read_text())["machines"]
    assert done.returncode == 0, done.stdout + done.stderr
    assert {each["verdict"] for each in json.loads(done.stdout)["promises"]} == {"kept"}
    assert {name: each["power"] for name, each in machines.items()} == {"vm-1": "on", "acme-1": "ending"}


def test_its_own_tests_hold_it_to_the_suites(python, home):
    tests = home / "tests"
    tests.mkdir()
    for name in ("conftest.py", "test_acme.py"):
        shutil.copy(ROOT / "examples" / "provider-plugin" / name, tests)

    done = run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", tests, "-c", "/dev/null", cwd=tests)

    assert " passed" in done
    assert "warning" not in done
