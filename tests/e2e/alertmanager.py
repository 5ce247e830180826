"""A real Alertmanager, from a Debian package, and a receiver of what it sends on."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

PROGRAMS = ("prometheus-alertmanager", "alertmanager")
STARTS_WITHIN = 30.0

_CONFIGURATION = """
route:
  receiver: hook
  group_by: [deployment]
  group_wait: 0s
  group_interval: 1s
  repeat_interval: 1h
receivers:
  - name: hook
    webhook_configs:
      - url: {url}/hook
        send_resolved: true
"""


def program() -> str | None:
    """Return the path of the program; None where it is not installed."""
    return next((path for name in PROGRAMS if (path := shutil.which(name))), None)


class Alertmanager:
    """One that runs, and what it told its receiver."""

    def __init__(self, url, receiver):
        self.url = url
        self._receiver = receiver

    def alerts(self):
        """Return what it holds as active."""
        return self._json("/api/v2/alerts?active=true")

    def told(self):
        """Return status and labels of every alert of every message it sent, in order."""
        messages = [json.loads(request.body) for request in self._receiver.requests]
        return [(alert["status"], alert["labels"]) for message in messages for alert in message["alerts"]]

    def messages(self):
        return len(self._receiver.requests)

    def ready(self):
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=1) as answer:
                return answer.status == 200
        except OSError:
            return False

    def _json(self, path):
        with urllib.request.urlopen(self.url + path, timeout=5) as answer:
            return json.loads(answer.read())


@contextmanager
def running(folder: Path, receiver):
    """Run one on a free port, without a cluster, until the end of the block."""
    (folder / "am.yml").write_text(_CONFIGURATION.format(url=receiver.url))
    port = _free_port()
    command = [
        program(),
        f"--config.file={folder / 'am.yml'}",
        f"--storage.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--cluster.listen-address=",
    ]
    with (folder / "am.log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            alertmanager = Alertmanager(f"http://127.0.0.1:{port}", receiver)
            until(alertmanager.ready, STARTS_WITHIN)
            yield alertmanager
        finally:
            process.terminate()


def until(wanted, seconds=20.0):
    """Wait until something is so, and fail if it does not become so."""
    deadline = time.monotonic() + seconds
    while not (got := wanted()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)
    return got


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
