"""deploy/datasette, over what a real fleet left behind: its page is typed, and each of its questions asked."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from tests.e2e.needs import programs
from tests.e2e.tools import Tools, tools
from tests.integration.judging import complete
from tests.support.processes import ROOT
from tests.support.site import Site
from tests.unit.deploy.test_datasette import FOLDER, QUERIES

pytestmark = pytest.mark.timeout(600)

HOSTILE = "<script>alert(1)</script>"

# All in one process: each `--get` would start another.
ASKING = """
import asyncio, json, sys
from datasette.app import Datasette
from datasette.utils import parse_metadata

async def main():
    files, metadata, paths = json.load(sys.stdin)
    asked = Datasette(immutables=files, metadata=parse_metadata(open(metadata).read()), crossdb=True)
    await asked.invoke_startup()
    answers = [await asked.client.get(path) for path in paths]
    print(json.dumps([[answer.status_code, answer.text] for answer in answers]))

asyncio.run(main())
"""


@dataclass(frozen=True, slots=True)
class Audit:
    """The copies, and what can show them."""

    site: Site
    shown: Tools

    def types(self, line: str) -> str:
        """Run a line of the page where it was copied to, with the real paths in it."""
        line = line.replace("/var/lib/reaperd/ledger.db", str(self.site.ledger_path))
        environment = {
            **self.site.environment(),
            "PATH": f"{self.site.folder / 'bin'}:{os.environ['PATH']}",
            "REAPERD_CONFIG": str(self.site.config),
        }
        done = subprocess.run(
            ["sh", "-c", line],
            cwd=self.site.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def asks(self, *paths: str) -> list[tuple[int, str]]:
        """Return status and text of each page."""
        files = [str(self.site.folder / "audit" / f"{name}.db") for name in ("ledger", "registry")]
        done = subprocess.run(
            [self.shown.python, "-c", ASKING],
            input=json.dumps([files, str(FOLDER / "metadata.yaml"), paths]),
            env={"PATH": os.environ["PATH"], "HOME": str(self.site.folder)},
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
        assert done.returncode == 0, done.stderr
        return [(status, text) for status, text in json.loads(done.stdout)]


def commands() -> list[str]:
    return re.findall(r"^\$ (.+)$", (FOLDER / "README.md").read_text(encoding="utf-8"), re.MULTILINE)


@pytest.fixture
def shown() -> Tools:
    programs("sqlite3", packages="sqlite3")
    return tools()


@pytest.fixture
def audit(site: Site, shown: Tools) -> Audit:
    """Let a fleet lose a machine, a person pull the brake, and copy what there is as the page says."""
    site.tracked()
    ended = site.orphan(worker=HOSTILE)
    assert [each["instance_id"] for each in complete(site.run("once"))["outcomes"]] == [ended]
    assert site.run("hold", "--reason", "a drill").code == 0
    assert site.run("once").code == 5
    programs = {
        "reaperd": (sys.executable, "-m", "reaperd"),
        "datasette": (str(shown.python), "-m", "datasette"),
    }
    (site.folder / "bin").mkdir()
    for name, words in programs.items():
        program = site.folder / "bin" / name
        program.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', encoding="utf-8")
        program.chmod(0o755)
    (site.folder / "deploy").symlink_to(ROOT / "deploy")
    made = Audit(site, shown)
    for line in commands()[:4]:
        made.types(line)
    return made


def rows(text: str) -> list[dict[str, Any]]:
    """Return the rows of an answer in JSON."""
    answer = json.loads(text)
    assert answer["ok"], answer
    return [dict(zip(answer["columns"], row, strict=True)) for row in answer["rows"]]


def test_the_page_is_typed_and_shows_what_was_terminated(audit: Audit):
    asked = commands()[-1].replace("datasette ", "env -u PYTHONPATH -u PYTHONWARNINGS datasette ", 1)

    (row,) = json.loads(audit.types(asked))

    assert (row["worker_id"], row["reason"], row["outcome"]) == (HOSTILE, "unregistered", "requested")


def test_every_question_is_answered_with_what_happened(audit: Audit):
    (ended,) = audit.site.accepted()
    pages = [f"/{database}/{name}.json?instance={ended}" for database, name in QUERIES]
    # Written too late: a row that names the machine now.
    audit.site.add_row("w-late", ended)
    (audit.site.folder / "audit" / "registry.db").unlink()
    audit.types(commands()[2])

    *answers, change, shown = audit.asks(*pages, "/ledger.json?sql=delete+from+intents", "/ledger/terminations")

    assert [(page, text) for page, (status, text) in zip(pages, answers, strict=True) if status != 200] == []
    told = {name: rows(text) for (_, name), (_, text) in zip(QUERIES, answers, strict=True)}
    assert [(row["instance_id"], row["worker_id"]) for row in told["terminations"]] == [(ended, HOSTILE)]
    assert [row["verdict"] for row in told["machine"]] == ["terminate"]
    assert [(row["act"], row["reason"]) for row in told["operators"]] == [("hold", "a drill")]
    assert [(row["outcome"], row["passes"]) for row in told["refusals"]] == [("refused", 1)]
    assert [row["terminations"] for row in told["passes_by_day"]] == [1]
    assert [row["worker_id"] for row in told["live"]] == ["w-late", "w-tracked"]
    assert [row["worker_id"] for row in told["terminated_and_tracked"]] == ["w-late"]
    assert (change[0], "Statement must be a SELECT" in change[1]) == (400, True)
    assert (shown[0], HOSTILE in shown[1]) == (200, False)
