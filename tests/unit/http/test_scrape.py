"""A scrape of the real metrics through the real server, read as a scraper reads it."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import structlog
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families as plain_families

from providers.model import Scope
from reaperd.http.server import HttpServer
from reaperd.report.metrics import Metrics
from tests.support.worlds import EAST, look, machine
from tests.unit.http.conftest import HOST, SOON, Desk, HTTPConnection, asked
from tests.unit.report.scraping import OPENMETRICS, fresh, passed, swept


class Live(Desk):
    """A desk with real metrics."""

    def __init__(self, real: Metrics) -> None:
        super().__init__()
        self.real = real

    def metrics(self, accept: str) -> tuple[bytes, str]:
        return self.real.page(accept)


@pytest.fixture
def live() -> Iterator[tuple[Metrics, int]]:
    metrics = fresh()
    server = HttpServer(f"{HOST}:0", Live(metrics), None, structlog.get_logger(logger_factory=structlog.ReturnLogger))
    server.start()
    yield metrics, server.address[1]
    server.stop()


def scraped(port: int, accept: str) -> tuple[str, str]:
    reply = asked(HTTPConnection(HOST, port, timeout=SOON), "/metrics", headers={"Accept": accept})
    assert reply.status == 200
    return reply.headers["Content-Type"], reply.body


@pytest.mark.parametrize(
    ("accept", "content_type", "parse"),
    [
        ("text/plain", "text/plain; version=0.0.4; charset=utf-8", plain_families),
        (OPENMETRICS, "application/openmetrics-text; version=1.0.0; charset=utf-8", openmetrics_families),
    ],
)
def test_a_scraper_reads_what_was_seen(live, accept, content_type, parse):
    metrics, port = live
    metrics.passed(passed(look([machine(), machine("i-2", worker="w-2")])))

    told, page = scraped(port, accept)

    found = {
        sample.name: sample for family in parse(page) for sample in family.samples if family.name.startswith("reaperd_")
    }
    orphans = [
        sample.value
        for family in parse(page)
        for sample in family.samples
        if sample.name == "reaperd_orphan_instances" and sample.labels["region"] == EAST.region
    ]
    assert told == content_type
    assert orphans[0] == 2
    assert "reaperd_passes_total" in found


def test_many_scrapers_read_whole_pages_while_passes_end(live):
    metrics, port = live
    stop = threading.Event()
    pages: list[str] = []

    def scrape() -> None:
        pages.extend(scraped(port, "")[1] for _ in range(15))

    def work() -> None:
        fleets = [[machine(f"i-{n}", worker=f"w-{n}") for n in range(size)] for size in (0, 30)]
        while not stop.is_set():
            for fleet in fleets:
                metrics.passed(passed(look(fleet)))
                metrics.swept(swept())

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    scrapers = [threading.Thread(target=scrape, daemon=True) for _ in range(4)]
    for thread in scrapers:
        thread.start()
    for thread in scrapers:
        thread.join(60)
    stop.set()
    worker.join(SOON)

    assert len(pages) == 60
    assert {consistent(page) for page in pages} <= {(0.0, 0.0, 0.0), (30.0, 30.0, 30.0), (None, None, 0.0)}


def consistent(page: str) -> tuple[float | None, float | None, float]:
    """Return three figures of one look, which must be those of the same look."""
    owned: dict[Scope, float] = {}
    orphans: dict[Scope, float] = {}
    would = 0.0
    for family in plain_families(page):
        for sample in family.samples:
            if sample.name in {"reaperd_owned_instances", "reaperd_orphan_instances"}:
                into = owned if sample.name == "reaperd_owned_instances" else orphans
                into[Scope(sample.labels["provider"], sample.labels["region"])] = sample.value
            elif sample.name == "reaperd_would_terminate_instances":
                would += sample.value
    return (sum(owned.values()) if owned else None, sum(orphans.values()) if orphans else None, would)
