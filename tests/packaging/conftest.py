"""One wheel for all tests of a worker, and an environment with nothing else of ours in it."""

import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command outside of the checkout and return what it printed."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=50)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def committed_files(*below: str) -> list[Path]:
    """Return every file that git knows, below some folders if they are given; skip the test without git."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = run("git", "ls-files", "-z", "--", *below, cwd=ROOT)
    return [path for name in listed.split("\0") if name and (path := ROOT / name).is_file()]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory) -> Path:
    """Build the wheel as `make build` does, offline."""
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--quiet", "--no-isolation", "--wheel", "--outdir", folder, ROOT, cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def names(wheel) -> list[str]:
    """Return what is in the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


@pytest.fixture(scope="session")
def installed(wheel, tmp_path_factory) -> Path:
    """Install the wheel into a new environment and return its bin folder.

    Its dependencies are those of the environment that runs the tests: a path file shows them, and a path file inside of
    that folder (our own editable install) is not followed.
    """
    home = tmp_path_factory.mktemp("installed")
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    (packages,) = (home / "lib").glob("python3.*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python)
    run(*pip, "install", "--quiet", "--no-deps", "--no-index", wheel, cwd=home)
    return home / "bin"
