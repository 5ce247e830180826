"""A host with reaperd on it: a configuration, a registry, a state folder, and a test cloud to point at."""

from __future__ import annotations

import signal
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from reaperd.ledger.ledger import Ledger, open_ledger
from registry.model import Worker, WorkerState
from registry.sqlite.admin import create
from registry.sqlite.writer import SqliteRegistryWriter
from tests.support.aging import age_ledger
from tests.support.ec2.cloud import DEFAULT_ACCOUNT
from tests.support.processes import Crew, Result, Running, environment, until

EAST, WEST = "us-east-1", "eu-west-1"
MOTO_ACCOUNT = "123456789012"

ACCESS_KEY = "AKIAQ3EGRIQNFAKEKEY7"
SECRET_KEY = "fHZ5c2VjcmV0LXRoYXQtbXVzdC1ub3QtbGVhay4wMDAx"
SESSION_TOKEN = "IQoJb3JpZ2luX2VjEtoken-that-must-not-leak-0002"
EXTERNAL_ID = "external-id-that-must-not-leak-0003"
SECRETS = (SECRET_KEY, SESSION_TOKEN, EXTERNAL_ID)

CONFIG = """\
deployment = "{deployment}"
mode = "{mode}"
state_dir = "{state}"
[registry]
path = "{registry}"
[reconcile]
interval = "1s"
confirm_passes = 1
[[providers]]
name = "aws"
type = "aws"
account = "{account}"
regions = {regions}
{more}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Everything one deployment has. `cloud` is a FaultyEc2 or a MotoCloud."""

    folder: Path
    cloud: Any
    crew: Crew | None = None
    """None where nothing is started."""
    deployment: str = "prod"
    account: str = DEFAULT_ACCOUNT

    @property
    def config(self) -> Path:
        return self.folder / "reaperd.toml"

    @property
    def registry(self) -> Path:
        return self.folder / "fleet" / "registry.db"

    @property
    def state(self) -> Path:
        return self.folder / "state"

    @property
    def ledger_path(self) -> Path:
        return self.state / "ledger.db"

    # ------------------------------------------------------------ what stands at the beginning

    def set_up(self) -> None:
        """Write a configuration that enforces, and an empty registry. There is no state folder yet."""
        self.configure()
        self.registry.parent.mkdir()
        create(self.registry, self.deployment)

    def configure(self, *, mode: str = "enforce", regions: tuple[str, ...] = (EAST, WEST), more: str = "") -> None:
        """Write the file. Single keys are better overridden by `settings=` of a command."""
        self.config.write_text(
            CONFIG.format(
                deployment=self.deployment,
                mode=mode,
                state=self.state,
                registry=self.registry,
                account=self.account,
                regions=list(regions),
                more=more,
            ),
            encoding="utf-8",
        )

    def orphan(self, region: str = EAST, *, worker: str | None = "w-orphan", **fields: Any) -> str:
        """Start a machine of ours that no row knows."""
        instance_id: str = self.cloud.add_instance(region=region, owner=self.deployment, worker=worker, **fields)
        return instance_id

    def tracked(self, region: str = EAST, *, worker: str = "w-tracked", **fields: Any) -> str:
        """Start a machine of ours with a row."""
        instance_id = self.orphan(region, worker=worker, **fields)
        self.add_row(worker, instance_id, region)
        return instance_id

    def add_row(self, worker: str, instance_id: str | None, region: str = EAST) -> None:
        """Write a live row."""
        self.writer().add(
            Worker(
                worker_id=worker,
                provider="aws",
                region=region,
                instance_id=instance_id,
                state=WorkerState.RUNNING if instance_id else WorkerState.LAUNCHING,
            )
        )

    def writer(self) -> SqliteRegistryWriter:
        """Return the control plane's side of the registry."""
        return SqliteRegistryWriter(self.registry, self.deployment)

    def later(self, **by: float) -> None:
        """Let so much time pass (`minutes=5`), for the cloud and for the next process. On FaultyEc2."""
        self.cloud.advance(timedelta(**by).total_seconds())
        age_ledger(self.ledger_path, timedelta(**by))

    # ------------------------------------------------------------ commands

    def environment(self, settings: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return what a command gets; `settings` are dotted keys that override the file's."""
        keys = {
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_SESSION_TOKEN": SESSION_TOKEN,
            "HOME": str(self.folder),
        }
        # Any free port: the usual one may be somebody's on this machine.
        settings = {"http.listen": "127.0.0.1:0", **(settings or {})}
        overrides = {f"REAPERD_{key.upper().replace('.', '__')}": value for key, value in settings.items()}
        return environment(**{**self.cloud.environment(), **keys, **overrides})

    def start(self, *argv: str, settings: Mapping[str, str] | None = None, cold: bool = False, **more: Any) -> Running:
        """Start a command on this site; `--format json` is added to the two that know it."""
        assert self.crew is not None
        start = self.crew.cold if cold else self.crew.warm
        form = ("--format", "json") if argv[0] in {"once", "plan"} else ()
        words = (argv[0], "--config", str(self.config), *form, *argv[1:])
        return start(*words, env=self.environment(settings), cwd=self.folder, **more)

    def run(self, *argv: str, settings: Mapping[str, str] | None = None, cold: bool = False, **more: Any) -> Result:
        """Start a command and wait for its end."""
        return self.start(*argv, settings=settings, cold=cold, **more).wait()

    # ------------------------------------------------------------ what is there afterwards

    @contextmanager
    def ledger(self) -> Iterator[Ledger]:
        """Open the ledger as another process would."""
        with open_ledger(
            self.ledger_path, deployment=self.deployment, owner_tag="reaperd:owner", now=datetime.now(UTC)
        ) as ledger:
            yield ledger

    def freeze(self, running: Running) -> None:
        """Stop a process, and return when it stands still.

        Never where it holds the ledger's write lock: nobody could take over from it then, and that is another story.
        """
        for _ in range(100):
            running.kill(signal.SIGSTOP)
            until(lambda: _state(running.pid) == "T")
            if self._ledger_is_free():
                return
            running.kill(signal.SIGCONT)
            time.sleep(0.01)
        message = "it holds the ledger whenever it is stopped"
        raise AssertionError(message)

    def _ledger_is_free(self) -> bool:
        with closing(sqlite3.connect(self.ledger_path, timeout=0, isolation_level=None)) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return False
            connection.execute("ROLLBACK")
            return True

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return what a query of the ledger gives."""
        with closing(sqlite3.connect(self.ledger_path)) as connection:
            return connection.execute(query).fetchall()

    def intents(self) -> list[tuple[str, str | None, str | None]]:
        """Return instance id, outcome and how it was closed of every intent, in order."""
        return self.rows("SELECT instance_id, outcome, closed_as FROM intents ORDER BY intent_id")

    def mutations(self) -> list[tuple[str, str]]:
        """Return the action and the machine of every request that would change the cloud, with DryRun or without."""
        return [
            (e.action, e.request.params.get("InstanceId.1", "")) for e in self.cloud.requests() if e.request.mutating
        ]

    def accepted(self) -> list[str]:
        """Return the ids whose termination the cloud accepted, sorted, as often as it did. On FaultyEc2."""
        accepted: list[str] = sorted(self.cloud.terminated_ids())
        return accepted


def tree(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Return every file below a folder with its inode, time of change and content, and every folder with its time."""
    return {str(path.relative_to(folder)): _mark(path) for path in sorted(folder.rglob("*"))}


def _mark(path: Path) -> tuple[int, int, bytes]:
    # Not the ctime: to root's SQLite, opening a -wal means to give it the owner that it has.
    seen = path.stat()
    return seen.st_ino, seen.st_mtime_ns, b"" if path.is_dir() else path.read_bytes()


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
