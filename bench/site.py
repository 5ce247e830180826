"""A place to measure at: a stand-in for EC2 that runs, a registry that lacks the orphans, a configuration."""

# ruff: noqa: S603 - it runs the stand-in

from __future__ import annotations

import http.client
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from bench.fleet import ACCOUNT, DEPLOYMENT, Machine, Recipe, fleet, orphans, owned, regions
from registry.sqlite.admin import create

ROOT = Path(__file__).parent.parent

_CONFIG = """\
deployment = "{deployment}"
state_dir = "{folder}/state"

[registry]
path = "{folder}/registry.db"

[reconcile]
interval = "1s"
deadline = "1h"
confirm_passes = 1

[reconcile.breaker]
max_per_pass = 1000000
max_per_hour = 1000000
max_fraction = 1.0

[http]
listen = "127.0.0.1:0"

[log]
format = "json"

[[providers]]
name = "aws"
type = "aws"
account = "{account}"
regions = [{regions}]
endpoint_url = "{endpoint}"
"""
_SPLIT = """\
split_by_zone = [{regions}]
"""
_SINCE = "2026-01-10T10:00:00Z"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """How much there is to look at, and how far away it is."""

    name: str
    machines: int
    regions: int
    latency_ms: float = 0.0
    item_us: float = 0.0

    def __str__(self) -> str:
        """Say it in a line."""
        slow = f", {self.latency_ms:g} ms a call and {self.item_us / 1000:g} ms a machine" if self.latency_ms else ""
        plural = "" if self.regions == 1 else "s"
        return f"{self.machines:,} machines in {self.regions} region{plural}{slow}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What a candidate needs to know."""

    folder: Path
    endpoint: str
    regions: tuple[str, ...]
    owned: frozenset[str]
    orphans: frozenset[str]

    @property
    def config(self) -> Path:
        """Return reaperd's configuration."""
        return self.folder / "reaperd.toml"

    @property
    def split_config(self) -> Path:
        """Return the same, with every region listed by its zones side by side."""
        return self.folder / "split.toml"

    def environment(self) -> dict[str, str]:
        """Return the environment of every candidate: no account but ours, no cloud but the stand-in."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TZ") if name in os.environ}
        return kept | {
            "HOME": str(self.folder),
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE",
            "AWS_SECRET_ACCESS_KEY": "EXAMPLE",
            "AWS_DEFAULT_REGION": self.regions[0],
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        }

    def asked_for(self) -> tuple[int, int]:
        """Return calls and bytes since the last time that this was asked."""
        counts: Mapping[str, Mapping[str, int]] = json.loads(self._control("GET", "stats"))
        self._control("POST", "reset")
        return sum(each["calls"] for each in counts.values()), sum(each["bytes"] for each in counts.values())

    def _control(self, method: str, what: str) -> bytes:
        connection = http.client.HTTPConnection(urlsplit(self.endpoint).netloc, timeout=60)
        try:
            connection.request(method, f"/stub/{what}")
            return connection.getresponse().read()
        finally:
            connection.close()


@contextmanager
def site(workload: Workload, folder: Path) -> Iterator[Site]:
    """Have everything there for the block."""
    recipe = Recipe(machines=workload.machines, regions=workload.regions)
    machines = fleet(recipe)
    _registry(folder / "registry.db", machines)
    with _stub(workload) as endpoint:
        made = Site(
            folder=folder,
            endpoint=endpoint,
            regions=regions(recipe),
            owned=owned(machines),
            orphans=orphans(machines),
        )
        made.config.write_text(_config(_CONFIG, made), encoding="utf-8")
        made.split_config.write_text(_config(_CONFIG + _SPLIT, made), encoding="utf-8")
        yield made


def _config(form: str, made: Site) -> str:
    return form.format(
        deployment=DEPLOYMENT,
        folder=made.folder,
        account=ACCOUNT,
        endpoint=made.endpoint,
        regions=", ".join(f'"{region}"' for region in made.regions),
    )


def _registry(path: Path, machines: tuple[Machine, ...]) -> None:
    create(path, DEPLOYMENT, registry_id="bench")
    tracked = [machine for machine in machines if machine.owned and not machine.orphan]
    with closing(sqlite3.connect(path)) as connection, connection:
        # As columns, whatever their order: a writer makes every row durable on its own.
        connection.executemany(
            "INSERT INTO workers (worker_id, provider, region, instance_id, state, created_at, updated_at)"
            " VALUES (?, 'aws', ?, ?, 'running', ?, ?)",
            [(machine.worker_id, machine.region, machine.instance_id, _SINCE, _SINCE) for machine in tracked],
        )


@contextmanager
def _stub(workload: Workload) -> Iterator[str]:
    command = [sys.executable, "-m", "bench.stub_ec2", "--machines", str(workload.machines)]
    command += ["--regions", str(workload.regions)]
    command += ["--latency-ms", str(workload.latency_ms), "--item-us", str(workload.item_us)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            endpoint = process.stdout.readline().strip() if process.stdout else ""
            if not endpoint:
                msg = "the stand-in for EC2 did not start"
                raise RuntimeError(msg)
            yield endpoint
        finally:
            process.terminate()
