"""A real Prometheus, from a Debian package, that scrapes a page and judges the rules that ship."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import urllib.parse
import urllib.request
from contextlib import contextmanager
from pathlib import Path

from alerts.rulebook import Form, rulebook
from tests.e2e.alertmanager import until

STARTS_WITHIN = 30.0

_CONFIGURATION = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
scrape_configs:
  - job_name: reaperd
    static_configs:
      - targets: ["{target}"]
        labels: {{deployment: prod-a}}
"""


def run(*command: str | Path, given: bytes = b"") -> str:
    """Run a tool to its end and return what it said. It fails the test if it fails."""
    assert shutil.which(command[0]) is not None, (
        f"{command[0]} is not installed: apt-get install prometheus prometheus-alertmanager jsonnet"
    )
    done = subprocess.run(command, input=given, capture_output=True, check=False, timeout=200)
    assert done.returncode == 0, (done.stdout + done.stderr).decode()
    return done.stdout.decode()


class Prometheus:
    """One that runs."""

    def __init__(self, url: str) -> None:
        self.url = url

    def ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=1) as answer:
                return answer.status == 200
        except OSError:
            return False

    def series(self, expr: str) -> list[dict]:
        """Return the series that an expression has now; an expression that is none fails."""
        with urllib.request.urlopen(f"{self.url}/api/v1/query?{urllib.parse.urlencode({'query': expr})}") as answer:
            return json.loads(answer.read())["data"]["result"]


def hurried(rules: str) -> str:
    """Return the rules with seconds where they wait for minutes."""
    return re.sub(r"\bkeep_firing_for: .*", "keep_firing_for: 8s", re.sub(r"\bfor: [0-9].*", "for: 2s", rules))


@contextmanager
def running(folder: Path, target: str, *, rules: str = "", alertmanager: str = ""):
    """Run one on a free port, until the end of the block; by default with the rules as they are, telling nobody."""
    (folder / "rules.yml").write_text(rules or rulebook(Form.PROMETHEUS))
    text = _CONFIGURATION.format(rules=folder / "rules.yml", target=target)
    if alertmanager:
        text += f"alerting:\n  alertmanagers:\n    - static_configs: [{{targets: [{alertmanager!r}]}}]\n"
    (folder / "prometheus.yml").write_text(text)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        "prometheus",
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (folder / "prometheus.log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            prometheus = Prometheus(f"http://127.0.0.1:{port}")
            until(prometheus.ready, STARTS_WITHIN)
            yield prometheus
        finally:
            process.terminate()
