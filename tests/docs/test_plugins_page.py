"""The plug-in of docs/plugins.md is installed, rehearsed with, enforced with, and put to the conformance suites."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from providers import errors
from registry.model import Worker, WorkerState
from registry.sqlite.admin import create
from registry.sqlite.writer import SqliteRegistryWriter
from tests.docs.markdown import files, read, spans
from tests.docs.pages import ROOT

PAGE = read("docs/plugins.md")
FILES = files(PAGE)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with the plug-in, installed as far as Python can tell, a cloud of two machines and one row."""
    for name in ("acme_reaperd.py", "test_acme.py"):
        (tmp_path / name).write_text(FILES[name])
    record = tmp_path / "acme_reaperd-1.0.dist-info"
    record.mkdir()
    (record / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-reaperd\nVersion: 1.0\n")
    declared = FILES["pyproject.toml"].replace('project.entry-points."reaperd.providers"', "reaperd.providers")
    (record / "entry_points.txt").write_text(declared.partition("\n")[2].replace('"', ""))
    (tmp_path / "machines.json").write_text(json.dumps({"vm-1": machine("w-1"), "vm-2": machine("w-2")}))
    create(tmp_path / "registry.db", "prod-eu")
    row = Worker(worker_id="w-1", provider="acme", region="oslo", instance_id="vm-1", state=WorkerState.RUNNING)
    SqliteRegistryWriter(tmp_path / "registry.db", "prod-eu").add(row)
    settings = FILES["reaperd.toml"].replace("/var/lib/fleet", str(tmp_path)).replace("/var/lib/acme", str(tmp_path))
    (tmp_path / "reaperd.toml").write_text(settings.replace("/var/lib/reaperd", f"{tmp_path}/state"))
    return tmp_path


def machine(worker: str) -> dict[str, object]:
    tags = {"reaperd:owner": "prod-eu", "reaperd:worker-id": worker}
    return {"power": "on", "since": "2026-01-10T10:00:00+00:00", "tags": tags}


def run(home: Path, *command: str) -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith(("REAPERD_", "AWS_", "PYTEST_"))}
    python_path = os.pathsep.join((str(home), str(ROOT)))
    return subprocess.run(
        [sys.executable, *command],
        cwd=home,
        env={**own, "PYTHONPATH": python_path, "AWS_EC2_METADATA_DISABLED": "true"},
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )


def test_a_rehearsal_shows_the_orphan(home):
    done = run(home, "-m", "reaperd", "plan", "--config", "reaperd.toml", "--format", "json")

    told = json.loads(done.stdout)
    assert done.returncode == 3, done.stderr
    assert {verdict["instance_id"]: verdict["verdict"] for verdict in told["verdicts"]} == {
        "vm-1": "keep",
        "vm-2": "terminate",
    }


def test_an_enforcing_pass_terminates_it(home):
    settings = (home / "reaperd.toml").read_text()
    looser = 'mode = "enforce"\n' + settings + "\n[reconcile]\nconfirm_passes = 1\n"
    (home / "reaperd.toml").write_text(looser)

    done = run(home, "-m", "reaperd", "once", "--config", "reaperd.toml")

    powers = {name: each["power"] for name, each in json.loads((home / "machines.json").read_text()).items()}
    assert done.returncode == 0, done.stdout + done.stderr
    assert powers == {"vm-1": "on", "vm-2": "ending"}


def test_enforcing_with_a_plugin_that_cannot_be_asked_again_is_refused(home):
    (home / "reaperd.toml").write_text('mode = "enforce"\n' + (home / "reaperd.toml").read_text())
    (module,) = home.rglob("acme_reaperd.py")
    module.write_text(module.read_text().replace("seen=None, permitted=None", "seen=None"))
    before = (home / "machines.json").read_text()

    done = run(home, "-m", "reaperd", "once", "--config", "reaperd.toml")

    assert done.returncode == 78, done.stdout + done.stderr
    assert "update the plug-in" in done.stderr
    assert (home / "machines.json").read_text() == before


def test_half_an_inventory_is_an_incomplete_listing(home):
    (home / "machines.json").write_text('{"vm-1": {"power"')

    done = run(home, "-m", "reaperd", "plan", "--config", "reaperd.toml")

    assert done.returncode == 4, done.stdout + done.stderr


def test_a_table_without_its_key_is_bad_configuration(home):
    settings = (home / "reaperd.toml").read_text()
    (home / "reaperd.toml").write_text("".join(line for line in settings.splitlines(True) if "file =" not in line))

    done = run(home, "-m", "reaperd", "plan", "--config", "reaperd.toml")

    assert done.returncode == 78
    assert "set `file`" in done.stderr


def test_it_keeps_the_promises_of_the_ports(home):
    done = run(home, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--confcutdir", str(home), "test_acme.py")

    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


def test_every_error_that_a_terminator_may_raise_is_on_the_page():
    told = " ".join(spans(PAGE))
    every = [kind.__name__ for kind in errors.TerminateError.__subclasses__()]
    assert [name for name in every if name not in told] == []
