"""A daemon whose log nobody reads does its work, and ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.processes import until
from tests.support.site import Site

pytestmark = pytest.mark.timeout(300)  # on a busy machine; each takes some seconds

SETTINGS = {"http.listen": "", "log.format": "json"}
PROMPTLY = 10.0
"""Seconds within which a daemon that was told to end has ended (rule 25)."""


@pytest.fixture
def run(site: Site) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start `reaperd run` with streams of the test's choice."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*before: str, **streams: int) -> subprocess.Popen[bytes]:
        command = [*before, sys.executable, "-m", "reaperd", "run", "--config", str(site.config)]
        environ = site.environment(SETTINGS)
        started.append(subprocess.Popen(command, env=environ, cwd=site.folder, **streams))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def full_pipe() -> tuple[int, int]:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with pytest.raises(BlockingIOError):
        while True:
            os.write(writer, b"." * 4_096)
    os.set_blocking(writer, True)
    return reader, writer


def test_a_daemon_whose_log_nobody_reads_goes_on_and_stops_in_time(site: Site, run):
    reader, writer = full_pipe()
    daemon = run(stderr=writer)
    first, second = site.orphan(), None
    until(lambda: first in site.accepted())
    second = site.orphan(worker="w-2")
    until(lambda: second in site.accepted())

    daemon.send_signal(signal.SIGTERM)
    told_at = time.monotonic()

    assert daemon.wait(60) == 0
    assert time.monotonic() - told_at < PROMPTLY
    os.close(reader)
    os.close(writer)


def test_a_daemon_with_its_streams_closed_works_and_opens_nothing_in_their_place(site: Site, run):
    daemon = run("sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh")
    orphan = site.orphan()
    until(lambda: orphan in site.accepted() or daemon.poll() is not None)

    streams = [str(Path(f"/proc/{daemon.pid}/fd/{number}").readlink()) for number in range(3)]
    daemon.send_signal(signal.SIGTERM)

    assert daemon.wait(60) == 0
    assert streams == [os.devnull] * 3
    assert site.accepted() == [orphan]
    files = [path for folder in (site.state, site.registry.parent) for path in folder.iterdir()]
    assert not [path.name for path in files if b'"event"' in path.read_bytes()]


@pytest.mark.parametrize(("word", "code"), [("plan", 3), ("status", 1), ("check-config", 0)])
def test_a_command_with_its_streams_closed_ends_as_it_would_have(site: Site, word: str, code: int):
    command = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", sys.executable, "-m", "reaperd", word]
    site.orphan()

    ended = subprocess.run(
        [*command, "--config", str(site.config)], env=site.environment(), cwd=site.folder, timeout=60, check=False
    )

    assert ended.returncode == code
