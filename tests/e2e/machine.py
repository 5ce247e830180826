"""A machine with a systemd of its own: this host's files under an overlay, booted by systemd-nspawn. Nothing is written
to the host, and its network is the host's, so that a cloud on the loopback can be asked."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import Distribution, distribution
from importlib.util import cache_from_source
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.processes import ROOT, until

PYTHON = Path("/usr/bin/python3")
HOME = Path("/opt/reaperd")
REQUIRED = "REAPERD_E2E_ALL"
"""Set to 1, what a machine needs must be there; otherwise the tests are skipped without it."""

_TARGET = """\
[Unit]
Requires=sysinit.target
After=sysinit.target
AllowIsolate=yes
"""
_BOOTS_WITHIN = 60.0


@dataclass(frozen=True, slots=True)
class Machine:
    """One that runs."""

    files: Path
    """Its root directory, as the host sees it."""
    leader: int
    """The pid of its systemd, on the host."""

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command in it as root; with `check` one that fails fails the test."""
        path = f"PATH={HOME}/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        words = ["nsenter", "--target", str(self.leader), "--all", "env", "-i", path, "LANG=C.UTF-8", *command]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
        assert not check or done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
        return done

    def types(self, line: str, folder: str) -> None:
        """Run a line as a person at a shell would, in a folder. There is no network for pip."""
        self.run("sh", "-c", f"cd {folder} && PIP_NO_INDEX=1 PIP_QUIET=1 && export PIP_NO_INDEX PIP_QUIET && {line}")

    def systemctl(self, *words: str, check: bool = True) -> int:
        """Return how it went."""
        return self.run("systemctl", *words, check=check).returncode

    def shows(self, unit: str, prop: str) -> str:
        """Return one property of a unit."""
        return self.run("systemctl", "show", "--value", f"--property={prop}", unit).stdout.strip()

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        """Write a file of root's."""
        file = self.files / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        file.chmod(mode)


def require_machine() -> None:
    """Skip the test where no machine can be booted; fail it where one has to be."""
    lacking = [program for program in ("systemd-nspawn", "nsenter") if shutil.which(program) is None]
    lacking += [] if os.geteuid() == 0 else ["root"]
    lacking += [] if _fits(PYTHON) else [f"{PYTHON} {sys.version_info[0]}.{sys.version_info[1]} with venv"]
    if not lacking:
        return
    reason = f"a machine needs {', '.join(lacking)} (Debian packages systemd-container and python3-venv)"
    if os.environ.get(REQUIRED) == "1":
        pytest.fail(reason)
    pytest.skip(reason)


def _fits(python: Path) -> bool:
    """Return whether the packages of this process can be used by the machine's Python."""
    asked = "import ensurepip, sys; print(*sys.version_info[:2])"
    said = (
        subprocess.run([python, "-c", asked], capture_output=True, text=True, check=False) if python.exists() else None
    )
    return said is not None and said.stdout.split() == [str(part) for part in sys.version_info[:2]]


@contextmanager
def booted(folder: Path) -> Iterator[Machine]:
    """Boot a machine on which nothing of ours is installed, and take it down afterwards."""
    memory = folder / "memory"
    memory.mkdir()
    _run("mount", "-t", "tmpfs", "tmpfs", memory)
    try:
        root, upper, work = (memory / name for name in ("root", "upper", "work"))
        for each in (root, upper, work):
            each.mkdir()
        _run("mount", "-t", "overlay", "overlay", "-o", f"lowerdir=/,upperdir={upper},workdir={work}", root)
        try:
            _empty(root)
            with _running(root, folder / "console.log") as leader:
                yield Machine(root, leader)
        finally:
            _run("umount", root)
    finally:
        _run("umount", memory)


def _empty(root: Path) -> None:
    units = root / "etc" / "systemd" / "system"
    # What this host starts by itself is none of the machine's business.
    for enabled in (*units.glob("*.wants"), *units.glob("*.requires")):
        shutil.rmtree(enabled)
    (units / "tested.target").write_text(_TARGET, encoding="utf-8")
    shutil.rmtree(root / HOME.relative_to("/"), ignore_errors=True)


def bring_packages(machine: Machine, wheel: Path) -> None:
    """Put what the wheel needs into its environment, in place of a package index: what is installed here."""
    (packages,) = (machine.files / HOME.relative_to("/") / "lib").glob("python3.*/site-packages")
    for each in _needed(wheel):
        _copy(each, packages)


def _needed(wheel: Path) -> list[Distribution]:
    """Return the installed packages that a wheel needs, those that they need included."""
    found: dict[str, Distribution] = {}
    waiting = [requirement for entry in _wants(wheel) for requirement in [Requirement(entry)]]
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if name in {*found, "pip"} or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
            continue
        found[name] = distribution(requirement.name)
        waiting += [Requirement(entry) for entry in found[name].requires or ()]
    return list(found.values())


def _wants(wheel: Path) -> Sequence[str]:
    import zipfile  # noqa: PLC0415
    from email.parser import Parser  # noqa: PLC0415

    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return Parser().parsestr(archive.read(name).decode()).get_all("Requires-Dist", [])


def _copy(package: Distribution, into: Path) -> None:
    for file in package.files or ():
        source, target = Path(str(file.locate())), into / file
        if file.parts[0] != ".." and source.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
            _copy_compiled(source, target)


def _copy_compiled(source: Path, target: Path) -> None:
    """Bring what was compiled: the services may not write it."""
    if source.suffix != ".py" or not (compiled := Path(cache_from_source(str(source)))).exists():
        return
    beside = target.parent / "__pycache__"
    beside.mkdir(exist_ok=True)
    shutil.copy2(compiled, beside / compiled.name)


@contextmanager
def _running(root: Path, console: Path) -> Iterator[int]:
    name = f"reaperd-{os.getpid()}"
    options = ["--quiet", "--register=no", "--keep-unit", f"--machine={name}", f"--directory={root}", "--boot"]
    command = ["systemd-nspawn", *options, "--", "systemd.unit=tested.target"]
    with (
        console.open("wb") as said,
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said) as it,
    ):
        try:
            machine: list[Machine] = []

            def up() -> bool:
                assert it.poll() is None, console.read_text(errors="replace")
                machine[:] = [Machine(root, leader) for leader in _children(it.pid)]
                return bool(machine) and machine[0].systemctl("is-active", "--quiet", "tested.target", check=False) == 0

            until(up, _BOOTS_WITHIN)
            yield machine[0].leader
        finally:
            for leader in _children(it.pid):
                # What systemd takes for: halt at once.
                os.kill(leader, signal.SIGRTMIN + 13)
            try:
                it.wait(20)
            except subprocess.TimeoutExpired:
                it.kill()


def _children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _run(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200, cwd=ROOT)
    assert done.returncode == 0, f"{' '.join(map(str, command))}: {done.stdout}{done.stderr}"
