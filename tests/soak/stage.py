"""What the soak plays on: a cloud in a process of its own, a host with a registry and a ledger, and its operator."""

from __future__ import annotations

import http.client
import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from reaperd.core.model import Brake, RegistryPin
from reaperd.ledger.connection import time_of
from reaperd.ledger.ledger import Ledger, open_ledger
from registry.sqlite import SqliteRegistry
from registry.sqlite.admin import create
from registry.sqlite.writer import SqliteRegistryWriter
from tests.soak.victim import Victim
from tests.support.ec2 import control, process
from tests.support.ec2.clients import Clients
from tests.support.processes import environment

DEPLOYMENT = "soak"
ACCOUNT = "111111111111"
EAST, WEST, FAR = "us-east-1", "eu-west-1", "ap-south-1"
REGIONS = (EAST, WEST)
BEGIN = datetime(2026, 1, 10, 12, tzinfo=UTC)
OPERATOR = "the operator of the soak"

LAUNCH_GRACE = timedelta(minutes=5)
VANISH_GRACE = timedelta(minutes=20)
LAUNCHING_TTL = timedelta(minutes=20)
CONFIRM_PASSES = 3
MAX_PER_PASS = 5

CONFIG = """\
deployment = "{deployment}"
mode = "enforce"
state_dir = "{state}"
[registry]
path = "{registry}"
busy_timeout = "1s"
launching_ttl = "20m"
vanish_grace = "20m"
[reconcile]
interval = "60s"
deadline = "20s"
launch_grace = "{launch_grace}"
confirm_passes = {confirm_passes}
stuck_after = "{stuck_after}"
[reconcile.breaker]
max_per_pass = {max_per_pass}
max_fraction = {max_fraction}
max_per_hour = {max_per_hour}
[lease]
ttl = "10m"
[ledger]
keep = "{keep}"
[http]
listen = "127.0.0.1:0"
[[providers]]
name = "aws"
type = "aws"
account = "{account}"
regions = ["us-east-1", "eu-west-1"]
"""
USUAL = {
    "launch_grace": "5m",
    "stuck_after": "5m",
    "confirm_passes": CONFIRM_PASSES,
    "max_per_pass": MAX_PER_PASS,
    "max_fraction": 0.5,
    "max_per_hour": 60,
    "keep": "1d",
}


_NAMES = {
    "change": ("instance_id",),
    "remove": ("instance_id",),
    "set_caller_account": ("account",),
    "set_state": ("instance_id", "state"),
    "set_time": ("moment",),
}
"""What may be given to the cloud without its name."""


class Remote:
    """The test cloud over its control port: every call of tests/support/README.md but `on`."""

    def __init__(self, url: str) -> None:
        self.url = url

    def __getattr__(self, verb: str) -> Any:
        return partial(self._tell, verb)

    def _tell(self, verb: str, *values: Any, **fields: Any) -> Any:
        return control(self.url, verb, **dict(zip(_NAMES.get(verb, ()), values, strict=True)), **fields)

    def end_fault(self, number: int) -> None:
        """End a fault."""
        control(self.url, "remove_fault", number=number)

    def asked(self) -> list[dict[str, Any]]:
        """Return the terminates that the cloud received since they were last forgotten."""
        received: list[dict[str, Any]] = control(self.url, "terminate_requests")
        return received


@dataclass(slots=True)
class Stage:
    """Everything but the daemon."""

    folder: Path
    cloud: Remote
    settings: dict[str, Any] = field(default_factory=dict)
    now: datetime = BEGIN
    approved: set[str] = field(default_factory=set)
    """The machines that the operator let through the breaker."""
    braked: bool = False

    @property
    def config(self) -> Path:
        return self.folder / "reaperd.toml"

    @property
    def registry(self) -> Path:
        return self.folder / "registry.db"

    @property
    def ledger_path(self) -> Path:
        return self.folder / "state" / "ledger.db"

    def set_up(self) -> None:
        """Write the configuration, and an empty registry."""
        self.config.write_text(
            CONFIG.format(
                **{**USUAL, **self.settings},
                deployment=DEPLOYMENT,
                account=ACCOUNT,
                state=self.ledger_path.parent,
                registry=self.registry,
            ),
            encoding="utf-8",
        )
        create(self.registry, DEPLOYMENT)

    def start(self) -> Victim:
        """Start a daemon here."""
        return Victim(self.config, environment(**Clients(self.cloud.url).environment(EAST)), self.now)

    # ------------------------------------------------------------ the control plane

    def writer(self) -> SqliteRegistryWriter:
        """Return the control plane's side of the registry."""
        return SqliteRegistryWriter(self.registry, DEPLOYMENT, now=lambda: self.now)

    def files_of_registry(self) -> list[Path]:
        """Return the registry's file, and what SQLite keeps beside it."""
        return [path for end in ("", "-wal", "-shm") if (path := Path(f"{self.registry}{end}")).exists()]

    def copy_registry(self, target: Path) -> None:
        """Copy the registry as a backup does."""
        target.unlink(missing_ok=True)
        with closing(sqlite3.connect(self.registry)) as source, closing(sqlite3.connect(target)) as copied:
            source.backup(copied)

    def replace_registry(self, source: Path) -> None:
        """Put a copy in the registry's place."""
        for path in self.files_of_registry():
            path.unlink()
        shutil.copyfile(source, self.registry)

    # ------------------------------------------------------------ the operator

    @contextmanager
    def ledger(self) -> Iterator[Ledger]:
        """Open the ledger as an operator's command does."""
        with open_ledger(self.ledger_path, deployment=DEPLOYMENT, owner_tag="reaperd:owner", now=self.now) as ledger:
            yield ledger

    def approve(self, digest: str) -> None:
        """Let a recorded plan through the breaker."""
        with self.ledger() as ledger:
            machines = ledger.planned(digest)
            if machines is not None:
                ledger.approve(digest, machines, OPERATOR, "the soak wants it", self.now)
                self.approved |= {ref.instance_id for ref in machines}

    def hold(self) -> None:
        """Put the brake on."""
        with self.ledger() as ledger:
            ledger.hold(Brake(since=self.now, by=OPERATOR, reason="an incident"))
        self.braked = True

    def resume(self) -> None:
        """Take the brake off."""
        with self.ledger() as ledger:
            ledger.resume(OPERATOR, "it is over", self.now)
        self.braked = False

    def trust(self) -> None:
        """Take the registry in the file for the right one."""
        found = SqliteRegistry(self.registry).snapshot()
        identity = found.identity
        pin = RegistryPin(
            registry_id=identity.registry_id, epoch=identity.epoch, nonce=found.nonce, mismatch_accepted=True
        )
        with self.ledger() as ledger:
            ledger.trust(pin, OPERATOR, "restored on purpose", self.now)

    # ------------------------------------------------------------ looking

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return what a query of the ledger gives."""
        with closing(sqlite3.connect(self.ledger_path)) as connection:
            return connection.execute(query, values).fetchall()

    def ledger_bytes(self) -> int:
        """Return how much room the ledger takes on the disk."""
        return sum(path.stat().st_size for path in self.ledger_path.parent.glob("ledger.db*"))

    def age_of_decisions(self) -> timedelta:
        """Return how old the first decision is that the ledger has.

        Not the one of the earliest time: a clock that was an hour behind made that one old when it was new.
        """
        ((oldest,),) = self.rows("SELECT finished_at FROM passes ORDER BY seq LIMIT 1")
        return self.now - time_of(oldest)


def scrape(address: tuple[str, int]) -> list[str]:
    """Return the series on a page of metrics, each with its labels."""
    connection = http.client.HTTPConnection(*address, timeout=30)
    try:
        connection.request("GET", "/metrics")
        page = connection.getresponse().read().decode()
    finally:
        connection.close()
    return [line.rpartition(" ")[0] for line in page.splitlines() if line and not line.startswith("#")]


@contextmanager
def stage(folder: Path, **settings: Any) -> Iterator[Stage]:
    """Start a cloud whose clock stands, and set up a host beside it."""
    fleet = folder / "fleet.json"
    regions = [EAST, WEST, FAR]
    behaviour = {"shutdown_s": 60, "forget_s": 900, "page_size": 12, "regions": regions, "now": BEGIN.isoformat()}
    fleet.write_text(json.dumps({"cloud": behaviour}), encoding="utf-8")
    with process.running("--fleet", str(fleet)) as url:
        made = Stage(folder=folder, cloud=Remote(url), settings=settings)
        made.set_up()
        yield made
