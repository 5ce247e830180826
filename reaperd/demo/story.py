"""Six scenes. Each shows the command that was run and what it printed; nothing is told that was not just done."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from reaperd.clock import SystemClock
from reaperd.demo.cloud import ACCOUNT, EmbeddedAws
from reaperd.errors import ExitCode, ReaperdError
from registry.model import Worker, WorkerState
from registry.sqlite.admin import create
from registry.sqlite.writer import SqliteRegistryWriter

DEPLOYMENT = "demo"
REGIONS = ("us-east-1", "eu-west-1")
WORKERS = 8
LOST = frozenset({3, 6})
"""The workers whose launch answer the control plane lost: they run, and no row knows them."""

_AGE = timedelta(hours=2)
_FORGOTTEN_FOR = timedelta(days=431)
"""How old the oldest machine of the published case was."""

_WIDTH = 80

_CONFIG = """\
deployment = "{deployment}"
mode = "{mode}"
state_dir = "{folder}/state"

[registry]
path = "{folder}/registry.db"

[reconcile]
confirm_passes = 1     # the default is 3 looks in a row; the demo does not wait
interval = "1s"

[[providers]]
name = "aws"
type = "aws"
account = "{account}"
regions = ["us-east-1", "eu-west-1"]
"""

Say = Callable[[str], None]


class DemoFailedError(ReaperdError):
    """A command of the demo answered otherwise than the story tells."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Where the story is played: a folder, an AWS, and somebody to tell it to."""

    folder: Path
    aws: EmbeddedAws
    now: datetime
    say: Say

    @property
    def config(self) -> Path:
        """Return the configuration file."""
        return self.folder / "reaperd.toml"

    def write_config(self, mode: str) -> None:
        """Write the configuration file."""
        text = _CONFIG.format(deployment=DEPLOYMENT, mode=mode, folder=self.folder, account=ACCOUNT)
        self.config.write_text(text, encoding="utf-8")

    def worker(self, number: int, *, owner: str = DEPLOYMENT) -> tuple[str, str]:
        """Start a worker machine; return its region and instance id."""
        region = REGIONS[number % len(REGIONS)]
        tags = {"Name": f"worker-{number}", "reaperd:owner": owner, "reaperd:worker-id": f"w-{number}"}
        launched_at = self.now - _AGE - timedelta(minutes=number)
        return region, self.aws.launch(region, tags, launched_at=launched_at, instance_type="g5.xlarge")

    def run(self, *arguments: str, expect: ExitCode) -> None:
        """Run a command as a person would, show it and what it printed.

        Raises:
            DemoFailedError: if its exit code is not the one that the story tells of.
        """
        self.say(f"\n$ reaperd {' '.join(arguments)}")
        done = subprocess.run(  # noqa: S603 - our own program, arguments from this file
            [sys.executable, "-m", "reaperd", *arguments],
            cwd=self.folder,
            env=self._environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        self.say(done.stdout.rstrip())
        self.say(f"(exit code {done.returncode})")
        if done.returncode != expect:
            # The log goes to stderr and is left out of the story, unless the story ends here.
            self.say(done.stderr.rstrip())
            msg = f"reaperd {' '.join(arguments)} answered {done.returncode}, not {int(expect)}"
            raise DemoFailedError(msg)

    def _environment(self) -> Mapping[str, str]:
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "REAPERD_"))}
        return {**inherited, **self.aws.environment, "REAPERD_CONFIG": str(self.config), "COLUMNS": str(_WIDTH)}


def play(say: Say) -> None:
    """Play all scenes, and leave nothing behind.

    Raises:
        DemoFailedError: if a command answers otherwise than the story tells.
    """
    with tempfile.TemporaryDirectory(prefix="reaperd-demo-") as folder, EmbeddedAws() as aws:
        stage = Stage(Path(folder), aws, SystemClock().now(), say)
        for scene in (_fleet, _plan, _reap, _region_fails, _fresh_registry, _audit):
            scene(stage)
    say("\nThe embedded AWS is gone and its folder is deleted. Next: docs/quickstart.md")


def populate(stage: Stage) -> None:
    """Start the fleet, and write down what the control plane knows of it: all but two of its workers."""
    stage.write_config("dry-run")
    path = stage.folder / "registry.db"
    create(path, DEPLOYMENT)
    registry = SqliteRegistryWriter(path, DEPLOYMENT)
    for number in range(1, WORKERS + 1):
        region, instance_id = stage.worker(number)
        if number not in LOST:
            row = Worker(
                worker_id=f"w-{number}",
                provider="aws",
                region=region,
                instance_id=instance_id,
                state=WorkerState.RUNNING,
            )
            registry.add(row)
    stage.worker(9, owner="someone-else")
    stage.aws.launch(
        "us-east-1",
        {"Name": "image-builder-tmp"},
        launched_at=stage.now - _FORGOTTEN_FOR,
        instance_type="g4dn.xlarge",
    )


def _fleet(stage: Stage) -> None:
    _title(stage, "1. A fleet, and a control plane that loses two of its workers")
    populate(stage)
    stage.say(
        "An embedded AWS now runs ten machines in two regions: eight workers of the\n"
        f"deployment {DEPLOYMENT!r}, one worker of another deployment, and one VM without an\n"
        "owner that was forgotten 431 days ago. The control plane crashed while it\n"
        "launched two of the eight: these run and bill, and no row knows them."
    )
    stage.run("registry", "list", expect=ExitCode.OK)


def _plan(stage: Stage) -> None:
    _title(stage, "2. What would be done? `plan` looks and leaves no trace")
    stage.run("plan", expect=ExitCode.FINDINGS)


def _reap(stage: Stage) -> None:
    _title(stage, "3. Rehearsal is the default; enforcing is one line in the file")
    stage.run("once", expect=ExitCode.OK)
    stage.say('\nThe file now says mode = "enforce":')
    stage.write_config("enforce")
    stage.run("once", expect=ExitCode.OK)
    stage.say("\nAccepted is not gone. Only a later, complete look confirms it:")
    stage.run("once", expect=ExitCode.OK)


def _region_fails(stage: Stage) -> None:
    _title(stage, "4. One region cannot be listed: nothing is terminated anywhere")
    stage.worker(10)
    stage.aws.deny("eu-west-1")
    stage.say("A new orphan runs in us-east-1, which answers. eu-west-1 denies the listing.")
    stage.run("once", expect=ExitCode.INCOMPLETE)
    stage.aws.deny()


def _fresh_registry(stage: Stage) -> None:
    _title(stage, "5. The registry is suddenly a fresh, empty file: nobody is an orphan yet")
    (stage.folder / "registry.db").rename(stage.folder / "registry.old")
    create(stage.folder / "registry.db", DEPLOYMENT)
    stage.say("To a simpler tool every worker would look untracked now, and all would go.")
    stage.run("once", expect=ExitCode.SAFETY_STOP)


def _audit(stage: Stage) -> None:
    _title(stage, "6. The audit sees what nobody owns. It alerts, and can never terminate")
    stage.run("audit", expect=ExitCode.FINDINGS)


def _title(stage: Stage, text: str) -> None:
    stage.say(f"\n{'=' * _WIDTH}\n{text}\n{'=' * _WIDTH}")
