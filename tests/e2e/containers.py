"""Images built by buildah and run by podman, on a machine that may be a container itself."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from tests.e2e import needs
from tests.e2e.needs import run
from tests.support.processes import until

ROOT = Path(__file__).parents[2]
BASE = "localhost/reaperd-test-base:bookworm"
IMAGE = "localhost/reaperd-test:latest"
AS_ON_THE_PAGE = {"image": "localhost/reaperd:latest", "container": "reaperd", "volume": "reaperd-ledger"}
"""What the commands of docs/install.md make."""
USER = 65532

_SUITE = "bookworm"
_PYTHON = "python3,python3-venv,ca-certificates,tzdata"
_CERTIFICATES = ("/etc/ssl/certs", "/usr/share/ca-certificates")

# crun takes no mixture of the two kinds of control groups, which is what some hosts have.
_ONE_KIND = """
[ "$(stat -fc %T /sys/fs/cgroup)" = cgroup2fs ] || { umount -R /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup; }
exec "$@"
"""
_PODMAN = ("unshare", "--mount", "bash", "-c", _ONE_KIND, "_", "podman", "--runtime", "crun")

# Without the rights of a whole machine: limits cannot be raised, and there are no control groups to put it in.
_WHEREVER = (
    *("--pull=never", "--network=host", "--no-healthcheck"),
    *("--ulimit=nofile=20000:20000", "--ulimit=nproc=1000:1000", "--cgroups=disabled"),
)
LOCKED_UP = ("--read-only", "--cap-drop=all", "--security-opt=no-new-privileges")
"""As docs/install.md starts it, too."""


def can_build() -> None:
    """Go on only where an image can be built and run."""
    needs.root()
    wanted = ("buildah", "podman", "crun", "fuse-overlayfs", "mmdebstrap")
    needs.programs(*wanted, packages=" ".join(wanted))


def build_base() -> None:
    """Make a base from Debian's packages, unless it was made before: no other registry has to be reached for it."""
    if run(("podman", "images", "--quiet", BASE)):
        return
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "base.tar"
        run(("mmdebstrap", "--quiet", "--variant=minbase", f"--include={_PYTHON}", _SUITE, archive))
        run(("podman", "import", "--quiet", archive, BASE))


_DOCKER = """\
#!/bin/bash
what=$1; shift
case $what in
build) exec {build} "${{@/#BASE=*/BASE={base}}}" ;;
run) exec {run} "$@" ;;
*) exec {podman} "$what" "$@" ;;
esac
"""


def docker(folder: Path, *, env: Mapping[str, str]) -> Path:
    """Make a `docker` in a folder and return that: buildah and podman, with what it takes on this machine.

    It builds on our base, whatever base is asked for, and gives `env` to each container.
    """
    believed = [f"--volume={path}:{path}:ro" for path in _CERTIFICATES if Path(path).is_dir()]
    build = ("buildah", "bud", "--isolation=chroot", "--format=docker", "--quiet", *believed)
    start = (*_PODMAN, "run", *_WHEREVER, *(f"--env={key}={value}" for key, value in env.items()))
    words = {"build": shlex.join(build), "run": shlex.join(start), "podman": shlex.join(_PODMAN), "base": BASE}
    program = folder / "docker"
    program.write_text(_DOCKER.format(**words), encoding="utf-8")
    program.chmod(0o755)
    return folder


def typed(line: str, *, where: Path, tools: Path) -> str:
    """Run a line of a page, with the programs of a folder before all others, and return what it said."""
    path = f"{tools}:{os.environ['PATH']}"
    return run(("env", f"PATH={path}", "sh", "-c", 'cd "$0" && eval "$1"', where, line), seconds=600)


def inspect(image: str) -> dict[str, Any]:
    """Return what an image says of itself."""
    (told,) = json.loads(run(("podman", "image", "inspect", image)))
    return told


def once(*argv: str, options: tuple[str, ...] = (), fails: bool = False) -> str:
    """Run a container to its end."""
    return run((*_PODMAN, "run", "--rm", *_WHEREVER, *LOCKED_UP, *options, IMAGE, *argv), fails=fails)


@dataclass(frozen=True, slots=True)
class Container:
    """One that runs."""

    name: str
    log: Path
    process: subprocess.Popen[bytes]

    def events(self, name: str) -> list[dict[str, Any]]:
        """Return the events of one name that it has logged so far."""
        lines = self.log.read_text(encoding="utf-8").splitlines(keepends=True)
        told = [json.loads(line) for line in lines if line.startswith("{") and line.endswith("\n")]
        return [event for event in told if event["event"] == name]

    def until_logged(self, name: str) -> None:
        """Wait for an event; a container that ended meanwhile fails with what it said."""

        def logged() -> bool:
            assert self.process.poll() is None, self.log.read_text(encoding="utf-8")
            return bool(self.events(name))

        until(logged)

    def exec(self, *argv: str) -> str:
        """Run a command beside what runs in it."""
        return run((*_PODMAN, "exec", self.name, *argv))

    def stop(self) -> tuple[int, float]:
        """Ask process 1 to end; return its exit code and how many seconds that took."""
        began = time.monotonic()
        run((*_PODMAN, "kill", "--signal=TERM", self.name))
        return self.process.wait(60), time.monotonic() - began


@contextmanager
def container(folder: Path, *argv: str, mounts: Mapping[Path, str], env: Mapping[str, str]) -> Iterator[Container]:
    """Run a container until the block ends."""
    name = f"reaperd-test-{uuid4().hex[:12]}"
    options = [f"--volume={source}:{target}" for source, target in mounts.items()]
    options += [f"--env={key}={value}" for key, value in env.items()]
    command = (*_PODMAN, "run", "--rm", f"--name={name}", *_WHEREVER, *LOCKED_UP, *options, IMAGE, *argv)
    log = folder / f"{name}.log"
    with log.open("wb") as out, subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out) as process:
        try:
            yield Container(name, log, process)
        finally:
            if process.poll() is None:
                subprocess.run((*_PODMAN, "rm", "--force", name), capture_output=True, check=False, timeout=60)
                process.wait(60)
