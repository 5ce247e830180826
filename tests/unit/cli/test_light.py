"""What asks no cloud loads nothing of a cloud; what only helps loads nothing heavy at all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.cli.running import Place
from tests.unit.cli.test_page import EVERY

_ROOT = Path(__file__).parents[3]
_CLOUD = ("boto3", "botocore", "s3transfer", "lxml", "moto")
_HEAVY = (
    *_CLOUD,
    "pydantic",
    "sqlite3",
    "sqlite_utils",
    "structlog",
    "rich",
    "yaml",
    "prometheus_client",
    "apscheduler",
)
_OFFLINE: dict[str, tuple[str, ...]] = {
    "status": ("--url", "http://127.0.0.1:1"),
    "health": ("--url", "http://127.0.0.1:1"),
    "history": (),
    "approve": ("sha256:0",),
    "hold": ("--reason", "a test"),
    "resume": (),
    "alerts list": (),
    "mute": ("leak/aws/us-east-1/i-1", "--for", "1h", "--reason", "a test"),
    "unmute": ("leak/aws/us-east-1/i-1",),
    "registry init": (),
    "registry add": ("w-1", "--provider", "aws", "--region", "us-east-1"),
    "registry set-place": ("w-1", "--provider", "aws", "--region", "us-west-2"),
    "registry set-instance": ("w-1", "i-1"),
    "registry set-state": ("w-1", "draining"),
    "registry heartbeat": ("w-1",),
    "registry list": (),
    "registry verify": (),
    "registry migrate": (),
    "registry backup": ("copy.db",),
    "registry import": ("rows.csv", "--from", "csv", "--yes"),
    "registry trust": ("--reason", "a test", "--yes"),
    "registry remove": ("w-1",),
    "gate list": (),
    "gate on": ("aws",),
    "gate off": ("aws", "--reason", "a test"),
    "check-config": (),
    "rules": (),
}
"""Each with what makes it do something. What it does is tested elsewhere."""
_ONLINE = {
    *("run", "plan", "once", "audit", "doctor", "quote", "types", "launch", "conformance", "demo"),
    # Names machines, and asks whether it runs on one of them; the policy is written from what the adapter sends.
    *("explain", "iam-policy"),
    # A channel can be any plug-in's.
    *("alerts test", "alerts flush"),
}

_PROGRAM = """\
import json, sys
from reaperd.cli import main
heavy = sys.argv[1].split(",")
for words in json.loads(sys.stdin.read()):
    try:
        code = main(words, standalone_mode=True)
    except SystemExit as done:
        code = done.code
    found = [name for name in heavy if name in sys.modules]
    print("##" + json.dumps([words, code, found]), flush=True)
    if found:
        break
"""


def typed(commands: list[list[str]], heavy: tuple[str, ...], folder: Path) -> list[tuple[list[str], int, list[str]]]:
    """Run commands one after the other in a process of their own; return each with its exit code and what it loaded."""
    # What measures the coverage loads more than the program does.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    environment = {**kept, "REAPERD_CONFIG": str(folder / "reaperd.toml"), "PYTHONPATH": str(_ROOT)}

    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, ",".join(heavy)],
        input=json.dumps(commands),
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )

    return [json.loads(line[2:]) for line in done.stdout.splitlines() if line.startswith("##")]


def test_every_command_is_here():
    leaves = {words for words in EVERY if not any(other.startswith(f"{words} ") for other in EVERY)} - {""}

    assert leaves == set(_OFFLINE) | _ONLINE


def test_no_help_loads_anything_heavy(place: Place, tmp_path: Path):
    commands = [["--version"], ["--help"], *([*words.split(), "--help"] for words in EVERY)]

    told = typed(commands, _HEAVY, tmp_path)

    assert [(words, found) for words, _, found in told if found] == []
    assert [words for words, code, _ in told if code != 0] == []
    assert len(told) == len(commands)


def test_what_asks_no_cloud_loads_no_sdk(place: Place, tmp_path: Path):
    (tmp_path / "rows.csv").write_text("worker_id,provider,region,instance_id,state\n", encoding="utf-8")
    commands = [[*words.split(), *more] for words, more in _OFFLINE.items()]

    told = typed(commands, _CLOUD, tmp_path)

    assert [(words, found) for words, _, found in told if found] == []
    assert len(told) == len(commands)
    # Wrong usage would have loaded nothing either.
    assert [words for words, code, _ in told if code == 2] == []


@pytest.mark.parametrize("words", [["check-config"], ["rules"], ["hold", "--reason", "x"], ["gate", "list"]])
def test_nor_does_it_in_a_process_of_its_own(place: Place, tmp_path: Path, words: list[str]):
    ((_, _, found),) = typed([words], _CLOUD, tmp_path)

    assert found == []
