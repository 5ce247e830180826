"""Who looks at the fleet: reaperd, the limit, and what people would use instead."""

# ruff: noqa: S603 - it runs programs by their names

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from bench.site import ROOT, Site

CUSTODIAN = ROOT / ".cache" / "bench" / "c7n"
"""An environment of its own: what it pins does not go with what we need."""
_NUKE_WAITS_SECONDS = 3.0
"""Before it looks at anything, and not to be talked out of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """What one run of a candidate took."""

    wall: float
    cpu: float
    peak_bytes: float
    look_wall: float | None = None
    """One more look in the same process; None where there is no such thing."""
    look_cpu: float | None = None
    found: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A program that looks at the whole fleet."""

    name: str
    command: Callable[[Site], list[str]]
    read: Callable[[Site, Took], Took]
    """Return what it took with what it found, out of the files that it left."""
    orphans: bool = False
    """Whether it is to find the orphans alone, and not all that is ours."""
    missing: Callable[[], str] = field(default=lambda: "")
    """Return why it cannot be run; empty: it can."""

    def expected(self, at: Site) -> frozenset[str]:
        """Return what it has to find."""
        return at.orphans if self.orphans else at.owned


def outputs(at: Site) -> tuple[Path, Path]:
    """Return where a candidate's stdout and stderr are."""
    return at.folder / "stdout", at.folder / "stderr"


# ---------------------------------------------------------------- ours


def _ours(module: str, looks: int = 1) -> Callable[[Site], list[str]]:
    def command(at: Site) -> list[str]:
        options = ["--endpoint", at.endpoint, "--regions", ",".join(at.regions), "--config", str(at.config)]
        result = ["--result", str(at.folder / "result.json"), "--looks", str(looks)]
        return [sys.executable, "-m", f"bench.{module}", *options, *result]

    return command


def _read_result(at: Site, took: Took) -> Took:
    told = json.loads((at.folder / "result.json").read_text(encoding="utf-8"))
    return Took(**(told | {"peak_bytes": took.peak_bytes, "found": frozenset(told["found"])}))


def _plan(at: Site) -> list[str]:
    """Ask for every verdict with its reason: the page shows the first twenty."""
    return [sys.executable, "-m", "reaperd", "plan", "--config", str(at.config), "--format", "csv"]


def _split(at: Site) -> list[str]:
    return [sys.executable, "-m", "reaperd", "plan", "--config", str(at.split_config), "--format", "csv"]


def _read_plan(at: Site, took: Took) -> Took:
    with outputs(at)[0].open(encoding="utf-8", newline="") as page:
        found = frozenset(row["instance_id"] for row in csv.DictReader(page) if row["verdict"] == "terminate")
    return _with(took, found)


# ---------------------------------------------------------------- peers


def _custodian(at: Site) -> list[str]:
    policy = {"name": "bench", "resource": "aws.ec2", "query": [{"tag:reaperd:owner": "bench"}]}
    (at.folder / "policy.json").write_text(json.dumps({"policies": [policy]}), encoding="utf-8")
    shutil.rmtree(at.folder / "custodian", ignore_errors=True)
    places = [word for region in at.regions for word in ("--region", region)]
    options = ["--dryrun", "--output-dir", str(at.folder / "custodian"), "--cache-period", "0", *places]
    return [str(CUSTODIAN / "bin" / "custodian"), "run", *options, str(at.folder / "policy.json")]


def _read_custodian(at: Site, took: Took) -> Took:
    pages = (at.folder / "custodian").rglob("resources.json")
    rows = [row for page in pages for row in json.loads(page.read_text(encoding="utf-8"))]
    return _with(took, frozenset(row["InstanceId"] for row in rows))


@cache
def install_custodian() -> str:
    """Make its environment unless it is there; return why there can be none."""
    if (CUSTODIAN / "bin" / "custodian").exists():
        return ""
    shutil.rmtree(CUSTODIAN, ignore_errors=True)
    sys.stderr.write("making an environment for Cloud Custodian: once, some minutes\n")
    try:
        subprocess.run([sys.executable, "-m", "venv", str(CUSTODIAN)], check=True, capture_output=True)
        pip = [str(CUSTODIAN / "bin" / "python"), "-m", "pip", "install", "--quiet", "c7n"]
        subprocess.run(pip, check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError as error:
        told = str(error.stderr or error).strip().splitlines()
        return f"the package index has no c7n: {told[-1] if told else error}"
    return ""


def custodian_version() -> str:
    """Return which one it is; empty if it is not there."""
    python = CUSTODIAN / "bin" / "python"
    if not python.exists():
        return ""
    program = "from importlib.metadata import version; print(version('c7n'))"
    return subprocess.run([str(python), "-c", program], capture_output=True, text=True, check=False).stdout.strip()


def _nuke(at: Site) -> list[str]:
    services = [{"service": name, "url": at.endpoint} for name in ("ec2", "sts", "iam", "")]
    ours = {"property": "tag:reaperd:owner", "value": "bench", "invert": True}
    config = {
        "regions": list(at.regions),
        "account-blocklist": ["999999999999"],
        "endpoints": [{"region": region, "services": services} for region in at.regions],
        "resource-types": {"targets": ["EC2Instance"]},
        "accounts": {"123456789012": {"filters": {"EC2Instance": [ours]}}},
    }
    # JSON is YAML.
    (at.folder / "nuke.yml").write_text(json.dumps(config), encoding="utf-8")
    keys = ["--access-key-id", "AKIAEXAMPLE", "--secret-access-key", "EXAMPLE", "--default-region", at.regions[0]]
    # Without --no-dry-run it ends nothing.
    return ["aws-nuke", "--config", str(at.folder / "nuke.yml"), *keys, "--force", "--force-sleep", "3"]


def _read_nuke(at: Site, took: Took) -> Took:
    lines = outputs(at)[0].read_text(encoding="utf-8").splitlines()
    found = (line.split(" - ")[2] for line in lines if line.endswith(" - would remove"))
    return _with(took, frozenset(found), waited=_NUKE_WAITS_SECONDS)


def _with(took: Took, found: frozenset[str], waited: float = 0.0) -> Took:
    return Took(wall=took.wall - waited, cpu=took.cpu, peak_bytes=took.peak_bytes, found=found)


def _without(module: str) -> Callable[[], str]:
    return lambda: "" if find_spec(module) is not None else f"{module} is not installed"


PLAN = Candidate(name="reaperd plan", command=_plan, read=_read_plan, orphans=True)
SPLIT = Candidate(name="reaperd plan, split by zone", command=_split, read=_read_plan, orphans=True)
DAEMON = Candidate(name="reaperd run", command=_ours("daemon_pass"), read=_read_result, orphans=True)
LISTING = Candidate(name="reaperd, the listing alone", command=_ours("listing", looks=3), read=_read_result)
RAW = Candidate(name="http.client + lxml", command=_ours("raw", looks=3), read=_read_result, missing=_without("lxml"))
PAGINATOR = Candidate(name="boto3, its paginator", command=_ours("paginator"), read=_read_result)
CLOUD_CUSTODIAN = Candidate(
    name="custodian run --dryrun", command=_custodian, read=_read_custodian, missing=install_custodian
)
AWS_NUKE = Candidate(
    name="aws-nuke",
    command=_nuke,
    read=_read_nuke,
    missing=lambda: "" if shutil.which("aws-nuke") else "try: apt-get install aws-nuke",
)
OURS = (PLAN, SPLIT, DAEMON, LISTING, RAW, PAGINATOR)
ALL = (*OURS, CLOUD_CUSTODIAN, AWS_NUKE)
