"""How long a scrape takes while a pass decides on 5,000 machines, beside how long it takes while nothing happens.

    python -m bench.scrape [--machines 5000] [--scrapes 300] [--json FILE]

The real server and the real metrics. The scraper is a process of its own, as Prometheus is, and asks on one connection,
as Prometheus does. The pass is a thread that decides, counts and reports without a pause: worse than any real one,
which mostly waits for the cloud. Exit 1: the median scrape grew by more than the limit. What it grows by is waiting for
the interpreter, some tenths of a millisecond.
"""

# ruff: noqa: T201, S106, S603, TID251 - a script that prints, measures real time and runs itself as the scraper

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import structlog

from bench.targets import Target, finish
from providers.model import Coverage, InstanceRef, InstanceState, OwnedInstance, Scope
from reaperd.clock import SystemClock
from reaperd.core.census import census
from reaperd.core.model import (
    BreakerLimits,
    Mode,
    Observation,
    PassKind,
    PassOutcome,
    PassReport,
    ReapPolicy,
)
from reaperd.core.reap import decide
from reaperd.http import Probe
from reaperd.http.server import HttpServer
from reaperd.report.metrics import Metrics
from registry.model import RegistryIdentity, RegistrySnapshot

LIMIT = 2.0
SCOPES = tuple(Scope("aws", f"region-{number}") for number in range(17))
NOW = datetime(2026, 1, 10, 12, 0, tzinfo=UTC)
POLICY = ReapPolicy(
    deployment="bench",
    scopes=frozenset(SCOPES),
    breaker=BreakerLimits(max_per_pass=10**6, max_per_hour=10**6, max_fraction=1.0),
)


class Desk:
    """Answers with the metrics only."""

    def __init__(self, metrics: Metrics) -> None:
        """Keep them."""
        self._metrics = metrics

    def metrics(self, accept: str) -> tuple[bytes, str]:
        """Return the page."""
        return self._metrics.page(accept)

    def health(self) -> Probe:
        """Answer yes."""
        return Probe(ok=True, text="ok")

    readiness = health

    def status(self) -> Mapping[str, object]:
        """Say nothing."""
        return {}


def world(machines: int) -> Observation:
    """Return a look at so many orphans."""
    fleet = tuple(
        OwnedInstance(
            ref=InstanceRef("aws", SCOPES[number % len(SCOPES)].region, f"i-{number:017x}"),
            state=InstanceState.RUNNING,
            owner="bench",
            worker_id=f"w-{number}",
            launched_at=NOW - timedelta(hours=2),
        )
        for number in range(machines)
    )
    identity = RegistryIdentity(registry_id="r", deployment="bench", schema_version=1, epoch=1, updated_at=NOW)
    registry = RegistrySnapshot(identity=identity, workers=(), nonce="n", oldest_epoch=1)
    coverage = tuple(Coverage(scope=scope) for scope in SCOPES)
    return Observation(now=NOW, instances=fleet, coverage=coverage, registry=registry)


def one_pass(seen: Observation) -> PassReport:
    """Decide and count, as a pass does once it has seen everything."""
    decision = decide(seen, POLICY)
    return PassReport(
        pass_id="p",
        mode=Mode.DRY_RUN,
        started_at=NOW,
        finished_at=NOW + timedelta(seconds=1),
        outcome=PassOutcome.COMPLETE,
        reason=None,
        coverage=seen.coverage,
        registry=seen.registry if isinstance(seen.registry, RegistrySnapshot) else None,
        verdicts=decision.verdicts,
        census=census(seen, POLICY),
    )


@contextmanager
def passes_in_flight(seen: Observation, metrics: Metrics) -> Iterator[list[int]]:
    """Run one pass after the other beside the block; yields a list whose length is their number."""
    stop, done = threading.Event(), [0]

    def loop() -> None:
        while not stop.is_set():
            metrics.passed(one_pass(seen))
            done[0] += 1

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    try:
        yield done
    finally:
        stop.set()
        thread.join()


def scraper(port: int, scrapes: int) -> None:
    """Scrape, and print the milliseconds of each as JSON. The first few warm up and are not told."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    took: list[float] = []
    for _ in range(scrapes + 10):
        began = time.perf_counter()
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        body = answer.read()
        took.append((time.perf_counter() - began) * 1000)
        if answer.status != http.HTTPStatus.OK or b"reaperd_orphan_instances{" not in body:
            sys.exit("that is no page of metrics")
        # Not in step with the passes, and not without a pause: no scraper is.
        time.sleep(0.003)
    print(json.dumps(took[10:]))


def measured(port: int, scrapes: int) -> list[float]:
    """Return the milliseconds of each scrape, made by another process."""
    asked = [sys.executable, "-m", "bench.scrape", "--port", str(port), "--scrapes", str(scrapes)]
    answer = subprocess.run(asked, capture_output=True, text=True, check=True)
    found: list[float] = json.loads(answer.stdout)
    return found


def told(name: str, took: list[float]) -> None:
    """Print one line of figures."""
    ordered = sorted(took)
    p95 = ordered[int(len(ordered) * 0.95)]
    print(f"{name:<22} min {ordered[0]:6.2f} ms  median {statistics.median(took):6.2f} ms  p95 {p95:6.2f} ms")


def sampled(metrics: Metrics, stop: threading.Event) -> None:
    """Take the figures of the process every second."""
    while not stop.wait(1.0):
        metrics.sample()


def compared(machines: int, scrapes: int, result: Path | None) -> int:
    """Measure both, print them, and return the exit code."""
    metrics = Metrics(version="bench", clock=SystemClock())
    metrics.configured(
        mode="dry-run", providers=["aws"], scopes=SCOPES, intervals={PassKind.RECONCILE: timedelta(minutes=1)}
    )
    seen = world(machines)
    metrics.passed(one_pass(seen))
    server = HttpServer("127.0.0.1:0", Desk(metrics), None, structlog.get_logger().bind())
    server.start()
    sampling = threading.Event()
    # As the daemon's main thread does it.
    sampler = threading.Thread(target=lambda: sampled(metrics, sampling), daemon=True)
    sampler.start()
    try:
        port = server.address[1]
        idle = measured(port, scrapes)
        with passes_in_flight(seen, metrics) as done:
            busy = measured(port, scrapes)
            number = done[0]
    finally:
        sampling.set()
        server.stop()
    told("idle", idle)
    told(f"{number} passes in flight", busy)
    ratio, of_medians = min(busy) / min(idle), statistics.median(busy) / statistics.median(idle)
    print(f"ratio of the quickest {ratio:.2f}")
    target = Target(name="scrape with a pass in flight over idle scrape, median", value=of_medians, limit=LIMIT)
    return finish([target], result)


def main() -> int:
    """Measure, or be the scraper."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--machines", type=int, default=5_000)
    parser.add_argument("--scrapes", type=int, default=300)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the target there")
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.port is not None:
        scraper(asked.port, asked.scrapes)
        return 0
    return compared(asked.machines, asked.scrapes, asked.json)


if __name__ == "__main__":
    raise SystemExit(main())
