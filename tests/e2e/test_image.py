"""The image: what it holds, and that it does its work with a read-only root, no capability and no name."""

from __future__ import annotations

import os
import re
import shutil
import socket
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from reaperd import __version__
from tests.docs.markdown import read
from tests.e2e import containers
from tests.e2e.containers import (
    AS_ON_THE_PAGE,
    BASE,
    IMAGE,
    ROOT,
    USER,
    container,
    docker,
    inspect,
    once,
    typed,
)
from tests.e2e.needs import missing, run
from tests.e2e.tools import tools
from tests.support.ec2 import FaultyEc2
from tests.support.processes import until
from tests.support.site import Site
from tests.unit.deploy.manifests import KUBERNETES

pytestmark = pytest.mark.timeout(600)

OVER_ITS_BASE = 60_000_000
"""Bytes."""
STOPS_WITHIN = 10.0
FLEET = 5000
"""Whose the registry is."""


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Build it once, as the page says. Its base is kept for the next time."""
    containers.can_build()
    containers.build_base()
    nobodys()
    typed(commands()[0], where=ROOT, tools=docker(tmp_path_factory.mktemp("tools"), env={}))
    run(("podman", "image", "tag", AS_ON_THE_PAGE["image"], IMAGE))
    yield IMAGE
    run(("podman", "image", "rm", "--force", AS_ON_THE_PAGE["image"], IMAGE))


def nobodys() -> None:
    """Go on only where nothing has the names of the page: it may be somebody's."""
    for kind, name in AS_ON_THE_PAGE.items():
        if subprocess.run(("podman", kind, "exists", name), check=False).returncode == 0:
            missing(f"the {kind} {name} is there already", "it may be somebody's")


def commands() -> list[str]:
    """Return the lines of the page, those of its table last, up to the one that is no single command."""
    page = read("docs/install.md").partition("## As a container")[2].partition("\n## ")[0]
    blocks = re.findall(r"<!-- typed by tests/e2e/test_image.py -->\n\n```console\n(.*?)```", page, re.DOTALL)
    lines = [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]
    return [*lines, *re.findall(r"^\| [^|]+ \| `(docker [^`]+)` \|$", page, re.MULTILINE)]


@pytest.fixture
def place(tmp_path: Path, cloud: FaultyEc2) -> Site:
    """Give a host with the manifests' configuration, a registry of root's, and a folder of the container's user."""
    made = Site(folder=tmp_path, cloud=cloud, deployment="prod-eu")
    made.set_up()
    made.state.mkdir()
    os.chown(made.state, USER, USER)
    (tmp_path / "etc").mkdir()
    shutil.copy(KUBERNETES / "overlays" / "enforce" / "reaperd.toml", tmp_path / "etc")
    return made


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def variables(place: Site) -> dict[str, str]:
    """Return what a test changes: which cloud, less time, and a port that nobody else has."""
    quicker = {"REAPERD_RECONCILE__INTERVAL": "1s", "REAPERD_HTTP__LISTEN": f"127.0.0.1:{free_port()}"}
    return {**place.cloud.environment(), **quicker}


def mounts(place: Site) -> dict[Path, str]:
    return {
        place.folder / "etc": "/etc/reaperd:ro",
        place.registry.parent: "/var/lib/fleet:ro",
        place.state: "/var/lib/reaperd",
    }


def test_hadolint_finds_nothing():
    assert run((tools().hadolint, "--config", ROOT / "hadolint.yaml", ROOT / "Dockerfile")) == ""


def test_it_is_this_version_and_starts_with_nothing_mounted(image):
    assert once("--version") == f"reaperd, version {__version__}\n"


def test_it_adds_sixty_megabytes_to_its_base_at_the_most(image):
    assert inspect(image)["Size"] - inspect(BASE)["Size"] < OVER_ITS_BASE


def test_it_says_what_it_is_and_how_it_is_asked(image):
    told = inspect(image)

    assert told["Config"]["User"] == f"{USER}:{USER}"
    assert told["Config"]["Entrypoint"] == ["reaperd"]
    assert told["Config"]["Cmd"] == ["run"]
    assert told["Labels"]["org.opencontainers.image.version"] == __version__
    assert told["Healthcheck"]["Test"] == ["CMD", "reaperd", "health"]


def test_nothing_of_the_build_is_left_in_it(image):
    program = (
        "import importlib.util, pathlib, sys\n"
        "print([name for name in ('pip', 'hatchling', 'moto', 'pytest') if importlib.util.find_spec(name)])\n"
        "print([str(path) for path in pathlib.Path('/build').glob('*')])\n"
    )
    assert once("-c", program, options=("--entrypoint=/opt/reaperd/bin/python",)) == "[]\n[]\n"


def test_a_container_reaps_says_that_it_is_well_and_ends_when_it_is_told_to(image, place):
    orphan = place.orphan()
    # While somebody has the file open, its newest rows stand beside it, and its folder cannot be written from in there.
    with closing(sqlite3.connect(place.registry)) as other:
        other.execute("SELECT * FROM workers").fetchall()
        tracked = place.tracked()
        with container(place.folder, mounts=mounts(place), env=variables(place)) as started:
            started.until_logged("orphan_terminated")
            health = started.exec("reaperd", "health")
            ready = started.exec("reaperd", "health", "--ready")
            status = started.exec("reaperd", "status")
            code, seconds = started.stop()

    assert place.accepted() == [orphan]
    assert place.cloud.state_of(tracked) == "running"
    assert (health, ready) == ("ok\n", "ok\n")
    assert "ENFORCING" in status
    assert code == 0
    assert seconds < STOPS_WITHIN
    assert started.events("stopped")


def test_a_volume_that_was_forgotten_ends_it_at_once_and_it_says_which(image, place):
    given = {source: target for source, target in mounts(place).items() if source != place.state}
    options = tuple(f"--volume={source}:{target}" for source, target in given.items())

    said = once("run", options=options, fails=True)

    assert "/var/lib/reaperd" in said
    assert place.accepted() == []


def test_doctor_finds_its_way_with_what_is_left_of_the_sdk(image, place):
    place.tracked()
    options = [f"--volume={source}:{target}" for source, target in mounts(place).items()]
    options += [f"--env={key}={value}" for key, value in variables(place).items()]

    said = once("doctor", options=tuple(options))

    assert "111111111111" in said


# ---------------------------------------------------------------- what the page says


@pytest.fixture
def beside(tmp_path: Path) -> Iterator[Path]:
    """Give a folder for what the page puts into the host's, and take away what its commands made."""
    yield tmp_path
    run(("podman", "rm", "--force", "--ignore", AS_ON_THE_PAGE["container"]))
    run(("podman", "volume", "rm", "--force", AS_ON_THE_PAGE["volume"]))


def test_whoever_types_the_page_has_a_container_that_rehearses_and_does_as_it_is_told(
    image: str, beside: Path, cloud: FaultyEc2
):
    orphan = cloud.add_instance(owner="prod-eu", worker="w-lost")
    quicker = {"REAPERD_RECONCILE__INTERVAL": "1s", "REAPERD_HTTP__LISTEN": f"127.0.0.1:{free_port()}"}
    tools = docker(beside, env={**cloud.environment(), **quicker})
    # A user that is neither root nor the container's, and folders that are not the host's.
    elsewhere = {"$(id -u fleet)": str(FLEET), "-o fleet /var/lib/fleet": f"-o {FLEET} {beside}/fleet"}
    elsewhere |= {
        "=/var/lib/fleet:": f"={beside}/fleet:",
        "=/etc/reaperd:": f"={beside}/etc:",
        " /etc/reaperd/": f" {beside}/etc/",
    }

    def types(line: str) -> str:
        for old, new in elsewhere.items():
            line = line.replace(old, new)
        return typed(line, where=ROOT, tools=tools)

    _build, configure, make, init, volume, doctor, start, status, hold, plan, log, reload, stop = commands()
    for line in (configure, make, init, volume):
        types(line)
    doubts = types(doctor)
    types(start)
    # In its first seconds nobody answers.
    until(lambda: "ready" in types(f"{status} || true").splitlines())
    # It would terminate something: exit code 3.
    until(lambda: orphan in types(f"{plan} || [ $? = 3 ]").partition("KEPT")[0])
    types(reload)
    until(lambda: '"event":"config_reloaded"' in types(f"{log} 2>&1").replace(" ", ""))
    held = types(hold)
    until(lambda: "reap_hold" in types(status))
    types(stop)

    assert doubts.splitlines()[-1].endswith("0 failures")
    assert "The brake is on" in held
    assert cloud.mutating_requests() == []
    assert types("docker inspect --format={{.State.ExitCode}} reaperd") == "0\n"
    assert '"event":"stopped"' in types(f"{log} 2>&1").replace(" ", "")
